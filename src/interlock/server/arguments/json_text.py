"""Reads JSON that was sent as text, within the bounds of a call and by the rules of its line."""

import json
from typing import cast

from interlock.kernel.budgets import ARGUMENT_VALUES_MAX, ECHO_BYTES_MAX, LINE_DEPTH_MAX, NUMBER_DIGITS_MAX
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.json_bounds import JsonBounds, find_excess
from interlock.kernel.strict_json import NotANumberError, RepeatedKeyError, decode, holds_lone_surrogate
from interlock.kernel.text import one_line

_TEXT_BOUNDS = JsonBounds(values_max=ARGUMENT_VALUES_MAX, depth_max=LINE_DEPTH_MAX)
_EXCESS_WORDS = {
    "values": f"with more than {ARGUMENT_VALUES_MAX} values",
    "depth": f"nested deeper than {LINE_DEPTH_MAX} levels",
    "digits": f"with a number of more than {NUMBER_DIGITS_MAX} digits",
}


@frozen
class ReadText:
    """What a text holds as JSON. `fault` says what is wrong with JSON that is not accepted: "with more than …".

    `place` is the path of the fault inside the value; empty if it is the value itself, or if no place is known.
    """

    value: Json = None
    fault: str | None = None
    place: str = ""


def read_json(text: str) -> ReadText:
    """Return the JSON value that a text is; without a value for any other text, and for JSON that is not accepted."""
    excess = find_excess(text.encode("utf-8", "surrogatepass"), _TEXT_BOUNDS)
    if excess is not None:
        return ReadText(fault=_EXCESS_WORDS[excess])
    try:
        value = decode(text)
    except json.JSONDecodeError:
        return ReadText()
    except NotANumberError as error:
        return ReadText(fault=f"with {error}, which is no JSON value", place=_place(json.loads(text)))
    except RepeatedKeyError as error:
        return ReadText(fault=f"in which the key {one_line(str(error), ECHO_BYTES_MAX)!r} occurs twice in one object")
    if holds_lone_surrogate(value):
        return ReadText(fault="with half of a surrogate pair, such as \\ud800", place=_place(value))
    return ReadText(value=cast("Json", value))


def _place(value: object) -> str:
    """Return where a value holds what JSON cannot."""
    try:
        canonical_bytes(value)
    except NotCanonicalError as error:
        return error.path
    return ""


def parse_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object that a text is; None for any other text, and for JSON that is not accepted."""
    value = read_json(text).value
    return value if isinstance(value, dict) else None
