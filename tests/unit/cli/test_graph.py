"""A run is drawn as it went: the ordinary way on one line, forks below where they began, the tip marked once."""

from io import StringIO

import pytest
from rich.console import Console

from interlock.cli.render.run_tree import draw_run
from interlock.kernel.ids import RunId
from interlock.testing.harness import Harness, ToolResult, linear_workflow
from interlock.views.run_graph import run_graph
from interlock.views.session import Node


@pytest.fixture
def harness() -> Harness:
    return Harness.in_memory(linear_workflow("test.abc", "a", "b", "c"))


def drawn(harness: Harness, first: ToolResult) -> list[str]:
    session = harness.store.load(harness.session_of(first))
    assert session is not None

    def depth_of(node: Node) -> str:
        return f"[{node.depth}]"

    out = StringIO()
    graph = run_graph(session, RunId(first["run"]["runId"]))
    Console(file=out, width=60, color_system=None).print(draw_run(graph, "A run", depth_of))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def fork(harness: Harness, at: ToolResult) -> ToolResult:
    return harness.advance(str(harness.rehydrate(at)["fork"]["ackToken"]), "Done otherwise.")


def test_a_run_that_never_branched_is_one_line_of_nodes(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(harness.advance(first))
    assert drawn(harness, first) == ["A run", "├── ● [0]", "├── ● [1]", "└── ● [2]  ◀ preferred tip"]


def test_a_refused_attempt_stands_between_the_step_and_what_came_after(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(harness.advance(first, None))
    assert drawn(harness, first) == ["A run", "├── ● [0]", "├── ✗ [1] (refused)", "└── ● [2]  ◀ preferred tip"]


def test_a_fork_hangs_below_the_node_it_began_at_and_the_way_before_stays_whole(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(harness.advance(first))
    harness.advance(fork(harness, first), None)
    assert drawn(harness, first) == [
        "A run",
        "├── ● [0]",
        "│   └── ⑂ redone on a branch",
        "│       ├── ● [1]",
        "│       └── ✗ [2] (refused)  ◀ preferred tip",
        "├── ● [1]",
        "└── ● [2]",
    ]


def test_forks_of_one_node_come_in_the_order_they_were_made_and_a_fork_may_fork(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first)
    branch = fork(harness, first)
    harness.advance(branch)
    fork(harness, branch)
    fork(harness, first)
    assert drawn(harness, first) == [
        "A run",
        "├── ● [0]",
        "│   ├── ⑂ redone on a branch",
        "│   │   ├── ● [1]",
        "│   │   │   └── ⑂ redone on a branch",
        "│   │   │       └── ● [2]",
        "│   │   └── ● [2]",
        "│   └── ⑂ redone on a branch",
        "│       └── ● [1]  ◀ preferred tip",
        "└── ● [1]",
    ]


def test_a_long_run_is_drawn_without_recursion() -> None:
    steps = [f"s{number}" for number in range(90)]
    harness = Harness.in_memory(linear_workflow("test.long", *steps))
    first = last = harness.start("test.long")
    for _ in steps:
        last = harness.advance(last)
    assert len(drawn(harness, first)) == len(steps) + 2
