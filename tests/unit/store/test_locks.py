"""The session lock is of the file that the path names, and can be asked for without taking it."""

import os
from pathlib import Path

import pytest
from filelock import FileLock
from tests.support_crash import session_id
from tests.support_server import tree

from interlock.store.local import layout
from interlock.store.local.locks import OsLocks, is_held

A = session_id("a")


@pytest.mark.inv("LOCK-4", "GC-6")
def test_a_lock_that_went_away_with_its_directory_is_no_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / layout.lock(A)
    path.parent.mkdir(parents=True)
    path.touch()
    acquire, moves = FileLock.acquire, list[Path]()

    def acquire_and_lose(lock: FileLock) -> object:
        held = acquire(lock)
        if not moves:
            moves.append(path.parent.rename(tmp_path / "gone"))
            path.parent.mkdir()
            path.touch()
        return held

    monkeypatch.setattr(FileLock, "acquire", acquire_and_lose)
    with OsLocks(tmp_path).hold(A):
        assert moves
        assert is_held(tmp_path, A), "the file that the path names now"
    assert not is_held(tmp_path, A)


@pytest.mark.inv("DOC-1")
def test_asking_whether_a_session_is_held_leaves_no_trace_and_needs_no_lock_file(tmp_path: Path) -> None:
    assert is_held(tmp_path, A) is False
    path = tmp_path / layout.lock(A)
    path.parent.mkdir(parents=True)
    assert is_held(tmp_path, A) is False
    assert not path.exists()
    path.touch()
    before = tree(tmp_path)
    assert is_held(tmp_path, A) is False
    assert tree(tmp_path) == before
    assert os.listdir(path.parent) == [".lock"]  # noqa: PTH208
