"""The state of a git working tree: what changes it, and what does not."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.store import worktree as module
from interlock.store.ports.workspace import NO_TREE
from interlock.store.worktree import read_tree


def git(root: Path, *words: str) -> None:
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *person, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "kept.txt").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "One")
    return tmp_path


def edit(root: Path) -> None:
    (root / "kept.txt").write_text("two\n")


def add(root: Path) -> None:
    (root / "new file\n.txt").write_text("new\n")


def remove(root: Path) -> None:
    (root / "kept.txt").unlink()


def make_program(root: Path) -> None:
    (root / "kept.txt").chmod(0o755)


def link(root: Path) -> None:
    (root / "link").symlink_to("kept.txt")


def commit(root: Path) -> None:
    git(root, "commit", "-q", "--allow-empty", "-m", "Two")


@pytest.mark.inv("PROOF-3")
@pytest.mark.parametrize("deed", [edit, add, remove, make_program, link, commit])
def test_each_change_of_a_file_and_each_commit_is_another_tree(root: Path, deed: Callable[[Path], None]) -> None:
    before = read_tree(root)
    assert before.digest is not None
    assert before == read_tree(root)
    deed(root)
    after = read_tree(root)
    assert after.digest not in (None, before.digest)
    assert after == read_tree(root)


@pytest.mark.inv("PROOF-3")
def test_what_is_ignored_or_only_staged_changes_nothing_and_a_second_edit_does(root: Path) -> None:
    edit(root)
    before = read_tree(root)
    (root / "made.log").write_text("ignored\n")
    git(root, "add", ".")
    (root / "below").mkdir()
    assert read_tree(root / "below") == before
    (root / "kept.txt").write_text("three\n")
    assert read_tree(root).digest != before.digest


@pytest.mark.inv("PROOF-3")
def test_what_is_too_large_or_cannot_be_read_is_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(root)
    for name in ("TREE_FILES_MAX", "TREE_BYTES_MAX", "TREE_STATUS_BYTES_MAX"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, 0)
            found = read_tree(root)
        assert (found.root, found.digest) == (str(root), None), name
    (root / "inner").mkdir()
    git(root / "inner", "init", "-q")
    assert read_tree(root).digest is None
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(root))
        assert read_tree(root).digest is None


@pytest.mark.inv("PROOF-3")
def test_variables_of_the_caller_name_no_other_repository(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_tree(root)
    monkeypatch.setenv("GIT_DIR", str(root / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / "other-index"))
    assert read_tree(root) == before


def test_a_directory_outside_of_every_repository_has_no_tree(tmp_path: Path) -> None:
    assert read_tree(tmp_path) == NO_TREE
