"""Where a workspace stands in git: the anchors that its sessions are found by later (OBS-1).

Git is asked once, and only if it is there; a workspace that is none of its repositories, or a git that takes too
long, simply gives no anchors.
"""

import os
import subprocess
from pathlib import Path

from interlock.kernel.budgets import GIT_SECONDS_MAX
from interlock.store.ports.workspace import NOWHERE, GitAnchors

_SHA1_CHARS = 40
_COMMAND = ("git", "rev-parse", "--show-toplevel", "HEAD", "--symbolic-full-name", "HEAD")
"""The root of the work tree; the commit; the branch as `refs/heads/…`, or `HEAD` where none is checked out."""


def git_anchors(workspace: Path | None) -> GitAnchors:
    """Return where a workspace stands in git. Never raises, and never takes longer than its budget."""
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
    return _read(lines)


def _read(lines: list[str]) -> GitAnchors:
    """Read what git printed; before the first commit it prints less, and fails."""
    root = lines[0] if lines and Path(lines[0]).is_absolute() else None
    if root is None:
        return NOWHERE
    heads = "refs/heads/"
    branch = next((line.removeprefix(heads) for line in lines[1:] if line.startswith(heads)), None)
    sha = next((line for line in lines[1:] if _is_sha(line)), None)
    return GitAnchors(repo_root=root, branch=branch, head_sha=sha)


def _is_sha(line: str) -> bool:
    return len(line) == _SHA1_CHARS and all(char in "0123456789abcdef" for char in line)
