"""Reads what an agent reports besides evidence: capabilities and deviations from the workflow (EVID-3, EVID-4).

Only a probe that the plan asks for, or a use that a step is about, counts as known; an agent's word alone is a claim.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar, cast

from interlock.define.diagnostics import suggest_name
from interlock.engine.judge import reasons
from interlock.engine.judge.evidence import artifact_fault
from interlock.engine.judge.shape import artifact_outline
from interlock.engine.judge.violations import Violation
from interlock.engine.request import Request
from interlock.kernel.blanks import Outline
from interlock.kernel.budgets import DIVERGENCE_SUMMARY_BYTES_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import AttemptId, CapObsId, DivergenceId, derived_id
from interlock.kernel.shape import ShapeError
from interlock.kernel.text import truncated
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import CAPABILITY_CONTRACT, DIVERGENCE_CONTRACT, PlanNode
from interlock.record.base import Record
from interlock.record.payloads import CapabilityObserved, DivergenceReason, DivergenceRecorded

_CAPABILITY_KIND = "wr.capability_observation"
_DIVERGENCE_KIND = "wr.workflow_divergence"
_DIVERGENCE: Mapping[str, Outline] = artifact_outline(PACK_SCHEMAS[DIVERGENCE_CONTRACT])


@frozen
class Observed:
    """The records to append, and the violations of reports that are invalid."""

    records: tuple[CapabilityObserved | DivergenceRecorded, ...]
    findings: tuple[Violation, ...]


def observed_in(
    workflow: CompiledWorkflow, node: PlanNode, artifacts: tuple[Mapping[str, Json], ...], attempt: AttemptId
) -> Observed:
    """Return the observations in the artifacts of an attempt on the step at `node`."""
    records: list[CapabilityObserved | DivergenceRecorded] = []
    findings: list[Violation] = []
    for artifact in artifacts:
        kind = artifact.get("kind")
        if kind == _CAPABILITY_KIND:
            records += _capability(node, artifact, attempt)
        elif kind == _DIVERGENCE_KIND:
            found = _divergence(workflow, node, artifact, attempt)
            if isinstance(found, Violation):
                findings.append(found)
            else:
                records.append(found)
    return Observed(records=_in_stored_order(records), findings=tuple(findings))


def failed_probes(
    node: PlanNode, artifacts: tuple[Mapping[str, Json], ...], attempt: AttemptId
) -> tuple[CapabilityObserved, ...]:
    """Return the probes of a refused attempt whose capability did not work (EVID-9)."""
    found = [
        one
        for artifact in artifacts
        if artifact.get("kind") == _CAPABILITY_KIND
        for one in _capability(node, artifact, attempt)
        if one.provenance.enforcement_grade == "strong" and one.status != "available"
    ]
    return _in_stored_order(found)


_Recorded = TypeVar("_Recorded", bound=Record)


def _in_stored_order(records: Iterable[_Recorded]) -> tuple[_Recorded, ...]:
    """Return each record once, in the order of their bytes."""
    kept = {record.to_bytes(): record for record in records}
    return tuple(kept[key] for key in sorted(kept))


def _capability(node: PlanNode, artifact: Mapping[str, Json], attempt: AttemptId) -> list[CapabilityObserved]:
    """Return the observation of one artifact; none if the artifact breaks its contract."""
    status, capability = artifact.get("status"), artifact.get("capability")
    is_asked = node.evidence_schema_ref == CAPABILITY_CONTRACT and capability in (node.capabilities or (capability,))
    result = "success" if status == "available" else "failure"
    failure: dict[str, Json] = {} if result == "success" else {"failureCode": "unknown"}
    if is_asked and node.provenance.source == "feature_injected" and node.provenance.origin_id is not None:
        detail: dict[str, Json] = {"probeTemplateId": node.provenance.origin_id, "probeStepId": node.node_id}
        provenance: dict[str, Json] = _strong("probe_step", detail | {"result": result})
    elif is_asked:
        detail = {"attemptContext": "workflow_step", "result": result}
        provenance = _strong("attempted_use", detail | failure)
    elif status != "unknown":
        claim: dict[str, Json] = {"claimedBy": "agent", "claim": status}
        provenance = {"kind": "manual_claim", "enforcementGrade": "weak", "detail": claim}
    else:
        return []
    try:
        record = CapabilityObserved.of_json(
            {
                "capObsId": CapObsId(derived_id("capobs", attempt, digest_of(dict(artifact)))),
                "capability": capability,
                "status": status,
                "provenance": provenance,
            }
        )
    except ShapeError:
        return []
    return [record]


def _strong(kind: str, detail: dict[str, Json]) -> dict[str, Json]:
    return {"kind": kind, "enforcementGrade": "strong", "detail": detail}


def _divergence(
    workflow: CompiledWorkflow, node: PlanNode, artifact: Mapping[str, Json], attempt: AttemptId
) -> DivergenceRecorded | Violation:
    """Return the divergence of one artifact, held to its contract. Without a step, it is about the pending one."""
    given = {key: value for key, value in artifact.items() if value is not None}
    fault = artifact_fault(given, PACK_SCHEMAS[DIVERGENCE_CONTRACT], _DIVERGENCE)
    if fault is not None:
        return _refused(fault)
    place = "relatedStepId" if "relatedStepId" in given else "stepId"
    step = str(given.get(place, node.node_id))
    if step not in workflow.steps:
        guess = suggest_name(step, workflow.steps)
        return _refused(f"`{place}`: there is no step {step!r}" + (f"; did you mean {guess!r}?" if guess else ""))
    return DivergenceRecorded(
        divergence_id=DivergenceId(derived_id("div", attempt, digest_of(dict(artifact)))),
        reason=cast("DivergenceReason", given["reason"]),
        summary=truncated(cast("str", given["summary"]), DIVERGENCE_SUMMARY_BYTES_MAX),
        related_step_id=step,
    )


def without_faulty_divergence(
    workflow: CompiledWorkflow, node: PlanNode, earlier: Request, attempt: AttemptId
) -> Request:
    """Return a refused request without deviations that do not meet their contract: no step needs one (EVID-4)."""
    sent = [one for one in earlier.artifacts if one.get("kind") == _DIVERGENCE_KIND]
    is_faulty = any(isinstance(_divergence(workflow, node, one, attempt), Violation) for one in sent)
    return earlier.without(_DIVERGENCE_KIND) if is_faulty else earlier


def _refused(fault: str) -> Violation:
    return reasons.invalid_divergence(DIVERGENCE_CONTRACT, _DIVERGENCE_KIND, fault, _DIVERGENCE)
