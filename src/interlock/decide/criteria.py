"""Criteria on notes: texts that must be there, patterns, lengths; judged in linear time (EVID-5)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Literal, Protocol, cast

from pydantic import Field

from interlock.decide.condition import Condition, Term
from interlock.decide.condition import describe_condition as condition_in_words
from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.kernel.budgets import PATTERN_MEMORY_BYTES_MAX, PATTERNS_KEPT_MAX
from interlock.kernel.canonical import Json


class Contains(Term):
    """The notes hold this text."""

    kind: Literal["contains"]
    value: Annotated[str, Field(min_length=1)]
    message: str | None = None
    when: Condition | None = None


class Matches(Term):
    """The notes match this pattern somewhere. Patterns are RE2's: no look-around, no back-reference, linear time."""

    kind: Literal["regex"]
    pattern: Annotated[str, Field(min_length=1)]
    flags: Annotated[str, Field(pattern=r"^[ims]*$")] = ""
    message: str | None = None
    when: Condition | None = None


class Length(Term):
    """The notes have so many characters."""

    kind: Literal["length"]
    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None
    message: str | None = None
    when: Condition | None = None


class EveryOf(Term):
    """Every part is met."""

    kind: Literal["and"]
    of: Annotated[tuple["Criteria", ...], Field(min_length=1, strict=False)]


class SomeOf(Term):
    """Some part is met."""

    kind: Literal["or"]
    of: Annotated[tuple["Criteria", ...], Field(min_length=1, strict=False)]


class NoneOf(Term):
    """The part is not met."""

    kind: Literal["not"]
    of: "Criteria"


Criteria = Annotated[Contains | Matches | Length | EveryOf | SomeOf | NoneOf, Field(discriminator="kind")]

EveryOf.model_rebuild()
SomeOf.model_rebuild()
NoneOf.model_rebuild()


def find_unmet(criteria: Criteria, notes: str, context: Mapping[str, Json]) -> list[str]:
    """Return what the notes lack, each in words; nothing where they meet the criteria."""
    if isinstance(criteria, EveryOf):
        return [lack for part in criteria.of for lack in find_unmet(part, notes, context)]
    return [_describe_violation(criteria)] if _evaluate(criteria, notes, context) is False else []


def _evaluate(criteria: Criteria, notes: str, context: Mapping[str, Json]) -> bool | None:
    """Say whether notes meet criteria. None: nothing is asked, for no rule in them applies."""
    match criteria:
        case Contains() | Matches() | Length():
            # A rule whose own condition cannot be decided does not apply.
            applies = criteria.when is None or evaluate(criteria.when, ConditionInputs(context=context)) is True
            return _is_met(criteria, notes) if applies else None
        case NoneOf():
            inner = _evaluate(criteria.of, notes, context)
            return None if inner is None else not inner
        case EveryOf() | SomeOf():
            settling = isinstance(criteria, SomeOf)
            held = {_evaluate(part, notes, context) for part in criteria.of} - {None}
            return None if not held else settling if settling in held else not settling


def iter_rules(criteria: Criteria) -> Iterator[Contains | Matches | Length]:
    """Yield the rules that criteria are made of."""
    match criteria:
        case EveryOf() | SomeOf():
            for part in criteria.of:
                yield from iter_rules(part)
        case NoneOf():
            yield from iter_rules(criteria.of)
        case Contains() | Matches() | Length():
            yield criteria


def iter_rule_conditions(criteria: Criteria) -> Iterator[Condition]:
    """Yield the conditions under which the rules of criteria apply."""
    return (rule.when for rule in iter_rules(criteria) if rule.when is not None)


def describe_criteria(criteria: Criteria) -> str:
    """Return what criteria ask for, as one line for an agent; a rule that asks only now and then says when."""
    is_rule = isinstance(criteria, Contains | Matches | Length)
    where = f" (where {condition_in_words(criteria.when)})" if is_rule and criteria.when is not None else ""
    return _describe_requirement(criteria) + where


def _describe_requirement(criteria: Criteria) -> str:
    match criteria:
        case Contains():
            return f"contain {criteria.value!r}"
        case Matches():
            return f"match the pattern `{criteria.pattern}`" + (f" (flags {criteria.flags})" if criteria.flags else "")
        case Length():
            bounds = [f"at least {criteria.min}"] if criteria.min is not None else []
            bounds += [f"at most {criteria.max}"] if criteria.max is not None else []
            return f"have {' and '.join(bounds) or 'any number of'} characters"
        case EveryOf():
            return "; ".join(describe_criteria(part) for part in criteria.of)
        case SomeOf():
            return "either " + ", or ".join(describe_criteria(part) for part in criteria.of)
        case NoneOf():
            return f"not {describe_criteria(criteria.of)}"


def _describe_violation(criteria: Criteria) -> str:
    wanted = f"must {describe_criteria(criteria)}"
    is_rule = isinstance(criteria, Contains | Matches | Length)
    return f"{criteria.message} ({wanted})" if is_rule and criteria.message else wanted


def _is_met(rule: Contains | Matches | Length, notes: str) -> bool:
    match rule:
        case Contains():
            return rule.value in notes
        case Matches():
            return has_match(rule.pattern, rule.flags, notes)
        case Length():
            return (rule.min or 0) <= len(notes) and (rule.max is None or len(notes) <= rule.max)


def has_match(pattern: str, flags: str, text: str) -> bool:
    """Say whether a pattern matches somewhere in a text. Takes time linear in the text."""
    return _compile(pattern, flags).search(text) is not None


@lru_cache(PATTERNS_KEPT_MAX)
def find_pattern_fault(pattern: str, flags: str = "") -> str | None:
    """Return why the engine cannot use a pattern, or None where it can. The verdict is kept, a refusal too."""
    import re2  # noqa: PLC0415 — see `_compiled`

    try:
        _compile(pattern, flags)
    except cast("type[Exception]", re2.error) as error:
        found = cast("object", error.args[0])
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    return None


class _Pattern(Protocol):
    def search(self, text: str) -> object | None: ...


def _compile(pattern: str, flags: str) -> _Pattern:
    import re2  # noqa: PLC0415 — few steps have patterns; a server without them does not pay for the engine

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    return cast("_Pattern", re2.compile(f"(?{''.join(sorted(set(flags)))}){pattern}" if flags else pattern, options))
