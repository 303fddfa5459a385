"""The catalogue: every workflow of every source, read and checked, with faults and id conflicts (SRC-3, SRC-4).

Each view reads only the files that changed. A workflow can be started if it compiles: a call about one id compiles the
files with this id, and a list compiles all files except those that the package publishes. Each is compiled once. A flow
with a workflow id is compiled with the blocks of all files, so when any definition changes.
"""

import re
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from pathlib import Path, PurePath

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, suggest_name
from interlock.define.document import WorkflowDocument
from interlock.define.operations.definitions import Definitions
from interlock.define.patterns import PatternChecker
from interlock.define.workflow_ids import classify_id, suggest_id
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.workflow import (
    COMPILED_LISTED_BYTES_MAX,
    PATTERNS_LISTED_SIZE_MAX,
    PATTERNS_SIZE_MAX,
    SOURCE_FILES_MAX,
)
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import SourceKind, WorkflowHash
from interlock.kernel.text import one_line
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compile.routines import Routine, RoutineLibrary, builtin_routines, names_routine, routine_of
from interlock.plan.compiled import CompiledWorkflow, parse_compiled, pinned_bytes
from interlock.service.workflows.listing import Listing, bundled_listings
from interlock.service.workflows.reading import (
    Document,
    Flows,
    ReadDefinition,
    ReadFile,
    RefusedFile,
    Source,
    lower_among,
    lower_flows,
    read_definition,
    read_source,
    refuse_failure,
)
from interlock.store.workflow_files import WorkflowFile, WorkflowSources
from interlock.views.summary import Drift, RunSummary


@dataclass(frozen=True, kw_only=True)
class Pinnable:
    """A compiled workflow: its bytes, as a start pins them, and their hash."""

    workflow_hash: WorkflowHash
    data: bytes = field(repr=False)
    warnings: Diagnostics

    @cached_property
    def workflow(self) -> CompiledWorkflow:
        """The workflow as every reader of these bytes sees it. A start and later calls share it."""
        return parse_compiled(self.data)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file that was read and checked. Compiling its document can still fail: see `compiled`."""

    file: ReadFile
    library: RoutineLibrary = field(repr=False)
    placement: Diagnostics

    @property
    def listing(self) -> Listing:
        """What lists show of it."""
        return self.file.listing

    @property
    def workflow_id(self) -> str:
        """The id that starts it."""
        return self.file.listing.workflow_id

    @property
    def source(self) -> Source:
        """The file that it was read from."""
        return self.file.source

    @property
    def document(self) -> Document:
        """Its document, or its plan."""
        return self.file.read()

    @cached_property
    def compiled(self) -> "Pinnable | RefusedFile":
        """The workflow as a run executes it, or why it cannot run. Compiled on first use."""
        return refuse_failure(self.source, self._compile)

    @property
    def unchecked_bytes(self) -> int:
        """The size of the file if only compiling it shows whether it can be started, and it was not compiled yet."""
        return 0 if self.file.is_published or "compiled" in vars(self) else len(self.source.data)

    @property
    def fault(self) -> "RefusedFile | None":
        """Why it cannot be started; None if it can. A published workflow of the package is not compiled for this."""
        if self.file.is_published or isinstance(self.compiled, Pinnable):
            return None
        return self.compiled

    def _compile(self) -> "Pinnable | RefusedFile":
        content = self.document.content
        if isinstance(content, CompiledWorkflow):
            return self._pinnable(content, self.placement)
        found = compile_workflow(content, self.library)
        if not isinstance(found, Compiled):
            diagnostics = self.source.placed((*found, *self.placement))
            return RefusedFile(source=self.source, workflow_id=self.workflow_id, diagnostics=diagnostics)
        return self._pinnable(found.workflow, (*found.warnings, *self.placement))

    def _pinnable(self, workflow: CompiledWorkflow, warnings: Diagnostics) -> "Pinnable":
        workflow_hash, data = pinned_bytes(workflow)
        return Pinnable(workflow_hash=workflow_hash, data=data, warnings=self.source.placed(warnings))


_NEARNESS: Mapping[SourceKind, int] = {"bundled": 1, "user": 2, "project": 3}


@frozen
class _Lists:
    """The workflows that can be started, and all other files. `is_partial`: some workflows were not compiled yet."""

    entries: dict[str, Entry]
    refused: tuple[RefusedFile, ...]
    is_partial: bool


@dataclass(frozen=True, kw_only=True)
class CatalogView:
    """The catalogue as one workspace sees it.

    `candidates` are the sound documents of each id, those of the nearest source first; `faulty` are all other files. Of
    the candidates the first that compiles is started, so a file with faults hides no other.
    """

    candidates: Mapping[str, tuple[Entry, ...]]
    faulty: tuple[RefusedFile, ...]
    definitions: Definitions
    order: Mapping[tuple[SourceKind, str], int] = field(repr=False)
    checked_bytes_max: int | None = None

    def startable(self, workflow_id: str) -> Entry | None:
        """Return the workflow that an id starts, if there is one."""
        return next((one for one in self.candidates.get(workflow_id, ()) if one.fault is None), None)

    def replaced_by(self, entry: Entry) -> Source | None:
        """Return the file of a farther source with the id of a workflow, which is not used because of it (SRC-3)."""
        others = (one.source for one in self.candidates.get(entry.workflow_id, ()))
        return next((one for one in others if _nearness(one) < _nearness(entry.source)), None)

    def refused_of(self, workflow_id: str) -> RefusedFile | None:
        """Return the refused file with this workflow id, if there is one: that of the nearest source."""
        failed = (one.fault for one in self.candidates.get(workflow_id, ()))
        refused = [*(one for one in failed if one), *(one for one in self.faulty if one.workflow_id == workflow_id)]
        return max(refused, key=lambda one: _NEARNESS.get(one.source.kind, 0), default=None)

    def found(self, workflow_id: str) -> Entry | RefusedFile | None:
        """Return what an id starts, or else why its file is refused; None if no file has this id."""
        return self.startable(workflow_id) or self.refused_of(workflow_id)

    @property
    def entries(self) -> dict[str, Entry]:
        """The workflows that can be started, by id."""
        return self._lists.entries

    @property
    def refused(self) -> tuple[RefusedFile, ...]:
        """The files that cannot be started, and why, in the order of the files."""
        return self._lists.refused

    @property
    def is_partial(self) -> bool:
        """Whether it was listed with files that were not checked. The next view continues with them."""
        return "_lists" in vars(self) and self._lists.is_partial

    @cached_property
    def _lists(self) -> _Lists:
        entries: dict[str, Entry] = {}
        refused, left, is_partial = list(self.faulty), self.checked_bytes_max, False
        for workflow_id, candidates in self.candidates.items():
            for entry in candidates:
                winner = entries.get(workflow_id)
                if winner is not None and entry.source.kind == winner.source.kind:
                    refused.append(_refuse_second(entry, winner))
                    continue
                size = entry.unchecked_bytes
                is_unchecked = size > 0 and left is not None and left <= 0
                is_partial = is_partial or is_unchecked
                left = None if left is None else left - size
                if is_unchecked or entry.fault is None:
                    # A sound file of a farther source has no fault: it is named with the workflow that replaces it.
                    entries.setdefault(workflow_id, entry)
                else:
                    refused.append(entry.fault)
        refused.sort(key=lambda one: self.order[one.source.kind, one.source.ref])
        return _Lists(entries=entries, refused=tuple(refused), is_partial=is_partial)

    def holds(self, kind: SourceKind, ref: str) -> bool:
        """Return whether a source has a file with a workflow, or one that could not be read, at this place.

        A published definition is always there: the data directory keeps it.
        """
        return (kind, ref) in self.order or is_published(ref)

    def drift_of(self, run: RunSummary) -> Drift | None:
        """Return how the source of a run's workflow differs from the plan that the run pinned; None if it does not.

        A source that has faults now counts as changed. A published definition never changes.
        """
        if is_published(run.source_ref):
            return None
        entry = self.startable(run.workflow_id)
        compiled = entry.compiled if entry is not None else None
        is_same = isinstance(compiled, Pinnable) and compiled.workflow_hash == run.workflow_hash
        if self.holds(run.source_kind, run.source_ref):
            return None if is_same else "changed"
        return "moved" if is_same else "removed"

    def nearest(self, workflow_id: str) -> str | None:
        """Return the known id that is most similar to a mistaken one, if one is similar."""
        names = {name.casefold(): name for name in self.candidates}
        stems = {name.rpartition(".")[2]: name for name in names}
        wanted = workflow_id.casefold()
        stem = wanted.rpartition(".")[2]
        found = suggest_name(wanted, names) or stems.get(suggest_name(stem, stems) or "")
        # One word of a name, such as `review` of `code_review`.
        found = found or next((name for one, name in sorted(stems.items()) if stem in re.split("[-_]", one)), None)
        return names[found] if found is not None else None

    def suggested(self, entry: Entry) -> str | None:
        """Return the id that a workflow with a legacy id (without a dot) should have; None for other workflows."""
        if classify_id(entry.workflow_id) != "legacy":
            return None
        return suggest_id(entry.workflow_id, entry.source.kind, frozenset(self.candidates))


def is_published(source_ref: str) -> bool:
    """Say whether the source of a run is a published definition, `ID@VERSION`: no name of a file ends in a number."""
    _, at, version = source_ref.rpartition("@")
    return bool(at) and version.isdecimal()


@frozen
class _CachedFile:
    """The result of reading one file, cached until the file changes."""

    stamp: tuple[int, int, int]
    found: "ReadFile | ReadDefinition | RefusedFile"


@mutable
class _PatternBudget:
    """The total size of the patterns that one view has checked so far."""

    pattern_size: int = 0


class Catalog:
    """Lists the sources for every view, and parses and compiles only what changed.

    One list compiles files for the first time until it has compiled `checked_bytes_max` bytes of them (None: without a
    limit), and the next one continues. A file that was not compiled yet is listed as one that can be started.
    """

    def __init__(self, sources: WorkflowSources, *, checked_bytes_max: int | None = COMPILED_LISTED_BYTES_MAX) -> None:
        self._sources = sources
        self._checked_bytes_max = checked_bytes_max
        self._read: dict[str, _CachedFile] = {}
        self._entries: dict[str, Entry] = {}
        self._flows: Flows | None = None
        self._last: _LastView | None = None
        self._mutex = threading.Lock()

    def view(self, workspace: Path | None) -> CatalogView:
        """Return the catalogue of a workspace.

        If two files have the same id, the nearer source wins, but never over `wr.*`; the other file is refused.
        """
        files, bindings = self._sources.files(workspace), self._sources.bindings(workspace)
        with self._mutex:
            last = self._last
        if last is not None and last.files == files and last.bindings == bindings and not last.view.is_partial:
            return last.view
        budget = _PatternBudget()
        found = self._lower_flows([self._read_file(file, budget) for file in files])
        routines = {**builtin_routines(), **_core_routines(one for one in found.files if isinstance(one, ReadFile))}
        candidates: dict[str, list[Entry]] = {}
        faulty: list[RefusedFile] = []
        order: dict[tuple[SourceKind, str], int] = {}
        for file, one in zip(files, found.files, strict=True):
            if one is None:
                continue
            order.setdefault((file.kind, file.ref), len(order))
            if isinstance(one, RefusedFile):
                faulty.append(one)
                continue
            library = RoutineLibrary(routines=routines, bindings=bindings_of(bindings, one.listing.workflow_id))
            candidates.setdefault(one.listing.workflow_id, []).append(self._entry(file, one, library))
        view = CatalogView(
            candidates={name: _nearest_first(entries) for name, entries in candidates.items()},
            faulty=tuple(faulty),
            definitions=found.definitions,
            order=order,
            checked_bytes_max=self._checked_bytes_max,
        )
        with self._mutex:
            # A file that could not be read now may be read next time, so it must be tried again.
            is_whole = all((kept := self._read.get(file.location)) and kept.stamp == file.stamp for file in files)
            self._last = _LastView(files=files, bindings=bindings, view=view) if is_whole else None
        return view

    def lower(
        self, workspace: Path | None, read: ReadDefinition, named: Iterable[ReadDefinition] = ()
    ) -> ReadFile | RefusedFile | None:
        """Return the workflow of a flow as if its file were one of a workspace; None if no agent starts it.

        `named` are the files of which it is one, see `definitions_with`.
        """
        own = read.source.location
        replaced = {one.source.location: one for one in named} | {own: read}
        return lower_among(read, self.definitions_with(workspace, replaced.values()))

    def definitions_with(self, workspace: Path | None, named: Iterable[ReadDefinition]) -> list[ReadDefinition]:
        """Return the definitions of named files and of a workspace, in the order in which they count.

        A named file that is one of the workspace has its place there. Any other one counts before those of the
        workspace, and one without a location, which does not exist yet, after them.
        """
        files, budget = self._sources.files(workspace), _PatternBudget()
        by_name: dict[str, list[WorkflowFile]] = {}
        for file in files:
            by_name.setdefault(PurePath(file.location).name, []).append(file)
        first, within, last = list[ReadDefinition](), dict[str, ReadDefinition](), list[ReadDefinition]()
        for one in named:
            at = one.source.location
            own = next((file for file in by_name.get(PurePath(at).name, ()) if _is_at(file, at)), None)
            if own is not None:
                within[own.location] = one
            else:
                (first if at else last).append(one)
        found = (within.get(file.location) or self._read_file(file, budget) for file in files)
        return [*first, *(one for one in found if isinstance(one, ReadDefinition)), *last]

    def _lower_flows(self, found: "Sequence[ReadFile | ReadDefinition | RefusedFile]") -> "Flows":
        """Return the files with each flow that has a workflow id compiled; the cached ones if no file has changed."""
        with self._mutex:
            kept = self._flows
        if kept is not None and len(kept.read) == len(found) and all(map(is_, kept.read, found)):
            return kept
        flows = lower_flows(found)
        with self._mutex:
            self._flows = flows
        return flows

    def _read_file(self, file: WorkflowFile, budget: "_PatternBudget") -> "ReadFile | ReadDefinition | RefusedFile":
        with self._mutex:
            kept = self._read.get(file.location)
        if kept is not None and kept.stamp == file.stamp:
            return kept.found
        if file.left_out or file.is_outside:
            unread = _refuse_unread(file)
            with self._mutex:
                self._read[file.location] = _CachedFile(stamp=file.stamp, found=unread)
            return unread
        try:
            data = self._sources.read(file)
        except OSError:
            source = Source(kind=file.kind, ref=file.ref, form=file.form, data=b"", location=file.location)
            unreadable = fault("", "not_utf8", "The file cannot be read.", "Check the permissions of the file.")
            return RefusedFile(source=source, workflow_id=None, diagnostics=(unreadable,))
        allowed = min(PATTERNS_SIZE_MAX, PATTERNS_LISTED_SIZE_MAX - budget.pattern_size)
        patterns = PatternChecker(allowed)
        source = Source(kind=file.kind, ref=file.ref, form=file.form, data=data, location=file.location)
        if kept is not None and kept.found.source == source:
            with self._mutex:
                self._read[file.location] = _CachedFile(stamp=file.stamp, found=kept.found)
            return kept.found
        listing = bundled_listings().get(digest_of_bytes(data)) if file.kind == "bundled" else None
        if listing is not None:
            found = ReadFile.listed(source, listing)
        else:
            found = read_definition(source) or read_source(source, patterns)
        budget.pattern_size += patterns.size
        if patterns.is_exhausted and allowed < PATTERNS_SIZE_MAX:
            # Not cached: the next view starts from the files that this one cached, so it gets further.
            return found
        with self._mutex:
            self._read[file.location] = _CachedFile(stamp=file.stamp, found=found)
        return found

    def _entry(self, file: WorkflowFile, parsed: ReadFile, library: RoutineLibrary) -> Entry:
        """Return a file's entry; the cached one, with its compiled workflow, if nothing that it uses has changed."""
        with self._mutex:
            kept = self._entries.get(file.location)
        if kept is not None and kept.file is parsed and kept.library == library:
            return kept
        entry = Entry(file=parsed, library=library, placement=parsed.placement)
        with self._mutex:
            self._entries[file.location] = entry
        return entry


@frozen
class _LastView:
    """The last view, and the files and bindings that it shows: while they are unchanged, the view is."""

    files: tuple[WorkflowFile, ...]
    bindings: Mapping[str, Json]
    view: CatalogView


def _is_at(file: WorkflowFile, location: str) -> bool:
    """Say whether a location is that of a file; it may be written in another way."""
    if file.location == location:
        return True
    try:
        return file.path.name == PurePath(location).name and file.path.samefile(location)
    except OSError:
        return False


def _nearest_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the files with one id in the order in which they are tried: the nearest source first, then by name.

    Of one directory the shortest name is first: what an editor or a file manager calls a copy is longer than the name
    of the original. An id in `wr.*` is refused in every source but the bundled one, so nothing goes before those files
    (SRC-3).
    """
    listed = [*entries]
    roots = list(dict.fromkeys(map(_root, listed)))
    return tuple(sorted(listed, key=lambda one: (-_nearness(one.source), roots.index(_root(one)), len(one.source.ref))))


def _nearness(source: Source) -> int:
    return _NEARNESS.get(source.kind, 0)


def _root(entry: Entry) -> str:
    """Return the directory of a source that holds a file."""
    return entry.source.location.removesuffix(entry.source.ref)


def _core_routines(parsed: Iterable[ReadFile]) -> dict[str, Routine]:
    """Return the routines of the bundled files; files of other sources cannot define routines."""
    found = [
        routine_of(content)
        for one in parsed
        if one.source.kind == "bundled"
        and names_routine(one.listing.workflow_id)
        and isinstance(content := one.read().content, WorkflowDocument)
    ]
    return {routine.template_id: routine for routine in found if routine is not None}


def bindings_of(bindings: Mapping[str, Json], workflow_id: str) -> dict[str, str]:
    """Return a project's bindings for the slots of one workflow: the workflow's own map wins over the common one."""
    own = bindings.get(workflow_id)
    merged = {**bindings, **(own if isinstance(own, dict) else {})}
    return {slot: value for slot, value in merged.items() if isinstance(value, str)}


def unread_fault(file: WorkflowFile) -> Diagnostic:
    """Return the fault of a link out of its source, or of the first file beyond the most of a directory."""
    if file.is_outside:
        message = "It is a link that leads out of its source, so it is not read."
        return fault("", "wrong_value", message, "Put a copy of what it leads to in the place of the link.")
    files = "This file is" if file.left_out == 1 else f"The files from this one on, {file.left_out} in all, are"
    message = f"{files} not read: a directory of a source has at most {SOURCE_FILES_MAX} files."
    return fault("", "too_many", message, "Move the files that are no workflows to another directory.")


def _refuse_unread(file: WorkflowFile) -> RefusedFile:
    source = Source(kind=file.kind, ref=file.ref, form=file.form, data=b"", location=file.location)
    return RefusedFile(source=source, workflow_id=None, diagnostics=(unread_fault(file),))


def _refuse_second(loser: Entry, winner: Entry) -> RefusedFile:
    message = (
        f"{loser.source.ref!r} and {winner.source.ref!r} of the {winner.source.kind} source have the same id"
        f" {loser.workflow_id!r}; {winner.source.ref!r} is used."
    )
    taken = fault(loser.file.id_path, "id_taken", message, "Delete one of the two files, or give it another id.")
    return RefusedFile(source=loser.source, workflow_id=loser.workflow_id, diagnostics=loser.source.placed((taken,)))


def describe_missing_workspace(workspace: Path | None, *, is_sent: bool) -> str | None:
    """Return in a sentence why a workspace has no files of a project: nothing is there, or a file; else None.

    Only the path of a workspace that the caller sent is named: that of the server is for its user alone.
    """
    if workspace is None:
        return None
    try:
        is_directory = stat.S_ISDIR(workspace.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        found = "does not exist"
    except OSError:
        # A file of the project that cannot be read is reported as such.
        return None
    else:
        if is_directory:
            return None
        found = "is not a directory"
    shown = one_line(repr(str(workspace)), ECHO_BYTES_MAX * 2) if is_sent else "of this server"
    return f"The workspace {shown} {found}, so no workflow of a project was read."
