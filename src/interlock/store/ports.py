"""The ports of durable truth. No caller may know that truth is a file (D31, locks 17).

Reading and appending are two ports: who holds only a `SessionReader` cannot write. Appending takes a `Witness`
that only `SessionWriter.hold` mints, and that is worth nothing once its `with` block has ended.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.record.content import Contents
from interlock.record.events import Event
from interlock.record.snapshot import ExecutionSnapshot
from interlock.record.tokens import SigningKey
from interlock.views.session import Session


class Health(StrEnum):
    """What a session's stored bytes are worth (locks 10). Only a healthy one is built upon."""

    HEALTHY = "healthy"
    CORRUPT_TAIL = "corrupt_tail"
    CORRUPT_HEAD = "corrupt_head"
    UNKNOWN_VERSION = "unknown_version"


class SalvageCode(StrEnum):
    """What stands over anything that is not the whole of a session (locks 10). Closed."""

    SALVAGED_PREFIX = "SALVAGED_PREFIX"
    """The log is damaged. All that stands before the damage is here; nothing is said of what came after."""
    PARTIAL_DATA = "PARTIAL_DATA"
    """Nothing of the log can be used, or content that it refers to is missing or damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a log attests behind the part that verifies. `bytes` are those of its manifest and segments.

    Unless `is_known`, some of it cannot be read any more, and there may be more groups and events than counted.
    """

    groups: int
    events: int
    bytes: int
    is_known: bool


NOTHING_LEFT_OUT = LeftOut(groups=0, events=0, bytes=0, is_known=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """The part of a session's log that verifies: all of it, or what stands before the damage.

    `history` is as `SessionReader.history` gives it and `facts` its fold, None without history. `where` and `found`
    say what ends it; empty if nothing does. For looking at and for copying; nothing is built on it.
    """

    session: SessionId
    facts: Session | None
    history: tuple[tuple[Event, ...], ...]
    health: Health = Health.HEALTHY
    where: str = ""
    found: str = ""
    left_out: LeftOut = NOTHING_LEFT_OUT

    @property
    def code(self) -> SalvageCode | None:
        """The banner that a view of it bears; None over a whole log."""
        if self.health is Health.HEALTHY:
            return None
        return SalvageCode.SALVAGED_PREFIX if self.history else SalvageCode.PARTIAL_DATA


class UnfinishedAppend(StrEnum):
    """What an interrupted append left after a session's last settled event. Nobody got an answer from it: no damage."""

    SEGMENT = "segment"
    """Events that the log never came to attest. They do not count."""
    GROUP = "group"
    """Attested events that may not be durable. They count once the next writer has settled them."""


class SessionUnhealthyError(InterlockError):
    """The session's log does not verify, so nothing of it is used.

    `breaks_history` says that its bytes are those attested, and its events contradict each other.
    """

    def __init__(
        self, *, session: SessionId, health: Health, where: str, found: str, breaks_history: bool = False
    ) -> None:
        super().__init__(f"{session} is {health.value}: {where}: {found}")
        self.session = session
        self.health = health
        self.where = where
        self.found = found
        self.breaks_history = breaks_history
        self.label: str | None = None
        """The run that the call was about, where it was about one."""


class SessionBusyError(InterlockError):
    """Another process held the session's lock for longer than a call may wait."""

    def __init__(self, *, session: SessionId, waited_ms: int) -> None:
        super().__init__(f"{session} is locked; waited {waited_ms} ms")
        self.session = session
        self.waited_ms = waited_ms


class UpkeepBusyError(InterlockError):
    """Another process worked on what belongs to no session (marks, keys, a collection) for longer than one may wait."""

    def __init__(self, *, waited_ms: int) -> None:
        super().__init__(f"upkeep is locked; waited {waited_ms} ms")
        self.waited_ms = waited_ms


class FailureKind(StrEnum):
    """Why the disk did not do its part."""

    UNREADABLE = "unreadable"
    READ_ONLY = "read_only"
    FULL = "full"
    NO_DIRECTORY = "no_directory"
    FAILED = "failed"


class StoreFailureError(InterlockError):
    """A disk operation failed.

    Nothing of the call was recorded, unless `may_be_recorded`: then the failure came after the call's first durable
    byte, and only a later read can say whether the call counts.
    """

    def __init__(self, kind: FailureKind, found: str, *, may_be_recorded: bool = False) -> None:
        super().__init__(f"{kind.value}: {found}")
        self.kind = kind
        self.found = found
        self.may_be_recorded = may_be_recorded


class ContentDamagedError(InterlockError):
    """A content-addressed file is missing, or its bytes are not those of its name."""

    def __init__(self, *, what: str, digest: Digest, found: str) -> None:
        super().__init__(f"{what} {digest}: {found}")
        self.what = what
        self.digest = digest
        self.found = found


class KeyRingDamagedError(InterlockError):
    """The key ring cannot be read, or its check does not hold."""


class WitnessReleasedError(InterlockError):
    """A witness was used after its hold ended, or for another session: a caller's bug (locks 1.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """The keys that sign tokens: `current` signs, both verify (locks 1.2)."""

    current: SigningKey
    previous: SigningKey | None

    def keys(self) -> tuple[SigningKey, ...]:
        """Return the keys that verify, newest first."""
        return (self.current,) if self.previous is None else (self.current, self.previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRingFacts:
    """What may be said of a key ring: never a key.

    `changed_s`, when it was made or rotated last, counts from the epoch; the modes are permission bits.
    `has_unfinished_rotation` says that the older key still signs.
    """

    keys: int
    changed_s: float
    mode: int
    directory_mode: int
    has_unfinished_rotation: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnchors:
    """The root of a work tree, its branch and its commit, each where there is one."""

    repo_root: str | None = None
    branch: str | None = None
    head_sha: str | None = None


NOWHERE = GitAnchors()


LogMark = NewType("LogMark", tuple[int, int, float, int])
"""What changes whenever a session's log does: cheap to ask for, and compared with an earlier one only."""


class Witness(Protocol):
    """Proof that its bearer holds the lock of a healthy session, right now."""

    @property
    def session(self) -> Session | None:
        """The session as of the lock; None where it has no history yet.

        Raises:
            WitnessReleasedError: The hold has ended.
        """
        ...


class SessionReader(Protocol):
    """Reads verified history and the content it refers to. Writes nothing."""

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> Session | None:
        """Return the session's fold, or None if no such session has history.

        An append counts once its writer has settled it. `tag` is that of a node which a verified token names: the
        token was made after the append of that node was settled, so this append counts even if its mark was lost.
        A log that looks damaged is read again under its lock; `since_s` is as `SessionWriter.hold` has it.

        Raises:
            SessionBusyError: It looks damaged, and another process holds it.
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def sessions(self) -> tuple[SessionId, ...]:
        """Return the sessions that are there, by id.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def history(self, session: SessionId) -> tuple[tuple[Event, ...], ...]:
        """Return a session's events, one tuple for each plan that was appended, oldest first.

        Raises:
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def marks(self) -> Mapping[SessionId, LogMark]:
        """Return the sessions that are there with the mark of each one's log. One look at each, no reading.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def cached_summary(self, session: SessionId) -> bytes | None:
        """Return what was cached of a session with the last thing that was appended to it; None where nothing was.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...

    def salvage(self, session: SessionId) -> Salvaged | None:
        """Return what verifies of a session's log, whatever follows it; None where there is no such session.

        Raises:
            SessionBusyError: It looks damaged, and another process holds it.
            StoreFailureError: The disk failed.
        """
        ...

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:
        """Return what an interrupted append left in a session that verifies; None if nothing.

        Raises:
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def snapshot(self, ref: SnapshotRef) -> ExecutionSnapshot:
        """Return a stored snapshot.

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


class SessionWriter(Protocol):
    """The one way to make something true."""

    def hold(self, session: SessionId, *, since_s: float | None = None) -> AbstractContextManager[Witness]:
        """Lock a session, verify it, settle what another writer left unsettled, and yield the proof.

        The wait for the lock counts from `since_s`, when the call arrived by `time.monotonic`; without it, from now.

        Raises:
            SessionBusyError: Another process holds it.
            SessionUnhealthyError: Its log does not verify.
            ContentDamagedError: What is unsettled refers to content that is missing or damaged.
            StoreFailureError: The disk failed; `may_be_recorded` if it failed while settling.
        """
        ...

    def append(self, witness: Witness, plan: AppendPlan, stamps: Stamps) -> Session:
        """Make a plan true, whole or not at all, and return the session after it.

        A plan whose key event is in the log already is a replay: nothing is written.

        Raises:
            WitnessReleasedError: The witness is not valid, or is another session's; nothing was touched.
            BrokenHistoryError: The plan does not fit the history; nothing was touched.
            StoreFailureError: The disk failed. Nothing was recorded, unless it is `may_be_recorded`: then the next
                `hold` says whether the plan counts.
        """
        ...

    def cache_summary(self, witness: Witness, summary: bytes) -> None:
        """Keep what is told of a session beside its log as it is now. Not durable, and never needed (locks 10).

        Raises:
            WitnessReleasedError: The witness is not valid.
            StoreFailureError: The disk failed; what was cached before is not used either.
        """
        ...

    def restore(self, witness: Witness, history: Sequence[Sequence[Event]], contents: Contents) -> Session:
        """Make the history of a session that has none true, all of it or nothing, and return its fold.

        Args:
            witness: Of the session that the events name.
            history: Its events, one sequence for each plan, as `SessionReader.history` gives them.
            contents: All that the events refer to.

        Raises:
            WitnessReleasedError: The witness is not valid, or is another session's; nothing was touched.
            BrokenHistoryError: The events cannot follow each other, or the session has history; nothing was touched.
            StoreFailureError: The disk failed. Nothing was recorded, unless it is `may_be_recorded`.
        """
        ...


class KeyRingPort(Protocol):
    """Hands out the signing keys."""

    def keys(self, *, fresh: bool = False) -> KeyRing | None:
        """Return the key ring as it is stored now, or None where there is none yet. Writes nothing.

        `fresh` reads it even if nothing seems to have changed, as after a signature that did not hold.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: The disk failed.
        """
        ...

    def ensured(self) -> KeyRing:
        """Return the key ring, made and durable if there was none.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: It could not be made.
        """
        ...

    def rotate(self) -> KeyRing:
        """Make a new current key; the old current verifies until the next rotation.

        A rotation that failed, and may have been recorded, is finished instead: a repeat ends no token.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: It could not be written; nothing was changed, unless `may_be_recorded`.
        """
        ...


class KeyRingMaintenance(Protocol):
    """What people do with the key ring: see how it is, and rotate it."""

    def key_ring_facts(self) -> KeyRingFacts | None:
        """Return what may be said of the ring, or None where there is none yet. Writes nothing.

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: The disk failed.
        """
        ...

    def rotate(self) -> KeyRing:
        """See `KeyRingPort.rotate`."""
        ...


class Store(SessionReader, SessionWriter, KeyRingPort, Protocol):
    """Every port of durable truth. The contract suite runs against each implementation."""
