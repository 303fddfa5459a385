"""The steps of a flow's plan: one for each slot, and one for each condition that an agent decides (OPS-16, OPS-20)."""

from collections.abc import Iterator

from interlock.decide.condition import AnyOf, Compare, Not
from interlock.define.operations.blocks import PortDescriptor, WorkBlock
from interlock.define.operations.flows import Condition, NodeReference
from interlock.define.parts import SetAction
from interlock.kernel.canonical import Json
from interlock.kernel.text import json_in_code
from interlock.kernel.uuids import Uuid
from interlock.plan.builtins.packs import PACKS
from interlock.plan.compiled import ContractPack, output_key
from interlock.plan.flows.wiring import Wiring
from interlock.plan.packs import outputs_contract, outputs_pack
from interlock.plan.records import (
    AUTHORED,
    NOTES_CONTRACT,
    OUTPUTS_CONTRACT,
    STEP_INPUT,
    Evidence,
    Fragment,
    PlanNode,
    Task,
)

DECISION_CONTRACT = "wr.contracts.decision"


def generate_pack(block: WorkBlock) -> ContractPack:
    """Generate the contract pack of a block, with the block's output ports.

    A required port must be there. The schema of a port is shown to the agent, and never enforced.
    """
    ports: dict[str, Json] = {port.name: {"description": port.description or port.name} for port in block.outputs}
    required: list[Json] = [port.name for port in block.outputs if port.required]
    return outputs_pack(outputs_contract(block.id, block.version), ports, required)


def build_slot(wiring: Wiring, slot: NodeReference) -> PlanNode:
    """Build the step of a slot: the block's text, its inputs with their values, its outputs as evidence."""
    block, node_id = wiring.blocks[slot.id], wiring.node_ids[slot.id]
    title = block.name if slot.alias in (None, block.name) else f"{block.name} ({slot.alias})"
    has_outputs = bool(block.outputs)
    task = Task(
        prompt="\n\n".join(_describe_block(block)),
        fragments=tuple(_describe_inputs(wiring, slot.id)),
        evidence=Evidence(artifact_required=has_outputs, notes="optional" if has_outputs else "required"),
        requirements=PACKS[OUTPUTS_CONTRACT].lines if has_outputs else (),
        sets=(SetAction(key=output_key(node_id), source="artifact.outputs"),) if has_outputs else (),
    )
    return PlanNode(
        node_id=node_id,
        kind="task",
        owner="agent",
        title=title,
        input_schema_ref=STEP_INPUT,
        evidence_schema_ref=outputs_contract(block.id, block.version) if has_outputs else NOTES_CONTRACT,
        provenance=AUTHORED,
        task=task,
        hints=block.execution_hints,
    )


def build_question(node_id: str, condition: Condition, source: str | None, key: str) -> PlanNode:
    """Build the step in which an agent decides a condition by its description, and which sets `key` to the result."""
    fragments: tuple[Fragment, ...] = ()
    if source is not None:
        outputs = output_key(source)
        is_set = Compare(op="exists", var=outputs, value=True)
        text = f"The outputs of `{source}`: {{{{{outputs}}}}}"
        fragments = (Fragment(fragment_id="outputs", condition=is_set, text=text),)
    task = Task(
        prompt=f"Decide whether this is true, and do nothing else: {condition.description}",
        requirements=PACKS[DECISION_CONTRACT].lines,
        evidence=Evidence(artifact_required=True, notes="optional"),
        sets=(SetAction(key=key, source="artifact.result"),),
        fragments=fragments,
    )
    return PlanNode(
        node_id=node_id,
        kind="task",
        owner="agent",
        title=f"Decide: {condition.description}",
        input_schema_ref=STEP_INPUT,
        evidence_schema_ref=DECISION_CONTRACT,
        provenance=AUTHORED,
        task=task,
    )


def _describe_block(block: WorkBlock) -> Iterator[str]:
    yield block.description or block.name
    if block.outputs:
        lines = "\n".join(_describe_port(port) for port in block.outputs)
        yield f"**Outputs**, by port\n{lines}"
    if block.execution_hints:
        yield f"**Capabilities that this needs**: {', '.join(f'`{hint}`' for hint in block.execution_hints)}"


def _describe_port(port: PortDescriptor) -> str:
    optional = "" if port.required else " (optional)"
    described = f": {port.description}" if port.description else ""
    shape = f" Its shape:\n{json_in_code(port.schema)}" if port.schema is not None else ""
    return f"- `{port.name}`{optional}{described}{shape}"


def _describe_inputs(wiring: Wiring, slot_id: Uuid) -> Iterator[Fragment]:
    """Yield a fragment for each input and source: the value, if it is set, or else that it is missing."""
    for port in wiring.blocks[slot_id].inputs:
        sources = wiring.sources_of(slot_id, port.name)
        known = tuple(Compare(op="exists", var=one.path, value=True) for one in sources)
        described = f"Input {_describe_port(port).removeprefix('- ')}"
        for number, (source, is_set) in enumerate(zip(sources, known, strict=True), start=1):
            origin = "" if source.slot is None else f" from `{source.slot}`"
            text = f"{described}{origin}: {{{{{source.path}}}}}"
            yield Fragment(fragment_id=f"{port.name}.{number}", condition=is_set, text=text)
        if port.required:
            text = f"{described}. It was not supplied: find it out, or say so."
            missing = Not(op="not", of=AnyOf(op="or", of=known)) if known else None
            yield Fragment(fragment_id=f"{port.name}.0", text=text, condition=missing)
