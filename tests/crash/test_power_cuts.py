"""Cut at every file operation of a start and of an advance, then lose every subset of what was not synced.

Whatever is left is the old state or the new one, never a third; the next append works; nothing that was
acknowledged, or that anybody was answered from, is ever missing.
"""

import errno
import re
from collections.abc import Iterator, Sequence
from functools import cache

import pytest
from tests.support.crash import KINDS, Case, apply, assert_readable, opened, prepared, session_id, start_plan
from tests.support.shares import share_of

from interlock.store.local import layout
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.testing.power_cut import CrashDisk, DiskOperation, InjectedFault, PowerCutError

CASES = {kind: prepared(kind) for kind in KINDS}


def steps_of(case: Case) -> int:
    disk = case.disk.copy()
    apply(opened(disk), case.plan)
    return len(disk.steps)


def cut_disks(kind: str, at: int) -> Iterator[tuple[CrashDisk, bool]]:
    """Yield the disk with the power cut at an operation, and whether the append had been acknowledged."""
    return ((disk.copy(), is_acknowledged) for disk, is_acknowledged in cuts_of(kind, at))


@cache
def cuts_of(kind: str, at: int) -> list[tuple[CrashDisk, bool]]:
    """Return the disks with the power cut at an operation: before it and at each part of it; and after the last one."""
    case = CASES[kind]
    whole = case.disk.copy()
    apply(opened(whole), case.plan)
    if at == len(whole.steps):
        return [(whole.copy(), True)]
    size, disks = whole.steps[at].bytes, list[tuple[CrashDisk, bool]]()
    parts = sorted({1, size // 2, size - 1, size}) if size else []
    for keep in [None, *parts]:
        disk = case.disk.copy()
        disk.fault = InjectedFault(at=at, keep_bytes=keep)
        with pytest.raises(PowerCutError):
            apply(opened(disk), case.plan)
        disks.append((disk.copy(), False))
    return disks


def assert_old_or_new_and_next_works(case: Case, disk: CrashDisk, *, is_new: bool) -> None:
    seen = opened(disk).load(case.plan.session)
    if is_new:
        assert seen == case.new
    else:
        assert seen in (case.old, case.new)
    if seen is not None:
        assert_readable(opened(disk), seen)
    # The same call again, as an agent makes it that got no answer: applied once in the end, whatever was left.
    assert apply(opened(disk), case.plan) == case.new
    again = opened(disk)
    assert again.load(case.plan.session) == case.new
    assert_readable(again, case.new)


PLACES = [(kind, at) for kind, case in CASES.items() for at in range(steps_of(case) + 1)]


def assert_power_loss_is_survived(kind: str, at: int) -> None:
    case = CASES[kind]
    for disk, is_acknowledged in cut_disks(kind, at):
        for left in share_of(disk.survivors(), 16):
            assert_old_or_new_and_next_works(case, left, is_new=is_acknowledged)


def assert_answers_survive_a_later_power_loss(kind: str, at: int) -> None:
    case = CASES[kind]
    for disk, _ in cut_disks(kind, at):
        # The process is dead, the machine is not: what it wrote is there, synced or not.
        answered = opened(disk).load(case.plan.session)
        assert answered in (case.old, case.new)
        if answered == case.old and not disk.steps:
            # A power loss leaves of it what `assert_power_loss_is_survived` judges.
            continue
        for left in share_of(disk.survivors(), 16):
            assert_old_or_new_and_next_works(case, left, is_new=answered == case.new)


@pytest.mark.exhaustive
@pytest.mark.inv("CRASH-1", "CRASH-2", "APP-1")
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_power_lost_at_an_operation_leaves_the_old_state_or_the_new_and_the_next_call_works(kind: str, at: int) -> None:
    assert_power_loss_is_survived(kind, at)


@pytest.mark.exhaustive
@pytest.mark.inv("CRASH-3")
@pytest.mark.parametrize(("kind", "at"), PLACES)
def test_what_another_process_answered_from_after_a_kill_survives_a_power_loss(kind: str, at: int) -> None:
    assert_answers_survive_a_later_power_loss(kind, at)


@pytest.mark.exhaustive
@pytest.mark.inv("CRASH-5")
@pytest.mark.parametrize("kind", KINDS)
def test_an_append_after_a_torn_one_cuts_the_tail_off_first(kind: str) -> None:
    case = CASES[kind]
    disk = case.disk.copy()
    apply(opened(disk), case.plan)
    at = next(number for number, step in enumerate(disk.steps) if step.name == "append")
    torn = case.disk.copy()
    torn.fault = InjectedFault(at=at, keep_bytes=disk.steps[at].bytes // 2)
    with pytest.raises(PowerCutError):
        apply(opened(torn), case.plan)
    torn.fault = None
    for left in share_of(torn.survivors(), 12):
        for cut in share_of(range(40), 5):
            again = left.copy()
            again.fault = InjectedFault(at=cut)
            try:
                apply(opened(again), case.plan)
            except PowerCutError:
                again.fault = None
                for twice_left in share_of(again.survivors(), 4):
                    assert_old_or_new_and_next_works(case, twice_left, is_new=False)
                continue
            break


@pytest.mark.exhaustive
@pytest.mark.inv("CRASH-5", "APP-6")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [None, errno.ENOSPC], ids=["killed", "a full disk"])
def test_a_torn_group_that_is_there_again_after_a_power_loss_finds_its_segment(kind: str, error: int | None) -> None:
    case = CASES[kind]
    whole = case.disk.copy()
    apply(opened(whole), case.plan)
    group = next(number for number, step in enumerate(whole.steps) if step.name == "append")
    torn = case.disk.copy()
    torn.fault = InjectedFault(at=group, keep_bytes=whole.steps[group].bytes - 20)
    with pytest.raises(PowerCutError):
        apply(opened(torn), case.plan)
    written = torn.read(layout.manifest(case.plan.session))
    left = next(one for one in torn.survivors() if one.read(layout.manifest(case.plan.session)) == written)
    # The tail is cut off, and the process is killed before that is durable.
    left.fault = InjectedFault(at=names_of_steps(left, case).index("truncate") + 1)
    with pytest.raises(PowerCutError):
        apply(opened(left), case.plan)
    left.fault = None
    for at in share_of(range(len(names_of_steps(left, case))), 2):
        again = left.copy()
        again.fault = InjectedFault(at=at, keep_bytes=0, error=error)
        with pytest.raises((PowerCutError, StoreFailureError)):
            apply(opened(again), case.plan)
        again.fault = None
        for lost in share_of(again.survivors(), 4):
            assert_old_or_new_and_next_works(case, lost, is_new=False)


def names_of_steps(disk: CrashDisk, case: Case) -> list[str]:
    """Return the names of the operations of the append on a copy of the disk."""
    copy = disk.copy()
    apply(opened(copy), case.plan)
    return [step.name for step in copy.steps]


def rounds_of(steps: Sequence[DiskOperation]) -> list[set[str]]:
    """Return what each round of syncs makes durable: a round ends where something is written."""
    rounds, is_open = list[set[str]](), False
    for step in steps:
        is_sync = step.name in {"sync", "sync_dir"}
        if is_sync and not is_open:
            rounds.append(set())
        if is_sync:
            rounds[-1].add(step.path)
        is_open = is_sync
    return rounds


@pytest.mark.inv("APP-2", "APP-3")
@pytest.mark.parametrize("kind", KINDS)
def test_new_files_are_synced_with_their_directories_and_then_the_group(kind: str) -> None:
    case = CASES[kind]
    disk = case.disk.copy()
    apply(opened(disk), case.plan)
    # What comes before the first file syncs what another process left.
    steps = disk.steps[next(at for at, step in enumerate(disk.steps) if step.name == "create") :]
    group = next(at for at, step in enumerate(steps) if step.name == "append")
    # The mark of this boot comes before its first group, and the mark of the group after its sync.
    names = [step.name for step in steps]
    assert names[group:] == ["append", "sync", "write_at"]
    assert ("write_at" in names[:group]) == (case.old is None)
    created = {step.path for step in steps if step.name == "create" and step.bytes}
    renamed = {step.path for step in steps if step.name == "rename"}
    assert bool(renamed) == (kind == "start beside another")
    assert any("/events/" in path for path in created)
    *before, together, last = rounds_of(steps)
    assert last == {layout.manifest(case.plan.session)}
    assert created <= together
    assert {layout.parent(path) for path in created | renamed} <= together
    # Content that exists may be referred to: it is replaced by a file that is synced.
    assert [{re.sub(r"\.[0-9a-f]{16}\.tmp$", "", path) for path in one} for one in before] == [renamed] * bool(renamed)


@pytest.mark.inv("APP-7")
@pytest.mark.parametrize(
    ("error", "kind_of_failure"),
    [(errno.ENOSPC, FailureKind.FULL), (errno.EROFS, FailureKind.READ_ONLY), (errno.EIO, FailureKind.FAILED)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_that_fails_leaves_the_old_state_and_the_same_call_works_later(
    kind: str, error: int, kind_of_failure: FailureKind
) -> None:
    case = CASES[kind]
    for at in range(steps_of(case)):
        for keep in (None, 40):
            disk = case.disk.copy()
            store = opened(disk)
            disk.fault = InjectedFault(at=at, keep_bytes=keep, error=error)
            with pytest.raises(StoreFailureError) as failure:
                apply(store, case.plan)
            assert failure.value.kind is kind_of_failure
            disk.fault = None
            assert opened(disk.copy()).load(case.plan.session) == case.old
            assert apply(store, case.plan) == case.new
            assert opened(disk).load(case.plan.session) == case.new


@pytest.mark.inv("APP-6")
@pytest.mark.parametrize("is_lasting", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_says_whether_the_append_may_count_and_the_next_one_makes_it_count(
    kind: str,
    is_lasting: bool,  # noqa: FBT001 — parametrised
) -> None:
    case = CASES[kind]
    probe = case.disk.copy()
    apply(opened(probe), case.plan)
    group = next(number for number, step in enumerate(probe.steps) if step.name == "append")
    for at in range(len(probe.steps)):
        for keep in (None, 40, 10_000):
            disk = case.disk.copy()
            store = opened(disk)
            disk.fault = InjectedFault(at=at, keep_bytes=keep, error=errno.EIO, is_lasting=is_lasting)
            with pytest.raises(StoreFailureError) as failure:
                apply(store, case.plan)
            is_whole = at > group or (at == group and keep == 10_000)
            assert failure.value.may_be_recorded is is_whole
            disk.fault = None
            # Nobody answers from it before somebody has settled it, in this process or another. The mark is the last
            # operation: if it was written and then reported as failed, the group is settled.
            is_marked = at == len(probe.steps) - 1 and keep == 10_000
            for reader in (store, opened(disk.copy())):
                assert reader.load(case.plan.session) == (case.new if is_marked else case.old)
            assert apply(store, case.plan) == case.new
            assert store.load(case.plan.session) == opened(disk).load(case.plan.session) == case.new


@pytest.mark.inv("CRASH-6")
def test_a_failing_session_does_not_disturb_another() -> None:
    case = CASES["advance"]
    disk = case.disk.copy()
    store = opened(disk)
    disk.fault = InjectedFault(at=3, error=errno.EIO)
    with pytest.raises(StoreFailureError):
        apply(store, case.plan)
    disk.fault = None
    other = apply(store, start_plan("c"))
    assert opened(disk).load(session_id("c")) == other
