"""Patterns of a file: one that is too large, alone or with the others, is refused before RE2 compiles it."""

from typing import Any

import pytest

from interlock.define.diagnostics import Diagnostic
from interlock.define.front import FaultyDocument, parse_document
from interlock.define.patterns import PatternChecker
from interlock.kernel.budgets.workflow import (
    PATTERN_CHARS_MAX,
    PATTERN_SIZE_MAX,
    PATTERNS_SIZE_MAX,
)

LARGE = r"\p{L}{1,%d}"
"""Fifty of them come to three quarters of what one pattern may be."""


def judged(*patterns: str, size_max: int = PATTERNS_SIZE_MAX) -> list[Diagnostic]:
    judge = PatternChecker(size_max)
    return [one for at, pattern in enumerate(patterns) for one in judge.check(pattern, "", f"[{at}].pattern")]


def native(*patterns: str) -> dict[str, Any]:
    rules = [{"type": "regex", "pattern": pattern, "message": "Say more."} for pattern in patterns]
    steps = [{"id": "a", "title": "A", "prompt": "Do a.", "validationCriteria": {"and": rules}}]
    return {"id": "test.patterns", "name": "Patterns", "steps": steps}


def workrail(*patterns: str) -> dict[str, Any]:
    return native(*patterns) | {"id": "patterns", "version": "1.0.0", "description": "Has patterns."}


@pytest.mark.inv("LIM-3")
@pytest.mark.parametrize("form", [native, workrail])
def test_a_pattern_that_is_too_large_is_refused_at_its_place(form: Any) -> None:
    found = parse_document(form("fine", r"[\p{L}\p{N}]{1,900}", "also fine", "("))
    assert isinstance(found, FaultyDocument)
    large, broken = [one for one in found.diagnostics if one.code == "bad_pattern"]
    assert large.path == "steps[0].validationCriteria.and[1].pattern"
    assert str(PATTERN_SIZE_MAX) in large.message
    assert "use fewer repetitions" in large.fix.lower()
    assert broken.path == "steps[0].validationCriteria.and[3].pattern"


@pytest.mark.inv("LIM-3")
def test_the_patterns_of_a_file_are_judged_up_to_a_total_and_the_first_beyond_is_reported() -> None:
    large = [LARGE % times for times in (50, 51, 52, 53)]
    assert judged(*large[:2], *large[:2], *large[:2]) == [], "each text counts once"
    (found,) = judged(*large, "(", "a")
    assert found.path == "[2].pattern"
    assert str(PATTERNS_SIZE_MAX) in found.message


@pytest.mark.inv("LIM-3")
def test_refused_patterns_count_so_that_a_file_of_them_ends_early() -> None:
    found = judged(*(LARGE % times for times in range(900, 1000)))
    assert [one.path for one in found] == ["[0].pattern", "[1].pattern", "[2].pattern"]
    assert str(PATTERNS_SIZE_MAX) in found[-1].message


@pytest.mark.inv("LIM-3")
def test_a_file_that_one_call_cannot_check_asks_for_another_call() -> None:
    (found,) = judged(LARGE % 50, size_max=100)
    assert found.fix.startswith("Call again")
    assert len(judged("a", "b", size_max=0)) == 1


def test_a_pattern_that_is_too_long_or_is_none_is_reported_at_each_of_its_places() -> None:
    assert judged("a" * PATTERN_CHARS_MAX) == []
    (found,) = judged("a" * (PATTERN_CHARS_MAX + 1))
    assert str(PATTERN_CHARS_MAX) in found.message
    assert [one.path for one in judged("(?=a)", "b", "(?=a)")] == ["[0].pattern", "[2].pattern"]
