"""Evaluation of conditions: strict operators never convert types, and a missing value is not false."""

from typing import cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.condition import (
    AllOf,
    Always,
    AnyOf,
    Compare,
    Condition,
    LenientOperator,
    LoopControl,
    Not,
    Operator,
    StrictOperator,
)
from interlock.decide.evaluate import (
    ABSENT,
    ConditionInputs,
    LoopDecision,
    Undecided,
    Verdict,
    describe_kind,
    evaluate,
    value_at,
)
from interlock.kernel.canonical import Json

CONTEXT: dict[str, Json] = {
    "text": "fast",
    "empty": "",
    "number": 3,
    "half": 1.5,
    "zero": 0,
    "yes": True,
    "no": False,
    "null": None,
    "list": ["a", 1, {"k": [None]}],
    "none": [],
    "box": {"size": 3, "inner": {"deep": "down"}, "a.b": 1},
    "a.b": "flat",
}
GIVEN = ConditionInputs(context=CONTEXT)


def compare(op: str, var: str, value: object = None) -> Compare:
    return Compare(op=cast("Operator", op), var=var, value=cast("Json", value))


def verdict_of(op: str, var: str, value: object = None) -> Verdict:
    return evaluate(compare(op, var, value), GIVEN)


STRICT: list[tuple[str, str, object, bool]] = [
    ("equals", "text", "fast", True),
    ("equals", "text", "FAST", False),
    ("equals", "text", " fast", False),
    ("equals", "number", 3, True),
    ("equals", "number", 3.0, True),
    ("equals", "number", "3", False),
    ("equals", "yes", True, True),
    ("equals", "yes", 1, False),
    ("equals", "yes", "true", False),
    ("equals", "zero", False, False),
    ("equals", "no", 0, False),
    ("equals", "null", None, True),
    ("equals", "null", False, False),
    ("equals", "empty", None, False),
    ("equals", "list", ["a", 1, {"k": [None]}], True),
    ("equals", "list", ["a", True, {"k": [None]}], False),
    ("equals", "list", ["a", 1], False),
    ("equals", "box.inner", {"deep": "down"}, True),
    ("equals", "box.inner", {"deep": "down", "more": 1}, False),
    ("equals", "box.inner.deep", "down", True),
    ("not_equals", "text", "slow", True),
    ("not_equals", "text", "fast", False),
    ("not_equals", "number", "3", True),
    ("not_equals", "yes", 1, True),
    ("gt", "number", 2, True),
    ("gt", "number", 3, False),
    ("gte", "number", 3, True),
    ("gte", "number", 4, False),
    ("lt", "half", 2, True),
    ("lt", "half", 1.5, False),
    ("lte", "half", 1.5, True),
    ("lte", "half", 1, False),
    ("in", "text", ["slow", "fast"], True),
    ("in", "text", [], False),
    ("in", "number", ["3", 4], False),
    ("in", "yes", [1], False),
    ("in", "null", [None], True),
    ("in", "box.inner", [{"deep": "down"}], True),
    ("contains", "list", "a", True),
    ("contains", "list", 1, True),
    ("contains", "list", True, False),
    ("contains", "list", {"k": [None]}, True),
    ("contains", "none", "a", False),
    ("contains", "text", "as", True),
    ("contains", "text", "AS", False),
    ("contains", "text", "", True),
    ("starts_with", "text", "fa", True),
    ("starts_with", "text", "st", False),
    ("ends_with", "text", "st", True),
    ("ends_with", "text", "fa", False),
    ("exists", "text", True, True),
    ("exists", "text", False, False),
    ("exists", "null", True, True),
    ("exists", "missing", True, False),
    ("exists", "missing", False, True),
    ("exists", "box.inner.deep", True, True),
    ("exists", "box.inner.deeper", True, False),
    ("exists", "text.length", True, False),
]


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize(("op", "var", "value", "holds"), STRICT, ids=lambda part: repr(part)[:30])
def test_a_strict_operator_compares_without_coercion(op: str, var: str, value: object, holds: bool) -> None:  # noqa: FBT001 — a table
    assert verdict_of(op, var, value) is holds


def test_the_table_holds_every_strict_operator_both_ways() -> None:
    assert {(op, holds) for op, _, _, holds in STRICT} == {
        (op, holds) for op in get_args(StrictOperator) for holds in (True, False)
    }


@pytest.mark.inv("DEC-13")
@pytest.mark.parametrize("op", [op for op in get_args(StrictOperator) if op != "exists"])
@pytest.mark.parametrize("path", ["missing", "text.more", "box.missing", "list.0", "null.x", "a.b"])
def test_a_missing_value_is_neither_equal_nor_different_but_undecided(op: str, path: str) -> None:
    verdict = verdict_of(op, path, ["x"] if op == "in" else "x")
    assert isinstance(verdict, Undecided)
    assert (verdict.path, verdict.found) == (path, "not set")


@pytest.mark.parametrize(
    ("op", "var", "value", "found", "wanted"),
    [
        ("gt", "text", 1, "a string", "a number"),
        ("gte", "yes", 0, "true or false", "a number"),
        ("lt", "null", 1, "null", "a number"),
        ("lte", "list", 1, "a list", "a number"),
        ("contains", "number", 3, "a number", "a list or a string"),
        ("contains", "box", "size", "an object", "a list or a string"),
        ("contains", "text", 1, "a string", "a list or a string"),
        ("starts_with", "number", "3", "a number", "a string"),
        ("ends_with", "list", "a", "a list", "a string"),
    ],
)
def test_a_value_of_the_wrong_type_is_undecided_and_reported(
    op: str, var: str, value: object, found: str, wanted: str
) -> None:
    assert verdict_of(op, var, value) == Undecided(path=var, found=found, expected=wanted)


T, F = Always(op="always"), Not(op="not", of=Always(op="always"))
U, V = compare("equals", "missing", 1), compare("gt", "text", 1)
FIRST, SECOND = evaluate(U, GIVEN), evaluate(V, GIVEN)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((T,), True),
        ((F,), False),
        ((U,), FIRST),
        ((T, T), True),
        ((T, F), False),
        ((F, T), False),
        ((F, U), False),
        ((U, F), False),
        ((T, U), FIRST),
        ((U, T), FIRST),
        ((U, V), FIRST),
        ((V, U), SECOND),
        ((U, V, F), False),
    ],
)
def test_and_is_false_where_one_part_is_and_else_undecided_where_one_part_is(
    parts: tuple[Condition, ...], verdict: Verdict
) -> None:
    assert evaluate(AllOf(op="and", of=parts), GIVEN) == verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((T,), True),
        ((F,), False),
        ((U,), FIRST),
        ((F, F), False),
        ((T, F), True),
        ((F, T), True),
        ((T, U), True),
        ((U, T), True),
        ((F, U), FIRST),
        ((U, F), FIRST),
        ((V, U), SECOND),
        ((U, V, T), True),
    ],
)
def test_or_is_true_where_one_part_is_and_else_undecided_where_one_part_is(
    parts: tuple[Condition, ...], verdict: Verdict
) -> None:
    assert evaluate(AnyOf(op="or", of=parts), GIVEN) == verdict


def test_not_negates_a_decided_part_and_leaves_an_undecided_one() -> None:
    assert evaluate(Not(op="not", of=T), GIVEN) is False
    assert evaluate(Not(op="not", of=F), GIVEN) is True
    assert evaluate(Not(op="not", of=U), GIVEN) == FIRST


def conditions() -> st.SearchStrategy[Condition]:
    leaves: st.SearchStrategy[Condition] = st.sampled_from([T, F, U, V])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda of: AllOf(op="and", of=tuple(of))),
            st.lists(inner, min_size=1, max_size=3).map(lambda of: AnyOf(op="or", of=tuple(of))),
            inner.map(lambda of: Not(op="not", of=of)),
        ),
        max_leaves=12,
    )


def kleene(condition: Condition) -> float:
    """Say what three-valued logic makes of a condition: 0, 1/2 or 1."""
    match condition:
        case AllOf():
            return min(map(kleene, condition.of))
        case AnyOf():
            return max(map(kleene, condition.of))
        case Not():
            return 1 - kleene(condition.of)
        case Always():
            return 1
        case _:
            return 1 / 2


@pytest.mark.inv("DEC-13")
@given(conditions())
def test_every_combination_is_what_three_valued_logic_makes_of_it(condition: Condition) -> None:
    verdict = evaluate(condition, GIVEN)
    assert (1 / 2 if isinstance(verdict, Undecided) else float(verdict)) == kleene(condition)


LENIENT: list[tuple[str, object, object, bool]] = [
    ("lenient_equals", "Fast ", " fast", True),
    ("lenient_equals", "fast", "slow", False),
    ("lenient_equals", 3, "3", True),
    ("lenient_equals", "3.0", 3, True),
    ("lenient_equals", "three", 3, False),
    ("lenient_equals", True, "yes", True),
    ("lenient_equals", "TRUE", True, True),
    ("lenient_equals", 1, True, True),
    ("lenient_equals", "no", False, True),
    ("lenient_equals", 0, False, True),
    ("lenient_equals", "maybe", True, False),
    ("lenient_equals", "maybe", False, False),
    ("lenient_equals", [], False, False),
    ("lenient_equals", None, None, True),
    ("lenient_equals", None, False, False),
    ("lenient_equals", None, "", False),
    ("lenient_equals", ["a"], ["a"], True),
    ("lenient_not_equals", "Fast", "fast", False),
    ("lenient_not_equals", "slow", "fast", True),
    ("lenient_not_equals", None, "fast", True),
    ("lenient_gt", 3, 2, True),
    ("lenient_gt", "3", 2, False),
    ("lenient_gt", None, 2, False),
    ("lenient_gt", 3, "2", False),
    ("lenient_gt", True, 0, False),
    ("lenient_gte", 2, 2, True),
    ("lenient_gte", None, 0, False),
    ("lenient_lt", 1, 2, True),
    ("lenient_lt", None, 2, False),
    ("lenient_lte", 2, 2, True),
    ("lenient_lte", "2", 2, False),
    ("lenient_in", "FAST", ["slow", "fast"], True),
    ("lenient_in", 3, ["3"], True),
    ("lenient_in", "x", "xyz", False),
    ("lenient_in", None, [None], True),
    ("lenient_contains", ["A", 2], "a", True),
    ("lenient_contains", ["A", 2], "2", True),
    ("lenient_contains", "Very Fast", " FAST ", True),
    ("lenient_contains", "x3", 3, True),
    ("lenient_contains", 33, 3, False),
    ("lenient_contains", None, "x", False),
    ("lenient_truthy", "x", None, True),
    ("lenient_truthy", "", None, False),
    ("lenient_truthy", 0, None, False),
    ("lenient_truthy", [0], None, True),
    ("lenient_truthy", [], None, False),
    ("lenient_truthy", {}, None, False),
    ("lenient_truthy", None, None, False),
]


@pytest.mark.parametrize(("op", "found", "value", "holds"), LENIENT, ids=lambda part: repr(part)[:30])
def test_a_lenient_operator_compares_as_older_files_expect(op: str, found: object, value: object, holds: bool) -> None:  # noqa: FBT001 — a table
    context: dict[str, Json] = {"k": cast("Json", found)}
    assert evaluate(compare(op, "k", value), ConditionInputs(context=context)) is holds


def test_the_table_holds_every_lenient_operator_both_ways() -> None:
    assert {(op, holds) for op, _, _, holds in LENIENT} == {
        (op, holds) for op in get_args(LenientOperator) for holds in (True, False)
    }


@pytest.mark.parametrize("op", get_args(LenientOperator))
def test_a_lenient_operator_always_decides_and_reads_a_missing_value_as_null(op: str) -> None:
    value: object = ["x"] if op == "lenient_in" else "x"
    missing, null = evaluate(compare(op, "gone", value), GIVEN), evaluate(compare(op, "null", value), GIVEN)
    assert missing == null
    assert isinstance(missing, bool)


def test_a_lenient_operator_reads_one_flat_key() -> None:
    assert verdict_of("lenient_equals", "a.b", "flat") is True
    assert verdict_of("lenient_equals", "box.size", 3) is False


def control(loop_id: str | None, when_absent: str = "missing") -> LoopControl:
    return LoopControl.of_json({"op": "loop_control", "whenAbsent": when_absent, "loopId": loop_id})


def decided(condition: LoopControl, *decisions: tuple[str | None, str]) -> Verdict:
    given = ConditionInputs(context={}, loop_decisions=cast("tuple[tuple[str | None, LoopDecision], ...]", decisions))
    return evaluate(condition, given)


def test_loop_control_holds_while_the_artifact_says_continue() -> None:
    assert decided(control("l"), ("l", "continue")) is True
    assert decided(control("l"), ("l", "stop")) is False
    assert decided(control("l"), (None, "stop")) is False
    assert decided(control(None), ("other", "stop")) is False


def test_of_several_decisions_the_first_for_the_loop_counts() -> None:
    assert decided(control("l"), ("other", "stop"), ("l", "continue"), ("l", "stop")) is True


def test_without_a_decision_loop_control_holds_or_is_missing_as_it_says() -> None:
    for decisions in ((), (("other", "stop"),)):
        assert decided(control("l", "hold"), *decisions) is True
        missing = decided(control("l"), *decisions)
        assert isinstance(missing, Undecided)
        assert missing.path is None


def test_null_at_a_path_is_not_the_same_as_no_value() -> None:
    assert value_at(CONTEXT, "null") is None
    assert value_at(CONTEXT, "nul") is ABSENT
    assert value_at(CONTEXT, "box.a.b") is ABSENT
    assert value_at(CONTEXT, "box.inner") == {"deep": "down"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (False, "true or false"),
        (0, "a number"),
        (0.5, "a number"),
        ("", "a string"),
        ({}, "an object"),
        ([], "a list"),
    ],
    ids=repr,
)
def test_each_kind_of_value_has_its_name(value: object, words: str) -> None:
    assert describe_kind(value) == words
