"""Files that are created and stay open: a sync reaches the created file, and each file is closed."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from interlock.kernel.budgets import CREATED_OPEN_MAX
from interlock.store.local.content import write_synced
from interlock.store.local.files import OpenedFile, OsFiles
from interlock.store.local.rounds import in_order
from interlock.store.regular_file import NotRegularFileError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the descriptors of a process are looked up as on POSIX")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes that were synced."""
    found, sync = list[int](), os.fsync

    def noted(handle: int) -> None:
        found.append(os.fstat(handle).st_ino)
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    return found


def open_files() -> int:
    """Return the lowest free descriptor: it rises if one is left open."""
    handle = os.open(os.devnull, os.O_RDONLY)
    os.close(handle)
    return handle


@pytest.mark.inv("APP-2")
@pytest.mark.parametrize("is_appended", [False, True])
def test_a_written_file_is_synced_also_when_another_has_its_name(
    tmp_path: Path, synced: list[int], *, is_appended: bool
) -> None:
    files = OsFiles(tmp_path)
    opened = files.create("content", b"one")
    if is_appended:
        opened.close()
        opened = files.append("content", b"two")
    inode = (tmp_path / "content").stat().st_ino
    files.write("other", b"two")
    files.rename("other", "content")
    files.sync("content", opened=opened)
    assert synced == [inode]
    files.sync("content")
    assert synced == [inode, (tmp_path / "content").stat().st_ino]
    opened.close()
    opened.close()


class FailingAt(OsFiles):
    """A disk on which creating one file, or syncing it, fails."""

    def __init__(self, root: Path, create: str = "none", sync: str = "none") -> None:
        super().__init__(root)
        self._create, self._sync = create, sync

    def create(self, path: str, data: bytes) -> OpenedFile:
        if path == self._create:
            raise OSError("made to fail")
        return super().create(path, data)

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:
        if path == self._sync:
            raise OSError("made to fail")
        super().sync(path, full=full, opened=opened)


@pytest.mark.inv("APP-2")
@pytest.mark.parametrize("fault", [{}, {"create": "b"}, {"sync": "a"}, {"sync": "b"}], ids=str)
def test_new_files_are_closed_whatever_fails(tmp_path: Path, fault: dict[str, str]) -> None:
    files, before = FailingAt(tmp_path, **fault), open_files()
    write = partial(write_synced, files, [("a", b"one"), ("b", b"two")], [""], in_order)
    if fault:
        with pytest.raises(OSError, match="made to fail"):
            write()
    else:
        write()
        assert (files.read("a"), files.read("b")) == (b"one", b"two")
    assert open_files() == before


@pytest.mark.inv("APP-2", "BND-11")
def test_more_new_files_than_a_process_may_open_are_written(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = [(f"{number}", b"x") for number in range(3 * CREATED_OPEN_MAX + 1)]
    rounds = list[int]()

    def counted(calls: Sequence[Callable[[], None]]) -> None:
        rounds.append(len(calls))
        in_order(calls)

    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + CREATED_OPEN_MAX + 8, limits[1]))
    try:
        write_synced(OsFiles(tmp_path), wanted, [""], counted)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert rounds == [CREATED_OPEN_MAX] * 3 + [2]
    assert len(list(tmp_path.iterdir())) == len(wanted)


@pytest.mark.inv("APP-2", "APP-5")
def test_a_file_that_exists_is_replaced_and_synced_before_the_round(tmp_path: Path, synced: list[int]) -> None:
    files = OsFiles(tmp_path)
    files.write("old", b"to")
    old = (tmp_path / "old").stat().st_ino
    rounds = list[int]()

    def counted(calls: Sequence[Callable[[], None]]) -> None:
        rounds.append(len(calls))
        in_order(calls)

    with (tmp_path / "old").open("rb") as reader:
        write_synced(files, [("old", b"whole"), ("new", b"n")], [""], counted)
        assert reader.read() == b"to", "a reader keeps what it opened"
    assert files.read("old") == b"whole"
    assert rounds == [1, 2]
    assert old not in synced
    assert synced == [(tmp_path / name).stat().st_ino for name in ("old", "new", "")]
    assert sorted(files.names("")) == ["new", "old"]


@pytest.mark.inv("APP-7", "LOCK-4")
@pytest.mark.parametrize("has_reader", [False, True])
def test_a_pipe_in_place_of_a_file_is_refused_at_once_and_not_written_to(tmp_path: Path, *, has_reader: bool) -> None:
    files, pipe = OsFiles(tmp_path), tmp_path / "settled"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) if has_reader else -1
    try:
        for write in (partial(files.write_at, "settled", 0, b"x"), partial(files.append, "settled", b"x")):
            with pytest.raises(NotRegularFileError):
                write()
        assert not has_reader or os.read(reader, 1) == b""
    finally:
        if has_reader:
            os.close(reader)


def test_a_file_is_made_private_and_overwritten_in_place(tmp_path: Path) -> None:
    files = OsFiles(tmp_path)
    files.write_at("settled", 0, b"first")
    files.write_at("settled", 0, b"1")
    files.append("settled", b"!")
    assert (tmp_path / "settled").read_bytes() == b"1irst!"
    assert (tmp_path / "settled").stat().st_mode & 0o777 == 0o600
