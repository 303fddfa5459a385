"""Two processes write the same content at once: whatever one of them acknowledged survives a power loss.

Content gets its own name before it is synced, and the syncs of one round end in any order. So the second process works
before any operation of the first one, and is stopped before any of its own operations.
"""

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from tests.support.crash import (
    advance_plan,
    apply,
    assert_readable,
    opened,
    root_node,
    run_id,
    session_id,
    stamps,
    start_plan,
)
from tests.support.shares import share_of
from tests.support.sweep import DAY_S, interrupted, paths, settle, swept, write

from interlock.engine.request import Request
from interlock.record.append_plan import AppendPlan
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles
from interlock.store.local.rounds import Round, in_order
from interlock.store.local.session.session_log import SessionLog
from interlock.store.ports.errors import StoreFailureError
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError, ThreadLocks
from interlock.views.session import Session


def last_first(calls: Sequence[Callable[[], None]]) -> None:
    """A round whose syncs end in the opposite order."""
    in_order(calls[::-1])


A, B = session_id("a"), session_id("b")
ROUNDS = (in_order, last_first)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A disk, and two appends to different sessions with content in common."""

    disk: CrashDisk
    first: AppendPlan
    second: AppendPlan


def starting() -> Pair:
    return Pair(disk=CrashDisk(), first=start_plan("a"), second=start_plan("b"))


def reporting() -> Pair:
    disk = CrashDisk()
    for name in ("a", "b"):
        apply(opened(disk), start_plan(name))
    report = Request(notes="Done.", artifacts=({"kind": "report", "rows": [1, 2]},))
    first, second = (advance_plan(opened(disk), root_node(run_id(name)), report, name) for name in ("a", "b"))
    return Pair(disk=settle(disk), first=first, second=second)


PAIRS = {"two starts": starting(), "two reports with one artifact": reporting()}


def append(
    disk: CrashDisk, plan: AppendPlan, sync_round: Round = in_order, content: ContentFiles | None = None
) -> Session:
    """Append a plan as a process does that remembers nothing but the given content."""
    content = content or ContentFiles(disk, lambda: disk.now_s)
    log = SessionLog(disk, ThreadLocks(), content, sync_round)
    with log.hold(plan.session) as lock:
        return log.append(lock, plan, stamps())


def operations(disk: CrashDisk, plan: AppendPlan) -> int:
    copy = disk.copy()
    append(copy, plan)
    return len(copy.steps)


def assert_kept(disk: CrashDisk, acknowledged: Sequence[Session]) -> None:
    """Hold that what was acknowledged is there after a power loss, and that no session is incomplete."""
    for left in share_of(disk.survivors(), 24):
        store = opened(left)
        for session in acknowledged:
            assert store.load(session.session) == session
        for session in map(store.load, (A, B)):
            if session is not None:
                assert_readable(store, session)


def both(pair: Pair, at: int, fault: InjectedFault, sync_round: Round = in_order) -> tuple[CrashDisk, list[Session]]:
    """Make the second append before an operation of the first one, and return the disk and what was acknowledged.

    The fault counts its operations from there: a power cut stops the second process, an error meets either.
    """
    acknowledged = list[Session]()

    def second(disk: CrashDisk) -> None:
        disk.fault = replace(fault, at=len(disk.steps) + fault.at)
        with suppress(PowerCutError, StoreFailureError):
            acknowledged.append(append(disk, pair.second, sync_round))
        if fault.error is None:
            disk.fault = None

    disk = interrupted(pair.disk, at, second)
    with suppress(StoreFailureError):
        acknowledged.append(append(disk, pair.first, sync_round))
    disk.fault = None
    return disk, acknowledged


@pytest.mark.exhaustive
@pytest.mark.inv("APP-2", "APP-5", "CRASH-1")
@pytest.mark.parametrize("sync_round", ROUNDS)
@pytest.mark.parametrize("kind", PAIRS)
def test_what_is_acknowledged_survives_when_another_process_writes_the_same_content(
    kind: str, sync_round: Round
) -> None:
    pair = PAIRS[kind]
    for at in range(operations(pair.disk, pair.first)):
        for stop in share_of(range(operations(pair.disk, pair.second) + 8), 11):
            disk, acknowledged = both(pair, at, InjectedFault(at=stop), sync_round)
            assert acknowledged[-1].session == A
            assert_kept(disk, acknowledged)


@pytest.mark.exhaustive
@pytest.mark.inv("APP-5", "APP-6", "CRASH-1")
@pytest.mark.parametrize("kind", PAIRS)
def test_a_failure_takes_nothing_from_another_process_that_writes_the_same_content(kind: str) -> None:
    pair = PAIRS[kind]
    whole = operations(pair.disk, pair.first) + operations(pair.disk, pair.second)
    for at in range(operations(pair.disk, pair.first)):
        for fails in share_of(range(whole - at), 11):
            disk, acknowledged = both(pair, at, InjectedFault(at=fails, keep_bytes=0, error=errno.EIO))
            assert acknowledged, "one failure stops one of them"
            assert_kept(disk, acknowledged)


@pytest.mark.exhaustive
@pytest.mark.inv("APP-5", "GC-4")
@pytest.mark.parametrize("kind", PAIRS)
def test_a_process_that_wrote_content_long_ago_does_not_rely_on_a_file_of_its_name(kind: str) -> None:
    pair = PAIRS[kind]
    probe = pair.disk.copy()
    append(probe, pair.second)
    wrote = [path for directory in layout.CONTENT_DIRS for path in paths(probe, directory)]
    for at in range(operations(pair.disk, pair.first)):
        acknowledged = list[Session]()

        def second(disk: CrashDisk, acknowledged: list[Session] = acknowledged) -> None:
            content = ContentFiles(disk, lambda: disk.now_s)
            for path in wrote:
                content.mark_written(path)
            # Sweeps remove all of it; then another process writes it again, and has not synced it yet.
            disk.now_s += 91 * DAY_S
            acknowledged.append(append(disk, pair.second, content=content))
            disk.fault = InjectedFault(at=len(disk.steps))

        disk = interrupted(pair.disk, at, second)
        with suppress(PowerCutError):
            append(disk, pair.first)
        disk.fault = None
        assert_kept(disk, acknowledged)


def in_the_trash(plan: AppendPlan, *, is_durable: bool) -> CrashDisk:
    """Return a disk on which a sweep was interrupted: what a session refers to is in the trash."""
    disk = CrashDisk()
    append(disk, plan)
    content = paths(disk, layout.SNAPSHOTS) | paths(disk, layout.WORKFLOWS)
    for path in content:
        write(disk, layout.trashed(path), b"")
    disk = settle(disk)
    for path in content:
        disk.rename(path, layout.trashed(path))
    return settle(disk) if is_durable else disk


@pytest.mark.exhaustive
@pytest.mark.inv("APP-5", "GC-3", "CRASH-1")
@pytest.mark.parametrize("is_durable", [True, False], ids=["a durable move", "a move that may be lost"])
@pytest.mark.parametrize("sync_round", ROUNDS)
def test_content_in_the_trash_stays_readable_while_it_is_written_again(
    sync_round: Round,
    is_durable: bool,  # noqa: FBT001 — parametrised
) -> None:
    pair = PAIRS["two starts"]
    before = in_the_trash(pair.second, is_durable=is_durable)
    old = opened(before).load(B)
    assert old is not None
    whole = before.copy()
    append(whole, pair.first, sync_round)
    for at, step in share_of(enumerate(whole.steps), 2):
        for keep in sorted({0, step.bytes // 2, step.bytes}):
            disk = before.copy()
            disk.fault = InjectedFault(at=at, keep_bytes=keep)
            with pytest.raises(PowerCutError):
                append(disk, pair.first, sync_round)
            disk.fault = None
            assert_readable(opened(disk), old)
            assert_kept(disk, [old])
            swept(disk)
            assert_kept(disk, [old])


@pytest.mark.inv("APP-5", "GC-3")
def test_a_file_with_other_bytes_is_read_from_its_copy_in_the_trash() -> None:
    plan = PAIRS["two starts"].second
    disk = in_the_trash(plan, is_durable=True)
    old = opened(disk).load(B)
    assert old is not None
    for copy in paths(disk, layout.TRASH):
        disk.write(copy.removeprefix(f"{layout.TRASH}/"), disk.read(copy)[:-1])
    assert_readable(opened(disk), old)
