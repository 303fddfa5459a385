"""What must hold of the lifecycle of every run: it follows its plan, and agrees with the stored snapshots."""

from collections.abc import Iterator
from typing import Any

from tests.support.executions import hold_executions

from interlock.kernel.budgets.operations import LIFECYCLE_EVENT_BYTES_MAX, LIFECYCLE_REFS_BYTES_MAX
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.ids import RunId
from interlock.record.snapshot import Complete
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.lifecycle import read_lifecycle
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader
from interlock.testing.harness import Harness, ToolResult
from interlock.views.lifecycle.conformance import faults_of
from interlock.views.lifecycle.projection import Lifecycle
from interlock.views.lifecycle.state import instance_states, pending_instance, resume_point
from interlock.views.session import Node, Session


def run_of(harness: Harness, start: ToolResult) -> RunContext:
    session = harness.store.load(harness.session_of(start))
    assert session is not None
    return load_run_context(session, session.runs[RunId(start["run"]["runId"])], Plans(harness.store))


def node_at(harness: Harness, answer: ToolResult) -> Node:
    """Return the node that an answer names by its state token."""
    reference = harness.reference_of(answer)
    session = harness.store.load(reference.session)
    assert session is not None
    return session.nodes[reference.node]


def lifecycle_at(harness: Harness, start: ToolResult, tip: Node | None = None) -> Lifecycle:
    """Return the lifecycle to a node, by default to the preferred tip."""
    run = run_of(harness, start)
    assert run.run.tip is not None
    return read_lifecycle(harness.store, run, tip or run.session.nodes[run.run.tip])


def events_of(lifecycle: Lifecycle) -> list[dict[str, Any]]:
    return [event.to_json() for event in lifecycle.events]


def in_short(lifecycle: Lifecycle) -> list[str]:
    """Return each event as a few words: its kind, the step instance, the attempt, and the edge or the code."""
    return [
        " ".join(
            str(part)
            for part in (
                event.kind.removeprefix("workflow.").removeprefix("node."),
                event.instance,
                event.attempt,
                event.edge or event.code,
            )
            if part is not None
        )
        for event in lifecycle.events
    ]


def hold_lifecycle(store: StoreReader, session: Session, run: RunId) -> None:
    """Hold the lifecycle of the two newest branches of a run against its plan and its snapshots."""
    context = load_run_context(session, session.runs[run], Plans(store))
    for tip in _ends(session, run):
        lifecycle = read_lifecycle(store, context, tip)
        assert not lifecycle.partial
        hold_executions(store, context, tip, lifecycle)
        events = events_of(lifecycle)
        assert faults_of(events, context.workflow.plan) == ()
        for event in events:
            assert len(canonical_bytes(event)) <= LIFECYCLE_EVENT_BYTES_MAX
            assert len(canonical_bytes(event.get("refs", []))) <= LIFECYCLE_REFS_BYTES_MAX
        state = context.snapshot(tip).state
        assert any(one["kind"] == "workflow.run.completed" for one in events) == isinstance(state, Complete)
        found = {one.instance: one.state for one in instance_states(lifecycle, context.workflow)}
        completed = set(state.completed.values)
        assert completed <= {key for key, one in found.items() if one == "completed"}
        assert set(state.skipped.values) <= {key for key, one in found.items() if one == "skipped"}
        pending = pending_instance(context.snapshot(tip))
        point = resume_point(session, tip, context.workflow, context.snapshot)
        assert point.next_runnable == pending
        if pending is not None:
            assert found[pending] == ("failed" if tip.kind == "blocked_attempt" else "started")
        if point.last_completed is not None:
            assert found[point.last_completed] == "completed"


def _ends(session: Session, run: RunId) -> Iterator[Node]:
    """Yield the preferred tip, and the newest end of another branch."""
    ends = [
        node for node in session.nodes.values() if node.run == run and node.kind != "checkpoint" and not node.children
    ]
    yield from sorted(ends, key=lambda node: node.index)[-2:]
