"""Lowers the predicates of conditions: the conditions of workflow files, and a subset of JSONLogic (OPS-19).

JSONLogic is translated into the form of workflow files, so that there is one set of rules. Its equality is strict here:
1 does not equal "1". A comparison with a value that is missing is false, and `!=` is true, as for null in JSONLogic.
"""

from collections.abc import Callable, Mapping

from interlock.decide.condition import AllOf, AnyOf, Compare, Condition, Not
from interlock.define.native.condition_forms import ConditionForm
from interlock.define.native.conditions import ConditionLowering
from interlock.kernel.canonical import Json
from interlock.kernel.shape import Reader, ShapeError

_CONDITION = Reader[ConditionForm](ConditionForm)
_COMPARISONS = {"==": "equals", "!=": "notEquals", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_MIRRORED = {"==": "==", "!=": "!=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
"""The operator with its operands exchanged."""


class _UnsupportedError(Exception):
    """A predicate is in none of the supported forms."""


def lower_predicate(predicate: Mapping[str, Json], rename: Callable[[str], str]) -> Condition | None:
    """Return the condition of a predicate, or None if its form is not supported.

    `rename` returns the context path of each path that the predicate reads.
    """
    try:
        form = _CONDITION.of_json(_translate(dict(predicate)))
    except (_UnsupportedError, ShapeError):
        return None
    lowering = ConditionLowering(named={})
    condition = lowering.lower_condition(form, "predicate")
    return None if lowering.faults else _settle(condition, rename)


def _translate(node: Json) -> Json:
    """Return a node in the form of workflow files. What is not JSONLogic stays as it is."""
    if not isinstance(node, dict) or len(node) != 1:
        return node
    operator, operands = next(iter(node.items()))
    match operator:
        case "and" | "or" if isinstance(operands, list):
            return {operator: [_translate(one) for one in operands]}
        case "not":
            return {"not": _translate(operands)}
        case "!":
            return {"not": _translate(operands[0] if isinstance(operands, list) and len(operands) == 1 else operands)}
        case "in":
            return _translate_membership(*_read_pair(operands))
        case _ if operator in _COMPARISONS:
            return _translate_comparison(operator, *_read_pair(operands))
        case _:
            return node


def _read_pair(operands: Json) -> tuple[Json, Json]:
    if not isinstance(operands, list) or len(operands) != 2:  # noqa: PLR2004 — a comparison has two operands
        raise _UnsupportedError
    return operands[0], operands[1]


def _translate_comparison(operator: str, left: Json, right: Json) -> Json:
    if (path := _read_path(left)) is not None:
        return {"var": path, _COMPARISONS[operator]: _read_constant(right)}
    if (path := _read_path(right)) is not None:
        return {"var": path, _COMPARISONS[_MIRRORED[operator]]: _read_constant(left)}
    raise _UnsupportedError


def _translate_membership(item: Json, whole: Json) -> Json:
    if (path := _read_path(item)) is not None and isinstance(whole, list):
        return {"var": path, "in": whole}
    if (path := _read_path(whole)) is not None:
        return {"var": path, "contains": _read_constant(item)}
    raise _UnsupportedError


def _read_path(operand: Json) -> str | None:
    if isinstance(operand, dict) and operand.keys() == {"var"} and isinstance(operand["var"], str):
        return operand["var"]
    return None


def _read_constant(operand: Json) -> Json:
    if isinstance(operand, dict):
        raise _UnsupportedError
    return operand


def _settle(condition: Condition, rename: Callable[[str], str]) -> Condition:
    """Return a condition with renamed paths that is decided also if a value is missing."""
    match condition:
        case Compare():
            renamed = condition.changed(var=rename(condition.var))
            if condition.op == "exists":
                return renamed
            exists = Compare(op="exists", var=renamed.var, value=True)
            if condition.op == "not_equals":
                return AnyOf(op="or", of=(Not(op="not", of=exists), renamed))
            return AllOf(op="and", of=(exists, renamed))
        case AllOf() | AnyOf():
            return condition.changed(of=tuple(_settle(part, rename) for part in condition.of))
        case Not():
            return Not(op="not", of=_settle(condition.of, rename))
        case _:
            raise AssertionError("loop control is a fault of the lowering")
