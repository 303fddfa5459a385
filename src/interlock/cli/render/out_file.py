"""Files that commands write for a person: whole or not at all."""

import errno
import os
from pathlib import Path

from interlock.cli.screen import StopError, printable_line
from interlock.store.regular_file import written_beside

PRIVATE = 0o600
SHARED = 0o644
"""For a file that others may read, such as a report."""
_DESCRIPTORS = frozenset({Path("/dev/fd"), Path("/proc/self/fd")})
_STANDARD = frozenset({Path("/dev/stdout"), Path("/dev/stderr")})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def check_free(path: Path, *, is_forced: bool) -> None:
    """Refuse a path at which something exists, unless it may be overwritten.

    Raises:
        StopError: Something exists there.
    """
    if os.path.lexists(path) and not is_forced:
        fix = "Nothing was overwritten. Choose another --out, or overwrite it with --force."
        raise StopError(f"{printable_line(str(path))} exists already.", fix, exit_code=1)


def write_out(path: Path, data: bytes, *, is_forced: bool, mode: int = PRIVATE) -> None:
    """Write a file whole or not at all; after a failure an old file is as it was.

    A link is followed. A device, a pipe or what a shell put in place of one is written to, and not replaced. A file
    that is overwritten gets no further permissions.

    Args:
        path: The file.
        data: What it holds afterwards.
        is_forced: Whether something that exists may be overwritten.
        mode: The permissions of a new file, less those that the process withholds. By default only its owner reads
            it, as the data directory.

    Raises:
        StopError: Something exists there, or it cannot be written.
    """
    try:
        if _is_stream(path):
            path.write_bytes(data)
            return
        check_free(path, is_forced=is_forced)
        target = Path(os.path.realpath(path))
        with written_beside(target, data, mode) as written:
            check_free(target, is_forced=is_forced)
            written.replace(target)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError | ValueError) -> StopError:
    """Return the refusal of a file that cannot be written, with the cause."""
    number = error.errno if isinstance(error, OSError) else None
    why = error.strerror if isinstance(error, OSError) else error
    fix = "Choose another --out."
    if number in _FULL:
        fix = "Free disk space, or choose another --out."
    elif number in _REFUSED:
        fix = "Correct its permissions, or choose another --out."
    return StopError(f"{printable_line(str(path))} cannot be written: {why}.", fix, exit_code=1)


def _is_stream(path: Path) -> bool:
    """Return whether a path names a device, a pipe or an open file of this process: writing there replaces no file."""
    is_open = path in _STANDARD or path.parent in _DESCRIPTORS
    return is_open or (path.exists() and not path.is_file() and not path.is_dir())
