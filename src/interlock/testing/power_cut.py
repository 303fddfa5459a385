"""A simulated disk that loses power: it keeps any part of the operations that were not synced (CRASH-2).

It models the rules of durability. Bytes reach the disk by `sync`, names by `sync_dir`; until then each change may
survive or not, independently of the others, and bytes may survive in part. A kill of the process alone loses no written
byte. A failed sync drops what was not on the disk yet: readers still see it, and the next sync succeeds without writing
it. Only bytes that are written again reach the disk.
"""

import errno
import itertools
import math
import random
import stat
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import field
from typing import TypeAlias, TypeVar

from interlock.kernel.frozen import frozen, mutable, replace
from interlock.kernel.ids import SessionId
from interlock.store.local.files import FileStat, OpenedFile, UnreadableError

T = TypeVar("T")

COMBINATIONS_MAX = 128
"""How many combinations of what a power loss takes are tried for one disk."""
_SECTOR_BYTES = 512


class PowerCutError(BaseException):
    """The power was cut. No handler of ordinary errors catches it."""


@frozen
class File:
    """A file: its current bytes, and those that it may have after a power loss.

    `dropped` is None, or what the next sync makes durable in place of `data`, after a sync that failed.
    """

    data: bytes
    durable: bytes
    is_dir: bool = False
    modified_s: float = 0.0
    dropped: bytes | None = None

    @property
    def synced(self) -> bytes:
        """What a sync makes durable."""
        return self.data if self.dropped is None else self.dropped


Names: TypeAlias = dict[str, int]
"""The number of the file or directory at each path."""
Entry: TypeAlias = tuple[int, str]
"""A name in a directory. A number identifies the directory: a renamed directory keeps its number."""
Entries: TypeAlias = dict[Entry, int]
"""The number of the file or directory of each entry."""

_ROOT = 0


@frozen
class _Renaming:
    """One unsynced change of names: the file `number` loses the entry `gone` and gets the entry `given`."""

    directory: int
    number: int
    gone: Entry | None = None
    given: Entry | None = None


@frozen
class WrittenFile:
    """A file that was written on this disk, by its number."""

    number: int

    def close(self) -> None:
        """See `OpenedFile.close`. This disk counts no open files."""


@frozen
class DiskOperation:
    """One requested operation."""

    name: str
    path: str
    bytes: int = 0


@mutable
class InjectedFault:
    """A fault to inject: at the operation of this number (from 0), after this many bytes of it.

    Without an `error`, the power is cut: before the operation if `keep_bytes` is None. With `is_lasting`, every later
    operation fails in the same way.
    """

    at: int
    keep_bytes: int | None = None
    error: int | None = None
    is_lasting: bool = False


@mutable
class CrashDisk:
    """`FileOps` in memory. Copies are independent. `now_s` is the clock that dates files."""

    files: dict[int, File] = field(default_factory=lambda: {_ROOT: File(data=b"", durable=b"", is_dir=True)})
    names_now: Names = field(default_factory=lambda: {"": _ROOT})
    entries_durable: Entries = field(default_factory=Entries)
    pending: list[_Renaming] = field(default_factory=list[_Renaming])
    steps: list[DiskOperation] = field(default_factory=list[DiskOperation])
    fault: InjectedFault | None = None
    now_s: float = 0.0
    boot: int = 0
    """The number of the simulated boot: a power loss begins another one."""

    def copy(self) -> "CrashDisk":
        """Return an equal disk without a fault to inject and without recorded steps."""
        entries, pending = dict(self.entries_durable), list(self.pending)
        return CrashDisk(dict(self.files), dict(self.names_now), entries, pending, now_s=self.now_s, boot=self.boot)

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        """See `FileOps.read`."""
        data = self._file(path).data[offset:]
        return data if bytes_max is None else data[:bytes_max]

    def read_with_stat(self, path: str, offset: int) -> tuple[bytes, FileStat]:
        """See `FileOps.read_with_stat`."""
        data, found = self.read(path, offset), self.stat(path)
        assert found is not None, "it was read"
        return data, found

    def stat(self, path: str) -> FileStat | None:
        """See `FileOps.stat`."""
        if path not in self.names_now:
            return None
        number = self.names_now[path]
        file = self.files[number]
        mode = stat.S_IFDIR | 0o700 if file.is_dir else stat.S_IFREG | 0o600
        return FileStat(size=len(file.data), device=1, inode=number, modified_s=file.modified_s, mode=mode)

    def own_stat(self, path: str) -> FileStat | None:
        """See `FileOps.own_stat`."""
        return self.stat(path)

    def is_link(self, path: str) -> bool:  # noqa: ARG002 — there are no links here
        """See `FileOps.is_link`."""
        return False

    def is_writable(self, path: str) -> bool:  # noqa: ARG002 — everything is
        """See `FileOps.is_writable`."""
        return True

    def names(self, path: str) -> list[str]:
        """See `FileOps.names`."""
        if path in self.names_now and not self._file(path).is_dir:
            raise UnreadableError(errno.ENOTDIR, "not a directory", path)
        prefix = f"{path}/" if path else ""
        below = (name[len(prefix) :] for name in self.names_now if name and name.startswith(prefix))
        return [name for name in below if "/" not in name]

    def modified(self, path: str) -> dict[str, float]:
        """See `FileOps.modified`."""
        prefix = f"{path}/" if path else ""
        return {name: self.files[self.names_now[prefix + name]].modified_s for name in self.names(path)}

    def contents(self, path: str) -> dict[str, bytes]:
        """See `FileOps.contents`."""
        prefix = f"{path}/" if path else ""
        found = ((name, self.files[self.names_now[prefix + name]]) for name in self.names(path))
        return {name: file.data for name, file in found if not file.is_dir}

    def make_root(self) -> None:
        """See `FileOps.make_root`. The root of this disk always exists."""

    def make_dir(self, path: str) -> bool:
        """See `FileOps.make_dir`."""
        if path in self.names_now:
            return False
        self._step("make_dir", path)
        is_missing = path not in self.names_now
        if is_missing:
            self._create(path, File(data=b"", durable=b"", is_dir=True, modified_s=self.now_s))
        return is_missing

    def write(self, path: str, data: bytes) -> None:
        """See `FileOps.write`."""
        self._write("write", path, data)

    def create(self, path: str, data: bytes) -> WrittenFile:
        """See `FileOps.create`."""
        self._write("create", path, data)
        return WrittenFile(number=self.names_now[path])

    def _write(self, name: str, path: str, data: bytes) -> None:
        exists = FileExistsError(errno.EEXIST, "exists")
        if path in self.names_now:
            self._step(name, path)
            raise exists

        def write(kept: bytes) -> None:
            # Another process may have been faster: the disk decides at the operation itself.
            if path in self.names_now:
                raise exists
            self._create(path, self._file_of(kept))

        self._step(name, path, data, write)

    def append(self, path: str, data: bytes) -> OpenedFile:
        """See `FileOps.append`."""
        old = self._file(path)
        self._step("append", path, data, lambda kept: self._put(path, self._written(old, len(old.data), kept)))
        return WrittenFile(number=self._number_of(path))

    def write_at(self, path: str, offset: int, data: bytes) -> int:
        """See `FileOps.write_at`."""
        if path not in self.names_now:
            self._step("write_at", path)
            self._create(path, self._file_of(b"\0" * offset + data))
            return 0
        old = self._file(path)

        def write(kept: bytes) -> None:
            # Neither a kill nor a power loss splits a write inside one sector.
            if kept == data or len(kept) >= _SECTOR_BYTES:
                whole = old.data[:offset] + kept + old.data[offset + len(kept) :]
                self._put(path, self._file_of(whole, old))

        self._step("write_at", path, data, write)
        return len(old.data)

    def truncate(self, path: str, size: int) -> None:
        """See `FileOps.truncate`."""
        self._step("truncate", path)
        old = self._file(path)
        self._put(path, self._file_of(old.data[:size], old, None if old.dropped is None else old.dropped[:size]))

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:  # noqa: ARG002 — no cache
        """See `FileOps.sync`."""
        try:
            self._step("sync", path)
        except OSError:
            with suppress(FileNotFoundError):
                self.drop_unsynced(path, opened)
            raise
        number = self._number_of(path, opened)
        self.files[number] = replace(self.files[number], durable=self.files[number].synced)

    def drop_unsynced(self, path: str, opened: OpenedFile | None = None) -> None:
        """Have the effect of a failed sync of a file or a directory: what is not on the disk yet will not reach it."""
        number = self._number_of(path, opened)
        self.files[number] = replace(self.files[number], dropped=self.files[number].durable)
        self.pending = [change for change in self.pending if change.directory != number]

    def sync_dir(self, path: str, *, full: bool = False) -> None:  # noqa: ARG002 — see sync
        """See `FileOps.sync_dir`."""
        self._file(path)
        self._step("sync_dir", path)
        directory = self.names_now[path]
        for change in [change for change in self.pending if change.directory == directory]:
            _apply(self.entries_durable, change)
        self.pending = [change for change in self.pending if change.directory != directory]

    def rename(self, source: str, target: str) -> None:
        """See `FileOps.rename`. One step: no crash leaves a file under both names or under none."""
        file = self._file(source)
        if target in self.names_now and (file.is_dir or self._file(target).is_dir):
            raise OSError(errno.ENOTEMPTY, "a directory in the way")
        directory, _ = self._entry(target)
        self._step("rename", target)
        self._file(source)
        number, gone = self.names_now[source], self._entry(source)
        below = [path for path in self.names_now if path == source or path.startswith(f"{source}/")]
        for path in below:
            self.names_now[target + path[len(source) :]] = self.names_now.pop(path)
        self.pending.append(_Renaming(directory=directory, number=number, gone=gone, given=self._entry(target)))

    def unlink(self, path: str) -> None:
        """See `FileOps.unlink`."""
        if self._file(path).is_dir:
            raise IsADirectoryError(errno.EISDIR, "a directory")
        self._step("unlink", path)
        self._take(path)

    def remove_dir(self, path: str) -> None:
        """See `FileOps.remove_dir`."""
        self._file(path)
        if self.names(path):
            raise OSError(errno.ENOTEMPTY, "not empty")
        self._step("remove_dir", path)
        self._take(path)

    def boot_id(self) -> str:
        """See `FileOps.boot_id`."""
        return f"boot {self.boot}"

    def renew(self, path: str) -> None:
        """Make a file as young as the clock says, as somebody may who touches it. This counts as no operation."""
        self._put(path, replace(self._file(path), modified_s=self.now_s))

    def survivors(self, kept_changes: Iterable[Sequence[bool]] | None = None) -> Iterator["CrashDisk"]:
        """Yield the distinct disks that a power loss may leave: every one while they are few, else a fixed selection.

        `kept_changes` are the combinations of changes of names to try, with a flag for each change in `pending`.
        """
        seen: set[frozenset[tuple[str, bytes]]] = set()
        whole = {number: _after_loss(file, file.data) for number, file in self.files.items()}
        torn = {
            number: {data: _after_loss(file, data) for data in surviving_bytes(file)}
            for number, file in self.files.items()
            if file.data != file.durable
        }
        for kept in kept_changes or combinations([(True, False)] * len(self.pending)):
            entries = dict(self.entries_durable)
            for change in itertools.compress(self.pending, kept):
                _apply(entries, change)
            names = _reachable(entries, self.files)
            paths = {number: path for path, number in names.items()}
            present = {number: paths[number] for number in torn if number in paths}
            untorn = frozenset((path, whole[number].data) for path, number in names.items() if number not in torn)
            reached = {entry: number for entry, number in entries.items() if entry[0] in paths}
            for versions in combinations([list(torn[number]) for number in present]):
                state = untorn.union(zip(present.values(), versions, strict=True))
                if state not in seen:
                    seen.add(state)
                    files = {number: whole[number] for number in paths}
                    files |= {number: torn[number][data] for number, data in zip(present, versions, strict=True)}
                    yield CrashDisk(files, dict(names), dict(reached), now_s=self.now_s, boot=self.boot + 1)

    def _file(self, path: str) -> File:
        return self.files[self._number_of(path)]

    def _number_of(self, path: str, opened: OpenedFile | None = None) -> int:
        if isinstance(opened, WrittenFile):
            return opened.number
        if path not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, "no such file")
        return self.names_now[path]

    def _put(self, path: str, file: File) -> None:
        self.files[self._number_of(path)] = file

    def _file_of(self, data: bytes, old: File | None = None, dropped: bytes | None = None) -> File:
        """Return a file that was written now; the durable bytes of the old one remain."""
        durable = old.durable if old is not None else b""
        return File(data=data, durable=durable, modified_s=self.now_s, dropped=dropped)

    def _written(self, old: File, offset: int, data: bytes) -> File:
        """Return a file with bytes written at an offset; the next sync writes them, even after a failed one."""
        dropped = None if old.dropped is None else _with_bytes(old.dropped, offset, data)
        return self._file_of(_with_bytes(old.data, offset, data), old, dropped)

    def _create(self, path: str, file: File) -> None:
        self._entry(path)
        number = max(self.files) + 1
        self.files[number] = file
        self._give(path, number)

    def _entry(self, path: str) -> Entry:
        """Return a path as an entry of the directory that its parent's path names now."""
        parent, _, name = path.rpartition("/")
        if parent not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, "no such directory")
        return self.names_now[parent], name

    def _give(self, path: str, number: int) -> None:
        entry = self._entry(path)
        self.names_now[path] = number
        self.pending.append(_Renaming(directory=entry[0], number=number, given=entry))

    def _take(self, path: str) -> None:
        entry = self._entry(path)
        self.pending.append(_Renaming(directory=entry[0], number=self.names_now.pop(path), gone=entry))

    def _step(self, name: str, path: str, data: bytes = b"", write: Callable[[bytes], None] = lambda _: None) -> None:
        """Count an operation and inject its fault, if there is one; `write` receives the bytes that are kept of it."""
        self.steps.append(DiskOperation(name=name, path=path, bytes=len(data)))
        fault, number = self.fault, len(self.steps) - 1
        if fault is None or not (number == fault.at or (fault.is_lasting and number > fault.at)):
            write(data)
            return
        if fault.keep_bytes is not None:
            write(data[: fault.keep_bytes])
        if fault.error is None:
            raise PowerCutError
        raise OSError(fault.error, "made to fail")


class ThreadLocks:
    """Session locks for one process without files."""

    def __init__(self) -> None:
        self._locks: dict[SessionId, threading.RLock] = {}
        self._upkeep = threading.RLock()

    def hold(
        self,
        session: SessionId,
        *,
        since_s: float | None = None,  # noqa: ARG002 — this lock has no time limit
    ) -> AbstractContextManager[None]:
        """See `Locks.hold`."""
        return _held(self._locks.setdefault(session, threading.RLock()))

    def hold_upkeep(self) -> AbstractContextManager[None]:
        """See `Locks.hold_upkeep`."""
        return _held(self._upkeep)

    def is_held(self, session: SessionId) -> bool:
        """See `Locks.is_held`. A lock that the calling thread holds counts as free."""
        lock = self._locks.get(session, threading.RLock())
        is_free = lock.acquire(blocking=False)
        if is_free:
            lock.release()
        return not is_free


@contextmanager
def _held(lock: "threading.RLock") -> Generator[None]:
    with lock:
        yield


def _with_bytes(old: bytes, offset: int, data: bytes) -> bytes:
    return old[:offset].ljust(offset, b"\0") + data + old[offset + len(data) :]


def combinations(choices: Sequence[Sequence[T]]) -> Iterator[tuple[T, ...]]:
    """Yield every combination of a choice for each place, or a selection if they are more than `COMBINATIONS_MAX`.

    The selection is the same at each call. It has each choice of each place while the other places have their first
    choice, and while they have their second one, if they have two; the rest is drawn at random.
    """
    if math.prod(map(len, choices)) <= COMBINATIONS_MAX:
        yield from itertools.product(*choices)
        return
    first, second = tuple(one[0] for one in choices), tuple(one[:2][-1] for one in choices)
    found = {first: None, second: None}
    for at, options in enumerate(choices):
        found |= {(*base[:at], option, *base[at + 1 :]): None for option in options for base in (first, second)}
    chance = random.Random(len(choices))
    while len(found) < COMBINATIONS_MAX:
        found[tuple(chance.choice(options) for options in choices)] = None
    yield from found


def surviving_bytes(file: File) -> list[bytes]:
    """Return what a power loss may leave of a file: the old bytes, the new ones, or a part of them and then NULs."""
    if not file.synced.startswith(file.durable):
        return [file.durable, file.synced]
    left = [file.synced, file.durable]
    for cut in [b"", *cuts_of(file.synced[len(file.durable) :])]:
        part = file.durable + cut
        left.append(part)
        # A single NUL is a flipped byte, not a torn write: disks lose more at once.
        if len(file.synced) - len(part) > 1:
            left.append(part.ljust(len(file.synced), b"\0"))
    return list(dict.fromkeys(left))


def cuts_of(data: bytes) -> list[bytes]:
    """Return the prefixes at which a write may be cut: at line ends, at sectors, and one byte before the end."""
    ends = {at + 1 for at, byte in enumerate(data) if byte == ord("\n")}
    ends |= set(range(_SECTOR_BYTES, len(data), _SECTOR_BYTES)) | {len(data) - 1}
    return [data[:end] for end in sorted(ends) if 0 < end < len(data)]


def _apply(entries: Entries, change: _Renaming) -> None:
    # A later change of another directory may be on the disk first: then the entry is that of another file.
    if change.gone is not None and entries.get(change.gone) == change.number:
        del entries[change.gone]
    if change.given is not None:
        entries[change.given] = change.number


def _reachable(entries: Entries, files: dict[int, File]) -> Names:
    """Return the paths that can be reached from the root: the entries of a lost directory are lost with it."""
    below: dict[int, list[tuple[str, int]]] = {}
    for (directory, name), number in entries.items():
        below.setdefault(directory, []).append((name, number))
    kept: Names = {"": _ROOT}
    waiting = [("", _ROOT)]
    while waiting:
        path, directory = waiting.pop()
        for name, number in below.get(directory, ()):
            inner = f"{path}/{name}" if path else name
            kept[inner] = number
            if files[number].is_dir:
                waiting.append((inner, number))
    return kept


def _after_loss(file: File, data: bytes) -> File:
    """Return a file of which a power loss left these bytes."""
    return replace(file, data=data, durable=data, dropped=None)
