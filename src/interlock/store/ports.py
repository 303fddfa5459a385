"""The ports of durable truth. No caller may know that truth is a file (D31, locks 17).

Reading and appending are two ports: who holds only a `SessionReader` cannot write. Appending takes a `Witness`
that only `SessionWriter.hold` mints, and that is worth nothing once its `with` block has ended.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.record.append_plan import AppendPlan, Stamps
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


class SessionUnhealthyError(InterlockError):
    """The session's log does not verify, so nothing of it is used."""

    def __init__(self, *, session: SessionId, health: Health, where: str, found: str) -> None:
        super().__init__(f"{session} is {health.value}: {where}: {found}")
        self.session = session
        self.health = health
        self.where = where
        self.found = found
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

    READ_ONLY = "read_only"
    FULL = "full"
    NO_DIRECTORY = "no_directory"
    FAILED = "failed"


class StoreFailureError(InterlockError):
    """An effect failed. Nothing of the call that met it is truth."""

    def __init__(self, kind: FailureKind, found: str) -> None:
        super().__init__(f"{kind.value}: {found}")
        self.kind = kind
        self.found = found


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

    def load(self, session: SessionId) -> Session | None:
        """Return the session's fold, or None where no such session has history.

        Raises:
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

    def hold(self, session: SessionId) -> AbstractContextManager[Witness]:
        """Lock a session, verify it, and yield the proof of both.

        Raises:
            SessionBusyError: Another process holds it.
            SessionUnhealthyError: Its log does not verify.
            StoreFailureError: The disk failed.
        """
        ...

    def append(self, witness: Witness, plan: AppendPlan, stamps: Stamps) -> Session:
        """Make a plan true, whole or not at all, and return the session after it.

        A plan whose key event is in the log already is a replay: nothing is written.

        Raises:
            WitnessReleasedError: The witness is not valid, or is another session's; nothing was touched.
            BrokenHistoryError: The plan does not fit the history; nothing was touched.
            StoreFailureError: The disk failed; nothing of the plan is truth.
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

        Raises:
            KeyRingDamagedError: It cannot be used.
            StoreFailureError: It could not be written.
        """
        ...
