"""Finds the id that a file states although the file cannot be parsed: it is too large, or not JSON or YAML (SRC-5)."""

import re

from interlock.define.source.text_form import TextFormat
from interlock.kernel.budgets.workflow import (
    STATED_ID_BYTES_MAX,
    STATED_ID_CHARS_MAX,
)

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{}:,]', re.DOTALL)
"""A string that does not end reaches to the end of the text, so that each character is read once."""
_YAML_ID = re.compile(r"""^id:[ \t]+(["']?)([^\s"'#]+)\1[ \t]*(?:#.*)?\r?$""", re.MULTILINE)
_OPENING, _CLOSING = frozenset("[{"), frozenset("]}")


def find_stated_id(data: bytes, text_format: TextFormat) -> str | None:
    """Return the value of the key `id` of the outermost object; None if there is no such key. It may be no valid id."""
    head = data[:STATED_ID_BYTES_MAX].decode("utf-8", "replace")
    if text_format == "yaml" and not head.lstrip().startswith("{"):
        match = _YAML_ID.search(head)
        stated = match[2] if match is not None else None
    else:
        stated = _find_in_json(head)
    return stated if stated and len(stated) <= STATED_ID_CHARS_MAX else None


def _find_in_json(head: str) -> str | None:
    depth, before = 0, ("", "")
    for match in _JSON_TOKEN.finditer(head):
        token = match[0]
        if token in _OPENING:
            depth += 1
        elif token in _CLOSING:
            depth -= 1
        elif depth == 1 and before == ('"id"', ":") and token.startswith('"'):
            stated = token[1:-1]
            return stated if token.endswith('"') and "\\" not in stated else None
        before = (before[1], token)
    return None
