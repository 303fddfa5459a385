"""The activity stream: one CloudEvent for a turn, a call of a tool, a change of state (TEL-4)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from interlock.drive.agent.profile import Profile
from interlock.drive.faults import Fault
from interlock.drive.record import TurnRecord
from interlock.drive.telemetry import names
from interlock.kernel.canonical import Json

Sink = Callable[[bytes], None]
"""Takes one event as JSON. It may raise: that changes no result."""


class EventEmitter:
    """Builds events, which the library validates, and passes them to a sink."""

    def __init__(self, profile: Profile, sink: Sink) -> None:
        self._source = f"urn:interlock:agent:{profile.identity.id}"
        self._sink = sink

    def begin(self, record: TurnRecord) -> Mapping[str, Json]:  # noqa: ARG002 — an event says what happened
        """See `Emitter.begin`."""
        return {}

    def end(self, record: TurnRecord, fault: Fault | None) -> None:
        """See `Emitter.end`."""
        for number, (kind, data) in enumerate(_events(record, fault)):
            event = CloudEvent(
                {
                    "id": f"{record.ids.interaction_id}/{number}",
                    "source": self._source,
                    "type": kind,
                    "specversion": "1.0",
                    "subject": record.ids.session_id,
                    "datacontenttype": "application/json",
                },
                data,
            )
            self._sink(JSONFormat().write(event))


def _events(record: TurnRecord, fault: Fault | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in record.executions:
        kind = names.EVENT_TOOL_COMPLETED if one.error is None else names.EVENT_TOOL_FAILED
        yield kind, {"callId": one.call_id, "tool": one.tool_name, "status": one.status, "retries": one.retries}
    if record.changes and fault is None:
        yield names.EVENT_STATE_CHANGED, {"keys": sorted({one.key for one in record.changes})}
    kind = names.EVENT_TURN_COMPLETED if fault is None else names.EVENT_TURN_FAILED
    ended: dict[str, Any] = {"turn": record.number, "step": record.step_id, "usage": record.usage.to_json()}
    yield kind, ended if fault is None else {**ended, "error": fault.to_json()}
