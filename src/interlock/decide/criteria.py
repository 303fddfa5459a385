"""Criteria on notes: required texts, patterns and lengths, checked in linear time (EVID-5)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from interlock.decide.condition import Condition, OneOf, Term, describe_condition
from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.decide.pattern_match import has_match
from interlock.kernel.canonical import Json
from interlock.kernel.shape import Shape, limits

if TYPE_CHECKING:
    Criteria: TypeAlias = "Contains | Matches | Length | EveryOf | SomeOf | NoneOf"
else:

    class Criteria(OneOf):
        """Any criteria."""

        key: ClassVar[str] = "kind"

        @classmethod
        def members(cls) -> tuple[type[Shape], ...]:
            """Return the classes of the union."""
            return CRITERIA_TERMS


class Contains(Term):
    """The notes contain this text."""

    kind: Literal["contains"]
    value: Annotated[str, *limits(min_length=1)]
    message: str | None = None
    when: Condition | None = None


class Matches(Term):
    """The pattern matches somewhere in the notes. It is an RE2 pattern: no look-around, no back-references."""

    kind: Literal["regex"]
    pattern: Annotated[str, *limits(min_length=1)]
    flags: Annotated[str, *limits(pattern=r"^[ims]*$")] = ""
    message: str | None = None
    when: Condition | None = None


class Length(Term):
    """The notes have from `min` to `max` characters."""

    kind: Literal["length"]
    min: Annotated[int, *limits(ge=0)] | None = None
    max: Annotated[int, *limits(ge=0)] | None = None
    message: str | None = None
    when: Condition | None = None


class EveryOf(Term):
    """Every part is met."""

    kind: Literal["and"]
    of: Annotated[tuple[Criteria, ...], *limits(min_length=1)]


class SomeOf(Term):
    """At least one part is met."""

    kind: Literal["or"]
    of: Annotated[tuple[Criteria, ...], *limits(min_length=1)]


class NoneOf(Term):
    """The part is not met."""

    kind: Literal["not"]
    of: Criteria


CRITERIA_TERMS = (Contains, Matches, Length, EveryOf, SomeOf, NoneOf)


def find_unmet(criteria: Criteria, notes: str, context: Mapping[str, Json]) -> list[str]:
    """Describe each criterion that the notes do not meet. The list is empty if they meet all."""
    if isinstance(criteria, EveryOf):
        return [violation for part in criteria.of for violation in find_unmet(part, notes, context)]
    return [_describe_violation(criteria, notes)] if _evaluate(criteria, notes, context) is False else []


def _evaluate(criteria: Criteria, notes: str, context: Mapping[str, Json]) -> bool | None:
    """Return whether notes meet criteria, or None if none of their rules applies."""
    match criteria:
        case Contains() | Matches() | Length():
            # A rule whose own condition cannot be decided does not apply.
            applies = criteria.when is None or evaluate(criteria.when, ConditionInputs(context=context)) is True
            return _is_met(criteria, notes) if applies else None
        case NoneOf():
            inner = _evaluate(criteria.of, notes, context)
            return None if inner is None else not inner
        case EveryOf() | SomeOf():
            # One true part decides `or`, one false part decides `and`.
            deciding = isinstance(criteria, SomeOf)
            verdicts = {_evaluate(part, notes, context) for part in criteria.of} - {None}
            return None if not verdicts else deciding if deciding in verdicts else not deciding


def iter_rules(criteria: Criteria) -> Iterator[Contains | Matches | Length]:
    """Yield every rule inside criteria."""
    match criteria:
        case EveryOf() | SomeOf():
            for part in criteria.of:
                yield from iter_rules(part)
        case NoneOf():
            yield from iter_rules(criteria.of)
        case Contains() | Matches() | Length():
            yield criteria


def iter_rule_conditions(criteria: Criteria) -> Iterator[Condition]:
    """Yield the conditions under which rules of the criteria apply."""
    return (rule.when for rule in iter_rules(criteria) if rule.when is not None)


def describe_criteria(criteria: Criteria) -> str:
    """Describe criteria in one line for an agent, with the condition of a rule that has one."""
    is_rule = isinstance(criteria, Contains | Matches | Length)
    where = f" (where {describe_condition(criteria.when)})" if is_rule and criteria.when is not None else ""
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


def _describe_violation(criteria: Criteria, notes: str) -> str:
    requirement = f"must {describe_criteria(criteria)}"
    if isinstance(criteria, Length):
        requirement += f", found {len(notes)}"
    is_rule = isinstance(criteria, Contains | Matches | Length)
    return f"{criteria.message} ({requirement})" if is_rule and criteria.message else requirement


def _is_met(rule: Contains | Matches | Length, notes: str) -> bool:
    match rule:
        case Contains():
            return rule.value in notes
        case Matches():
            return has_match(rule.pattern, rule.flags, notes)
        case Length():
            return (rule.min or 0) <= len(notes) and (rule.max is None or len(notes) <= rule.max)
