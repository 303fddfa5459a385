"""Conditions as the plan holds them: a closed set of operators over context, and one over loop control (DEC-12).

A strict operator never coerces. The operators that begin with `lenient_` compare the way older files expect; only a
dialect front end writes them, so which rule holds is always in the plan and never a setting.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from interlock.kernel.canonical import Json

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


class Term(BaseModel):
    """A part of a condition: strict, frozen, closed."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )


class Compare(Term):
    """Compare what stands at a path of the context with a value."""

    op: Operator
    var: Annotated[str, Field(min_length=1)]
    value: Json = None

    @property
    def key(self) -> str:
        """The context key that the path begins with; a lenient comparison reads one flat key."""
        return self.var if self.op.startswith("lenient_") else self.var.partition(".")[0]


class Always(Term):
    """Hold."""

    op: Literal["always"]


class AllOf(Term):
    """Hold when every part holds."""

    op: Literal["and"]
    of: Annotated[tuple["Condition", ...], Field(min_length=1, strict=False)]


class AnyOf(Term):
    """Hold when some part holds."""

    op: Literal["or"]
    of: Annotated[tuple["Condition", ...], Field(min_length=1, strict=False)]


class Not(Term):
    """Hold when the part does not."""

    op: Literal["not"]
    of: "Condition"


class LoopControl(Term):
    """Hold while the loop-control artifact of the call says `continue`.

    `loop_id` is the loop it must name, if it names one; None takes any. `when_absent` says what a call without such
    an artifact means: `hold`, or `missing`, which refuses the call.
    """

    op: Literal["loop_control"]
    loop_id: str | None = None
    when_absent: Literal["hold", "missing"]


Condition = Annotated[Compare | Always | AllOf | AnyOf | Not | LoopControl, Field(discriminator="op")]

AllOf.model_rebuild()
AnyOf.model_rebuild()
Not.model_rebuild()


def iter_comparisons(condition: Condition) -> Iterator[Compare]:
    """Yield every comparison inside a condition, from left to right."""
    match condition:
        case Compare():
            yield condition
        case AllOf() | AnyOf():
            for part in condition.of:
                yield from iter_comparisons(part)
        case Not():
            yield from iter_comparisons(condition.of)
        case Always() | LoopControl():
            return


def iter_loop_controls(condition: Condition) -> Iterator[LoopControl]:
    """Yield every reading of the loop-control artifact inside a condition, from left to right."""
    match condition:
        case LoopControl():
            yield condition
        case AllOf() | AnyOf():
            for part in condition.of:
                yield from iter_loop_controls(part)
        case Not():
            yield from iter_loop_controls(condition.of)
        case Compare() | Always():
            return


def reads_loop_control(condition: Condition) -> bool:
    """Say whether a condition reads the loop-control artifact."""
    return any(True for _ in iter_loop_controls(condition))


def describe_condition(condition: Condition) -> str:
    """Return the condition as a short sentence part, for plans and traces."""
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
