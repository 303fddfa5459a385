"""The catalogue: every workflow of every source, read and checked, with faults and id conflicts (SRC-3, SRC-4).

Each view reads only the files that changed. A workflow is compiled when it is inspected or started, not for a list. A
flow with a workflow id is compiled with the blocks of all files, so when any definition changes.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from pathlib import Path

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors, suggest_name
from interlock.define.document import WorkflowDocument, count_steps
from interlock.define.front import FaultyDocument, parse_document
from interlock.define.operations.definitions import CLASS_OF, Definition, Definitions, VersionTakenError
from interlock.define.operations.files import parse_definition
from interlock.define.operations.flows import Flow
from interlock.define.patterns import PatternChecker
from interlock.define.source.positions import find_positions
from interlock.define.source.stated_id import find_stated_id
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.define.workflow_ids import classify_id, is_reserved, suggest_id
from interlock.kernel.budgets.workflow import (
    PATTERNS_LISTED_SIZE_MAX,
    PATTERNS_SIZE_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SourceKind, WorkflowHash
from interlock.plan.check.plan_file import holds_plan, parse_plan_file
from interlock.plan.compile.compiler import Compiled, compile_workflow, faults_beside, placement_diagnostics
from interlock.plan.compile.routines import Routine, RoutineLibrary, builtin_routines, routine_of
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.flows.lowering import compile_flow, workflow_id_of
from interlock.store.workflow_files import WorkflowFile, WorkflowSources
from interlock.views.summary import Drift, RunSummary


@frozen
class Source:
    """A file: its bytes, from which the positions of faults are found, and its origin."""

    kind: SourceKind
    ref: str
    form: TextFormat
    data: bytes = field(repr=False)

    def placed(self, diagnostics: Diagnostics) -> Diagnostics:
        """Return the diagnostics, each with its line and column in this file."""
        if not diagnostics:
            return ()
        at = find_positions(self.data, self.form, [one.path for one in diagnostics])
        return tuple(
            replace(one, line=at[one.path].line, column=at[one.path].column)
            if one.line is None and one.path in at
            else one
            for one in diagnostics
        )


@frozen
class Pinnable:
    """A compiled workflow, its bytes and the hash of these bytes."""

    workflow: CompiledWorkflow
    workflow_hash: WorkflowHash
    data: bytes = field(repr=False)
    warnings: Diagnostics


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A workflow that was read and checked: a document, or a plan. Compiling a document can still fail: see `compiled`.

    What a plan does not hold, such as tags, is empty.
    """

    content: WorkflowDocument | CompiledWorkflow
    value: dict[str, Json] = field(repr=False)
    source: Source
    library: RoutineLibrary = field(repr=False)
    placement: Diagnostics

    @property
    def workflow_id(self) -> str:
        """The id that starts it."""
        return id_of(self.content)

    @property
    def tags(self) -> tuple[str, ...]:
        """What lists of workflows are filtered by."""
        return self.content.tags if isinstance(self.content, WorkflowDocument) else ()

    @property
    def keywords(self) -> tuple[str, ...]:
        """What people say who want it. They are not compiled, so a run's pinned workflow does not depend on them."""
        return self.content.keywords if isinstance(self.content, WorkflowDocument) else ()

    @property
    def examples(self) -> tuple[str, ...]:
        """Requests that fit it."""
        return self.content.examples if isinstance(self.content, WorkflowDocument) else ()

    @property
    def step_count(self) -> int:
        """The number of its steps for agents; a routine of a document counts as one."""
        return count_steps(self.content) if isinstance(self.content, WorkflowDocument) else len(self.content.steps)

    @cached_property
    def compiled(self) -> "Pinnable | RefusedFile":
        """The workflow as a run executes it, or why it cannot run. Compiled on first use."""
        if isinstance(self.content, CompiledWorkflow):
            return self._pinnable(self.content, self.placement)
        found = compile_workflow(self.content, self.library)
        if not isinstance(found, Compiled):
            diagnostics = self.source.placed((*found, *self.placement))
            return RefusedFile(source=self.source, workflow_id=self.workflow_id, diagnostics=diagnostics)
        return self._pinnable(found.workflow, (*found.warnings, *self.placement))

    def _pinnable(self, workflow: CompiledWorkflow, warnings: Diagnostics) -> "Pinnable":
        workflow_hash, data = pinned_bytes(workflow)
        return Pinnable(
            workflow=workflow, workflow_hash=workflow_hash, data=data, warnings=self.source.placed(warnings)
        )


def id_of(content: WorkflowDocument | CompiledWorkflow) -> str:
    """Return the id of a workflow, in either form."""
    return content.id if isinstance(content, WorkflowDocument) else content.workflow_id


@frozen
class RefusedFile:
    """A file without a workflow that can be started, and why."""

    source: Source
    workflow_id: str | None
    diagnostics: Diagnostics


@frozen
class CatalogView:
    """The catalogue as one workspace sees it."""

    entries: dict[str, Entry]
    refused: tuple[RefusedFile, ...]
    definitions: Definitions

    def drift_of(self, run: RunSummary) -> Drift | None:
        """Return how the source of a run's workflow differs from the plan that the run pinned; None if it does not.

        A source that has faults now counts as changed.
        """
        entry = self.entries.get(run.workflow_id)
        compiled = entry.compiled if entry is not None else None
        is_same = isinstance(compiled, Pinnable) and compiled.workflow_hash == run.workflow_hash
        sources = [one.source for one in (*self.entries.values(), *self.refused)]
        if (run.source_kind, run.source_ref) in [(one.kind, one.ref) for one in sources]:
            return None if is_same else "changed"
        return "moved" if is_same else "removed"

    def nearest(self, workflow_id: str) -> str | None:
        """Return the known id that is most similar to a mistaken one, if one is similar."""
        stems = {name.rpartition(".")[2]: name for name in self.entries}
        return suggest_name(workflow_id, self.entries) or stems.get(
            suggest_name(workflow_id.rpartition(".")[2], stems) or ""
        )

    def refused_of(self, workflow_id: str) -> RefusedFile | None:
        """Return the refused file with this workflow id, if there is one."""
        return next((file for file in self.refused if file.workflow_id == workflow_id), None)

    def suggested(self, entry: Entry) -> str | None:
        """Return the id that a workflow with a legacy id (without a dot) should have; None for other workflows."""
        if classify_id(entry.workflow_id) != "legacy":
            return None
        return suggest_id(entry.workflow_id, entry.source.kind, frozenset(self.entries))


@frozen
class _CachedFile:
    """The result of reading one file, cached until the file changes."""

    stamp: tuple[int, int, int]
    found: "_Parsed | _ParsedDefinition | RefusedFile"


@frozen
class _Parsed:
    source: Source
    value: dict[str, Json]
    content: WorkflowDocument | CompiledWorkflow
    placement: Diagnostics


@frozen
class _ParsedDefinition:
    source: Source
    value: dict[str, Json]
    definition: Definition


@dataclass(slots=True)
class _PatternBudget:
    """The total size of the patterns that one view has checked so far."""

    pattern_size: int = 0


class Catalog:
    """Lists the sources for every view, parses only changed files, and compiles only the requested workflows."""

    def __init__(self, sources: WorkflowSources) -> None:
        self._sources = sources
        self._read: dict[Path, _CachedFile] = {}
        self._entries: dict[Path, Entry] = {}
        self._flows: _Flows | None = None
        self._last: _LastView | None = None
        self._mutex = threading.Lock()

    def view(self, workspace: Path | None) -> CatalogView:
        """Return the catalogue of a workspace.

        If two files have the same id, the nearer source wins, but never over `wr.*`; the other file is refused.
        """
        files, bindings = self._sources.files(workspace), self._sources.bindings(workspace)
        with self._mutex:
            last = self._last
        if last is not None and last.files == files and last.bindings == bindings:
            return last.view
        budget = _PatternBudget()
        found = self._lower_flows([self._read_file(file, budget) for file in files])
        routines = {**builtin_routines(), **_core_routines(one for one in found.files if isinstance(one, _Parsed))}
        entries: dict[str, Entry] = {}
        refused: list[RefusedFile] = []
        for file, one in zip(files, found.files, strict=True):
            if isinstance(one, RefusedFile):
                refused.append(one)
                continue
            if one is None:
                continue
            library = RoutineLibrary(routines=routines, bindings=bindings_of(bindings, id_of(one.content)))
            entry = self._entry(file, one, library)
            taken = entries.get(entry.workflow_id)
            if taken is None:
                entries[entry.workflow_id] = entry
                continue
            is_nearer = taken.source.kind != entry.source.kind and not is_reserved(entry.workflow_id)
            winner, loser = (entry, taken) if is_nearer else (taken, entry)
            entries[entry.workflow_id] = winner
            refused.append(_refuse_shadowed(loser, winner))
        view = CatalogView(entries=entries, refused=tuple(refused), definitions=found.definitions)
        with self._mutex:
            # A file that could not be read now may be read next time, so it must be tried again.
            is_whole = all((kept := self._read.get(file.path)) and kept.stamp == file.stamp for file in files)
            self._last = _LastView(files=files, bindings=bindings, view=view) if is_whole else None
        return view

    def _lower_flows(self, found: "Sequence[_Parsed | _ParsedDefinition | RefusedFile]") -> "_Flows":
        """Return the files with each flow that has a workflow id compiled; the cached ones if no file has changed."""
        with self._mutex:
            kept = self._flows
        if kept is not None and len(kept.read) == len(found) and all(map(is_, kept.read, found)):
            return kept
        flows = _lower_flows(found)
        with self._mutex:
            self._flows = flows
        return flows

    def _read_file(self, file: WorkflowFile, budget: "_PatternBudget") -> "_Parsed | _ParsedDefinition | RefusedFile":
        with self._mutex:
            kept = self._read.get(file.path)
        if kept is not None and kept.stamp == file.stamp:
            return kept.found
        try:
            data = self._sources.read(file)
        except OSError:
            source = Source(kind=file.kind, ref=file.ref, form=file.form, data=b"")
            unreadable = fault("", "not_utf8", "The file cannot be read.", "Check the permissions of the file.")
            return RefusedFile(source=source, workflow_id=None, diagnostics=(unreadable,))
        allowed = min(PATTERNS_SIZE_MAX, PATTERNS_LISTED_SIZE_MAX - budget.pattern_size)
        patterns = PatternChecker(allowed)
        source = Source(kind=file.kind, ref=file.ref, form=file.form, data=data)
        found = read_definition(source) or read_source(source, patterns)
        budget.pattern_size += patterns.size
        if patterns.is_exhausted and allowed < PATTERNS_SIZE_MAX:
            # Not cached: the next view starts from the files that this one cached, so it gets further.
            return found
        with self._mutex:
            self._read[file.path] = _CachedFile(stamp=file.stamp, found=found)
        return found

    def _entry(self, file: WorkflowFile, parsed: _Parsed, library: RoutineLibrary) -> Entry:
        """Return a file's entry; the cached one, with its compiled workflow, if nothing that it uses has changed."""
        with self._mutex:
            kept = self._entries.get(file.path)
        if kept is not None and kept.content is parsed.content and kept.library == library:
            return kept
        entry = Entry(
            content=parsed.content,
            value=parsed.value,
            source=parsed.source,
            library=library,
            placement=parsed.placement,
        )
        with self._mutex:
            self._entries[file.path] = entry
        return entry


@frozen
class _LastView:
    """The last view, and the files and bindings that it shows: while they are unchanged, the view is."""

    files: tuple[WorkflowFile, ...]
    bindings: Mapping[str, Json]
    view: CatalogView


@frozen
class _Flows:
    """The files of a view after its flows were lowered. A definition that no agent can start is None."""

    read: "Sequence[_Parsed | _ParsedDefinition | RefusedFile]"
    files: tuple[_Parsed | RefusedFile | None, ...]
    definitions: Definitions


def _lower_flows(found: "Sequence[_Parsed | _ParsedDefinition | RefusedFile]") -> _Flows:
    definitions = Definitions()
    files = [_add_definition(one, definitions) if isinstance(one, _ParsedDefinition) else one for one in found]
    lowered = (_lower_flow(one, definitions) if isinstance(one, _ParsedDefinition) else one for one in files)
    return _Flows(read=found, files=tuple(lowered), definitions=definitions)


def _add_definition(read: _ParsedDefinition, definitions: Definitions) -> _ParsedDefinition | RefusedFile:
    """Add a definition; refuse the file if its version has other content already."""
    try:
        definitions.add(read.definition)
    except VersionTakenError as error:
        one = error.definition
        message = f"Version {one.version} of {one.id} is defined in another file, with other content."
        taken = fault("version", "version_taken", message, f"Give the changed definition version {one.version + 1}.")
        return RefusedFile(source=read.source, workflow_id=None, diagnostics=read.source.placed((taken,)))
    return read


def _lower_flow(read: _ParsedDefinition, definitions: Definitions) -> _Parsed | RefusedFile | None:
    """Return the workflow of a flow; None if the definition is no flow that agents start."""
    flow = read.definition
    if not isinstance(flow, Flow) or flow.metadata.get("workflow_id") is None:
        return None
    workflow_id = workflow_id_of(flow)
    if workflow_id != flow.metadata["workflow_id"]:
        fix = "Write an id of the form `namespace.name`: lower case, with one dot."
        bad = fault("metadata.workflow_id", "bad_id", f"{flow.metadata['workflow_id']!r} is not a workflow id.", fix)
        return RefusedFile(source=read.source, workflow_id=None, diagnostics=read.source.placed((bad,)))
    compiled = compile_flow(flow, definitions)
    placement = placement_diagnostics(workflow_id, read.source.kind)
    placement = tuple(replace(one, path="metadata.workflow_id") for one in placement)
    if isinstance(compiled, Compiled) and not has_errors(placement):
        warnings = (*compiled.warnings, *placement)
        return _Parsed(source=read.source, value=read.value, content=compiled.workflow, placement=warnings)
    faults = (*(() if isinstance(compiled, Compiled) else compiled), *placement)
    return RefusedFile(source=read.source, workflow_id=workflow_id, diagnostics=read.source.placed(faults))


def read_definition(source: Source) -> _ParsedDefinition | RefusedFile | None:
    """Parse a block, a flow or a contract; None if the file holds something else."""
    if not any(word in source.data for word in _DEFINITION_MARKS):
        return None
    value = parse_text(source.data, source.form)
    if isinstance(value, Diagnostic) or value.get("kind") not in CLASS_OF:
        return None
    parsed = parse_definition(value)
    if isinstance(parsed, tuple):
        return RefusedFile(source=source, workflow_id=None, diagnostics=source.placed(parsed))
    return _ParsedDefinition(source=source, value=value, definition=parsed)


_DEFINITION_MARKS = tuple(word.encode() for word in CLASS_OF)
"""Every file of a definition contains the word of its kind: other files are not parsed twice."""


def read_source(source: Source, patterns: PatternChecker | None = None) -> _Parsed | RefusedFile:
    """Parse and check the bytes of a file; return its document, or all faults that were found."""
    value = parse_text(source.data, source.form)
    if isinstance(value, Diagnostic):
        stated_id = find_stated_id(source.data, source.form)
        return RefusedFile(source=source, workflow_id=stated_id, diagnostics=source.placed((value,)))
    patterns = patterns or PatternChecker()
    if holds_plan(value):
        return _read_plan(source, value, patterns)
    stated_id = _text_or_none(value.get("id"))
    document = parse_document(value, patterns)
    placement = placement_diagnostics(stated_id, source.kind) if stated_id is not None else ()
    if isinstance(document, FaultyDocument):
        more = faults_beside(document.diagnostics, document.recovered) if document.recovered is not None else ()
        faults = (*document.diagnostics, *more, *placement)
        return RefusedFile(source=source, workflow_id=stated_id, diagnostics=source.placed(faults))
    if has_errors(placement):
        faults = (*placement, *faults_beside(placement, document))
        return RefusedFile(source=source, workflow_id=stated_id, diagnostics=source.placed(faults))
    return _Parsed(source=source, value=value, content=document, placement=placement)


def _read_plan(source: Source, value: dict[str, Json], patterns: PatternChecker) -> _Parsed | RefusedFile:
    """Check a plan file; return its workflow, or all faults that were found."""
    stated_id = _text_or_none(value.get("workflowId"))
    found = parse_plan_file(value, patterns)
    placement = placement_diagnostics(stated_id, source.kind) if stated_id is not None else ()
    placement = tuple(replace(one, path="workflowId") for one in placement)
    if isinstance(found, CompiledWorkflow) and not has_errors(placement):
        return _Parsed(source=source, value=value, content=found, placement=placement)
    faults = (*(() if isinstance(found, CompiledWorkflow) else found), *placement)
    return RefusedFile(source=source, workflow_id=stated_id, diagnostics=source.placed(faults))


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _core_routines(parsed: Iterable[_Parsed]) -> dict[str, Routine]:
    """Return the routines of the bundled files; files of other sources cannot define routines."""
    found = [
        routine_of(one.content)
        for one in parsed
        if one.source.kind == "bundled" and isinstance(one.content, WorkflowDocument)
    ]
    return {routine.template_id: routine for routine in found if routine is not None}


def bindings_of(bindings: Mapping[str, Json], workflow_id: str) -> dict[str, str]:
    """Return a project's bindings for the slots of one workflow: the workflow's own map wins over the common one."""
    own = bindings.get(workflow_id)
    merged = {**bindings, **(own if isinstance(own, dict) else {})}
    return {slot: value for slot, value in merged.items() if isinstance(value, str)}


def _refuse_shadowed(loser: Entry, winner: Entry) -> RefusedFile:
    taken = fault(
        "id",
        "id_taken",
        f"The id {loser.workflow_id!r} is already used by {winner.source.ref!r} of the {winner.source.kind} source.",
        "Give one of the two another id.",
    )
    return RefusedFile(source=loser.source, workflow_id=loser.workflow_id, diagnostics=loser.source.placed((taken,)))
