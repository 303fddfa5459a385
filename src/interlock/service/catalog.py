"""The catalogue: every workflow of every source, compiled, with what is wrong and what clashes (locks 7)."""

import threading
from dataclasses import dataclass
from pathlib import Path

from interlock.define.diagnostics import Diagnostic, Diagnostics, did_you_mean, fault, has_errors
from interlock.define.document import WorkflowDocument, parse_workflow
from interlock.define.text_form import parse_text
from interlock.define.workflow_ids import id_status, is_reserved, suggested_id
from interlock.kernel.canonical import Json
from interlock.kernel.ids import SourceKind, WorkflowHash
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.compiler import compile_workflow, placement_diagnostics
from interlock.store.workflow_files import WorkflowFile, WorkflowSources


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A workflow that can be started."""

    document: WorkflowDocument
    source: dict[str, Json]
    compiled: CompiledWorkflow
    workflow_hash: WorkflowHash
    compiled_bytes: bytes
    source_kind: SourceKind
    source_ref: str
    warnings: Diagnostics

    @property
    def workflow_id(self) -> str:
        """The id it is started by."""
        return self.document.id


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFile:
    """A file that holds no workflow that can be started, and why."""

    source_kind: SourceKind
    source_ref: str
    workflow_id: str | None
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogView:
    """The catalogue as one workspace sees it."""

    entries: dict[str, Entry]
    refused: tuple[RefusedFile, ...]

    def nearest(self, workflow_id: str) -> str | None:
        """Return the id that a mistaken one most resembles."""
        stems = {name.rpartition(".")[2]: name for name in self.entries}
        return did_you_mean(workflow_id, self.entries) or stems.get(
            did_you_mean(workflow_id.rpartition(".")[2], stems) or ""
        )

    def refused_of(self, workflow_id: str) -> RefusedFile | None:
        """Return the refused file that meant to be this workflow, if there is one."""
        return next((file for file in self.refused if file.workflow_id == workflow_id), None)

    def suggested(self, entry: Entry) -> str | None:
        """Return the id that an undotted workflow should have; None for the others."""
        if id_status(entry.workflow_id) != "legacy":
            return None
        return suggested_id(entry.workflow_id, entry.source_kind, frozenset(self.entries))


class Catalog:
    """Reads the sources on every look and compiles only what changed."""

    def __init__(self, sources: WorkflowSources) -> None:
        self._sources = sources
        self._compiled: dict[Path, tuple[tuple[int, int, int], Entry | RefusedFile]] = {}
        self._mutex = threading.Lock()

    def view(self, workspace: Path | None) -> CatalogView:
        """Return the catalogue of a workspace. Nothing shadows `wr.*`; else the nearer source wins; both are told."""
        entries: dict[str, Entry] = {}
        refused: list[RefusedFile] = []
        for file in self._sources.files(workspace):
            found = self._of(file)
            if isinstance(found, RefusedFile):
                refused.append(found)
                continue
            taken = entries.get(found.workflow_id)
            if taken is None:
                entries[found.workflow_id] = found
                continue
            is_nearer = taken.source_kind != found.source_kind and not is_reserved(found.workflow_id)
            winner, loser = (found, taken) if is_nearer else (taken, found)
            entries[found.workflow_id] = winner
            refused.append(_shadowed(loser, winner))
        return CatalogView(entries=entries, refused=tuple(refused))

    def _of(self, file: WorkflowFile) -> Entry | RefusedFile:
        with self._mutex:
            kept = self._compiled.get(file.path)
        if kept is not None and kept[0] == file.stamp:
            return kept[1]
        try:
            found = _compiled(file, self._sources.read(file))
        except OSError:
            unreadable = fault("", "not_utf8", "The file cannot be read.", "Check its permissions.")
            return _refused(file, None, (unreadable,))
        with self._mutex:
            self._compiled[file.path] = (file.stamp, found)
        return found


def _compiled(file: WorkflowFile, data: bytes) -> Entry | RefusedFile:
    value = parse_text(data, file.form)
    if isinstance(value, Diagnostic):
        return _refused(file, None, (value,))
    said = value.get("id")
    claimed = said if isinstance(said, str) else None
    document = parse_workflow(value)
    placement = placement_diagnostics(claimed, file.kind) if claimed is not None else ()
    if not isinstance(document, WorkflowDocument):
        return _refused(file, claimed, (*document, *(one for one in placement if one.severity == "error")))
    if has_errors(placement):
        return _refused(file, claimed, placement)
    compiled = compile_workflow(document)
    if not isinstance(compiled, CompiledWorkflow):
        return _refused(file, claimed, compiled)
    workflow_hash, pinned = pinned_bytes(compiled)
    return Entry(
        document=document,
        source=value,
        compiled=compiled,
        workflow_hash=workflow_hash,
        compiled_bytes=pinned,
        source_kind=file.kind,
        source_ref=file.ref,
        warnings=placement,
    )


def _refused(file: WorkflowFile, workflow_id: str | None, diagnostics: Diagnostics) -> RefusedFile:
    return RefusedFile(source_kind=file.kind, source_ref=file.ref, workflow_id=workflow_id, diagnostics=diagnostics)


def _shadowed(loser: Entry, winner: Entry) -> RefusedFile:
    taken = fault(
        "id",
        "id_taken",
        f"{loser.workflow_id!r} is served from {winner.source_ref!r} of the {winner.source_kind} source.",
        "Give one of the two another id.",
    )
    return RefusedFile(
        source_kind=loser.source_kind, source_ref=loser.source_ref, workflow_id=loser.workflow_id, diagnostics=(taken,)
    )
