"""Writers and sweeps on one real directory at once, in threads and in processes: nothing that is referred to goes."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.crash import apply, assert_readable, session_id, start_plan
from tests.support.sweep import advance

from interlock.service.clock import SystemClock
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.store import LocalStore
from interlock.store.ports.maintenance import Kind

ROUNDS, WRITERS, SESSIONS = 5, 3, 4
DAYS = 2
DAY_S = 24 * 3600


def now_s() -> float:
    return SystemClock().unix_ms() / 1000


def make_old(root: Path) -> None:
    """Let every session expire, and make what they share older than a sweep spares."""
    when = now_s() - (DAYS + 1) * DAY_S
    for name in ("sessions", "snapshots", "workflows/pinned", "artifacts"):
        for path in (root / name).rglob("*"):
            os.utime(path, (when, when))


def write_sessions(root: str, writer: str) -> list[str]:
    """Begin sessions one after another, all with the same content, and take a step in each; return their names."""
    store = LocalStore(Path(root))
    names = [f"{writer}-{number}" for number in range(SESSIONS)]
    for name in names:
        apply(store, start_plan(name))
        advance(store, name, artifact="shared")
    return names


def collected(root: Path) -> Collected:
    collector = LocalCollector(root)
    found = collect(collector, collector.retention_pins, CollectCommand(days=DAYS, now_s=now_s()))
    assert not found.is_safe_mode
    return found


def collect_beside(root: Path, is_over: Callable[[], bool]) -> set[Kind]:
    """Collect again and again until the writers are through, and once more; return what went."""
    kinds = set[Kind]()
    while not is_over():
        kinds |= {kind for kind, _ in collected(root).taken.sizes()}
    return kinds | {kind for kind, _ in collected(root).taken.sizes()}


def assert_only_these(root: Path, names: Sequence[str]) -> None:
    store = LocalStore(root)
    assert set(store.sessions()) == set(map(session_id, names))
    for name in names:
        session = store.load(session_id(name))
        assert session is not None
        assert_readable(store, session)


@pytest.mark.inv("GC-6")
def test_threads_that_reuse_what_has_just_lost_its_last_session_keep_theirs(tmp_path: Path) -> None:
    went = set[Kind]()
    for number in range(ROUNDS):
        make_old(tmp_path)
        with ThreadPoolExecutor(WRITERS) as pool:
            writers: list[Future[list[str]]] = [
                pool.submit(write_sessions, str(tmp_path), f"{number}-{who}") for who in range(WRITERS)
            ]
            went |= collect_beside(tmp_path, lambda: all(one.done() for one in writers))  # noqa: B023 — used at once
        assert_only_these(tmp_path, [name for one in writers for name in one.result()])
    assert {Kind.SESSION, Kind.TRASH} <= went


@pytest.mark.inv("GC-6")
def test_processes_that_reuse_what_has_just_lost_its_last_session_keep_theirs(tmp_path: Path) -> None:
    write_sessions(str(tmp_path), "old")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for number in range(ROUNDS):
            make_old(tmp_path)
            writers = [pool.apply_async(write_sessions, (str(tmp_path), f"{number}-{who}")) for who in range(2)]
            went = collect_beside(tmp_path, lambda: all(one.ready() for one in writers))  # noqa: B023 — used at once
            assert Kind.SESSION in went
            assert_only_these(tmp_path, [name for one in writers for name in one.get()])
