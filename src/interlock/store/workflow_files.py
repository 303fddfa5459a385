"""The files of workflows: bundled with the package, in the user's directory, in the project's (SRC-3, SRC-4)."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from interlock.define.source.text_form import TextFormat, parse_text
from interlock.kernel.budgets import WORKSPACES_KEPT_MAX
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
    SOURCE_FILES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SourceKind
from interlock.store.regular_file import read_regular, replace_whole, write_new

FORMS: dict[str, TextFormat] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
"""The file names that a source reads, by their suffix."""
_SUFFIXES = tuple(FORMS)
_FOREIGN = "node_modules"
"""The directory of other programs' files that is not hidden."""
PROJECT_DIR = Path(".interlock", "workflows")
"""Below the workspace."""
OPERATIONS_DIR = Path(".interlock", "operations")
"""Below the workspace: blocks, flows and contracts."""
PROJECT_DIRS = (PROJECT_DIR, OPERATIONS_DIR)
"""The directories of a project from which a server reads workflows."""
BINDINGS_FILE = Path(".interlock", "bindings.json")
"""Below the workspace; optional."""


@frozen
class WorkflowFile:
    """A file that may hold a workflow. `stamp` changes when the file does; `ref` is relative to its source.

    `left_out` is 0 for a file that is read. Of the files beyond the most that a directory may have, the first is
    listed, and `left_out` is their number. A link that leads out of the source (`is_outside`) is not read either; it
    may lead to a directory.
    """

    kind: SourceKind
    ref: str
    form: TextFormat
    location: str
    stamp: tuple[int, int, int]
    left_out: int = 0
    is_outside: bool = False

    @property
    def has_status(self) -> bool:
        """Whether the file's status could be read."""
        return self.stamp[1] >= 0

    @property
    def path(self) -> Path:
        """The path. Not made before it is needed: each call of a tool lists all files."""
        return Path(self.location)


class WorkflowSources(Protocol):
    """Lists and reads workflow files. Writes nothing."""

    def files(self, workspace: Path | None) -> tuple[WorkflowFile, ...]:
        """Return the files of all sources, core first; the files of a source are ordered by name.

        The first file that is left out, if any, is among them.
        """
        ...

    def read(self, file: WorkflowFile) -> bytes:
        """Return a file's bytes, at most one more than a document may have.

        Raises:
            OSError: The file cannot be read.
        """
        ...

    def bindings(self, workspace: Path | None) -> Mapping[str, Json]:
        """Return the bindings of a project's extension points: slot to value, or workflow id to such a map.

        A file that cannot be read binds nothing.
        """
        ...


class LocalWorkflowFiles:
    """Workflow files on disk. A missing directory is an empty source.

    `package_dir` and `core_dirs` hold the bundled workflows: if two define the same id, the first wins. The files of
    the package change only with its code, which a process also loads once, so they are listed once.
    """

    def __init__(
        self, *, package_dir: Path | None = None, core_dirs: tuple[Path, ...] = (), user_dir: Path | None
    ) -> None:
        self._package = _Directory("bundled", package_dir) if package_dir is not None else None
        self._of_package: tuple[WorkflowFile, ...] = ()
        self._common = [_Directory("bundled", core_dir) for core_dir in core_dirs]
        if user_dir is not None:
            self._common.append(_Directory("user", user_dir))
        self._of_project = lru_cache(maxsize=WORKSPACES_KEPT_MAX)(_project_at)

    def files(self, workspace: Path | None) -> tuple[WorkflowFile, ...]:
        """See `WorkflowSources.files`."""
        own = self._of_project(workspace)[0] if workspace is not None else ()
        found = [file for directory in (*self._common, *own) for file in directory.files()]
        return (*self._packaged(), *found)

    def _packaged(self) -> tuple[WorkflowFile, ...]:
        """Return the files of the package. A list that is empty or has a file without a status is made again."""
        if self._package is None or self._of_package:
            return self._of_package
        found = tuple(self._package.files())
        if all(file.has_status for file in found):
            self._of_package = found
        return found

    def read(self, file: WorkflowFile) -> bytes:
        """See `WorkflowSources.read`."""
        return read_regular(file.path, DOCUMENT_BYTES_MAX)

    def bindings(self, workspace: Path | None) -> Mapping[str, Json]:
        """See `WorkflowSources.bindings`."""
        if workspace is None:
            return {}
        try:
            found = parse_text(read_regular(self._of_project(workspace)[1], DOCUMENT_BYTES_MAX), "json")
        except OSError:
            return {}
        return found if isinstance(found, dict) else {}


def _project_at(workspace: Path) -> "tuple[tuple[_Directory, ...], Path]":
    """Return the directories of a project, and the file of its bindings."""
    return tuple(_Directory("project", workspace / one) for one in PROJECT_DIRS), workspace / BINDINGS_FILE


class _Directory:
    """One directory of a source. It is listed again each time, but a file that has not changed is the same object."""

    def __init__(self, kind: SourceKind, root: Path) -> None:
        self._kind: SourceKind = kind
        self._root = root
        self._location = str(root)
        self._known: Mapping[str, WorkflowFile] = {}

    def files(self) -> list[WorkflowFile]:
        """Return the files below the directory. Links that lead out of it are listed, but not followed.

        A file whose status cannot be read is among them: reading it fails, and says why.
        """
        known, found = self._known, list[WorkflowFile]()
        below = sorted(_below(self._location, ()), key=itemgetter(0))
        for parts, entry in below[:SOURCE_FILES_MAX]:
            try:
                is_directory = entry.is_dir()
                if not is_directory and not entry.is_file():
                    continue
                if entry.is_symlink() and not _is_inside(entry.path, self._root):
                    # No file has this stamp, so a file that takes the place of the link is read.
                    found.append(replace(self._file(parts, entry, (-1, -1, -2)), is_outside=True))
                    continue
                if is_directory:
                    # What a link to a directory of the source leads to is read at its own place.
                    continue
                stat = entry.stat()
                stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            except OSError:
                stamp = (-1, -1, -1)
            kept = known.get(entry.path)
            if kept is None or kept.stamp != stamp:
                kept = self._file(parts, entry, stamp)
            found.append(kept)
        self._known = {file.location: file for file in found}
        for parts, entry in below[SOURCE_FILES_MAX : SOURCE_FILES_MAX + 1]:
            left_out = len(below) - SOURCE_FILES_MAX
            found.append(replace(self._file(parts, entry, (-1, -1, left_out)), left_out=left_out))
        return found

    def _file(self, parts: tuple[str, ...], entry: "os.DirEntry[str]", stamp: tuple[int, int, int]) -> WorkflowFile:
        return WorkflowFile(
            kind=self._kind,
            # Bytes of a name that are not UTF-8 are shown as replacement characters.
            ref="/".join(parts).encode("utf-8", "replace").decode("utf-8"),
            form=FORMS.get(_suffix(entry.name), "json"),
            location=entry.path,
            stamp=stamp,
        )


def _below(directory: str, parts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], os.DirEntry[str]]]:
    """Yield what has the name of a workflow file below a directory, and links to directories, with the names to there.

    Each call of a tool lists the sources, so it asks the system once for a directory and not for each file. A directory
    that cannot be read is empty. Hidden files and directories hold what systems, editors and other programs store.
    """
    try:
        with os.scandir(directory) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        if (entry.name.startswith(".") and entry.name != PROJECT_DIR.parts[0]) or entry.name == _FOREIGN:
            continue
        is_named = entry.name.endswith(_SUFFIXES) and _suffix(entry.name) in FORMS
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            is_link = not is_directory and entry.is_symlink() and entry.is_dir()
        except OSError:
            is_directory = is_link = False
        if is_named or is_link:
            yield (*parts, entry.name), entry
        if is_directory:
            yield from _below(entry.path, (*parts, entry.name))


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1]  # noqa: PTH122 — see `_below`


def _is_inside(path: str, root: Path) -> bool:
    return Path(path).resolve().is_relative_to(root.resolve())


write_new_workflow_file = write_new
"""Writes a workflow file that does not exist yet."""
replace_workflow_file = replace_whole
"""Replaces a workflow file whole."""
