"""What a store raises, with its enums: how healthy a session is, and why a disk failed.

Everybody above the store may import this; nothing here reads or writes.
"""

from enum import StrEnum

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest, SessionId


class Health(StrEnum):
    """What a session's stored bytes are worth (READ-2). Only a healthy one is built upon."""

    HEALTHY = "healthy"
    CORRUPT_TAIL = "corrupt_tail"
    CORRUPT_HEAD = "corrupt_head"
    UNKNOWN_VERSION = "unknown_version"


class FailureKind(StrEnum):
    """Why the disk did not do its part."""

    UNREADABLE = "unreadable"
    READ_ONLY = "read_only"
    FULL = "full"
    NO_DIRECTORY = "no_directory"
    FAILED = "failed"


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
    """Another holder kept the session's lock for longer than a call may wait."""

    def __init__(self, *, session: SessionId, waited_ms: int) -> None:
        super().__init__(f"{session} is locked; waited {waited_ms} ms")
        self.session = session
        self.waited_ms = waited_ms
        self.label: str | None = None
        """The run that the call was about, if it was about one."""


class UpkeepBusyError(InterlockError):
    """Another process worked on what belongs to no session (marks, keys, a collection) for longer than one may wait."""

    def __init__(self, *, waited_ms: int) -> None:
        super().__init__(f"upkeep is locked; waited {waited_ms} ms")
        self.waited_ms = waited_ms


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
        self.session: SessionId | None = None
        """The session that was read, if the reader knows it; others may refer to the same content."""


class KeyRingDamagedError(InterlockError):
    """The key ring cannot be read, or its check does not hold."""


class SessionLockReleasedError(InterlockError):
    """A witness was used after its hold ended, or for another session: a caller's bug (LOCK-2)."""


class PinsDamagedError(InterlockError):
    """The keep marks cannot be read, so nobody knows what must stay."""

    def __init__(self, found: str) -> None:
        super().__init__(f"keep marks: {found}")
        self.found = found


class SessionsMissingError(InterlockError):
    """Sessions were to be kept that are not there; nothing was changed."""

    def __init__(self, sessions: tuple[SessionId, ...]) -> None:
        super().__init__(f"no such session: {', '.join(sessions)}")
        self.sessions = sessions


class TooManyPinsError(InterlockError):
    """More sessions would be kept than marks are for; nothing was changed."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} keep marks")
        self.count = count
