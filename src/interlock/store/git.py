"""The git position of a workspace: the anchors by which its sessions are found later (OBS-1).

Git runs once, if it is installed. A workspace outside every repository, or a git that takes too long, gives no
anchors.
"""

import os
import subprocess
from pathlib import Path

from interlock.kernel.budgets import GIT_SECONDS_MAX
from interlock.store.ports.workspace import NOWHERE, GitAnchors

_SHA1_CHARS = 40
_COMMAND = ("git", "rev-parse", "--show-toplevel", "HEAD", "--symbolic-full-name", "HEAD")
"""The root of the work tree; the commit; the branch as `refs/heads/…`, or `HEAD` without a branch."""


def git_anchors(workspace: Path | None) -> GitAnchors:
    """Return the git position of a workspace. Never raises, and never takes longer than its budget."""
    if workspace is None:
        return NOWHERE
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 — a fixed command
            _COMMAND,
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS_MAX,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return NOWHERE
    try:
        lines = done.stdout.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return NOWHERE
    return _parse(lines)


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
    return len(line) == _SHA1_CHARS and all(char in "0123456789abcdef" for char in line)
