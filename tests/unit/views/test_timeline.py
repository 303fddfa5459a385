"""Entries of the timeline that no call of ours makes are still shown, by what they hold."""

import pytest
from tests.support.record import NOTHING, History, Sent, sample

from interlock.kernel.canonical import canonical_bytes
from interlock.record.events import EVENT_CLASSES, event_kind, parse_event
from interlock.record.payloads import WorkRecorded
from interlock.views.evolution import evolve
from interlock.views.session import Node, Session, new_session
from interlock.views.timeline import entry_of


def fold(history: History) -> Session:
    session = new_session(history.session)
    for event in history.events:
        session = evolve(session, event)
    return session


def titled(node: Node) -> str | None:
    return f"step at {node.index}"


@pytest.mark.parametrize("kind", [event_kind(one) for one in EVENT_CLASSES])
def test_each_kind_of_event_alone_has_an_entry(kind: str) -> None:
    history = History()
    history.start(sent=Sent(context={"a": 1}))
    event = parse_event(canonical_bytes(sample(kind)))
    if kind in {"run_started", "node_created", "advance_recorded"}:
        event = next((one for one in history.events if one.kind == kind), history.events[-1])
    entry = entry_of(fold(history), (event,), titled)
    assert entry.what
    assert (entry.first, entry.last, entry.events) == (event.event_index, event.event_index, (event,))


def test_an_append_without_a_deciding_event_is_reported_by_its_kind() -> None:
    history = History()
    history.start(sent=Sent(context={"a": 1, "b": None}))
    (event,) = (one for one in history.events if one.kind == "context_set")
    entry = entry_of(fold(history), (event,), titled)
    assert (entry.what, entry.more, entry.node) == ("recorded context_set", ("context: a, -b",), None)


def test_an_end_is_described_with_its_reason_its_note_and_its_references() -> None:
    history = History()
    history.start(sent=NOTHING)
    session = fold(history)
    event = parse_event(canonical_bytes(sample("work_recorded")))
    entry = entry_of(session, (event,), titled)
    assert entry.what == "ended the run: cancelled, user_request"
    assert entry.more[:2] == ("note: No longer wanted.", "reference: TICKET-7")
    assert entry.more[2].startswith("a person agreed: sha256:")


def test_work_that_a_checkpoint_left_is_described_with_it() -> None:
    history = History()
    root = history.start(sent=NOTHING)
    history.checkpoint(root, NOTHING, WorkRecorded(work="released", reason="handoff", note="Half of it."))
    entry = entry_of(fold(history), history.segments[-1].events, titled)
    assert entry.what == "saved a checkpoint in step at 2"
    assert entry.more == ("the work on the step was left: released, handoff", "note: Half of it.")


def test_a_checkpoint_where_nothing_is_pending_is_reported_as_kept_at_the_end() -> None:
    history = History()
    root = history.start(sent=NOTHING)
    history.checkpoint(root)
    entry = entry_of(fold(history), history.segments[-1].events, lambda _: None)
    assert entry.what == "saved a checkpoint in its end"
