"""Evaluate a condition once, deterministically: it holds, it does not, or a key it turns on is not there (DEC-13)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never, cast

from interlock.decide.condition import AllOf, Always, AnyOf, Compare, Condition, LoopControl, Not, Operator
from interlock.kernel.canonical import Json

LoopDecision = Literal["continue", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a decision may read: the node's context with loop variables, and the call's loop-control decisions.

    `loop_decisions` are pairs of the loop an artifact names, if it names one, and what it says.
    """

    context: Mapping[str, Json]
    loop_decisions: tuple[tuple[str | None, LoopDecision], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """The condition turns on something that is not there, or is of the wrong kind.

    `path` is a context path, or None where a loop-control artifact is missing.
    """

    path: str | None
    found: str
    wanted: str


Verdict: TypeAlias = bool | Undecided


def evaluate(condition: Condition, given: Given) -> Verdict:
    """Return whether a condition holds.

    A part that cannot be decided does not matter where another part settles the whole: `and` with a part that does
    not hold, `or` with one that does.
    """
    match condition:
        case Compare():
            return _compared(condition, given.context)
        case Always():
            return True
        case AllOf():
            return settled([evaluate(part, given) for part in condition.of], settling=False)
        case AnyOf():
            return settled([evaluate(part, given) for part in condition.of], settling=True)
        case Not():
            verdict = evaluate(condition.of, given)
            return verdict if isinstance(verdict, Undecided) else not verdict
        case LoopControl():
            return controlled(condition, given.loop_decisions)
        case _:
            assert_never(condition)


def settled(verdicts: list[Verdict], *, settling: bool) -> Verdict:
    """Return what verdicts come to together where one verdict settles them: False for `and`, True for `or`."""
    if settling in [verdict for verdict in verdicts if isinstance(verdict, bool)]:
        return settling
    return next((verdict for verdict in verdicts if isinstance(verdict, Undecided)), not settling)


def controlled(condition: LoopControl, loop_decisions: Iterable[tuple[str | None, LoopDecision]]) -> Verdict:
    """Return what the loop-control decisions of a call say to a condition on them."""
    said = [
        decision
        for loop, decision in loop_decisions
        if condition.loop_id is None or loop is None or loop == condition.loop_id
    ]
    if said:
        return said[0] == "continue"
    if condition.when_absent == "hold":
        return True
    return Undecided(path=None, found="no loop-control artifact", wanted="`continue` or `stop`")


@dataclass(frozen=True, slots=True)
class _Nothing:
    """Nothing stands at a path; told from null."""


NOTHING = _Nothing()


def value_at(context: Mapping[str, Json], path: str) -> object:
    """Return what stands at a dotted path, or NOTHING."""
    value: object = context
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return NOTHING
        value = cast("Mapping[str, object]", value)[part]
    return value


def _compared(term: Compare, context: Mapping[str, Json]) -> Verdict:
    is_lenient = term.op.startswith("lenient_")
    found = context.get(term.var, NOTHING) if is_lenient else value_at(context, term.var)
    return compared(term.op, found, term.value, path=term.var)


def compared(op: Operator, found: object, value: Json, *, path: str | None) -> Verdict:
    """Return what an operator says of what was found at a path, or of NOTHING, and the value it compares with."""
    if op.startswith("lenient_"):
        return _LENIENT[op](None if found is NOTHING else found, value)
    if op == "exists":
        return (found is not NOTHING) == bool(value)
    wanted = _WANTED.get(op, "a value")
    if found is NOTHING:
        return Undecided(path=path, found="not set", wanted=wanted)
    verdict = _STRICT[op](found, value)
    return Undecided(path=path, found=kind_of(found), wanted=wanted) if verdict is None else verdict


def _contains(found: object, value: object) -> bool | None:
    if isinstance(found, list):
        return any(same(item, value) for item in cast("list[object]", found))
    return value in found if isinstance(found, str) and isinstance(value, str) else None


def _begins(found: object, value: object) -> bool | None:
    return found.startswith(cast("str", value)) if isinstance(found, str) else None


def _ends(found: object, value: object) -> bool | None:
    return found.endswith(cast("str", value)) if isinstance(found, str) else None


def _ordered(name: str) -> Callable[[object, object], bool | None]:
    def ordered(found: object, value: object) -> bool | None:
        return _ORDER[name](cast("float", found), cast("float", value)) if is_number(found) else None

    return ordered


def is_number(value: object) -> bool:
    """Say whether a JSON value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(left: object, right: object) -> bool:
    """Say whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        one, other = cast("Mapping[str, object]", left), cast("Mapping[str, object]", right)
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        items, others = cast("list[object]", left), cast("list[object]", right)
        return len(items) == len(others) and all(map(same, items, others))
    return left == right


def kind_of(value: object) -> str:
    """Return what kind of JSON value this is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
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

_WANTED = dict.fromkeys(_ORDER, "a number") | {
    "starts_with": "a text",
    "ends_with": "a text",
    "contains": "a list, or a text",
}
_STRICT: dict[str, Callable[[object, object], bool | None]] = {
    "equals": same,
    "not_equals": lambda found, value: not same(found, value),
    "in": lambda found, value: any(same(found, item) for item in cast("list[object]", value)),
    "contains": _contains,
    "starts_with": _begins,
    "ends_with": _ends,
    **{name: _ordered(name) for name in _ORDER},
}
"""What each operator says of what was found; None where it is of the wrong kind."""

_YES = frozenset({"true", "1", "yes"})
_NO = frozenset({"false", "0", "no"})


def _loosely_same(left: object, right: object) -> bool:
    """Compare as older files expect: texts trimmed and without case, numbers with their texts, yes with true."""
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or isinstance(right, bool):
        return _truth(left) is not None and _truth(left) == _truth(right)
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().lower() == right.strip().lower()
    if is_number(left) or is_number(right):
        one, other = _number(left), _number(right)
        return one is not None and one == other
    return same(left, right)


def _truth(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    return True if word in _YES else False if word in _NO else None


def _number(value: object) -> float | None:
    if is_number(value):
        return cast("float", value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _loosely_ordered(name: str) -> Callable[[object, object], bool]:
    return lambda left, right: is_number(right) and _STRICT[name](left, right) is True


def _loosely_contains(found: object, value: object) -> bool:
    if isinstance(found, list):
        return any(_loosely_same(item, value) for item in cast("list[object]", found))
    if isinstance(found, str):
        return str(value).strip().lower() in found.lower()
    return False


def _loosely_in(found: object, values: object) -> bool:
    return isinstance(values, list) and any(_loosely_same(found, item) for item in cast("list[object]", values))


_LENIENT: dict[str, Callable[[object, object], bool]] = {
    "lenient_equals": _loosely_same,
    "lenient_not_equals": lambda left, right: not _loosely_same(left, right),
    "lenient_gt": _loosely_ordered("gt"),
    "lenient_gte": _loosely_ordered("gte"),
    "lenient_lt": _loosely_ordered("lt"),
    "lenient_lte": _loosely_ordered("lte"),
    "lenient_in": _loosely_in,
    "lenient_contains": _loosely_contains,
    "lenient_truthy": lambda found, _: bool(found),
}
