"""The contract packs that a workflow is pinned with."""

from collections.abc import Mapping, Sequence

from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.plan.builtins.packs import PACKS
from interlock.plan.compiled import ContractPack
from interlock.plan.records import ASSESSMENT_CONTRACT, OUTPUTS_CONTRACT, Plan


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


def outputs_contract(block: Uuid, version: int) -> str:
    """Return the reference of the contract pack that is generated from a block."""
    return f"{OUTPUTS_CONTRACT}.{block}.{version}"


def outputs_pack(contract_ref: str, ports: Mapping[str, Json], required: Sequence[Json]) -> ContractPack:
    """Return the contract pack of a block's outputs: the general one, with the block's output ports (OPS-18)."""
    outputs: dict[str, Json] = {
        "description": "each output port with its value",
        "type": "object",
        "properties": dict(ports),
        "required": [*required],
    }
    kind: Json = {"const": "wr.block_outputs"}
    return ContractPack(
        contract_ref=contract_ref,
        version=1,
        artifact_kind="wr.block_outputs",
        artifact_schema={**PACK_SCHEMAS[OUTPUTS_CONTRACT], "properties": {"kind": kind, "outputs": outputs}},
    )


def is_outputs_pack(pack: ContractPack) -> bool:
    """Say whether a pack is what Interlock generates from some block: its ports are all that a file can choose."""
    match pack.artifact_schema:
        case {"properties": {"outputs": {"properties": dict() as ports, "required": list() as required}}}:
            is_of_ports = all(isinstance(name, str) and name in ports for name in required)
            return (
                is_of_ports
                and all(map(_is_port, ports.values()))
                and pack == outputs_pack(pack.contract_ref, ports, required)
            )
        case _:
            return False


def _is_port(value: Json) -> bool:
    return isinstance(value, dict) and value.keys() == {"description"} and isinstance(value["description"], str)
