"""Cut at every file operation of a restore, then lose of what was not synced what a power loss may take.

A whole session is there or none, for this process, for another one, and after the power is back; and the same restore
works afterwards. What other sessions hold is never touched.
"""

import errno
import itertools
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.support.crash import advance_plan, apply, assert_readable, opened, run_id, session_id, start_plan
from tests.support.shares import share_of
from tests.support.sweep import settle

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.record.append_plan import AppendPlan
from interlock.record.content import Contents, collect_references
from interlock.record.events import Event
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError, ThreadLocks
from interlock.views.session import Session

A, B = session_id("a"), session_id("b")
SAMPLES = 12


def source() -> LocalStore:
    """Return a store that holds a session: a start, an advance with an artifact, a refusal."""
    store = opened(CrashDisk())
    apply(store, start_plan())
    advanced = apply(store, advance_plan(store, root_node(run_id("a")), Request(notes="Done.", artifacts=({"k": 1},))))
    apply(store, advance_plan(store, advanced.runs[run_id("a")].tip or root_node(run_id("a")), Request()))
    return store


SOURCE = source()
HISTORY: tuple[tuple[Event, ...], ...] = SOURCE.history(A)
LOADED = SOURCE.load(A)
_NAMED = collect_references(itertools.chain.from_iterable(HISTORY))
CONTENTS = Contents(
    snapshots={ref: SOURCE.snapshot(ref).to_bytes() for ref in _NAMED.snapshots},
    workflows={one: SOURCE.workflow_bytes(one) for one in _NAMED.workflows},
    artifacts={digest: SOURCE.artifact(digest) for digest in _NAMED.artifacts},
)


def restore(store: LocalStore) -> Session:
    """Restore the session unless it is there, as whoever repeats a command that was cut."""
    with store.hold(A) as lock:
        return lock.session or store.restore(lock, HISTORY, CONTENTS)


def before(kind: str) -> CrashDisk:
    """Return the disk that a session is restored on."""
    disk = CrashDisk()
    if kind == "empty":
        return disk
    apply(opened(disk), start_plan("b"))
    if kind == "beside what an earlier restore left":
        probe = disk.copy()
        restore(opened(probe))
        # Its last three operations give the manifest its name, make that durable, and mark it.
        disk.fault = InjectedFault(at=len(disk.steps) + len(probe.steps) - 3)
        with pytest.raises(PowerCutError):
            restore(opened(disk))
    return disk.copy()


KINDS = ("empty", "beside another session", "beside what an earlier restore left")
DISKS = {kind: before(kind) for kind in KINDS}
UNTOUCHED = {kind: opened(disk.copy()).load(B) for kind, disk in DISKS.items()}


def steps_of(kind: str) -> int:
    disk = DISKS[kind].copy()
    restore(opened(disk))
    return len(disk.steps)


PLACES = [(kind, at) for kind in KINDS for at in range(steps_of(kind) + 1)]


def cut_disks(kind: str, at: int) -> Iterator[tuple[CrashDisk, bool]]:
    """Yield the disk with the power cut at an operation, and whether the restore was complete."""
    return ((disk.copy(), is_done) for disk, is_done in cuts_of(kind, at))


@cache
def cuts_of(kind: str, at: int) -> list[tuple[CrashDisk, bool]]:
    """Return the disks with the power cut at an operation: before it, at parts of it, and after the last one."""
    whole = DISKS[kind].copy()
    restore(opened(whole))
    if at == len(whole.steps):
        return [(whole.copy(), True)]
    size, disks = whole.steps[at].bytes, list[tuple[CrashDisk, bool]]()
    for keep in [None, *sorted({size // 2, size} if size else ())]:
        disk = DISKS[kind].copy()
        disk.fault = InjectedFault(at=at, keep_bytes=keep)
        with pytest.raises(PowerCutError):
            restore(opened(disk))
        disks.append((disk.copy(), False))
    return disks


def left_of(disk: CrashDisk) -> Iterator[CrashDisk]:
    """Yield what a power loss may leave: every combination while they are few, else all, nothing and some between."""
    count = len(disk.pending)
    if 2**count <= SAMPLES:
        yield from disk.survivors()
        return
    chance = random.Random(count)
    some = [[chance.random() < share for _ in range(count)] for share in (0.2, 0.5, 0.8, 0.95) for _ in range(2)]
    yield from disk.survivors([[True] * count, [False] * count, *some])


def assert_all_or_nothing(kind: str, disk: CrashDisk, *, is_whole: bool) -> None:
    store = opened(disk)
    seen = store.load(A)
    assert seen == LOADED if is_whole else seen in (None, LOADED)
    salvaged = store.salvage(A)
    assert (salvaged is None) == (seen is None) == (A not in store.sessions())
    assert opened(disk).load(B) == UNTOUCHED[kind]
    assert restore(opened(disk)) == LOADED
    again = opened(disk)
    assert again.load(A) == LOADED
    assert again.history(A) == HISTORY
    assert LOADED is not None
    assert_readable(again, LOADED)
    for digest in CONTENTS.artifacts:
        again.artifact(digest)


@pytest.mark.exhaustive
@pytest.mark.inv("BND-11")
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_power_lost_during_a_restore_leaves_all_of_the_session_or_nothing(kind: str, at: int) -> None:
    for disk, is_done in cut_disks(kind, at):
        assert_all_or_nothing(kind, disk.copy(), is_whole=is_done)
        for left in share_of(left_of(disk), 60):
            assert_all_or_nothing(kind, left, is_whole=is_done)


@pytest.mark.exhaustive
@pytest.mark.inv("BND-11")
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_what_another_process_answered_from_after_a_killed_restore_survives_a_power_loss(kind: str, at: int) -> None:
    for disk, _ in cut_disks(kind, at):
        answered = opened(disk).load(A)
        assert answered in (None, LOADED)
        if answered is None and not disk.steps:
            # A power loss leaves of it what the test above judges.
            continue
        for left in share_of(left_of(disk), 60):
            assert_all_or_nothing(kind, left, is_whole=answered is not None)


@pytest.mark.inv("BND-11", "GC-7")
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_a_killed_restore_is_no_damage(kind: str, at: int) -> None:
    for disk, _ in cut_disks(kind, at):
        assert LocalCollector(Path("/nowhere"), files=disk, locks=ThreadLocks()).mark().unsound == ()


@pytest.mark.exhaustive
@pytest.mark.inv("BND-11", "CRASH-5")
def test_a_restore_that_fails_over_a_torn_start_is_no_damage_and_works_when_it_is_repeated() -> None:
    whole, torn = CrashDisk(), CrashDisk()
    apply(opened(whole), start_plan())
    group = next(number for number, step in enumerate(whole.steps) if step.name == "append")
    torn.fault = InjectedFault(at=group, keep_bytes=whole.steps[group].bytes - 20)
    with pytest.raises(PowerCutError):
        apply(opened(torn), start_plan())
    torn = settle(torn)
    probe = torn.copy()
    restore(opened(probe))
    for at in share_of(range(len(probe.steps)), 3):
        disk = torn.copy()
        disk.fault = InjectedFault(at=at, keep_bytes=0, error=errno.EIO)
        with pytest.raises(StoreFailureError):
            restore(opened(disk))
        disk.fault = None
        for left in share_of(left_of(disk), 4):
            assert restore(opened(left)) == LOADED
            assert opened(left).load(A) == LOADED


@pytest.mark.inv("BND-11")
@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_gets_its_name_after_all_else_is_synced(kind: str) -> None:
    disk = DISKS[kind].copy()
    restore(opened(disk))
    steps = [(step.name, step.path) for step in disk.steps]
    renamed = [path for name, path in steps if name == "rename"]
    manifest = f"sessions/{A}/manifest.jsonl"
    assert renamed[-1] == manifest
    assert renamed.count(manifest) == 1
    at = steps.index(("rename", manifest))
    synced = {path for name, path in steps[:at] if name == "sync_dir"}
    assert {f"sessions/{A}/events", f"sessions/{A}", "sessions", ""} <= synced
    created = {step.path for step in disk.steps[:at] if step.name == "create" and step.bytes}
    assert created <= {path for name, path in steps[:at] if name == "sync"}
    assert steps[at + 1 :] == [("sync_dir", f"sessions/{A}"), ("write_at", f"sessions/{A}/settled")]


@pytest.mark.inv("BND-11")
@pytest.mark.parametrize(("error", "failure"), [(errno.ENOSPC, FailureKind.FULL), (errno.EROFS, FailureKind.READ_ONLY)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_that_fails_leaves_no_session_and_the_same_restore_works_later(
    kind: str, error: int, failure: FailureKind
) -> None:
    for at in range(steps_of(kind)):
        for keep in (None, 40):
            disk = DISKS[kind].copy()
            store = opened(disk)
            disk.fault = InjectedFault(at=at, keep_bytes=keep, error=error)
            with pytest.raises(StoreFailureError) as raised:
                restore(store)
            assert raised.value.kind is failure
            disk.fault = None
            assert opened(disk.copy()).load(A) is None
            assert store.load(A) is None
            # Its last two operations come after the manifest has its name.
            assert raised.value.may_be_recorded is (at >= steps_of(kind) - 2)
            assert restore(store) == LOADED
            assert opened(disk).load(A) == LOADED


@pytest.mark.inv("BND-11")
def test_a_restored_session_is_appended_to_as_if_it_had_always_been_there() -> None:
    disk = DISKS["beside what an earlier restore left"].copy()
    store = opened(disk)
    restored = restore(store)
    tip = restored.runs[run_id("a")].tip
    assert tip is not None
    plan: AppendPlan = advance_plan(store, tip, Request(notes="Now with notes."))
    advanced = apply(store, plan)
    assert opened(disk).load(A) == advanced != restored
    assert apply(SOURCE, plan) == advanced
