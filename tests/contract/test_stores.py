"""Every store passes the one suite; what only a disk and processes have is tested beside it."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from tests.support.crash import advance_plan, apply, opened, run_id, session_id, stamps, start_plan
from tests.support.sweep import OneHolder

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.kernel.budgets import REWRITE_AFTER_S
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.store.local import layout
from interlock.store.local.locks import OsLocks
from interlock.store.local.session import session_log
from interlock.store.local.session.held import LocalSessionLock
from interlock.store.local.store import LocalStore
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.errors import KeyRingDamagedError, SessionBusyError, SessionUnhealthyError, StoreFailureError
from interlock.store.ports.store import Store
from interlock.testing.power_cut import CrashDisk
from interlock.testing.store_contract import StoreContract
from interlock.testing.upkeep_contract import UpkeepContract

A = session_id("a")


def both_plans() -> tuple[AppendPlan, AppendPlan]:
    store = opened(CrashDisk())
    start = start_plan()
    apply(store, start)
    evidence = Request(notes="Done.", artifacts=({"kind": "report"},))
    return start, advance_plan(store, root_node(run_id("a")), evidence)


Opener = Callable[[Path], Store]
"""Opens the store of a directory; the same directory again is the same truth."""


@cache
def memory(_root: Path) -> Store:
    return MemoryStore()


@cache
def crash_disk(_root: Path) -> tuple[CrashDisk, OneHolder]:
    return CrashDisk(), OneHolder()


def on_crash_disk(root: Path) -> Store:
    disk, locks = crash_disk(root)
    return LocalStore(Path("/nowhere"), files=disk, locks=locks, now_s=lambda: disk.now_s)


KINDS: dict[str, Opener] = {
    "memory": memory,
    "local": LocalStore,
    "local on a crash disk": on_crash_disk,
}
"""Every kind of store. A new one is one more line."""


@pytest.mark.inv("LOCK-2", "APP-4", "KEY-1", "KEY-2", "GC-1", "GC-2", "GC-4", "GC-6", "GC-10", "HOUSE-2")
class TestEveryStore(StoreContract, UpkeepContract):
    @pytest.fixture(autouse=True, params=KINDS)
    def _kind(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self.opener = KINDS[request.param]
        self.roots = (tmp_path / f"data{number}" for number in count(1))

    def make_store(self) -> Store:
        self.root = next(self.roots)
        return self.opener(self.root)

    def reopen(self, store: Store) -> Store:
        del store
        return self.opener(self.root)

    def plans(self) -> tuple[AppendPlan, AppendPlan]:
        return both_plans()

    def stamps(self) -> Stamps:
        return stamps()


@pytest.mark.inv("HOUSE-2")
def test_the_fold_in_memory_equals_a_replay_of_the_stored_bytes() -> None:
    store, (start, advance) = MemoryStore(), both_plans()
    with store.hold(start.session) as lock:
        store.append(lock, start, stamps())
        store.append(lock, advance, stamps())
    assert store.replayed(start.session) == store.load(start.session)
    assert len(store.stored_log(start.session).segments) == 2


@pytest.mark.inv("CRASH-1")
def test_the_stored_log_holds_no_segment_that_an_interrupted_append_left(tmp_path: Path) -> None:
    store, (start, advance) = LocalStore(tmp_path), both_plans()
    apply(store, start)
    written = store.stored_log(start.session)
    assert written.is_attested
    apply(store, advance)
    segment = max((tmp_path / layout.events_dir(start.session)).iterdir())
    orphan = segment.read_bytes()
    apply(LocalStore(tmp_path / "other"), start)
    (tmp_path / "other" / layout.events_dir(start.session) / segment.name).write_bytes(orphan)
    left = LocalStore(tmp_path / "other").stored_log(start.session)
    assert not left.is_attested
    assert len(left.segments) == len(written.segments) == 1


@pytest.mark.inv("FOLLOW-1", "LOCK-5")
def test_two_stores_on_one_directory_follow_each_other(tmp_path: Path) -> None:
    one, other = LocalStore(tmp_path), LocalStore(tmp_path)
    apply(one, start_plan())
    seen = other.load(A)
    assert seen == one.load(A)
    advanced = apply(other, advance_plan(other, root_node(run_id("a")), Request(notes="Done.")))
    assert one.load(A) == advanced
    refused = apply(one, advance_plan(one, advanced.runs[run_id("a")].tip or root_node(run_id("a")), Request()))
    assert other.load(A) == refused == LocalStore(tmp_path).load(A)


@pytest.mark.inv("LOCK-3")
def test_a_session_that_is_held_elsewhere_is_busy_and_free_afterwards(tmp_path: Path) -> None:
    one = LocalStore(tmp_path)
    other = LocalStore(tmp_path, locks=OsLocks(tmp_path, wait_ms_max=150))
    apply(one, start_plan())
    with one.hold(A), pytest.raises(SessionBusyError) as busy:
        apply(other, start_plan())
    assert busy.value.waited_ms >= 150
    apply(other, start_plan())


HOLDER = """
import sys
from pathlib import Path
from interlock.kernel.ids import SessionId
from interlock.store.local.store import LocalStore
with LocalStore(Path(sys.argv[1])).hold(SessionId(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.inv("LOCK-4")
def test_the_lock_of_a_killed_process_is_free_at_once_and_garbage_in_its_file_locks_nobody_out(tmp_path: Path) -> None:
    apply(LocalStore(tmp_path), start_plan())
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), A], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        busy = LocalStore(tmp_path, locks=OsLocks(tmp_path, wait_ms_max=30))
        with pytest.raises(SessionBusyError):
            apply(busy, start_plan())
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    apply(busy, start_plan())
    (tmp_path / layout.lock(A)).write_bytes(b"999999 garbage\n")
    apply(busy, start_plan())
    assert (tmp_path / layout.lock(A)).exists()


@pytest.mark.inv("FOLLOW-2")
@pytest.mark.parametrize("how", ["another file", "cut back", "gone"])
def test_a_manifest_that_is_no_longer_the_same_is_read_from_the_start(tmp_path: Path, how: str) -> None:
    store = LocalStore(tmp_path)
    started = apply(store, start_plan())
    path = tmp_path / layout.manifest(A)
    old = path.read_bytes()
    apply(store, advance_plan(store, root_node(run_id("a")), Request(notes="Done.")))
    match how:
        case "another file":
            path.unlink()
            path.write_bytes(old)
        case "cut back":
            path.write_bytes(old)
        case _:
            path.unlink()
    for reader in (store, LocalStore(tmp_path)):
        with pytest.raises(SessionUnhealthyError, match="acknowledged bytes are missing"):
            reader.load(A)
    # Without its mark it is a copy of an earlier state.
    (tmp_path / layout.settled(A)).unlink()
    assert store.load(A) == (None if how == "gone" else started)


@pytest.mark.inv("FOLLOW-4")
def test_a_forgotten_session_gives_the_same_answers_as_a_remembered_one(monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(CrashDisk())
    monkeypatch.setattr(session_log, "SESSIONS_KEPT_BYTES_MAX", 3 * log_bytes(store, "measured"))
    stored = {name: apply(store, start_plan(name)) for name in ("a", "b", "c", "d", "e", "f")}
    assert all(store.load(session_id(name)) == session for name, session in stored.items())


@pytest.mark.inv("FOLLOW-4")
@pytest.mark.damages
def test_sessions_are_remembered_by_the_size_of_their_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    each = log_bytes(store, "s0")
    names = [f"s{number}" for number in range(1, 60)]
    for name in names:
        apply(store, start_plan(name))
    # What a process remembers it does not read again, so it does not see the damage.
    for name in ("s0", *names):
        for segment in (tmp_path / layout.events_dir(session_id(name))).iterdir():
            segment.write_bytes(segment.read_bytes()[:-2] + b" \n")
    assert all(store.load(session_id(name)) is not None for name in ("s0", *names))
    monkeypatch.setattr(session_log, "SESSIONS_KEPT_BYTES_MAX", 3 * each + each // 2)
    apply(store, start_plan("next"))
    assert [name for name in ("s0", *names) if is_remembered(store, name)] == names[-2:]
    monkeypatch.setattr(session_log, "SESSIONS_KEPT_BYTES_MAX", each // 2)
    apply(store, start_plan("last"))
    assert not is_remembered(store, names[-1])


def log_bytes(store: LocalStore, name: str) -> int:
    """Start a session and return the size of its log, as the store counts it."""
    apply(store, start_plan(name))
    with store.hold(session_id(name)) as lock:
        assert isinstance(lock, LocalSessionLock)
        return lock.verified().log_bytes


def is_remembered(store: LocalStore, name: str) -> bool:
    """Say whether a session can be loaded although its segments are damaged."""
    try:
        return store.load(session_id(name)) is not None
    except SessionUnhealthyError:
        return False


@pytest.mark.inv("FOLLOW-1")
def test_a_known_session_costs_one_look_and_one_short_read() -> None:
    disk = CrashDisk()
    store = opened(disk)
    apply(store, start_plan())
    before = len(disk.steps)
    for _ in range(3):
        store.load(A)
    assert len(disk.steps) == before


def first_keys(root: str) -> bytes:
    return LocalStore(Path(root)).ensure_keys().current


@pytest.mark.inv("KEY-3", "KEY-4")
def test_six_first_starts_at_once_agree_on_one_private_key_ring(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with multiprocessing.get_context("spawn").Pool(6) as pool:
        keys = pool.map(first_keys, [str(root)] * 6)
    assert len(set(keys)) == 1
    assert stat.S_IMODE((root / layout.KEYRING).stat().st_mode) == 0o600
    assert stat.S_IMODE((root / layout.KEYS).stat().st_mode) == 0o700
    assert {path.name for path in (root / layout.KEYS).iterdir()} == {"keyring.json", "settled"}


@pytest.mark.inv("KEY-3")
def test_any_flipped_byte_of_the_key_ring_is_damage_and_no_new_ring_takes_its_place() -> None:
    disk = CrashDisk()
    opened(disk).ensure_keys()
    opened(disk).rotate()
    number = disk.names_now[layout.KEYRING]
    good = disk.files[number]
    for at in range(len(good.data)):
        for other in (good.data[at] ^ 1, 0, ord(" ")):
            bad = good.data[:at] + bytes((other,)) + good.data[at + 1 :]
            if bad == good.data:
                continue
            disk.files[number] = type(good)(data=bad, durable=bad)
            for use in (opened(disk).keys, opened(disk).ensure_keys, opened(disk).rotate):
                with pytest.raises(KeyRingDamagedError):
                    use()
            assert disk.files[number].data == bad


@pytest.mark.inv("KEY-2")
def test_a_rotation_made_elsewhere_holds_at_once(tmp_path: Path) -> None:
    one, other = LocalStore(tmp_path), LocalStore(tmp_path)
    first = one.ensure_keys()
    assert other.keys() == first
    rotated = other.rotate()
    assert one.keys() == rotated == one.ensure_keys()
    assert one.keys(fresh=True) == rotated


@pytest.mark.inv("KEY-4")
def test_the_ring_is_durable_before_it_is_handed_out() -> None:
    disk = CrashDisk()
    ring = opened(disk).ensure_keys()
    assert all(opened(left).keys() == ring for left in disk.survivors())
    second = CrashDisk()
    opened(second).ensure_keys()
    rotated = opened(second).rotate()
    assert all(opened(left).keys() == rotated for left in second.survivors())


@pytest.mark.inv("APP-5")
def test_content_that_exists_is_replaced_if_damaged_and_written_again_if_old(tmp_path: Path) -> None:
    apply(LocalStore(tmp_path), start_plan())
    (snapshot,) = (tmp_path / layout.SNAPSHOTS).iterdir()
    (workflow,) = (tmp_path / layout.PINNED).iterdir()
    good = snapshot.read_bytes()
    snapshot.write_bytes(b"damaged")
    os.utime(workflow, (1, 1))
    apply(LocalStore(tmp_path), start_plan("b"))
    assert snapshot.read_bytes() == good
    assert workflow.stat().st_mtime > REWRITE_AFTER_S


def test_a_data_directory_that_cannot_be_made_is_a_failure_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    store = LocalStore(tmp_path / "file" / "data")
    with pytest.raises(StoreFailureError):
        store.ensure_keys()
    with pytest.raises(StoreFailureError):
        apply(store, start_plan())


class Glimpses(CrashDisk):
    """A disk of which a reader sees the manifest as a writer at work leaves it, so many times."""

    wrong_reads = 0

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        data = super().read(path, offset, bytes_max)
        if path.endswith("manifest.jsonl") and self.wrong_reads:
            self.wrong_reads -= 1
            return b"?" + data[1:]
        return data


@pytest.mark.inv("FOLLOW-3")
def test_what_looks_damaged_is_read_again_before_it_is_called_so() -> None:
    disk = Glimpses()
    stored = apply(opened(disk), start_plan())
    for wrong_reads in (1, 2):
        disk.wrong_reads = wrong_reads
        assert opened(disk).load(A) == stored
        assert disk.wrong_reads == 0
    disk.wrong_reads = 3
    with pytest.raises(SessionUnhealthyError):
        opened(disk).load(A)


@pytest.mark.inv("FOLLOW-3")
def test_a_reader_beside_a_busy_writer_never_reports_damage(tmp_path: Path) -> None:
    writer = LocalStore(tmp_path)
    session = apply(writer, start_plan())
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            loaded = LocalStore(tmp_path).load(A)
            assert loaded is not None
            seen.append(loaded.next_index)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(8):
            tip = session.runs[run_id("a")].tip
            assert tip is not None
            session = apply(writer, advance_plan(writer, tip, Request()))
    finally:
        done.set()
        reader.join()
    assert seen == sorted(seen)
    assert LocalStore(tmp_path).load(A) == session
