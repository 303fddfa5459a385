"""A graph of conditions and assignments does exactly what each of them says, in whatever order it is built."""

import random
from dataclasses import dataclass
from typing import Any, cast, get_args

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.support.shares import examples

from interlock.decide.condition import Condition, LenientOperator, StrictOperator
from interlock.decide.evaluate import ConditionInputs, LoopDecision, Undecided, evaluate
from interlock.decide.evaluation_pass import Outcome, PassAborted, PassResult, run_pass
from interlock.decide.graph import DecisionGraph, SetKey
from interlock.decide.lowering import Assignment, action_id, build_graph, trigger_id
from interlock.decide.schedule import Schedule, build_schedule
from interlock.decide.value import OPERANDS, CalculationError, Given, Operation, Value, calculate
from interlock.kernel.canonical import Json, canonical_bytes

pytestmark = pytest.mark.exhaustive

VALUE: TypeAdapter[Value] = TypeAdapter(Value)
CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
TEXTS = st.sampled_from(["", "a", "A ", "b", "ab", "true", "3"])
NUMBERS = st.sampled_from([0, 1, 3, -1, 0.5, 3.0])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
KEYS = st.sampled_from(["a", "b", "c", "a.b", "b.c", "c.a"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=6,
)
CONTEXTS = st.dictionaries(KEYS, VALUES, max_size=5)
LOOPS = st.sampled_from([None, "l", "m"])
DECISIONS = st.lists(st.tuples(LOOPS, st.sampled_from(["continue", "stop"])), max_size=3).map(tuple)

_OPERANDS: dict[str, st.SearchStrategy[Json]] = {
    **dict.fromkeys(("gt", "gte", "lt", "lte"), cast("st.SearchStrategy[Json]", NUMBERS)),
    **dict.fromkeys(("starts_with", "ends_with"), cast("st.SearchStrategy[Json]", TEXTS)),
    "in": cast("st.SearchStrategy[Json]", st.lists(VALUES, max_size=3)),
    "exists": cast("st.SearchStrategy[Json]", st.booleans()),
}


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    op = draw(st.sampled_from([*get_args(StrictOperator), *get_args(LenientOperator)]))
    return {"op": op, "var": draw(KEYS), "value": draw(_OPERANDS.get(op, VALUES))}


@st.composite
def loop_controls(draw: st.DrawFn) -> dict[str, Any]:
    return {"op": "loop_control", "loopId": draw(LOOPS), "whenAbsent": draw(st.sampled_from(["hold", "missing"]))}


def joined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    parts = st.lists(inner, min_size=1, max_size=4)
    junctions = st.tuples(st.sampled_from(["and", "or"]), parts).map(lambda one: {"op": one[0], "of": one[1]})
    negations = inner.map(lambda of: {"op": "not", "of": of})
    return cast("st.SearchStrategy[dict[str, Any]]", st.one_of(junctions, negations))


LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(comparisons(), loop_controls(), st.just({"op": "always"}))
CONDITIONS = st.recursive(LEAVES, joined, max_leaves=10).map(CONDITION.validate_python)
INPUTS = st.tuples(CONTEXTS, DECISIONS).map(
    lambda one: ConditionInputs(
        context=one[0], loop_decisions=cast("tuple[tuple[str | None, LoopDecision], ...]", one[1])
    )
)


@pytest.mark.inv("DEC-2")
@given(st.lists(CONDITIONS, min_size=1, max_size=3), INPUTS)
def test_the_graph_of_conditions_decides_each_exactly_as_it_decides_itself(
    read: list[Condition], snapshot: ConditionInputs
) -> None:
    named = {f"c{number}": condition for number, condition in enumerate(read)}
    schedule = build_schedule(build_graph(named))
    assert isinstance(schedule, Schedule), schedule
    done = run_pass(schedule, snapshot)
    assert isinstance(done, PassResult), done
    assert done.triggers == {trigger_id(name): evaluate(condition, snapshot) for name, condition in named.items()}


# Assignments.

PASSES = 100


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Named conditions, and the assignments that they gate. Each key is set once."""

    conditions: dict[str, Condition]
    assignments: list[Assignment]


@st.composite
def operations(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    op = draw(st.sampled_from(sorted(OPERANDS)))
    least, most = OPERANDS[op]
    return {"op": op, "of": draw(st.lists(inner, min_size=least, max_size=most or 3))}


def computed(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    choices = st.fixed_dictionaries({"op": st.just("if"), "when": comparisons(), "then": inner, "otherwise": inner})
    return cast("st.SearchStrategy[dict[str, Any]]", st.one_of(operations(inner), choices))


TERMS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"op": st.just("read"), "var": KEYS}),
    # Numbers are frequent, because most operations take numbers.
    st.fixed_dictionaries({"op": st.just("constant"), "value": st.one_of(NUMBERS, VALUES)}),
)
PAYLOADS = st.recursive(TERMS, computed, max_leaves=5).map(VALUE.validate_python)


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    conditions = draw(st.dictionaries(st.sampled_from(["x", "y", "z"]), CONDITIONS, min_size=1, max_size=3))
    names = st.sampled_from(sorted(conditions))
    assignments = [
        Assignment(
            name=key,
            effect=SetKey(kind="set", key=key),
            payload=(draw(PAYLOADS),),
            when=tuple(draw(st.lists(names, max_size=2, unique=True))),
        )
        for key in draw(st.lists(st.sampled_from(["k", "a", "10", "9", "é", "B"]), min_size=1, max_size=4, unique=True))
    ]
    return Decision(conditions=conditions, assignments=assignments)


def fits(_: str, value: Json) -> Json | Undecided:
    """Stand for the declarations of the keys: no key takes a text."""
    return Undecided(path=None, found="a string", expected="no string") if isinstance(value, str) else value


def ran(graph: DecisionGraph, inputs: ConditionInputs) -> PassResult | PassAborted:
    schedule = build_schedule(graph)
    assert isinstance(schedule, Schedule), schedule
    return run_pass(schedule, inputs, fits)


def shuffled(decision: Decision, chance: random.Random) -> DecisionGraph:
    """Return the graph of a decision, with conditions, assignments, nodes and edges each inserted in any order."""
    conditions, assignments = list(decision.conditions.items()), list(decision.assignments)
    chance.shuffle(conditions)
    chance.shuffle(assignments)
    graph = build_graph(dict(conditions), assignments)
    nodes, edges = list(graph.nodes), list(graph.edges)
    chance.shuffle(nodes)
    chance.shuffle(edges)
    return DecisionGraph(v=1, nodes=tuple(nodes), edges=tuple(edges))


def expected_outcome(decision: Decision, assignment: Assignment, inputs: ConditionInputs) -> str:
    """Return the outcome of an assignment, from its own condition and value alone: no graph is built.

    Raises:
        CalculationError: Its value cannot be computed.
    """
    value = calculate(assignment.payload[0], inputs)
    if not all(evaluate(decision.conditions[name], inputs) is True for name in assignment.when):
        return "skipped"
    if isinstance(value, Undecided):
        return "failed"
    return "rejected" if isinstance(value, str) else "completed"


@pytest.mark.inv("DEC-1")
@settings(max_examples=examples(25), deadline=None)
@given(decisions(), INPUTS, st.integers(min_value=0, max_value=2**32))
def test_a_graph_that_is_inserted_in_any_order_gives_the_same_bytes_in_a_hundred_passes(
    decision: Decision, inputs: ConditionInputs, seed: int
) -> None:
    chance, found = random.Random(seed), set[tuple[bytes, str]]()
    for _ in range(PASSES):
        graph = shuffled(decision, chance)
        # The written form of a result keeps the order of its nodes, outcomes and effects.
        found.add((canonical_bytes(graph.to_json()), repr(ran(graph, inputs))))
    assert len(found) == 1


@pytest.mark.inv("DEC-4", "DEC-5", "DEC-9")
@given(decisions(), INPUTS)
def test_an_action_does_what_its_assignment_says_unless_the_pass_is_aborted_and_does_nothing(
    decision: Decision, inputs: ConditionInputs
) -> None:
    actions = {action_id(one.name): one for one in decision.assignments}
    done = ran(build_graph(decision.conditions, decision.assignments), inputs)
    try:
        expected = {name: expected_outcome(decision, one, inputs) for name, one in actions.items()}
    except CalculationError:
        event("aborted")
        assert isinstance(done, PassAborted), done
        assert done.outcomes == dict.fromkeys(actions, Outcome(kind="cancelled"))
        assert not hasattr(done, "effects")
        return
    event("completed")
    assert isinstance(done, PassResult), done
    assert {name: outcome.kind for name, outcome in done.outcomes.items()} == expected
    set_to = {effect.action: effect.value for effect in done.effects}
    completed = {name: one for name, one in actions.items() if expected[name] == "completed"}
    assert set_to == {name: calculate(one.payload[0], inputs) for name, one in completed.items()}


@pytest.mark.inv("DEC-5")
@given(decisions(), INPUTS)
def test_one_value_that_cannot_be_computed_takes_every_effect_from_a_pass_that_has_effects(
    decision: Decision, inputs: ConditionInputs
) -> None:
    graph = build_graph(decision.conditions, [*decision.assignments, _broken()])
    done = ran(graph, inputs)
    assert isinstance(done, PassAborted), done
    actions = {node.id for node in graph.nodes if node.kind == "action"}
    assert done.outcomes == dict.fromkeys(actions, Outcome(kind="cancelled"))
    assert not hasattr(done, "effects")


def _broken() -> Assignment:
    zero = Operation(op="divide", of=(Given(op="constant", value=1), Given(op="constant", value=0)))
    return Assignment(name="broken", effect=SetKey(kind="set", key="broken"), payload=(zero,))
