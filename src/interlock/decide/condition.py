"""Conditions as the plan stores them: a closed set of operators on context, and one on loop control (DEC-12).

A strict operator never converts types. The operators that begin with `lenient_` convert types, as WorkRail files
expect. Only the WorkRail front end writes them, so the plan itself says which rule applies; there is no setting.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias, Union, get_args

import msgspec

from interlock.kernel.canonical import Json
from interlock.kernel.shape import Choice, Shape, limits

StrictOperator = Literal[
    "equals", "not_equals", "gt", "gte", "lt", "lte", "in", "contains", "starts_with", "ends_with", "exists"
]
LenientOperator = Literal[
    "lenient_equals",
    "lenient_not_equals",
    "lenient_gt",
    "lenient_gte",
    "lenient_lt",
    "lenient_lte",
    "lenient_in",
    "lenient_contains",
    "lenient_truthy",
]
Operator = Literal[StrictOperator, LenientOperator]


class Term(Shape):
    """A part of a condition: strict, frozen, closed."""


class OneOf(Choice):
    """A closed union of terms, of which each has its own values of one member. It stands for the union at run time."""

    key: ClassVar[str] = "op"

    @classmethod
    @cache
    def by_value(cls) -> Mapping[str, type[Shape]]:
        """Return the class of each value of the member."""
        fields = ((one, field) for one in cls.members() for field in msgspec.structs.fields(one))
        return {name: one for one, field in fields if field.name == cls.key for name in get_args(field.type)}

    @classmethod
    def pick(cls, members: Mapping[str, object]) -> type[Shape]:
        """Return the class of a term by the value of its member."""
        value = members.get(cls.key)
        if not isinstance(value, str) or value not in cls.by_value():
            raise ValueError(f"no known {cls.key}")
        return cls.by_value()[value]

    @classmethod
    def union(cls) -> object:
        """Return the union in pydantic's terms."""
        from pydantic import Field  # noqa: PLC0415 — only pydantic asks

        return Annotated[Union[cls.members()], Field(discriminator=cls.key)]  # noqa: UP007 — made at run time


if TYPE_CHECKING:
    Condition: TypeAlias = "Compare | Always | AllOf | AnyOf | Not | LoopControl"
else:

    class Condition(OneOf):
        """Any condition."""

        @classmethod
        def members(cls) -> tuple[type[Shape], ...]:
            """Return the classes of the union."""
            return CONDITION_TERMS


class Compare(Term):
    """Compare the value at a context path with a constant."""

    op: Operator
    var: Annotated[str, *limits(min_length=1)]
    value: Json = None

    @property
    def key(self) -> str:
        """The context key that the path begins with. A lenient comparison reads one key, dots included."""
        return self.var if self.op.startswith("lenient_") else self.var.partition(".")[0]


class Always(Term):
    """Always true."""

    op: Literal["always"]


class AllOf(Term):
    """True if every part is true."""

    op: Literal["and"]
    of: Annotated[tuple[Condition, ...], *limits(min_length=1)]


class AnyOf(Term):
    """True if at least one part is true."""

    op: Literal["or"]
    of: Annotated[tuple[Condition, ...], *limits(min_length=1)]


class Not(Term):
    """True if the part is false."""

    op: Literal["not"]
    of: Condition


class LoopControl(Term):
    """True if the loop-control artifact of the call says `continue`.

    If `loop_id` is set, an artifact that names another loop is ignored. `when_absent` says what happens without an
    artifact: `hold` makes the condition true, `missing` refuses the call.
    """

    op: Literal["loop_control"]
    loop_id: str | None = None
    when_absent: Literal["hold", "missing"]


CONDITION_TERMS = (Compare, Always, AllOf, AnyOf, Not, LoopControl)


def iter_terms(condition: Condition) -> Iterator[Condition]:
    """Yield a condition and every condition inside it, from left to right, each before its parts."""
    yield condition
    match condition:
        case AllOf() | AnyOf():
            for part in condition.of:
                yield from iter_terms(part)
        case Not():
            yield from iter_terms(condition.of)
        case Compare() | Always() | LoopControl():
            return


def iter_comparisons(condition: Condition) -> Iterator[Compare]:
    """Yield every comparison inside a condition, from left to right."""
    return (term for term in iter_terms(condition) if isinstance(term, Compare))


def iter_loop_controls(condition: Condition) -> Iterator[LoopControl]:
    """Yield every loop-control term inside a condition, from left to right."""
    return (term for term in iter_terms(condition) if isinstance(term, LoopControl))


def reads_loop_control(condition: Condition) -> bool:
    """Return whether a condition reads the loop-control artifact."""
    return any(True for _ in iter_loop_controls(condition))


def existing_paths(condition: Condition, *, verdict: bool = True) -> frozenset[str]:
    """Return the paths at which a value certainly exists if a condition has this verdict, by what it asks of them."""
    match condition:
        case Compare(op="exists"):
            return frozenset({condition.var} if bool(condition.value) is verdict else ())
        case AllOf() | AnyOf():
            parts = [existing_paths(part, verdict=verdict) for part in condition.of]
            is_true_of_all = verdict is isinstance(condition, AllOf)
            return parts[0].union(*parts) if is_true_of_all else parts[0].intersection(*parts)
        case Not():
            return existing_paths(condition.of, verdict=not verdict)
        case Compare() | Always() | LoopControl():
            return frozenset()


def describe_condition(condition: Condition) -> str:
    """Describe a condition as part of a sentence, for plans and traces."""
    match condition:
        case Compare(op="exists"):
            return f"`{condition.var}` is {'set' if condition.value else 'not set'}"
        case Compare():
            word = condition.op.removeprefix("lenient_").replace("_", " ")
            return f"`{condition.var}` {word}" + ("" if word == "truthy" else f" {_render_value(condition.value)}")
        case Always():
            return "always"
        case AllOf() | AnyOf():
            return "(" + f" {condition.op} ".join(describe_condition(part) for part in condition.of) + ")"
        case Not():
            return f"not {describe_condition(condition.of)}"
        case LoopControl():
            return "the loop-control artifact says `continue`"


def _render_value(value: Json) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
