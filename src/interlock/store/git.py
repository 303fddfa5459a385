"""The git position of a workspace: the anchors by which its sessions are found later (OBS-1, OBS-6).

A workspace outside every repository, or a git that takes too long, gives no anchors. A look that is repeated starts
git only if the files that name the branch and the commit changed.
"""

import os
from dataclasses import field
from pathlib import Path
from time import monotonic

from interlock.kernel.budgets import GIT_POSITION_BYTES_MAX, GIT_SECONDS_MAX, WORKSPACES_KEPT_MAX
from interlock.kernel.frozen import frozen, positional
from interlock.kernel.turns import TURNS
from interlock.store.git_process import GitCommand, find_common_dir, find_git_dir, read_small
from interlock.store.ports.workspace import NOWHERE, GitAnchors

_SHA_CHARS = (40, 64)
"""Of a commit, in hexadecimal digits: SHA-1, SHA-256."""
_POSITION = ("rev-parse", "--show-toplevel", "HEAD", "--symbolic-full-name", "HEAD")
"""The root of the work tree; the commit; the branch as `refs/heads/…`, or `HEAD` without a branch."""
_ENDS = (0, 128)
"""Before the first commit, git fails after it printed the root."""


@frozen
class _PositionFiles:
    """What the files say that name the branch and the commit of a work tree.

    `ref` is the branch's own file; `packed` are the identity, size and time of the files that many branches share.
    """

    git_dir: str
    head: bytes | None
    ref: bytes | None
    packed: tuple[tuple[int, int, int] | None, ...]


@positional
class GitObserver:
    """Finds git positions for one process, and remembers the last one of each workspace."""

    _last: dict[Path, tuple[_PositionFiles | None, GitAnchors]] = field(
        default_factory=dict[Path, tuple[_PositionFiles | None, GitAnchors]]
    )

    def find(self, workspace: Path | None) -> GitAnchors:
        """Return the git position of a workspace, as `git_anchors` does: git runs once.

        Of a workspace in no repository, it is the path.
        """
        if workspace is None:
            return NOWHERE
        # The files are read first: a change while git runs is noticed by the next look.
        files = _read_position_files(workspace)
        with TURNS.waiting():
            found = git_anchors(workspace) if files is not None else GitAnchors(workspace=_resolved(workspace))
        if len(self._last) >= WORKSPACES_KEPT_MAX:
            self._last.clear()
        self._last[workspace] = (files, found)
        return found

    def find_again(self, workspace: Path | None) -> GitAnchors:
        """Return the git position of a workspace; git runs only if its files changed since the last look, or first."""
        if workspace is None:
            return NOWHERE
        last = self._last.get(workspace)
        if last is not None and last[0] == _read_position_files(workspace):
            return last[1]
        return self.find(workspace)


def _resolved(workspace: Path) -> str:
    """Return the path of a directory as a process in it reads it, in the text that a receipt has of it."""
    return os.fsencode(os.path.realpath(workspace)).decode("utf-8", "backslashreplace")


def git_anchors(workspace: Path | None) -> GitAnchors:
    """Return the git position of a workspace. Never raises, and never takes longer than its budget."""
    if workspace is None:
        return NOWHERE
    command = GitCommand(
        directory=workspace, deadline=monotonic() + GIT_SECONDS_MAX, bytes_max=2 * GIT_POSITION_BYTES_MAX
    )
    found = command.run(*_POSITION, codes=_ENDS)
    try:
        lines = (found or b"").decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return NOWHERE
    return _parse(lines)


def _read_position_files(workspace: Path) -> _PositionFiles | None:
    """Return what the files of the repository around a workspace say; None if there is no repository."""
    git_dir = find_git_dir(workspace)
    if git_dir is None:
        return None
    common = find_common_dir(git_dir)
    head = read_small(git_dir / "HEAD")
    name = (head or b"").removeprefix(b"ref: ").rstrip(b"\n")
    # A name outside `refs` is no branch; a file of any other place is not read.
    is_ref = name.startswith(b"refs/") and b".." not in name and b"\0" not in name
    return _PositionFiles(
        git_dir=str(git_dir),
        head=head,
        ref=read_small(common / os.fsdecode(name)) if is_ref else None,
        packed=tuple(map(_stat_file, (common / "packed-refs", common / "reftable" / "tables.list"))),
    )


def _stat_file(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _parse(lines: list[str]) -> GitAnchors:
    """Parse the output of git; before the first commit, git prints less and fails."""
    root = lines[0] if lines and Path(lines[0]).is_absolute() else None
    if root is None:
        return NOWHERE
    heads = "refs/heads/"
    branch = next((line.removeprefix(heads) for line in lines[1:] if line.startswith(heads)), None)
    sha = next((line for line in lines[1:] if _is_sha(line)), None)
    return GitAnchors(repo_root=root, branch=branch, head_sha=sha)


def _is_sha(line: str) -> bool:
    return len(line) in _SHA_CHARS and all(char in "0123456789abcdef" for char in line)
