"""The errors that a store raises, with their enums: the health of a session, and the kind of disk failure.

Every layer above the store may import this module; it reads and writes nothing.
"""

from enum import StrEnum

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest, SessionId
from interlock.kernel.uuids import Uuid
from interlock.record.errors import UnknownVersionError


class Health(StrEnum):
    """The health of a session's stored bytes (READ-2). Only a healthy session is used."""

    HEALTHY = "healthy"
    CORRUPT_TAIL = "corrupt_tail"
    CORRUPT_HEAD = "corrupt_head"
    UNKNOWN_VERSION = "unknown_version"
    UNREADABLE = "unreadable"
    """The operating system does not let this process read it, so it is unknown whether it is damaged."""
    UNDECIDED = "undecided"
    """It is not known whether its only append was acknowledged. The next writer decides it, and nothing is lost."""


class FailureKind(StrEnum):
    """Why a disk operation failed."""

    UNREADABLE = "unreadable"
    READ_ONLY = "read_only"
    FULL = "full"
    NO_DIRECTORY = "no_directory"
    TOO_LARGE = "too_large"
    """A file would become larger than Interlock reads."""
    NO_LOCKS = "no_locks"
    """The file system has no locks, so two processes could write at once."""
    OPEN_FILES = "open_files"
    """The process or the system cannot open another file."""
    OTHER_DISK = "other_disk"
    """A file cannot be moved into its place: that is on another file system."""
    NO_MEMORY = "no_memory"
    FAILED = "failed"


class SessionUnhealthyError(InterlockError):
    """The session's log does not verify, so it is not used.

    `breaks_history` says that its bytes match the manifest, but its events contradict each other.
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
        """The run that the call was about, if it was about one."""


class DefinitionTakenError(InterlockError):
    """A version of a definition was published with other content. A version never changes."""

    def __init__(self, *, definition_id: Uuid, version: int) -> None:
        super().__init__(f"version {version} of {definition_id} was published with other content")
        self.definition_id = definition_id
        self.version = version


class DefinitionDamagedError(InterlockError):
    """A published definition is damaged or cannot be read: the name of its file in the store, and what was found."""

    def __init__(self, *, name: str, found: str) -> None:
        super().__init__(f"{name}: {found}")
        self.name = name
        self.found = found


class SessionUnreadableError(SessionUnhealthyError):
    """A file or directory of the session cannot be read: `found` is the name of the system's error, such as `EACCES`.

    `where` is its path in the data directory. Nothing is known to be damaged.
    """

    def __init__(self, *, session: SessionId, where: str, found: str) -> None:
        super().__init__(session=session, health=Health.UNREADABLE, where=where, found=found)


class SessionBusyError(InterlockError):
    """Another holder kept the session's lock for longer than a call may wait."""

    def __init__(self, *, session: SessionId, waited_ms: int) -> None:
        super().__init__(f"{session} is locked; waited {waited_ms} ms")
        self.session = session
        self.waited_ms = waited_ms
        self.label: str | None = None
        """The run that the call was about, if it was about one."""


class UpkeepBusyError(InterlockError):
    """Another process held the upkeep lock (for pins, keys or a collection) for longer than a call may wait."""

    def __init__(self, *, waited_ms: int) -> None:
        super().__init__(f"upkeep is locked; waited {waited_ms} ms")
        self.waited_ms = waited_ms


class StoreFailureError(InterlockError):
    """A disk operation failed.

    The call recorded nothing, unless `may_be_recorded`: then the failure came after the call's first durable byte, and
    only a later read shows whether the call counts. `where` is the path in the data directory, if it is known.
    """

    def __init__(
        self, kind: FailureKind, found: str, *, may_be_recorded: bool = False, where: str | None = None
    ) -> None:
        super().__init__(f"{kind.value}: {found}")
        self.kind = kind
        self.found = found
        self.may_be_recorded = may_be_recorded
        self.where = where


class ContentDamagedError(InterlockError):
    """A content-addressed file is missing, or its bytes do not match its name."""

    def __init__(self, *, what: str, digest: Digest, found: str) -> None:
        super().__init__(f"{what} {digest}: {found}")
        self.what = what
        self.digest = digest
        self.found = found
        self.session: SessionId | None = None
        """The session that was read, if the reader knows it; others may refer to the same content."""


class ContentUnreadableError(ContentDamagedError):
    """A content-addressed file cannot be read: `cause` is the name of the system's error, such as `EACCES`.

    `where` is the path in the data directory that cannot be read or entered. Nothing is known to be damaged.
    """

    def __init__(self, *, what: str, digest: Digest, where: str, cause: str) -> None:
        super().__init__(what=what, digest=digest, found=f"`{where}` cannot be read ({cause})")
        self.where = where
        self.cause = cause


class KeyRingDamagedError(InterlockError):
    """The key ring cannot be read, or its checksum does not match."""


class KeyRingMissingError(KeyRingDamagedError):
    """Sessions are stored, but the key ring that signs their tokens is missing. Reading makes no other one."""


class SessionLockReleasedError(InterlockError):
    """A session lock was used after its release, or for another session: a bug of the caller (LOCK-2)."""


class PinsDamagedError(InterlockError):
    """The retention pins cannot be read, so it is unknown which sessions must stay.

    `fix` says how to do without them.
    """

    def __init__(self, found: str, fix: str) -> None:
        super().__init__(f"retention pins: {found}")
        self.found = found
        self.fix = fix


class SessionsMissingError(InterlockError):
    """Sessions that should be pinned do not exist; nothing was changed."""

    def __init__(self, sessions: tuple[SessionId, ...]) -> None:
        super().__init__(f"no such session: {', '.join(sessions)}")
        self.sessions = sessions


class TooManyPinsError(InterlockError):
    """More sessions would be pinned than the limit allows; nothing was changed."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} retention pins")
        self.count = count


UNUSABLE_SESSION = (SessionUnhealthyError, ContentDamagedError, UnknownVersionError)
"""The errors of a session that cannot be used: its log, or content that it refers to, is damaged or newer."""
