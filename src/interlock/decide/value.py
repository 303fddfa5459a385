"""Values that actions compute: a closed set of operations on numbers and lists (DEC-14).

An operation converts no value, and a result is a number that JSON keeps exact. Numbers are added from left to right, so
the same values give the same result on every platform.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, cast

from interlock.decide.condition import Condition, OneOf, Term
from interlock.decide.evaluate import ABSENT, NOT_SET, Inputs, Undecided, describe_kind, evaluate, inputs_of, is_number
from interlock.kernel.canonical import Json, number_fault
from interlock.kernel.errors import InterlockError
from interlock.kernel.shape import Shape, limits

Operator = Literal["add", "subtract", "multiply", "divide", "negate", "min", "max", "sum", "length", "append"]


if TYPE_CHECKING:
    Value: TypeAlias = "Read | Given | Operation | Choose"
else:

    class Value(OneOf):
        """Any value."""

        @classmethod
        def members(cls) -> tuple[type[Shape], ...]:
            """Return the classes of the union."""
            return VALUE_TERMS


class Read(Term):
    """The value at a path."""

    op: Literal["read"]
    var: Annotated[str, *limits(min_length=1)]


class Given(Term):
    """A constant."""

    op: Literal["constant"]
    value: Json


class Operation(Term):
    """An operation on values, in the order of its operands."""

    op: Operator
    of: Annotated[tuple[Value, ...], *limits(min_length=1)]


class Choose(Term):
    """One of two values. The other one is not computed."""

    op: Literal["if"]
    when: Condition
    then: Value
    otherwise: Value


VALUE_TERMS = (Read, Given, Operation, Choose)

OPERANDS: Mapping[Operator, tuple[int, int | None]] = {
    "add": (2, None),
    "subtract": (2, 2),
    "multiply": (2, None),
    "divide": (2, 2),
    "negate": (1, 1),
    "min": (2, None),
    "max": (2, None),
    "sum": (1, 1),
    "length": (1, 1),
    "append": (2, 2),
}
"""The least and the greatest number of operands; None: any number."""

NUMBER = "a number that JSON keeps exact"


class CalculationError(InterlockError):
    """A value cannot be computed: an operand has the wrong type, or the result is no exact number."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found, self.expected = found, expected


def iter_parts(value: Value) -> Iterator[Value]:
    """Yield a value and every value inside it, from left to right, each before its parts."""
    yield value
    match value:
        case Operation():
            for part in value.of:
                yield from iter_parts(part)
        case Choose():
            yield from iter_parts(value.then)
            yield from iter_parts(value.otherwise)
        case Read() | Given():
            return


def iter_conditions(value: Value) -> Iterator[Condition]:
    """Yield every condition inside a value."""
    return (part.when for part in iter_parts(value) if isinstance(part, Choose))


def iter_reads(value: Value) -> Iterator[str]:
    """Yield every path that a value reads outside of its conditions."""
    return (part.var for part in iter_parts(value) if isinstance(part, Read))


def inputs_of_value(value: Value) -> tuple[str, ...]:
    """Return the names of the inputs that a value reads, each once."""
    named = [f"path:{path}" for path in iter_reads(value)]
    named += [name for condition in iter_conditions(value) for name in inputs_of(condition)]
    return tuple(dict.fromkeys(named))


def calculate(value: Value, inputs: Inputs) -> object:
    """Return a value, or an `Undecided` if something that it needs is missing.

    Raises:
        CalculationError: An operand has the wrong type, or the result is no exact number.
    """
    match value:
        case Given():
            return value.value
        case Read():
            found = inputs.read(f"path:{value.var}")
            return Undecided(path=value.var, found=NOT_SET, expected="a value") if found is ABSENT else found
        case Choose():
            verdict = evaluate(value.when, inputs)
            if isinstance(verdict, Undecided):
                return verdict
            return calculate(value.then if verdict else value.otherwise, inputs)
        case Operation():
            operands = [calculate(part, inputs) for part in value.of]
            missing = next((one for one in operands if isinstance(one, Undecided)), None)
            return _OPERATIONS[value.op](operands) if missing is None else missing


def describe_inexact_number(value: object) -> str | None:
    """Describe a number that JSON cannot represent exactly; None for any other value."""
    return number_fault(value) if isinstance(value, int | float) else None


INTENT_FIELD = "a string, a number or a boolean"
"""What a field of an intent can be (EFF-3)."""


def describe_unsendable(value: Json) -> str | None:
    """Describe a value that no field of an intent can have; None for one that it can."""
    if value is None or isinstance(value, list | dict):
        return describe_kind(value)
    return describe_inexact_number(value)


def _exact(number: float) -> int | float:
    """Return the number in its one form: a whole number is an integer, and there is no negative zero."""
    result = int(number) if isfinite(number) and number == int(number) else number
    fault = describe_inexact_number(result)
    if fault is not None:
        raise CalculationError(fault, NUMBER)
    return result


def _numbers(values: list[object]) -> list[int | float]:
    for value in values:
        if not is_number(value):
            raise CalculationError(describe_kind(value), "a number")
    return cast("list[int | float]", values)


def _fold(step: Callable[[int | float, int | float], int | float]) -> Callable[[list[object]], Json]:
    return lambda values: _exact(reduce(lambda one, other: _exact(step(one, other)), _numbers(values)))


def _divide(one: float, other: float) -> float:
    if other == 0:
        raise CalculationError("a division by zero", "a divisor other than 0")
    return one / other


def _list(value: object) -> list[Json]:
    if not isinstance(value, list):
        raise CalculationError(describe_kind(value), "a list")
    return cast("list[Json]", value)


def _sum(values: list[object]) -> Json:
    return _fold(lambda one, other: one + other)([0, *_list(values[0])])


def _length(values: list[object]) -> Json:
    if not isinstance(values[0], str | list):
        raise CalculationError(describe_kind(values[0]), "a list or a string")
    return len(cast("str | list[object]", values[0]))


_OPERATIONS: Mapping[Operator, Callable[[list[object]], Json]] = {
    "add": _fold(lambda one, other: one + other),
    "subtract": _fold(lambda one, other: one - other),
    "multiply": _fold(lambda one, other: one * other),
    "divide": _fold(_divide),
    "negate": lambda values: _exact(-_numbers(values)[0]),
    "min": _fold(min),
    "max": _fold(max),
    "sum": _sum,
    "length": _length,
    "append": lambda values: [*_list(values[0]), cast("Json", values[1])],
}
