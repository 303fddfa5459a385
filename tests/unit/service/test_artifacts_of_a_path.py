"""The search for the artifacts of a path ends early, and still finds each of them on every branch."""

import random
from collections.abc import Mapping

import pytest

from interlock.kernel.budgets import RECAP_NODES_MAX
from interlock.testing.harness import Harness, ToolResult, linear_workflow
from interlock.views.node_position import walk_up
from interlock.views.recap import nodes_with_artifacts
from interlock.views.session import Node, Session

STEPS = 12


def branched(seed: int) -> Session:
    """Return a session with two runs: reports, refused ones, checkpoints and forks, some of them with artifacts."""
    chance, names = random.Random(seed), [f"s{number}" for number in range(STEPS)]
    harness = Harness.in_memory(linear_workflow("test.long", *names))
    first = harness.start("test.long")
    session = harness.session_of(first)
    answers = [[first], [harness.start("test.long", sessionId=session)]]
    for number in range(60):
        seen = chance.choice(answers)
        answer = chance.choice([seen[-1], seen[-1], chance.choice(seen)])
        artifacts = [{"kind": "k", "number": number}] if chance.random() < 0.2 else []
        notes = None if chance.random() < 0.2 else f"Notes {number}, about the work of this step."
        if chance.random() < 0.2:
            harness.checkpoint(answer, notes, output={"artifacts": artifacts} if artifacts else {"notesMarkdown": "n"})
            continue
        again = harness.rehydrate(answer)
        sent = {"output": {"notesMarkdown": notes or "", "artifacts": artifacts}}
        seen.append(_advanced(harness, again, sent))
        if seen[-1]["isComplete"]:
            seen[:] = seen[: 1 + STEPS // 2]
    loaded = harness.store.load(session)
    assert loaded is not None
    return loaded


def _advanced(harness: Harness, looked: ToolResult, sent: Mapping[str, object]) -> ToolResult:
    """Report the shown step, on a new branch if it is done already; return what was shown if that is refused."""
    fork = looked.structure.get("fork")
    answer = harness.call("continue_workflow", {"ackToken": fork["ackToken"] if fork else looked.ack, **sent})
    return looked if answer.is_error else answer


def naive(session: Session, node: Node) -> list[Node]:
    above = list(walk_up(session, node))[:RECAP_NODES_MAX]
    return [one for one in above if any(output.channel == "artifact" for output in one.outputs)]


@pytest.mark.inv("REC-1", "EVD-2")
@pytest.mark.parametrize("seed", range(6))
def test_the_artifacts_above_each_node_are_found_and_no_others(seed: int) -> None:
    session = branched(seed)
    nodes = [node for run in session.runs.values() for node in session.nodes.values() if node.run == run.run]
    assert any(len(node.children) > 1 for node in nodes), "there are branches"
    assert any(naive(session, node) for node in nodes), "there are artifacts"
    for node in nodes:
        assert list(nodes_with_artifacts(session, node)) == naive(session, node)


@pytest.mark.inv("REC-1")
def test_a_run_without_artifacts_costs_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    answer = harness.advance(harness.start("test.abc"), "Did it.")
    session = harness.store.load(harness.session_of(harness.rehydrate(answer)))
    assert session is not None
    monkeypatch.setattr("interlock.views.recap.walk_up", None)
    (tip,) = (session.nodes[run.tip] for run in session.runs.values() if run.tip is not None)
    assert list(nodes_with_artifacts(session, tip)) == []
