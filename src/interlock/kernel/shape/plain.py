"""Canonical bytes of plain values in one pass: of most stored values (ID-3)."""

import re
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from interlock.kernel.shape import Shape

_NOT_PLAIN = re.compile(rb"[:\[,]-?(?:[0-9]{16}|[0-9]+[.eE])")
"""What the bytes of a value hold if a number in it has another canonical form, or none. Texts may hold it, too."""
_NO_PARTS = frozenset[type]()
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
def _held(kind: Any) -> frozenset[type]:  # noqa: ANN401 — a type
    """Return what a type may hold that is not plain: `float`, `dict` for objects with any keys, or `object`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Shape):
        parts: tuple[Any, ...] = tuple(one.type for one in msgspec.structs.fields(kind))
    elif isinstance(kind, NewType):
        parts = (kind.__supertype__,)
    elif origin is Literal:
        parts = tuple(map(type, arguments))
    elif origin is Annotated:
        parts = arguments[:1]
    elif origin in (tuple, dict, Union, UnionType):
        parts = arguments
    else:
        return _NO_PARTS if kind in _PLAIN_TYPES else frozenset({float if kind is float else object})
    return frozenset({dict} if origin is dict else ()).union(*map(_held, parts))
