"""Reads JSON that was sent as text, within the bounds of a call."""

import json
from typing import cast

from interlock.kernel.budgets import ARGUMENT_VALUES_MAX, LINE_DEPTH_MAX, NUMBER_DIGITS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess

_TEXT_BOUNDS = JsonBounds(values_max=ARGUMENT_VALUES_MAX, depth_max=LINE_DEPTH_MAX)


def parse_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object that a text is; None for any other text."""
    value = parse_json(text)
    return value if isinstance(value, dict) else None


def parse_json(text: str) -> Json:
    """Return the JSON value that a text is; None for any other text, or a value outside the bounds."""
    if _find_excess(text) is not None:
        return None
    try:
        return cast("Json", json.loads(text))
    except ValueError:
        return None


def describe_unparsed(text: str) -> str:
    """Return why a string could not be parsed as a JSON object."""
    match _find_excess(text):
        case None:
            return "a string that is not a JSON object"
        case "values":
            return f"a string of JSON with more than {ARGUMENT_VALUES_MAX} values"
        case "depth":
            return f"a string of JSON nested deeper than {LINE_DEPTH_MAX} levels"
        case "digits":
            return f"a string of JSON with a number of more than {NUMBER_DIGITS_MAX} digits"


def _find_excess(text: str) -> Excess | None:
    return find_excess(text.encode("utf-8", "surrogatepass"), _TEXT_BOUNDS)
