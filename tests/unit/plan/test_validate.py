"""Is a plan fit to run? Any plan, however broken, is judged whole; a plan without errors runs to its end."""

import random
from collections.abc import Iterable

import pytest
from tests.support.flow import (
    IS_FAST,
    Walker,
    a_loop,
    a_node,
    a_plan,
    an_edge,
    choose,
    compiled,
    deciding,
    loop,
    parallel,
    step,
)

from interlock.decide.condition import Always, Compare
from interlock.define.diagnostics import Diagnostic
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.validate import validate_plan
from interlock.plan.records import Loop, NamedCondition, Plan, PlanEdge, PlanNode

A, B, C, END = a_node("a"), a_node("b"), a_node("c"), a_node("end", "terminal")
TO_END = an_edge("a", "end", "terminal")
DECISION = a_node("d", "decision")
HOLDS = NamedCondition(condition_id="holds", condition=Always(op="always"))
IF_A = an_edge("d", "a", "conditional", condition_id="holds")
ELSE_END = an_edge("d", "end", "terminal")
LOOP, LAST = a_node("l", "loop"), a_node("last", "terminal")
LOOP_TO_END, A_TO_LAST = an_edge("l", "end", "terminal"), an_edge("a", "last", "terminal")


def result(
    nodes: Iterable[PlanNode],
    edges: Iterable[PlanEdge],
    loops: Iterable[Loop] = (),
    conditions: Iterable[NamedCondition] = (),
) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in validate_plan(a_plan(nodes, edges, loops, conditions), PACKS)]


SOUND: dict[str, Plan] = {
    "one step": a_plan([A, END], [TO_END]),
    "an end alone": a_plan([END], []),
    "a decision": a_plan([DECISION, A, END], [IF_A, ELSE_END, TO_END], (), [HOLDS]),
    "a loop": a_plan([LOOP, A, LAST, END], [A_TO_LAST, LOOP_TO_END], [a_loop("l", "a", "last")]),
    "branches": a_plan(
        [a_node("p", "fan_out"), A, B, a_node("j", "fan_in"), END],
        [
            an_edge("p", "a", "fan_out"),
            an_edge("p", "b", "fan_out"),
            an_edge("a", "j", "fan_in"),
            an_edge("b", "j", "fan_in"),
            an_edge("j", "end", "terminal"),
        ],
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_plan_has_no_fault(name: str) -> None:
    assert validate_plan(SOUND[name], PACKS) == ()


def test_what_the_compiler_makes_has_no_fault() -> None:
    workflow = compiled(
        step("a", when=IS_FAST),
        choose("c", (IS_FAST, [step("x")]), (IS_FAST, [step("y")])),
        parallel("p", [step("b"), parallel("q", [step("r")], [step("s", when=IS_FAST)])], [step("t")]),
        loop("o", loop("i", step("u"), deciding("d"), **{"while": {"kind": "loop_control"}}), **{"for": {"count": 1}}),
        capabilities={"web_browsing": "required"},
    )
    assert validate_plan(workflow.plan, PACKS) == ()


CASES: list[tuple[str, list[PlanNode], list[PlanEdge], list[Loop], list[tuple[str, str]]]] = [
    (
        "a node that stands twice",
        [A, A, END],
        [TO_END],
        [],
        [("duplicate_node_id", "plan.nodes[a]")],
    ),
    ("an edge that stands twice", [A, END], [TO_END, TO_END], [], [("duplicate_edge_id", "plan.edges[a>end]")]),
    ("an edge to nowhere", [A, END], [TO_END, an_edge("a", "z")], [], [("dangling_edge", "plan.edges[a>z]")]),
    (
        "an edge from nowhere",
        [A, END],
        [TO_END, an_edge("z", "a")],
        [],
        [("dangling_edge", "plan.edges[z>a]"), ("missing_entry", "plan")],
    ),
    (
        "a node that leads to itself",
        [A, END],
        [TO_END, an_edge("a", "a")],
        [],
        [("self_loop", "plan.edges[a>a]"), ("missing_entry", "plan")],
    ),
    (
        "a way back",
        [A, B, END],
        [an_edge("a", "b"), an_edge("b", "a"), TO_END],
        [],
        [("unbounded_loop", "plan.edges[b>a]"), ("missing_entry", "plan")],
    ),
    (
        "an edge into a body",
        [LOOP, A, LAST, END],
        [A_TO_LAST, LOOP_TO_END, an_edge("l", "a")],
        [a_loop("l", "a", "last")],
        [("dangling_edge", "plan.edges[l>a]"), ("missing_entry", "plan.loops[l]")],
    ),
    (
        "a conditional edge without a condition",
        [DECISION, A, END],
        [an_edge("d", "a", "conditional"), ELSE_END, TO_END],
        [],
        [("missing_condition", "plan.edges[d>a]")],
    ),
    (
        "a condition that there is not",
        [DECISION, A, END],
        [an_edge("d", "a", "conditional", condition_id="none"), ELSE_END, TO_END],
        [],
        [("missing_condition", "plan.edges[d>a]")],
    ),
    (
        "a step without the evidence it wants",
        [a_node("a", evidence_schema_ref=None), END],
        [TO_END],
        [],
        [("missing_evidence_schema", "plan.nodes[a]")],
    ),
    (
        "a verifier needs no input",
        [a_node("a", owner="verifier", input_schema_ref=None), END],
        [TO_END],
        [],
        [],
    ),
    (
        "a step without what it takes in",
        [a_node("a", input_schema_ref=None), END],
        [TO_END],
        [],
        [("missing_input_schema", "plan.nodes[a]")],
    ),
    (
        "a contract that there is not",
        [a_node("a", evidence_schema_ref="wr.contracts.none"), END],
        [TO_END],
        [],
        [("unknown_contract_ref", "plan.nodes[a]")],
    ),
    (
        "a loop without its node",
        [A, LAST, END],
        [A_TO_LAST],
        [a_loop("l", "a", "last")],
        [("dangling_edge", "plan.loops[l]")],
    ),
    (
        "a loop node without its loop",
        [LOOP, END],
        [LOOP_TO_END],
        [],
        [("unbounded_loop", "plan.nodes[l]")],
    ),
    (
        "a body that names no node",
        [LOOP, A, LAST, END],
        [A_TO_LAST, LOOP_TO_END],
        [a_loop("l", "a", "last", "z")],
        [("dangling_edge", "plan.loops[l]")],
    ),
    (
        "a body without work",
        [LOOP, LAST, END],
        [LOOP_TO_END],
        [a_loop("l", "last")],
        [("automatic_cycle", "plan.loops[l]")],
    ),
    (
        "a loop without its condition",
        [LOOP, A, LAST, END],
        [A_TO_LAST, LOOP_TO_END],
        [a_loop("l", "a", "last", kind="while", condition_id="none")],
        [("missing_condition", "plan.loops[l]")],
    ),
    (
        "a body without an end",
        [LOOP, A, END],
        [LOOP_TO_END],
        [a_loop("l", "a")],
        [("no_terminal_node", "plan.loops[l]")],
    ),
    ("no end", [A, B], [an_edge("a", "b")], [], [("no_terminal_node", "plan")]),
    (
        "a node that nothing leads to",
        [A, B, END],
        [TO_END, an_edge("b", "end", "terminal")],
        [],
        [("unreachable_node", "plan.nodes[b]")],
    ),
    (
        "a node that leads to no end",
        [a_node("d", "fan_out"), A, B, END],
        [an_edge("d", "a"), an_edge("d", "b"), TO_END],
        [],
        [("unreachable_terminal", "plan.nodes[b]")],
    ),
    ("an end that nothing leads to", [A, END, LAST], [TO_END], [], [("unreachable_terminal", "plan.nodes[last]")]),
    (
        "an end that leads on",
        [A, END, LAST],
        [TO_END, an_edge("end", "last", "terminal")],
        [],
        [("unreachable_terminal", "plan.nodes[end]")],
    ),
    (
        "a decision without a default",
        [DECISION, A, END],
        [IF_A, TO_END],
        [],
        [("missing_condition", "plan.edges[d>a]"), ("no_default_branch", "plan.nodes[d]")],
    ),
    ("a node that stands alone", [A, B, END], [TO_END], [], [("isolated_node", "plan.nodes[b]")]),
]


@pytest.mark.parametrize(
    ("nodes", "edges", "loops", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_each_fault_of_a_plan_is_reported_at_its_place(
    nodes: list[PlanNode], edges: list[PlanEdge], loops: list[Loop], expected: list[tuple[str, str]]
) -> None:
    assert result(nodes, edges, loops) == expected


def test_contracts_are_left_unjudged_where_they_are_not_known() -> None:
    plan = a_plan([a_node("a", evidence_schema_ref="mine"), END], [TO_END])
    assert validate_plan(plan) == ()
    assert [one.code for one in validate_plan(plan, ["wr.contracts.step_input"])] == ["unknown_contract_ref"]


def test_loops_that_hold_each_other_are_judged_and_end() -> None:
    found = result([LOOP, a_node("m", "loop"), END], [], [a_loop("l", "m"), a_loop("m", "l")])
    assert {("automatic_cycle", "plan.loops[l]"), ("automatic_cycle", "plan.loops[m]")} <= set(found)


def test_a_loop_that_holds_itself_is_refused() -> None:
    found = result([LOOP, A, LAST, END], [A_TO_LAST, LOOP_TO_END], [a_loop("l", "l", "a", "last")])
    assert {code for code, _ in found} & {"dangling_edge", "automatic_cycle", "unbounded_loop"}


UNFIT: dict[str, Plan] = {
    "a loop over items that names none": a_plan(
        [LOOP, A, LAST, END],
        [A_TO_LAST, LOOP_TO_END],
        [a_loop("l", "a", "last", kind="for_each", count=None)],
    ),
    "a counted loop without a count": a_plan(
        [LOOP, A, LAST, END], [A_TO_LAST, LOOP_TO_END], [a_loop("l", "a", "last", count=None)]
    ),
    "a task with nothing to do": a_plan([a_node("a", task=None), END], [TO_END]),
    "work on a node that is no task": a_plan(
        [a_node("p", "fan_out", task=A.task), END], [an_edge("p", "end", "terminal")]
    ),
    "a condition on a way out of a step": a_plan(
        [A, B, END],
        [an_edge("a", "b", "conditional", condition_id="holds"), TO_END, an_edge("b", "end", "terminal")],
        (),
        [HOLDS],
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_plan_that_could_not_run_as_it_reads_is_refused(name: str) -> None:
    assert [one for one in validate_plan(UNFIT[name], PACKS) if one.severity == "error"]


def mangled(plan: Plan, chance: random.Random) -> Plan:
    """Return a plan with something left out, repeated or led elsewhere."""
    nodes, edges, loops = list(plan.nodes), list(plan.edges), list(plan.loops)
    for _ in range(chance.randint(1, 3)):
        match chance.randrange(6):
            case 0:
                nodes.pop(chance.randrange(len(nodes))) if len(nodes) > 1 else None
            case 1:
                nodes.insert(0, nodes.pop(chance.randrange(len(nodes))))
            case 2 if edges:
                edges.pop(chance.randrange(len(edges)))
            case 3 if edges:
                at = chance.randrange(len(edges))
                edges[at] = edges[at].changed(target=chance.choice(nodes).node_id)
            case 4 if loops:
                at = chance.randrange(len(loops))
                body = (*loops[at].body[1:], chance.choice(nodes).node_id)
                loops[at] = loops[at].changed(body=body)
            case _:
                nodes.append(chance.choice(nodes))
    return plan.changed(nodes=tuple(nodes), edges=tuple(edges), loops=tuple(loops))


WHOLE = compiled(
    step("a", when=IS_FAST),
    choose("c", (IS_FAST, [step("x")]), otherwise=[step("y")]),
    parallel("p", [step("b")], [step("t")]),
    loop("o", loop("i", step("u"), **{"for": {"count": 2}}), step("w"), **{"for": {"count": 2}}),
)


@pytest.mark.parametrize("seed", range(300))
def test_any_plan_is_judged_and_one_without_errors_runs_to_its_end(seed: int) -> None:
    chance = random.Random(seed)
    plan = mangled(WHOLE.plan, chance)
    found = validate_plan(plan, PACKS)
    assert all(isinstance(one, Diagnostic) and one.message and one.fix for one in found)
    if not [one for one in found if one.severity == "error"]:
        workflow = WHOLE.changed(plan=plan)
        for mode in ("fast", "slow"):
            Walker(workflow, mode=mode).ways()


def test_a_condition_that_nothing_uses_does_no_harm() -> None:
    loose = NamedCondition(condition_id="loose", condition=Compare(op="exists", var="x", value=True))
    assert result([A, END], [TO_END], (), [loose]) == []
