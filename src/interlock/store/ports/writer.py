"""The port that appends to sessions.

Only the use cases that record something have it. Appending takes a `SessionLock`, which only `SessionWriter.hold`
yields and which is invalid after its `with` block.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from interlock.kernel.ids import SessionId

if TYPE_CHECKING:
    from interlock.record.append_plan import AppendPlan, Stamps
    from interlock.record.content import Contents
    from interlock.record.events import Event
    from interlock.views.session import Session


class SessionLock(Protocol):
    """Proof that the caller holds the lock of a healthy session, right now."""

    @property
    def session(self) -> "Session | None":
        """The session under the lock; None if it has no history yet.

        Raises:
            SessionLockReleasedError: The hold has ended.
        """
        ...


class SessionWriter(Protocol):
    """The only way to record something."""

    def hold(self, session: SessionId, *, since_s: float | None = None) -> AbstractContextManager[SessionLock]:
        """Lock a session, verify it, settle what another writer left unsettled, and yield the `SessionLock`.

        The wait for the lock counts from `since_s`, when the call arrived by `time.monotonic`; without it, from now.

        Raises:
            SessionBusyError: Another holder, in this process or another one, did not release it within the wait.
            SessionUnhealthyError: Its log does not verify.
            ContentDamagedError: What is unsettled refers to content that is missing or damaged.
            StoreFailureError: The disk failed; `may_be_recorded` if it failed while settling.
        """
        ...

    def append(self, lock: SessionLock, plan: "AppendPlan", stamps: "Stamps") -> "Session":
        """Record a plan, whole or not at all, and return the session after it.

        A plan whose key event is already in the log is a replay: it writes nothing.

        Raises:
            SessionLockReleasedError: The lock is not valid, or is another session's; nothing was changed.
            BrokenHistoryError: The plan does not fit the history; nothing was changed.
            StoreFailureError: The disk failed. Nothing was recorded, unless it is `may_be_recorded`: then the next
                `hold` says whether the plan counts.
        """
        ...

    def cache_summary(self, lock: SessionLock, summary: bytes) -> None:
        """Cache the summary of a session's current log. It is not durable, and never needed (RES-4).

        Raises:
            SessionLockReleasedError: The lock is not valid.
            StoreFailureError: The disk failed; the earlier cached summary is not used either.
        """
        ...

    def restore(self, lock: SessionLock, history: "Sequence[Sequence[Event]]", contents: "Contents") -> "Session":
        """Record the whole history of a session that has none, all of it or nothing, and return its fold.

        Args:
            lock: The lock of the session that the events name.
            history: Its events, one sequence for each plan, as `SessionReader.history` gives them.
            contents: All content that the events refer to.

        Raises:
            SessionLockReleasedError: The lock is not valid, or is another session's; nothing was changed.
            BrokenHistoryError: The events are another session's or cannot follow each other, or the session has
                history; nothing was changed.
            StoreFailureError: The disk failed. Nothing was recorded, unless it is `may_be_recorded`.
        """
        ...
