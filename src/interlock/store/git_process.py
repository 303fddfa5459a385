"""The one place where git is started: its environment, its options, its bounds (GIT-1).

No project makes git start a program here. A project can name programs in its own configuration, in files that this
includes, and in its attributes. `private_repository` shows git the project without its configuration: it is a directory
of our own that links to the project's objects, refs and index. Of the configuration, git gets a closed set of values.
"""

import os
import re
import stat
import subprocess
import tempfile
import threading
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from time import monotonic

from interlock.kernel.budgets import GIT_POSITION_BYTES_MAX, WORKSPACES_KEPT_MAX
from interlock.kernel.frozen import frozen, replace
from interlock.store.regular_file import WRITE_FLAGS, open_regular, read_regular

_OPTIONS = (
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.quotePath=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", "protocol.allow=never"),
)
_VALUES = r"core\.(filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol|checkstat|trustctime|excludesfile)"
_PROGRAMS = r"filter\..*\.(clean|smudge|process|required)"
_OPTION = re.compile(f"({_VALUES})|({_PROGRAMS})", re.DOTALL)
_FORMAT = re.compile(r"extensions\.(objectformat|refstorage)")
_LINKED = ("objects", "refs", "packed-refs", "reftable", "info", "shallow")
"""What a private repository has of the common directory of the project's repository."""


@frozen
class GitCommand:
    """How git is called: the directory, when it must have ended, the bytes that it may print, and its repository."""

    directory: Path
    deadline: float
    bytes_max: int
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(self, *arguments: str, codes: Container[int] = (0,)) -> bytes | None:
        """Return what git prints; None if it has another exit code, takes or prints too much, or cannot start."""
        try:
            process = subprocess.Popen(  # noqa: S603 — fixed commands
                ("git", *_OPTIONS, *self.options, *arguments),  # noqa: S607 — the user's PATH says which git
                cwd=self.directory,
                env={**_environment(), **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, ValueError):
            return None
        limit = threading.Timer(max(self.deadline - monotonic(), 0), process.kill)
        limit.start()
        assert process.stdout is not None, "it is a pipe"
        with process.stdout as stream:
            data = stream.read(self.bytes_max + 1)
            is_whole = len(data) <= self.bytes_max
            if not is_whole:
                process.kill()
        code = process.wait()
        limit.cancel()
        # A git that ended before it was killed has the exit code 0, too.
        return data if is_whole and code in codes else None


@contextmanager
def private_repository(command: GitCommand, git_dir: Path) -> Generator[GitCommand | None]:
    """Yield how git is called on the work tree of a repository without the repository's configuration.

    None if the configuration cannot be read. Filters of the user's own configuration are off, too: the project's
    attributes choose among them, and they would run in its directory.
    """
    listed = command.run("config", "-z", "--list")
    if listed is None:
        yield None
        return
    values = [entry.partition("\n")[::2] for entry in os.fsdecode(listed).split("\0")]
    options = [
        f"{key}={'' if key.startswith('filter.') else value or 'true'}"
        for key, value in values
        if _OPTION.fullmatch(key)
    ]
    formats = {key.partition(".")[2]: value for key, value in values if _FORMAT.fullmatch(key)}
    with tempfile.TemporaryDirectory(prefix="interlock-git-") as place:
        _write_repository(Path(place), git_dir, formats)
        yield replace(
            command,
            options=[word for option in options for word in ("-c", option)],
            environment={
                "GIT_DIR": place,
                "GIT_WORK_TREE": str(command.directory),
                "GIT_INDEX_FILE": str(git_dir / "index"),
            },
        )


def _write_repository(place: Path, git_dir: Path, formats: Mapping[str, str]) -> None:
    """Make a repository with the head of one work tree, and links to what the project's repository holds."""
    common = find_common_dir(git_dir)
    for name in _LINKED:
        (place / name).symlink_to(common / name)
    for shared in git_dir.glob("sharedindex.*"):
        (place / shared.name).symlink_to(shared)
    lines = ["[core]", f"repositoryformatversion = {1 if formats else 0}", "[extensions]"]
    lines += [f"{key} = {value}" for key, value in formats.items() if value.isalnum()]
    for name, data in (
        ("HEAD", read_regular(git_dir / "HEAD", GIT_POSITION_BYTES_MAX)),
        ("config", "\n".join(lines).encode()),
    ):
        handle, _ = open_regular(place / name, WRITE_FLAGS | os.O_CREAT | os.O_EXCL)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)


def _environment() -> dict[str, str]:
    """Return the environment of git. Variables of the caller could name another repository, or a program."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # A relative directory would be one of the project.
    paths = [place for place in environment.get("PATH", os.defpath).split(os.pathsep) if Path(place).is_absolute()]
    return environment | {
        "PATH": os.pathsep.join(paths),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def find_git_dir(workspace: Path) -> Path | None:
    """Return the git directory of the work tree around a workspace. In a linked work tree, a file `.git` names it."""
    for found in _git_names(workspace):
        try:
            mode = os.stat(found).st_mode  # noqa: PTH116 — each advance asks, and a path costs more than the call
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(mode):
            return Path(found)
        if stat.S_ISREG(mode):
            return Path(found).parent / _read_line(Path(found)).removeprefix("gitdir: ")
    return None


def find_common_dir(git_dir: Path) -> Path:
    """Return the directory that all work trees of a repository share."""
    return git_dir / _read_line(git_dir / "commondir")


@lru_cache(WORKSPACES_KEPT_MAX)
def _git_names(workspace: Path) -> tuple[str, ...]:
    """Return where the git directory of a workspace can be, nearest first."""
    return tuple(str(place / ".git") for place in (workspace, *workspace.parents))


def _read_line(path: Path) -> str:
    return os.fsdecode((read_small(path) or b"").partition(b"\n")[0])


def read_small(path: Path) -> bytes | None:
    """Return the bytes of a small file of a repository; None if it cannot be read."""
    try:
        return read_regular(path, GIT_POSITION_BYTES_MAX)
    except (OSError, ValueError):
        return None
