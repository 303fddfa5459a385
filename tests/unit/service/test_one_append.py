"""An event from outside and the advance that it allows are one append, whichever way the event comes in."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.support.approvals import READING as ANY_ANSWER
from tests.support.approvals import asking, given, replying
from tests.support.checks import BRANCHING, NEEDED, checking, run_now
from tests.support.flow import Document
from tests.support.modes import NEVER_STOPS
from tests.support.outside import WAITING, artifact, sent, waiting_for
from tests.support.verify import unsound

from interlock.engine.gates import ApprovalContext
from interlock.kernel.errors import Refusal
from interlock.record.events import AdvanceRecordedEvent, EdgeCreatedEvent, Event, EventReceivedEvent
from interlock.testing.harness import CounterClock, Harness, ToolResult
from interlock.views.appends import split_received
from interlock.views.timeline import entry_of, parts_of

Way: TypeAlias = Callable[[Harness, ToolResult, ToolResult], object]
"""Lets the event happen for which a run waits, from its start and the answer that shows the step."""
BY_CLAIM = {"artifacts": [{"kind": "wr.confirmation", "confirmedBy": "Ann", "statement": "She said yes."}]}


def late(harness: Harness, start: ToolResult, _waiting: ToolResult) -> object:
    assert isinstance(harness.ports.clock, CounterClock)
    harness.ports.clock.skip_ms(7_200_000)
    return sent(harness, start)


WAYS: dict[str, tuple[Document, Way, int]] = {
    "a person approves by command": (asking(), lambda h, s, _: given(h, s), 1),
    "a person rejects by command": (ANY_ANSWER, lambda h, s, _: given(h, s, is_approved=False, note="No."), 1),
    "a person answers a form of the client": (asking(), lambda h, _, w: replying(h, "accept").advance(w, None), 1),
    "an agent claims the answer": (
        asking(assurance="claimed"),
        lambda h, _, w: h.advance(w, None, output=BY_CLAIM),
        1,
    ),
    "a command sends the event": (WAITING, lambda h, s, _: sent(h, s), 1),
    "a channel answers with the event": (WAITING, lambda h, s, _: sent(h, s, via="channel"), 1),
    "an agent sends the event": (
        waiting_for(assurance="claimed"),
        lambda h, _, w: h.advance(w, None, output={"artifacts": [artifact()]}),
        1,
    ),
    "the event comes too late": (waiting_for(timeout="1h"), late, 2),
    "a check passes": (NEEDED, lambda h, s, _: run_now(h, s), 1),
    "a check does not pass": (BRANCHING, lambda h, s, _: run_now(h, s), 1),
}


def happened(
    tmp_path: Path, workflow: Document, way: Way, *, passes: bool
) -> tuple[Harness, ToolResult, list[tuple[Event, ...]]]:
    """Come to the step that waits, let its event happen, and return what was appended then."""
    harness = checking(tmp_path, workflow)
    harness = replace(harness, ports=replace(harness.ports, clock=CounterClock()))
    if passes:
        (tmp_path / "project" / "passes").touch()
    start = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(start)
    session = harness.session_of(start)
    before = len(harness.store.history(session))
    outcome = way(harness, start, waiting)
    assert not isinstance(outcome, Refusal)
    return harness, start, [*harness.store.history(session)[before:]]


@pytest.mark.inv("APP-9", "WORLD-3", "VERIFY-1")
@pytest.mark.parametrize("name", WAYS)
def test_an_event_and_the_advance_that_it_allows_are_one_append(tmp_path: Path, name: str) -> None:
    workflow, way, count = WAYS[name]
    harness, start, appended = happened(tmp_path, workflow, way, passes=name == "a check passes")
    [plan] = appended
    received, decided = split_received(plan)
    assert len(received) == count
    [advance] = [one for one in plan if isinstance(one, AdvanceRecordedEvent)]
    assert decided[0] == advance
    assert advance.data.took == (received[0].event_id,)
    [edge] = [one for one in decided if isinstance(one, EdgeCreatedEvent)]
    assert edge.data.cause.event_id == advance.event_id
    assert [one.event_index for one in plan] == list(range(plan[0].event_index, plan[-1].event_index + 1))
    session = harness.store.load(harness.session_of(start))
    assert session is not None
    assert harness.store.load(session.session) == session
    assert unsound(harness.store) == []
    entries = [entry_of(session, part, lambda _: "a step") for part in parts_of(plan)]
    assert len(entries) == count + 1
    assert entries[-1].what.startswith("completed a step")


@pytest.mark.inv("APP-9", "MODE-2")
def test_the_answer_that_a_run_that_never_stops_gives_itself_is_in_the_append_of_its_advance(tmp_path: Path) -> None:
    harness = checking(tmp_path, asking())
    start = harness.start("test.flow", goal="Ship", preferences=NEVER_STOPS)
    waiting, session = harness.advance(start), harness.session_of(start)
    before = len(harness.store.history(session))
    harness.advance(waiting, None)
    [plan] = harness.store.history(session)[before:]
    assert isinstance(plan[0], EventReceivedEvent)
    assert isinstance(plan[1], AdvanceRecordedEvent)
    assert unsound(harness.store) == []


@pytest.mark.inv("APP-9", "WORLD-3")
def test_events_that_advance_nothing_are_one_append_without_an_advance(tmp_path: Path) -> None:
    harness = checking(tmp_path, waiting_for(assurance="observed"))
    start = harness.start("test.flow", goal="Ship")
    waiting, session = harness.advance(start), harness.session_of(start)
    before = len(harness.store.history(session))
    answer = harness.advance(waiting, None, output={"artifacts": [artifact("1"), artifact("2")]})
    assert answer["waiting"]["for"] == "event"
    [plan] = harness.store.history(session)[before:]
    assert [type(one) for one in plan] == [EventReceivedEvent, EventReceivedEvent]
    assert unsound(harness.store) == []
    asked = replace(harness, asking=ApprovalContext(client_can=False))
    assert asked.advance(waiting, None, output={"artifacts": [artifact("1")]})["waiting"]["for"] == "event"
    assert len(harness.store.history(session)) == before + 1
