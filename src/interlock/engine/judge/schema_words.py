"""What a JSON Schema refuses, in words that name what to send instead; no library's words reach an agent (ANS-10)."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.text import one_line

if TYPE_CHECKING:
    from jsonschema import ValidationError

_KINDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def in_words(error: "ValidationError") -> str:
    """Return one fault in words: what was found, and what is wanted."""
    tell = _TOLD.get(str(error.validator))
    if tell is not None:
        return tell(error)
    found, limit = _found(error), error.validator_value
    least = f"{found}; at least {limit}" if str(error.validator).startswith("min") else f"{found}; at most {limit}"
    match str(error.validator)[3:]:
        case "Length":
            return f"{least} characters"
        case "Items" | "Properties":
            return f"{least} entries"
        case "imum":
            return least
        case _:
            return f"{found}, which the contract does not accept"


def _found(error: "ValidationError") -> str:
    return f"found {one_line(json.dumps(error.instance, ensure_ascii=False), ECHO_BYTES_MAX)}"


def _of_a_set(error: "ValidationError") -> str:
    return f"{_found(error)}; use one of {' | '.join(map(_shown, cast('list[object]', error.validator_value)))}"


def _of_one(error: "ValidationError") -> str:
    return f"{_found(error)}; use {_shown(error.validator_value)}"


def _of_a_kind(error: "ValidationError") -> str:
    wanted = error.validator_value
    kinds = cast("list[str]", wanted) if isinstance(wanted, list) else [str(wanted)]
    return f"{_found(error)}; send {' or '.join(_KINDS.get(kind, kind) for kind in kinds)}"


def _missing(error: "ValidationError") -> str:
    present = cast("Mapping[str, object]", error.instance)
    missing = [name for name in cast("list[str]", error.validator_value) if name not in present]
    return f"missing {', '.join(f'`{name}`' for name in missing)}"


def _unknown(error: "ValidationError") -> str:
    schema = cast("Mapping[str, object]", error.schema)
    known = cast("Mapping[str, object]", schema.get("properties", {}))
    extra = [name for name in cast("Mapping[str, object]", error.instance) if name not in known]
    shown = ", ".join(f"`{one_line(name, ECHO_BYTES_MAX)}`" for name in extra)
    return f"unknown field {shown}; use {', '.join(f'`{name}`' for name in known)}"


def _unlike_its_pattern(error: "ValidationError") -> str:
    return f"{_found(error)}; it must match `{error.validator_value}`"


def _of_no_kind(error: "ValidationError") -> str:
    options = [_option(option) for option in cast("list[Mapping[str, object]]", error.validator_value)]
    return f"{_found(error)}; send {' or '.join(options)}"


_TOLD: Mapping[str, Callable[["ValidationError"], str]] = {
    "enum": _of_a_set,
    "const": _of_one,
    "type": _of_a_kind,
    "required": _missing,
    "additionalProperties": _unknown,
    "pattern": _unlike_its_pattern,
    "anyOf": _of_no_kind,
    "oneOf": _of_no_kind,
}


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _option(option: Mapping[str, object]) -> str:
    return _KINDS.get(str(option.get("type")), "another value")
