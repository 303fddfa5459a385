"""Holds a value to the declaration of a context key. Starts, reports, workflow files and `set` use this one check."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from interlock.decide.evaluate import describe_kind, is_number, is_same_value
from interlock.define.parts import ContextInput, ItemField, ListItems, ProducedKey
from interlock.kernel.blanks import Blank, choice_text
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line

_Declaration: TypeAlias = ProducedKey | ListItems | ItemField


@frozen
class TypeMismatch:
    """Why a value does not fit: what was found, and what is expected. `is_kind`: the type is wrong, not the choice."""

    found: str
    wanted: str
    is_kind: bool


def conform_value(declared: ProducedKey, value: Json) -> Json | TypeMismatch:
    """Return a value as its declaration spells it, or why it does not fit.

    A text is compared with the choices without regard to case; the value of a key without choices never changes. The
    value None means that there is no value: it fits every key that is not required.
    """
    if value is None:
        is_required = isinstance(declared, ContextInput) and declared.required
        return TypeMismatch(found="nothing", wanted=describe_type(declared.type), is_kind=True) if is_required else None
    conformed = _conform(declared, value)
    if isinstance(conformed, TypeMismatch) or declared.items is None:
        return conformed
    found, items = cast("list[Json]", conformed), list[Json]()
    if len(found) < declared.items.min_items:
        return TypeMismatch(found=f"a list of {len(found)}", wanted=f"a {_shape(declared)}", is_kind=False)
    for number, item in enumerate(found):
        held = _conform_item(declared.items, item, f"[{number}]")
        if isinstance(held, TypeMismatch):
            return TypeMismatch(found=held.found, wanted=f"a {_shape(declared)}", is_kind=False)
        items.append(held)
    return items


def type_mismatch(declared: ProducedKey, value: Json) -> TypeMismatch | None:
    """Return why a value that an author wrote does not fit a declared key, or None if it fits, in this spelling."""
    held = conform_value(declared, value)
    if isinstance(held, TypeMismatch):
        return held
    if is_same_value(held, value):
        return None
    return TypeMismatch(found=_echo(value), wanted=describe_choices(declared.choices), is_kind=False)


def _conform(declared: _Declaration, value: Json) -> Json | TypeMismatch:
    if not _KINDS[declared.type](value):
        return TypeMismatch(found=describe_kind(value), wanted=describe_type(declared.type), is_kind=True)
    if not declared.choices or any(is_same_value(value, choice) for choice in declared.choices):
        return value
    same = [choice for choice in declared.choices if isinstance(choice, str) and _folded(choice) == _folded(value)]
    if len(same) == 1:
        return same[0]
    return TypeMismatch(found=_echo(value), wanted=describe_choices(declared.choices), is_kind=False)


def _conform_item(declared: ListItems, item: Json, at: str) -> Json | TypeMismatch:
    held = _conform(declared, item)
    if isinstance(held, TypeMismatch):
        return _at(held, at)
    if not declared.fields:
        return held
    members = dict(cast("dict[str, Json]", held))
    for one in declared.fields:
        if members.get(one.key) is None:
            if one.required:
                return TypeMismatch(found=f"without `{one.key}` in `{at}`", wanted="", is_kind=False)
            continue
        member = _conform(one, members[one.key])
        if isinstance(member, TypeMismatch):
            return _at(member, f"{at}.{one.key}")
        members[one.key] = member
    unknown = next((name for name in members if name not in {one.key for one in declared.fields}), None)
    if unknown is not None:
        return TypeMismatch(found=f"with the unknown member {_echo(unknown)} in `{at}`", wanted="", is_kind=False)
    return members


def _at(mismatch: TypeMismatch, at: str) -> TypeMismatch:
    return TypeMismatch(found=f"{mismatch.found} in `{at}`", wanted=mismatch.wanted, is_kind=mismatch.is_kind)


def _folded(value: Json) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


def _echo(value: Json) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), ECHO_BYTES_MAX)


def describe_choices(choices: Sequence[Json]) -> str:
    """Describe the choices of a declared key."""
    return f"one of {json.dumps(list(choices), ensure_ascii=False)}"


def describe_type(name: str) -> str:
    """Return a type's name with its article."""
    return f"an {name}" if name == "object" else f"a {name}"


def declared_blank(declared: ProducedKey) -> Blank:
    """Return the blank of a declared key."""
    choices = (True, False) if declared.type == "boolean" else declared.choices
    if choices and not any(isinstance(choice, list | dict) for choice in choices):
        return Blank(what=declared.description, choices=cast("tuple[JsonScalar, ...]", choices))
    return Blank(what=declared.description, shape=None if declared.type == "string" else _shape(declared))


def _shape(declared: ProducedKey) -> str:
    """Return the notation of a value: that of artifacts (ANS-22)."""
    if declared.items is None:
        return declared.type
    least = f" (at least {declared.items.min_items})" if declared.items.min_items else ""
    if not declared.items.fields:
        return f"list of {_value_shape(declared.items)}{least}"
    return f"list of {{{', '.join(map(_member_shape, declared.items.fields))}}}{least}"


def _member_shape(one: ItemField) -> str:
    shape = _value_shape(one)
    return one.key + ("" if one.required else "?") + ("" if shape == "text" else f": {shape}")


def _value_shape(declared: ListItems | ItemField) -> str:
    if declared.choices:
        return " | ".join(map(choice_text, declared.choices))
    return {"string": "text", "boolean": "true | false"}.get(declared.type, declared.type)


def infer_type(value: object) -> str | None:
    """Return the type to declare for a value, or None for null."""
    return next((name for name, is_kind in _KINDS.items() if is_kind(value)), None)


_KINDS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
