"""Evaluation of a condition, deterministic: true, false, or undecided because a value is missing (DEC-13)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Literal, Protocol, TypeAlias, assert_never, cast

from interlock.decide.condition import (
    AllOf,
    Always,
    AnyOf,
    Compare,
    Condition,
    LoopControl,
    Not,
    iter_comparisons,
    reads_loop_control,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, positional

LoopDecision = Literal["continue", "stop"]


EVENT = "event"
"""The first part of the paths that read the event that a step waited for."""
EMITTED = "wr.emitted"
"""The path below which a step reads, by number, whether its run has sent one of its intents before."""
EVIDENCE_ROOTS = frozenset({"artifact", "assessments", EVENT, "wr"})
"""The first parts of the paths that read a step's evidence where a step sets keys. All other paths read the context."""
CONTEXT_SOURCE = "context"
"""The detail `source` of a refusal for a context key that has such a name."""

NOT_SET = "not set"
"""What was found where there is no value."""

LOOP_CONTROL = "loop_control"
"""The input that holds the call's loop-control decisions."""


class Inputs(Protocol):
    """What is read by name: `path:` and a dotted path, `key:` and a key that may contain dots, or LOOP_CONTROL."""

    def read(self, name: str) -> object:
        """Return the value, or ABSENT."""
        ...


@frozen
class ConditionInputs:
    """The snapshot that a pass reads: the node's context with loop variables, and what came with the call.

    `loop_decisions` holds one pair for each artifact: the loop that it names (None if it names none), and its decision.
    `evidence` is the valid evidence of a step; its names begin with `evidence:`. It is no fallback for the context.
    """

    context: Mapping[str, Json]
    loop_decisions: tuple[tuple[str | None, LoopDecision], ...] = ()
    evidence: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def read(self, name: str) -> object:
        """Return the value of an input, or ABSENT."""
        kind, _, path = name.partition(":")
        match kind:
            case "path":
                return value_at(self.context, path)
            case "key":
                return self.context.get(path, ABSENT)
            case "evidence":
                return value_at(self.evidence, path)
            case _:
                return self.loop_decisions


@frozen
class Undecided:
    """The condition cannot be decided: a value that it reads is missing or has the wrong type.

    `path` is the context path of the value. It is None if a loop-control artifact is missing.
    """

    path: str | None
    found: str
    expected: str


Verdict: TypeAlias = bool | Undecided


def evaluate(condition: Condition, inputs: Inputs) -> Verdict:
    """Return whether a condition is true.

    `and` is false if any part is false, and `or` is true if any part is true, even if other parts are undecided.
    """
    match condition:
        case Compare():
            return _apply_operator(condition, inputs.read(input_of(condition)))
        case Always():
            return True
        case AllOf():
            return combine_verdicts([evaluate(part, inputs) for part in condition.of], deciding=False)
        case AnyOf():
            return combine_verdicts([evaluate(part, inputs) for part in condition.of], deciding=True)
        case Not():
            verdict = evaluate(condition.of, inputs)
            return verdict if isinstance(verdict, Undecided) else not verdict
        case LoopControl():
            said = cast("tuple[tuple[str | None, LoopDecision], ...]", inputs.read(LOOP_CONTROL))
            return _evaluate_loop_control(condition, said)
        case _:
            assert_never(condition)


def input_of(term: Compare) -> str:
    """Return the name of the input that a comparison reads. A lenient one reads one key, dots included."""
    return f"key:{term.var}" if term.op.startswith("lenient_") and "." in term.var else f"path:{term.var}"


def inputs_of(condition: Condition) -> tuple[str, ...]:
    """Return the names of the inputs that a condition reads, each once, in the order of its parts."""
    named = [input_of(term) for term in iter_comparisons(condition)]
    return tuple(dict.fromkeys([*named, *([LOOP_CONTROL] if reads_loop_control(condition) else [])]))


def combine_verdicts(verdicts: list[Verdict], *, deciding: bool) -> Verdict:
    """Combine the verdicts of parts. One verdict of `deciding` decides the result: False for `and`, True for `or`."""
    if any(verdict is deciding for verdict in verdicts):
        return deciding
    return next((verdict for verdict in verdicts if isinstance(verdict, Undecided)), not deciding)


def _evaluate_loop_control(
    condition: LoopControl, loop_decisions: Iterable[tuple[str | None, LoopDecision]]
) -> Verdict:
    """Return the verdict of a loop-control condition on the decisions of a call. The first matching decision counts."""
    matching = [
        decision
        for loop, decision in loop_decisions
        if condition.loop_id is None or loop is None or loop == condition.loop_id
    ]
    if matching:
        return matching[0] == "continue"
    if condition.when_absent == "hold":
        return True
    return Undecided(path=None, found="no loop-control artifact", expected="`continue` or `stop`")


@positional
class _Absent:
    """No value at a path. Not the same as null."""


ABSENT = _Absent()


def value_at(context: Mapping[str, Json], path: str) -> object:
    """Return the value at a dotted path, or ABSENT."""
    value: object = context
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ABSENT
        value = cast("Mapping[str, object]", value)[part]
    return value


def _apply_operator(term: Compare, found: object) -> Verdict:
    op, value, path = term.op, term.value, term.var
    if op.startswith("lenient_"):
        return _LENIENT_OPERATORS[op](None if found is ABSENT else found, value)
    if op == "exists":
        return (found is not ABSENT) == bool(value)
    expected = _EXPECTED.get(op, "a value")
    if found is ABSENT:
        return Undecided(path=path, found=NOT_SET, expected=expected)
    verdict = _STRICT_OPERATORS[op](found, value)
    return Undecided(path=path, found=describe_kind(found), expected=expected) if verdict is None else verdict


def _contains(found: object, value: object) -> bool | None:
    if isinstance(found, list):
        return any(is_same_value(item, value) for item in cast("list[object]", found))
    return value in found if isinstance(found, str) and isinstance(value, str) else None


def _starts_with(found: object, value: object) -> bool | None:
    return found.startswith(cast("str", value)) if isinstance(found, str) else None


def _ends_with(found: object, value: object) -> bool | None:
    return found.endswith(cast("str", value)) if isinstance(found, str) else None


def _build_ordering(name: str) -> Callable[[object, object], bool | None]:
    def ordered(found: object, value: object) -> bool | None:
        return _ORDER[name](cast("float", found), cast("float", value)) if is_number(found) else None

    return ordered


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number. In Python true and false are integers too; here they are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_same_value(left: object, right: object) -> bool:
    """Return whether two JSON values are equal: 1 equals 1.0, but 1 does not equal true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        one, other = cast("Mapping[str, object]", left), cast("Mapping[str, object]", right)
        return one.keys() == other.keys() and all(is_same_value(one[key], other[key]) for key in one)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        items, others = cast("list[object]", left), cast("list[object]", right)
        return len(items) == len(others) and all(map(is_same_value, items, others))
    return left == right


def describe_kind(value: object) -> str:
    """Describe the type of a JSON value, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "a list"


_ORDER: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}

_EXPECTED = dict.fromkeys(_ORDER, "a number") | {
    "starts_with": "a string",
    "ends_with": "a string",
    "contains": "a list or a string",
}
_STRICT_OPERATORS: dict[str, Callable[[object, object], bool | None]] = {
    "equals": is_same_value,
    "not_equals": lambda found, value: not is_same_value(found, value),
    "in": lambda found, value: any(is_same_value(found, item) for item in cast("list[object]", value)),
    "contains": _contains,
    "starts_with": _starts_with,
    "ends_with": _ends_with,
    **{name: _build_ordering(name) for name in _ORDER},
}
"""The strict operators, on the value found and the constant. None: the value found has the wrong type."""

_YES = frozenset({"true", "1", "yes"})
_NO = frozenset({"false", "0", "no"})


def _is_leniently_equal(left: object, right: object) -> bool:
    """Compare as WorkRail files expect: ignoring case and outer spaces, `"1"` equals 1, `yes` equals true."""
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or isinstance(right, bool):
        return _parse_boolean(left) is not None and _parse_boolean(left) == _parse_boolean(right)
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().lower() == right.strip().lower()
    if is_number(left) or is_number(right):
        one, other = _parse_number(left), _parse_number(right)
        return one is not None and one == other
    return is_same_value(left, right)


def _parse_boolean(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    return True if word in _YES else False if word in _NO else None


def _parse_number(value: object) -> float | None:
    if is_number(value):
        return cast("float", value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _build_lenient_ordering(name: str) -> Callable[[object, object], bool]:
    return lambda left, right: is_number(right) and _STRICT_OPERATORS[name](left, right) is True


def _leniently_contains(found: object, value: object) -> bool:
    if isinstance(found, list):
        return any(_is_leniently_equal(item, value) for item in cast("list[object]", found))
    if isinstance(found, str):
        return str(value).strip().lower() in found.lower()
    return False


def _is_leniently_in(found: object, values: object) -> bool:
    return isinstance(values, list) and any(_is_leniently_equal(found, item) for item in cast("list[object]", values))


_LENIENT_OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "lenient_equals": _is_leniently_equal,
    "lenient_not_equals": lambda left, right: not _is_leniently_equal(left, right),
    "lenient_gt": _build_lenient_ordering("gt"),
    "lenient_gte": _build_lenient_ordering("gte"),
    "lenient_lt": _build_lenient_ordering("lt"),
    "lenient_lte": _build_lenient_ordering("lte"),
    "lenient_in": _is_leniently_in,
    "lenient_contains": _leniently_contains,
    "lenient_truthy": lambda found, _: bool(found),
}
