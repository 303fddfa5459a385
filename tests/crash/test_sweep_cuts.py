"""A sweep cut at every operation, and writers at work before every operation of a sweep: nothing reachable is lost.

Whatever is left, each session that is there can be read with all that it refers to, and later sweeps come to the end
that an undisturbed one comes to.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests.support.crash import apply, opened, session_id, start_plan
from tests.support.shares import share_of
from tests.support.sweep import (
    DAY_S,
    OneHolder,
    advance,
    advanced,
    assert_none_is_half,
    assert_whole,
    dated_disk,
    interrupted,
    paths,
    settle,
    started,
    swept,
    write,
)

from interlock.store.local import layout
from interlock.store.local.collect.mark import read_session
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import SessionBusyError
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError
from interlock.views.session import Session

A, B = session_id("a"), session_id("b")


def expiring() -> CrashDisk:
    """Session `a` has expired, with an artifact of its own; what it shares with `b`, which stays, is as old as it."""
    disk = dated_disk()
    started(disk, "a", artifact="a")
    disk.now_s += 95 * DAY_S
    apply(opened(disk), start_plan("b"))
    for path in paths(disk, "snapshots") | paths(disk, "workflows"):
        age(disk, path, 30)
    return settle(disk)


def age(disk: CrashDisk, path: str, days: float) -> None:
    """Make a file that old."""
    now, disk.now_s = disk.now_s, disk.now_s - days * DAY_S
    disk.renew(path)
    disk.now_s = now


def emptying() -> CrashDisk:
    """`a` and what it alone referred to lie in the trash since the last sweep."""
    disk = expiring()
    swept(disk)
    disk.now_s += DAY_S
    return settle(disk)


def littered() -> CrashDisk:
    """`b` stays; there is debris of crashes in it and beside it, and content in the trash that it refers to."""
    disk = dated_disk()
    apply(opened(disk), start_plan("b"))
    write(disk, f"sessions/{B}/events/00000009-00000009.jsonl")
    write(disk, layout.temp(f"sessions/{B}/events/00000009-00000009.jsonl", "0123456789abcdef"))
    write(disk, "sessions/left.import/manifest.jsonl")
    write(disk, "artifacts/" + "a" * 64)
    (snapshot,) = paths(disk, "snapshots")
    disk.make_dir("trash")
    disk.make_dir("trash/snapshots")
    disk.rename(snapshot, layout.trashed(snapshot))
    disk.now_s += 2 * DAY_S
    return settle(disk)


CASES = {"expiring": expiring(), "emptying": emptying(), "littered": littered()}


def stepped(disk: CrashDisk) -> int:
    copy = disk.copy()
    swept(copy)
    return len(copy.steps)


PLACES = [(kind, at) for kind, disk in CASES.items() for at in range(stepped(disk) + 1)]


def sessions_that_stay(disk: CrashDisk) -> list[Session]:
    found = opened(disk).load(B)
    assert found is not None
    return [found]


def end_of(disk: CrashDisk) -> set[str]:
    """Return what stands after sweeps that nothing disturbs, until there is nothing more to take."""
    disk = disk.copy()
    for _ in range(3):
        disk.now_s += DAY_S
        swept(disk)
    return paths(disk)


def cut(disk: CrashDisk, at: int) -> CrashDisk:
    """Return the disk as a sweep leaves it whose process or power is gone before an operation."""
    disk = disk.copy()
    disk.fault = InjectedFault(at=at)
    with suppress(PowerCutError):
        swept(disk)
    disk.fault = None
    return disk


def assert_sound_and_finished_later(left: CrashDisk, stay: list[Session], end: set[str]) -> None:
    assert_none_is_half(left)
    assert_whole(left, stay)
    assert end_of(left) == end
    again = left.copy()
    swept(again)
    assert_whole(again, stay)
    assert_none_is_half(again)


@pytest.mark.exhaustive
@pytest.mark.inv("GC-9")
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_a_sweep_cut_at_any_operation_loses_nothing_reachable_and_a_later_one_finishes(kind: str, at: int) -> None:
    disk = CASES[kind]
    stay, end = sessions_that_stay(disk), end_of(disk)
    left = cut(disk, at)
    assert_sound_and_finished_later(left, stay, end)
    for survivor in share_of(left.survivors(), 3):
        assert_sound_and_finished_later(survivor, stay, end)


def dangerous(disk: CrashDisk) -> Iterator[int]:
    """Yield the operations of a sweep before which something was removed for good."""
    copy = disk.copy()
    swept(copy)
    for number, step in enumerate(copy.steps):
        if step.name in {"unlink", "remove_dir"}:
            yield number + 1


@pytest.mark.exhaustive
@pytest.mark.inv("GC-9")
@pytest.mark.parametrize("kind", CASES)
def test_a_sweep_builds_on_nothing_that_a_killed_one_left_unsynced(kind: str) -> None:
    disk = CASES[kind]
    stay, end = sessions_that_stay(disk), end_of(disk)
    for first in share_of(range(stepped(disk) + 1), 4):
        killed = cut(disk, first)
        killed.now_s += DAY_S
        for second in dangerous(killed):
            for survivor in cut(killed, second).survivors():
                assert_none_is_half(survivor)
                assert_whole(survivor, stay)
    assert end_of(cut(disk, 0)) == end


def content_of(disk: CrashDisk) -> set[str]:
    """Return all content that a session refers to."""
    return set[str]().union(*(read_session(disk, session).content for session in opened(disk).sessions()))


@pytest.mark.inv("GC-9")
@pytest.mark.parametrize("at", range(stepped(CASES["expiring"]) + 1))
def test_an_expired_session_that_a_power_loss_brings_back_has_all_that_it_refers_to(at: int) -> None:
    left = cut(CASES["expiring"], at)
    for disk in (left, *left.survivors()):
        assert content_of(disk) <= paths(disk)


def write_beside(disk: CrashDisk) -> None:
    """Begin a session with content that `a` alone referred to, and go on in the one that stays."""
    started(disk, "n", artifact="a")
    advanced(disk, "b")


@pytest.mark.inv("GC-6", "GC-9")
@pytest.mark.parametrize("dies", [False, True], ids=["the sweep goes on", "the sweep dies"])
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_what_writers_refer_to_while_a_sweep_runs_is_there_afterwards(kind: str, at: int, *, dies: bool) -> None:
    def meanwhile(disk: CrashDisk) -> None:
        write_beside(disk)
        if dies:
            raise PowerCutError

    disk = interrupted(CASES[kind], at, meanwhile)
    try:
        swept(disk)
    except PowerCutError:
        assert dies
    else:
        assert content_of(disk) <= paths(disk), "what is referred to stands where it belongs"
    if disk.at >= 0:
        disk.at = -1
        write_beside(disk)
    for _ in range(3):
        found = [opened(disk).load(session_id(name)) for name in ("b", "n")]
        assert_whole(disk, [session for session in found if session is not None])
        assert None not in found
        disk.now_s += 2 * DAY_S
        swept(disk)


def writes(disk: CrashDisk, locks: OneHolder) -> None:
    """Begin a session with what `a` referred to, and take a step, under locks that tell when they are held."""
    store = LocalStore(Path("/nowhere"), files=disk, locks=locks, now_s=lambda: disk.now_s)
    apply(store, start_plan("n"))
    advance(store, "n", artifact="a")
    advance(store, "b")


def sweep_beside(locks: OneHolder, disk: CrashDisk) -> None:
    swept(disk, locks=locks)


@pytest.mark.inv("GC-6", "GC-9")
@pytest.mark.parametrize("kind", CASES)
def test_a_sweep_before_any_operation_of_a_writer_takes_nothing_that_it_goes_on_to_refer_to(kind: str) -> None:
    probe = CASES[kind].copy()
    writes(probe, OneHolder())
    for at in range(len(probe.steps)):
        locks = OneHolder()
        disk = interrupted(CASES[kind], at, partial(sweep_beside, locks))
        writes(disk, locks)
        assert disk.at < 0, "the sweep took place"
        for _ in range(3):
            assert_none_is_half(disk)
            assert {B, session_id("n")} <= set(opened(disk).sessions())
            disk.now_s += 2 * DAY_S
            swept(disk)


@pytest.mark.inv("GC-6")
def test_a_session_that_goes_while_somebody_wants_to_append_to_it_is_not_there_and_leaves_nothing_half() -> None:
    disk, locks = CASES["expiring"].copy(), OneHolder()
    with locks.hold(A), pytest.raises(SessionBusyError), locks.hold(A):
        pass
    swept(disk, locks=locks)
    with opened(disk).hold(A) as lock:
        assert lock.session is None
    assert opened(disk).load(A) is None
    disk.now_s += 2 * DAY_S
    swept(disk)
    assert layout.session_dir(A) not in disk.names_now
