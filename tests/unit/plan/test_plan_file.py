"""A plan file is read back unchanged, and every fault of one is reported before a run begins."""

import copy
import json
import random
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console
from tests.support.corpus import workrail_files
from tests.support.drawings import assert_drawn_whole
from tests.support.flow import (
    IS_FAST,
    a_loop,
    a_node,
    a_plan,
    an_edge,
    at_some_node,
    choose,
    compiled,
    declared,
    loop,
    parallel,
    step,
)
from tests.support.flows import WORK, RandomFlow, lowered
from tests.support.shares import IS_WHOLE

from interlock.cli.workflow.graph import drawn
from interlock.config.settings import BUNDLED
from interlock.define.diagnostics import Diagnostics
from interlock.define.patterns import PatternChecker
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import WalkResult, run_to_next_task
from interlock.kernel.budgets import (
    CONTEXT_KEY_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    PATTERN_CHARS_MAX,
    PLAN_DEPTH_MAX,
)
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.errors import ErrorCode
from interlock.plan.check.plan_file import holds_plan, parse_plan_file, plan_document
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.records import Loop, PlanEdge, PlanNode
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import Complete
from interlock.service.workflows.catalog import Catalog, Pinnable, RefusedFile, Source, read_source
from interlock.store.workflow_files import LocalWorkflowFiles
from interlock.testing.harness import Harness

Value = dict[str, Any]

WHOLE = compiled(
    step("a", when=IS_FAST, requireConfirmation=True, produces=["found"], needs=["mode"]),
    choose("c", (IS_FAST, [step("x")]), otherwise=[step("y")]),
    parallel("p", [step("b")], [step("t")]),
    loop("o", loop("i", step("u"), **{"for": {"count": 2}}), step("w"), **{"for": {"count": 2}}),
    step(
        "r",
        validationCriteria={"type": "regex", "pattern": "a+"},
        assessmentRefs=["q"],
        promptFragments=[{"id": "f", "text": "More.", "when": IS_FAST}],
    ),
    step("z", outputContract={"contractRef": "wr.contracts.verification_report"}),
    assessments=[{"id": "q", "purpose": "Q.", "dimensions": [{"id": "d", "purpose": "D.", "levels": ["no", "yes"]}]}],
)


FLOW = RandomFlow(slots="ab", edges=((None, "a", None), ("a", "b", 1)), go={}).build()


def exported() -> Value:
    """Return the example as its file holds it, free to change."""
    return json.loads(json.dumps(plan_document(WHOLE)))


def read(value: Value) -> CompiledWorkflow | Diagnostics:
    return parse_plan_file(value, PatternChecker())


def assert_read_back(workflow: CompiledWorkflow) -> None:
    first = json.dumps(plan_document(workflow))
    again = read(json.loads(first))
    assert isinstance(again, CompiledWorkflow), again
    assert pinned_bytes(again) == pinned_bytes(workflow)
    assert json.dumps(plan_document(again)) == first


@pytest.mark.inv("IR-14")
def test_a_plan_that_was_exported_is_read_back_with_the_same_hash_and_exported_as_the_same_bytes() -> None:
    assert_read_back(WHOLE)


@pytest.mark.inv("IR-14")
def test_every_bundled_workflow_is_read_back_from_its_plan() -> None:
    view = Catalog(LocalWorkflowFiles(core_dirs=(BUNDLED,), user_dir=None)).view(None)
    assert len(view.entries) >= 3
    for entry in view.entries.values():
        assert isinstance(entry.compiled, Pinnable)
        assert_read_back(entry.compiled.workflow)


@pytest.mark.inv("IR-11", "IR-14")
def test_every_workflow_of_the_corpus_is_read_back_from_its_plan() -> None:
    view = Catalog(LocalWorkflowFiles(core_dirs=(Path(workrail_files()[0]).parent,), user_dir=None)).view(None)
    startable = [one.compiled for one in view.entries.values() if isinstance(one.compiled, Pinnable)]
    assert startable
    for one in startable:
        assert_read_back(one.workflow)


@pytest.mark.inv("IR-14")
def test_a_plan_made_elsewhere_needs_neither_a_hash_nor_the_contracts() -> None:
    value = exported()
    del value["workflowHash"], value["contracts"]
    found = read(value)
    assert isinstance(found, CompiledWorkflow)
    assert pinned_bytes(found) == pinned_bytes(WHOLE)


def small(**members: object) -> Value:
    """Return a plan of one step, without the members that are empty."""
    refs = {"inputSchemaRef": "wr.contracts.step_input", "evidenceSchemaRef": "wr.contracts.notes"}
    step_a = {"nodeId": "a", "kind": "task", "owner": "agent", "title": "A", "task": {"prompt": "Do a."}, **refs}
    end = {"nodeId": "end", "kind": "terminal", "owner": "harness", "title": "End"}
    edge = {"edgeId": "a>end", "kind": "terminal", "source": "a", "target": "end"}
    plan = {"v": 1, "nodes": [step_a, end], "edges": [edge]}
    return {"schemaVersion": 1, "workflowId": "team.small", "name": "Small", "plan": plan} | members


@pytest.mark.inv("IR-18")
def test_members_that_are_empty_may_be_left_out_and_are_in_the_plan_that_is_exported() -> None:
    found = read(small())
    assert isinstance(found, CompiledWorkflow), found
    written = plan_document(found)
    assert (written["guidance"], written["functions"], written["compiledWarnings"]) == ([], [], [])
    assert found.plan.nodes[0].to_json()["provenance"] == {"source": "authored"}
    assert_read_back(found)
    hashed = read(small(workflowHash=written["workflowHash"]))
    assert isinstance(hashed, CompiledWorkflow), "the hash is that of the plan, however it is written"


@pytest.mark.inv("IR-18")
def test_every_member_that_is_missing_is_reported_at_once() -> None:
    value = small()
    del value["workflowId"], value["name"]
    first, end = value["plan"]["nodes"]
    del first["title"], first["inputSchemaRef"], first["evidenceSchemaRef"], end["owner"]
    assert sorted(placed(value)) == [
        ("missing_evidence_schema", "plan.nodes[0]"),
        ("missing_input_schema", "plan.nodes[0]"),
        ("missing_key", "name"),
        ("missing_key", "plan.nodes[0].title"),
        ("missing_key", "plan.nodes[1].owner"),
        ("missing_key", "workflowId"),
    ]
    del value["plan"]
    found = read(value)
    assert isinstance(found, tuple)
    assert [one.fix for one in found if one.path == "plan"] == ["Add `plan`, an object with `v`, `nodes`."]


def test_a_faulty_file_whose_nodes_are_no_objects_is_refused_as_well() -> None:
    nodes: list[Any] = ["a", {"task": {}, "owner": []}, {"task": {}}]
    assert ("wrong_type", "plan.nodes[0]") in placed(small(plan={"v": 1, "nodes": nodes}))


def of_flow() -> Value:
    return json.loads(json.dumps(plan_document(lowered(FLOW, WORK))))


@pytest.mark.inv("IR-14", "OPS-18")
def test_the_plan_of_a_flow_is_read_back_with_the_contracts_of_its_blocks() -> None:
    assert_read_back(lowered(FLOW, WORK))


@pytest.mark.inv("IR-15", "OPS-18")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("artifactSchema", "properties", "outputs", "properties", "go"), {"type": "integer"}),
        (("artifactSchema", "properties", "outputs", "required"), ["other"]),
        (("artifactSchema", "properties", "outputs", "required"), [["go"]]),
        (("artifactSchema", "properties", "outputs", "additionalProperties"), False),
        (("artifactSchema",), {"$ref": "elsewhere"}),
        (("artifactSchema",), {}),
        (("artifactKind",), "wr.assessment"),
        (("version",), 2),
    ],
)
def test_a_contract_of_a_block_that_is_not_as_interlock_generates_it_is_refused(
    path: tuple[str], value: object
) -> None:
    plan = of_flow()
    del plan["workflowHash"]
    setter("contracts", 0, *path, to=value)(plan)
    assert placed(plan) == [("unknown_contract_ref", "contracts[0]")]


@pytest.mark.inv("IR-15")
def test_the_contract_of_a_block_is_known_only_in_a_flow_with_that_block_and_has_to_be_there() -> None:
    plan = of_flow()
    del plan["workflowHash"]
    assert placed(plan | {"contracts": plan["contracts"][1:]}) == [("unknown_contract_ref", "contracts")]
    assert placed({name: one for name, one in plan.items() if name != "contracts"}) == [
        ("unknown_contract_ref", "contracts")
    ]
    without_slots = {**plan, "flow": plan["flow"] | {"slots": []}}
    assert {code for code, _ in placed(without_slots)} == {"unknown_contract_ref"}


@pytest.mark.inv("IR-15")
def test_a_slot_of_a_flow_is_a_step_of_its_own() -> None:
    plan = of_flow()
    del plan["workflowHash"]
    plan["flow"]["slots"][1]["nodeId"] = plan["flow"]["slots"][0]["nodeId"]
    plan["flow"]["slots"].append(plan["flow"]["slots"][0] | {"nodeId": "nowhere"})
    assert placed(plan) == [("wrong_value", "flow.slots[1].nodeId"), ("wrong_value", "flow.slots[2].nodeId")]


def test_a_document_with_steps_is_no_plan() -> None:
    assert holds_plan(exported())
    assert holds_plan({"schemaVersion": 1})
    assert not holds_plan({"id": "team.a", "steps": [], "plan": "to be written"})


def placed(value: Value) -> list[tuple[str, str]]:
    found = read(value)
    assert not isinstance(found, CompiledWorkflow)
    return [(one.code, one.path) for one in found]


def at_of(node_id: str) -> int:
    return [node.node_id for node in WHOLE.plan.nodes].index(node_id)


def setter(*path: str | int, to: object) -> Callable[[Value], None]:
    """Return a change that sets the member at a path."""

    def change(value: Any) -> None:
        for part in path[:-1]:
            value = value[part]
        value[path[-1]] = to

    return change


A, R, TASK = at_of("a"), at_of("r"), ("plan", "nodes", at_of("a"), "task")
LONG_KEY = "k" * (CONTEXT_KEY_BYTES_MAX + 1)
SET: Value = {"key": "found", "value": "it"}
EMIT: Value = {"kind": "team.notify", "fields": {"f": {"value": "it"}}}
ONE: Value = {"op": "constant", "value": 1}
IS_SET: Value = {"op": "exists", "var": "mode", "value": True}
IN_FIVE: Value = {"op": "in", "var": "mode", "value": 5}
APPEND: Value = {"op": "append", "of": [{"op": "read", "var": "things"}, ONE, ONE]}


def computing(value: Value) -> Value:
    return {"key": "found", "compute": value}


FAULTS: dict[str, tuple[Callable[[Value], None], str, str]] = {
    "a newer version": (setter("schemaVersion", to=2), "unknown_version", "schemaVersion"),
    "a newer graph": (setter("plan", "v", to=7), "unknown_version", "plan.v"),
    "an unknown member": (setter("tools", to=[]), "unknown_key", "tools"),
    "a text for the graph": (setter("plan", to="a -> b"), "wrong_type", "plan"),
    "a kind of node that there is not": (
        setter("plan", "nodes", A, "kind", to="magic"),
        "wrong_value",
        f"plan.nodes[{A}].kind",
    ),
    "an owner that executes no step": (
        setter("plan", "nodes", A, "owner", to="plugin"),
        "unfit_node",
        f"plan.nodes[{A}]",
    ),
    "an id with a delimiter": (setter("plan", "nodes", A, "nodeId", to="a::b"), "bad_id", f"plan.nodes[{A}].nodeId"),
    "a dangling edge": (setter("plan", "edges", 2, "target", to="nowhere"), "dangling_edge", "plan.edges[2]"),
    "an edge id that is a key of another graph": (
        setter("plan", "edges", 2, "edgeId", to="o@0::u"),
        "invalid_identifier",
        "plan.edges[2]",
    ),
    "a condition that is not there": (
        setter("plan", "edges", 0, "conditionId", to="none"),
        "missing_condition",
        "plan.edges[0]",
    ),
    "a contract that is not there": (
        setter("plan", "nodes", A, "evidenceSchemaRef", to="team.mine"),
        "unknown_contract_ref",
        f"plan.nodes[{A}]",
    ),
    "a schema of its own": (
        setter("contracts", 0, "artifactSchema", to={"type": "object"}),
        "unknown_contract_ref",
        "contracts[0]",
    ),
    "a contract too few": (lambda value: value["contracts"].pop(), "unknown_contract_ref", "contracts"),
    "an assessment that is not there": (
        setter("assessments", to=[]),
        "unknown_assessment",
        f"plan.nodes[{R}].task.evidence.assessments[0]",
    ),
    "an id that is none": (setter("workflowId", to="Not An Id"), "bad_id", "workflowId"),
    "a changed plan": (setter("name", to="Another"), "wrong_value", "workflowHash"),
    "an empty title": (setter("plan", "nodes", A, "title", to=" "), "empty", f"plan.nodes[{A}].title"),
    "a title of many lines": (setter("plan", "nodes", A, "title", to="t" * 201), "too_long", f"plan.nodes[{A}].title"),
    "an empty prompt": (setter(*TASK, "prompt", to=""), "empty", f"plan.nodes[{A}].task.prompt"),
    "a prompt beyond its limit": (setter(*TASK, "prompt", to="p" * 40_000), "too_long", f"plan.nodes[{A}].task.prompt"),
    "a role beyond its limit": (
        setter(*TASK, "agentRole", to="p" * 40_000),
        "too_long",
        f"plan.nodes[{A}].task.agentRole",
    ),
    "too many lines of evidence": (
        setter(*TASK, "requirements", to=["l"] * 6),
        "too_many",
        f"plan.nodes[{A}].task.requirements",
    ),
    "a produced key that no blocker can name": (
        setter(*TASK, "produces", to=[LONG_KEY]),
        "wrong_value",
        f"plan.nodes[{A}].task.produces[0]",
    ),
    "a needed path that no blocker can name": (
        setter(*TASK, "needs", to=[LONG_KEY]),
        "wrong_value",
        f"plan.nodes[{A}].task.needs[0]",
    ),
    "a pattern that RE2 refuses": (
        setter("plan", "nodes", R, "task", "evidence", "criteria", "pattern", to="(?=x)"),
        "bad_pattern",
        f"plan.nodes[{R}].task.evidence.criteria",
    ),
    "a pattern beyond its limit": (
        setter("plan", "nodes", R, "task", "evidence", "criteria", "pattern", to="a" * (PATTERN_CHARS_MAX + 1)),
        "bad_pattern",
        f"plan.nodes[{R}].task.evidence.criteria",
    ),
    "a length that no notes have": (
        setter("plan", "nodes", R, "task", "evidence", "criteria", to={"kind": "length", "min": 2, "max": 1}),
        "wrong_value",
        f"plan.nodes[{R}].task.evidence.criteria.max",
    ),
    "`in` a number": (
        setter("plan", "conditions", 0, "condition", to={"op": "in", "var": "mode", "value": 5}),
        "wrong_type",
        "plan.conditions[0].condition",
    ),
    "a comparison of sizes with a text": (
        setter(*TASK, "confirmation", to={"op": "not", "of": {"op": "gt", "var": "mode", "value": "big"}}),
        "wrong_type",
        f"plan.nodes[{A}].task.confirmation",
    ),
    "a condition on an endless key": (
        setter("plan", "nodes", R, "task", "fragments", 0, "condition", "var", to=LONG_KEY),
        "wrong_value",
        f"plan.nodes[{R}].task.fragments[0].condition",
    ),
    "too many terms": (
        setter("plan", "conditions", 0, "condition", to={"op": "and", "of": [{"op": "always"}] * 5_001}),
        "too_many",
        "plan.conditions",
    ),
    "a loop without a bound": (
        setter("plan", "loops", 0, "maxIterations", to=10**6),
        "wrong_value",
        "plan.loops[0].maxIterations",
    ),
    "a loop variable that is no name": (
        setter("plan", "loops", 0, "indexVar", to="{{x}}"),
        "wrong_value",
        "plan.loops[0].indexVar",
    ),
    "a loop inside itself": (
        setter("plan", "loops", 0, "body", to=["o", "u", "i--end"]),
        "unreachable_node",
        "plan.loops[0]",
    ),
    "an input that is declared twice": (
        lambda value: value["inputs"].append(declared("mode")),
        "duplicate_id",
        f"inputs[{len(WHOLE.inputs)}].key",
    ),
    "other parts than those of the prompt": (
        setter(*TASK, "promptBlocks", to={"goal": "Do something else."}),
        "wrong_value",
        f"plan.nodes[{A}].task.promptBlocks",
    ),
    "a reserved key": (setter(*TASK, "produces", to=["__proto__"]), "wrong_value", f"plan.nodes[{A}].task.produces[0]"),
    "a reserved key that is set": (
        setter(*TASK, "sets", to=[{"key": "__proto__", "value": 1}]),
        "wrong_value",
        f"plan.nodes[{A}].task.sets[0].key",
    ),
    "two actions on one key": (setter(*TASK, "sets", to=[SET, SET]), "duplicate_write", f"plan.nodes[{A}].task.sets"),
    "an intent that sets a key once more": (
        lambda value: value["plan"]["nodes"][A]["task"].update(sets=[SET], emits=[EMIT | {"mirror": {"found": "f"}}]),
        "duplicate_write",
        f"plan.nodes[{A}].task.sets",
    ),
    "a condition of an action with a text as its limit": (
        setter(*TASK, "sets", to=[SET | {"when": {"op": "gt", "var": "mode", "value": "3"}}]),
        "wrong_type",
        f"plan.nodes[{A}].task.sets[0]",
    ),
    "a condition inside a computed value with a number as its list": (
        setter(*TASK, "sets", to=[computing({"op": "if", "when": IN_FIVE, "then": ONE, "otherwise": ONE})]),
        "wrong_type",
        f"plan.nodes[{A}].task.sets[0]",
    ),
    "a condition of an intent on an endless key": (
        setter(*TASK, "emits", to=[EMIT | {"when": {"op": "exists", "var": LONG_KEY, "value": True}}]),
        "wrong_value",
        f"plan.nodes[{A}].task.emits[0]",
    ),
    "a field from an endless key": (
        setter(*TASK, "emits", to=[EMIT | {"fields": {"f": {"from": LONG_KEY}}}]),
        "wrong_value",
        f"plan.nodes[{A}].task.emits[0].fields.f",
    ),
    "a value from a path with a blank part": (
        setter(*TASK, "sets", to=[{"key": "found", "from": "box..size"}]),
        "wrong_value",
        f"plan.nodes[{A}].task.sets[0]",
    ),
    "a value from an endless key": (
        setter(*TASK, "sets", to=[{"key": "found", "from": LONG_KEY}]),
        "wrong_value",
        f"plan.nodes[{A}].task.sets[0]",
    ),
    "a division by nothing": (
        setter(*TASK, "sets", to=[computing({"op": "divide", "of": [ONE]})]),
        "wrong_value",
        f"plan.nodes[{A}].task.sets[0]",
    ),
    "a list with two more items": (
        setter(*TASK, "sets", to=[computing({"op": "if", "when": IS_SET, "then": ONE, "otherwise": APPEND})]),
        "wrong_value",
        f"plan.nodes[{A}].task.sets[0]",
    ),
    "values with too many terms": (
        setter(*TASK, "sets", to=[computing({"op": "add", "of": [ONE] * 5_001})]),
        "too_many",
        "plan.conditions",
    ),
    "a choice by a loop-control artifact": (
        setter("plan", "conditions", 0, "condition", to={"op": "loop_control", "whenAbsent": "missing"}),
        "wrong_value",
        "plan.conditions[0].condition",
    ),
    "a decision of the agent that is reversed": (
        setter(
            "plan",
            "conditions",
            0,
            "condition",
            to={"op": "not", "of": {"op": "loop_control", "whenAbsent": "hold"}},
        ),
        "wrong_value",
        "plan.conditions[0].condition",
    ),
    "a condition twice": (
        lambda value: value["plan"]["conditions"].append(value["plan"]["conditions"][0]),
        "duplicate_id",
        f"plan.conditions[{len(WHOLE.plan.conditions)}]",
    ),
}


@pytest.mark.inv("IR-4", "IR-15")
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_a_plan_file_is_reported_at_its_place(name: str) -> None:
    change, code, path = FAULTS[name]
    value = exported()
    change(value)
    if path != "workflowHash":
        value.pop("workflowHash")
    assert (code, path) in placed(value)


@pytest.mark.inv("IR-4")
def test_three_independent_faults_are_reported_in_one_result() -> None:
    value = exported()
    value.pop("workflowHash")
    for name in ("a dangling edge", "a prompt beyond its limit", "a loop without a bound"):
        FAULTS[name][0](value)
    assert {"dangling_edge", "too_long", "wrong_value"} <= {code for code, _ in placed(value)}


def test_a_newer_plan_is_reported_as_newer_and_as_nothing_else() -> None:
    value = exported() | {"schemaVersion": 2, "surprise": True}
    assert placed(value) == [("unknown_version", "schemaVersion")]


def deep(levels: int) -> Value:
    """Return a plan whose decisions lead into each other: each lies in a branch of the one before."""
    names = [f"d{number}" for number in range(levels)]
    nodes = [*(a_node(name, "decision") for name in names), a_node("a"), a_node("end", "terminal")]
    edges = [
        edge
        for name, following in zip(names, [*names[1:], "a"], strict=True)
        for edge in (
            an_edge(name, following, "conditional", condition_id=WHOLE.plan.conditions[0].condition_id),
            an_edge(name, "end", "terminal"),
        )
    ]
    plan = a_plan(nodes, [*edges, an_edge("a", "end", "terminal")], [], WHOLE.plan.conditions)
    value = exported()
    value["plan"] = plan.to_json()
    del value["workflowHash"], value["contracts"]
    return value


@pytest.mark.inv("IR-15")
def test_branches_nest_as_deep_as_the_compiler_lets_them_and_no_deeper() -> None:
    assert isinstance(read(deep(PLAN_DEPTH_MAX)), CompiledWorkflow)
    assert placed(deep(PLAN_DEPTH_MAX + 1)) == [("too_many", "plan.nodes")]
    assert placed(deep(1_500)) == [("too_many", "plan.nodes")]


@pytest.mark.inv("IR-15")
def test_loops_nest_as_deep_as_the_compiler_lets_them() -> None:
    value = exported()
    del value["workflowHash"]
    loops: list[Loop] = []
    nodes: list[PlanNode] = []
    edges: list[PlanEdge] = []
    for number in range(9):
        inner = f"l{number + 1}" if number < 8 else "a"
        loops.append(a_loop(f"l{number}", inner, f"e{number}"))
        nodes += [a_node(f"l{number}", "loop"), a_node(f"e{number}", "terminal")]
        edges.append(an_edge(inner, f"e{number}", "terminal"))
    nodes += [a_node("a"), a_node("end", "terminal")]
    ends = sorted((node for node in nodes if node.kind == "terminal"), key=lambda node: node.node_id)
    ordered = [*(node for node in nodes if node.kind != "terminal"), *ends]
    edges.append(an_edge("l0", "end", "terminal"))
    value["plan"] = a_plan(ordered, edges, loops).to_json()
    del value["contracts"]
    assert placed(value) == [("too_many", "plan.loops")]


def ladder(rungs: int) -> CompiledWorkflow:
    """Return a plan of decisions whose paths cross at each rung: it has 2^rungs paths."""
    condition = WHOLE.plan.conditions[0].condition_id
    nodes: list[PlanNode] = [a_node("left0", "decision")]
    edges: list[PlanEdge] = []
    for rung in range(rungs):
        nodes += [a_node(f"{side}{rung + 1}", "decision") for side in ("left", "right")]
        for side in ("left", "right") if rung else ("left",):
            edges += [
                an_edge(f"{side}{rung}", f"left{rung + 1}", "conditional", condition_id=condition),
                an_edge(f"{side}{rung}", f"right{rung + 1}"),
            ]
    nodes.append(a_node("end", "terminal"))
    edges += [an_edge(f"{side}{rungs}", "end", "terminal") for side in ("left", "right")]
    plan = a_plan(nodes, edges, [], WHOLE.plan.conditions)
    return WHOLE.changed(plan=plan, contracts=())


@pytest.mark.inv("IR-15")
def test_a_plan_whose_paths_cross_is_drawn_with_each_node_once() -> None:
    workflow = ladder(PLAN_DEPTH_MAX)
    out = StringIO()
    Console(file=out, width=400, color_system=None).print(drawn(workflow))
    assert len([line for line in out.getvalue().splitlines() if "◆" in line]) == len(workflow.plan.nodes) - 1
    assert "continue with right2" in out.getvalue()


def _places(value: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    return [place for key, member in inner for place in ((*above, key), *_places(member, (*above, key)))]


PLACES = _places(exported())
WALK_STEPS_MAX = 10_000
STRANGE: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    10**9,
    0.5,
    "",
    " ",
    "x",
    "end",
    "a",
    "o",
    "é" * 300,
    [],
    {},
    ["a"],
    {"op": "always"},
)


def mangled(chance: random.Random) -> Value:
    """Return the example with up to three members removed, replaced, or copied from elsewhere."""
    value = exported()
    value.pop("workflowHash")
    for _ in range(chance.randint(1, 3)):
        place = chance.choice(PLACES)
        try:
            around: Any = value
            for part in place[:-1]:
                around = around[part]
            match chance.randrange(3):
                case 0:
                    del around[place[-1]]
                case 1:
                    around[place[-1]] = copy.deepcopy(chance.choice(STRANGE))
                case _:
                    other: Any = value
                    for part in chance.choice(PLACES):
                        other = other[part]
                    around[place[-1]] = copy.deepcopy(other)
        except (KeyError, IndexError, TypeError):
            continue
    return value


def rewired(chance: random.Random) -> Value:
    """Return the example with some edges of another kind, with another condition, or between other nodes.

    Its parts agree with each other more often than those of `mangled`, so more of these files are accepted.
    """
    value = exported()
    value.pop("workflowHash")
    plan = value["plan"]
    names = [node["nodeId"] for node in plan["nodes"]]
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(plan["edges"]))
        edge = plan["edges"][at]
        match chance.randrange(5):
            case 0:
                edge["kind"] = "direct"
                edge.pop("conditionId", None)
            case 1:
                condition = chance.choice(plan["conditions"])["conditionId"]
                edge.update(kind="conditional", conditionId=condition)
            case 2:
                edge[chance.choice(["source", "target"])] = chance.choice(names)
            case 3:
                del plan["edges"][at]
            case _:
                other = dict(edge, edgeId=f"new{len(plan['edges'])}", target=chance.choice(names))
                plan["edges"].insert(chance.randrange(len(plan["edges"])), other)
    return value


def walked(workflow: CompiledWorkflow) -> bool:
    """Walk a plan to its end without stopping, whatever its conditions read."""
    marks = ExecutionState(workflow.graphs)
    for _ in range(WALK_STEPS_MAX):
        found = run_to_next_task(
            workflow, marks, at_some_node({"mode": "fast"}), Evaluating(workflow.graphs), never_stops=True
        )
        assert isinstance(found, WalkResult)
        if isinstance(found.state, Complete):
            return True
        marks = ExecutionState(workflow.graphs, found.state)
        marks.complete(found.state.pending.step.step_id)
    return False


def play(value: Value) -> None:
    """Start a plan file that was accepted, and report up to 40 times with changing contexts; nothing breaks."""
    harness = Harness.in_memory(value)
    answer = harness.start(value["workflowId"], context={"mode": "fast"})
    for number in range(40):
        assert answer.code is not ErrorCode.INTERNAL_ERROR, answer.text
        if answer.is_error or answer["isComplete"]:
            return
        answer = harness.advance(
            answer, "Done: a long enough note on what was done.", context={"mode": ["fast", "slow"][number % 2]}
        )


@pytest.mark.inv("IR-15")
@pytest.mark.parametrize("make", [mangled, rewired])
@pytest.mark.parametrize("seed", range(10))
def test_any_plan_file_is_judged_and_one_without_faults_is_drawn_in_every_form_and_runs_to_its_end(
    make: Callable[[random.Random], Value], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(1_000 if IS_WHOLE else 12):
        value = make(chance)
        try:
            canonical_bytes(value)
        except ValueError:
            continue
        source = Source(kind="project", ref="x.plan.json", form="json", data=json.dumps(value).encode())
        found = read_source(source)
        if isinstance(found, RefusedFile):
            assert found.diagnostics
            assert all(one.message and one.fix and one.line for one in found.diagnostics)
            continue
        workflow = found.read().content
        if not isinstance(workflow, CompiledWorkflow):
            continue
        assert_drawn_whole(workflow)
        assert walked(workflow)
        play(value)


@pytest.mark.inv("IR-4", "IR-15")
def test_a_decision_with_two_ways_without_a_condition_or_with_no_condition_is_refused_at_its_place() -> None:
    value = exported()
    value.pop("workflowHash")
    edges = value["plan"]["edges"]
    decisions = [node["nodeId"] for node in value["plan"]["nodes"] if node["kind"] == "decision"]
    for decision in decisions:
        changed = copy.deepcopy(value)
        for edge in changed["plan"]["edges"]:
            if edge["source"] == decision and edge["kind"] == "conditional":
                edge["kind"] = "direct"
                edge.pop("conditionId")
        at = [node["nodeId"] for node in changed["plan"]["nodes"]].index(decision)
        later = [number for number, edge in enumerate(edges) if edge["source"] == decision][1:]
        assert placed(changed) == [
            *(("missing_condition", f"plan.edges[{number}]") for number in later),
            ("missing_condition", f"plan.nodes[{at}]"),
        ]


def test_the_mangled_files_are_of_both_sorts() -> None:
    verdicts = {isinstance(read(mangled(random.Random(seed))), CompiledWorkflow) for seed in range(60)}
    assert verdicts == {True, False}
