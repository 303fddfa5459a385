"""Canonical bytes of plain values in one pass: of most stored values (ID-3)."""

import re
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from interlock.kernel.shape import Choice, Shape

_NOT_PLAIN = re.compile(rb'(?:":|\[|,)-?(?:[0-9]{16}|[0-9]+[.eE])')
"""What the bytes of a value hold if a number in it has another canonical form, or none. Texts may hold it, too.

With a class of characters instead of the alternatives, the search would take twice as long.
"""
_PLAIN_TYPES = frozenset({str, int, bool, type(None), Ellipsis})


def encode_plain(value: Shape) -> bytes | None:
    """Return the canonical bytes of a value if msgspec writes them; None if it may not.

    It does for texts, exact whole numbers, booleans and null. It has another form for floats, writes null for NaN, and
    sorts keys by code point, which is the order of RFC 8785 for ASCII.
    """
    held = _held(type(value))
    if object in held:
        return None
    try:
        data = msgspec.json.encode(value, order="sorted")
    except UnicodeError:
        return None
    is_other = (dict in held and not data.isascii()) or (float in held and b"null" in data)
    return None if is_other or _NOT_PLAIN.search(data) else data


@cache
def _held(kind: type[Shape]) -> frozenset[type]:
    """Return what values of a type may hold that is not plain: `float`, `dict` for any keys, or `object`."""
    held, found, left = set[type](), set[Any](), list[Any]([kind])
    while left:
        one = left.pop()
        if one in found:
            continue
        found.add(one)
        parts = _parts(one)
        left += parts or ()
        if get_origin(one) is dict:
            held.add(dict)
        if parts is None and one not in _PLAIN_TYPES:
            held.add(float if one is float else object)
    return frozenset(held)


def _parts(kind: Any) -> tuple[Any, ...] | None:  # noqa: ANN401 — a type
    """Return the types that a type is made of; None if it is not one that is made of others."""
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Choice):
        return kind.members()
    if isinstance(kind, type) and issubclass(kind, Shape):
        return tuple(one.type for one in msgspec.structs.fields(kind))
    if isinstance(kind, NewType):
        return (kind.__supertype__,)
    if origin is Literal:
        return tuple(map(type, arguments))
    if origin is Annotated:
        return arguments[:1]
    return arguments if origin in (tuple, dict, Union, UnionType) else None
