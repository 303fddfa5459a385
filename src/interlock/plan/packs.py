"""The contract packs that a workflow is pinned with."""

from interlock.plan.builtins.packs import PACKS
from interlock.plan.compiled import ContractPack
from interlock.plan.records import ASSESSMENT_CONTRACT, Plan


def packs_of(plan: Plan) -> tuple[ContractPack, ...]:
    """Return the packs that a plan refers to, in the order of their references, whole (EVID-1).

    A reference without a pack is left out; validation of the plan reports it.
    """
    refs = {ref for node in plan.nodes for ref in (node.input_schema_ref, node.evidence_schema_ref) if ref is not None}
    refs |= {ASSESSMENT_CONTRACT for node in plan.nodes if node.task and node.task.evidence.assessments}
    return tuple(
        ContractPack(
            contract_ref=pack.contract_ref,
            version=pack.version,
            artifact_kind=pack.kind,
            artifact_schema=None if pack.schema is None else dict(pack.schema),
        )
        for pack in (PACKS[ref] for ref in sorted(refs) if ref in PACKS)
    )
