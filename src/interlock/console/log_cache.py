"""What is kept of the logs until they change: their versions, and the views that took long (CON-6, CON-7)."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from interlock.kernel.budgets.console import (
    CONSOLE_ENDED_S,
    CONSOLE_REPORTS_KEPT,
    CONSOLE_SLOW_LOOK_S,
    CONSOLE_SLOW_S,
    CONSOLE_WAIT_S,
)
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.store.ports.reader import LogVersion, SessionReader

_LOOK_SHARE = 10
"""A look takes at most one part of so many of the time: a large data directory is looked at less often."""

_View = TypeVar("_View")


class RecentVersions:
    """Reads the versions of all logs. What took long to read is used again for a while.

    A stream that reports a change and the page that is then loaded see the same versions. Each difference between two
    readings is counted, whoever read: so what only a page saw, and what was then undone, is reported as well.
    """

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self._mutex = threading.Lock()
        self._found: Mapping[SessionId, LogVersion] | None = None
        self._ended = self._took = 0.0
        self._is_expired = False
        self._changes, self._changed = 0, dict[SessionId, int]()

    def read(self, pause_s: float = 0.0) -> Mapping[SessionId, LogVersion]:
        """Return the versions, at most `pause_s` old, or older if to read them takes long.

        Raises:
            StoreFailureError: The disk failed.
        """
        with self._mutex:
            began = time.monotonic()
            reused_s = max(pause_s, _LOOK_SHARE * self._took if pause_s or self._took > CONSOLE_SLOW_LOOK_S else 0.0)
            if self._found is None or self._is_expired or began - self._ended >= reused_s:
                found = self._reader.log_versions()
                self._count_changes(self._found or {}, found)
                self._found, self._is_expired, self._ended = found, False, time.monotonic()
                self._took = self._ended - began
            return self._found

    def changes(self, session: SessionId | None) -> int:
        """Return a number that grows with each reading that finds a session changed; None: any session."""
        with self._mutex:
            return self._changes if session is None else self._changed.get(session, 0)

    def _count_changes(self, before: Mapping[SessionId, LogVersion], found: Mapping[SessionId, LogVersion]) -> None:
        if before == found:
            return
        self._changes += 1
        differing = (one for one in before.keys() | found.keys() if before.get(one) != found.get(one))
        self._changed.update(dict.fromkeys(differing, self._changes))

    def expire(self) -> None:
        """Let the next call read the versions again: this process has written, or a test has."""
        with self._mutex:
            self._is_expired = True


@mutable
class Reading:
    """A view that is being made. `events` is how many events were verified; None until the whole log is."""

    version: LogVersion | None
    began_s: float = field(default_factory=time.monotonic)
    events: int | None = None
    found: Any = None
    """The view, or the error that making it raised. Its type is that of the call that began it."""
    ended: threading.Event = field(default_factory=threading.Event)
    ended_s: float = 0.0

    @property
    def seconds(self) -> int:
        """How long it has taken so far."""
        return int(time.monotonic() - self.began_s)


ViewKey = tuple[str, ...]
"""A session, and what of it is shown: calls with the same key make the same view."""


class Readings:
    """Makes views in their own threads, and keeps those that took long until their log changes.

    So a page of a long run appears at once, and shows the progress.
    """

    def __init__(self, versions: RecentVersions) -> None:
        self._versions = versions
        self._mutex = threading.Lock()
        self._kept: dict[ViewKey, tuple[LogVersion | None, Any]] = {}
        self._readings: dict[ViewKey, Reading] = {}

    def view(
        self, key: ViewKey, make: Callable[[Reading], _View], *, is_kept: bool = True
    ) -> tuple[_View | None, Reading | None]:
        """Return a view, and what is still being read. With a reading, the view is an earlier one, or None.

        Without `is_kept` the view is made again for each page: it says what holds now, not what the log contains.

        Raises:
            RefusedPageError, SessionUnhealthyError, ContentDamagedError, StoreFailureError: Whatever making it raised.
        """
        # The version is read before the log, so a view is never kept as newer than it is.
        version = self._versions.read().get(SessionId(key[0]))
        kept = self._kept.get(key)
        if kept is not None and version is not None and kept[0] == version:
            return kept[1], None
        reading = self._reading(key, version, make, is_kept=is_kept)
        if not reading.ended.wait(CONSOLE_WAIT_S):
            return kept[1] if kept is not None else None, reading
        with self._mutex:
            if self._readings.get(key) is reading:
                del self._readings[key]
        if isinstance(reading.found, Exception):
            raise reading.found
        return reading.found, None

    def _reading(
        self, key: ViewKey, version: LogVersion | None, make: Callable[[Reading], _View], *, is_kept: bool
    ) -> Reading:
        """Return the reading of a view that is under way, or begin one."""
        with self._mutex:
            under_way = self._readings.get(key)
            if under_way is not None and _is_usable(under_way, version, is_kept=is_kept):
                return under_way
            reading = self._readings[key] = Reading(version)
            for name in [name for name, one in self._readings.items() if one.ended.is_set()]:
                del self._readings[name]
            is_one_too_many = len(self._readings) > CONSOLE_REPORTS_KEPT
        arguments = (key, reading, make, is_kept)
        if is_one_too_many:
            self._run(*arguments)
        else:
            # A daemon: the process ends without it, as it writes nothing.
            threading.Thread(target=self._run, args=arguments, daemon=True).start()
        return reading

    def _run(self, key: ViewKey, reading: Reading, make: Callable[[Reading], _View], is_kept: bool) -> None:  # noqa: FBT001 — a thread takes its arguments in order
        try:
            reading.found = found = make(reading)
            if is_kept and time.monotonic() - reading.began_s > CONSOLE_SLOW_S:
                self._keep(key, reading.version, found)
        except Exception as error:  # noqa: BLE001 — the request that waits for it raises it
            reading.found = error
        finally:
            reading.ended_s = time.monotonic()
            reading.ended.set()

    def _keep(self, key: ViewKey, version: LogVersion | None, found: object) -> None:
        with self._mutex:
            self._kept.pop(key, None)
            self._kept[key] = (version, found)
            while len(self._kept) > CONSOLE_REPORTS_KEPT:
                del self._kept[next(iter(self._kept))]


def _is_usable(reading: Reading, version: LogVersion | None, *, is_kept: bool) -> bool:
    """Say whether a page may show what a reading finds: it is under way, of this version, or ended just now."""
    if not reading.ended.is_set() or (is_kept and reading.version == version):
        return True
    return not is_kept and time.monotonic() - reading.ended_s < CONSOLE_ENDED_S
