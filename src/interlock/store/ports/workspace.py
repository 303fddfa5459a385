"""What git says of a workspace: its position, and the state of its working tree.

`store.git` and `store.worktree` find them; use cases have the functions.
"""

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest


@frozen
class GitAnchors:
    """The root of a work tree, its branch and its commit, each None if there is none.

    `workspace` is the path of a directory in no repository, with every link resolved.
    """

    repo_root: str | None = None
    branch: str | None = None
    head_sha: str | None = None
    workspace: str | None = None


NOWHERE = GitAnchors()


@frozen
class WorkTree:
    """The state of a working tree. `root` is its directory; `digest` is None if the state is unknown."""

    root: str | None = None
    commit: str | None = None
    digest: Digest | None = None


NO_TREE = WorkTree()
