"""The directory to which the built-in tools are confined. A path that leads out of it, by a link too, is refused.

This confines the tools that take a path. It does not confine a command: a shell can go anywhere that its user can.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from interlock.drive.faults import Fault, TurnError
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.drive import TOOL_FILE_BYTES_MAX, TOOL_FILES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITE = (
    os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)
_NEW_FILE_MODE = 0o666


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
            # The path is real, so a link at its end appeared after the check: it is not followed.
            handle = os.open(real, _READ)
        except OSError as error:
            raise _failed(path, error.strerror or "it cannot be opened") from error
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _failed(path, "it is no regular file")
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
            handle = os.open(real, _WRITE, _NEW_FILE_MODE)
        except OSError as error:
            raise _failed(path, error.strerror or "it cannot be written") from error
        with os.fdopen(handle, "wb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _failed(path, "it is no regular file")
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


def _failed(path: str, why: str) -> TurnError:
    return TurnError(Fault(code="TOOL_ERROR", message=f"The file {one_line(path, ECHO_BYTES_MAX)!r}: {why}."))
