"""Reading a file that may be of any kind: only a regular file, without blocking, and at most a number of bytes."""

import errno
import os
import stat
from pathlib import Path

READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
"""Opening a pipe without a writer would wait for one; opening a regular file or a directory is the same with these."""

_UNOPENED = frozenset({errno.ENXIO, errno.EOPNOTSUPP})
"""The errors for a socket, and for a missing device."""
_FOUND = "Not a regular file"


class NotRegularFileError(OSError):
    """A name refers to a directory, a pipe, a socket or a device."""


def open_regular(path: str | Path) -> int:
    """Return a descriptor for reading a regular file. Links are followed; their target must be a regular file.

    Raises:
        NotRegularFileError: Reading it could block or never end.
        OSError: It cannot be opened.
    """
    try:
        handle = os.open(path, READ_FLAGS)
    except OSError as error:
        if error.errno in _UNOPENED:
            raise NotRegularFileError(error.errno, _FOUND) from None
        raise
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise NotRegularFileError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise NotRegularFileError(errno.EINVAL, _FOUND)


def read_regular(path: str | Path, bytes_max: int) -> bytes:
    """Return the bytes of a regular file, at most `bytes_max` and one more, which shows that the file is longer.

    Raises:
        OSError: See `open_regular`, or it cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as stream:
        return stream.read(bytes_max + 1)
