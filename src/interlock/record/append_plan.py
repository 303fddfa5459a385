"""The append plan: everything that one call records, written whole or not at all (APP-1, APP-4).

The engine has no clock and no entropy, so its drafts have no event ids, indexes or times. The service adds them
when it stamps the plan.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import cast

from interlock.kernel.budgets import PLAN_BYTES_MAX, PLAN_EVENTS_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, EventId, NodeId, RunId, SessionId, SnapshotRef, WorkflowHash
from interlock.record import payloads as data
from interlock.record.base import Record
from interlock.record.events import (
    Actor,
    Event,
    EventReceivedEvent,
    NodeScope,
    RunScope,
    SessionCreatedEvent,
    build_dedupe_key,
    event_class_of,
    parse_event,
)


@frozen
class PlannedEdge:
    """An edge whose cause is another event of the same plan, named by its position."""

    edge_kind: data.EdgeKind
    from_node: NodeId
    to_node: NodeId
    cause: data.EdgeCauseKind
    cause_position: int


@frozen
class EventDraft:
    """An event before it has an id, an index and a time. Its kind is that of its payload."""

    data: Record | PlannedEdge
    run: RunId | None = None
    node: NodeId | None = None


@frozen
class AppendPlan:
    """Everything that one call records, written whole or not at all.

    Content is listed as bytes under its digest. The store writes it before the events that refer to it.

    `received` are events from outside that come first. They are stamped already, because the decision names those that
    it took (APP-9).
    """

    session: SessionId
    drafts: tuple[EventDraft, ...]
    received: tuple[EventReceivedEvent, ...] = ()
    snapshots: tuple[tuple[SnapshotRef, bytes], ...] = ()
    artifacts: tuple[tuple[Digest, bytes], ...] = ()
    workflow: tuple[WorkflowHash, bytes] | None = None


@frozen
class Stamps:
    """What the service adds to a plan: fresh event ids, the time, and the caller."""

    mint_event_id: Callable[[], EventId]
    recorded_at: str
    actor: Actor | None = None


@frozen
class Segment:
    """A stamped plan: its events and the exact bytes of the segment file that holds them."""

    events: tuple[Event, ...]
    data: bytes = field(repr=False)


def stamp(plan: AppendPlan, *, next_index: int, stamps: Stamps) -> Segment:
    """Turn a plan into the segment that its append writes.

    The events are parsed from the segment's bytes, so the caller sees exactly what a later reader sees: `1.0` is
    stored as `1`, and the keys of objects are sorted.
    """
    count, first = len(plan.received) + len(plan.drafts), next_index + len(plan.received)
    assert 0 < count <= PLAN_EVENTS_MAX, "a plan holds between one event and the budget"
    assert all(one.event_index == next_index + at for at, one in enumerate(plan.received)), "they were stamped for here"
    ids = [stamps.mint_event_id() for _ in plan.drafts]
    lines = [one.to_bytes() for one in plan.received]
    lines += [
        _stamp_draft(draft, session=plan.session, index=first + at, ids=(ids, at), stamps=stamps).to_bytes()
        for at, draft in enumerate(plan.drafts)
    ]
    segment = b"".join(line + b"\n" for line in lines)
    assert len(segment) <= PLAN_BYTES_MAX, "every input of a plan was checked against its limit before"
    return Segment(events=tuple(map(parse_event, lines)), data=segment)


def _stamp_draft(
    draft: EventDraft, *, session: SessionId, index: int, ids: tuple[list[EventId], int], stamps: Stamps
) -> Event:
    """Build the event of a draft. `ids` holds the event ids of the whole plan and the draft's position in it."""
    payload = payload_of(draft, ids[0])
    event_class = event_class_of(type(payload))
    fields: dict[str, object] = {
        "v": 1,
        "event_id": ids[0][ids[1]],
        "event_index": index,
        "session_id": session,
        "data": payload,
        "recorded_at": stamps.recorded_at,
    }
    if draft.run is not None:
        fields["scope"] = _scope_of(draft)
    if stamps.actor is not None:
        fields["actor"] = stamps.actor
    # The dedupe key depends on the other fields, so they are built first.
    make = cast("Callable[..., Event]", event_class)
    return make(**fields, dedupe_key=build_dedupe_key(make(**fields, dedupe_key="")))


def is_recorded_as(draft: EventDraft, event: Event, ids: Sequence[EventId]) -> bool:
    """Say whether an event has exactly the payload and the scope of a draft. `ids` are those of the whole plan."""
    payload = payload_of(draft, ids)
    return (
        type(payload) is type(event.data)
        and _scope_of(draft) == (None if isinstance(event, SessionCreatedEvent) else event.scope)
        and payload.to_bytes() == event.data.to_bytes()
    )


def _scope_of(draft: EventDraft) -> RunScope | NodeScope | None:
    if draft.run is None:
        return None
    return RunScope(run_id=draft.run) if draft.node is None else NodeScope(run_id=draft.run, node_id=draft.node)


def payload_of(draft: EventDraft, ids: Sequence[EventId]) -> Record:
    """Return the payload of a draft. `ids` are the event ids of the whole plan."""
    return _build_edge(draft.data, ids) if isinstance(draft.data, PlannedEdge) else draft.data


def _build_edge(planned: PlannedEdge, ids: Sequence[EventId]) -> data.EdgeCreated:
    return data.EdgeCreated(
        edge_kind=planned.edge_kind,
        from_node_id=planned.from_node,
        to_node_id=planned.to_node,
        cause=data.EdgeCause(kind=planned.cause, event_id=ids[planned.cause_position]),
    )
