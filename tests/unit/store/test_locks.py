"""The session lock is of the file that the path names, and can be asked for without taking it."""

import errno
import fcntl
import os
import stat
import time
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from tests.support.crash import advance_plan, apply, run_id, session_id, start_plan
from tests.support.server import tree

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.kernel.errors import ErrorCode
from interlock.service.ports import ReadPorts
from interlock.service.run.plans import Plans
from interlock.store.local import layout, locks
from interlock.store.local.files import OsFiles
from interlock.store.local.locks import OsLocks, is_held
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import SessionBusyError
from interlock.testing.harness import Harness, linear_workflow

A = session_id("a")


@pytest.mark.inv("LOCK-4", "GC-6")
def test_a_lock_that_went_away_with_its_directory_is_no_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / layout.lock(A)
    path.parent.mkdir(parents=True)
    lock, moves = fcntl.flock, list[Path]()

    def lock_and_lose(handle: int, operation: int) -> None:
        lock(handle, operation)
        if not moves:
            moves.append(path.parent.rename(tmp_path / "gone"))
            path.parent.mkdir()

    monkeypatch.setattr(fcntl, "flock", lock_and_lose)
    with OsLocks(tmp_path).hold(A):
        assert moves
        assert is_held(tmp_path, A), "the file that the path names now"
    assert not is_held(tmp_path, A)


@pytest.mark.inv("LOCK-4")
@pytest.mark.parametrize("is_imported", [True, False])
def test_a_lock_excludes_one_of_the_library_for_platforms_without_flock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_imported: bool
) -> None:
    path = tmp_path / layout.lock(A)
    path.parent.mkdir(parents=True)
    if not is_imported:
        monkeypatch.setattr(locks, "fcntl", None)
    other = FileLock(path)
    with OsLocks(tmp_path).hold(A), pytest.raises(Timeout):
        other.acquire(timeout=0)
    with other.acquire(timeout=0), pytest.raises(SessionBusyError), OsLocks(tmp_path, wait_ms_max=1).hold(A):
        pass
    with OsLocks(tmp_path).hold(A):
        pass


@pytest.mark.inv("LOCK-7")
def test_an_unlock_that_fails_frees_the_lock_and_alters_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(LocalStore(tmp_path), start_plan())
    flock, failed = fcntl.flock, list[int]()

    def fail_to_unlock(handle: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN:
            failed.append(handle)
            raise OSError(errno.EIO, "made to fail")
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", fail_to_unlock)
    store = LocalStore(tmp_path)
    advanced = apply(store, advance_plan(store, root_node(run_id("a")), Request(notes="Done.")))
    assert failed
    assert not is_held(tmp_path, A)
    assert LocalStore(tmp_path).load(A) == advanced


@pytest.mark.inv("LOCK-6")
def test_the_wait_for_a_lock_counts_from_the_arrival_of_the_call(tmp_path: Path) -> None:
    (tmp_path / layout.lock(A)).parent.mkdir(parents=True)
    waiter, waited = OsLocks(tmp_path, wait_ms_max=400), list[int]()
    with OsLocks(tmp_path).hold(A):
        arrived_s = time.monotonic()  # noqa: TID251 — as the server takes it
        for _ in range(5):
            with pytest.raises(SessionBusyError) as busy, waiter.hold(A, since_s=arrived_s):
                pass
            waited.append(busy.value.waited_ms)
    assert 400 <= waited[0] <= waited[-1]
    assert waited[-1] < 5 * 400, "one after the other they would take this long"


@pytest.mark.inv("LOCK-6")
def test_a_call_that_spent_its_time_in_a_queue_still_takes_a_lock_that_is_free(tmp_path: Path) -> None:
    (tmp_path / layout.lock(A)).parent.mkdir(parents=True)
    waiter = OsLocks(tmp_path, wait_ms_max=1)
    arrived_s = time.monotonic()  # noqa: TID251 — as the server takes it
    with OsLocks(tmp_path).hold(A), pytest.raises(SessionBusyError), waiter.hold(A, since_s=arrived_s):
        pass
    with waiter.hold(A, since_s=arrived_s):
        assert is_held(tmp_path, A)


@pytest.mark.damages
@pytest.mark.inv("LOCK-6")
def test_reading_what_looks_damaged_waits_for_the_lock_no_longer_than_from_the_arrival_of_the_call(
    tmp_path: Path,
) -> None:
    apply(LocalStore(tmp_path), start_plan())
    manifest = tmp_path / layout.manifest(A)
    manifest.write_bytes(manifest.read_bytes().replace(b"sha256", b"sha257", 1))
    wait_ms = 10_000
    arrived_s = time.monotonic() - wait_ms / 1_000  # noqa: TID251 — as the server takes it
    store = LocalStore(tmp_path, locks=OsLocks(tmp_path, wait_ms_max=wait_ms))
    ports = ReadPorts(reader=store, key_ring=store, plans=Plans(store), since_s=arrived_s)
    with OsLocks(tmp_path).hold(A), pytest.raises(SessionBusyError) as busy:
        ports.load(A)
    assert wait_ms <= busy.value.waited_ms < 2 * wait_ms


@pytest.mark.inv("HOUSE-4")
def test_every_directory_that_is_made_for_the_data_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        OsFiles(tmp_path / "a" / "b" / "data").make_root()
    finally:
        os.umask(before)
    for made in ("a", "a/b", "a/b/data"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o700


@pytest.mark.inv("DOC-1")
def test_asking_whether_a_session_is_held_leaves_no_trace_and_needs_no_lock_file(tmp_path: Path) -> None:
    assert is_held(tmp_path, A) is False
    path = tmp_path / layout.lock(A)
    path.parent.mkdir(parents=True)
    assert is_held(tmp_path, A) is False
    assert not path.exists()
    path.touch()
    before = tree(tmp_path)
    assert is_held(tmp_path, A) is False
    assert tree(tmp_path) == before
    assert os.listdir(path.parent) == [".lock"]  # noqa: PTH208


@pytest.mark.inv("FAIL-8")
def test_a_file_system_without_locks_is_named_and_nobody_is_said_to_hold_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a"))
    first = harness.start("test.abc")
    monkeypatch.setattr(fcntl, "flock", flock)
    session = harness.session_of(first)
    assert is_held(tmp_path, session) is None
    assert not OsLocks(tmp_path).is_held(session)
    refused = harness.advance(first)
    assert refused.code is ErrorCode.STORE_FAILED
    assert "The file system that holds the data directory has no locks" in refused["message"]
    assert refused["retry"] == {"kind": "not_retryable"}
