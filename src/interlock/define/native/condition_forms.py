"""The syntax of conditions, of computed values and of criteria in native workflow files."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, WithJsonSchema

from interlock.define.parts import ContextPath, DeclaredKey, SafeId
from interlock.kernel.canonical import Json
from interlock.kernel.shape.mirror import Form


class ConditionForm(Form):
    """A condition: `var` with exactly one operator, or exactly one of `and`, `or`, `not`, or a `kind`.

    `condition_ref` refers to one of the workflow's `conditions`; `loop_control` is true while the loop-control
    artifact says `continue`.
    """

    var: ContextPath | None = Field(default=None, description="the context path to compare")
    equals: Json = Field(default=None, description="equals this JSON value")
    not_equals: Json = Field(default=None, description="does not equal this JSON value")
    gt: int | float | None = Field(default=None, description="is greater than this number")
    gte: int | float | None = Field(default=None, description="is greater than or equal to this number")
    lt: int | float | None = Field(default=None, description="is less than this number")
    lte: int | float | None = Field(default=None, description="is less than or equal to this number")
    in_: Annotated[tuple[Json, ...] | None, Field(alias="in", strict=False, description="is one of these")] = None
    contains: Json = Field(default=None, description="is a list with this item, or a string that contains this string")
    starts_with: str | None = Field(default=None, description="begins with this text")
    ends_with: str | None = Field(default=None, description="ends with this text")
    exists: bool | None = Field(default=None, description="there is a value (`true`), or none (`false`)")
    and_: Annotated[
        tuple["ConditionForm", ...] | None,
        Field(alias="and", min_length=1, strict=False, description="all of these are true"),
    ] = None
    or_: Annotated[
        tuple["ConditionForm", ...] | None,
        Field(alias="or", min_length=1, strict=False, description="at least one of these is true"),
    ] = None
    not_: Annotated["ConditionForm | None", Field(alias="not", description="this is false")] = None
    kind: Literal["condition_ref", "loop_control"] | None = Field(
        default=None, description="a named condition; or, only in `while`, the agent's decision"
    )
    condition_id: SafeId | None = Field(default=None, description="of `condition_ref`: a name of `conditions`")


def _operation_or_value(value: object) -> str:
    return "<object>" if isinstance(value, dict) else "<value>"


_CONSTANTS = WithJsonSchema({"type": ["string", "number", "boolean", "null", "array"]})
"""An object is an operation, so the schema of constants has none: both together match each operand once."""
Operand = Annotated[
    Annotated["ComputeForm", Tag("<object>")] | Annotated[Json, Tag("<value>"), _CONSTANTS],
    Discriminator(_operation_or_value),
]
Operands = Annotated[tuple[Operand, ...], Field(min_length=2, max_length=50, strict=False)]
Pair = Annotated[tuple[Operand, ...], Field(min_length=2, max_length=2, strict=False)]


class ComputeForm(Form):
    """A value that is computed: `var`, or exactly one operation.

    An operand is another computed value, or a constant. No operation converts a value. A result is finite and below
    2^53; whole numbers stay whole. A division by zero, an operand of the wrong type or a result beyond these limits
    refuses the report, and nothing is set.
    """

    var: ContextPath | None = Field(default=None, description="the value at this path")
    add: Operands | None = Field(default=None, description="the sum of these numbers")
    subtract: Pair | None = Field(default=None, description="the first number minus the second")
    multiply: Operands | None = Field(default=None, description="the product of these numbers")
    divide: Pair | None = Field(default=None, description="the first number divided by the second")
    negate: Operand | None = Field(default=None, description="the number with the opposite sign")
    min: Operands | None = Field(default=None, description="the least of these numbers")
    max: Operands | None = Field(default=None, description="the greatest of these numbers")
    sum: Operand | None = Field(default=None, description="the sum of a list of numbers; 0 if it is empty")
    length: Operand | None = Field(
        default=None, description="the number of items of a list, or of characters of a text"
    )
    append: Pair | None = Field(default=None, description="the list that comes first, with the second value at its end")
    if_: Annotated[
        tuple[ConditionForm, Operand, Operand] | None,
        Field(
            alias="if",
            strict=False,
            description="`[condition, value, other value]`: the value if the condition is true, else the other one",
        ),
    ] = None


class SetActionForm(Form):
    """A context key that is set when the step is done: to a constant, to the value at a path, or to a computed value.

    A path begins with a context key, with `artifact` (the step's artifact), or with `assessments` (levels by
    assessment and dimension). All paths, also those in `when` and `compute`, read the context from before
    the step, with the changes of its report.
    """

    key: DeclaredKey = Field(description="the context key, one of `inputs`")
    value: Json = Field(
        default=None, description="the value to set; write this, `from` or `compute`; null removes the key"
    )
    source: Annotated[ContextPath | None, Field(alias="from", description="the path of the value to set")] = None
    compute: ComputeForm | None = Field(default=None, description="the value to set, computed")
    when: ConditionForm | None = Field(default=None, description="the key is set only if this is true")


class CriteriaForm(Form):
    """A criterion that the notes must meet: a rule by its `type`, or exactly one of `and`, `or`, `not`."""

    type: Literal["contains", "regex", "length"] | None = Field(default=None, description="the kind of rule")
    value: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="of `contains`: the exact text that the notes must contain"
    )
    pattern: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="of `regex`: an RE2 pattern that must match somewhere"
    )
    flags: Annotated[str, Field(pattern=r"^[ims]*$")] | None = Field(
        default=None, description="of `regex`: any of `i`, `m`, `s`"
    )
    min: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="of `length`: the minimum number of characters"
    )
    max: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="of `length`: the maximum number of characters"
    )
    message: str | None = Field(default=None, description="the message if the rule is not met")
    when: ConditionForm | None = Field(default=None, description="the rule applies only if this is true")
    and_: Annotated[
        tuple["CriteriaForm", ...] | None,
        Field(alias="and", min_length=1, strict=False, description="all of these are met"),
    ] = None
    or_: Annotated[
        tuple["CriteriaForm", ...] | None,
        Field(alias="or", min_length=1, strict=False, description="at least one of these is met"),
    ] = None
    not_: Annotated["CriteriaForm | None", Field(alias="not", description="this is not met")] = None
