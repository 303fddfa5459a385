"""The lock file of a check: it has the number of the run that its holder began, until the run is settled."""

import errno
import os
from pathlib import Path

import pytest

from interlock.kernel.ids import NodeId
from interlock.store.local.checks import LocalCheckFiles
from interlock.store.ports.errors import FailureKind, StoreFailureError

NODE = NodeId("node_1")


@pytest.mark.inv("CHECK-7")
def test_a_mark_without_a_holder_is_an_unfinished_run_until_somebody_settles_it(tmp_path: Path) -> None:
    files = LocalCheckFiles(tmp_path)
    with files.hold(NODE) as held:
        assert held is not None
        assert held.unfinished is None
        held.mark(3)
        assert not files.is_unfinished(NODE), "somebody runs it"
        [left] = (tmp_path / "checks").iterdir()
        data = left.read_bytes()
    assert not left.exists()
    left.write_bytes(data)
    assert files.is_unfinished(NODE)
    with pytest.raises(InterruptedError), files.hold(NODE) as held:
        raise InterruptedError
    with files.hold(NODE) as held:
        assert held is not None
        assert held.unfinished == 3
    assert not files.is_unfinished(NODE)


@pytest.mark.inv("CHECK-7")
def test_who_fails_after_its_own_mark_leaves_no_unfinished_run(tmp_path: Path) -> None:
    files = LocalCheckFiles(tmp_path)
    hold = files.hold(NODE)
    held = hold.__enter__()
    assert held is not None
    held.mark(1)
    failure = InterruptedError()
    assert not hold.__exit__(InterruptedError, failure, None)
    assert list((tmp_path / "checks").iterdir()) == []


@pytest.mark.inv("CHECK-7")
def test_a_run_that_cannot_be_marked_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, "")

    with LocalCheckFiles(tmp_path).hold(NODE) as held:
        assert held is not None
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(StoreFailureError) as failed:
            held.mark(1)
        monkeypatch.undo()
    assert failed.value.kind is FailureKind.FULL
