"""The port that reads sessions and the content they refer to.

Every use case has it. It has no method that writes.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, NewType, Protocol

from interlock.kernel.frozen import frozen, positional
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.store.ports.errors import ContentDamagedError, Health

if TYPE_CHECKING:
    from interlock.record.events import Event
    from interlock.record.snapshot import ExecutionSnapshot
    from interlock.views.session import Session


class SalvageCode(StrEnum):
    """The code that marks a view of less than a whole session (SAL-4). Closed."""

    SALVAGED_PREFIX = "SALVAGED_PREFIX"
    """The log is damaged. Everything before the damage is included; what followed it is unknown."""
    PARTIAL_DATA = "PARTIAL_DATA"
    """Nothing of the log can be used, or content that it refers to is missing or damaged."""


@frozen
class Appended:
    """The events of one append, and the session after them."""

    events: "tuple[Event, ...]"
    after: "Session"


@frozen
class Omitted:
    """What a log attests after the part that verifies. `bytes` counts those of its manifest and segments.

    Unless `is_known`, some of it is unreadable, and there may be more groups and events than counted.
    """

    groups: int
    events: int
    bytes: int
    is_known: bool


NOTHING_OMITTED = Omitted(groups=0, events=0, bytes=0, is_known=True)


@frozen
class Salvaged:
    """The part of a session's log that verifies: all of it, or what comes before the damage.

    `history` is as `SessionReader.history` gives it and `fold` is its fold, None without history. `where` and `found`
    say what ends it; empty if nothing does. It is for views and copies only; no one appends to it. With `is_undecided`,
    nothing is known to be damaged, but it is not known whether what was omitted counts: the next writer decides it.
    With `is_unmarked`, nothing is omitted, and only the writer's mark is damaged: the next writer mends it.
    """

    session: SessionId
    fold: "Session | None"
    history: "tuple[tuple[Event, ...], ...]"
    health: Health = Health.HEALTHY
    where: str = ""
    found: str = ""
    omitted: Omitted = NOTHING_OMITTED
    is_undecided: bool = False
    is_unmarked: bool = False

    @property
    def code(self) -> SalvageCode | None:
        """The warning code that a view of it shows; None for a whole log."""
        if self.health is Health.HEALTHY:
            return None
        return SalvageCode.SALVAGED_PREFIX if self.history else SalvageCode.PARTIAL_DATA


@frozen
class StoredLog:
    """The bytes of the appends that a session's manifest attests, oldest first. The manifest itself is not verified.

    `is_attested`: all of them are there, and no others. If not, the log is damaged, or an append was interrupted or is
    just being written; `SessionReader.load` says which. `snapshots` are those that the manifest names.
    """

    segments: tuple[bytes, ...]
    snapshots: tuple[SnapshotRef, ...]
    is_attested: bool


@positional
class ContentCheck:
    """Looks, while sessions are listed, for content that their logs name and that is missing or altered.

    `lost` is what was found of one session. `times` are those of files that were looked up for any session of the list.
    """

    times: dict[str, float | None] = field(default_factory=dict[str, float | None])
    lost: list[ContentDamagedError] = field(default_factory=list[ContentDamagedError])

    def take_lost(self) -> tuple[ContentDamagedError, ...]:
        """Return what was found, and forget it."""
        found = tuple(self.lost)
        self.lost.clear()
        return found


class UnfinishedAppend(StrEnum):
    """What follows a session's last settled event. This is no damage."""

    SEGMENT = "segment"
    """Events that the log does not attest. They do not count, and their append returned no answer."""
    GROUP = "group"
    """Attested events that may not be durable, so their append returned no answer. They count after the next writer has
    settled them."""
    UNDECIDED = "undecided"
    """Attested events whose append may have returned an answer: the record of what is durable cannot be read. They
    count after the next writer has settled them."""


LogVersion = NewType("LogVersion", tuple[int, int, float, int])
"""Changes whenever a session's log changes: cheap to read, and only compared with an earlier version."""


class SessionReader(Protocol):
    """Reads verified history and the content it refers to. Writes nothing."""

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> "Session | None":
        """Return the session's fold, or None if no such session has history.

        An append counts once its writer has settled it. `tag` is that of a node which a verified token names: the
        token was made after the append of that node was settled, so this append counts even if its mark was lost.
        A log that looks damaged is read again under its lock. `since_s` has the same meaning as in
        `SessionWriter.hold`. A store whose appends commit atomically and durably may ignore `tag` and `since_s`.

        Raises:
            SessionBusyError: It looks damaged, and another process holds it.
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def names(self) -> tuple[SessionId, ...]:
        """Return the ids of the sessions, sorted, from one directory: some of them may have no log (`load` is None).

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def sessions(self) -> tuple[SessionId, ...]:
        """Return the existing sessions, by id.

        A damaged session is among them, even if nothing of its log is left. One that was held and never appended to
        is not. One whose first append was interrupted may be among them although `load` returns None.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def is_stored(self, session: SessionId) -> bool:
        """Say whether a session exists, as `sessions` lists it, without reading the others.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def history(self, session: SessionId, *, after: int = 0) -> "tuple[tuple[Event, ...], ...]":
        """Return a session's events, one tuple for each plan that was appended, oldest first; empty if unknown.

        With `after`, the number of events that the caller has verified, only the later ones are returned and read.

        Raises:
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def appends(self, session: SessionId) -> tuple[Appended, ...]:
        """Return what `history` returns, each append with the session after it: read and folded again from the start.

        Raises:
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def stored_log(self, session: SessionId) -> StoredLog:
        """Return the stored bytes of a session's appends without parsing them: for searches, which verify later.

        Raises:
            SessionUnreadableError: The system does not let this process read it.
            StoreFailureError: The disk failed.
        """
        ...

    def log_versions(self, *, newest: int | None = None) -> Mapping[SessionId, LogVersion]:
        """Return the existing sessions with the version of each one's log. Reads no log.

        A session that cannot be read is among them. With `newest`, only that many of the newest sessions are.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def cached_summary(self, session: SessionId, check: ContentCheck | None = None) -> bytes | None:
        """Return the summary that was cached with the last append to a session; None if there is none.

        With `check`, content that the log names and that was lost or altered since is noted there. A change that kept
        the time of a file is not noticed.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def cached_summary_of(self, session: SessionId, version: LogVersion) -> bytes | None:
        """Return the summary that was cached of this version of a session's log; None if there is none.

        Cheaper than `cached_summary`: neither segments nor content are looked up. It is for callers that read the log
        of a session before they offer it.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def salvage(self, session: SessionId) -> Salvaged | None:
        """Return the part of a session's log that verifies, whatever follows it; None if there is no such session.

        Raises:
            SessionBusyError: It looks damaged, and another process holds it.
            StoreFailureError: The disk failed.
        """
        ...

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:
        """Return what follows the last settled event of a session that verifies; None if nothing does.

        A store whose appends commit atomically and durably always returns None.

        Raises:
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def snapshot(self, ref: SnapshotRef) -> "ExecutionSnapshot":
        """Return a stored snapshot.

        Raises:
            ContentDamagedError: It is missing or not the bytes of its name.
        """
        ...

    def check_snapshot(self, ref: SnapshotRef) -> None:
        """Verify the bytes of a stored snapshot without parsing them.

        Raises:
            ContentDamagedError: It is missing or not the bytes of its name.
        """
        ...

    def workflow_bytes(self, workflow_hash: WorkflowHash) -> bytes:
        """Return the canonical bytes of a pinned workflow.

        Raises:
            ContentDamagedError: It is missing or not the bytes of its name.
        """
        ...

    def artifact(self, digest: Digest) -> bytes:
        """Return a stored artifact's bytes.

        Raises:
            ContentDamagedError: It is missing or not the bytes of its name.
        """
        ...
