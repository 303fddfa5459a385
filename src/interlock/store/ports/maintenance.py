"""The ports of maintenance: keep marks, the check of a whole store, and mark-and-sweep over it.

Only `gc`, `doctor`, `session keep` and `session unkeep` hold them. Marking writes nothing. What is due follows from
what was marked by a pure rule (`store.retention`), so a dry run reports what a sweep would take. A sweep checks each
thing again before it takes it, because others write meanwhile.
"""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from interlock.kernel.budgets import SWEEP_AFTER_S
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.store.ports.errors import Health


class Kind(StrEnum):
    """What a sweep can take; a closed set, in the order of reports."""

    SESSION = "session"
    SNAPSHOT = "snapshot"
    WORKFLOW = "pinned workflow"
    ARTIFACT = "artifact or capture"
    SEGMENT = "orphan segment"
    TEMP = "temporary file"
    LEFTOVER = "crash leftover"
    TRASH = "trash"


CONTENT = frozenset({Kind.SNAPSHOT, Kind.WORKFLOW, Kind.ARTIFACT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that is no session: its name in the store, its size, and when it was last written.

    The name of content is any text that equals what `GcSession.content` holds for a session that refers to it.
    `session` is whose it is, where it is of one. In the trash `content` is the name that readers know it by.
    """

    kind: Kind
    name: str
    bytes: int
    modified_s: float
    session: SessionId | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GcSession:
    """A healthy session: when it was last written to, its size, and the names of the content that it refers to.

    The last activity is the newest recorded time of its log or the last change of its manifest, whichever is later.
    """

    session: SessionId
    last_activity_s: float
    bytes: int
    content: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsoundSession:
    """A session that is damaged or newer than this release: what it refers to is not known for sure."""

    session: SessionId
    health: Health
    where: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GcSnapshot:
    """All that a store holds."""

    sessions: tuple[GcSession, ...] = ()
    unsound: tuple[UnsoundSession, ...] = ()
    items: tuple[Item, ...] = ()

    def names(self) -> frozenset[SessionId]:
        """Return the ids of the healthy sessions."""
        return frozenset(one.session for one in self.sessions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What may go: sessions older than `ttl_s` (None: none) that are not kept. `now_s` counts from the epoch."""

    now_s: float
    ttl_s: float | None
    kept: frozenset[SessionId] = frozenset()

    def has_expired(self, session: GcSession) -> bool:
        """Say whether a session may go. What its runs have come to plays no part (GC-1)."""
        return (
            self.ttl_s is not None
            and session.session not in self.kept
            and self.now_s - session.last_activity_s > self.ttl_s
        )

    def is_old(self, modified_s: float) -> bool:
        """Say whether what was last written then may go if nothing refers to it (GC-4)."""
        return self.now_s - modified_s > SWEEP_AFTER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a sweep takes."""

    sessions: tuple[GcSession, ...] = ()
    items: tuple[Item, ...] = ()

    def sizes(self) -> Iterator[tuple[Kind, int]]:
        """Yield the kind and the bytes of each."""
        yield from ((Kind.SESSION, session.bytes) for session in self.sessions)
        yield from ((item.kind, item.bytes) for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A session that a sweep left to the next one.

    Another process held it, it changed since it was marked, or the disk had no room for the work on it.
    """

    session: SessionId
    why: Literal["busy", "changed", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep took, and what it had to leave."""

    taken: Due
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOverview:
    """A quick check: the sessions whose bytes are those that their manifests attest, the others, and debris.

    What the records say was not read, so what content nothing refers to is not known.
    """

    attested: tuple[SessionId, ...]
    unsound: tuple[UnsoundSession, ...]
    debris: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedContent:
    """A content file that is missing or not what its name says, and the sessions that refer to it."""

    name: str
    found: str
    sessions: tuple[SessionId, ...]


class RetentionPins(Protocol):
    """The sessions that never expire."""

    def kept(self) -> frozenset[SessionId]:
        """Return the marked sessions. Writes nothing.

        Raises:
            PinsDamagedError: The marks cannot be read.
            StoreFailureError: The disk failed.
        """
        ...

    def keep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """Mark sessions and return all marked ones.

        Only a session that is there is marked, and no collection takes a marked one. So a mark without a session
        is a sign of damage, or of a session that was removed by hand. Too many are refused before any is looked up.

        Raises:
            SessionsMissingError: One of them is not there; nothing was changed.
            PinsDamagedError: The marks cannot be read; nothing was changed.
            TooManyPinsError: There would be more than `KEEP_MARKS_MAX`; nothing was changed.
            UpkeepBusyError: A collection is at work, or other marks are being set.
            StoreFailureError: The disk failed; nothing was changed, unless `may_be_recorded`.
        """
        ...

    def unkeep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """Remove the marks of sessions, there or not, and return those that are left. Else raises as `keep` does."""
        ...


class Collector(Protocol):
    """Mark-and-sweep over everything that a store holds."""

    def mark(self, told: Progress = report_nothing) -> GcSnapshot:
        """Return everything that is stored. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Return a context in which no other process sweeps or sets marks.

        Raises:
            UpkeepBusyError: On entering: another process does.
            StoreFailureError: On entering: the disk failed.
        """
        ...

    def make_room(self, marked: GcSnapshot, retention: Retention) -> None:
        """Remove for good what needs no lock: sessions that earlier sweeps took, and old temporary files.

        It creates nothing, so it works on a disk that has no room for the lock.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def sweep(self, marked: GcSnapshot, retention: Retention) -> Swept:
        """Take what is due by these marks, made a moment ago in the same `alone`: sessions first, then the rest.

        What goes is out of sight of everyone, and gone for good with a later sweep.

        Raises:
            StoreFailureError: The disk failed. What was not taken yet is taken by a later sweep.
        """
        ...


class StoreInspector(Protocol):
    """Checks everything that a store holds, and reports what it found. Writes nothing."""

    def glance(self, told: Progress = report_nothing) -> StoreOverview:
        """Check the bytes of each session against its manifest, without reading what the records say.

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

    def held_sessions(self) -> tuple[SessionId, ...]:
        """Return the sessions that a process is writing to right now. Does not wait.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...


class Upkeep(Collector, StoreInspector, Protocol):
    """Upkeep of a whole store: check it, collect what expired, and mark the sessions that must stay."""

    @property
    def keep_marks(self) -> RetentionPins:
        """The sessions that never expire."""
        ...
