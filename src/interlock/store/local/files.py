"""Every disk operation, behind one interface that tests can interrupt, fail, delay and record.

Paths are relative to the data directory, with `/`. Nothing else in the project opens a file below it, except
the operating system's lock (`locks`). Each method is one step at which a crash can happen.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from interlock.kernel.budgets import READ_CHUNK_BYTES
from interlock.kernel.frozen import frozen
from interlock.kernel.turns import TURNS
from interlock.store.regular_file import READ_FLAGS, WRITE_FLAGS, NotRegularFileError, find_blocked, open_regular

_FILE_MODE = 0o600
_DIR_MODE = 0o700
_F_FULLFSYNC = 51
"""macOS: flush the drive's cache too, which its fsync leaves out (APP-2)."""


@frozen
class FileStat:
    """Identifies a file, even if another takes its name. `modified_s` counts from the epoch; `mode` is `st_mode`.

    `changed_ns` is when its status changed, which no user can set; 0 where the system does not keep it.
    """

    size: int
    device: int
    inode: int
    modified_s: float
    mode: int = stat.S_IFREG | _FILE_MODE
    changed_ns: int = 0

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.mode)


class UnreadableError(OSError):
    """Something exists under the name, but it cannot be read, or a part of its path cannot be entered.

    A link that leads nowhere is such a part. `filename` is the path of that part in the data directory.
    """


class OpenedFile(Protocol):
    """A file that was written and is still open: it is the same file even if another takes its name."""

    def close(self) -> None:
        """Close it, if it is open."""
        ...


class FileOps(Protocol):
    """The disk operations of the stores. Failures are `OSError`.

    A path is missing if its name is not in its directory. If a link on it leads nowhere, or something else is in place
    of a directory, what it refers to may exist elsewhere: that is an `UnreadableError`.
    """

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        """Return the file's bytes from an offset on, at most `bytes_max` of them.

        Raises:
            FileNotFoundError: It is missing.
            NotRegularFileError: Reading it could block or never end.
            UnreadableError: It cannot be read.
        """
        ...

    def read_with_stat(self, path: str, offset: int) -> tuple[bytes, FileStat]:
        """Return the file's bytes from an offset on, as `read` does, and the status of the file that holds them."""
        ...

    def stat(self, path: str) -> FileStat | None:
        """Return the status of the path, or None if nothing exists there.

        Raises:
            UnreadableError: Its status cannot be read.
        """
        ...

    def own_stat(self, path: str) -> FileStat | None:
        """Return the status of the path as `stat` does; of a link its own, wherever it leads."""
        ...

    def is_link(self, path: str) -> bool:
        """Return whether the path is a symbolic link; what it refers to must not be removed."""
        ...

    def is_writable(self, path: str) -> bool:
        """Return whether this process may write to a file, or make files in a directory. False if it is missing."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, in no order; none if it is missing.

        Raises:
            UnreadableError: It cannot be read.
        """
        ...

    def modified(self, path: str) -> dict[str, float]:
        """Return the names in a directory, each with the modification time of what it refers to, as `stat` gives it.

        None if the directory is missing, or if a name refers to nothing.

        Raises:
            UnreadableError: It cannot be read.
        """
        ...

    def contents(self, path: str) -> dict[str, bytes]:
        """Return the regular files in a directory with their bytes; none if it is missing.

        Raises:
            UnreadableError: It, or a file in it, cannot be read.
        """
        ...

    def make_root(self) -> None:
        """Make the data directory and its parents if they are missing, private to the user, and their names durable."""
        ...

    def make_dir(self, path: str) -> bool:
        """Make one directory, private to the user; say whether it was missing. Not yet durable."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create a file that did not exist, with these bytes. Not yet durable."""
        ...

    def create(self, path: str, data: bytes) -> OpenedFile:
        """Create a file as `write` does, and keep it open so that `sync` reaches it. The caller closes it.

        Raises:
            FileExistsError: Something has this name.
            OSError: The disk failed. A part of the file may exist.
        """
        ...

    def append(self, path: str, data: bytes) -> OpenedFile:
        """Add bytes at the end of a file with one write, and keep it open as `create` does. Not yet durable.

        Raises:
            NotRegularFileError: Writing to it could block.
        """
        ...

    def write_at(self, path: str, offset: int, data: bytes) -> int:
        """Overwrite bytes of a file in place, with one write; make the file if it is missing. Not yet durable.

        Return the size that it had before.

        Raises:
            NotRegularFileError: Writing to it could block.
        """
        ...

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to its first `size` bytes. Not yet durable."""
        ...

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:
        """Make a file's bytes durable; `full` also through the drive's own cache.

        `opened` is the file that was written under the path: it is synced even if another has its name by now.
        """
        ...

    def sync_dir(self, path: str, *, full: bool = False) -> None:
        """Make a directory's entries durable: a new name is not durable until this returns."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a directory, replacing a file of that name. Not yet durable."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name."""
        ...

    def remove_dir(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def boot_id(self) -> str:
        """Return the identifier of this boot of the operating system; "" if the platform has none."""
        ...


class _OpenFile:
    """A written file of the real disk, by its open descriptor."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def close(self) -> None:
        """See `OpenedFile.close`."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


class OsFiles:
    """The real disk below one directory."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _failure(self, error: OSError, path: str) -> OSError:
        """Return the error of a read: `FileNotFoundError` if the path is only missing."""
        if isinstance(error, NotRegularFileError) or error.errno in _NO_ROOM:
            # The latter: this process or the system cannot open another file, which says nothing about the path.
            return error
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            return UnreadableError(error.errno, error.strerror, path)
        blocked = find_blocked(self._root, path, error)
        if blocked is not None:
            return UnreadableError(error.errno, error.strerror, blocked)
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _raise_unless_missing(self, error: OSError, path: str) -> None:
        """Raise the error of a read, unless the path is only missing."""
        failure = self._failure(error, path)
        if not isinstance(failure, FileNotFoundError):
            raise failure from None

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        """See `FileOps.read`."""
        return self._read(path, offset, bytes_max)[0]

    def read_with_stat(self, path: str, offset: int) -> tuple[bytes, FileStat]:
        """See `FileOps.read_with_stat`."""
        data, status = self._read(path, offset, None)
        return data, _file_stat(status)

    def _read(self, path: str, offset: int, bytes_max: int | None) -> tuple[bytes, os.stat_result]:
        try:
            return _read_from(self._at(path), offset, bytes_max)
        except OSError as error:
            raise self._failure(error, path) from None

    def stat(self, path: str) -> FileStat | None:
        """See `FileOps.stat`."""
        return self._stat(path, os.stat)

    def own_stat(self, path: str) -> FileStat | None:
        """See `FileOps.own_stat`."""
        return self._stat(path, os.lstat)

    def _stat(self, path: str, status: Callable[[str], os.stat_result]) -> FileStat | None:
        try:
            found = status(self._at(path))
        except OSError as error:
            self._raise_unless_missing(error, path)
            return None
        return _file_stat(found)

    def is_link(self, path: str) -> bool:
        """See `FileOps.is_link`."""
        return os.path.islink(self._at(path))  # noqa: PTH114 — see stat

    def is_writable(self, path: str) -> bool:
        """See `FileOps.is_writable`."""
        at = self._at(path)
        return os.access(at, os.W_OK | os.X_OK if os.path.isdir(at) else os.W_OK)  # noqa: PTH112 — see stat

    def names(self, path: str) -> list[str]:
        """See `FileOps.names`."""
        try:
            return os.listdir(self._at(path))  # noqa: PTH208
        except OSError as error:
            self._raise_unless_missing(error, path)
            return []

    def modified(self, path: str) -> dict[str, float]:
        """See `FileOps.modified`."""
        try:
            with os.scandir(self._at(path)) as entries:
                return {entry.name: entry.stat().st_mtime for entry in entries}
        except OSError as error:
            self._raise_unless_missing(error, path)
            return {}

    def contents(self, path: str) -> dict[str, bytes]:
        """See `FileOps.contents`. Files that disappear meanwhile are left out."""
        found = dict[str, bytes]()
        try:
            with os.scandir(self._at(path)) as entries:
                for entry in entries:
                    if entry.is_file():
                        with suppress(FileNotFoundError):
                            found[entry.name] = _read_whole(entry.path)
        except OSError as error:
            self._raise_unless_missing(error, path)
            return {}
        return found

    def make_root(self) -> None:
        """See `FileOps.make_root`."""
        _make_private(Path(self._root))

    def make_dir(self, path: str) -> bool:
        """See `FileOps.make_dir`."""
        with suppress(FileExistsError):
            os.mkdir(self._at(path), _DIR_MODE)  # noqa: PTH102
            return True
        return False

    def write(self, path: str, data: bytes) -> None:
        """See `FileOps.write`."""
        self.create(path, data).close()

    def create(self, path: str, data: bytes) -> OpenedFile:
        """See `FileOps.create`."""
        return _written(os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), data)

    def append(self, path: str, data: bytes) -> OpenedFile:
        """See `FileOps.append`."""
        return _written(open_regular(self._at(path), WRITE_FLAGS | os.O_APPEND)[0], data)

    def write_at(self, path: str, offset: int, data: bytes) -> int:
        """See `FileOps.write_at`."""
        handle, status = open_regular(self._at(path), WRITE_FLAGS | os.O_CREAT, _FILE_MODE)
        try:
            if offset:
                os.lseek(handle, offset, os.SEEK_SET)
            _write_whole(handle, data)
        finally:
            os.close(handle)
        return status.st_size

    def truncate(self, path: str, size: int) -> None:
        """See `FileOps.truncate`."""
        os.truncate(self._at(path), size)

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:
        """See `FileOps.sync`."""
        if opened is not None:
            assert isinstance(opened, _OpenFile), "a file that this disk wrote"
            _sync(opened.handle, full=full)
            return
        handle = os.open(self._at(path), READ_FLAGS)
        try:
            _sync(handle, full=full)
        finally:
            os.close(handle)

    def sync_dir(self, path: str, *, full: bool = False) -> None:
        """See `FileOps.sync_dir`. A platform that cannot open directories needs no such sync."""
        if os.name == "nt":
            return
        self.sync(path, full=full)

    def rename(self, source: str, target: str) -> None:
        """See `FileOps.rename`."""
        os.replace(self._at(source), self._at(target))  # noqa: PTH105

    def unlink(self, path: str) -> None:
        """See `FileOps.unlink`."""
        os.unlink(self._at(path))  # noqa: PTH108

    def remove_dir(self, path: str) -> None:
        """See `FileOps.remove_dir`."""
        os.rmdir(self._at(path))  # noqa: PTH106

    def boot_id(self) -> str:
        """See `FileOps.boot_id`."""
        return _boot_id()


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _darwin_boot_id() if sys.platform == "darwin" else ""


def _darwin_boot_id() -> str:
    import ctypes  # noqa: PLC0415 — only macOS needs it

    size, value = ctypes.c_size_t(64), ctypes.create_string_buffer(64)
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", value, ctypes.byref(size), None, 0)
    return "" if failed else value.value.decode("ascii", "replace")


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(
        size=found.st_size,
        device=found.st_dev,
        inode=found.st_ino,
        modified_s=found.st_mtime,
        mode=found.st_mode,
        # On Windows it is the time of creation.
        changed_ns=found.st_ctime_ns if os.name != "nt" else 0,
    )


def _read_from(path: str, offset: int, bytes_max: int | None) -> tuple[bytes, os.stat_result]:
    handle, status = open_regular(path)
    try:
        if bytes_max is not None and offset + bytes_max <= status.st_size:
            return os.pread(handle, bytes_max, offset), status
        chunks: list[bytes] = []
        while True:
            wanted = max(status.st_size - offset, 0) + 1
            chunk = os.pread(handle, wanted, offset)
            chunks.append(chunk)
            offset += len(chunk)
            # Fewer bytes than requested mean the end of the file; if it grows meanwhile, the rest is read, too.
            if len(chunk) < wanted:
                return b"".join(chunks), status
    finally:
        os.close(handle)


def _read_whole(path: str) -> bytes:
    """Return the bytes of a file that is known to be regular: fewer calls than `_read_from` for many small files."""
    handle = os.open(path, READ_FLAGS)
    try:
        chunks = list[bytes]()
        while chunk := os.read(handle, READ_CHUNK_BYTES):
            chunks.append(chunk)
            if len(chunk) < READ_CHUNK_BYTES:
                break
        return b"".join(chunks)
    finally:
        os.close(handle)


def _make_private(path: Path) -> None:
    """Create a directory and its missing parents, private to the user regardless of the umask; sync their names.

    Its own name is synced in any case: the process that made it may have been killed before it did so.
    """
    if not path.parent.exists():
        _make_private(path.parent)
    path.mkdir(mode=_DIR_MODE, exist_ok=True)
    OsFiles(path.parent).sync_dir("")


def _written(handle: int, data: bytes) -> _OpenFile:
    """Write all bytes to an open file, and keep it open unless that fails."""
    try:
        _write_whole(handle, data)
    except BaseException:
        os.close(handle)
        raise
    return _OpenFile(handle)


def _write_whole(handle: int, data: bytes) -> None:
    """Write all bytes. Ordinarily this is one call, which the torn-tail rule relies on."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _sync(handle: int, *, full: bool) -> None:
    with TURNS.waiting():
        if full and sys.platform == "darwin":
            import fcntl  # noqa: PLC0415 — POSIX only, and only macOS needs it

            fcntl.fcntl(handle, _F_FULLFSYNC)
        else:
            os.fsync(handle)


NO_FILE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
"""The errors of a process or a system that cannot open another file."""
_NO_ROOM = frozenset({*NO_FILE_LEFT, errno.ENOMEM})
