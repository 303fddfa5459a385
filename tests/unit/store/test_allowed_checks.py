"""The list of projects whose checks a person has allowed: no failure loses what it holds."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.kernel.budgets.files import SMALL_FILE_BYTES_MAX
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.service.failures import refusal_of
from interlock.store.local import layout
from interlock.store.local.checks import LocalCheckFiles
from interlock.store.local.collect.collector import LocalCollector
from interlock.store.local.files import OsFiles
from interlock.store.ports.errors import FailureKind, StoreFailureError

pytestmark = pytest.mark.damages

FIRST, SECOND = (digest_of_bytes(one) for one in (b"1", b"2"))


def listed(root: Path) -> Path:
    """Return the list of a data directory in which one project is allowed."""
    LocalCheckFiles(root).allow("/first", FIRST)
    return root / layout.ALLOWED_CHECKS


@pytest.mark.inv("CHECK-5")
def test_what_fails_or_was_killed_leaves_the_list_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = listed(tmp_path)
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "made to fail")

        patch.setattr(OsFiles, "sync", full)
        with pytest.raises(StoreFailureError) as failed:
            LocalCheckFiles(tmp_path).allow("/second", SECOND)
    assert failed.value.kind is FailureKind.FULL
    assert {one.name for one in path.parent.iterdir()} == {".lock", "checks.json"}
    path.with_name(f"checks.json.{'0' * 16}.tmp").write_bytes(b"{")
    LocalCheckFiles(tmp_path).allow("/second", SECOND)
    assert LocalCheckFiles(tmp_path).allowed() == {"/first": FIRST, "/second": SECOND}
    LocalCheckFiles(tmp_path).allow("/first", None)
    assert LocalCheckFiles(tmp_path).allowed() == {"/second": SECOND}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def with_number(path: Path) -> None:
    path.write_bytes(b'{"/first":1}')


def by_dangling_link(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("nowhere")


def by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def too_long(path: Path) -> None:
    path.write_bytes(b" " * SMALL_FILE_BYTES_MAX + path.read_bytes())


def state(path: Path) -> tuple[object, ...]:
    """Return what is under a name and beside it."""
    return path.is_symlink(), path.read_bytes() if path.is_file() else None, {one.name for one in path.parent.iterdir()}


@pytest.mark.inv("CHECK-5", "DOC-1")
@pytest.mark.parametrize("harm", [cut, with_number, by_dangling_link, by_directory, too_long])
def test_a_list_that_cannot_be_read_allows_nothing_and_is_not_replaced(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = listed(tmp_path)
    harm(path)
    before = state(path)
    files = LocalCheckFiles(tmp_path)
    assert files.allowed() == {}
    for digest in (SECOND, None):
        with pytest.raises(StoreFailureError) as refused:
            files.allow("/second", digest)
    if path.is_file():
        assert f"`{layout.ALLOWED_CHECKS}`" in refusal_of(refused.value).message
    assert state(path) == before
    assert [one.name for one in LocalCollector(tmp_path).obstacles()] == [layout.ALLOWED_CHECKS]


@pytest.mark.inv("CHECK-5")
def test_a_long_list_is_read_and_a_longer_one_is_refused(tmp_path: Path) -> None:
    path = listed(tmp_path)
    many = {f"/home/{number:0200d}": FIRST for number in range(3_000)}
    path.write_bytes(canonical_bytes(dict(many)))
    LocalCheckFiles(tmp_path).allow("/second", SECOND)
    assert LocalCheckFiles(tmp_path).allowed() == {**many, "/second": SECOND}
    with pytest.raises(StoreFailureError) as refused:
        LocalCheckFiles(tmp_path).allow("/" + "x" * SMALL_FILE_BYTES_MAX, SECOND)
    assert "checks forget" in refusal_of(refused.value).suggestion
    assert len(LocalCheckFiles(tmp_path).allowed()) == 3_001
