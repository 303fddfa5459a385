"""What cannot be entered is not missing: what a link leads to may exist on a disk that is not mounted."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.crash import apply, session_id, start_plan
from tests.support.sweep import DAY_S, DAYS

from interlock.service.retention.collect import CollectCommand, Collected, collect
from interlock.store.local import layout
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.files import FileOps, OsFiles, UnreadableError
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import (
    FailureKind,
    Health,
    PinsDamagedError,
    SessionUnreadableError,
    StoreFailureError,
)

pytestmark = [pytest.mark.damages, pytest.mark.skipif(os.name == "nt", reason="links need rights there")]

A = session_id("a")


def by_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def by_file(path: Path) -> None:
    path.write_bytes(b"x")


def by_pipe(path: Path) -> None:
    os.mkfifo(path)


def by_link_through_a_file(path: Path) -> None:
    (path.parent / "in-between").write_bytes(b"x")
    path.symlink_to("in-between/nowhere")


HARMS = pytest.mark.parametrize("harm", [by_dangling_link, by_link_through_a_file, by_file, by_pipe])
Harm = Callable[[Path], None]


def stored(tmp_path: Path) -> Path:
    """Return a data directory with two sessions and a key ring."""
    root = tmp_path / "data"
    for name in "ab":
        apply(LocalStore(root), start_plan(name))
    LocalStore(root).ensure_keys()
    return root


def replaced(root: Path, path: str, harm: Harm) -> None:
    (root / path).rename(root.parent / "away")
    harm(root / path)


def collected(root: Path, days: int) -> Collected:
    collector = LocalCollector(root)
    now_s = root.stat().st_mtime + days * DAY_S
    return collect(collector, collector.retention_pins, CollectCommand(days=DAYS, now_s=now_s))


READS: tuple[Callable[[FileOps, str], object], ...] = (
    lambda files, path: files.read(path),
    lambda files, path: files.stat(path),
    lambda files, path: files.names(path),
    lambda files, path: files.modified(path),
    lambda files, path: files.contents(path),
)


@HARMS
def test_nothing_below_what_cannot_be_entered_is_missing(tmp_path: Path, harm: Harm) -> None:
    harm(tmp_path / "a")
    for read in READS:
        with pytest.raises(UnreadableError) as refused:
            read(OsFiles(tmp_path), "a/b/c")
        assert refused.value.filename == "a"
    for read in READS[2:]:
        with pytest.raises(UnreadableError):
            read(OsFiles(tmp_path), "a")


@pytest.mark.parametrize("path", ["a", "a/b", "here/a", "here/a/b"])
def test_a_name_that_its_directory_does_not_have_is_missing(tmp_path: Path, path: str) -> None:
    (tmp_path / "here").mkdir()
    for root in (tmp_path, tmp_path / "none", tmp_path / "none/of/them"):
        files = OsFiles(root)
        with pytest.raises(FileNotFoundError):
            files.read(path)
        assert [read(files, path) for read in READS[1:]] == [None, [], {}, {}]


@HARMS
@pytest.mark.inv("GC-7", "HIS-9")
def test_a_session_that_cannot_be_entered_is_named_and_lets_nothing_go(tmp_path: Path, harm: Harm) -> None:
    root = stored(tmp_path)
    replaced(root, layout.session_dir(A), harm)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    found = collected(root, 200)
    assert [(one.session, one.health) for one in found.blockers] == [(A, Health.UNREADABLE)]
    assert before.items() <= {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}.items()
    assert A in LocalStore(root).sessions()
    with pytest.raises(SessionUnreadableError):
        LocalStore(root).load(A)
    assert [one.session for one in LocalCollector(root).overview().unsound] == [A]


@HARMS
@pytest.mark.inv("GC-4", "HIS-9")
@pytest.mark.parametrize("directory", ["sessions", "snapshots", "workflows"])
def test_a_directory_that_cannot_be_entered_is_not_empty(tmp_path: Path, directory: str, harm: Harm) -> None:
    root = stored(tmp_path)
    replaced(root, directory, harm)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for work in (LocalCollector(root).mark, partial(collected, root, 2)):
        with pytest.raises(StoreFailureError):
            work()
    assert before.items() <= {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}.items()
    if directory == "sessions":
        with pytest.raises(StoreFailureError) as refused:
            LocalStore(root).sessions()
        assert (refused.value.kind, refused.value.where) == (FailureKind.UNREADABLE, "sessions")


@HARMS
def test_a_trash_that_cannot_be_entered_stops_no_append(tmp_path: Path, harm: Harm) -> None:
    root = stored(tmp_path)
    replaced(root, "trash", harm)
    assert apply(LocalStore(root), start_plan("c")).session == session_id("c")


@pytest.mark.inv("GC-2", "GC-7")
def test_pins_behind_a_link_that_leads_nowhere_are_unknown_and_let_nothing_go(tmp_path: Path) -> None:
    root = stored(tmp_path)
    pins = LocalCollector(root).retention_pins
    pins.keep([A])
    replaced(root, layout.KEEP, by_dangling_link)
    for work in (pins.kept, partial(pins.keep, [A]), partial(pins.unkeep, [A])):
        with pytest.raises((PinsDamagedError, StoreFailureError)):
            work()
    assert [one.code for one in collected(root, 200).blockers] == ["KEEP_MARKS_DAMAGED"]
    assert (root / layout.KEEP).is_symlink()


@HARMS
@pytest.mark.inv("GC-2")
@pytest.mark.parametrize("name", ["", "events", "manifest.jsonl"])
def test_a_session_that_cannot_be_read_can_be_kept(tmp_path: Path, harm: Harm, name: str) -> None:
    root = stored(tmp_path)
    if harm is not by_dangling_link and name == "manifest.jsonl":
        pytest.skip("a manifest that is no regular file is damage")
    replaced(root, f"{layout.session_dir(A)}/{name}".rstrip("/"), harm)
    assert LocalCollector(root).retention_pins.keep([A]) == {A}


@HARMS
@pytest.mark.inv("GC-2")
def test_no_session_is_kept_if_it_is_unknown_which_there_are(tmp_path: Path, harm: Harm) -> None:
    root = stored(tmp_path)
    replaced(root, layout.SESSIONS, harm)
    with pytest.raises(StoreFailureError):
        LocalCollector(root).retention_pins.keep([A])
