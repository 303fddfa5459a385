"""What a turn emits: spans, metrics, logs, events. A failure of it is logged once and changes nothing (TEL-4)."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from interlock.drive.faults import Fault
from interlock.drive.record import TurnRecord
from interlock.kernel.canonical import Json

_log = logging.getLogger(__name__)
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def valid_traceparent(value: str | None) -> str | None:
    """Return a `traceparent` of the W3C form, else None (DRIVE-3)."""
    return value if value is not None and _TRACEPARENT.fullmatch(value) is not None else None


def traceparent(trace: Mapping[str, Json]) -> str | None:
    """Return the W3C header of a turn's trace, to be passed on to its tools; None without a trace."""
    found = f"00-{trace.get('traceId')}-{trace.get('spanId')}-01"
    return valid_traceparent(found)


class Emitter(Protocol):
    """One kind of telemetry of a driver."""

    def begin(self, record: TurnRecord) -> Mapping[str, Json]:
        """Begin a turn, and return what is recorded of its trace."""
        ...

    def end(self, record: TurnRecord, fault: Fault | None) -> None:
        """End the turn that was begun last."""
        ...


class Emission:
    """The telemetry of one turn. `warn` is called with each emitter that fails and its error."""

    def __init__(
        self, emitters: tuple[Emitter, ...], trace: Mapping[str, Json], warn: Callable[[Emitter, Exception], None]
    ) -> None:
        self._emitters = emitters
        self.trace = trace
        self._warn = warn

    def end(self, record: TurnRecord, fault: Fault | None) -> bool:
        """Emit the turn; False if an emitter failed."""
        is_whole = True
        for emitter in self._emitters:
            try:
                emitter.end(record, fault)
            except Exception as error:  # noqa: BLE001 — no emission may change a result
                self._warn(emitter, error)
                is_whole = False
        return is_whole


class Telemetry:
    """The emitters of a driver. Each is tried at every turn, and warns once if it fails."""

    def __init__(self, emitters: Iterable[Emitter] = ()) -> None:
        self._emitters = tuple(emitters)
        self._failed: list[Emitter] = []

    def begin_turn(self, record: TurnRecord) -> Emission:
        """Begin the telemetry of a turn."""
        trace: dict[str, Json] = {}
        begun: list[Emitter] = []
        for emitter in self._emitters:
            try:
                trace.update(emitter.begin(record))
                begun.append(emitter)
            except Exception as error:  # noqa: BLE001 — see above
                self._warn(emitter, error)
        return Emission(tuple(begun), trace, self._warn)

    def _warn(self, emitter: Emitter, error: Exception) -> None:
        if emitter not in self._failed:
            self._failed.append(emitter)
            cause = f"{type(error).__name__}: {error}"
            _log.warning("Telemetry is lost, and the drive continues: %s failed: %s", type(emitter).__name__, cause)
