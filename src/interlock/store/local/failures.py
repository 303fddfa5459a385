"""Converts errors of the operating system into the failures that callers see."""

import errno
from collections.abc import Generator
from contextlib import contextmanager

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import SessionId
from interlock.store.local.files import NO_FILE_LEFT, UnreadableError
from interlock.store.ports.errors import FailureKind, SessionUnreadableError, StoreFailureError

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP})
_KINDS = {
    **dict.fromkeys(_READ_ONLY, FailureKind.READ_ONLY),
    **dict.fromkeys(_FULL, FailureKind.FULL),
    **dict.fromkeys(_NO_LOCKS, FailureKind.NO_LOCKS),
    **dict.fromkeys(NO_FILE_LEFT, FailureKind.OPEN_FILES),
    errno.EXDEV: FailureKind.OTHER_DISK,
    errno.ENOMEM: FailureKind.NO_MEMORY,
}
"""Why a disk operation failed, by the error of the system; any other error is `FAILED`."""


def store_failure(error: OSError, *, may_be_recorded: bool = False) -> StoreFailureError:
    """Convert an error of the operating system into the failure that callers see.

    It contains no path but that of something unreadable, in the data directory.
    """
    kind, where = _KINDS.get(error.errno or 0, FailureKind.FAILED), None
    if isinstance(error, UnreadableError):
        kind, where = FailureKind.UNREADABLE, error.filename or None
    return StoreFailureError(kind, error_name(error), may_be_recorded=may_be_recorded, where=where)


def session_failure(session: SessionId, error: OSError) -> InterlockError:
    """Convert an error of reading or writing a session into the failure that callers see."""
    if isinstance(error, UnreadableError):
        return SessionUnreadableError(session=session, where=error.filename, found=error_name(error))
    return store_failure(error)


@contextmanager
def memory_as_failure() -> Generator[None]:
    """Convert the lack of memory while something is read into the error of the system that says the same.

    Raises:
        OSError: There is not enough memory.
    """
    try:
        yield
    except MemoryError as error:
        raise OSError(errno.ENOMEM, "Cannot allocate memory") from error


def error_name(error: OSError) -> str:
    """Return the system's name of an error, such as `EACCES`."""
    return errno.errorcode.get(error.errno or 0, "unknown error")
