"""The activity stream: one CloudEvent for a turn, a call of a tool, a change of state (TEL-4)."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from interlock.drive.agent.profile import Profile
from interlock.drive.faults import Fault
from interlock.drive.record import TurnRecord
from interlock.drive.telemetry import names
from interlock.kernel.canonical import Json

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE_MODE = 0o666
Sink = Callable[[bytes], None]
"""Takes one event as JSON. It may raise: that changes no result."""


class EventFile:
    """A file of events, one a line. Each is written at once and whole, or it is lost. No buffer is flushed later.

    A file that cannot be opened or written is tried again with the next event. A pipe that nobody reads blocks nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._is_torn = False

    def __enter__(self) -> Sink:
        return self._write

    def __exit__(self, *_: object) -> None:
        self._close()

    def _write(self, event: bytes) -> None:
        if self._handle is None:
            self._handle = os.open(self._path, _APPEND, _FILE_MODE)
        left = memoryview((b"\n" if self._is_torn else b"") + event + b"\n")
        try:
            while left:
                written = os.write(self._handle, left)
                self._is_torn, left = written < len(left), left[written:]
        except OSError:
            self._close()
            raise

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):
                os.close(handle)


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
