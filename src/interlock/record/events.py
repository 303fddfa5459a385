"""The closed union of events, their envelope and their dedupe keys (EVT-1, EVT-5).

A new kind needs one payload class, one event class with its `dedupe_suffix`, and one line in `Event`.
"""

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, cast, get_args

from interlock.kernel.budgets import DEDUPE_KEY_CHARS_MAX
from interlock.kernel.canonical import digest_of
from interlock.kernel.ids import SessionId
from interlock.kernel.shape import Choice, Reader, RefusedError, Shape, limits
from interlock.record import payloads, world
from interlock.record.base import (
    EventIdField,
    IndexField,
    NodeIdField,
    OfKind,
    Record,
    RunIdField,
    SessionIdField,
    classify_faults,
)
from interlock.record.errors import MalformedRecordError, UnknownVersionError


class Actor(Record):
    """The caller, as it describes itself: a claim, not a proof (SRV-13)."""

    type: Literal["human", "agent", "system"]
    identifier: str
    metadata: dict[str, str] | None = None


OWN_ACTORS = frozenset({"app", "channels", "check", "command line", "console"})
"""The names of the actors that are Interlock itself. A client that states one of them is recorded as `client NAME`."""


class RunScope(Record):
    """The event concerns a run."""

    run_id: RunIdField


class NodeScope(Record):
    """The event concerns a node of a run."""

    run_id: RunIdField
    node_id: NodeIdField


class Envelope(OfKind):
    """The fields that every event has. `recordedAt` (UTC) is for readers and orders nothing."""

    v: Literal[1]
    event_id: EventIdField
    event_index: IndexField
    session_id: SessionIdField
    dedupe_key: Annotated[str, *limits(pattern=r"^[a-z0-9_:>-]+$", max_length=DEDUPE_KEY_CHARS_MAX)]
    recorded_at: str | None = None
    actor: Actor | None = None

    @abstractmethod
    def dedupe_suffix(self) -> str:
        """Return the part of the dedupe key after kind and session. It uses stable identifiers only."""

    def check_read(self) -> None:
        """Check that the dedupe key is that of the event."""
        expected = build_dedupe_key(cast("Event", self))
        if self.dedupe_key != expected:
            raise ValueError(f"dedupe key is not {expected}")


class SessionCreatedEvent(Envelope, tag="session_created"):
    """`session_created`."""

    data: payloads.SessionCreated

    def dedupe_suffix(self) -> str:
        """Empty: a session is created once."""
        return ""


if TYPE_CHECKING:
    RunOrNode: TypeAlias = RunScope | NodeScope
else:

    class RunOrNode(Choice):
        """A run, or a node of it. A union without tags would report a scope of a newer version as malformed."""

        @classmethod
        def members(cls) -> tuple[type[Shape], ...]:
            """Return the classes of the union."""
            return RunScope, NodeScope

        @classmethod
        def pick(cls, members: Mapping[str, object]) -> type[Shape]:
            """Return the class of a scope: only a node's names a node."""
            return NodeScope if "nodeId" in members else RunScope

        @classmethod
        def union(cls) -> object:
            """Return the union in pydantic's terms."""
            from pydantic import Discriminator, Tag  # noqa: PLC0415 — only pydantic asks

            members = Annotated[RunScope, Tag("run")] | Annotated[NodeScope, Tag("node")]
            return Annotated[members, Discriminator(_scope_tag)]


def _scope_tag(scope: object) -> str:
    is_node = "nodeId" in scope if isinstance(scope, dict) else isinstance(scope, NodeScope)
    return "node" if is_node else "run"


class ObservationRecordedEvent(Envelope, tag="observation_recorded"):
    """`observation_recorded`: about the session, about a run, or made when an attempt on a run created a node."""

    scope: RunOrNode | None = None
    data: payloads.ObservationRecorded

    @property
    def is_redaction(self) -> bool:
        """Whether it says that the session is a redacted copy of the one that it names."""
        return self.scope is None and self.data.key == "redacted_from"

    def dedupe_suffix(self) -> str:
        """One observation per key and value: the suffix includes the value's digest (EVT-5).

        An observation at a node is one per node: a value that comes back at a later node is recorded again (OBS-6).
        """
        owner = "session"
        if self.scope is not None:
            owner = self.scope.node_id if isinstance(self.scope, NodeScope) else self.scope.run_id
        return f":{owner}:{self.data.key}:{digest_of(self.data.value.to_json())}"


class RunStartedEvent(Envelope, tag="run_started"):
    """`run_started`: the key event of a start."""

    scope: RunScope
    data: payloads.RunStarted

    def dedupe_suffix(self) -> str:
        """One start per run."""
        return f":{self.scope.run_id}"


class NodeCreatedEvent(Envelope, tag="node_created"):
    """`node_created`: the key event of a checkpoint."""

    scope: NodeScope
    data: payloads.NodeCreated

    def dedupe_suffix(self) -> str:
        """One creation per node."""
        return f":{self.scope.run_id}:{self.scope.node_id}"


class EdgeCreatedEvent(Envelope, tag="edge_created"):
    """`edge_created`."""

    scope: RunScope
    data: payloads.EdgeCreated

    def dedupe_suffix(self) -> str:
        """One edge of a kind between two nodes."""
        return f":{self.scope.run_id}:{self.data.from_node_id}->{self.data.to_node_id}:{self.data.edge_kind}"


class AdvanceRecordedEvent(Envelope, tag="advance_recorded"):
    """`advance_recorded`: the key event of an advance."""

    scope: NodeScope
    data: payloads.AdvanceRecorded

    def dedupe_suffix(self) -> str:
        """One outcome per attempt of a node. The node id keeps attempts of different nodes apart."""
        return f":{self.scope.node_id}:{self.data.attempt_id}"


class NodeOutputAppendedEvent(Envelope, tag="node_output_appended"):
    """`node_output_appended`."""

    scope: NodeScope
    data: payloads.NodeOutputAppended

    def dedupe_suffix(self) -> str:
        """One append per output."""
        return f":{self.data.output_id}"


class ContextSetEvent(Envelope, tag="context_set"):
    """`context_set`: its scope is the run; its data names the node that it belongs to (CTX-1)."""

    scope: RunScope
    data: payloads.ContextSet

    def dedupe_suffix(self) -> str:
        """One delta per context id."""
        return f":{self.data.context_id}"


class PreferencesChangedEvent(Envelope, tag="preferences_changed"):
    """`preferences_changed`."""

    scope: NodeScope
    data: payloads.PreferencesChanged

    def dedupe_suffix(self) -> str:
        """One change per change id."""
        return f":{self.data.change_id}"


class CapabilityObservedEvent(Envelope, tag="capability_observed"):
    """`capability_observed`."""

    scope: NodeScope
    data: payloads.CapabilityObserved

    def dedupe_suffix(self) -> str:
        """One observation per id: a changed status gets a new id, a retry does not."""
        return f":{self.data.cap_obs_id}"


class GapRecordedEvent(Envelope, tag="gap_recorded"):
    """`gap_recorded`."""

    scope: NodeScope
    data: payloads.GapRecorded

    def dedupe_suffix(self) -> str:
        """One disclosure per gap id."""
        return f":{self.data.gap_id}"


class DivergenceRecordedEvent(Envelope, tag="divergence_recorded"):
    """`divergence_recorded`."""

    scope: NodeScope
    data: payloads.DivergenceRecorded

    def dedupe_suffix(self) -> str:
        """One divergence per divergence id."""
        return f":{self.data.divergence_id}"


class DecisionTraceAppendedEvent(Envelope, tag="decision_trace_appended"):
    """`decision_trace_appended`."""

    scope: NodeScope
    data: payloads.DecisionTraceAppended

    def dedupe_suffix(self) -> str:
        """One trace per trace id."""
        return f":{self.data.trace_id}"


class WorkRecordedEvent(Envelope, tag="work_recorded"):
    """`work_recorded`: the key event of the end of a run, or about a node: a step's work that its checkpoint left."""

    scope: RunOrNode
    data: payloads.WorkRecorded

    @property
    def is_end(self) -> bool:
        """Whether the run ended."""
        return isinstance(self.scope, RunScope)

    def dedupe_suffix(self) -> str:
        """A run ends once, and a checkpoint leaves its step once."""
        node = f":{self.scope.node_id}" if isinstance(self.scope, NodeScope) else ""
        return f":{self.scope.run_id}{node}"

    def __post_init__(self) -> None:
        """Check that the work and its place agree."""
        if self.data.work == ("released" if self.is_end else "cancelled"):
            raise ValueError("a run fails or is cancelled, a node fails or is released")
        if self.data.answer_ref is not None and not self.is_end:
            raise ValueError("a person is asked about the end of a run only")


class EventReceivedEvent(Envelope, tag="event_received"):
    """`event_received`: a key event; of a run, or of one node of it. What it allows follows it in its append."""

    scope: RunOrNode
    data: world.EventReceived

    def dedupe_suffix(self) -> str:
        """One event per kind, id of the sender, node and level; what comes from outside enters by its digest."""
        node = f":{self.scope.node_id}" if isinstance(self.scope, NodeScope) else ""
        sent = digest_of([self.data.event, self.data.sent_id])
        return f":{self.scope.run_id}{node}:{self.data.assurance}:{sent}"


class IntentRecordedEvent(Envelope, tag="intent_recorded"):
    """`intent_recorded`: on the node that the advance made, in the same append."""

    scope: NodeScope
    data: world.IntentRecorded

    def dedupe_suffix(self) -> str:
        """One record per intent."""
        return f":{self.data.intent_id}"


class IntentSettledEvent(Envelope, tag="intent_settled"):
    """`intent_settled`: the key event of an append of its own. It may follow the end of its run."""

    scope: RunScope
    data: world.IntentSettled

    def dedupe_suffix(self) -> str:
        """One claim and one result per try of an intent."""
        role = "claim" if self.data.state == "dispatched" else "result"
        return f":{self.data.intent_id}:{self.data.attempt}:{role}"


class ContractBoundEvent(Envelope, tag="contract_bound"):
    """`contract_bound`: of the session; without a parent it is the key event of the start of a contract."""

    scope: None = None
    data: payloads.ContractBound

    def dedupe_suffix(self) -> str:
        """One binding per binding id."""
        return f":{self.data.binding_id}"


class ExecutionClaimedEvent(Envelope, tag="execution_claimed"):
    """`execution_claimed`: of the session; the key event of a claim."""

    scope: None = None
    data: payloads.ExecutionClaimed

    def dedupe_suffix(self) -> str:
        """One claim of an execution for each part of a contract."""
        part = self.data.binding
        test = f":{part.test}" if part.test is not None else ""
        return f":{part.binding_id}:{part.role}:{part.position}{test}:{self.data.flow_execution_id}"


Event = (
    SessionCreatedEvent
    | ObservationRecordedEvent
    | RunStartedEvent
    | NodeCreatedEvent
    | EdgeCreatedEvent
    | AdvanceRecordedEvent
    | NodeOutputAppendedEvent
    | ContextSetEvent
    | PreferencesChangedEvent
    | CapabilityObservedEvent
    | GapRecordedEvent
    | DivergenceRecordedEvent
    | DecisionTraceAppendedEvent
    | WorkRecordedEvent
    | EventReceivedEvent
    | IntentRecordedEvent
    | IntentSettledEvent
    | ContractBoundEvent
    | ExecutionClaimedEvent
)

EVENT: Reader[Event] = Reader(Event)


EVENT_CLASSES = cast("tuple[type[Event], ...]", get_args(Event))
_CLASS_OF = {event_class.__annotations__["data"]: event_class for event_class in EVENT_CLASSES}


def event_class_of(payload: type[Record]) -> type[Event]:
    """Return the event class that carries payloads of this class. Each payload class has exactly one."""
    return _CLASS_OF[payload]


def event_kind(event_class: type[Event]) -> str:
    """Return the `kind` of an event class."""
    return cast("str", event_class.__struct_config__.tag)


def build_dedupe_key(event: Event) -> str:
    """Return an event's dedupe key: `<kind>:<sessionId>` and the event's `dedupe_suffix`."""
    return f"{event.kind}:{event.session_id}{event.dedupe_suffix()}"


def recorded_key(event: Event) -> str:
    """Return by what a log has an event at most once: its dedupe key, and of a signed event also who signed it."""
    signed = event.data.signed if isinstance(event, EventReceivedEvent) else None
    return event.dedupe_key if signed is None else f"{event.dedupe_key}:{signed.source}:{signed.public_key}"


def copy_to_session(event: Event, session: SessionId) -> Event:
    """Return the event with another session id, in the envelope and in the dedupe key. Nothing else changes."""
    copied = event.changed(session_id=session)
    return copied.changed(dedupe_key=build_dedupe_key(copied))


def mark_imported(event: Event, events: int) -> Event:
    """Return the first event of a session with the mark that so many events came with a bundle; any other unchanged."""
    if not isinstance(event, SessionCreatedEvent):
        return event
    return event.changed(data=payloads.SessionCreated(imported=events))


def is_key_event(event: Event) -> bool:
    """Return whether a duplicate of this event means that its plan is a replay.

    A duplicate of any other event is a broken invariant.
    """
    match event:
        case RunStartedEvent() | AdvanceRecordedEvent() | EventReceivedEvent() | IntentSettledEvent():
            return True
        case NodeCreatedEvent():
            return event.data.node_kind == "checkpoint"
        case WorkRecordedEvent():
            return event.is_end
        case ContractBoundEvent():
            return event.data.parent is None
        case ExecutionClaimedEvent():
            return True
        case _:
            return False


def parse_event(line: bytes) -> Event:
    """Parse a stored line.

    Raises:
        UnknownVersionError: A newer Interlock wrote it (unknown version, kind or field).
        MalformedRecordError: It is not an event.
    """
    try:
        return EVENT.read(line)
    except RefusedError as error:
        raise _classify_refusal(line, error) from None


def _classify_refusal(line: bytes, refusal: RefusedError) -> UnknownVersionError | MalformedRecordError:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return MalformedRecordError("event", "not JSON")
    version = cast("dict[str, object]", value).get("v") if isinstance(value, dict) else None
    if type(version) is int and version != 1:
        return UnknownVersionError("event", f"version {version}")
    return classify_faults("event", EVENT.faults(line), refusal)
