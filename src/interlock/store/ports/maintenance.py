"""The ports of maintenance: retention pins, the check of a whole store, and mark-and-sweep over it.

Only `gc`, `doctor`, `session keep` and `session unkeep` have them. Marking writes nothing. A pure rule
(`store.retention`) computes what is due from the snapshot, so a dry run reports what a sweep would remove. A sweep
checks each thing again before it removes it, because other processes write meanwhile.
"""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Literal, Protocol

from interlock.kernel.budgets import SWEEP_AFTER_S
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.store.ports.errors import Health, StoreFailureError


class Kind(StrEnum):
    """What a sweep can remove; a closed set, in the order of reports."""

    SESSION = "session"
    SNAPSHOT = "snapshot"
    WORKFLOW = "pinned workflow"
    ARTIFACT = "artifact or capture"
    SEGMENT = "orphan segment"
    TEMP = "temporary file"
    LEFTOVER = "crash leftover"
    TRASH = "trash"


CONTENT = frozenset({Kind.SNAPSHOT, Kind.WORKFLOW, Kind.ARTIFACT})


@frozen
class Item:
    """A stored item other than a session: its name in the store, its size, and when it was last written.

    The name of content is any string that `GcSession.content` also holds for the sessions that refer to it. `session`
    is its session, if it belongs to one. For content in the trash, `content` is the name that readers use.
    """

    kind: Kind
    name: str
    bytes: int
    modified_s: float
    session: SessionId | None = None
    content: str | None = None


@frozen
class GcSession:
    """A healthy session: when it was last written to, its size, and the names of the content that it refers to.

    The last activity is the newest recorded time of its log or the last change of its manifest, whichever is later.
    `claims` are the sessions whose runs it claims. With `is_linked`, a link leads to its log, so removing the link
    would not remove the log.
    """

    session: SessionId
    last_activity_s: float
    bytes: int
    content: frozenset[str]
    claims: frozenset[SessionId] = frozenset()
    is_linked: bool = False


@frozen
class TrashedSession:
    """A session that an earlier sweep moved to the trash because it had expired, as a session and as an item."""

    session: GcSession
    item: Item


@frozen
class Foreign:
    """An entry among the sessions that is none, by its name in the store: a renamed or copied session, a user's file.

    No sweep takes it, nor the content that logs in it name.
    """

    name: str
    content: frozenset[str] = frozenset()


@frozen
class UnsoundSession:
    """A session that is damaged or newer than this release: what it refers to is uncertain."""

    session: SessionId
    health: Health
    where: str
    found: str


@frozen
class GcSnapshot:
    """Everything that a store holds, as the mark phase found it.

    What is `apart` cannot be moved to the trash, which is on another file system.
    """

    sessions: tuple[GcSession, ...] = ()
    unsound: tuple[UnsoundSession, ...] = ()
    items: tuple[Item, ...] = ()
    trashed: tuple[TrashedSession, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    apart: frozenset[Kind] = frozenset()

    def names(self) -> frozenset[SessionId]:
        """Return the ids of the healthy sessions."""
        return frozenset(one.session for one in self.sessions)


@frozen
class Retention:
    """What may be removed: unpinned sessions older than `ttl_s` (None: no session). `now_s` counts from the epoch.

    With `chosen`, these sessions are removed at any age, and nothing else: a person asked for that.
    """

    now_s: float
    ttl_s: float | None
    kept: frozenset[SessionId] = frozenset()
    chosen: frozenset[SessionId] = frozenset()

    def has_expired(self, session: GcSession) -> bool:
        """Return whether a session may be removed. The status of its runs does not matter (GC-1)."""
        if session.session in self.kept:
            return False
        if self.chosen:
            return session.session in self.chosen
        return self.ttl_s is not None and self.now_s - session.last_activity_s > self.ttl_s

    def is_old(self, modified_s: float) -> bool:
        """Return whether something that was last written at this time may be removed if it is unreferenced (GC-4)."""
        return self.now_s - modified_s > SWEEP_AFTER_S


@frozen
class Due:
    """What a sweep removes."""

    sessions: tuple[GcSession, ...] = ()
    items: tuple[Item, ...] = ()

    def sizes(self) -> Iterator[tuple[Kind, int]]:
        """Yield the kind and the size in bytes of each."""
        yield from ((Kind.SESSION, session.bytes) for session in self.sessions)
        yield from ((item.kind, item.bytes) for item in self.items)


@frozen
class Skipped:
    """Something that was left, though it was due: to the next sweep, or until a person has done something about it.

    Another process held a session, it changed since it was marked, or the disk had no space for the work on it. Or
    content that it refers to is missing or damaged and may be restored, or a link leads to its log. If the work on it
    "failed", `found` is the name of the system's error. `name` is its name in the store, and `session` is None if it
    belongs to no session. What is "foreign" is no session, so it is never due.
    """

    session: SessionId | None
    why: Literal["busy", "changed", "full", "damaged", "linked", "failed", "foreign"]
    name: str = ""
    found: str = ""


@frozen
class Swept:
    """What a sweep removed, moved back and had to leave, and the failure of the disk that ended it early, if any."""

    taken: Due
    restored: tuple[SessionId, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failure: StoreFailureError | None = None


@frozen
class StoreOverview:
    """The result of a quick check: the sessions whose bytes match their manifests, the others, and debris.

    No record was parsed, so it is unknown which content is unreferenced.
    """

    attested: tuple[SessionId, ...]
    unsound: tuple[UnsoundSession, ...]
    debris: tuple[Item, ...]
    foreign: tuple[Foreign, ...] = ()


@frozen
class DamagedContent:
    """A content file that is missing or does not match its name, and the sessions that refer to it.

    With `is_unreadable`, it cannot be read, so it is not known to be damaged.
    """

    name: str
    found: str
    sessions: tuple[SessionId, ...]
    is_unreadable: bool = False


@frozen
class Obstacle:
    """A file or directory that keeps a call from working, by its name in the store, with what is wrong and the fix.

    `session` is the session that is affected; None: all of them, or the whole store.
    """

    name: str
    found: str
    fix: str
    session: SessionId | None = None


class RetentionPins(Protocol):
    """The sessions that never expire."""

    def kept(self) -> frozenset[SessionId]:
        """Return the pinned sessions. Writes nothing.

        Raises:
            PinsDamagedError: The pins cannot be read.
            StoreFailureError: The disk failed.
        """
        ...

    def keep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """Pin sessions and return all pinned ones.

        Only an existing session is pinned, and no collection removes a pinned one. So a pin without a session is a
        sign of damage, or of a session that was removed by hand. Too many are refused before any is searched for.

        Raises:
            SessionsMissingError: One of them does not exist; nothing was changed.
            PinsDamagedError: The pins cannot be read; nothing was changed.
            TooManyPinsError: There would be more than `RETENTION_PINS_MAX`; nothing was changed.
            UpkeepBusyError: Another process collects or sets pins.
            StoreFailureError: The disk failed; nothing was changed, unless `may_be_recorded`.
        """
        ...

    def unkeep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """Unpin sessions, existing or not, and return the sessions that are still pinned. Raises as `keep` does."""
        ...


class Collector(Protocol):
    """Mark-and-sweep over everything that a store holds."""

    def mark(self, report: Progress = report_nothing, *, folds_all: bool = False) -> GcSnapshot:
        """Return everything that is stored. Writes nothing.

        With `folds_all`, a log is folded also if a cached summary says that its writer has folded it: another release,
        or somebody who changed the files, may have written both.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def upkeep_lock(self) -> AbstractContextManager[None]:
        """Return a context in which no other process sweeps or sets pins.

        Raises:
            UpkeepBusyError: On entering: another process is doing so.
            StoreFailureError: On entering: the disk failed.
        """
        ...

    def free_space(self, marked: GcSnapshot, retention: Retention) -> None:
        """Delete what needs no lock: sessions that earlier sweeps moved to the trash, and old temporary files.

        It creates no file, so it works on a disk that has no space for the lock.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def sweep(self, marked: GcSnapshot, retention: Retention) -> Swept:
        """Remove what is due by this snapshot, made in the same `upkeep_lock`: sessions first, then the rest.

        Removed data is invisible to readers of sessions; a later sweep deletes it. What the disk refuses is left, and
        named. If it fails as a whole, the sweep ends, and a later one removes the rest.
        """
        ...


class StoreInspector(Protocol):
    """Checks everything that a store holds, and reports the findings. Writes nothing."""

    def overview(self, report: Progress = report_nothing) -> StoreOverview:
        """Check the bytes of each session against its manifest, without parsing the records.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def damaged_content(self, marked: GcSnapshot) -> tuple[DamagedContent, ...]:
        """Return the content that sessions refer to and that is missing or changed, by name.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def obstacles(self) -> tuple[Obstacle, ...]:
        """Return what keeps the next call from reading or writing something that is not damaged itself, by name.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def held_sessions(self) -> tuple[SessionId, ...]:
        """Return the sessions that a process is writing to right now. Does not wait.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...


class Upkeep(Collector, StoreInspector, Protocol):
    """Upkeep of a whole store: check it, collect expired sessions, and pin the sessions that must stay."""

    @property
    def retention_pins(self) -> RetentionPins:
        """The sessions that never expire."""
        ...
