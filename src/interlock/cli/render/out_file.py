"""Files that commands write for a person: whole or not at all."""

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from interlock.cli.screen import StopError, printable_line

PRIVATE = 0o600
SHARED = 0o644
"""For a file that others may read, such as a report."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


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

    A link is followed. A device or a pipe is written to, and not replaced.

    Args:
        path: The file.
        data: What it holds afterwards.
        is_forced: Whether something that exists may be overwritten.
        mode: The permissions of the file. By default only its owner reads it, as the data directory.

    Raises:
        StopError: Something exists there, or it cannot be written.
    """
    try:
        check_free(path, is_forced=is_forced)
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
        else:
            _replace(target, data, mode, is_forced=is_forced)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError | ValueError) -> StopError:
    """Return the refusal of a file that cannot be written, with the cause."""
    is_full = isinstance(error, OSError) and error.errno in _FULL
    why = error.strerror if isinstance(error, OSError) else error
    other = "Free disk space" if is_full else "Correct its permissions"
    fix = f"{other}, or choose another --out."
    return StopError(f"{printable_line(str(path))} cannot be written: {why}.", fix, exit_code=1)


def _replace(path: Path, data: bytes, mode: int, *, is_forced: bool) -> None:
    handle, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if mode != PRIVATE:
            Path(temp).chmod(mode)
        check_free(path, is_forced=is_forced)
        Path(temp).replace(path)
    finally:
        # A temporary file that remains does not change the result.
        with suppress(OSError):
            Path(temp).unlink(missing_ok=True)
