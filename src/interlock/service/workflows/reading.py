"""The files of workflows and definitions, read and checked; flows are compiled with the blocks of all files."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cache, partial
from typing import Self, TypeVar

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors, shortened
from interlock.define.document import WorkflowDocument
from interlock.define.front import FaultyDocument, parse_document
from interlock.define.operations.definitions import CLASS_OF, Definition, Definitions, VersionTakenError
from interlock.define.operations.files import parse_definition
from interlock.define.operations.flows import Flow
from interlock.define.patterns import PatternChecker
from interlock.define.source.positions import find_positions
from interlock.define.source.stated_id import find_stated_id
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SourceKind
from interlock.plan.check.plan_file import holds_plan, parse_plan_file
from interlock.plan.compile.compiler import Compiled, faults_beside, placement_diagnostics
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.flows.lowering import compile_agent_flow
from interlock.service.workflows.listing import Listing

_log = logging.getLogger(__name__)
_Found = TypeVar("_Found")

PLAN_ID_PATH = "workflowId"
"""Where a plan file states the id of its workflow."""
FLOW_ID_PATH = "metadata.workflow_id"
"""Where a flow states the id by which agents start it."""


@frozen
class Source:
    """A file: its bytes, from which the positions of faults are found, and its origin.

    `location` is the path of the file, which no other file has; empty for bytes that are in no file. Two directories of
    one source can have files with the same `ref`.
    """

    kind: SourceKind
    ref: str
    form: TextFormat
    data: bytes = field(repr=False)
    location: str = ""

    def placed(self, diagnostics: Diagnostics) -> Diagnostics:
        """Return the diagnostics, each with its line and column in this file; of very many, only the first."""
        diagnostics = shortened(diagnostics)
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
class RefusedFile:
    """A file without a workflow that can be started, and why: at least one of the diagnostics is an error."""

    source: Source
    workflow_id: str | None
    diagnostics: Diagnostics

    @property
    def faults(self) -> Diagnostics:
        """Why no run can start from it: the errors, without the warnings for its author (SRC-7)."""
        return tuple(one for one in self.diagnostics if one.severity == "error")


def refuse_failure(source: Source, check: Callable[[], _Found]) -> _Found | RefusedFile:
    """Return the result of a check; if it ends with an exception, the file as refused, so that it hides no other file.

    Such an exception is a defect of Interlock. It is logged, and its words do not reach the caller.
    """
    try:
        return check()
    except Exception:  # noqa: BLE001 — whatever one file causes must not hide the other workflows
        _log.exception("the check of %s failed", source.ref)
    message = "The check of this file failed. This is a defect of Interlock."
    failed = fault("", "wrong_value", message, "Undo the last change of the file, and report the error in the log.")
    stated_id = find_stated_id(source.data, source.form)
    return RefusedFile(source=source, workflow_id=stated_id, diagnostics=(failed,))


@frozen
class Document:
    """The JSON of a file, and the workflow that it holds: a document, or a plan."""

    value: dict[str, Json] = field(repr=False)
    content: WorkflowDocument | CompiledWorkflow


@frozen
class ReadFile:
    """A workflow that was read and checked. `read` returns its document, which may be parsed only then.

    `is_published`: it is one of the package, so that it compiles is known (SRC-10).
    `id_path` is where the file states the id.
    """

    source: Source
    listing: Listing
    read: Callable[[], Document]
    placement: Diagnostics = ()
    is_published: bool = False
    id_path: str = "id"

    @classmethod
    def of(cls, source: Source, document: Document, placement: Diagnostics, id_path: str = "id") -> Self:
        """Return the workflow of a file that was parsed."""
        listing = Listing.of(document.content)
        return cls(source=source, listing=listing, read=lambda: document, placement=placement, id_path=id_path)

    @classmethod
    def listed(cls, source: Source, listing: Listing) -> Self:
        """Return the workflow of a file whose listing is known: it has no faults."""
        return cls(source=source, listing=listing, read=cache(partial(_read_listed, source)), is_published=True)


def _read_listed(source: Source) -> Document:
    parsed = read_source(source)
    assert isinstance(parsed, ReadFile), "the listings of the package's workflows are generated from them"
    return parsed.read()


@frozen
class ReadDefinition:
    """A block, a flow or a contract that was read and checked."""

    source: Source
    value: dict[str, Json]
    definition: Definition


@frozen
class Flows:
    """The files of a view after its flows were lowered. A definition that no agent can start is None."""

    read: "Sequence[ReadFile | ReadDefinition | RefusedFile]"
    files: tuple[ReadFile | RefusedFile | None, ...]
    definitions: Definitions


def lower_flows(found: "Sequence[ReadFile | ReadDefinition | RefusedFile]") -> Flows:
    """Return the files of a view with each flow that has a workflow id compiled."""
    definitions = Definitions()
    files = [add_definition(one, definitions) if isinstance(one, ReadDefinition) else one for one in found]
    lowered = (
        refuse_failure(one.source, partial(_lower_flow, one, definitions)) if isinstance(one, ReadDefinition) else one
        for one in files
    )
    return Flows(read=found, files=tuple(lowered), definitions=definitions)


def lower_among(read: ReadDefinition, all_files: Iterable[ReadDefinition]) -> ReadFile | RefusedFile | None:
    """Return the workflow of one flow of these files, with the definitions of them all; None if no agent starts it."""
    definitions = Definitions()
    added = {one.source.location: add_definition(one, definitions) for one in all_files}[read.source.location]
    if isinstance(added, RefusedFile):
        return added
    return refuse_failure(read.source, partial(_lower_flow, read, definitions))


def add_definition(read: ReadDefinition, definitions: Definitions) -> ReadDefinition | RefusedFile:
    """Add a definition; refuse the file if its version has other content already."""
    try:
        definitions.add(read.definition)
    except VersionTakenError as error:
        one = error.definition
        message = f"Version {one.version} of {one.id} is defined in another file, with other content."
        taken = fault("version", "version_taken", message, f"Give the changed definition version {one.version + 1}.")
        return RefusedFile(source=read.source, workflow_id=None, diagnostics=read.source.placed((taken,)))
    return read


def _lower_flow(read: ReadDefinition, definitions: Definitions) -> ReadFile | RefusedFile | None:
    """Return the workflow of a flow; None if the definition is no flow that agents start."""
    flow = read.definition
    if not isinstance(flow, Flow) or flow.metadata.get("workflow_id") is None:
        return None
    compiled = compile_agent_flow(flow, definitions, read.source.kind)
    if isinstance(compiled, Compiled):
        document = Document(value=read.value, content=compiled.workflow)
        return ReadFile.of(read.source, document, compiled.warnings, id_path=FLOW_ID_PATH)
    stated_id = _text_or_none(flow.metadata["workflow_id"])
    return RefusedFile(source=read.source, workflow_id=stated_id, diagnostics=read.source.placed(compiled))


def read_definition(source: Source) -> ReadDefinition | RefusedFile | None:
    """Parse a block, a flow or a contract; None if the file holds something else."""
    return refuse_failure(source, partial(_check_definition, source))


def _check_definition(source: Source) -> ReadDefinition | RefusedFile | None:
    if not any(word in source.data for word in _DEFINITION_MARKS):
        return None
    value = parse_text(source.data, source.form)
    if isinstance(value, Diagnostic) or value.get("kind") not in CLASS_OF:
        return None
    parsed = parse_definition(value)
    if isinstance(parsed, tuple):
        return RefusedFile(source=source, workflow_id=None, diagnostics=source.placed(parsed))
    return ReadDefinition(source=source, value=value, definition=parsed)


_DEFINITION_MARKS = tuple(word.encode() for word in CLASS_OF)
"""Every file of a definition contains the word of its kind: other files are not parsed twice."""


def read_source(source: Source, patterns: PatternChecker | None = None) -> ReadFile | RefusedFile:
    """Parse and check the bytes of a file; return its document, or all faults that were found."""
    return refuse_failure(source, partial(_check_source, source, patterns or PatternChecker()))


def _check_source(source: Source, patterns: PatternChecker) -> ReadFile | RefusedFile:
    value = parse_text(source.data, source.form)
    if isinstance(value, Diagnostic):
        stated_id = find_stated_id(source.data, source.form)
        return RefusedFile(source=source, workflow_id=stated_id, diagnostics=source.placed((value,)))
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
    return ReadFile.of(source, Document(value=value, content=document), placement)


def _read_plan(source: Source, value: dict[str, Json], patterns: PatternChecker) -> ReadFile | RefusedFile:
    """Check a plan file; return its workflow, or all faults that were found."""
    stated_id = _text_or_none(value.get("workflowId"))
    found = parse_plan_file(value, patterns)
    placement = placement_diagnostics(stated_id, source.kind) if stated_id is not None else ()
    placement = tuple(replace(one, path=PLAN_ID_PATH) for one in placement)
    if isinstance(found, CompiledWorkflow) and not has_errors(placement):
        return ReadFile.of(source, Document(value=value, content=found), placement, id_path=PLAN_ID_PATH)
    faults = (*(() if isinstance(found, CompiledWorkflow) else found), *placement)
    return RefusedFile(source=source, workflow_id=stated_id, diagnostics=source.placed(faults))


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None
