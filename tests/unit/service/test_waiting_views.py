"""What views say of runs that wait and send: lifecycle, conformance, resume, list."""

from typing import Any

import pytest
from tests.support.lifecycle import hold_lifecycle, lifecycle_at, run_of
from tests.support.modes import session_of
from tests.support.outside import WAITING, sent, waiting_for

from interlock.kernel.ids import RunId
from interlock.service.run.lifecycle import read_executions
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import CounterClock, FixedKeyRing, Harness


@pytest.mark.inv("WORLD-1", "LIFE-5")
def test_the_lifecycle_of_a_run_that_waits_holds_before_and_after_its_event() -> None:
    harness = Harness.in_memory(WAITING)
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first)

    def hold() -> None:
        session = session_of(harness, first)
        hold_lifecycle(harness.store, session, RunId(first["run"]["runId"]))

    hold()
    sent(harness, first)
    hold()
    third = harness.advance(waiting, None)
    harness.advance(third, "Finished the rest.")
    hold()


@pytest.mark.inv("LIFE-1", "LIFE-4", "EXE-13")
@pytest.mark.parametrize("is_late", [False, True], ids=["its event", "its time"])
@pytest.mark.parametrize("sets", [[], [{"key": "late", "from": "event.expired"}]], ids=["unread", "read"])
def test_a_step_that_waited_is_completed_with_what_it_took_as_data(sets: list[Any], *, is_late: bool) -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), waiting_for(timeout="1h", set=sets), clock=clock, keys=FixedKeyRing())
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first)
    if is_late:
        clock.skip_ms(3_600_000)
    else:
        sent(harness, first)
    harness.advance(waiting, None)
    session, kind = session_of(harness, first), "wr.expired" if is_late else "ci.finished"
    [taken] = [one for one in session.outside.events.values() if one.data.event == kind]
    lifecycle = lifecycle_at(harness, first)
    [done] = [one for one in lifecycle.events if one.kind == "workflow.node.completed" and one.node == "ci"]
    assert ("event", str(taken.index)) in [(one.kind, one.ref) for one in done.refs]
    assert done.code == ("expired" if is_late else None)
    tip = session.runs[RunId(first["run"]["runId"])].tip
    assert tip is not None
    executions = read_executions(harness.store, run_of(harness, first), session.nodes[tip])
    [outcome] = [
        event.payload for block in executions.blocks for event in block.events if event.event_type == "outcome_produced"
    ]
    fields = {} if is_late else {"status": "green"}
    assert outcome == {"event": {"kind": kind, "assurance": taken.data.assurance, "fields": fields}}
    hold_lifecycle(harness.store, session, RunId(first["run"]["runId"]))
