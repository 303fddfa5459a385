"""What is known of a workspace's place in git. `store.git` finds it; starting and resuming hold the function."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnchors:
    """The root of a work tree, its branch and its commit, each where there is one."""

    repo_root: str | None = None
    branch: str | None = None
    head_sha: str | None = None


NOWHERE = GitAnchors()
