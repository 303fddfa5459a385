"""The directory to which the built-in tools are confined. A path that leads out of it, by a link too, is refused.

This confines the tools that take a path. It does not confine a command: a shell can go anywhere that its user can.
"""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from interlock.drive.faults import Fault, ToolAnswerError, TurnError
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.drive import TOOL_FILE_BYTES_MAX, TOOL_FILES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITE = (
    os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)
_NEW_FILE_MODE = 0o666
_OF_PATH = frozenset(
    {
        errno.ENOENT,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.EACCES,
        errno.EPERM,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        errno.ENXIO,
    }
)
"""Errors that say something of a path: no such file, a directory, a name that is too long, a file of somebody else."""


class Workspace:
    """A directory, by its real path."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def locate(self, path: str) -> Path:
        """Return the real path that a tool names, which need not exist.

        Raises:
            TurnError: It leads out of the workspace, or is no path.
        """
        if "\0" in path:
            raise _policy("A path cannot hold a zero byte.")
        real = Path(os.path.realpath(self.root / path))
        if real != self.root and not real.is_relative_to(self.root):
            raise _policy(f"The path {one_line(path, ECHO_BYTES_MAX)!r} leads out of the workspace.")
        return real

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            TurnError: It leads out of the workspace, is no regular file, or is too large.
        """
        real = self.locate(path)
        try:
            handle = _open_regular(path, real, _READ)
        except OSError as error:
            raise _not_opened(path, error, "it cannot be opened") from error
        with os.fdopen(handle, "rb") as stream:
            data = stream.read(TOOL_FILE_BYTES_MAX + 1)
        if len(data) > TOOL_FILE_BYTES_MAX:
            raise _failed(path, f"it has more than {TOOL_FILE_BYTES_MAX} bytes")
        return data.decode("utf-8", "replace")

    def write(self, path: str, content: str) -> int:
        """Write a file, with the directories above it, and return its size in bytes.

        Raises:
            TurnError: It leads out of the workspace, is no regular file, or cannot be written.
        """
        real, data = self.locate(path), content.encode("utf-8", "replace")
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
            handle = _open_regular(path, real, _WRITE)
        except OSError as error:
            raise _not_opened(path, error, "it cannot be written") from error
        with os.fdopen(handle, "wb") as stream:
            stream.truncate(0)
            stream.write(data)
        return len(data)

    def files(self, path: str, pattern: str, check: Callable[[], None]) -> "Listing":
        """Return the files below a directory whose relative path matches a glob, sorted; links are not followed.

        Args:
            path: The directory.
            pattern: The glob.
            check: Called for each file; it may raise to end the search.

        Raises:
            TurnError: It leads out of the workspace.
        """
        start, matching = self.locate(path), list[str]()
        for directory, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if name != ".git")
            for name in sorted(names):
                check()
                found = Path(directory) / name
                relative = found.relative_to(self.root)
                if found.is_symlink() or not relative.match(pattern):
                    continue
                if len(matching) == TOOL_FILES_MAX:
                    return Listing(paths=tuple(matching), is_cut=True)
                matching.append(relative.as_posix())
        return Listing(paths=tuple(matching), is_cut=False)


@frozen
class Listing:
    """Files of the workspace. `is_cut` says that there are more."""

    paths: tuple[str, ...]
    is_cut: bool


def _policy(message: str) -> TurnError:
    return TurnError(Fault(code="POLICY_VIOLATION", message=message))


def _open_regular(path: str, real: Path, flags: int) -> int:
    """Return the descriptor of a regular file. A link at its end appeared after the check: it is not followed.

    Raises:
        OSError: It cannot be opened.
        ToolAnswerError: It is a directory, a pipe or a device.
    """
    handle = os.open(real, flags, _NEW_FILE_MODE)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise _failed(path, "it is no regular file")


def _failed(path: str, why: str) -> ToolAnswerError:
    return ToolAnswerError(f"The file {one_line(path, ECHO_BYTES_MAX)!r}: {why}.")


def _not_opened(path: str, error: OSError, otherwise: str) -> TurnError:
    """Return the error of a file that cannot be opened: an answer if its path is the reason, else a broken tool."""
    answer = _failed(path, error.strerror or otherwise)
    return answer if error.errno in _OF_PATH else TurnError(answer.fault)
