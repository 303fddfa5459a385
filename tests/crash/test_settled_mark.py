"""What the settled mark decides: which group counts, for whom, and what a mark says that the manifest cannot."""

import errno
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.crash import advance_plan, apply, assert_readable, opened, run_id, session_id, start_plan
from tests.support.shares import share_of
from tests.support.sweep import advanced

from interlock.engine.request import Request
from interlock.engine.start import root_node
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import tag_of
from interlock.record.append_plan import AppendPlan
from interlock.service.audit.verify import unfinished_note, verify_session
from interlock.service.run.plans import Plans
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.session.settled import read_mark
from interlock.store.ports.errors import Health, SessionUnhealthyError, StoreFailureError
from interlock.store.ports.maintenance import Retention
from interlock.store.ports.reader import UnfinishedAppend
from interlock.store.retention import due
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError, ThreadLocks
from interlock.views.session import Session

A = session_id("a")
MANIFEST, MARK = layout.manifest(A), layout.settled(A)


def bytes_of(disk: CrashDisk, path: str) -> bytes:
    return disk.files[disk.names_now[path]].data


def put(disk: CrashDisk, path: str, data: bytes) -> None:
    number = disk.names_now[path]
    disk.files[number] = replace(disk.files[number], data=data, durable=data)


def advance(disk: CrashDisk, notes: str = "Done.") -> AppendPlan:
    return advance_plan(opened(disk), root_node(run_id("a")), Request(notes=notes, artifacts=({"kind": "report"},)))


def step_number(disk: CrashDisk, plan: AppendPlan, name: str, path: str, which: int = -1) -> int:
    """Return which operation of an append this is: the last of its kind unless said otherwise."""
    probe = disk.copy()
    apply(opened(probe), plan)
    return [at for at, step in enumerate(probe.steps) if (step.name, step.path) == (name, path)][which]


def collector_of(disk: CrashDisk) -> LocalCollector:
    return LocalCollector(Path("/nowhere"), files=disk, locks=ThreadLocks())


@dataclass(frozen=True, kw_only=True)
class Unsettled:
    """A disk whose last group is whole and not settled: its writer's sync failed, or it was killed."""

    disk: CrashDisk
    plan: AppendPlan
    old: Session
    new: Session


def unsettled(*, is_killed: bool = False) -> Unsettled:
    disk = CrashDisk()
    old = apply(opened(disk), start_plan())
    plan = advance(disk)
    new = apply(opened(disk.copy()), plan)
    disk = disk.copy()
    at = step_number(disk, plan, "sync", MANIFEST)
    disk.fault = InjectedFault(at=at, error=None if is_killed else errno.EIO)
    with pytest.raises(PowerCutError if is_killed else StoreFailureError):
        apply(opened(disk), plan)
    disk.fault = None
    return Unsettled(disk=disk, plan=plan, old=old, new=new)


@pytest.mark.inv("CRASH-3")
@pytest.mark.parametrize("is_killed", [False, True])
def test_no_reader_answers_from_a_group_that_nobody_settled(is_killed: bool) -> None:  # noqa: FBT001 — parametrised
    case = unsettled(is_killed=is_killed)
    store = opened(case.disk)
    before = len(case.disk.steps)
    assert store.load(A) == case.old
    assert len(store.history(A)) == 1
    assert store.sessions() == (A,)
    salvaged = store.salvage(A)
    assert salvaged is not None
    assert (salvaged.fold, salvaged.health) == (case.old, Health.HEALTHY)
    assert len(case.disk.steps) == before


@pytest.mark.inv("CRASH-3")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_version_changes_when_a_group_is_settled_and_the_marks_of_settled_logs_are_not_read_again(
    is_killed: bool,  # noqa: FBT001 — parametrised
) -> None:
    case = unsettled(is_killed=is_killed)
    store = opened(case.disk)
    seen = [store.log_versions()[A], store.log_versions()[A]]
    assert seen[0] == seen[1]
    assert apply(opened(case.disk), case.plan) == case.new
    seen += [store.log_versions()[A], store.log_versions()[A]]
    assert (seen[1] == seen[2], seen[2] == seen[3]) == (False, True)
    mark = case.disk.read(MARK)
    flip_mark(case.disk)
    assert (store.log_versions()[A] == seen[3], opened(case.disk).log_versions()[A] == seen[3]) == (True, False)
    put(case.disk, MARK, mark)
    advanced(case.disk, "a", artifact="More.")
    assert store.log_versions()[A] not in seen


@pytest.mark.inv("RES-4", "CRASH-9")
def test_no_summary_is_of_a_version_whose_mark_says_that_the_manifest_lost_its_end() -> None:
    disk, longer = CrashDisk(), three_groups()[1][-1]
    apply(opened(disk), start_plan())
    store = opened(disk)
    with store.hold(A) as lock:
        store.cache_summary(lock, b"of the start")
    assert store.cached_summary_of(A, store.log_versions()[A]) == b"of the start"
    put(disk, MARK, longer)
    store = opened(disk)
    assert store.cached_summary_of(A, store.log_versions()[A]) is None


@pytest.mark.inv("CRASH-9")
def test_what_an_interrupted_append_left_is_named_and_is_no_damage() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    plan = advance(disk)
    assert opened(disk).unfinished(A) is None
    cut = disk.copy()
    cut.fault = InjectedFault(at=step_number(disk, plan, "append", MANIFEST))
    with pytest.raises(PowerCutError):
        apply(opened(cut), plan)
    cut.fault = None
    assert opened(cut).unfinished(A) is UnfinishedAppend.SEGMENT
    assert opened(unsettled().disk).unfinished(A) is UnfinishedAppend.GROUP
    store = opened(cut)
    plans = Plans(store)
    assert verify_session(store, plans, A) == ()
    assert unfinished_note(store, A) is not None
    apply(store, plan)
    assert store.unfinished(A) is unfinished_note(store, A) is None


@pytest.mark.inv("CRASH-3")
def test_the_next_holder_of_the_lock_writes_all_of_an_unsettled_group_again_and_marks_it() -> None:
    case = unsettled()
    before = len(case.disk.steps)
    with opened(case.disk).hold(A) as lock:
        assert lock.session == case.new
    steps = case.disk.steps[before:]
    renamed = [step.path for step in steps if step.name == "rename"]
    segment = layout.segment(A, case.old.next_index, case.new.next_index - 1)
    assert segment in renamed
    assert {path.partition("/")[0] for path in renamed} == {"sessions", "snapshots", "artifacts"}
    assert [(step.name, step.path) for step in steps[-3:]] == [
        ("write_at", MANIFEST),
        ("sync", MANIFEST),
        ("write_at", MARK),
    ]
    for left in case.disk.survivors():
        assert opened(left).load(A) == case.new
        assert_readable(opened(left), case.new)


@pytest.mark.inv("CRASH-3")
def test_settling_that_is_cut_or_fails_anywhere_leaves_the_group_to_the_next_holder() -> None:
    case = unsettled()
    probe = case.disk.copy()
    with opened(probe).hold(A):
        pass
    for at in range(len(probe.steps)):
        for fault in (
            InjectedFault(at=at),
            InjectedFault(at=at, keep_bytes=10_000),
            InjectedFault(at=at, error=errno.EIO),
        ):
            disk = case.disk.copy()
            disk.fault = fault
            with pytest.raises((PowerCutError, StoreFailureError)) as failure:
                apply(opened(disk), case.plan)
            if isinstance(failure.value, StoreFailureError):
                assert failure.value.may_be_recorded
            disk.fault = None
            assert opened(disk).load(A) in (case.old, case.new)
            assert apply(opened(disk), case.plan) == case.new


@pytest.mark.inv("CRASH-3")
def test_another_append_builds_on_an_unsettled_group_only_after_settling_it() -> None:
    case = unsettled()
    tip = case.new.runs[run_id("a")].tip
    assert tip is not None
    ahead = case.disk.copy()
    apply(opened(ahead), case.plan)
    plan = advance_plan(opened(ahead), tip, Request(notes="And on."))
    after = apply(opened(case.disk), plan)
    assert after.next_index > case.new.next_index
    for left in case.disk.survivors():
        assert opened(left).load(A) == after


@pytest.mark.inv("CRASH-3")
def test_after_a_power_loss_whatever_the_manifest_holds_counts() -> None:
    case = unsettled(is_killed=True)
    seen = {opened(left).load(A) == case.new for left in case.disk.survivors()}
    assert seen == {False, True}


@pytest.mark.inv("CRASH-3")
def test_no_bit_flip_of_the_mark_hides_what_a_token_names_and_the_next_append_mends_it() -> None:
    disk = CrashDisk()
    old = apply(opened(disk), start_plan())
    new = apply(opened(disk), advance(disk))
    tip = new.runs[run_id("a")].tip
    assert tip is not None
    good = bytes_of(disk, MARK)
    for at in range(len(good)):
        for bit in range(8):
            flipped = disk.copy()
            put(flipped, MARK, good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
            assert opened(flipped).load(A) == old
            assert opened(flipped).load(A, tag_of(tip)) == new
            with opened(flipped).hold(A) as lock:
                assert lock.session == new
            assert bytes_of(flipped, MARK) == good
            assert opened(flipped).load(A) == new


def flip_mark(disk: CrashDisk) -> None:
    good = bytes_of(disk, MARK)
    put(disk, MARK, good[:30] + bytes([good[30] ^ 1]) + good[31:])


@pytest.mark.inv("CRASH-3", "HIS-9")
def test_without_a_readable_mark_a_summary_of_the_last_group_shows_that_it_was_settled() -> None:
    disk = CrashDisk()
    store = opened(disk)
    old = apply(store, start_plan())
    with store.hold(A) as lock:
        store.cache_summary(lock, b"of the start")
    plan = advance(disk)
    ahead = disk.copy()
    flip_mark(disk)
    assert opened(disk).load(A) == old
    assert opened(disk).unfinished(A) is None
    # The summary is of an earlier group, so it says nothing of the last one.
    new = apply(opened(ahead), plan)
    flip_mark(ahead)
    salvaged = opened(ahead).salvage(A)
    assert salvaged is not None
    assert (salvaged.fold, salvaged.is_undecided, salvaged.omitted.groups) == (old, True, 1)
    assert opened(ahead).unfinished(A) is UnfinishedAppend.UNDECIDED
    store = opened(ahead)
    with store.hold(A) as lock:
        store.cache_summary(lock, b"of the advance")
    flip_mark(ahead)
    assert opened(ahead).load(A) == new


@pytest.mark.inv("CRASH-3", "HIS-9")
def test_a_summary_after_an_older_mark_shows_that_the_later_groups_were_settled() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    older, plan = disk.read(MARK), advance(disk)
    new = apply(opened(disk), plan)
    store = opened(disk)
    with store.hold(A) as lock:
        store.cache_summary(lock, b"of the advance")
    put(disk, MARK, older)
    assert opened(disk).cached_summary(A) == b"of the advance"
    assert opened(disk).load(A) == new
    assert opened(disk).unfinished(A) is None
    with opened(disk).hold(A):
        assert disk.read(MARK) == older, "nothing has to be settled"
    disk.unlink(layout.cached_summary(A))
    assert opened(disk).unfinished(A) is UnfinishedAppend.GROUP


@pytest.mark.inv("CRASH-3")
def test_no_summary_makes_a_group_count_that_nobody_settled() -> None:
    for is_killed in (False, True):
        case = unsettled(is_killed=is_killed)
        flip_mark(case.disk)
        assert opened(case.disk).load(A) == case.old


@pytest.mark.inv("CRASH-3")
def test_bytes_after_a_mark_say_nothing_and_the_next_append_cuts_them_off() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    new = apply(opened(disk), advance(disk))
    good = bytes_of(disk, MARK)
    for rest in (b"x", b"\n", bytes(2), bytes(100), good):
        longer = disk.copy()
        put(longer, MARK, good + rest)
        assert opened(longer).load(A) == new
        tip = new.runs[run_id("a")].tip
        assert tip is not None
        after = apply(opened(longer), advance_plan(opened(longer), tip, Request(notes="And on.")))
        assert len(bytes_of(longer, MARK)) == len(good)
        assert opened(longer).load(A) == after


@pytest.mark.inv("CRASH-3")
def test_a_torn_mark_is_what_a_power_loss_leaves_and_counts_as_none() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    new = apply(opened(disk), advance(disk))
    good = bytes_of(disk, MARK)
    for kept in range(len(good) - 1):
        for data in (good[:kept], good[:kept].ljust(len(good), b"\0")):
            torn = disk.copy()
            put(torn, MARK, data)
            assert read_mark(torn, A) is None
            assert opened(torn).load(A) == new


@pytest.mark.exhaustive
@pytest.mark.inv("CRASH-9")
def test_a_manifest_that_ends_before_its_mark_is_damaged_at_every_length() -> None:
    disk = CrashDisk()
    started = apply(opened(disk), start_plan())
    first = len(bytes_of(disk, MANIFEST))
    apply(opened(disk), advance(disk))
    whole = bytes_of(disk, MANIFEST)
    for size in sorted({*share_of(range(len(whole)), 9), first - 1, first}):
        for boots in (0, 1):
            cut = disk.copy()
            cut.boot += boots
            put(cut, MANIFEST, whole[:size])
            store = opened(cut)
            with pytest.raises(SessionUnhealthyError, match="acknowledged bytes are missing at its end") as error:
                store.load(A)
            assert error.value.health is (Health.CORRUPT_TAIL if size >= first else Health.CORRUPT_HEAD)
            salvaged = store.salvage(A)
            assert salvaged is not None
            assert salvaged.fold == (started if size >= first else None)
            assert salvaged.health is error.value.health
            assert store.sessions() == (A,)
            collector = LocalCollector(None, files=cut, locks=ThreadLocks())  # type: ignore[arg-type]
            assert [one.session for one in collector.mark().unsound] == [A]
            assert [one.session for one in collector.overview().unsound] == [A]


@pytest.mark.inv("CRASH-9")
def test_a_lost_manifest_is_damage_and_not_a_session_that_never_was() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    disk.unlink(MANIFEST)
    store = opened(disk)
    assert store.sessions() == (A,)
    with pytest.raises(SessionUnhealthyError) as error:
        store.load(A)
    assert error.value.health is Health.CORRUPT_HEAD
    with pytest.raises(SessionUnhealthyError), store.hold(A):
        pytest.fail("a damaged session was held")


@pytest.mark.inv("CRASH-3")
def test_a_collection_keeps_what_an_unsettled_group_refers_to() -> None:
    case = unsettled()
    case.disk.now_s += 10 * 86_400
    collector = LocalCollector(None, files=case.disk, locks=ThreadLocks())  # type: ignore[arg-type]
    marked = collector.mark()
    with collector.upkeep_lock():
        swept = collector.sweep(marked, Retention(now_s=case.disk.now_s, ttl_s=None))
    assert due(marked, Retention(now_s=case.disk.now_s, ttl_s=None)).items == swept.taken.items == ()
    assert apply(opened(case.disk), case.plan) == case.new
    assert_readable(opened(case.disk), case.new)


@pytest.mark.inv("APP-5")
def test_content_that_another_process_wrote_is_written_again_before_anything_refers_to_it() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    pinned = next(path for path in disk.names_now if path.startswith("workflows/pinned/"))
    store = opened(disk)
    disk.steps.clear()
    apply(store, start_plan("b"))
    assert ("rename", pinned) in {(step.name, step.path) for step in disk.steps}
    disk.steps.clear()
    apply(store, start_plan("c"))
    assert pinned not in {step.path for step in disk.steps}


@mutable
class Interleaved(CrashDisk):
    """A disk on which others work while a reader is between two of its readings."""

    between: Callable[[], object] | None = None

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        data = CrashDisk.read(self, path, offset, bytes_max)
        if path == MANIFEST and self.between is not None:
            work, self.between = self.between, None
            work()
        return data


def interleaved(disk: CrashDisk) -> Interleaved:
    copied = disk.copy()
    return Interleaved(copied.files, copied.names_now, copied.entries_durable, copied.pending, boot=copied.boot)


@pytest.mark.inv("CRASH-3")
def test_an_append_between_a_readers_two_readings_is_seen_or_not_and_never_called_damage() -> None:
    disk = CrashDisk()
    old = apply(opened(disk), start_plan())
    plan = advance(disk)
    new = apply(opened(disk.copy()), plan)
    for knows in (False, True):
        for boots in (0, 1):
            shared = interleaved(disk)
            shared.boot += boots
            reader = opened(shared)
            if knows:
                assert reader.load(A) == old
            shared.between = lambda shared=shared: apply(opened(shared), plan)
            assert reader.load(A) in (old, new)
            assert reader.load(A) == new


@pytest.mark.inv("CRASH-3")
def test_a_group_that_begins_and_fails_between_a_readers_two_readings_is_not_believed() -> None:
    disk = CrashDisk()
    old = apply(opened(disk), start_plan())
    plan = advance(disk)
    for boots in (0, 1):
        for has_mark in (False, True):
            shared = interleaved(disk)
            shared.boot += boots
            if not has_mark:
                shared.unlink(MARK)
            at = step_number(shared.copy(), plan, "sync", MANIFEST)

            def begin_and_fail(shared: Interleaved = shared, at: int = at) -> None:
                shared.steps.clear()
                shared.fault = InjectedFault(at=at, error=errno.EIO)
                with pytest.raises(StoreFailureError):
                    apply(opened(shared), plan)
                shared.fault = None

            shared.between = begin_and_fail
            reader = opened(shared)
            assert reader.load(A) == old
            assert reader.load(A) == old


def of_form_1(mark: bytes) -> bytes:
    """Return a mark as it was written before its check covered the session."""
    fields = b"1" + mark[1:].rpartition(b" ")[0]
    return fields + b" " + hashlib.sha256(fields).hexdigest()[:32].encode() + b"\n"


def three_groups() -> tuple[CrashDisk, list[bytes]]:
    """Return a disk with a session of three groups, and the mark after each."""
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    marks = [bytes_of(disk, MARK)]
    for number in range(2):
        advanced(disk, "a", artifact=f"Number {number}.")
        marks.append(bytes_of(disk, MARK))
    return disk, marks


@pytest.mark.inv("CRASH-3", "CRASH-9", "DOC-1")
@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("which", range(2))
def test_a_stale_mark_hides_no_more_than_the_last_append_and_is_named(form: int, which: int) -> None:
    disk, marks = three_groups()
    whole = opened(disk).load(A)
    assert whole is not None
    put(disk, MARK, marks[which] if form == 2 else of_form_1(marks[which]))
    loaded = opened(disk).load(A)
    assert loaded is not None
    assert len(loaded.nodes) == len(whole.nodes) - 1
    is_behind = which < 1
    assert opened(disk).unfinished(A) is (UnfinishedAppend.UNDECIDED if is_behind else UnfinishedAppend.GROUP)
    assert [one.name for one in collector_of(disk).obstacles()] == ([MARK] if is_behind else [])
    with opened(disk).hold(A) as lock:
        assert lock.session == whole
    assert opened(disk).load(A) == whole
    assert bytes_of(disk, MARK) == marks[-1]
    assert collector_of(disk).obstacles() == ()


@pytest.mark.inv("CRASH-3", "CRASH-9", "DOC-1")
@pytest.mark.parametrize("form", [1, 2])
def test_a_mark_of_another_session_hides_no_more_than_the_last_append_and_is_named(form: int) -> None:
    disk, marks = three_groups()
    other = session_id("b")
    whole = opened(disk).load(A)
    apply(opened(disk), start_plan("b"))
    foreign = bytes_of(disk, layout.settled(other))
    assert len(foreign) == len(marks[0])
    put(disk, MARK, foreign if form == 2 else of_form_1(foreign))
    assert opened(disk).unfinished(A) is UnfinishedAppend.UNDECIDED
    assert [one.name for one in collector_of(disk).obstacles()] == [MARK]
    put(disk, layout.settled(other), marks[-1])
    assert opened(disk).unfinished(other) is UnfinishedAppend.UNDECIDED
    assert opened(disk).salvage(other) is not None
    with opened(disk).hold(A) as lock:
        assert lock.session == whole
    assert bytes_of(disk, MARK) == marks[-1]


@pytest.mark.inv("CRASH-3")
def test_a_mark_of_form_1_is_read_and_the_next_append_writes_its_own() -> None:
    disk = CrashDisk()
    apply(opened(disk), start_plan())
    put(disk, MARK, of_form_1(bytes_of(disk, MARK)))
    mark = read_mark(disk, A)
    assert mark is not None
    assert mark.manifest_bytes == len(bytes_of(disk, MANIFEST))
    assert opened(disk).unfinished(A) is None
    assert collector_of(disk).obstacles() == ()
    advanced(disk, "a")
    assert bytes_of(disk, MARK).startswith(b"2 ")


@pytest.mark.inv("CRASH-9", "HIS-9")
def test_no_summary_is_current_if_the_mark_says_that_the_manifest_lost_its_end() -> None:
    longer = three_groups()[1][-1]
    before = CrashDisk()
    apply(opened(before), start_plan())
    store = opened(before)
    with store.hold(A) as lock:
        store.cache_summary(lock, b"of the start")
    assert opened(before).cached_summary(A) == b"of the start"
    put(before, MARK, longer)
    assert opened(before).cached_summary(A) is None
    with pytest.raises(SessionUnhealthyError):
        opened(before).load(A)


@pytest.mark.inv("CRASH-3")
def test_a_mark_that_is_none_is_written_again_by_whoever_holds_the_lock_at_any_cut() -> None:
    disk, marks = three_groups()
    flip_mark(disk)
    store = opened(disk)
    with store.hold(A) as lock:
        store.cache_summary(lock, b"of all")
    assert bytes_of(disk, MARK) == marks[-1]
    flip_mark(disk)
    whole = opened(disk).load(A)
    salvaged = opened(disk).salvage(A)
    assert salvaged is not None
    assert (salvaged.is_unmarked, salvaged.is_undecided) == (True, False)
    probe = disk.copy()
    with opened(probe).hold(A):
        pass
    for at in range(len(probe.steps)):
        cut = disk.copy()
        cut.fault = InjectedFault(at=at, error=None)
        with pytest.raises(PowerCutError), opened(cut).hold(A):
            pass
        cut.fault = None
        assert opened(cut).load(A) == whole
        with opened(cut).hold(A):
            assert bytes_of(cut, MARK) == marks[-1]
