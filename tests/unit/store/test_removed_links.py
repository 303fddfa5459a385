"""Links and directories in what a collection deletes: each is a name to remove, wherever it leads."""

import os
from pathlib import Path

import pytest
from tests.support.crash import apply, session_id, start_plan
from tests.support.sweep import DAY_S, DAYS

from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.store import LocalStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need rights there")

A = session_id("a")


def stored(root: Path) -> Path:
    """Return a data directory with one session."""
    apply(LocalStore(root), start_plan("a"))
    LocalStore(root).ensure_keys()
    return root


def collected(root: Path, *, days: float = 2) -> Collected:
    collector = LocalCollector(root)
    now_s = root.stat().st_mtime + days * DAY_S
    return collect(collector, collector.retention_pins, CollectCommand(days=DAYS, now_s=now_s))


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def link_out(root: Path, path: str) -> tuple[Path, ...]:
    """Make a dangling link, a link to a file and a link to a directory below a path; return what must remain."""
    away = root.parent / "away"
    (away / "inner").mkdir(parents=True)
    (away / "file").write_bytes(b"x")
    for name, target in {"nowhere": root.parent / "none", "file": away / "file", "dir": away}.items():
        link(root / path / name, target)
    return away / "file", away / "inner"


@pytest.mark.inv("GC-3", "GC-5")
def test_a_directory_with_links_goes_for_good_and_nothing_that_they_lead_to(tmp_path: Path) -> None:
    root = stored(tmp_path / "data")
    remain = link_out(root, "trash/sessions/backup/inner")
    collected(root)
    assert list((root / "trash/sessions").iterdir()) == []
    assert all(path.exists() for path in remain)


@pytest.mark.inv("GC-3", "EVD-10")
def test_a_session_with_links_below_it_goes_for_good(tmp_path: Path) -> None:
    root = stored(tmp_path / "data")
    remain = link_out(root, f"sessions/{A}/cache")
    assert [one.session for one in collected(root, days=100).taken.sessions] == [A]
    collected(root, days=100)
    assert list((root / "trash/sessions").iterdir()) == []
    assert all(path.exists() for path in remain)


@pytest.mark.inv("GC-3")
@pytest.mark.parametrize("name", [A, "backup"])
def test_a_link_in_the_trash_that_leads_nowhere_goes_and_is_in_nobodys_way(tmp_path: Path, name: str) -> None:
    root = stored(tmp_path / "data")
    link(root / "trash/sessions" / name, tmp_path / "none")
    assert len(collected(root, days=100).taken.sessions) == 1
    assert sorted(path.is_symlink() for path in (root / "trash/sessions").iterdir()) == [False]
    collected(root, days=100)
    assert list((root / "trash/sessions").iterdir()) == []


@pytest.mark.inv("GC-3", "GC-4")
@pytest.mark.parametrize("directory", layout.CONTENT_DIRS)
def test_a_directory_in_the_place_of_content_goes_as_a_file_does(tmp_path: Path, directory: str) -> None:
    root = stored(tmp_path / "data")
    name = "0" * 64
    (root / directory / name).mkdir()
    (root / directory / name / "x").touch()
    for _ in range(2):
        collected(root)
    assert not (root / directory / name).exists()
    assert list((root / "trash" / directory).iterdir()) == []


@pytest.mark.inv("GC-5")
def test_a_directory_with_the_name_of_a_temporary_file_stays(tmp_path: Path) -> None:
    root = stored(tmp_path / "data")
    names = [f"config/x.{'0' * 16}.tmp", f"sessions/{A}/x.{'0' * 16}.tmp"]
    for name in names:
        (root / name).mkdir()
        (root / name / "x").touch()
    assert list(collected(root).taken.sizes()) == []
    assert all((root / name / "x").exists() for name in names)
