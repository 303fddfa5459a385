"""The versions of all logs, read once for all pages and streams (CON-7)."""

import threading
import time
from collections.abc import Mapping

from interlock.kernel.ids import SessionId
from interlock.store.ports.reader import LogVersion, SessionReader

_LOOK_SHARE = 10
"""A look takes at most one part of so many of the time: a large data directory is looked at less often."""
_SLOW_LOOK_S = 0.1
"""A page uses an earlier look only if a look takes longer: thousands of sessions."""


class RecentVersions:
    """Reads the versions of all logs. What took long to read is used again for a while.

    A stream that reports a change and the page that is then loaded see the same versions, so no page misses a change.
    """

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self._mutex = threading.Lock()
        self._found: Mapping[SessionId, LogVersion] | None = None
        self._ended = self._took = 0.0

    def read(self, pause_s: float = 0.0) -> Mapping[SessionId, LogVersion]:
        """Return the versions, at most `pause_s` old, or older if to read them takes long.

        Raises:
            StoreFailureError: The disk failed.
        """
        with self._mutex:
            began = time.monotonic()
            reused_s = max(pause_s, _LOOK_SHARE * self._took if pause_s or self._took > _SLOW_LOOK_S else 0.0)
            if self._found is None or began - self._ended >= reused_s:
                self._found = self._reader.log_versions()
                self._ended = time.monotonic()
                self._took = self._ended - began
            return self._found

    def expire(self) -> None:
        """Let the next call read the versions again: this process has written, or a test has."""
        with self._mutex:
            self._found = None
