"""Reads members at the two ends of a message without parsing it, to find the id.

A line that is too costly to parse is refused under its id. Clients write the id before or after the one nested value.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from interlock.kernel.budgets import LINE_EDGE_BYTES_MAX

_STRING = rb'"(?:[^"\\]|\\.)*+"'
_MEMBER = rb"\s*(" + _STRING + rb")\s*:\s*(" + _STRING + rb"|-?[0-9.eE+-]+|true|false|null)\s*"
_BEGIN = re.compile(rb"\s*\{")
_FIRST = re.compile(_MEMBER + rb"[,}]")
_NESTED = re.compile(rb"\s*(" + _STRING + rb")\s*:()")
_END = re.compile(rb"(?:," + _MEMBER + rb")++\}\s*\Z")
_LAST = re.compile(rb"," + _MEMBER)


def edge_members(raw: bytes) -> dict[str, object]:
    """Return the top-level members of a JSON object that can be read from its two ends. A nested value reads as null.

    Correct for valid JSON: members without brackets at either end belong to the outer object, and no string can imitate
    them, because it would contain an odd number of quotes. A key that occurs twice is left out.
    """
    first, at = _first(raw[:LINE_EDGE_BYTES_MAX])
    return _single(chain(first, _last(raw[max(at, len(raw) - LINE_EDGE_BYTES_MAX) :])))


def first_members(raw: bytes) -> dict[str, object]:
    """Return the members before and at the first nested value of an object, also if what follows is invalid or lost."""
    return _single(_first(raw[:LINE_EDGE_BYTES_MAX])[0])


def _single(found: Iterable[re.Match[bytes]]) -> dict[str, object]:
    members: dict[str, object] = {}
    repeated: set[str] = set()
    try:
        for member in found:
            key = str(_value(member[1]))
            if key in members:
                repeated.add(key)
            members[key] = _value(member[2] or b"null")
    except ValueError:
        return {}
    return {key: value for key, value in members.items() if key not in repeated}


def _value(text: bytes) -> object:
    """Return a simple value; a string may contain bytes that JSON or UTF-8 does not allow."""
    return json.loads(text.decode("utf-8", "surrogateescape"), strict=False)


def _first(text: bytes) -> tuple[list[re.Match[bytes]], int]:
    """Return the members up to the first nested value, and where they end."""
    found: list[re.Match[bytes]] = []
    at = begin.end() if (begin := _BEGIN.match(text)) is not None else len(text)
    while (member := _FIRST.match(text, at) or _NESTED.match(text, at)) is not None:
        found.append(member)
        at = member.end()
        if member.re is _NESTED:
            break
    return found, at


def _last(text: bytes) -> Iterator[re.Match[bytes]]:
    """Return the members after the last nested value."""
    end = _END.search(text)
    return _LAST.finditer(text, end.start()) if end is not None else iter(())
