"""Histories of long sessions, read once and then followed: of a log that grew, only what was added is read (CON-7)."""

import time
from collections.abc import Callable
from typing import TypeVar

from interlock.kernel.budgets.console import CONSOLE_HISTORIES_KEPT, CONSOLE_SLOW_S
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.service.audit.damage import Viewed, view_session
from interlock.service.run.history import History, grown_history
from interlock.service.run.plans import Plans
from interlock.service.run.recent import Recent
from interlock.service.run.summarize import check_content
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader

_View = TypeVar("_View")


@mutable
class _Kept:
    history: History | None = None


class FollowedHistories:
    """Makes views of sessions. The history of one that took long to read, and was sound, is kept and followed.

    What was verified once in this process is not read again, as a server does not (FOLLOW-1); `verify` reads it all.
    """

    def __init__(self, store: SessionReader, plans: Plans) -> None:
        self._store, self._plans = store, plans
        self._kept: Recent[SessionId, History] = Recent(CONSOLE_HISTORIES_KEPT)

    def view(self, session: SessionId, make: Callable[[History], _View]) -> Viewed[_View] | Refusal:
        """Make a view of a session; see `view_session`, which makes it unless the history is kept and only grew.

        Raises:
            SessionUnhealthyError, ContentDamagedError, StoreFailureError, UnknownVersionError: See `view_session`.
        """
        history = self._followed(session)
        if history is not None:
            return Viewed(view=make(history), damage=None)
        self._kept.forget(session)
        began, read = time.monotonic(), _Kept()

        def keeping(history: History) -> _View:
            read.history = history if time.monotonic() - began > CONSOLE_SLOW_S else None
            return make(history)

        viewed = view_session(self._store, self._plans, session, keeping)
        if isinstance(viewed, Viewed) and viewed.damage is None and read.history is not None:
            self._kept.put(session, read.history)
        return viewed

    def _followed(self, session: SessionId) -> History | None:
        """Return a kept history with what was added; None if nothing is kept, or some of it is damaged now."""
        known = self._kept.find(session)
        if known is None:
            return None
        lost = list[ContentDamagedError]()
        try:
            history = grown_history(self._store, known)
            if history is not None:
                added = (event for plan in history.appended[len(known.appended) :] for event in plan)
                check_content(self._store, added, lost.append)
        except SessionUnhealthyError:
            return None
        if history is None or lost:
            return None
        self._kept.put(session, history)
        return history
