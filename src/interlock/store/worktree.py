"""The state of a git working tree, as one digest: whether files have changed since a command ran (PROOF-3).

Two trees have the same digest if their commit is the same, and the same files differ from it with the same content.
Untracked files count, ignored ones do not. It says what git says: a file that git was asked to overlook is overlooked.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from interlock.kernel.budgets.workflow import (
    TREE_BYTES_MAX,
    TREE_FILES_MAX,
    TREE_SECONDS_MAX,
    TREE_STATUS_BYTES_MAX,
)
from interlock.kernel.frozen import replace
from interlock.kernel.ids import Digest
from interlock.kernel.turns import TURNS
from interlock.store.git_process import GitCommand, find_git_dir, private_repository
from interlock.store.ports.workspace import NO_TREE, WorkTree
from interlock.store.regular_file import read_regular

_STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
_OWN = "--ignore-submodules=dirty"
"""A submodule is read as a tree of its own: git would start another git in it, with its configuration."""
_INDEX_MODE, _INDEX_LINK = b"\0\0\xe0\0", b"link"
"""In the bytes of an index: the mode of a submodule; the sign of a part that another file holds."""
_LISTED_MODE = b"160000 "
_OID = b"# branch.oid "
_FIELDS = {b"1": 8, b"u": 10}
"""How many fields are before the path of an entry, by its kind."""


def read_tree(directory: Path) -> WorkTree:
    """Return the state of the working tree around a directory. Never raises; one that is too large has no digest."""
    root = _root_above(directory)
    if root is None:
        return NO_TREE
    return _read_root(root, monotonic() + TREE_SECONDS_MAX)


def _read_root(root: Path, deadline: float) -> WorkTree:
    try:
        with TURNS.waiting():
            listed = _list_changes(root, deadline)
    except OSError:
        listed = None
    if listed is None:
        return WorkTree(root=str(root))
    status, submodules = listed
    records = status.split(b"\0")
    commit = next((one.removeprefix(_OID).decode("ascii", "replace") for one in records if one.startswith(_OID)), None)
    entries = _entries(root, sorted(set(_changed(records)) - submodules))
    inner = [(name, _read_submodule(root, name, deadline)) for name in sorted(submodules)]
    if entries is None or any(digest is None for _, digest in inner):
        return WorkTree(root=str(root), commit=commit)
    # No name contains a NUL, so different lists have different bytes.
    content = b"\0".join(
        [str(commit).encode(), *entries, *(part for name, digest in inner for part in (name, str(digest).encode()))]
    )
    return WorkTree(root=str(root), commit=commit, digest=Digest(f"sha256:{hashlib.sha256(content).hexdigest()}"))


def _read_submodule(root: Path, name: bytes, deadline: float) -> str | None:
    """Return the digest of a submodule, `none` if it is not checked out; None if it is unknown."""
    place = root / os.fsdecode(name)
    if not (place / ".git").exists():
        return "none"
    # A link could lead to a tree that contains this one.
    is_below = os.path.realpath(place) == str(place)
    return _read_root(place, deadline).digest if is_below and monotonic() < deadline else None


def _root_above(directory: Path) -> Path | None:
    here = Path(os.path.realpath(directory))
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), None)


def _list_changes(root: Path, deadline: float) -> tuple[bytes, set[bytes]] | None:
    """Return what git lists, and the paths of submodules; None if git fails, takes too long, or lists too much."""
    git_dir = find_git_dir(root)
    if git_dir is None:
        return None
    index = git_dir / "index"
    command = GitCommand(directory=root, deadline=deadline, bytes_max=TREE_STATUS_BYTES_MAX)
    with private_repository(command, git_dir) as private:
        status = private and private.run(*_STATUS, _OWN)
        if status is None:
            return None
        data = read_regular(index, TREE_BYTES_MAX) if index.exists() else b""
        if _INDEX_MODE not in data and _INDEX_LINK not in data and len(data) <= TREE_BYTES_MAX:
            return status, set()
        files = private and replace(private, bytes_max=TREE_BYTES_MAX).run("ls-files", "--stage", "-z")
    if files is None:
        return None
    return status, {one.partition(b"\t")[2] for one in files.split(b"\0") if one.startswith(_LISTED_MODE)}


def _changed(records: list[bytes]) -> Iterator[bytes]:
    """Yield the path of each file that differs from the commit."""
    for record in records:
        kind, _, rest = record.partition(b" ")
        if kind == b"?":
            yield rest
        elif kind in _FIELDS:
            yield record.split(b" ", _FIELDS[kind])[-1]


def _entries(root: Path, paths: list[bytes]) -> list[bytes] | None:
    """Return name, mode and content of each changed file; None if they are too many, too large, or cannot be read."""
    entries: list[bytes] = []
    size = 0
    if len(paths) > TREE_FILES_MAX:
        return None
    for name in paths:
        path = root / os.fsdecode(name)
        try:
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                data, word = os.fsencode(path.readlink()), b"link"
            else:
                data, word = read_regular(path, TREE_BYTES_MAX - size), b"program" if mode & stat.S_IXUSR else b"file"
        except FileNotFoundError:
            data, word = b"", b"gone"
        except OSError:
            return None
        size += len(data)
        if size > TREE_BYTES_MAX:
            return None
        entries += [name, word, hashlib.sha256(data).hexdigest().encode()]
    return entries
