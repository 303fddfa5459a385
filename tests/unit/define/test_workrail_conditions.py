"""Conditions and criteria of the WorkRail dialect: which operator counts, and that leniency is in the plan."""

from typing import Any, cast

import pytest

from interlock.decide.condition import AllOf, Always, AnyOf, Compare, Condition, Not, Operator
from interlock.decide.criteria import Contains, Criteria, EveryOf, Length, Matches, NoneOf, SomeOf
from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.define import document as doc
from interlock.define.front import parse_workflow
from interlock.kernel.canonical import Json


def parsed(**changes: Any) -> doc.WorkflowDocument | list[tuple[str, str]]:
    step = {"id": "a", "title": "A", "prompt": "Do a.", **changes}
    found = parse_workflow({"id": "demo", "name": "Demo", "description": "D", "version": "3.0.0", "steps": [step]})
    return found if isinstance(found, doc.WorkflowDocument) else [(one.path, one.code) for one in found]


def step_with(**changes: Any) -> doc.AgentStep:
    found = parsed(**changes)
    assert isinstance(found, doc.WorkflowDocument), found
    (step,) = found.steps
    assert isinstance(step, doc.AgentStep)
    return step


def when(condition: object) -> Condition | None:
    guard = step_with(runCondition=condition).when
    return guard.condition if guard is not None else None


def criteria(rules: object) -> Criteria | None:
    return step_with(validationCriteria=rules).evidence.criteria


def same(op: str, var: str, value: Json = None) -> Compare:
    return Compare(op=cast("Operator", op), var=var, value=value)


@pytest.mark.parametrize(
    ("operator", "value", "op"),
    [
        ("equals", "Yes", "lenient_equals"),
        ("equals", None, "lenient_equals"),
        ("not_equals", False, "lenient_not_equals"),
        ("not_equals", None, "lenient_not_equals"),
        ("gt", 1, "lenient_gt"),
        ("gte", 1.5, "lenient_gte"),
        ("lt", 0, "lenient_lt"),
        ("lte", -1, "lenient_lte"),
        ("in", ["a", 1, None], "lenient_in"),
        ("in", [], "lenient_in"),
        ("contains", "x", "lenient_contains"),
    ],
)
def test_each_operator_becomes_a_lenient_one_on_a_flat_key(operator: str, value: Json, op: str) -> None:
    condition = when({"var": "a.b", operator: value})
    assert condition == same(op, "a.b", value)
    assert isinstance(condition, Compare)
    assert condition.key == "a.b"


def test_a_key_alone_is_true_if_its_value_is_truthy() -> None:
    assert when({"var": "x"}) == same("lenient_truthy", "x")
    assert when({"var": "x", "gt": None}) == same("lenient_truthy", "x")


def test_of_several_operators_the_first_in_a_fixed_order_counts() -> None:
    order = {"equals": 1, "not_equals": 1, "gt": 1, "gte": 1, "lt": 1, "lte": 1, "in": [1], "contains": "1"}
    names = list(order)
    for first in range(len(names)):
        written = {name: order[name] for name in reversed(names[first:])}
        condition = when({**written, "var": "x", "and": [{"var": "y"}], "not": {}})
        assert condition == same(f"lenient_{names[first]}", "x", order[names[first]])  # type: ignore[arg-type]


def test_conditions_are_joined_as_they_are_written() -> None:
    x, y = {"var": "x"}, {"var": "y"}
    truthy_x, truthy_y = same("lenient_truthy", "x"), same("lenient_truthy", "y")
    assert when({"and": [x, y]}) == AllOf(op="and", of=(truthy_x, truthy_y))
    assert when({"or": [x, {"not": y}]}) == AnyOf(op="or", of=(truthy_x, Not(op="not", of=truthy_y)))
    assert when({"var": "x", "or": [y]}) == AnyOf(op="or", of=(truthy_y,))
    assert when({"and": [x], "or": [y], "not": y}) == AllOf(op="and", of=(truthy_x,))
    assert when({"and": [{}, x]}) == AllOf(op="and", of=(Always(op="always"), truthy_x))


def test_an_empty_and_is_true_and_an_empty_or_is_false() -> None:
    assert when({}) is None
    assert when(None) is None
    assert when({"and": []}) is None
    never = when({"or": []})
    assert never is not None
    assert evaluate(never, ConditionInputs(context={})) is False


def test_a_comparison_without_a_key_is_reported() -> None:
    assert parsed(runCondition={"and": [{"equals": 1}]}) == [("steps[0].runCondition.and[0].var", "missing_key")]


@pytest.mark.parametrize(
    ("condition", "path", "code"),
    [
        ({"var": "x", "startsWith": "y"}, "startsWith", "unknown_key"),
        ({"var": "x", "notEquals": 1}, "notEquals", "unknown_key"),
        ({"not": {"and": [{"vra": "x"}]}}, "not.and[0].vra", "unknown_key"),
        ({"var": "x", "gt": "1"}, "gt", "wrong_type"),
        ({"var": "x", "in": "1"}, "in", "wrong_type"),
        ({"var": "x", "contains": 1}, "contains", "wrong_type"),
        ({"var": ""}, "var", "empty"),
    ],
)
def test_a_fault_in_a_condition_is_reported_at_its_place(condition: object, path: str, code: str) -> None:
    assert parsed(runCondition=condition) == [(f"steps[0].runCondition.{path}", code)]


X = {"type": "contains", "value": "x", "message": "Say x."}
Y = {"type": "contains", "value": "y", "message": "Say y."}
SAYS_X = Contains(kind="contains", value="x", message="Say x.")
SAYS_Y = Contains(kind="contains", value="y", message="Say y.")


def test_rules_are_joined_as_they_are_written() -> None:
    assert criteria(X) == SAYS_X
    assert criteria([X]) == SAYS_X
    assert criteria([X, Y]) == EveryOf(kind="and", of=(SAYS_X, SAYS_Y))
    assert criteria({"and": [X, Y]}) == EveryOf(kind="and", of=(SAYS_X, SAYS_Y))
    assert criteria({"or": [X, {"not": Y}]}) == SomeOf(kind="or", of=(SAYS_X, NoneOf(kind="not", of=SAYS_Y)))
    met = Length(kind="length")
    assert criteria({"and": []}) == met
    assert criteria({"or": []}) == NoneOf(kind="not", of=met)


def test_each_rule_says_the_same_as_in_its_file() -> None:
    message = {"message": "M"}
    assert criteria({"type": "length", "min": 1, "max": 9, **message}) == Length(
        kind="length", min=1, max=9, message="M"
    )
    assert criteria({"type": "length", **message}) == Length(kind="length", message="M")
    assert criteria({"type": "regex", "pattern": "a+", **message}) == Matches(kind="regex", pattern="a+", message="M")
    only_sometimes = criteria({**X, "condition": {"var": "k"}})
    assert isinstance(only_sometimes, Contains)
    assert only_sometimes.when == same("lenient_truthy", "k")
    assert criteria({**X, "condition": {}}) == SAYS_X


def test_flags_that_mean_nothing_here_are_dropped() -> None:
    found = criteria({"type": "regex", "pattern": "a", "flags": "gsium", "message": "M"})
    assert isinstance(found, Matches)
    assert found.flags == "ims"
    dropped = criteria({"type": "regex", "pattern": "a", "flags": "gu", "message": "M"})
    assert isinstance(dropped, Matches)
    assert dropped.flags == ""


@pytest.mark.parametrize(
    ("rule", "path", "code"),
    [
        ({"type": "contains"}, ".value", "missing_key"),
        ({"type": "contains", "value": ""}, ".value", "empty"),
        ({"type": "regex"}, ".pattern", "missing_key"),
        ({"type": "regex", "pattern": "(?=a)"}, ".pattern", "bad_pattern"),
        ({"type": "regex", "pattern": "a", "flags": "y"}, ".flags", "wrong_value"),
        ({"type": "length", "min": -1}, ".min", "wrong_value"),
        ({"type": "schema", "schema": {"type": "object"}}, ".type", "wrong_value"),
        ({"type": "contain", "value": "x"}, ".type", "wrong_value"),
        ({"type": "contains", "valeu": "x", "value": "x"}, ".valeu", "unknown_key"),
    ],
)
def test_a_fault_in_a_rule_is_reported_at_its_place(rule: dict[str, Any], path: str, code: str) -> None:
    rule = {"message": "M", **rule}
    assert parsed(validationCriteria=rule) == [(f"steps[0].validationCriteria{path}", code)]
    assert parsed(validationCriteria=[X, rule]) == [(f"steps[0].validationCriteria[1]{path}", code)]
    nested = {"or": [{"not": rule}, X]}
    assert parsed(validationCriteria=nested) == [(f"steps[0].validationCriteria.or[0].not{path}", code)]


def test_rules_are_joined_in_one_way_at_a_time() -> None:
    assert parsed(validationCriteria={"and": [X], "or": [Y]}) == [("steps[0].validationCriteria", "wrong_value")]
    assert parsed(validationCriteria={"and": None}) == [("steps[0].validationCriteria", "wrong_value")]


def test_a_rule_is_described_in_words() -> None:
    assert parsed(validationCriteria={"type": "contains", "value": "x"}) == [
        ("steps[0].validationCriteria.message", "missing_key")
    ]
