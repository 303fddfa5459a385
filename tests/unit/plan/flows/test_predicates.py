"""Predicates are lowered from the form of workflow files and from a subset of JSONLogic, and from nothing else."""

import pytest

from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.kernel.canonical import Json
from interlock.plan.flows.predicates import lower_predicate

X: Json = {"var": "x"}


def holds(predicate: dict[str, Json], **context: Json) -> object:
    condition = lower_predicate(predicate, lambda path: path)
    assert condition is not None
    return evaluate(condition, ConditionInputs(context=context))


@pytest.mark.inv("OPS-19")
@pytest.mark.parametrize(
    ("predicate", "true", "false"),
    [
        ({"==": [X, 1]}, 1, 2),
        ({"==": [X, "a"]}, "a", "b"),
        ({"==": [X, 1]}, 1, "1"),
        ({"!=": [X, 1]}, 2, 1),
        ({">": [X, 1]}, 2, 1),
        ({">=": [X, 1]}, 1, 0),
        ({"<": [X, 1]}, 0, 1),
        ({"<=": [X, 1]}, 1, 2),
        ({">": [1, X]}, 0, 1),
        ({">=": [1, X]}, 1, 2),
        ({"<": [1, X]}, 2, 1),
        ({"<=": [1, X]}, 1, 0),
        ({"==": [1, X]}, 1, 2),
        ({"in": [X, [1, 2]]}, 2, 3),
        ({"in": ["a", X]}, ["a", "b"], ["b"]),
        ({"in": ["a", X]}, "cat", "dog"),
        ({"!": [{"==": [X, 1]}]}, 2, 1),
        ({"!": {"==": [X, 1]}}, 2, 1),
        ({"and": [{">": [X, 1]}, {"<": [X, 4]}]}, 2, 4),
        ({"or": [{"<": [X, 1]}, {">": [X, 4]}]}, 5, 2),
        ({"and": [{"or": [{"==": [X, 1]}, {"==": [X, 2]}]}, {"!": [{"==": [X, 1]}]}]}, 2, 1),
        ({"var": "x", "equals": 1}, 1, 2),
        ({"var": "x", "startsWith": "a"}, "ab", "ba"),
        ({"not": {"var": "x", "gt": 1}}, 1, 2),
        ({"and": [{"var": "x", "gte": 1}, {"<": [X, 3]}]}, 2, 3),
    ],
    ids=str,
)
def test_a_supported_predicate_is_evaluated(predicate: dict[str, Json], true: Json, false: Json) -> None:
    assert holds(predicate, x=true) is True
    assert holds(predicate, x=false) is False


@pytest.mark.inv("OPS-19")
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ({"==": [X, 1]}, False),
        ({"!=": [X, 1]}, True),
        ({"<": [X, 1]}, False),
        ({"in": [X, [1]]}, False),
        ({"!": [{"==": [X, 1]}]}, True),
        ({"var": "x", "exists": False}, True),
    ],
    ids=str,
)
def test_a_predicate_over_a_missing_value_is_decided_as_for_null(predicate: dict[str, Json], expected: Json) -> None:
    assert holds(predicate) is expected


@pytest.mark.inv("OPS-19")
@pytest.mark.parametrize(
    "predicate",
    [
        {},
        {"+": [1, 2]},
        {"==": [X]},
        {"==": [1, 2]},
        {"==": [X, {"var": "y"}]},
        {"==": [{"var": ["x", 1]}, 1]},
        {"<": [1, X, 3]},
        {"var": "x"},
        {"in": [X, X]},
        {"in": [1, [1, 2]]},
        {"!": [X]},
        {"!": [X, X]},
        {"and": []},
        {"and": [{"+": [1, 2]}]},
        {"kind": "loop_control"},
        {"kind": "condition_ref", "conditionId": "c"},
        {"cel": "x > 1"},
        {"==": [X, 1], "!=": [X, 2]},
    ],
    ids=str,
)
def test_any_other_predicate_is_left_to_its_description(predicate: dict[str, Json]) -> None:
    assert lower_predicate(predicate, lambda path: path) is None


def test_the_paths_of_a_predicate_are_renamed() -> None:
    condition = lower_predicate({"and": [{"==": [X, 1]}, {"!": [{"!=": [X, 2]}]}]}, lambda path: f"s.{path}")
    assert condition is not None
    assert evaluate(condition, ConditionInputs(context={"s": {"x": 1}})) is False
    assert [one["var"] for one in _comparisons(condition.to_json())] == ["s.x"] * 4


def _comparisons(value: Json) -> list[dict[str, Json]]:
    if isinstance(value, dict):
        inside = [found for member in value.values() for found in _comparisons(member)]
        return [value, *inside] if "var" in value else inside
    return [found for member in value for found in _comparisons(member)] if isinstance(value, list) else []
