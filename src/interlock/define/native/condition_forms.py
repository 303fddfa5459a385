"""The syntax of conditions, of computed values and of criteria in native workflow files."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from interlock.define.parts import ContextPath, DeclaredKey, Part, SafeId
from interlock.kernel.canonical import Json
from interlock.kernel.shape import Alternative, AlternativeBy, Rule, described, limits


class ConditionForm(Part):
    """A condition: `var` with exactly one operator, or exactly one of `and`, `or`, `not`, or a `kind`.

    `condition_ref` refers to one of the workflow's `conditions`; `loop_control` is true while the loop-control
    artifact says `continue`.
    """

    var: Annotated[ContextPath | None, described("the context path to compare")] = None
    equals: Annotated[Json | UnsetType, described("equals this JSON value")] = UNSET
    not_equals: Annotated[Json | UnsetType, described("does not equal this JSON value")] = UNSET
    gt: Annotated[int | float | UnsetType | None, described("is greater than this number")] = UNSET
    gte: Annotated[int | float | UnsetType | None, described("is greater than or equal to this number")] = UNSET
    lt: Annotated[int | float | UnsetType | None, described("is less than this number")] = UNSET
    lte: Annotated[int | float | UnsetType | None, described("is less than or equal to this number")] = UNSET
    in_: Annotated[tuple[Json, ...] | UnsetType | None, described("is one of these")] = msgspec.field(
        default=UNSET, name="in"
    )
    contains: Annotated[
        Json | UnsetType, described("is a list with this item, or a string that contains this string")
    ] = UNSET
    starts_with: Annotated[str | UnsetType | None, described("begins with this text")] = UNSET
    ends_with: Annotated[str | UnsetType | None, described("ends with this text")] = UNSET
    exists: Annotated[bool | UnsetType | None, described("there is a value (`true`), or none (`false`)")] = UNSET
    and_: Annotated[
        Annotated[tuple["ConditionForm", ...], *limits(min_length=1, strict=False)] | None,
        described("all of these are true"),
    ] = msgspec.field(default=None, name="and")
    or_: Annotated[
        Annotated[tuple["ConditionForm", ...], *limits(min_length=1, strict=False)] | None,
        described("at least one of these is true"),
    ] = msgspec.field(default=None, name="or")
    not_: Annotated["ConditionForm | None", described("this is false")] = msgspec.field(default=None, name="not")
    kind: Annotated[
        Literal["condition_ref", "loop_control"] | None,
        described("a named condition; or, only in `while`, the agent's decision"),
    ] = None
    condition_id: Annotated[SafeId | None, described("of `condition_ref`: a name of `conditions`")] = None


def _operation_or_value(value: object) -> str:
    return "<object>" if isinstance(value, dict) else "<value>"


_CONSTANTS = Rule(schema={"type": ["string", "number", "boolean", "null", "array"]})
"""An object is an operation, so the schema of constants has none: both together match each operand once."""
Operand = Annotated[
    Annotated["ComputeForm", Alternative("<object>")]
    | Annotated[str | int | float | bool | list[Json] | None, Alternative("<value>"), _CONSTANTS],
    AlternativeBy(_operation_or_value),
]
Operands = Annotated[tuple[Operand, ...], *limits(min_length=2, max_length=50, strict=False)]
Pair = Annotated[tuple[Operand, ...], *limits(min_length=2, max_length=2, strict=False)]


class ComputeForm(Part):
    """A value that is computed: `var`, or exactly one operation.

    An operand is another computed value, or a constant. No operation converts a value. A result is finite and below
    2^53; whole numbers stay whole. A division by zero, an operand of the wrong type or a result beyond these limits
    refuses the report, and nothing is set.
    """

    var: Annotated[ContextPath | UnsetType | None, described("the value at this path")] = UNSET
    add: Annotated[Operands | UnsetType | None, described("the sum of these numbers")] = UNSET
    subtract: Annotated[Pair | UnsetType | None, described("the first number minus the second")] = UNSET
    multiply: Annotated[Operands | UnsetType | None, described("the product of these numbers")] = UNSET
    divide: Annotated[Pair | UnsetType | None, described("the first number divided by the second")] = UNSET
    negate: Annotated[Operand | UnsetType | None, described("the number with the opposite sign")] = UNSET
    min: Annotated[Operands | UnsetType | None, described("the least of these numbers")] = UNSET
    max: Annotated[Operands | UnsetType | None, described("the greatest of these numbers")] = UNSET
    sum: Annotated[Operand | UnsetType | None, described("the sum of a list of numbers; 0 if it is empty")] = UNSET
    length: Annotated[
        Operand | UnsetType | None, described("the number of items of a list, or of characters of a text")
    ] = UNSET
    append: Annotated[
        Pair | UnsetType | None, described("the list that comes first, with the second value at its end")
    ] = UNSET
    if_: Annotated[
        tuple[ConditionForm, Operand, Operand] | UnsetType | None,
        described(
            "`[condition, value, other value]`: the value if the condition is true, else the other one",
        ),
    ] = msgspec.field(default=UNSET, name="if")


class SetActionForm(Part):
    """A context key that is set when the step is done: to a constant, to the value at a path, or to a computed value.

    A path begins with a context key, with `artifact` (the step's artifact), or with `assessments` (levels by
    assessment and dimension). All paths, also those in `when` and `compute`, read the context from before
    the step, with the changes of its report.
    """

    key: Annotated[DeclaredKey, described("the context key, one of `inputs`")]
    value: Annotated[
        Json | UnsetType, described("the value to set; write this, `from` or `compute`; null removes the key")
    ] = UNSET
    source: Annotated[ContextPath | UnsetType | None, described("the path of the value to set")] = msgspec.field(
        default=UNSET, name="from"
    )
    compute: Annotated[ComputeForm | UnsetType | None, described("the value to set, computed")] = UNSET
    when: Annotated[ConditionForm | None, described("the key is set only if this is true")] = None


class CriteriaForm(Part):
    """A criterion that the notes must meet: a rule by its `type`, or exactly one of `and`, `or`, `not`."""

    type: Annotated[Literal["contains", "regex", "length"] | None, described("the kind of rule")] = None
    value: Annotated[
        Annotated[str, *limits(min_length=1)] | None,
        described("of `contains`: the exact text that the notes must contain"),
    ] = None
    pattern: Annotated[
        Annotated[str, *limits(min_length=1)] | None, described("of `regex`: an RE2 pattern that must match somewhere")
    ] = None
    flags: Annotated[
        Annotated[str, *limits(pattern="^[ims]*$")] | None, described("of `regex`: any of `i`, `m`, `s`")
    ] = None
    min: Annotated[Annotated[int, *limits(ge=0)] | None, described("of `length`: the minimum number of characters")] = (
        None
    )
    max: Annotated[Annotated[int, *limits(ge=0)] | None, described("of `length`: the maximum number of characters")] = (
        None
    )
    message: Annotated[str | None, described("the message if the rule is not met")] = None
    when: Annotated[ConditionForm | None, described("the rule applies only if this is true")] = None
    and_: Annotated[
        Annotated[tuple["CriteriaForm", ...], *limits(min_length=1, strict=False)] | None,
        described("all of these are met"),
    ] = msgspec.field(default=None, name="and")
    or_: Annotated[
        Annotated[tuple["CriteriaForm", ...], *limits(min_length=1, strict=False)] | None,
        described("at least one of these is met"),
    ] = msgspec.field(default=None, name="or")
    not_: Annotated["CriteriaForm | None", described("this is not met")] = msgspec.field(default=None, name="not")
