"""Caches the summaries of sessions shortly after their appends, off the path of the answers (RES-12).

A cached summary is never needed: a reader sees that it does not belong to the current log, and reads the log. So a
process that is killed in between loses nothing, and several appends in a row cost one summary.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from interlock.kernel.budgets import SUMMARY_DELAY_S, SUMMARY_FLUSH_S
from interlock.kernel.ids import SessionId

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class LateSummaries:
    """Calls `write` for each offered session, in a thread of its own, `delay_s` after the first offer of a batch."""

    write: Callable[[SessionId], None]
    delay_s: float = SUMMARY_DELAY_S
    _due: set[SessionId] = field(default_factory=set[SessionId], init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)

    def offer(self, session: SessionId) -> None:
        """Take a session that was appended to. Returns at once."""
        with self._changed:
            self._due.add(session)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="interlock-summaries")
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Write what is due, but wait for it only a short time: a summary is optional."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(SUMMARY_FLUSH_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._is_closed)
                # Offers that come in this time belong to the batch; only the end of the process shortens it.
                self._changed.wait_for(lambda: self._is_closed, self.delay_s)
                batch, self._due = self._due, set()
                is_last = self._is_closed
            for session in batch:
                self._write(session)
            if is_last:
                return

    def _write(self, session: SessionId) -> None:
        try:
            self.write(session)
        except Exception:  # noqa: BLE001 — an optional cache must not end the thread
            _log.debug("no summary of %s was cached", session, exc_info=True)
