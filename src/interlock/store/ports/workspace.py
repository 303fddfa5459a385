"""The git position of a workspace. `store.git` finds it; starting and resuming have the function."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnchors:
    """The root of a work tree, its branch and its commit, each None if there is none."""

    repo_root: str | None = None
    branch: str | None = None
    head_sha: str | None = None


NOWHERE = GitAnchors()
