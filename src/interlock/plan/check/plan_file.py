"""Reads a file that holds a plan: a compiled workflow that was exported, or made elsewhere (IR-14).

A plan file is checked completely when it is read. It needs no compiler, so what a compiler ensures is checked here.
"""

from collections.abc import Iterable, Iterator, Mapping

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors, limited
from interlock.define.faults import diagnose_faults
from interlock.define.patterns import PatternChecker
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import replace
from interlock.kernel.shape import ShapeError
from interlock.kernel.shape.mirror import mirror_of
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.plan_parts import check_parts
from interlock.plan.check.validate import missing_contracts, validate_plan
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.packs import is_outputs_pack, outputs_contract, packs_of
from interlock.plan.records import Plan

HASH_KEY = "workflowHash"
"""The member of an exported plan with the digest of all other members."""

_EXPORT_AGAIN = "Export the plan of the flow again, and copy the contract from there."


def holds_plan(value: Mapping[str, Json]) -> bool:
    """Say whether a document holds a plan and not steps."""
    return "steps" not in value and ("plan" in value or "schemaVersion" in value)


def plan_document(workflow: CompiledWorkflow) -> dict[str, Json]:
    """Return a compiled workflow as a plan file holds it: everything that a run pins, and the hash of that."""
    return {**workflow.to_json(), HASH_KEY: pinned_bytes(workflow)[0]}


def plan_file_schema() -> dict[str, Json]:
    """Return the JSON Schema of plan files: that of a compiled workflow, and the hash."""
    schema = mirror_of(CompiledWorkflow).model_json_schema(by_alias=True)
    about: Json = {"description": "The digest of all other members. It may be left out.", "type": "string"}
    return {**schema, "title": "PlanFile", "properties": {**schema["properties"], HASH_KEY: about}}


def parse_plan_file(value: Mapping[str, Json], patterns: PatternChecker) -> CompiledWorkflow | Diagnostics:
    """Return the workflow of a plan file, or every fault.

    The hash may be left out, and so may members that are empty, and the contracts: they are those of Interlock. Only
    those that are generated from the blocks of a flow are in the file, because the blocks are not.
    """
    newer = tuple(_newer(value))
    if newer:
        return newer
    members = dict(value)
    stated = members.pop(HASH_KEY, None)
    try:
        workflow = CompiledWorkflow.of_json(members)
    except ShapeError as error:
        faults = diagnose_faults(error.faults, members, CompiledWorkflow)
        return tuple(limited((*faults, *_unnamed_contracts(members))))
    if "contracts" not in value:
        workflow = workflow.changed(contracts=packs_of(workflow.plan))
    generated = _generated_contracts(workflow)
    found = [*plan_faults(workflow, patterns, {*PACKS, *generated}), *_contracts(workflow, generated)]
    if HASH_KEY in value:
        found += _hash(workflow, stated)
    errors = tuple(one for one in found if one.severity == "error")
    return errors or workflow


def plan_faults(workflow: CompiledWorkflow, patterns: PatternChecker, contracts: Iterable[str]) -> Diagnostics:
    """Return every fault of a plan that no compiler has just made; without errors, it runs as one that was compiled.

    `contracts` are the references that exist.
    """
    found = [_numbered(one, workflow.plan) for one in validate_plan(workflow.plan, contracts)]
    # Some parts are checked by walking the graph, which must be sound for that.
    parts = check_parts(workflow, patterns, is_sound=not has_errors(found))
    return (*found, *map(_in_plan, limited(parts)))


def _newer(value: Mapping[str, Json]) -> Iterator[Diagnostic]:
    """Yield each version that is not known. The other faults of such a file would say nothing (IR-1)."""
    plan = value.get("plan")
    inner = plan.get("v") if isinstance(plan, dict) else None
    for path, version in (("schemaVersion", value.get("schemaVersion")), ("plan.v", inner)):
        if type(version) is int and version != 1:
            fix = "Open it with a newer Interlock, or export it again with this one."
            yield fault(path, "unknown_version", f"The plan has the version {version}; only version 1 is known.", fix)


def _numbered(found: Diagnostic, plan: Plan) -> Diagnostic:
    """Return a fault of a graph with its place in the file, where parts have numbers and not names."""
    kinds = {
        "plan.nodes": [node.node_id for node in plan.nodes],
        "plan.edges": [edge.edge_id for edge in plan.edges],
        "plan.loops": [loop.loop_id for loop in plan.loops],
        "plan.conditions": [named.condition_id for named in plan.conditions],
    }
    head, bracket, rest = found.path.partition("[")
    name, names = rest.removesuffix("]"), kinds.get(head, [])
    if not bracket or name not in names:
        return found
    # Of two parts with one name, the later one is at fault.
    return replace(found, path=f"{head}[{len(names) - 1 - names[::-1].index(name)}]")


def _in_plan(found: Diagnostic) -> Diagnostic:
    """Return a fault of a declaration with its place in the file: a document calls the actions of a step `set`."""
    return replace(found, path=found.path.replace(".task.set[", ".task.sets["))


def _unnamed_contracts(members: Mapping[str, Json]) -> Iterator[Diagnostic]:
    """Yield the faults of nodes that name no contract, in a file whose form has faults: both are reported at once."""
    match members.get("plan"):
        case {"nodes": list() as nodes}:
            pass
        case _:
            return
    for number, node in enumerate(nodes):
        owner = node.get("owner", "agent" if "task" in node else "harness") if isinstance(node, dict) else None
        if isinstance(node, dict) and isinstance(owner, str):
            named = {name: node.get(name) is not None for name in ("evidenceSchemaRef", "inputSchemaRef")}
            yield from missing_contracts(f"plan.nodes[{number}]", node.get("nodeId"), owner, named)


def _generated_contracts(workflow: CompiledWorkflow) -> frozenset[str]:
    """Return the contracts that are generated from the blocks in the slots of a flow, as far as the plan uses them."""
    of_blocks = {outputs_contract(slot.block, slot.block_version) for slot in workflow.slots.values()}
    return frozenset(of_blocks & {node.evidence_schema_ref for node in workflow.plan.nodes})


def _contracts(workflow: CompiledWorkflow, generated: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield a fault if a file holds other contracts than this Interlock: a schema is never defined by a workflow.

    Those that are generated from blocks must have the generated form.
    """
    expected = {pack.contract_ref: pack for pack in packs_of(workflow.plan)}
    of_blocks = set(generated)
    for number, pack in enumerate(workflow.contracts):
        if pack.contract_ref in of_blocks and is_outputs_pack(pack):
            of_blocks.discard(pack.contract_ref)
        elif expected.pop(pack.contract_ref, None) != pack:
            message = f"{pack.contract_ref!r} is not a contract that the plan uses, as this Interlock defines it."
            fix = _EXPORT_AGAIN if pack.contract_ref in of_blocks else "Leave `contracts` out; it is filled in."
            yield fault(f"contracts[{number}]", "unknown_contract_ref", message, fix)
    for ref in expected:
        message = f"{ref!r} is used by the plan, but is not here."
        yield fault("contracts", "unknown_contract_ref", message, "Leave `contracts` out; it is filled in.")
    for ref in sorted(of_blocks - {pack.contract_ref for pack in workflow.contracts}):
        message = (
            f"{ref!r} is used by the plan, but is not here. It is generated from a block, which the plan is without."
        )
        yield fault("contracts", "unknown_contract_ref", message, _EXPORT_AGAIN)


def _hash(workflow: CompiledWorkflow, stated: Json) -> Iterator[Diagnostic]:
    workflow_hash, _ = pinned_bytes(workflow)
    if stated != workflow_hash:
        message = f"The plan was changed after it was exported: its hash is {workflow_hash}."
        yield fault(HASH_KEY, "wrong_value", message, f"Remove `{HASH_KEY}`, or restore the file.")
