"""The call that the text of an answer shows, as a model reads it."""

import json
import re
from collections.abc import Mapping
from typing import Any

_INVITATION = re.compile(r"[Cc]all `(\w+)`[^\n]*\n(?:```json\n(.*)\n```|((?:- `.*\n?)+))")
_FIXED = re.compile(r"- `(\w+)`: (`+) ?(.*?) ?\2")
_BLANK = re.compile(r"- `([^`]+)`(?: \((.*?)\))?(?:: (.*))?")
_ONLY = re.compile("exactly `(.*)`")
_PLAIN = {"true": True, "false": False, "null": None}

ShownCall = tuple[str, dict[str, Any], list[Mapping[str, Any]]]
"""The tool, the arguments, and the values to add."""


def shown_calls(text: str) -> list[ShownCall]:
    """Return the calls that a text shows, in their order."""
    return [_call(*found.groups()) for found in _INVITATION.finditer(text)]


def _call(tool: str, block: str | None, listed: str | None) -> ShownCall:
    if block is not None:
        return tool, json.loads(block), []
    arguments, fill = dict[str, Any](), list[Mapping[str, Any]]()
    for line in (listed or "").splitlines():
        fixed = _FIXED.fullmatch(line)
        if fixed is not None:
            arguments[fixed[1]] = _value(fixed[3])
        elif blank := _BLANK.fullmatch(line):
            fill.append(_blank(*blank.groups()))
    return tool, arguments, fill


def _value(shown: str) -> object:
    try:
        return json.loads(shown)
    except ValueError:
        return shown


def _blank(path: str, kind: str | None, what: str | None) -> Mapping[str, Any]:
    only = _ONLY.fullmatch(what or "")
    if only is not None:
        return {"path": path, "choices": [json.loads(only[1])]}
    is_closed = kind and " | " in kind and not kind.startswith(("list of", "{"))
    choices = [_PLAIN.get(choice, choice) for choice in (kind or "").split(" | ")]
    return {"path": path, "what": what} | ({"choices": choices} if is_closed else {"shape": kind} if kind else {})
