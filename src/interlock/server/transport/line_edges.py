"""Reads members at the two ends of a message without parsing it, to find the id.

A line that is too costly to parse is refused under its id. Clients write the id before or after the one nested value.
"""

import json
import re
from collections.abc import Iterator
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
    members: dict[str, object] = {}
    repeated: set[str] = set()
    first, at = _first(raw[:LINE_EDGE_BYTES_MAX])
    last = _last(raw[max(at, len(raw) - LINE_EDGE_BYTES_MAX) :])
    try:
        for member in chain(first, last):
            key: str = json.loads(member[1])
            if key in members:
                repeated.add(key)
            members[key] = json.loads(member[2] or b"null")
    except ValueError:
        return {}
    return {key: value for key, value in members.items() if key not in repeated}


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
