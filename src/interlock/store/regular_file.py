"""Files of people: only a regular file is read, without blocking, up to a number of bytes; a file is written whole."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_OPEN_FLAGS = (
    getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NONBLOCK", 0)
)
READ_FLAGS = os.O_RDONLY | _OPEN_FLAGS
WRITE_FLAGS = os.O_WRONLY | _OPEN_FLAGS
"""Opening a pipe would wait for its other end; opening a regular file or a directory is the same with these."""

_UNOPENED = frozenset({errno.ENXIO, errno.EOPNOTSUPP})
"""The errors for a socket, and for a missing device."""
_FOUND = "Not a regular file"


class NotRegularFileError(OSError):
    """A name refers to a directory, a pipe, a socket or a device."""


def open_regular(path: str | Path, flags: int = READ_FLAGS, mode: int = 0o600) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; return its descriptor and its status. A link must lead to a regular file.

    With `WRITE_FLAGS`, it is for writing, and with `os.O_CREAT` too, a missing file is made with the mode.

    Raises:
        NotRegularFileError: Reading or writing it could block or never end.
        OSError: It cannot be opened.
    """
    try:
        handle = os.open(path, flags, mode)
    except OSError as error:
        if error.errno in _UNOPENED:
            raise NotRegularFileError(error.errno, _FOUND) from None
        raise
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode):
        return handle, found
    os.close(handle)
    if stat.S_ISDIR(found.st_mode):
        raise NotRegularFileError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise NotRegularFileError(errno.EINVAL, _FOUND)


def read_regular(path: str | Path, bytes_max: int) -> bytes:
    """Return the bytes of a regular file, at most `bytes_max` and one more, which shows that the file is longer.

    Raises:
        OSError: See `open_regular`, or it cannot be read.
    """
    with os.fdopen(open_regular(path)[0], "rb") as stream:
        return stream.read(bytes_max + 1)


def find_blocked(root: str, path: str, error: OSError) -> str | None:
    """Return the part of a path below `root` because of which `error` said that there is nothing, or no directory.

    This is a link that leads nowhere, as to a disk that is not mounted, or something else in place of a directory. None
    if a name is only missing from the directory that it would be in.
    """
    at, cause = f"{root}/{path}" if path else root, error
    while len(at) > len(root):
        above = at.rpartition("/")[0]
        try:
            mode = os.stat(above).st_mode  # noqa: PTH116 — a path of a store is a string
        except OSError as found:
            at, cause = above, found
            continue
        if not stat.S_ISDIR(mode):
            return above[len(root) + 1 :] or None
        if isinstance(cause, FileNotFoundError):
            is_there = os.path.islink(at)  # noqa: PTH114 — as above
        else:
            is_there = not isinstance(cause, NotADirectoryError) or os.path.lexists(at)
        return at[len(root) + 1 :] if is_there else None
    return None


def write_new(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet. After a failure there is none.

    Raises:
        FileExistsError: The file exists.
        OSError: It cannot be written.
    """
    with path.open("xb") as stream:
        try:
            _write_durably(stream, data)
        except OSError:
            path.unlink(missing_ok=True)
            raise


def replace_whole(path: Path, data: bytes) -> None:
    """Replace a file whole: a reader finds the old bytes or the new ones.

    Raises:
        OSError: It cannot be written, and is unchanged.
    """
    with written_beside(path, data) as written:
        written.replace(path)


def unused_name() -> str:
    """Return random hexadecimal digits, for the name of a file that no other process makes."""
    return os.urandom(8).hex()


@contextmanager
def written_beside(path: Path, data: bytes, mode: int = 0o666) -> Generator[Path]:
    """Write a new file in the directory of another one, for the caller to rename; otherwise it is removed.

    It has the permissions of the file at `path` that `mode` has too; if there is none, `mode` less the umask.

    Raises:
        OSError: It cannot be written.
    """
    # A short name of its own: the name of the file may be as long as a name can be.
    written = path.with_name(f".{unused_name()}.tmp")
    handle, _ = open_regular(written, WRITE_FLAGS | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            _write_durably(stream, data)
        with suppress(FileNotFoundError):
            written.chmod(stat.S_IMODE(path.stat().st_mode) & mode)
        yield written
    finally:
        # A file that remains does not change the result.
        with suppress(OSError):
            written.unlink(missing_ok=True)


def _write_durably(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()
    os.fsync(stream.fileno())
