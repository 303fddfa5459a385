"""Computed values: every operation, what it refuses, and what it reads."""

from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from interlock.decide.evaluate import ConditionInputs, Undecided
from interlock.decide.value import (
    OPERANDS,
    CalculationError,
    Operator,
    Value,
    calculate,
    inputs_of_value,
)
from interlock.kernel.canonical import SAFE_INTEGER_MAX, Json, canonical_bytes

VALUE: TypeAdapter[Value] = TypeAdapter(Value)
IS_FAST: dict[str, Any] = {"op": "equals", "var": "mode", "value": "fast"}


def value(form: Any) -> dict[str, Any]:
    """Return the term of a short form: a list is an operation, a string that begins with `$` a path."""
    if isinstance(form, tuple):
        op, *of = cast("tuple[object, ...]", form)
        return {"op": op, "of": [value(one) for one in of]}
    if isinstance(form, str) and form.startswith("$"):
        return {"op": "read", "var": form[1:]}
    return {"op": "constant", "value": form}


def computed(form: Any, **context: Any) -> object:
    term = cast("dict[str, Any]", form) if isinstance(form, dict) and "op" in form else value(form)
    return calculate(VALUE.validate_python(term), ConditionInputs(context=context))


GIVES: list[tuple[Any, Json]] = [
    (("add", 1, 2, 3), 6),
    (("add", 0.5, 0.5), 1),
    (("add", 1.5, 1), 2.5),
    (("subtract", 1, 3), -2),
    (("multiply", 2, 3, -1), -6),
    (("multiply", -1, 0.0), 0),
    (("divide", 1, 2), 0.5),
    (("divide", 6, 3), 2),
    (("negate", 2), -2),
    (("negate", 0), 0),
    (("min", 3, 1, 2), 1),
    (("max", 3, 1, 2.5), 3),
    (("sum", [1, 2, 3.5]), 6.5),
    (("sum", []), 0),
    (("length", [1, [2]]), 2),
    (("length", "héé"), 3),
    (("append", [1], [2]), [1, [2]]),
    (("append", [], None), [None]),
    (("add", ("multiply", "$n", 2), "$box.m"), 13),
    ("text", "text"),
    ("$box", {"m": 7}),
]


@pytest.mark.inv("DEC-14")
@pytest.mark.parametrize(
    ("form", "result"),
    GIVES,
    ids=repr,
)
def test_an_operation_gives_its_result(form: Any, result: Json) -> None:
    found = computed(form, n=3, box={"m": 7})
    assert (found, type(found)) == (result, type(result))


REFUSED: list[tuple[Any, str, str]] = [
    (("add", 1, "1"), "a string", "a number"),
    (("add", 1, True), "true or false", "a number"),
    (("add", 1, None), "null", "a number"),
    (("negate", []), "a list", "a number"),
    (("max", 1, "$text"), "a string", "a number"),
    (("sum", 1), "a number", "a list"),
    (("sum", [1, "2"]), "a string", "a number"),
    (("length", {}), "an object", "a list or a string"),
    (("append", "a", "b"), "a string", "a list"),
    (("divide", 1, 0), "a division by zero", "a divisor other than 0"),
    (("divide", 1, ("subtract", 1.5, 1.5)), "a division by zero", "a divisor other than 0"),
    (("add", SAFE_INTEGER_MAX, 1), "an integer of 2^53 or beyond", "a number that JSON keeps exact"),
    (("multiply", 1e300, 10), "an integer of 2^53 or beyond", "a number that JSON keeps exact"),
    (("multiply", 1e300, 1e300), "a number that is not finite", "a number that JSON keeps exact"),
    (("add", SAFE_INTEGER_MAX, 1, -1), "an integer of 2^53 or beyond", "a number that JSON keeps exact"),
]


@pytest.mark.inv("DEC-14")
@pytest.mark.parametrize(
    ("form", "found", "expected"),
    REFUSED,
    ids=repr,
)
def test_an_operation_refuses_what_it_cannot_compute(form: Any, found: str, expected: str) -> None:
    with pytest.raises(CalculationError) as caught:
        computed(form, text="1")
    assert (caught.value.found, caught.value.expected) == (found, expected)


@pytest.mark.inv("DEC-14")
def test_a_missing_operand_leaves_the_value_undecided() -> None:
    missing = Undecided(path="gone.part", found="not set", expected="a value")
    assert computed(("add", 1, "$gone.part")) == missing
    choice = {"op": "if", "when": IS_FAST, "then": value(1), "otherwise": value(2)}
    assert computed(choice) == Undecided(path="mode", found="not set", expected="a value")


@pytest.mark.inv("DEC-14")
def test_of_two_values_only_the_chosen_one_is_computed() -> None:
    choice = {"op": "if", "when": IS_FAST, "then": value(("divide", 1, 0)), "otherwise": value("$n")}
    assert computed(choice, mode="slow", n=5) == 5
    with pytest.raises(CalculationError):
        computed(choice, mode="fast", n=5)


def test_a_value_reads_its_paths_and_those_of_its_conditions_each_once() -> None:
    choice = {"op": "if", "when": IS_FAST, "then": value(("add", "$n", "$n")), "otherwise": value(("length", "$mode"))}
    assert inputs_of_value(VALUE.validate_python(choice)) == ("path:n", "path:mode")


def test_every_operation_has_its_number_of_operands() -> None:
    assert set(OPERANDS) == set(get_args(Operator))


NUMBERS = st.one_of(
    st.integers(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX), st.floats(allow_nan=False, allow_infinity=False), st.just(0)
)


@pytest.mark.inv("DEC-14")
@given(st.sampled_from(["add", "subtract", "multiply", "divide", "min", "max"]), NUMBERS, NUMBERS)
def test_every_result_is_a_number_that_json_keeps_as_it_is(op: str, one: float, other: float) -> None:
    try:
        found = computed((op, one, other))
    except CalculationError:
        return
    assert isinstance(found, int | float)
    assert abs(found) <= SAFE_INTEGER_MAX or isinstance(found, float)
    assert not isinstance(found, float) or not found.is_integer()
    assert canonical_bytes(found)
