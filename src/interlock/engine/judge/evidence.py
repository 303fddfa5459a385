"""Checks the evidence of a step against what the plan pins, and against nothing else (BLK-1, EVID-1).

Each fault is a violation. It says what was found and what to send instead, with the shape of the artifact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from interlock.decide.condition import iter_loop_controls
from interlock.decide.criteria import find_unmet
from interlock.decide.evaluate import ABSENT, value_at
from interlock.define.declared import TypeMismatch
from interlock.define.parts import Assessment
from interlock.engine.judge import reasons
from interlock.engine.judge.own_words import is_copy, repeats_itself, text_in_two_fields
from interlock.engine.judge.schema_words import in_words
from interlock.engine.judge.shape import artifact_outline, field_blank
from interlock.engine.judge.violations import Violation
from interlock.engine.request import IN_STRUCTURE, IN_TEXT, Request, notes_words, report_instruction, sample_left
from interlock.engine.template import ValueRoom, rendered, rendered_line
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import (
    ARTIFACT_FAULTS_MAX,
)
from interlock.kernel.budgets.workflow import (
    TRACE_SUMMARY_BYTES_MAX,
)
from interlock.kernel.canonical import Json, JsonScalar, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line, render_path, says_something
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import ASSESSMENT_CONTRACT, CAPABILITY_CONTRACT, LOOP_CONTROL_CONTRACT, PlanNode, Task
from interlock.record.context import Context
from interlock.record.outcome import Capability
from interlock.record.payloads import StepRef, TraceEntry

if TYPE_CHECKING:
    from jsonschema import ValidationError

_ASSESSMENT_KIND = "wr.assessment"
_ALL_FIT: Mapping[str, TypeMismatch] = MappingProxyType({})


@frozen
class Judgement:
    """The violations of the evidence, notes on how it was read, and its valid values.

    `values` is what `set` may read: the `artifact` of the contract, and `assessments` by id. Levels are spelled as in
    the assessment.
    """

    findings: tuple[Violation, ...]
    trace: tuple[TraceEntry, ...] = ()
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])


def judge(
    workflow: CompiledWorkflow,
    node: PlanNode,
    request: Request,
    context: Context,
    mismatches: Mapping[str, TypeMismatch] = _ALL_FIT,
) -> Judgement:
    """Check the evidence of a step. `context` is that of its node with the sent values that fit on top.

    `mismatches` are the sent values that do not fit, by key.
    """
    task = node.task
    assert task is not None, "only a task has evidence"
    findings: list[Violation] = []
    readings: list[TraceEntry] = []
    values: dict[str, Json] = {}
    artifact = _contracted(workflow, node, request, findings)
    if artifact is not None:
        values["artifact"] = dict(artifact)
    rated: dict[str, Json] = {}
    for ref in task.evidence.assessments:
        rating = _Rating(workflow=workflow, node=node, task=task, assessment=workflow.ratings[ref])
        levels = rating.judge(request, findings, readings)
        if levels is not None:
            rated[ref] = levels
    if rated:
        values["assessments"] = rated
    title = rendered_line(node.title, context)
    findings += _notes(title, task, request, context)
    findings += [reasons.unfit_value(title, key, mismatch) for key, mismatch in mismatches.items()]
    findings += [
        reasons.missing_key(title, key)
        for key in task.produces
        if key not in mismatches and value_at(context, key) is ABSENT
    ]
    return Judgement(findings=tuple(findings), trace=tuple(readings), values=values)


def refuses_artifact(workflow: CompiledWorkflow, node: PlanNode, artifacts: tuple[Mapping[str, Json], ...]) -> bool:
    """Say whether these artifacts have one of the step's contract that is not accepted, or lack a required one."""
    findings: list[Violation] = []
    _contracted(workflow, node, Request(artifacts=artifacts), findings)
    return bool(findings)


def artifact_outlines(
    workflow: CompiledWorkflow, node: PlanNode, *, is_sent: bool = False
) -> tuple[dict[str, Outline], ...]:
    """Return the smallest artifacts that a step asks for, with a blank for each value that the caller supplies.

    An artifact that may be left out is only among them if one was sent (`is_sent`).
    """
    task = node.task
    assert task is not None, "only a task wants evidence"
    wanted: list[dict[str, Outline]] = []
    ref = node.evidence_schema_ref or ""
    schema = workflow.packs[ref].artifact_schema if ref in workflow.packs else None
    if schema is not None and (task.evidence.artifact_required or is_sent) and not is_rated(node):
        wanted.append(artifact_outline(schema) | _particulars(workflow, node))
    ratings = workflow.packs[ASSESSMENT_CONTRACT].artifact_schema if task.evidence.assessments else None
    wanted += [_rating_outline(workflow.ratings[name], ratings or {}) for name in task.evidence.assessments]
    return tuple(wanted)


def is_rated(node: PlanNode) -> bool:
    """Say whether the ratings of a step take the place of the artifact of its contract."""
    assert node.task is not None, "only a task has evidence"
    return node.evidence_schema_ref == ASSESSMENT_CONTRACT and bool(node.task.evidence.assessments)


def _particulars(workflow: CompiledWorkflow, node: PlanNode) -> dict[str, Outline]:
    """Return the fields of an artifact that depend on the position of its step."""
    ref = node.evidence_schema_ref
    if ref == CAPABILITY_CONTRACT and node.capabilities:
        return {"capability": node.capabilities[0]}
    if ref != LOOP_CONTROL_CONTRACT:
        return {}
    loop = _controlled_loop(workflow, node)
    return {"loopId": loop} if loop is not None else {}


def _controlled_loop(workflow: CompiledWorkflow, node: PlanNode) -> str | None:
    """Return the loop that a step's loop-control artifact must name if it names one."""
    scope = workflow.graphs.scope_of[node.node_id]
    loop = workflow.graphs.loops[scope] if scope is not None else None
    if loop is None or loop.condition_id is None:
        return None
    return next((term.loop_id for term in iter_loop_controls(workflow.graphs.conditions[loop.condition_id])), None)


def _rating_outline(assessment: Assessment, schema: Mapping[str, Json]) -> dict[str, Outline]:
    dimensions = {
        dimension.id: Blank(what=dimension.purpose, choices=dimension.levels)
        for dimension in assessment.dimensions
        if dimension.required
    }
    return {
        "kind": _ASSESSMENT_KIND,
        "assessmentId": assessment.id,
        "dimensions": dimensions,
        "summary": field_blank("summary", schema),
    }


def _contracted(
    workflow: CompiledWorkflow, node: PlanNode, request: Request, findings: list[Violation]
) -> Mapping[str, Json] | None:
    """Return the valid artifact of the step's contract; if there is none, add the reason to `findings`."""
    assert node.task is not None, "as judged by the caller"
    ref = node.evidence_schema_ref or ""
    pack = workflow.packs[ref]
    if pack.artifact_kind is None or pack.artifact_schema is None or is_rated(node):
        return None
    found = [artifact for artifact in request.artifacts if artifact.get("kind") == pack.artifact_kind]
    outlines = artifact_outlines(workflow, node, is_sent=bool(found))
    if not found:
        if node.task.evidence.artifact_required:
            kinds = tuple(str(artifact.get("kind")) for artifact in request.evidence)
            findings.append(reasons.missing_artifact(ref, pack.artifact_kind, kinds, outlines))
        return None
    fault = _ambiguity(found) or artifact_fault(found[0], pack.artifact_schema, outlines[0])
    if fault is not None:
        findings.append(reasons.invalid_artifact(ref, pack.artifact_kind, fault, outlines))
        return None
    lacks = list(_particular_faults(workflow, node, found[0], outlines))
    findings += lacks
    return None if lacks else found[0]


def _ambiguity(found: Sequence[Mapping[str, Json]]) -> str | None:
    """Say so if a report has different artifacts where the step asks for one: none of them may be picked (EVID-12)."""
    if len(found) == 1:
        return None
    different = len({digest_of(dict(artifact)) for artifact in found})
    return f"found {different} different artifacts; the step asks for one" if different > 1 else None


def _particular_faults(
    workflow: CompiledWorkflow, node: PlanNode, artifact: Mapping[str, Json], outlines: tuple[dict[str, Outline], ...]
) -> Iterator[Violation]:
    ref = node.evidence_schema_ref or ""
    if ref == LOOP_CONTROL_CONTRACT:
        loop, named = _controlled_loop(workflow, node), artifact.get("loopId")
        if loop is not None and named is not None and named != loop:
            fault = f"`loopId`: found {named!r}, this loop is {loop!r}"
            yield reasons.invalid_artifact(ref, "wr.loop_control", fault, outlines)
    if ref == CAPABILITY_CONTRACT and node.capabilities:
        capability, named = node.capabilities[0], artifact.get("capability")
        if named != capability:
            fault = f"`capability`: found {named!r}, this step is about {capability!r}"
            yield reasons.invalid_artifact(ref, "wr.capability_observation", fault, outlines)
        elif artifact.get("status") != "available" and _is_required(workflow, capability):
            yield reasons.capability_missing(capability, str(artifact.get("status")))


def _is_required(workflow: CompiledWorkflow, capability: Capability) -> bool:
    """Say whether a workflow cannot do without a capability; without another one it may take a fallback (EVID-8)."""
    return any(one.capability == capability and one.need == "required" for one in workflow.capabilities)


def artifact_fault(
    artifact: Mapping[str, Json], schema: Mapping[str, Json], outline: Mapping[str, Outline]
) -> str | None:
    """Return how an artifact breaks its contract: sample text that is still in it, or a fault of its schema."""
    left = sample_left(dict(artifact), outline)
    if left is not None:
        return f"`{left}`: this is the sample text of the answer; replace it by what you wrote"
    same = text_in_two_fields(artifact)
    if same is not None:
        return f"`{same[1]}`: the same text as `{same[0]}`; each field says something of its own"
    empty = [render_path(path) for path in _empty_texts(dict(artifact))]
    if empty:
        return f"{', '.join(f'`{path}`' for path in empty)}: only blanks or marks; write what it is about"
    return schema_fault(artifact, schema)


def _empty_texts(value: Json, path: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Yield the paths of texts without a letter or a digit. Of an empty text, the schema says whether it may be."""
    if isinstance(value, str):
        if value and not says_something(value):
            yield path
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _empty_texts(member, (*path, key))
    elif isinstance(value, list):
        for at, member in enumerate(value):
            yield from _empty_texts(member, (*path, at))


def schema_errors(artifact: Mapping[str, Json], schema: Mapping[str, Json]) -> "list[ValidationError]":
    """Return how an artifact breaks its pinned schema, ordered by place."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 — most steps have no artifacts; a start does not pay

    errors = Draft202012Validator(dict(schema)).iter_errors(dict(artifact))
    return sorted(errors, key=lambda error: list(map(str, error.absolute_path)))


def schema_fault(artifact: Mapping[str, Json], schema: Mapping[str, Json]) -> str | None:
    """Return where and how an artifact breaks its pinned schema; None if it is valid."""
    errors = schema_errors(artifact, schema)
    # Its choices say of which kind a value is.
    closed = {error.json_path for error in errors if error.validator == "enum"}
    described = (
        f"`{render_path(error.absolute_path) or 'the artifact'}`: {in_words(error, schema)}"
        for error in errors
        if error.validator != "type" or error.json_path not in closed
    )
    # The library reports each missing field on its own; one fault names them all.
    faults = list(dict.fromkeys(described))
    more = f"; and {len(faults) - ARTIFACT_FAULTS_MAX} more" if len(faults) > ARTIFACT_FAULTS_MAX else ""
    return "; ".join(faults[:ARTIFACT_FAULTS_MAX]) + more if faults else None


def _notes(title: str, task: Task, request: Request, context: Context) -> Iterator[Violation]:
    wanted = task.evidence
    if wanted.notes == "required" and not request.has_notes():
        yield reasons.missing_notes(title)
    elif request.has_notes() and (copied := _copied(request.notes or "", title, task, context)) is not None:
        yield reasons.copied_notes(copied)
    elif wanted.criteria is not None and (request.has_notes() or wanted.notes == "required"):
        lacks = find_unmet(wanted.criteria, request.notes or "", context)
        if lacks:
            yield reasons.unmet_criteria(lacks)


def _copied(notes: str, title: str, task: Task, context: Context) -> str | None:
    """Return what notes only repeat, if they say nothing else (EVID-11)."""
    if repeats_itself(notes):
        return "say the same few words over and over"
    shown = [task.prompt, *task.requirements, *(one.text for one in task.fragments)]
    room = ValueRoom()
    if is_copy(notes, "\n".join(rendered(one, context, room) for one in shown)):
        return "only repeat the prompt of the step"
    asked = f"{report_instruction(*IN_STRUCTURE)} these arguments, and add output.notesMarkdown, written by you."
    ours = (
        f"{asked}\n{report_instruction(*IN_TEXT)}: {notes_words(title)}\n{reasons.NOTES_FIX}\n{reasons.OWN_WORDS_FIX}"
    )
    return "only repeat what an answer says about notes" if is_copy(notes, ours) else None


@frozen
class _Rating:
    """One assessment that a step asks for."""

    workflow: CompiledWorkflow
    node: PlanNode
    task: Task
    assessment: Assessment

    def judge(self, request: Request, findings: list[Violation], readings: list[TraceEntry]) -> dict[str, Json] | None:
        """Return the level of each rated dimension; add what is missing or still to do to `findings`."""
        schema = self.workflow.packs[ASSESSMENT_CONTRACT].artifact_schema or {}
        outlines = (_rating_outline(self.assessment, schema),)
        named: dict[str, JsonScalar] = {"assessmentId": self.assessment.id}
        found = self._found(request)
        if not found:
            kinds = tuple(_kind_words(artifact) for artifact in request.evidence)
            findings.append(reasons.missing_artifact(ASSESSMENT_CONTRACT, _ASSESSMENT_KIND, kinds, outlines, named))
            return None
        artifact = found[0]
        faults = [*self._dimension_faults(artifact), artifact_fault(artifact, schema, outlines[0])]
        fault = _ambiguity(found) or "; ".join(filter(None, faults)) or None
        if fault is not None:
            findings.append(reasons.invalid_artifact(ASSESSMENT_CONTRACT, _ASSESSMENT_KIND, fault, outlines, named))
            return None
        levels = self._levels(artifact, readings)
        for consequence in self.task.evidence.consequences:
            concerns = consequence.assessment_id in (None, self.assessment.id)
            if concerns and _folded(consequence.level) in map(_folded, levels.values()):
                findings.append(reasons.follow_up(self.assessment.id, consequence.level, consequence.guidance))
        return dict(levels)

    def _found(self, request: Request) -> Sequence[Mapping[str, Json]]:
        """Return the artifacts of this assessment. If the step asks for one assessment only, the id may be missing."""
        rated = [artifact for artifact in request.artifacts if artifact.get("kind") == _ASSESSMENT_KIND]
        named = [artifact for artifact in rated if artifact.get("assessmentId") == self.assessment.id]
        if not named and len(self.task.evidence.assessments) == 1:
            named = [artifact for artifact in rated if artifact.get("assessmentId") is None]
        return named

    def _dimension_faults(self, artifact: Mapping[str, Json]) -> Iterator[str]:
        sent = artifact.get("dimensions")
        if not isinstance(sent, dict):
            return
        known = {dimension.id: dimension for dimension in self.assessment.dimensions}
        for name, rated in sent.items():
            if name not in known:
                yield f"`dimensions.{name}`: there is no such dimension; use {', '.join(known)}"
                continue
            level = _level(rated)
            if _folded(level) not in map(_folded, known[name].levels):
                yield f"`dimensions.{name}`: found {level!r}; use one of {' | '.join(known[name].levels)}"
        for name, dimension in known.items():
            if dimension.required and name not in sent:
                yield f"`dimensions.{name}`: missing"

    def _levels(self, artifact: Mapping[str, Json], readings: list[TraceEntry]) -> dict[str, str]:
        """Return the sent levels; add a trace entry for each that was spelled differently."""
        sent = cast("Mapping[str, Json]", artifact["dimensions"])
        levels: dict[str, str] = {}
        for dimension in {one.id: one for one in self.assessment.dimensions}.values():
            if dimension.id not in sent:
                continue
            level = _level(sent[dimension.id])
            known = next(one for one in dimension.levels if _folded(one) == _folded(level))
            levels[dimension.id] = known
            if level != known:
                words = f"The level {level!r} of {dimension.id!r} was read as {known!r}."
                ref = StepRef(step_id=self.node.node_id)
                readings.append(
                    TraceEntry(
                        kind="evaluated_condition", summary=one_line(words, TRACE_SUMMARY_BYTES_MAX), refs=(ref,)
                    )
                )
        return levels


def _kind_words(artifact: Mapping[str, Json]) -> str:
    """Return the kind of an artifact, with the assessment that it names: a wrong name may be the only fault."""
    named = artifact.get("assessmentId")
    return str(artifact.get("kind")) + (f" of the assessment {named}" if named is not None else "")


def _level(rated: Json) -> str:
    return str(rated.get("level")) if isinstance(rated, dict) else str(rated)


def _folded(level: str) -> str:
    return level.strip().lower()
