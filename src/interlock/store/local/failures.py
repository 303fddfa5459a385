"""Converts errors of the operating system into the failures that callers see."""

import errno

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import SessionId
from interlock.store.local.files import UnreadableError
from interlock.store.ports.errors import FailureKind, SessionUnreadableError, StoreFailureError

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def store_failure(error: OSError, *, may_be_recorded: bool = False) -> StoreFailureError:
    """Convert an error of the operating system into the failure that callers see.

    It contains no path but that of something unreadable, in the data directory.
    """
    where = None
    if isinstance(error, UnreadableError):
        kind, where = FailureKind.UNREADABLE, error.filename or None
    elif error.errno in _READ_ONLY:
        kind = FailureKind.READ_ONLY
    elif error.errno in _FULL:
        kind = FailureKind.FULL
    else:
        kind = FailureKind.FAILED
    return StoreFailureError(kind, error_name(error), may_be_recorded=may_be_recorded, where=where)


def session_failure(session: SessionId, error: OSError) -> InterlockError:
    """Convert an error of reading or writing a session into the failure that callers see."""
    if isinstance(error, UnreadableError):
        return SessionUnreadableError(session=session, where=error.filename, found=error_name(error))
    return store_failure(error)


def error_name(error: OSError) -> str:
    """Return the system's name of an error, such as `EACCES`."""
    return errno.errorcode.get(error.errno or 0, "unknown error")
