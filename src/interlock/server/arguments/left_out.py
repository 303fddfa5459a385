"""Names what was sent and is not in the corrected call, so that nothing is dropped without a word (ANS-29)."""

import json
from collections.abc import Iterator, Mapping, Sequence

from interlock.define.faults import Location
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import ECHO_BYTES_MAX, LEFT_OUT_NAMED_MAX
from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.text import one_line, render_path
from interlock.server.arguments.json_text import read_json

_BESIDE_ARGUMENTS = frozenset({"then", "tool", "name", "fill"})
"""The members of a shown call beside its `arguments`."""


def left_out(sent: Mapping[str, Json], kept: Mapping[str, Outline]) -> list[str]:
    """Return the paths of the values that were sent and are nowhere in the arguments that are kept.

    A value that moved is not left out; a number that moved keeps its name. An object or a list of which nothing is kept
    is named as a whole. What is null or empty says nothing.
    """
    scalars = frozenset(_scalars(kept))
    return [render_path(loc) for name, value in _said(sent) for loc in _missing(value, (name,), scalars)]


def left_out_words(paths: Sequence[str]) -> str:
    """Return the sentence that names what is not in the call below; an empty text if that is nothing."""
    named = [f"`{one_line(path, ECHO_BYTES_MAX)}`" for path in paths[:LEFT_OUT_NAMED_MAX]]
    more = len(paths) - len(named)
    return f" Left out of the call below: {', '.join(named)}{f' and {more} more' if more else ''}." if paths else ""


def _scalars(value: Outline, name: str = "") -> Iterator[str]:
    """Yield what identifies each scalar of a value: a text, or the name and the JSON of another scalar."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _scalars(one, key)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for one in value:
            yield from _scalars(one, name)
    elif not isinstance(value, Blank):
        yield _identity(value, name)


def _identity(scalar: JsonScalar, name: str) -> str:
    """Return a text as it is, and of another scalar, which may be equal by chance, the JSON with its name.

    Of a path that was sent as a name, the last name counts.
    """
    return scalar if isinstance(scalar, str) else json.dumps([name.rpartition(".")[2].partition("[")[0], scalar])


def _said(value: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield the members of an object, without what surrounds the arguments of a shown call that was sent whole."""
    is_shown_call = "arguments" in value
    return ((name, one) for name, one in value.items() if not (is_shown_call and name in _BESIDE_ARGUMENTS))


def _missing(value: Json, loc: Location, kept: frozenset[str]) -> list[Location]:
    if isinstance(value, str) and value[:1] in ("{", "[") and value not in kept:
        value = read_json(value).value or value
    if not isinstance(value, dict | list):
        name = next(part for part in reversed(loc) if isinstance(part, str))
        return [] if _is_empty(value) or _identity(value, name) in kept else [loc]
    members = _said(value) if isinstance(value, dict) else enumerate(value)
    inner = [((*loc, key), _missing(one, (*loc, key), kept)) for key, one in members if not _is_empty(one)]
    is_whole = inner != [] and all(found == [place] for place, found in inner)
    return [loc] if is_whole else [one for _, found in inner for one in found]


def _is_empty(value: Json) -> bool:
    return value is None or value in ("", {}, [])
