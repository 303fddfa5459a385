"""Says what one append may hold: a start, an attempt, or one of the few plans without a decision (VERIFY-2)."""

from itertools import takewhile

from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import AttemptId, NodeId, checkpoint_attempt, node_of_attempt
from interlock.record import events as ev
from interlock.record.content import output_id_of
from interlock.views.evolution import evolve
from interlock.views.session import Advance, Node, Session

KeyEvent = ev.RunStartedEvent | ev.AdvanceRecordedEvent


class BrokenChainError(InterlockError):
    """An append is none that Interlock writes: its plan starts from a node that cannot continue, or has a foreign part.

    `node` is the one that the recorded attempt is on, if it is an attempt.
    """

    def __init__(self, key: ev.Event, found: str) -> None:
        super().__init__(f"{key.kind} at {key.event_index}: {found}")
        self.node = key.scope.node_id if isinstance(key, ev.AdvanceRecordedEvent) else None


@frozen
class RecordedPlan:
    """An appended plan: its events, its key event, the node that it made, and the session before and after it.

    Events from outside that were appended with it are none of its events: `before` is the session with them.
    """

    events: tuple[ev.Event, ...]
    key: KeyEvent
    node: NodeId
    before: Session
    after: Session


def recorded_plan(before: Session, after: Session, events: tuple[ev.Event, ...]) -> RecordedPlan | None:
    """Find the key event of an appended plan; None if the plan holds no decision, and may hold what it holds.

    Raises:
        BrokenChainError: The plan does not create its node, or observes something else; or it has no key event and is
            none of the plans that Interlock makes without one.
    """
    received, events = split_received(events)
    if not events:
        return None
    before = evolve(before, *received) if received else before
    key = next((event for event in events if isinstance(event, KeyEvent)), None)
    if key is None:
        if not (_is_alone(events) or _is_binding(events) or _is_checkpoint(before, events)):
            raise BrokenChainError(events[0], "no append holds this without a start or an attempt")
        return None
    if isinstance(key, ev.RunStartedEvent):
        node = after.runs[key.scope.run_id].root
    else:
        node = _recorded_advance(after, key).child if key.scope.node_id in before.nodes else None
    if node is None or node not in after.nodes or node in before.nodes:
        raise BrokenChainError(key, "it does not create its node")
    for event in events:
        if isinstance(event, ev.ObservationRecordedEvent) and not _observes(event, key, node):
            raise BrokenChainError(key, "it observes something else than where it was made")
    return RecordedPlan(events=events, key=key, node=node, before=before, after=after)


def split_received(events: tuple[ev.Event, ...]) -> tuple[tuple[ev.Event, ...], tuple[ev.Event, ...]]:
    """Return the events from outside that an append begins with, and the rest, which was decided with them (APP-9)."""
    received = tuple(takewhile(lambda event: isinstance(event, ev.EventReceivedEvent), events))
    return received, events[len(received) :]


def _recorded_advance(after: Session, key: ev.AdvanceRecordedEvent) -> Advance:
    advance = after.advance(key.scope.node_id, key.data.attempt_id)
    assert advance is not None, "the event records it"
    return advance


_ALONE = (ev.IntentSettledEvent, ev.ExecutionClaimedEvent)


def _is_alone(events: tuple[ev.Event, ...]) -> bool:
    """Say whether an append is one event of a kind that needs no other.

    These are a claim or a result of a try to send an intent, a claim of an execution, the end of a run, and the mark
    of a redacted copy.
    """
    first, *others = events
    match first:
        case ev.WorkRecordedEvent():
            is_alone = first.is_end
        case ev.ObservationRecordedEvent():
            is_alone = first.is_redaction
        case _:
            is_alone = isinstance(first, _ALONE)
    return is_alone and not others


def _is_binding(events: tuple[ev.Event, ...]) -> bool:
    """Say whether an append begins the session of a contract: it binds the contract, and observes the workspace."""
    first, *others = events
    bindings = [one for one in others if isinstance(one, ev.ContractBoundEvent)]
    observations = others[len(bindings) :]
    return (
        isinstance(first, ev.SessionCreatedEvent)
        and len(bindings) > 0
        and bindings == others[: len(bindings)]
        and all(isinstance(one, ev.ObservationRecordedEvent) and _is_of_session(one) for one in observations)
    )


def _is_checkpoint(before: Session, events: tuple[ev.Event, ...]) -> bool:
    """Say whether an append is the next checkpoint of a node: its own node, and outputs of its attempt alone."""
    first, *others = events
    if not isinstance(first, ev.NodeCreatedEvent) or first.data.node_kind != "checkpoint":
        return False
    of = first.data.parent_node_id
    parent = before.nodes.get(of) if of is not None else None
    if parent is None or first.data.snapshot_ref != parent.snapshot:
        return False
    attempt, made = checkpoint_attempt(parent.node, parent.checkpoints), first.scope.node_id
    return made == node_of_attempt(attempt) and all(_is_of_checkpoint(one, parent, attempt, made) for one in others)


def _is_of_checkpoint(event: ev.Event, parent: Node, attempt: AttemptId, made: NodeId) -> bool:
    match event:
        case ev.EdgeCreatedEvent():
            return event.data.to_node_id == made
        case ev.NodeOutputAppendedEvent():
            return event.scope.node_id == parent.node and event.data.output_id == output_id_of(
                attempt, event.data.payload
            )
        case ev.WorkRecordedEvent():
            return isinstance(event.scope, ev.NodeScope) and event.scope.node_id == made
        case _:
            return False


def _observes(event: ev.ObservationRecordedEvent, key: KeyEvent, node: NodeId) -> bool:
    """Say whether an observation is one that a start or an attempt records: of its session or run, or at its node."""
    if isinstance(key, ev.AdvanceRecordedEvent):
        return isinstance(event.scope, ev.NodeScope) and event.scope.node_id == node
    return _is_of_session(event) or event.scope == key.scope


def _is_of_session(event: ev.ObservationRecordedEvent) -> bool:
    return event.scope is None and not event.is_redaction
