"""Opens, checks and saves workflow files for the console, as `workflow new` and `workflow validate` do it."""

import os
from dataclasses import dataclass
from pathlib import Path

from interlock.cli.screen import StopError
from interlock.cli.workflow.new import write_copy
from interlock.cli.workflow.places import WorkflowLocations
from interlock.console.authoring import CheckedSource, OpenedSource
from interlock.define.diagnostics import has_errors
from interlock.define.workflow_ids import classify_id, suggest_id
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import Digest
from interlock.kernel.workflow_budgets import DOCUMENT_BYTES_MAX
from interlock.plan.outline import step_lines
from interlock.service.catalog import Entry, RefusedFile, Source
from interlock.store.workflow_files import FORMS, WorkflowFile

_EDITABLE = ("project", "user")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEditor:
    """See `console.authoring.Authoring`."""

    places: WorkflowLocations

    def open(self, workflow_id: str) -> OpenedSource | None:
        """See `Authoring`."""
        file = self._file_of(workflow_id)
        if file is None:
            return None
        data = self.places.files.read(file)
        is_editable = file.kind in _EDITABLE and len(data) <= DOCUMENT_BYTES_MAX
        return OpenedSource(
            kind=file.kind,
            ref=file.ref,
            form=FORMS[Path(file.ref).suffix],
            data=data,
            digest=digest_of_bytes(data),
            is_editable=is_editable,
        )

    def check(self, opened: OpenedSource, data: bytes) -> CheckedSource:
        """See `Authoring`."""
        found = self.places.entry_in(Source(kind=opened.kind, ref=opened.ref, form=opened.form, data=data))
        compiled = found.compiled if isinstance(found, Entry) else found
        if isinstance(compiled, RefusedFile):
            return CheckedSource(diagnostics=compiled.diagnostics, steps=())
        return CheckedSource(diagnostics=compiled.warnings, steps=tuple(step_lines(compiled.workflow)))

    def save(self, workflow_id: str, data: bytes, opened: Digest) -> Refusal | None:
        """See `Authoring`."""
        file, now = self._file_of(workflow_id), self.open(workflow_id)
        if file is None or now is None or not now.is_editable:
            return _refused("This workflow cannot be edited here.", "Copy it to an id of your own, and edit the copy.")
        if now.digest != opened:
            return _refused(
                "The file has changed since it was opened.", "Copy your text, open the page again, and repeat the edit."
            )
        found = self.check(now, data).diagnostics
        if has_errors(found):
            errors = sum(one.severity == "error" for one in found)
            return _refused(f"The source has {errors} faults, so it cannot run.", "Correct each of them, then save.")
        fault = self._id_fault(workflow_id, now, data)
        return fault if fault is not None else _replace(file.path, data)

    def copy(self, workflow_id: str, new_id: str) -> Refusal | None:
        """See `Authoring`."""
        try:
            write_copy(self.places, new_id, workflow_id)
        except StopError as error:
            return _refused(error.message, error.fix)
        return None

    def _id_fault(self, workflow_id: str, opened: OpenedSource, data: bytes) -> Refusal | None:
        """Refuse to save a source under an id of the old form, or under another id than that of its page."""
        found = self.places.entry_in(Source(kind=opened.kind, ref=opened.ref, form=opened.form, data=data))
        assert isinstance(found, Entry), "it has no faults"
        if found.workflow_id != workflow_id:
            return _refused(f"The id became {found.workflow_id!r}.", f"Keep {workflow_id!r}, or copy the workflow.")
        if classify_id(workflow_id) != "namespaced":
            suggested = suggest_id(workflow_id, opened.kind)
            return _refused(f"{workflow_id!r} is an id of the old form.", f"Copy the workflow to {suggested}.")
        return None

    def _file_of(self, workflow_id: str) -> WorkflowFile | None:
        view = self.places.catalog.view(self.places.workspace)
        found = view.entries.get(workflow_id) or view.refused_of(workflow_id)
        if found is None:
            return None
        wanted = (found.source.kind, found.source.ref)
        files = self.places.files.files(self.places.workspace)
        return next((one for one in files if (one.kind, one.ref) == wanted), None)


def _replace(path: Path, data: bytes) -> Refusal | None:
    """Replace a file whole: a reader finds the old bytes or the new ones."""
    written = path.with_name(f".{path.name}.saving")
    try:
        with written.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        written.replace(path)
    except OSError as error:
        written.unlink(missing_ok=True)
        return _refused(f"The file cannot be written: {error.strerror}.", "Correct its permissions or free disk space.")
    return None


def _refused(message: str, fix: str) -> Refusal:
    said = message if "Nothing was" in message + fix else f"{message} Nothing was written."
    return Refusal(code=ErrorCode.WORKFLOW_INVALID, message=said, suggestion=fix)
