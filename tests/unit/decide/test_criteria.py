"""Criteria on notes: which are met, and how a violation is described, in time linear in the notes."""

import time
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from interlock.decide.condition import Compare
from interlock.decide.criteria import (
    Contains,
    Criteria,
    EveryOf,
    Length,
    Matches,
    NoneOf,
    SomeOf,
    describe_criteria,
    find_unmet,
)
from interlock.decide.pattern_match import find_pattern_fault, has_match

CRITERIA: TypeAdapter[Criteria] = TypeAdapter(Criteria)
ALPHA, BETA = Contains(kind="contains", value="alpha"), Contains(kind="contains", value="beta")
LONG = Length(kind="length", min=5, max=8)
IS_FAST = Compare(op="equals", var="mode", value="fast")


def lacks(criteria: Criteria, notes: str, **context: Any) -> list[str]:
    return find_unmet(criteria, notes, context)


@pytest.mark.inv("EVID-5")
@pytest.mark.parametrize(
    ("criteria", "met", "not_met"),
    [
        (ALPHA, "so alpha is", "Alpha"),
        (Matches(kind="regex", pattern="^verdict: (yes|no)$"), "verdict: no", "a\nverdict: no"),
        (Matches(kind="regex", pattern="^verdict: (yes|no)$", flags="im"), "a\nVerdict: NO", "verdict: maybe"),
        (Matches(kind="regex", pattern="a.b", flags="s"), "a\nb", "ab"),
        (Matches(kind="regex", pattern=r"\d{3}"), "in 1234 days", "12"),
        (LONG, "12345", "1234"),
        (LONG, "12345678", "123456789"),
        (Length(kind="length", min=2), "éé", "é"),
        (Length(kind="length", max=2), "", "xxx"),
    ],
)
def test_each_rule_is_met_by_what_it_asks_for_and_by_nothing_else(criteria: Criteria, met: str, not_met: str) -> None:
    assert lacks(criteria, met) == []
    found = f", found {len(not_met)}" if isinstance(criteria, Length) else ""
    assert lacks(criteria, not_met) == [f"must {describe_criteria(criteria)}{found}"]


def test_and_reports_each_part_that_is_not_met() -> None:
    every = EveryOf(kind="and", of=(ALPHA, BETA, LONG))
    assert lacks(every, "alphabeta"[:8]) == ["must contain 'beta'"]
    assert len(lacks(every, "x")) == 3
    assert lacks(EveryOf(kind="and", of=(ALPHA, BETA)), "alpha, beta") == []


def test_or_is_met_by_any_part_and_reports_all_if_no_part_is_met() -> None:
    some = SomeOf(kind="or", of=(ALPHA, BETA))
    assert lacks(some, "beta") == lacks(some, "alpha") == []
    assert lacks(some, "gamma") == ["must either contain 'alpha', or contain 'beta'"]


def test_not_is_met_where_its_part_is_not() -> None:
    none = NoneOf(kind="not", of=ALPHA)
    assert lacks(none, "beta") == []
    assert lacks(none, "alpha") == ["must not contain 'alpha'"]
    assert lacks(NoneOf(kind="not", of=none), "alpha") == []


def test_criteria_nest() -> None:
    nested = EveryOf(kind="and", of=(SomeOf(kind="or", of=(ALPHA, BETA)), NoneOf(kind="not", of=LONG)))
    assert lacks(nested, "alpha, at length") == []
    assert len(lacks(nested, "123456")) == 2


def test_a_violation_has_the_author_s_message_and_the_requirement() -> None:
    rule = Contains(kind="contains", value="because", message="Say why.")
    assert lacks(rule, "no") == ["Say why. (must contain 'because')"]


@pytest.mark.parametrize(
    ("context", "is_asked"), [({"mode": "fast"}, True), ({"mode": "slow"}, False), ({}, False), ({"mode": 1}, False)]
)
def test_a_rule_with_a_condition_asks_only_where_the_condition_is_known_to_hold(
    context: dict[str, Any],
    is_asked: bool,  # noqa: FBT001 — a table
) -> None:
    assert bool(lacks(Contains(kind="contains", value="x", when=IS_FAST), "", **context)) is is_asked


def test_a_rule_that_does_not_apply_asks_for_nothing_whatever_it_is_nested_in() -> None:
    off = Contains(kind="contains", value="x", when=IS_FAST)
    assert lacks(EveryOf(kind="and", of=(off, ALPHA)), "alpha") == []
    assert lacks(NoneOf(kind="not", of=off), "x or not", mode="slow") == []
    assert lacks(NoneOf(kind="not", of=off), "no such letter", mode="slow") == []


@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "(", "[", "a{2000}", "*", r"\p{Nope}"])
def test_a_pattern_that_re2_does_not_support_is_reported(pattern: str) -> None:
    assert find_pattern_fault(pattern)


@pytest.mark.parametrize("pattern", ["a", "^a|b$", r"\bdone\b", "(?i)done", "é+", "[[:alpha:]]", r"\p{Greek}"])
def test_a_pattern_of_the_engine_is_usable(pattern: str) -> None:
    assert find_pattern_fault(pattern) is None
    assert find_pattern_fault(pattern, "ims") is None


def test_the_order_of_flags_means_nothing() -> None:
    for flags in ("im", "mi", "imi"):
        assert has_match("^b$", flags, "a\nB")


@pytest.mark.inv("EVID-5")
@pytest.mark.parametrize(("pattern", "last"), [("(a+)+$", "b"), ("(a+a+)+c", ""), ("b$", "")])
def test_a_pattern_that_backtracks_elsewhere_takes_no_time_here(pattern: str, last: str) -> None:
    """Lengths grow, so that time that grows faster ends the test instead of stalling it. A linear search takes 1 ms."""
    for length in (28, 20_000, 200_000):
        begun = time.process_time()
        assert not has_match(pattern, "", "a" * length + last)
        assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "contains", "value": ""},
        {"kind": "contains"},
        {"kind": "regex", "pattern": ""},
        {"kind": "regex", "pattern": "a", "flags": "x"},
        {"kind": "length", "min": -1},
        {"kind": "length", "min": 1.5},
        {"kind": "and", "of": []},
        {"kind": "not"},
        {"kind": "near", "value": "x"},
        {"kind": "contains", "value": "x", "mode": 1},
    ],
    ids=repr,
)
def test_what_is_not_in_the_closed_set_is_no_criterion(wrong: object) -> None:
    with pytest.raises(ValidationError):
        CRITERIA.validate_python(wrong)


def test_criteria_read_and_written_again_are_the_same() -> None:
    value = {
        "kind": "and",
        "of": [
            {"kind": "regex", "pattern": "a", "flags": "i", "message": "M", "when": {"op": "always"}},
            {"kind": "or", "of": [{"kind": "length", "min": 1}, {"kind": "not", "of": {"kind": "length", "max": 0}}]},
        ],
    }
    read = CRITERIA.validate_python(value)
    assert read.to_json() == value


@pytest.mark.parametrize(
    ("criteria", "words"),
    [
        (ALPHA, "contain 'alpha'"),
        (Matches(kind="regex", pattern="a+"), "match the pattern `a+`"),
        (Matches(kind="regex", pattern="a+", flags="i"), "match the pattern `a+` (flags i)"),
        (LONG, "have at least 5 and at most 8 characters"),
        (Length(kind="length", min=5), "have at least 5 characters"),
        (Length(kind="length", max=8), "have at most 8 characters"),
        (EveryOf(kind="and", of=(ALPHA, BETA)), "contain 'alpha'; contain 'beta'"),
    ],
)
def test_criteria_are_described_in_words(criteria: Criteria, words: str) -> None:
    assert describe_criteria(criteria) == words
