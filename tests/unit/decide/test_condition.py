"""Conditions as they are stored: a closed set, strict, with a description and the keys that they read."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from interlock.decide.condition import (
    AllOf,
    Always,
    AnyOf,
    Compare,
    Condition,
    LoopControl,
    Not,
    describe_condition,
    iter_comparisons,
    reads_loop_control,
)

CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
NESTED: dict[str, Any] = {
    "op": "and",
    "of": [
        {"op": "equals", "var": "ticket.kind", "value": "bug"},
        {
            "op": "or",
            "of": [
                {"op": "not", "of": {"op": "gt", "var": "level", "value": 2}},
                {"op": "lenient_equals", "var": "flat.key"},
                {"op": "always"},
            ],
        },
    ],
}
CONTROL: dict[str, Any] = {"op": "loop_control", "loopId": "l", "whenAbsent": "missing"}


def read(value: object) -> Condition:
    return CONDITION.validate_python(value)


def test_a_condition_read_and_written_again_is_the_same() -> None:
    for value in (NESTED, CONTROL, {"op": "always"}):
        assert read(value).to_json() == value


def test_a_comparison_with_null_is_one_without_a_value() -> None:
    assert read({"op": "equals", "var": "a", "value": None}) == read({"op": "equals", "var": "a"})


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"op": "matches", "var": "a", "value": "x"},
        {"op": "equals", "var": "", "value": 1},
        {"op": "equals", "value": 1},
        {"op": "equals", "var": 1, "value": 1},
        {"op": "equals", "var": "a", "value": 1, "flags": "i"},
        {"op": "and", "of": []},
        {"op": "or", "of": []},
        {"op": "not", "of": [{"op": "always"}]},
        {"op": "not"},
        {"op": "loop_control"},
        {"op": "loop_control", "whenAbsent": "maybe"},
        "always",
        None,
    ],
    ids=repr,
)
def test_what_is_not_in_the_closed_set_is_no_condition(wrong: object) -> None:
    with pytest.raises(ValidationError):
        read(wrong)


def test_a_condition_cannot_be_changed_once_it_is_made() -> None:
    condition = read({"op": "always"})
    with pytest.raises(AttributeError, match="immutable"):
        condition.op = "never"  # type: ignore[assignment,misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_comparisons_of_a_condition_are_found_from_left_to_right() -> None:
    assert [term.var for term in iter_comparisons(read(NESTED))] == ["ticket.kind", "level", "flat.key"]
    assert list(iter_comparisons(read(CONTROL))) == []


def test_a_strict_comparison_reads_the_key_its_path_begins_with_and_a_lenient_one_the_whole_name() -> None:
    strict, _, lenient = iter_comparisons(read(NESTED))
    assert (strict.key, lenient.key) == ("ticket", "flat.key")


@pytest.mark.parametrize(
    ("condition", "reads"),
    [
        (read(CONTROL), True),
        (read({"op": "not", "of": CONTROL}), True),
        (read({"op": "or", "of": [{"op": "always"}, {"op": "and", "of": [CONTROL]}]}), True),
        (read(NESTED), False),
        (read({"op": "always"}), False),
    ],
)
def test_loop_control_is_found_at_any_nesting_level(condition: Condition, reads: bool) -> None:  # noqa: FBT001 — a table
    assert reads_loop_control(condition) is reads


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Always(op="always"), "always"),
        (Compare(op="exists", var="a.b", value=True), "`a.b` is set"),
        (Compare(op="exists", var="a.b", value=False), "`a.b` is not set"),
        (Compare(op="not_equals", var="a", value="x"), "`a` not equals 'x'"),
        (Compare(op="equals", var="a", value=True), "`a` equals true"),
        (Compare(op="equals", var="a", value=None), "`a` equals null"),
        (Compare(op="gte", var="a", value=1.5), "`a` gte 1.5"),
        (Compare(op="lenient_truthy", var="a"), "`a` truthy"),
        (Compare(op="lenient_contains", var="a", value="x"), "`a` contains 'x'"),
        (Not(op="not", of=Always(op="always")), "not always"),
        (AllOf(op="and", of=(Always(op="always"), Always(op="always"))), "(always and always)"),
        (AnyOf(op="or", of=(Always(op="always"), Always(op="always"))), "(always or always)"),
        (LoopControl(op="loop_control", when_absent="hold"), "the loop-control artifact says `continue`"),
    ],
)
def test_a_condition_is_described_in_words(condition: Condition, words: str) -> None:
    assert describe_condition(condition) == words
