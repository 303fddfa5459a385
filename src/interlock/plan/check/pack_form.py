"""The form of the schemas of contract packs: a pack that came from a file may not hold any other (BND-5).

Artifacts are checked against them, so a schema must not fetch another one, match for minutes, or be none at all. Packs
of other releases have other texts and limits, but only these keywords.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from interlock.kernel.canonical import Json

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_PATTERNS = frozenset({"^[a-z0-9_-]+$"})
"""The patterns of all packs: each is matched in a time that grows with the text alone."""
_ONE = frozenset({"items", "if", "then", "else", "contains", "not", "additionalProperties"})
"""The keywords whose value is a schema."""
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf"})
"""The keywords whose value is a list of schemas."""


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, dict | list)


def _is_count(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


def _is_list_of(is_one: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda value: isinstance(value, list) and all(map(is_one, value))


_PLAIN: Mapping[str, Callable[[Json], bool]] = {
    "type": lambda value: isinstance(value, str) and value in _TYPES,
    "pattern": lambda value: isinstance(value, str) and value in _PATTERNS,
    "const": _is_scalar,
    "enum": _is_list_of(_is_scalar),
    "required": _is_list_of(_is_text),
    **dict.fromkeys(("title", "description"), _is_text),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _is_count),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
}
"""The other keywords, each with a check of its value."""


def find_foreign(schema: Json, at: str = "artifactSchema") -> str | None:
    """Return the path of the first part that no schema of a contract pack has; None if there is none."""
    return next(_foreign(schema, at), None)


def _foreign(schema: Json, at: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield at
        return
    for key, value in schema.items():
        here = f"{at}.{key}"
        if key == "properties" and isinstance(value, dict):
            for name, one in value.items():
                yield from _foreign(one, f"{here}.{name}")
        elif key in _SEVERAL and isinstance(value, list):
            for number, one in enumerate(value):
                yield from _foreign(one, f"{here}[{number}]")
        elif key in _ONE:
            is_closed = key == "additionalProperties" and isinstance(value, bool)
            yield from () if is_closed else _foreign(value, here)
        elif key not in _PLAIN or not _PLAIN[key](cast("Json", value)):
            yield here
