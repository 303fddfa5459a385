"""What an artifact keeps of one that was refused: in the call that an answer shows, and when a part of it is sent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from interlock.engine.judge.evidence import artifact_fault, artifact_outlines, is_rated, refuses_artifact, schema_errors
from interlock.engine.judge.own_words import text_in_two_fields
from interlock.engine.judge.schema_words import is_lack, missing_names, reasons_of
from interlock.engine.judge.shape import properties_of
from interlock.engine.request import sample_left
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import BLOCKERS_MAX, EVIDENCE_ECHO_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import replace
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import ASSESSMENT_CONTRACT, PlanNode
from interlock.record.outcome import Blocker, CapabilityPointer, ContextKeyPointer, OutputContractPointer

if TYPE_CHECKING:
    from jsonschema import ValidationError


def completed_artifact(
    workflow: CompiledWorkflow, node: PlanNode, artifact: Mapping[str, Json], refused: Mapping[str, Json]
) -> Mapping[str, Json]:
    """Return an artifact with the fields that its contract requires and it lacks, as the refused one had them (EVID-2).

    An optional field is never taken over: it may have been left out on purpose.
    """
    packs = [workflow.packs[ref] for ref in (node.evidence_schema_ref, ASSESSMENT_CONTRACT) if ref in workflow.packs]
    schema = next((pack.artifact_schema for pack in packs if pack.artifact_kind == artifact.get("kind")), None)
    if schema is None or refused.keys() <= artifact.keys():
        return artifact
    while taken := {name: refused[name] for name in _lacking(artifact, schema) if name in refused}:
        artifact = {**artifact, **taken}
    return artifact


def _lacking(artifact: Mapping[str, Json], schema: Mapping[str, Json]) -> Iterator[str]:
    """Yield the fields that are missing; what is required may depend on the others."""
    for error in schema_errors(artifact, schema):
        if error.validator == "required" and not error.absolute_path:
            yield from missing_names(error)


def amended_outlines(
    workflow: CompiledWorkflow, node: PlanNode, sent: tuple[Mapping[str, Json], ...], blockers: Sequence[Blocker]
) -> tuple[Mapping[str, Outline], ...]:
    """Return the artifacts that a step asks for after a refusal; of its contract's, what may stay unchanged.

    One that may be left out is asked for if it was sent and not accepted: it is kept until another is sent. The whole
    artifact may stay, and is not asked for, if it keeps to its contract and no blocker is about it.
    """
    outlines = artifact_outlines(workflow, node, is_sent=refuses_artifact(workflow, node, sent))
    pack = workflow.packs.get(node.evidence_schema_ref or "")
    if not outlines or pack is None or pack.artifact_schema is None or is_rated(node):
        return outlines
    found = next((one for one in sent if one.get("kind") == pack.artifact_kind), None)
    if found is None or len(canonical_bytes(dict(found))) > EVIDENCE_ECHO_BYTES_MAX:
        return outlines
    changed = amended(found, pack.artifact_schema, outlines[0])
    if changed is outlines[0] and not _is_about_artifact(blockers, node.evidence_schema_ref):
        return outlines[1:]
    return changed, *outlines[1:]


def _is_about_artifact(blockers: Sequence[Blocker], ref: str | None) -> bool:
    """Say whether a blocker may be about a step's artifact; of more blockers than there is room for, one may be."""
    for pointer in (one.pointer for one in blockers):
        match pointer:
            case OutputContractPointer(contract_ref=named) if named == ref:
                return True
            case ContextKeyPointer(key=key) if key.split(".")[0] == "artifact":
                return True
            case CapabilityPointer():
                return True
            case _:
                continue
    return len(blockers) >= BLOCKERS_MAX


def amended(
    artifact: Mapping[str, Json], schema: Mapping[str, Json], outline: Mapping[str, Outline]
) -> Mapping[str, Outline]:
    """Return the outline of a refused artifact: what may stay is fixed, and what has to change is a blank.

    If its fields contradict each other, and another choice in one of them ends this, only that field is a blank, if
    possible the one that the others contradict: the verdict follows the findings. If one of them lacks something
    instead, it and the field that asks for it are blanks.
    An artifact that its contract accepts was refused for another reason, and is asked for as a whole.
    """
    errors, kept = schema_errors(artifact, schema), _kept(artifact, schema, outline)
    if errors and all(reasons_of(error, schema) and not is_lack(error) for error in errors):
        contradicted = {name for error in errors for name in reasons_of(error, schema)}
        for name, blank in sorted(outline.items(), key=lambda shown: shown[0] not in contradicted):
            if not isinstance(blank, Blank):
                continue
            fine = [one for one in blank.choices if artifact_fault({**artifact, name: one}, schema, outline) is None]
            if fine:
                return kept | {name: replace(blank, choices=tuple(fine))}
    at_fault = _at_fault(artifact, errors, schema, outline)
    if not errors and not at_fault:
        return outline
    sound = {name: value for name, value in kept.items() if name not in at_fault}
    return {name: sound.get(name, shown) for name, shown in outline.items()} | sound


def _kept(
    artifact: Mapping[str, Json], schema: Mapping[str, Json], outline: Mapping[str, Outline]
) -> dict[str, Outline]:
    """Return an outline with the values that were sent in place of its blanks, and with optional fields."""
    known = properties_of(schema)
    kept: dict[str, Outline] = {
        name: artifact[name] if isinstance(shown, Blank) and name in artifact else shown
        for name, shown in outline.items()
    }
    return kept | {name: value for name, value in artifact.items() if name in known and name not in outline}


def _at_fault(
    artifact: Mapping[str, Json],
    errors: "Iterable[ValidationError]",
    schema: Mapping[str, Json],
    outline: Mapping[str, Outline],
) -> frozenset[str]:
    """Return the fields that cannot stay as they were sent; `errors` are those of the schema."""
    names = set[str]()
    for error in errors:
        names |= {str(error.absolute_path[0])} if error.absolute_path else set[str]()
        names |= reasons_of(error, schema).keys()
    left = sample_left(dict(artifact), outline)
    names |= {left.partition(".")[0]} if left is not None else set[str]()
    same = text_in_two_fields(artifact)
    if same is not None:
        # The fields of an entry of a list are named alone; any of the lists may hold it.
        is_own = same[1] in artifact
        names |= {same[1]} if is_own else {name for name in artifact if isinstance(artifact[name], list | dict)}
    return frozenset(names)
