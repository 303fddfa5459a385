"""Runs drawn as they went: branches, refused attempts, checkpoints, the preferred tip; and as text for other tools."""

import re
import sys

import pytest
from tests.support.history import HOSTILE, Place, checkpointed, label_of, redone

from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", name="Ship it")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def branched(harness: Harness) -> ToolResult:
    """Do the first step, be refused in the second, keep a checkpoint there, finish; then redo the first."""
    first = harness.start("team.ship", goal="Ship")
    refused = harness.advance(harness.advance(first), None)
    checkpointed(harness, first, "Half of it.")
    harness.advance(refused)
    redone(harness, first)
    return first


def test_a_run_is_drawn_with_its_branches_refusals_checkpoints_and_tip(place: Place, harness: Harness) -> None:
    first = branched(harness)
    result = place.run("graph")
    assert result.code == 0
    assert result.out.splitlines() == [
        f"Ship it · run {label_of(first)} · Ship",
        "├── ● step 1, Step a",
        "│   └── ⑂ redone on a branch",
        "│       └── ● step 2, Step b  ◀ preferred tip",
        "├── ● step 2, Step b",
        "├── ✗ step 2, Step b (refused)",
        "│   └── ◇ checkpoint",
        "└── ● complete",
        "● a step   ✗ a refused attempt   ⑂ a fork   ◇ a checkpoint   ◀ where the run continues",
    ]


def test_a_run_is_charted_for_mermaid(place: Place, harness: Harness) -> None:
    first = branched(harness)
    assert place.run("graph", "--format", "mermaid").out.splitlines() == [
        "flowchart TD",
        f"  %% {first['run']['sessionId']}",
        f'  subgraph run1["Ship it · run {label_of(first)} · Ship"]',
        '    n1["step 1, Step a"]',
        '    n2["step 2, Step b"]',
        '    n3{"step 2, Step b<br/>refused"}',
        '    n3c0(["checkpoint"])',
        '    n4["complete"]',
        '    n5["step 2, Step b<br/>preferred tip"]',
        "  end",
        "  n1 --> n2",
        '  n1 -->|"fork"| n5',
        "  n2 --> n3",
        "  n3 -.-> n3c0",
        "  n3 --> n4",
    ]


def test_a_run_is_charted_for_graphviz(place: Place, harness: Harness) -> None:
    branched(harness)
    result = place.run("graph", "--format", "dot").out
    assert result.startswith("digraph workflow {\n")
    assert result.endswith("}\n")
    assert '    n3c0 [shape=oval, label="checkpoint"];' in result
    assert '  n1 -> n5 [label="fork"];' in result


@pytest.mark.inv("HIS-4")
def test_as_json_a_graph_holds_every_node_with_its_children(place: Place, harness: Harness) -> None:
    first = branched(harness)
    result = place.run("graph", "--json").json()
    (run,) = result["runs"]
    assert (result["session"], run["run"]) == (first["run"]["sessionId"], first["run"]["runId"])
    nodes = {node["node"]: node for node in run["nodes"]}
    assert [node["kind"] for node in run["nodes"]] == ["step", "step", "blocked_attempt", "step", "step"]
    for node in nodes.values():
        assert all(nodes[child]["parent"] == node["node"] for child in node["children"])
        assert set(node["forks"]) <= set(node["children"])
    root = run["nodes"][0]
    assert (root["parent"], len(root["children"]), len(root["forks"])) == (None, 2, 1)
    assert [node["isPreferredTip"] for node in run["nodes"]] == [False, False, False, False, True]
    assert [len(node["checkpoints"]) for node in run["nodes"]] == [0, 0, 1, 0, 0]


def test_all_runs_of_a_session_are_drawn_or_the_one_that_is_named(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    second = harness.start("team.ship", sessionId=first["run"]["sessionId"])
    assert place.run("graph").out.count("Ship it · run ") == 2
    assert place.run("graph", "--format", "mermaid").out.count("subgraph") == 2
    assert label_of(first) not in place.run("graph", label_of(second)).out


@pytest.mark.inv("HIS-4")
@pytest.mark.parametrize("form", ["terminal", "mermaid", "dot"])
@pytest.mark.parametrize("is_watched", [True, False])
def test_others_words_neither_steer_a_terminal_nor_leave_their_label(
    place: Place, monkeypatch: pytest.MonkeyPatch, form: str, *, is_watched: bool
) -> None:
    title = {"id": "a", "title": "{{goal}}", "prompt": "Do."}
    place.serving(linear_workflow("team.ship", title)).start("team.ship", goal=HOSTILE)
    place.capsys.readouterr()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    if is_watched:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    drawn = place.run("graph", "--format", form)
    assert drawn.code == 0
    result = drawn.out
    assert "\x1b" not in result
    assert "\u202e" not in result
    if form == "mermaid":
        assert all(_MERMAID.fullmatch(line) for line in result.splitlines()), result
    if form == "dot":
        assert all(_DOT.fullmatch(line) for line in result.splitlines()), result


_MERMAID_TEXT = r'"(?:[^"#%&;<>\[\]{}()|`\\]|#\d+;|<br/>)*"'
_MERMAID = re.compile(rf"flowchart TD|  %% sess_\w+|  subgraph run1\[{_MERMAID_TEXT}\]|    n1\[{_MERMAID_TEXT}\]|  end")
_DOT_TEXT = r'"(?:[^"\\]|\\.)*"'
_DOT = re.compile(
    rf"digraph workflow {{|  label={_DOT_TEXT}; labelloc=t;|  node \[fontname={_DOT_TEXT}\];"
    rf"|  subgraph cluster_run1 {{ label={_DOT_TEXT};|    n1 \[shape=box, label={_DOT_TEXT}\];|  }}|}}"
)
