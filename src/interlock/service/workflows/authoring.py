"""Writes workflow files: new ones, copies, and edited ones. A workflow that cannot run is not written (CON-13).

The command that makes a workflow file and the console share these rules.
"""

import json
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import cast

from interlock.define.diagnostics import Diagnostics, has_errors
from interlock.define.source.text_form import TextFormat
from interlock.define.workflow_ids import classify_id, is_reserved, suggest_id
from interlock.kernel.budgets.workflow import DOCUMENT_BYTES_MAX, WORKFLOW_ID_CHARS_MAX
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SourceKind
from interlock.kernel.uuids import derived_uuid
from interlock.plan.check.plan_file import HASH_KEY
from interlock.plan.outline import step_lines
from interlock.service.workflows.catalog import Catalog, Entry, RefusedFile, Source
from interlock.service.workflows.reading import FLOW_ID_PATH, read_definition
from interlock.store.workflow_files import (
    PROJECT_DIR,
    WorkflowFile,
    WorkflowSources,
    replace_workflow_file,
    write_new_workflow_file,
)

_EDITABLE = ("project", "user")
_OTHER_DIRECTORY = "`interlock workflow new --dir` names another directory"


@frozen
class NotWritten:
    """Why nothing was written, and what to do. `is_argument`: the id that was given is not valid.

    `faults` are those of the file `ref` that would have been written.
    """

    message: str
    fix: str
    is_argument: bool = False
    ref: str = ""
    faults: Diagnostics = ()

    @property
    def refusal(self) -> Refusal:
        """The refusal, which says that nothing was written."""
        said = self.message if "Nothing was" in self.message + self.fix else f"{self.message} Nothing was written."
        return Refusal(code=ErrorCode.WORKFLOW_INVALID, message=said, suggestion=self.fix)


@frozen
class NewFile:
    """A workflow file that does not exist yet. `ref` is its path as messages show it."""

    path: Path
    ref: str
    form: TextFormat
    data: bytes


@frozen
class OpenedSource:
    """The source of a workflow as its file at `location` has it now.

    Only files of the user and of the project `is_editable`.
    """

    kind: SourceKind
    location: str
    ref: str
    form: TextFormat
    data: bytes
    digest: Digest
    is_editable: bool


@frozen
class CheckedSource:
    """What the compiler says of a source: its diagnostics, and the steps with their prompts if it can run."""

    diagnostics: Diagnostics
    steps: tuple[str, ...]


@frozen
class WorkflowAuthor:
    """Opens, checks and writes the workflow files of one workspace.

    `entry_in` reads and checks bytes as if they were a file of a source.
    """

    workspace: Path
    files: WorkflowSources
    catalog: Catalog
    entry_in: Callable[[Source], Entry | RefusedFile]

    def open(self, workflow_id: str) -> OpenedSource | None:
        """Return the source of a workflow; None if there is none with this id.

        Raises:
            OSError: The file cannot be read.
        """
        file = self._file_of(workflow_id)
        return self._opened(file) if file is not None else None

    def check(self, opened: OpenedSource, data: bytes) -> CheckedSource:
        """Check a source as if the file had it. Writes nothing."""
        found = self.entry_in(_source_of(opened, data))
        compiled = found.compiled if isinstance(found, Entry) else found
        steps = () if isinstance(compiled, RefusedFile) else tuple(step_lines(compiled.workflow))
        return CheckedSource(diagnostics=_diagnostics_of(found), steps=steps)

    def save(self, workflow_id: str, data: bytes, opened: Digest) -> NotWritten | None:
        """Replace the file of a workflow, if it is unchanged since it was opened and the source can run."""
        file = self._file_of(workflow_id)
        now = self._opened(file) if file is not None else None
        if file is None or now is None or not now.is_editable:
            fix = "Copy it to an id of your own, and edit the copy."
            return NotWritten(message="This workflow cannot be edited here.", fix=fix)
        if now.digest != opened:
            fix = "Copy your text, open the page again, and repeat the edit."
            return NotWritten(message="The file has changed since it was opened.", fix=fix)
        found = self.entry_in(_source_of(now, data))
        diagnostics = _diagnostics_of(found)
        if isinstance(found, RefusedFile) or has_errors(diagnostics):
            errors = sum(one.severity == "error" for one in diagnostics)
            message = f"The source has {errors} faults, so it cannot run."
            return NotWritten(message=message, fix="Correct each of them, then save.")
        refused = self._kind_fault(now, found) or self._id_fault(workflow_id, now, found)
        if refused is not None:
            return refused
        try:
            replace_workflow_file(file.path, data)
        except OSError as error:
            message = f"The file cannot be written: {error.strerror}."
            return NotWritten(message=message, fix="Correct its permissions or free disk space.")
        return None

    def copy(self, workflow_id: str, new_id: str) -> NotWritten | None:
        """Write a copy of a workflow under another id into the project, as JSON; never overwrites a file."""
        fault = self.id_fault(new_id) or self.taken_fault(new_id)
        if fault is not None:
            return fault
        origin = self.catalog.view(self.workspace).startable(workflow_id)
        if origin is None or isinstance(origin.compiled, RefusedFile):
            message = f"{workflow_id!r} is no workflow that can run."
            return NotWritten(message=message, fix="Copy another workflow, or correct its faults first.")
        text = json.dumps(copied_value(origin, new_id), indent=2, ensure_ascii=False) + "\n"
        ref = PROJECT_DIR / f"{new_id.rpartition('.')[2]}.json"
        return self.create(NewFile(path=self.workspace / ref, ref=str(ref), form="json", data=text.encode("utf-8")))

    def create(self, new: NewFile) -> NotWritten | None:
        """Write a file that does not exist yet, if the workflow in it can run."""
        found = self.entry_in(Source(kind="project", ref=new.ref, form=new.form, data=new.data))
        diagnostics = _diagnostics_of(found)
        if has_errors(diagnostics):
            # A copied built-in may be invalid under another id.
            message, fix = "The new file would have faults.", "Nothing was written. Copy another workflow."
            return NotWritten(message=message, fix=fix, ref=new.ref, faults=diagnostics)
        try:
            new.path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            message = f"{PurePath(new.ref).parent} is not a directory, or a part of its path is a file."
            return NotWritten(message=message, fix=f"Nothing was written. {_OTHER_DIRECTORY}.")
        except OSError as error:
            return _unwritable(new, error)
        try:
            write_new_workflow_file(new.path, new.data)
        except FileExistsError:
            fix = f"Nothing was overwritten. Choose another id. {_OTHER_DIRECTORY}."
            return NotWritten(message=f"{new.ref} exists already.", fix=fix)
        except OSError as error:
            return _unwritable(new, error)
        return None

    @staticmethod
    def id_fault(workflow_id: str) -> NotWritten | None:
        """Refuse an id that is not valid in a project."""
        fix = f"Use for example {suggest_id(workflow_id, 'project')}."
        if is_reserved(workflow_id):
            message = f"{workflow_id!r} is in `wr.*`, which is reserved for built-in workflows."
        elif len(workflow_id) > WORKFLOW_ID_CHARS_MAX:
            message = f"The id has {len(workflow_id)} characters; the limit is {WORKFLOW_ID_CHARS_MAX}."
            fix = "Choose a shorter id."
        elif classify_id(workflow_id) != "namespaced":
            message = f"{workflow_id!r} is not `namespace.name` in lower-case letters, digits, `_` and `-`."
        else:
            return None
        return NotWritten(message=message, fix=fix, is_argument=True)

    def taken_fault(self, workflow_id: str) -> NotWritten | None:
        """Refuse an id that a workflow has already."""
        taken = self.catalog.view(self.workspace).found(workflow_id)
        if taken is None:
            return None
        message = f"{taken.source.ref} of the {taken.source.kind} source has the id {workflow_id!r} already."
        return NotWritten(message=message, fix="Nothing was written. Edit that file, or choose another id.")

    @staticmethod
    def _kind_fault(opened: OpenedSource, entry: Entry) -> NotWritten | None:
        """Refuse to save a workflow over a flow, which other files may use, and a flow over a workflow."""
        # What the file holds now may have faults.
        was_flow = read_definition(_source_of(opened, opened.data)) is not None
        is_flow = entry.file.id_path == FLOW_ID_PATH
        if was_flow is is_flow:
            return None
        was, now = ("flow", "workflow") if was_flow else ("workflow", "flow")
        fix = f"Write the {now} to a file of its own under another id, or keep the {was}."
        return NotWritten(message=f"{opened.ref} holds a {was}, and this is a {now}.", fix=fix)

    @staticmethod
    def _id_fault(workflow_id: str, opened: OpenedSource, entry: Entry) -> NotWritten | None:
        """Refuse to save a source under an id of the old form, or under another id than that of its page."""
        if entry.workflow_id != workflow_id:
            fix = f"Keep {workflow_id!r}, or copy the workflow."
            return NotWritten(message=f"The id became {entry.workflow_id!r}.", fix=fix)
        if classify_id(workflow_id) != "namespaced":
            suggested = suggest_id(workflow_id, opened.kind)
            message = f"{workflow_id!r} is an id of the old form."
            return NotWritten(message=message, fix=f"Copy the workflow to {suggested}.")
        return None

    def _file_of(self, workflow_id: str) -> WorkflowFile | None:
        found = self.catalog.view(self.workspace).found(workflow_id)
        if found is None:
            return None
        wanted = found.source.location
        return next((one for one in self.files.files(self.workspace) if one.location == wanted), None)

    def _opened(self, file: WorkflowFile) -> OpenedSource:
        data = self.files.read(file)
        return OpenedSource(
            kind=file.kind,
            location=file.location,
            ref=file.ref,
            form=file.form,
            data=data,
            digest=digest_of_bytes(data),
            is_editable=file.kind in _EDITABLE and len(data) <= DOCUMENT_BYTES_MAX,
        )


def copied_value(origin: Entry, workflow_id: str) -> dict[str, Json]:
    """Return the document, plan or flow of a workflow under another id. A flow becomes another definition."""
    value = origin.document.value
    if origin.file.id_path == FLOW_ID_PATH:
        metadata = cast("dict[str, Json]", value["metadata"])
        own = derived_uuid("copy", cast("str", value["id"]), workflow_id)
        changed: dict[str, Json] = {"id": own, "version": 1, "metadata": metadata | {"workflow_id": workflow_id}}
        return value | changed
    return {name: member for name, member in value.items() if name != HASH_KEY} | {origin.file.id_path: workflow_id}


def _diagnostics_of(found: Entry | RefusedFile) -> Diagnostics:
    """Return all that the compiler says of a file."""
    compiled = found.compiled if isinstance(found, Entry) else found
    return compiled.diagnostics if isinstance(compiled, RefusedFile) else compiled.warnings


def _source_of(opened: OpenedSource, data: bytes) -> Source:
    return Source(kind=opened.kind, ref=opened.ref, form=opened.form, data=data, location=opened.location)


def _unwritable(new: NewFile, error: OSError) -> NotWritten:
    message = f"{new.ref} cannot be written: {error.strerror}."
    return NotWritten(message=message, fix=f"{_OTHER_DIRECTORY}, or free disk space and correct the permissions.")
