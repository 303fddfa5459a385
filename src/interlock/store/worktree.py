"""The state of a git working tree, as one digest: whether files have changed since a command ran (PROOF-3).

Two trees have the same digest if their commit is the same, and the same files differ from it with the same content.
Untracked files count, ignored ones do not. It says what git says: a file that git was asked to overlook is overlooked.
"""

import hashlib
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from interlock.kernel.budgets.workflow import (
    TREE_BYTES_MAX,
    TREE_FILES_MAX,
    TREE_SECONDS_MAX,
    TREE_STATUS_BYTES_MAX,
)
from interlock.kernel.ids import Digest
from interlock.kernel.turns import TURNS
from interlock.store.ports.workspace import NO_TREE, WorkTree
from interlock.store.regular_file import read_regular

_COMMAND = (
    *("git", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.quotePath=false"),
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=none"),
    "--no-renames",
)
"""A project's configuration must not make git start a program, or leave files out."""
_OID = b"# branch.oid "
_FIELDS = {b"1": 8, b"u": 10}
"""How many fields are before the path of an entry, by its kind."""


def read_tree(directory: Path) -> WorkTree:
    """Return the state of the working tree around a directory. Never raises; one that is too large has no digest."""
    root = _root_above(directory)
    if root is None:
        return NO_TREE
    with TURNS.waiting():
        status = _status(root)
    if status is None:
        return WorkTree(root=str(root))
    records = status.split(b"\0")
    commit = next((one.removeprefix(_OID).decode("ascii", "replace") for one in records if one.startswith(_OID)), None)
    entries = _entries(root, sorted(set(_changed(records))))
    if entries is None:
        return WorkTree(root=str(root), commit=commit)
    # No name contains a NUL, so different lists have different bytes.
    content = b"\0".join([str(commit).encode(), *entries])
    return WorkTree(root=str(root), commit=commit, digest=Digest(f"sha256:{hashlib.sha256(content).hexdigest()}"))


def _root_above(directory: Path) -> Path | None:
    here = Path(os.path.realpath(directory))
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), None)


def _status(root: Path) -> bytes | None:
    """Return what git lists, or None if it fails, takes too long, or lists too much."""
    # Variables of the caller could name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        process = subprocess.Popen(  # noqa: S603 — a fixed command
            _COMMAND,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    limit = threading.Timer(TREE_SECONDS_MAX, process.kill)
    limit.start()
    assert process.stdout is not None, "it is a pipe"
    with process.stdout as stream:
        data = stream.read(TREE_STATUS_BYTES_MAX + 1)
        is_whole = len(data) <= TREE_STATUS_BYTES_MAX
        if not is_whole:
            process.kill()
    code = process.wait()
    limit.cancel()
    # A git that ended before it was killed has the exit code 0, too.
    return data if is_whole and code == 0 else None


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
