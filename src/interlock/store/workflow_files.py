"""Where workflow files come from: bundled with the package, the user's directory, the project's (locks 7)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from interlock.define.text_form import Form
from interlock.kernel.budgets import DOCUMENT_BYTES_MAX, SOURCE_FILES_MAX
from interlock.kernel.ids import SourceKind

_FORMS: dict[str, Form] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
PROJECT_DIR = Path(".interlock", "workflows")
"""Below the workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFile:
    """A file that may hold a workflow. `stamp` changes when the file does; `ref` is relative to its source."""

    kind: SourceKind
    ref: str
    form: Form
    path: Path
    stamp: tuple[int, int, int]


class WorkflowSources(Protocol):
    """Lists and reads workflow files. Writes nothing."""

    def files(self, workspace: Path | None) -> tuple[WorkflowFile, ...]:
        """Return the files of all sources, core first, each source in the order of its names."""
        ...

    def read(self, file: WorkflowFile) -> bytes:
        """Return a file's bytes, at most one more than a document may have.

        Raises:
            OSError: The file cannot be read.
        """
        ...


class LocalWorkflowFiles:
    """Workflow files on disk. A missing directory is an empty source."""

    def __init__(self, *, core_dir: Path, user_dir: Path | None) -> None:
        self._core_dir = core_dir
        self._user_dir = user_dir

    def files(self, workspace: Path | None) -> tuple[WorkflowFile, ...]:
        """See `WorkflowSources.files`."""
        found = _listed("bundled", self._core_dir)
        if self._user_dir is not None:
            found += _listed("user", self._user_dir)
        if workspace is not None:
            found += _listed("project", workspace / PROJECT_DIR)
        return tuple(found)

    def read(self, file: WorkflowFile) -> bytes:
        """See `WorkflowSources.read`."""
        with file.path.open("rb") as stream:
            return stream.read(DOCUMENT_BYTES_MAX + 1)


def _listed(kind: SourceKind, root: Path) -> list[WorkflowFile]:
    """Return the files below a directory. Links that lead out of it are not followed."""
    found: list[WorkflowFile] = []
    try:
        paths = sorted(path for path in root.rglob("*") if path.suffix in _FORMS)[:SOURCE_FILES_MAX]
        for path in paths:
            if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
                continue
            stat = path.stat()
            found.append(
                WorkflowFile(
                    kind=kind,
                    # A name that is no text is shown with marks where it is none.
                    ref=path.relative_to(root).as_posix().encode("utf-8", "replace").decode("utf-8"),
                    form=_FORMS[path.suffix],
                    path=path,
                    stamp=(stat.st_mtime_ns, stat.st_size, stat.st_ino),
                )
            )
    except OSError:
        return found
    return found
