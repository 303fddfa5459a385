"""A collection on a disk that has no room for anything new: it frees space all the same."""

import errno
import os
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.support.crash import opened, session_id
from tests.support.sweep import DAY_S, DAYS, assert_whole, dated_disk, paths, settle, started, swept, write

from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.service.retention.collect import CollectCommand, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.store.ports.maintenance import Kind
from interlock.testing.harness import Harness, linear_workflow
from interlock.testing.power_cut import CrashDisk, InjectedFault, ThreadLocks

A, B = session_id("a"), session_id("b")
TEMP = layout.temp("snapshots/x.json", "0123456789abcdef")
ANY = 1_000_000


@mutable
class Full(CrashDisk):
    """A disk on which nothing can be made and nothing can grow until so many files were removed."""

    removals: int = ANY

    def _step(self, name: str, path: str, data: bytes = b"", write: Callable[[bytes], None] = lambda _: None) -> None:
        if name in {"make_dir", "write", "create", "append"} and self.removals > 0:
            raise OSError(errno.ENOSPC, "made to fail")
        self.removals -= name == "unlink"
        CrashDisk._step(self, name, path, data, write)


def full(disk: CrashDisk, *, removals: int = ANY) -> Full:
    copy = disk.copy()
    return Full(copy.files, copy.names_now, copy.entries_durable, copy.pending, now_s=copy.now_s, removals=removals)


class FileLocks(ThreadLocks):
    """Locks that need a file below the data directory, as those of the operating system do."""

    def __init__(self, disk: CrashDisk) -> None:
        super().__init__()
        self._disk = disk

    def hold(self, session: SessionId, *, since_s: float | None = None) -> AbstractContextManager[None]:  # noqa: ARG002
        return self._held(layout.lock(session))

    def hold_upkeep(self) -> AbstractContextManager[None]:
        return self._held(layout.UPKEEP_LOCK)

    @contextmanager
    def _held(self, path: str) -> Generator[None]:
        if path not in self._disk.names_now:
            self._disk.write(path, b"")
        yield


def begun() -> CrashDisk:
    """A data directory with keys; `a` has expired and `b` has not. Whoever locked something left its lock file."""
    disk = dated_disk()
    opened(disk).ensure_keys()
    started(disk, "a", artifact="a")
    disk.now_s += 95 * DAY_S
    started(disk, "b", artifact="b")
    for path in (layout.UPKEEP_LOCK, layout.lock(A), layout.lock(B), TEMP):
        write(disk, path)
    disk.now_s += 2 * DAY_S
    return settle(disk)


def collected_once() -> CrashDisk:
    """The same after a collection: what was `a` is in the trash."""
    disk = begun()
    swept(disk)
    assert len(paths(disk, layout.TRASHED_SESSIONS)) == 5
    return settle(disk)


@pytest.mark.inv("GC-12")
def test_two_collections_on_a_full_disk_remove_what_expired_for_good_and_nothing_else() -> None:
    disk = full(begun())
    young = opened(disk).load(B)
    assert young is not None
    first = {kind for kind, _ in swept(disk, locks=FileLocks(disk)).taken.sizes()}
    assert first == {Kind.SESSION, Kind.TEMP, Kind.ARTIFACT}
    assert {kind for kind, _ in swept(disk, locks=FileLocks(disk)).taken.sizes()} == {Kind.TRASH}
    assert paths(disk, "trash") == set()
    assert opened(disk).sessions() == (B,)
    assert_whole(disk, [young])


@pytest.mark.inv("GC-12")
def test_what_is_in_the_trash_goes_before_the_rest_of_the_trash_is_made() -> None:
    disk = collected_once()
    for path in sorted(paths(disk, "trash/artifacts")):
        disk.unlink(path)
    disk.remove_dir("trash/artifacts")
    for removals, is_full in ((1, False), (ANY, True)):
        copy = full(disk, removals=removals)
        failure = swept(copy).failure
        assert (failure.kind if failure is not None else None) == (FailureKind.FULL if is_full else None)
        assert paths(copy, layout.TRASHED_SESSIONS) == set()


@pytest.mark.inv("GC-12")
def test_without_a_lock_file_room_is_made_first_and_then_the_lock_is_taken() -> None:
    disk = collected_once()
    disk.unlink(layout.UPKEEP_LOCK)
    disk = full(disk, removals=1)
    swept(disk, locks=FileLocks(disk))
    assert paths(disk, layout.TRASHED_SESSIONS) == set()
    assert layout.UPKEEP_LOCK in disk.names_now
    assert opened(disk).sessions() == (B,)


@pytest.mark.inv("GC-12", "GC-7")
def test_without_a_lock_file_nothing_goes_beside_a_damaged_session() -> None:
    disk = collected_once()
    disk.unlink(layout.UPKEEP_LOCK)
    disk.append(layout.manifest(B), b"?\n")
    disk = full(disk)
    before = paths(disk)
    with pytest.raises(StoreFailureError):
        swept(disk, locks=FileLocks(disk))
    assert paths(disk) == before


@pytest.mark.inv("GC-12", "GC-6")
def test_what_a_start_left_on_a_full_disk_does_not_stop_a_collection() -> None:
    disk = begun()
    left = {session_id(name) for name in ("c", "d")}
    for session in left:
        disk.make_dir(layout.session_dir(session))
    disk.now_s += 2 * DAY_S
    disk = full(disk)
    found = swept(disk, locks=FileLocks(disk))
    assert {(one.session, one.why) for one in found.skipped} == {(session, "full") for session in left}
    assert [one.session for one in found.taken.sessions] == [A]
    disk.removals = 0
    later = swept(disk, locks=FileLocks(disk))
    assert {item.session for item in later.taken.items if item.kind is Kind.LEFTOVER} == left


@pytest.mark.inv("GC-9")
def test_a_collection_that_an_error_ends_leaves_nothing_half_and_a_later_one_finishes() -> None:
    probe = begun()
    swept(probe)
    for at in range(len(probe.steps)):
        disk = begun()
        young = opened(begun()).load(B)
        disk.fault = InjectedFault(at=at, error=errno.EIO)
        before = opened(disk).sessions()
        try:
            found = swept(disk)
        except StoreFailureError:
            assert opened(disk).sessions() == before
        else:
            assert found.needs_attention
            assert set(before) - {one.session for one in found.taken.sessions} == set(opened(disk).sessions())
        disk.fault = None
        assert young is not None
        assert_whole(disk, [young])
        swept(disk)
        swept(disk)
        assert opened(disk).sessions() == (B,)
        assert paths(disk, layout.TRASHED_SESSIONS) == set()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte. Only a superuser can mount one, and not everywhere."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(place)]
    try:
        is_mounted = hasattr(os, "geteuid") and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        is_mounted = False
    if not is_mounted:
        pytest.skip("NOT TESTED: this user cannot mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.inv("GC-12")
def test_a_data_directory_that_filled_its_disk_is_collected_and_goes_on(small: Path) -> None:
    root = small / "data"
    harness = Harness.on_disk(root, linear_workflow("test.abc", "a", "b", "c"))
    for number in range(10):
        artifacts = [{"kind": "report", "of": number, "text": "x" * 20_000}]
        assert harness.advance(harness.start("test.abc"), None, output={"artifacts": artifacts}).code is None
    filler = small / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(bytes(2_000_000))
    assert harness.start("test.abc").is_error
    collector = LocalCollector(root)
    now_s = (root / "sessions").stat().st_mtime + (DAYS + 1) * DAY_S
    command = CollectCommand(days=DAYS, now_s=now_s)
    taken = collect(collector, collector.retention_pins, command).taken
    assert len(taken.sessions) > 5
    collect(collector, collector.retention_pins, command)
    assert harness.start("test.abc").code is None
