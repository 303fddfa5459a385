"""Searches everything that was recorded in a session, and says where it was found."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

from interlock.kernel.canonical import Json, readable_json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId
from interlock.record import events as ev
from interlock.record import payloads as data
from interlock.record.content import WHOLE_NOTES_CONTENT_TYPE
from interlock.record.errors import MalformedRecordError
from interlock.record.outcome import Blocked
from interlock.record.world import EventReceived
from interlock.service.report.search.stored_records import digests_of_artifacts, named_artifacts
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.session import Session

if TYPE_CHECKING:
    from interlock.service.run.context import StepLabel


_OF_PENDING = (ev.AdvanceRecordedEvent, ev.EventReceivedEvent, ev.WorkRecordedEvent)
"""Records about the step that is pending at their node. All others are about the step that led to their node."""


@frozen
class Passage:
    """A recorded text and its place. `where` names the kind of record; `node` is None if it is about a whole run.

    The step of a node is that which led to it, unless the record is about the step that `is_pending` there. `received`
    is the event from outside that it is of.
    """

    index: int
    run: RunId | None
    node: NodeId | None
    where: str
    text: str
    is_pending: bool = False
    received: EventReceived | None = None


def passages(reader: SessionReader, session: SessionId) -> Iterator[Passage]:
    """Yield every text of a session in the order of its log. Artifacts that cannot be read are left out.

    Raises:
        SessionUnhealthyError: Its log does not verify.
        StoreFailureError: The disk failed.
    """
    for appended in reader.history(session):
        for event in appended:
            scope = None if isinstance(event, ev.SessionCreatedEvent) else event.scope
            run = scope.run_id if scope is not None else None
            node = scope.node_id if isinstance(scope, ev.NodeScope) else None
            if isinstance(event, ev.ContextSetEvent):
                node = event.data.node_id
            for where, text in _texts(reader, event):
                yield Passage(
                    index=event.event_index,
                    run=run,
                    node=node,
                    where=where,
                    text=text,
                    is_pending=isinstance(event, _OF_PENDING),
                    received=event.data if isinstance(event, ev.EventReceivedEvent) else None,
                )


def passages_in_records(reader: SessionReader, session: SessionId, may_match: Callable[[bytes], bool]) -> Iterator[str]:
    """Yield the texts of the records that may match, unverified. What cannot be read is left out.

    Raises:
        UnknownVersionError: A newer Interlock wrote one.
        StoreFailureError: The disk failed.
    """
    for segment in reader.stored_log(session).segments:
        artifacts = {digest for digest, artifact in named_artifacts(reader, segment) if may_match(artifact)}
        if not artifacts and not may_match(segment):
            continue
        for line in segment.split(b"\n"):
            if may_match(line) or not artifacts.isdisjoint(digests_of_artifacts(line)):
                with suppress(MalformedRecordError):
                    yield from (text for _, text in _texts(reader, ev.parse_event(line)))


def step_of(session: Session, plans: Plans, passage: Passage) -> "StepLabel | None":
    """Return the step that a passage is about; None if it is about none, or the plan cannot be read."""
    from interlock.service.run.context import load_run_context  # noqa: PLC0415 — a search that finds nothing needs none

    if passage.node is None:
        return None
    node = session.nodes[passage.node]
    about = passage.node if passage.is_pending else node.parent
    if about is None:
        return None  # the start recorded it
    try:
        return load_run_context(session, session.runs[node.run], plans).place(session.nodes[about])
    except ContentDamagedError:
        return None


def _texts(reader: SessionReader, event: ev.Event) -> Iterator[tuple[str, str]]:  # noqa: C901, PLR0912 — one for each kind
    match event:
        case ev.RunStartedEvent():
            yield "workflow", f"{event.data.workflow_id} {event.data.workflow_source_ref}"
        case ev.NodeOutputAppendedEvent():
            yield from _output(reader, event.data.payload)
        case ev.ContextSetEvent():
            yield from ((f"context {key}", _flat_json(value)) for key, value in event.data.context.items())
        case ev.AdvanceRecordedEvent():
            if isinstance(event.data.outcome, Blocked):
                yield from (("refusal", one.message) for one in event.data.outcome.blockers.blockers)
        case ev.GapRecordedEvent():
            yield "gap", event.data.summary
        case ev.DivergenceRecordedEvent():
            yield "deviation", event.data.summary
        case ev.ObservationRecordedEvent():
            yield "observation", event.data.value.value
        case ev.WorkRecordedEvent():
            yield "end", " ".join((event.data.reason, event.data.note or "", *(event.data.refs or ())))
        case ev.EventReceivedEvent():
            yield f"event {event.data.event}", _flat_json(event.data.to_json())
        case ev.IntentRecordedEvent():
            yield f"intent {event.data.sends}", _flat_json(event.data.to_json())
        case ev.IntentSettledEvent():
            yield "sending", f"{event.data.state} {event.data.channel or ''} {event.data.note or ''}"
        case ev.ContractBoundEvent() | ev.ExecutionClaimedEvent():
            yield "contract", _flat_json(event.data.to_json())
        case ev.DecisionTraceAppendedEvent():
            yield from (("decision", entry.summary) for entry in event.data.entries)
        case (
            ev.SessionCreatedEvent()
            | ev.NodeCreatedEvent()
            | ev.EdgeCreatedEvent()
            | ev.PreferencesChangedEvent()
            | ev.CapabilityObservedEvent()
            | ev.ContractBoundEvent()
            | ev.ExecutionClaimedEvent()
        ):
            return
        case _:
            assert_never(event)


def _output(reader: SessionReader, payload: data.NotesPayload | data.ArtifactPayload) -> Iterator[tuple[str, str]]:
    if isinstance(payload, data.NotesPayload):
        yield "notes", payload.notes_markdown
        return
    text = _artifact(reader, payload.sha256)
    if text is not None:
        yield "notes" if payload.content_type == WHOLE_NOTES_CONTENT_TYPE else "artifact", text


def _artifact(reader: SessionReader, digest: Digest) -> str | None:
    try:
        raw = reader.artifact(digest).decode("utf-8", "replace")
    except ContentDamagedError:
        return None
    try:
        return _flat_json(json.loads(raw))
    except (ValueError, RecursionError):
        return raw


def _flat_json(value: Json) -> str:
    return value if isinstance(value, str) else readable_json(value)
