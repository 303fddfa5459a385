"""The retention pins: no damage of them and no failure of the disk lets a kept session expire."""

import errno
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tests.support.crash import opened, session_id
from tests.support.sweep import DAY_S, assert_whole, collector_on, dated_disk, paths, settle, started, swept, write

from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.record.keep import build_keep_marks
from interlock.store.local import layout
from interlock.store.local.files import FileStat
from interlock.store.ports.errors import (
    PinsDamagedError,
    SessionsMissingError,
    StoreFailureError,
    TooManyPinsError,
)
from interlock.store.ports.maintenance import Kind
from interlock.testing.power_cut import CrashDisk, InjectedFault

A, B, C = session_id("a"), session_id("b"), session_id("c")


def kept_and_expired() -> CrashDisk:
    """A disk with two sessions that have expired, of which `a` is kept."""
    disk = dated_disk()
    for name in "ab":
        started(disk, name, artifact=name)
    collector_on(disk).retention_pins.keep([A])
    disk.now_s += 1_000 * DAY_S
    return settle(disk)


def kept(disk: CrashDisk) -> frozenset[SessionId]:
    return collector_on(disk).retention_pins.kept()


@pytest.mark.inv("GC-2", "GC-7")
def test_any_flipped_bit_of_the_marks_is_found_and_nothing_is_collected() -> None:
    disk = kept_and_expired()
    number = disk.names_now[layout.KEEP]
    good = disk.files[number]
    for at in range(len(good.data)):
        for bit in range(8):
            bad = good.data[:at] + bytes((good.data[at] ^ 1 << bit,)) + good.data[at + 1 :]
            disk.files[number] = replace(good, data=bad, durable=bad)
            with pytest.raises(PinsDamagedError):
                kept(disk)
    (blocker,) = swept(disk).blockers
    assert blocker.code == "KEEP_MARKS_DAMAGED"
    assert opened(disk).sessions() == tuple(sorted([A, B]))


@pytest.mark.inv("GC-2", "GC-7")
def test_marks_whose_file_is_lost_are_damaged_and_nothing_is_collected() -> None:
    disk = kept_and_expired()
    disk.unlink(layout.KEEP)
    pins = collector_on(disk).retention_pins
    for call in (pins.kept, partial(pins.keep, [B]), partial(pins.unkeep, [A])):
        with pytest.raises(PinsDamagedError, match="missing, but sessions were marked"):
            call()
    (blocker,) = swept(disk).blockers
    assert blocker.code == "KEEP_MARKS_DAMAGED"
    assert layout.KEEP_MARK in blocker.fix
    assert opened(disk).sessions() == tuple(sorted([A, B]))
    disk.unlink(layout.KEEP_MARK)
    assert pins.keep([B]) == {B}


@pytest.mark.inv("GC-2")
def test_a_lost_file_of_no_marks_loses_nothing() -> None:
    disk = kept_and_expired()
    pins = collector_on(disk).retention_pins
    assert pins.unkeep([A]) == set()
    disk.unlink(layout.KEEP)
    assert pins.kept() == pins.unkeep([A]) == set()
    assert pins.keep([A]) == {A}


@pytest.mark.inv("GC-2")
def test_marks_without_a_check_are_damaged_and_the_missing_check_is_named() -> None:
    disk = dated_disk()
    write(disk, layout.KEEP, canonical_bytes({"v": 1, "kind": "keep_marks", "sessions": [A]}) + b"\n")
    with pytest.raises(PinsDamagedError, match="check: missing"):
        kept(disk)


@pytest.mark.inv("GC-10")
@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("days", [0, 90])
def test_a_mark_without_a_session_lets_nothing_go_until_it_is_removed(*, is_dry_run: bool, days: int) -> None:
    disk = kept_and_expired()
    for path in sorted(paths(disk, layout.session_dir(A))):
        disk.unlink(path)
    before = paths(disk)
    found = swept(disk, days=days, is_dry_run=is_dry_run)
    (blocker,) = found.blockers
    assert (blocker.code, blocker.session) == ("KEPT_SESSION_MISSING", A)
    assert f"interlock session unkeep {A}" in blocker.fix
    assert blocker.to_json()["session"] == A
    assert list(found.taken.sizes()) == []
    assert paths(disk) - {layout.UPKEEP_LOCK} == before
    assert collector_on(disk).retention_pins.unkeep([A]) == set()
    taken = {kind for kind, _ in swept(disk, days=days).taken.sizes()}
    assert (Kind.SESSION in taken) is bool(days)


@pytest.mark.inv("GC-10")
def test_only_a_session_that_is_there_can_be_kept_and_a_damaged_one_is_there() -> None:
    disk = kept_and_expired()
    pins = collector_on(disk).retention_pins
    disk.append(layout.manifest(B), b"?\n")
    assert pins.keep([B]) == {A, B}
    before = disk.read(layout.KEEP)
    for missing in (C, SessionId("nonsense")):
        with pytest.raises(SessionsMissingError, match=missing):
            pins.keep([A, missing])
    # What a start left is no session, and a directory with a later segment is one that lost its manifest.
    write(disk, layout.manifest(C), b"")
    with pytest.raises(SessionsMissingError):
        pins.keep([C])
    assert disk.read(layout.KEEP) == before
    write(disk, layout.segment(C, 5, 6))
    assert pins.keep([C]) == {A, B, C}
    assert {blocker.session for blocker in swept(disk).blockers} == {B, C}
    assert {blocker.code for blocker in swept(disk).blockers} == {"SESSION_NOT_HEALTHY"}


@pytest.mark.inv("GC-2")
def test_more_marks_than_there_may_be_are_refused_and_nothing_is_written() -> None:
    disk = kept_and_expired()
    pins = (
        build_keep_marks(frozenset(session_id(str(number)) for number in range(RETENTION_PINS_MAX))).to_bytes() + b"\n"
    )
    disk.unlink(layout.KEEP)
    disk.write(layout.KEEP, pins)
    with pytest.raises(TooManyPinsError):
        collector_on(disk).retention_pins.keep([A])
    assert disk.read(layout.KEEP) == pins


@mutable
class Unreadable(CrashDisk):
    """A disk on which some paths cannot be read."""

    path: str = ""

    def stat(self, path: str) -> FileStat | None:
        self._meet(path)
        return CrashDisk.stat(self, path)

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        self._meet(path)
        return CrashDisk.read(self, path, offset, bytes_max)

    def names(self, path: str) -> list[str]:
        self._meet(path)
        return CrashDisk.names(self, path)

    def _meet(self, path: str) -> None:
        if path == self.path:
            raise OSError(errno.EACCES, "made to fail")


@pytest.mark.inv("DOC-1")
@pytest.mark.parametrize("path", [layout.KEEP, layout.manifest(B), layout.SESSIONS])
def test_what_cannot_be_read_is_a_failure_of_the_store(path: str) -> None:
    disk = kept_and_expired()
    collector = collector_on(Unreadable(disk.files, disk.names_now, disk.entries_durable, path=path))
    pins = collector.retention_pins
    works: dict[str, list[Callable[[], object]]] = {
        layout.KEEP: [pins.kept, partial(pins.keep, [A]), partial(pins.unkeep, [A])],
        layout.manifest(B): [partial(pins.keep, [B])],
        layout.SESSIONS: [collector.held_sessions],
    }
    for work in works[path]:
        failure = failure_of(work)
        assert failure is not None
        assert failure.found == "EACCES"
        assert not failure.may_be_recorded


@mutable
class FailsAfterwards(CrashDisk):
    """A disk that renames the file of the pins and then reports that it did not."""

    def rename(self, source: str, target: str) -> None:
        CrashDisk.rename(self, source, target)
        if target == layout.KEEP:
            raise OSError(errno.EIO, "made to fail")


def failing_afterwards(disk: CrashDisk) -> CrashDisk:
    return FailsAfterwards(disk.files, disk.names_now, disk.entries_durable, disk.pending, now_s=disk.now_s)


def failing(fault: InjectedFault, disk: CrashDisk) -> CrashDisk:
    disk.fault = fault
    return disk


def keep_b(disk: CrashDisk) -> StoreFailureError | None:
    return failure_of(partial(collector_on(disk).retention_pins.keep, [B]))


def unkeep_a(disk: CrashDisk) -> StoreFailureError | None:
    return failure_of(partial(collector_on(disk).retention_pins.unkeep, [A]))


def failure_of(work: Callable[[], object]) -> StoreFailureError | None:
    try:
        work()
    except StoreFailureError as failure:
        return failure
    return None


def count_of_steps() -> int:
    disk = kept_and_expired()
    keep_b(disk)
    return len(disk.steps)


FAILING: dict[str, Callable[[CrashDisk], CrashDisk]] = {
    f"operation {at}{' and all later ones' if is_lasting else ''}": partial(
        failing, InjectedFault(at=at, error=errno.EIO, is_lasting=is_lasting)
    )
    for at in range(count_of_steps())
    for is_lasting in (False, True)
} | {"after the pins were renamed": failing_afterwards}


@pytest.mark.inv("GC-11")
@pytest.mark.parametrize("kind", FAILING)
def test_a_failed_unkeep_says_what_is_there_and_its_repeat_is_durable(kind: str) -> None:
    disk = FAILING[kind](kept_and_expired())
    failure = unkeep_a(disk)
    assert failure is not None
    assert failure.may_be_recorded == (kept(disk) == set())
    disk = disk.copy()
    assert unkeep_a(disk) is None
    assert all(kept(left) == set() for left in disk.survivors())


def test_where_there_is_nothing_neither_setting_nor_removing_a_mark_makes_anything() -> None:
    disk = CrashDisk()
    assert unkeep_a(disk) is None
    with pytest.raises(SessionsMissingError):
        keep_b(disk)
    assert disk.steps == []


@pytest.mark.inv("GC-2", "GC-11")
@pytest.mark.parametrize("kind", FAILING)
def test_a_failed_keep_says_what_is_there_and_its_repeat_is_durable(kind: str) -> None:
    disk = FAILING[kind](kept_and_expired())
    failure = keep_b(disk)
    assert failure is not None
    assert failure.may_be_recorded == (kept(disk) == {A, B})
    assert kept(disk) in ({A}, {A, B})
    disk = disk.copy()
    assert all(kept(left) in ({A}, {A, B}) for left in disk.survivors())
    steps = len(disk.steps)
    assert keep_b(disk) is None
    # Marks that are there already are written again: a sync of what a failed command left proves nothing.
    assert [step.name for step in disk.steps[steps:] if step.path == layout.KEEP] == ["rename"]
    assert all(kept(left) == {A, B} for left in disk.survivors())
    stay = [session for name in (A, B) if (session := opened(disk).load(name)) is not None]
    swept(disk)
    assert_whole(disk, stay)
    assert len(stay) == len({A, B})
