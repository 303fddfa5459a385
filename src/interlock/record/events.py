"""The closed union of events, their envelope and their dedupe keys (EVT-1, EVT-5).

A new kind is one payload class, one event class with its recipe, and one line in `Event`.
"""

import json
from abc import abstractmethod
from typing import Annotated, Literal, cast, get_args

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError, model_validator

from interlock.kernel.budgets import DEDUPE_KEY_CHARS_MAX
from interlock.kernel.canonical import digest_of
from interlock.kernel.ids import SessionId
from interlock.record import payloads as data
from interlock.record.base import (
    EventIdField,
    IndexField,
    MalformedRecordError,
    NodeIdField,
    Record,
    RunIdField,
    SessionIdField,
    UnknownVersionError,
    classify_read_error,
)


class Actor(Record):
    """Who called, by its own account: a claim, never a proof (SRV-13)."""

    type: Literal["human", "agent", "system"]
    identifier: str
    metadata: dict[str, str] | None = None


class RunScope(Record):
    """The event concerns a run."""

    run_id: RunIdField


class NodeScope(Record):
    """The event concerns a node of a run."""

    run_id: RunIdField
    node_id: NodeIdField


class Envelope(Record):
    """What every event carries. `recordedAt` (UTC) informs and never orders anything."""

    v: Literal[1]
    event_id: EventIdField
    event_index: IndexField
    session_id: SessionIdField
    dedupe_key: Annotated[str, Field(pattern=r"^[a-z0-9_:>-]+$", max_length=DEDUPE_KEY_CHARS_MAX)]
    recorded_at: str | None = None
    actor: Actor | None = None

    @abstractmethod
    def dedupe_suffix(self) -> str:
        """Return what the dedupe key says behind its kind and session, from stable identifiers only."""

    @model_validator(mode="after")
    def _check_dedupe_key(self) -> "Envelope":
        expected = build_dedupe_key(cast("Event", self))
        if self.dedupe_key != expected:
            raise ValueError(f"dedupe key is not {expected}")
        return self


class SessionCreatedEvent(Envelope):
    """`session_created`."""

    kind: Literal["session_created"]
    data: data.SessionCreated

    def dedupe_suffix(self) -> str:
        """Nothing more: a session is created once."""
        return ""


def _scope_tag(scope: object) -> str:
    """Tell a node's scope from a run's. A plain union would call a newer one broken: it fits neither."""
    is_node = "nodeId" in scope if isinstance(scope, dict) else isinstance(scope, NodeScope)
    return "node" if is_node else "run"


class ObservationRecordedEvent(Envelope):
    """`observation_recorded`: of the session, or of a run."""

    kind: Literal["observation_recorded"]
    scope: (
        Annotated[
            Annotated[RunScope, Tag("run")] | Annotated[NodeScope, Tag("node")],
            Discriminator(_scope_tag),
        ]
        | None
    ) = None
    data: data.ObservationRecorded

    def dedupe_suffix(self) -> str:
        """The value takes part by digest, so that main, dev, main are three facts per run (EVT-5)."""
        owner = self.scope.run_id if self.scope else "session"
        return f":{owner}:{self.data.key}:{digest_of(self.data.value.to_json())}"


class RunStartedEvent(Envelope):
    """`run_started`: key event of a start."""

    kind: Literal["run_started"]
    scope: RunScope
    data: data.RunStarted

    def dedupe_suffix(self) -> str:
        """One start a run."""
        return f":{self.scope.run_id}"


class NodeCreatedEvent(Envelope):
    """`node_created`: key event of a checkpoint."""

    kind: Literal["node_created"]
    scope: NodeScope
    data: data.NodeCreated

    def dedupe_suffix(self) -> str:
        """One creation a node."""
        return f":{self.scope.run_id}:{self.scope.node_id}"


class EdgeCreatedEvent(Envelope):
    """`edge_created`."""

    kind: Literal["edge_created"]
    scope: RunScope
    data: data.EdgeCreated

    def dedupe_suffix(self) -> str:
        """One edge of a kind between two nodes."""
        return f":{self.scope.run_id}:{self.data.from_node_id}->{self.data.to_node_id}:{self.data.edge_kind}"


class AdvanceRecordedEvent(Envelope):
    """`advance_recorded`: key event of an advance."""

    kind: Literal["advance_recorded"]
    scope: NodeScope
    data: data.AdvanceRecorded

    def dedupe_suffix(self) -> str:
        """One outcome an attempt, scoped by node so that no attempt can shadow another node's."""
        return f":{self.scope.node_id}:{self.data.attempt_id}"


class NodeOutputAppendedEvent(Envelope):
    """`node_output_appended`."""

    kind: Literal["node_output_appended"]
    scope: NodeScope
    data: data.NodeOutputAppended

    def dedupe_suffix(self) -> str:
        """One append an output."""
        return f":{self.data.output_id}"


class ContextSetEvent(Envelope):
    """`context_set`: run-scoped as locked; its data names the node it belongs to (CTX-1)."""

    kind: Literal["context_set"]
    scope: RunScope
    data: data.ContextSet

    def dedupe_suffix(self) -> str:
        """One delta a context id."""
        return f":{self.data.context_id}"


class PreferencesChangedEvent(Envelope):
    """`preferences_changed`."""

    kind: Literal["preferences_changed"]
    scope: NodeScope
    data: data.PreferencesChanged

    def dedupe_suffix(self) -> str:
        """One change a change id."""
        return f":{self.data.change_id}"


class CapabilityObservedEvent(Envelope):
    """`capability_observed`."""

    kind: Literal["capability_observed"]
    scope: NodeScope
    data: data.CapabilityObserved

    def dedupe_suffix(self) -> str:
        """One observation an id: status may change, retries may not."""
        return f":{self.data.cap_obs_id}"


class GapRecordedEvent(Envelope):
    """`gap_recorded`."""

    kind: Literal["gap_recorded"]
    scope: NodeScope
    data: data.GapRecorded

    def dedupe_suffix(self) -> str:
        """One disclosure a gap id."""
        return f":{self.data.gap_id}"


class DivergenceRecordedEvent(Envelope):
    """`divergence_recorded`."""

    kind: Literal["divergence_recorded"]
    scope: NodeScope
    data: data.DivergenceRecorded

    def dedupe_suffix(self) -> str:
        """One marker a divergence id."""
        return f":{self.data.divergence_id}"


class DecisionTraceAppendedEvent(Envelope):
    """`decision_trace_appended`."""

    kind: Literal["decision_trace_appended"]
    scope: NodeScope
    data: data.DecisionTraceAppended

    def dedupe_suffix(self) -> str:
        """One trace a trace id."""
        return f":{self.data.trace_id}"


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
)

EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")], config={"defer_build": True})


EVENT_CLASSES = cast("tuple[type[Event], ...]", get_args(Event))
_CLASS_OF = {event_class.model_fields["data"].annotation: event_class for event_class in EVENT_CLASSES}


def event_class_of(payload: type[Record]) -> type[Event]:
    """Return the event class that carries payloads of a class: each has one."""
    return _CLASS_OF[payload]


def event_kind(event_class: type[Event]) -> str:
    """Return the `kind` of an event class."""
    return cast("str", get_args(event_class.model_fields["kind"].annotation)[0])


def build_dedupe_key(event: Event) -> str:
    """Return the key that the event's recipe gives: `<kind>:<sessionId>` and what tells it from its kind."""
    return f"{event.kind}:{event.session_id}{event.dedupe_suffix()}"


def copy_to_session(event: Event, session: SessionId) -> Event:
    """Return the event as another session holds it: `sessionId` in the envelope and in the dedupe key, nothing else."""
    moved = event.model_copy(update={"session_id": session})
    return moved.model_copy(update={"dedupe_key": build_dedupe_key(moved)})


def is_key_event(event: Event) -> bool:
    """Say whether the event decides that its plan is a replay; any other duplicate is a broken invariant."""
    match event:
        case RunStartedEvent() | AdvanceRecordedEvent():
            return True
        case NodeCreatedEvent():
            return event.data.node_kind == "checkpoint"
        case _:
            return False


def parse_event(line: bytes) -> Event:
    """Return the event that a stored line holds.

    Raises:
        UnknownVersionError: It was written by a newer Interlock (unknown version, kind or field).
        MalformedRecordError: It is no event.
    """
    try:
        return EVENT.validate_json(line, by_name=False)
    except ValidationError as error:
        raise _classify_event_error(line, error) from None


def _classify_event_error(line: bytes, error: ValidationError) -> UnknownVersionError | MalformedRecordError:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return MalformedRecordError("event", "not JSON")
    version = cast("dict[str, object]", value).get("v") if isinstance(value, dict) else None
    if isinstance(version, int) and version != 1:
        return UnknownVersionError("event", f"version {version}")
    return classify_read_error("event", error)
