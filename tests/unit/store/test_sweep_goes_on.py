"""What a collection does when the disk refuses a part of its work: it names that part, and does the rest."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.crash import apply, session_id, start_plan
from tests.support.sweep import DAY_S, DAYS

from interlock.kernel.ids import SessionId
from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.files import FileStat, OsFiles
from interlock.store.local.store import LocalStore
from interlock.store.ports.maintenance import Due, Kind

A, B, C = map(session_id, "abc")


@dataclass(slots=True)
class Refusing:
    """When a disk refuses an operation."""

    is_refused: Callable[[str, str], bool]
    error: int = errno.EIO

    def __call__(self, operation: str, path: str) -> None:
        if self.is_refused(operation, path):
            raise OSError(self.error, os.strerror(self.error))


class RefusingFiles(OsFiles):
    """The real disk, which refuses some operations."""

    def __init__(self, root: Path, refuse: Refusing) -> None:
        super().__init__(root)
        self._refuse = refuse

    def rename(self, source: str, target: str) -> None:
        self._refuse("rename", source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._refuse("unlink", path)
        super().unlink(path)

    def sync_dir(self, path: str, *, full: bool = False) -> None:
        self._refuse("sync_dir", path)
        super().sync_dir(path, full=full)


class FarSessions(OsFiles):
    """A disk on which the sessions are on a file system of their own."""

    def stat(self, path: str) -> FileStat | None:
        found = super().stat(path)
        return replace(found, device=found.device + 1) if found is not None and path == layout.SESSIONS else found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in "abc":
        apply(LocalStore(tmp_path / "data"), start_plan(name))
    return tmp_path / "data"


def collected(
    root: Path,
    files: OsFiles | None = None,
    announce: Callable[[Due], None] = lambda _: None,
    chosen: frozenset[SessionId] = frozenset(),
    *,
    is_dry_run: bool = False,
) -> Collected:
    collector = LocalCollector(root, files=files)
    now_s = root.stat().st_mtime + 1_000 * DAY_S
    command = CollectCommand(days=DAYS, now_s=now_s, chosen=chosen, is_dry_run=is_dry_run)
    return collect(collector, collector.retention_pins, command, announce=announce)


def trashed(root: Path) -> list[str]:
    return sorted(path.name for path in (root / layout.TRASHED_SESSIONS).iterdir())


@pytest.mark.inv("GC-3", "GC-14")
def test_a_session_that_the_disk_refuses_is_named_and_the_others_go(root: Path) -> None:
    files = RefusingFiles(root, Refusing(lambda operation, path: operation == "rename" and path.endswith(B)))
    found = collected(root, files)
    assert [one.session for one in found.taken.sessions] == [A, C]
    assert [(one.session, one.why, one.found) for one in found.skipped] == [(B, "failed", "EIO")]
    assert found.needs_attention
    assert LocalStore(root).load(B) is not None
    assert trashed(root) == sorted([A, C])


@pytest.mark.inv("GC-3", "GC-14")
@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_session_whose_lock_is_a_link_stays_and_is_named(root: Path) -> None:
    lock = root / layout.lock(B)
    lock.unlink(missing_ok=True)
    lock.symlink_to(root / "none")
    found = collected(root)
    assert [one.session for one in found.taken.sessions] == [A, C]
    assert [(one.session, one.why) for one in found.skipped] == [(B, "failed")]


@pytest.mark.inv("GC-3", "GC-14")
def test_what_is_due_is_named_before_the_first_of_it_is_moved(root: Path) -> None:
    named = list[Due]()

    def announce(taken: Due) -> None:
        assert LocalStore(root).sessions() == tuple(sorted([A, B, C]))
        named.append(taken)

    taken = collected(root, announce=announce).taken
    assert [[one.session for one in due.sessions] for due in named] == [sorted([A, B, C])]
    assert taken.sessions == named[0].sessions


@pytest.mark.inv("GC-3", "GC-14")
def test_a_disk_that_fails_midway_leaves_a_report_of_what_went(root: Path) -> None:
    def after_the_moves(operation: str, path: str) -> bool:
        return operation == "sync_dir" and path == layout.SESSIONS and not (root / path / A).exists()

    found = collected(root, RefusingFiles(root, Refusing(after_the_moves)))
    assert [one.session for one in found.taken.sessions] == sorted([A, B, C])
    assert found.failure is not None
    assert found.failure.found == "EIO"
    assert found.needs_attention


@pytest.mark.inv("GC-3", "GC-14")
def test_something_in_the_trash_that_cannot_be_removed_is_in_nothings_way(root: Path) -> None:
    collected(root)
    (root / "trash/sessions/backup").mkdir()
    (root / "trash/sessions/backup/x").touch()
    apply(LocalStore(root), start_plan("d"))
    files = RefusingFiles(root, Refusing(lambda operation, path: operation == "unlink" and "backup" in path))
    found = collected(root, files)
    assert [(one.session, one.name, one.found) for one in found.skipped] == [(None, "trash/sessions/backup", "EIO")]
    assert [one.session for one in found.taken.sessions] == [session_id("d")]
    assert trashed(root) == sorted(["backup", session_id("d")])
    assert collected(root).failure is None
    assert trashed(root) == []


@pytest.mark.inv("GC-3", "GC-14")
def test_a_deletion_of_a_chosen_session_takes_nothing_else(root: Path) -> None:
    (root / "sessions/backup").mkdir()
    collected(root, chosen=frozenset({A}))
    assert trashed(root) == [f"{A}.deleted"]
    (root / layout.TRASHED_SESSIONS / "other").mkdir()
    collected(root, chosen=frozenset({A}))
    assert trashed(root) == ["other"]
    assert (root / "sessions/backup").is_dir()
    assert set(LocalStore(root).sessions()) == {B, C}


@pytest.mark.inv("GC-8", "GC-14")
@pytest.mark.parametrize("is_dry_run", [True, False])
def test_what_cannot_be_moved_to_the_trash_is_neither_promised_nor_moved(root: Path, *, is_dry_run: bool) -> None:
    (root / "sessions/backup").mkdir()
    artifact = root / "artifacts" / ("0" * 64)
    artifact.touch()
    found = collected(root, FarSessions(root), is_dry_run=is_dry_run)
    assert {kind for kind, _ in found.taken.sizes()} == {Kind.ARTIFACT}
    assert Kind.SESSION in found.apart
    assert found.needs_attention
    assert set(LocalStore(root).sessions()) == {A, B, C}
    obstacles = LocalCollector(root, files=FarSessions(root)).obstacles()
    assert [(one.name, "another file system" in one.found) for one in obstacles] == [("sessions", True)]
