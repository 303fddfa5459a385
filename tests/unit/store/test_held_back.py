"""Expired sessions that a collection leaves: those that may be restored, and those behind links."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.crash import apply, opened, session_id, start_plan
from tests.support.sweep import DAY_S, DAYS, collector_on, dated_disk, paths, started, swept

from interlock.kernel.ids import SessionId
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import Health
from interlock.testing.power_cut import CrashDisk

A, B = session_id("a"), session_id("b")


def lose(disk: CrashDisk, path: str) -> None:
    disk.unlink(path)


def alter(disk: CrashDisk, path: str) -> None:
    number = disk.names_now[path]
    disk.files[number] = replace(disk.files[number], data=b"x", durable=b"x")


def own_artifact(disk: CrashDisk, name: str) -> str:
    """Start and advance a session with an artifact of its own, and return the artifact's path."""
    before = paths(disk, "artifacts")
    started(disk, name, artifact=name)
    (path,) = paths(disk, "artifacts") - before
    return path


@pytest.mark.inv("GC-7", "GC-8")
@pytest.mark.parametrize("harm", [lose, alter])
def test_an_expired_session_that_lost_content_stays_and_is_named(harm: Callable[[CrashDisk, str], None]) -> None:
    disk = dated_disk()
    lost = own_artifact(disk, "a")
    own_artifact(disk, "b")
    data = disk.read(lost)
    harm(disk, lost)
    disk.now_s += 1_000 * DAY_S
    before = paths(disk, "sessions") | paths(disk, "snapshots") | paths(disk, "workflows")
    for is_dry_run in (True, False):
        found = swept(disk, is_dry_run=is_dry_run)
        assert [one.session for one in found.taken.sessions] == [B]
        assert [(one.session, one.why) for one in found.skipped] == [(A, "damaged")]
        assert (found.needs_attention, found.is_safe_mode) == (True, False)
    swept(disk)
    assert {path for path in before if str(B) not in path} <= paths(disk)
    # After the file is restored, the session goes as any other.
    if disk.stat(lost) is not None:
        disk.unlink(lost)
    disk.write(lost, data)
    assert [one.session for one in swept(disk).taken.sessions] == [A]


def test_a_session_that_a_person_chose_goes_although_content_is_lost() -> None:
    disk = dated_disk()
    lose(disk, own_artifact(disk, "a"))
    collector = collector_on(disk)
    command = CollectCommand(days=0, now_s=disk.now_s + DAY_S, chosen=frozenset({A}))
    assert collect(collector, collector.retention_pins, command).skipped == ()
    assert opened(disk).sessions() == ()


@pytest.mark.inv("EVD-10")
@pytest.mark.parametrize("linked", ["", "/events", "/manifest.jsonl"])
@pytest.mark.parametrize("chosen", [frozenset[SessionId](), frozenset({A})])
def test_a_session_behind_a_link_stays_and_is_named(tmp_path: Path, linked: str, chosen: frozenset[SessionId]) -> None:
    root, away = tmp_path / "data", tmp_path / "away"
    for name in "ab":
        apply(LocalStore(root), start_plan(name))
    path = root / f"sessions/{A}{linked}"
    path.rename(away)
    path.symlink_to(away)
    collector = LocalCollector(root)

    def collected(*, is_dry_run: bool) -> Collected:
        now_s = root.stat().st_mtime + 1_000 * DAY_S
        command = CollectCommand(days=DAYS, now_s=now_s, chosen=chosen, is_dry_run=is_dry_run)
        return collect(collector, collector.retention_pins, command)

    for is_dry_run in (True, False):
        found = collected(is_dry_run=is_dry_run)
        assert [one.session for one in found.taken.sessions] == ([] if chosen else [B])
        assert [(one.session, one.why) for one in found.skipped] == [(A, "linked")]
        assert found.needs_attention
    assert LocalStore(root).load(A) is not None


@pytest.mark.damages
@pytest.mark.inv("GC-7", "EVD-10")
@pytest.mark.parametrize("linked", ["", "/events", "/manifest.jsonl"])
def test_a_link_that_leads_to_no_log_lets_nothing_go(tmp_path: Path, linked: str) -> None:
    root, away, empty = tmp_path / "data", tmp_path / "away", tmp_path / "empty"
    for name in "ab":
        apply(LocalStore(root), start_plan(name))
    path = root / f"sessions/{A}{linked}"
    path.rename(away)
    if linked == "/manifest.jsonl":
        # Beside a mark, the empty manifest would be damage.
        (root / layout.settled(A)).unlink()
    empty.touch() if linked.endswith(".jsonl") else empty.mkdir()
    path.symlink_to(empty)
    before = sorted(root.rglob("*"))
    collector = LocalCollector(root)
    command = CollectCommand(days=DAYS, now_s=root.stat().st_mtime + 1_000 * DAY_S)
    for _ in range(2):
        found = collect(collector, collector.retention_pins, command)
        assert [one.session for one in found.blockers] == [A]
        assert linked == "/events" or found.blockers[0].health is Health.UNREADABLE
        assert sorted(set(root.rglob("*")) - {root / "config", root / "config/.lock"}) == before
    assert collector.retention_pins.keep([A]) == {A}
