"""The graph of a condition decides exactly as the condition itself does."""

from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from interlock.decide.condition import Condition, LenientOperator, StrictOperator
from interlock.decide.evaluate import ConditionInputs, LoopDecision, evaluate
from interlock.decide.evaluation_pass import PassResult, run_pass
from interlock.decide.lowering import build_graph, trigger_id
from interlock.decide.schedule import Schedule, build_schedule
from interlock.kernel.canonical import Json

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
