"""Reads a file that holds a plan: a compiled workflow that was exported, or made elsewhere (IR-14).

A plan file is checked completely when it is read. It needs no compiler, so what a compiler ensures is checked here.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors, limited
from interlock.define.faults import diagnose_faults
from interlock.define.patterns import PatternChecker
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import replace
from interlock.kernel.shape import ShapeError
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.plan_parts import check_parts
from interlock.plan.check.validate import validate_plan
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.packs import packs_of
from interlock.plan.records import Plan

HASH_KEY = "workflowHash"
"""The member of an exported plan with the digest of all other members."""


def holds_plan(value: Mapping[str, Json]) -> bool:
    """Say whether a document holds a plan and not steps."""
    return "steps" not in value and ("plan" in value or "schemaVersion" in value)


def plan_document(workflow: CompiledWorkflow) -> dict[str, Json]:
    """Return a compiled workflow as a plan file holds it: everything that a run pins, and the hash of that."""
    return {**workflow.to_json(), HASH_KEY: pinned_bytes(workflow)[0]}


def parse_plan_file(value: Mapping[str, Json], patterns: PatternChecker) -> CompiledWorkflow | Diagnostics:
    """Return the workflow of a plan file, or every fault.

    The hash may be left out, and so may the contracts: they are those of Interlock, never those of a file.
    """
    newer = tuple(_newer(value))
    if newer:
        return newer
    members = {"contracts": [], **value}
    stated = members.pop(HASH_KEY, None)
    try:
        workflow = CompiledWorkflow.of_json(members)
    except ShapeError as error:
        return tuple(diagnose_faults(error.faults, members, CompiledWorkflow))
    found = list(plan_faults(workflow, patterns, PACKS))
    if "contracts" not in value:
        workflow = workflow.changed(contracts=packs_of(workflow.plan))
    contracts: list[Json] = [pack.to_json() for pack in workflow.contracts]
    whole = {**members, "contracts": contracts}
    found += chain(_contracts(workflow), _hash(whole, stated) if HASH_KEY in value else ())
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


def _contracts(workflow: CompiledWorkflow) -> Iterator[Diagnostic]:
    """Yield a fault if a file holds other contracts than this Interlock: a schema is never defined by a workflow."""
    expected = {pack.contract_ref: pack for pack in packs_of(workflow.plan)}
    fix = "Leave `contracts` out; it is filled in."
    for number, pack in enumerate(workflow.contracts):
        if expected.pop(pack.contract_ref, None) != pack:
            message = f"{pack.contract_ref!r} is not a contract that the plan uses, as this Interlock defines it."
            yield fault(f"contracts[{number}]", "unknown_contract_ref", message, fix)
    for ref in expected:
        yield fault("contracts", "unknown_contract_ref", f"{ref!r} is used by the plan, but is not here.", fix)


def _hash(members: Mapping[str, Json], stated: Json) -> Iterator[Diagnostic]:
    workflow_hash = digest_of(members)
    if stated != workflow_hash:
        message = f"The plan was changed after it was exported: its hash is {workflow_hash}."
        yield fault(HASH_KEY, "wrong_value", message, f"Remove `{HASH_KEY}`, or restore the file.")
