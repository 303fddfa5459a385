"""Renders a fault of JSON Schema as what to send instead; no message of a library reaches an agent (ANS-10)."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from interlock.engine.judge.shape import properties_of, shape_of
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line

if TYPE_CHECKING:
    from jsonschema import ValidationError

_KINDS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def in_words(error: "ValidationError", schema: Mapping[str, object]) -> str:
    """Render one fault of a check against `schema`: what was found, what is required, and what it contradicts."""
    reason = _render_reason(error, schema)
    return _render(error) + (f"{reason}: change one of the two" if reason else "")


def _render(error: "ValidationError") -> str:
    render = _RENDERERS.get(str(error.validator))
    if render is not None:
        return render(error)
    found, limit = _render_found(error), error.validator_value
    least = f"{found}; at least {limit}" if str(error.validator).startswith("min") else f"{found}; at most {limit}"
    match str(error.validator)[3:]:
        case "Length":
            return f"{least} {'character' if limit == 1 else 'characters'}"
        case "Items" if limit == 0:
            # Entries that are repeated here are copied into the next call.
            return f"found a list of {len(cast('list[object]', error.instance))}; send []"
        case "Items" | "Properties":
            return f"{least} {'entry' if limit == 1 else 'entries'}"
        case "imum":
            return least
        case _:
            return f"{found}, which the contract does not accept"


def _render_reason(error: "ValidationError", schema: Mapping[str, object]) -> str:
    """Render why a condition of the schema applies, such as `verdict` being "clean"; "" for a fault without one."""
    known = reasons_of(error, schema)
    said = " and ".join(f"`{name}` is {_render_known(value)}" for name, value in known.items())
    return f", because {said}" if said else ""


def reasons_of(error: "ValidationError", schema: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    """Return the fields, each with its condition, because of which a rule of the schema applies; empty without one."""
    path = list(error.absolute_schema_path)
    if path[:1] != ["allOf"] or path[2:3] != ["then"]:
        return {}
    rule = cast("list[Mapping[str, Mapping[str, Json]]]", schema["allOf"])[cast("int", path[1])]
    return properties_of(rule["if"])


def is_lack(error: "ValidationError") -> bool:
    """Say whether something is not there that has to be, such as a field or an entry of a list."""
    return error.validator in ("required", "contains") or str(error.validator).startswith("min")


def missing_names(error: "ValidationError") -> list[str]:
    """Return the required fields that an object does not have; the library reports each on its own."""
    present = cast("Mapping[str, object]", error.instance)
    return [name for name in cast("list[str]", error.validator_value) if name not in present]


def _render_known(value: Mapping[str, object]) -> str:
    return _render_value(value["const"]) if "const" in value else "not empty"


def _render_contains(error: "ValidationError") -> str:
    wanted = properties_of(cast("Mapping[str, Json]", error.validator_value))
    members = [f"`{name}` {' | '.join(map(_render_value, _allowed(value)))}" for name, value in wanted.items()]
    return f"no entry has {' and '.join(members) or 'what is required'}"


def _allowed(value: Mapping[str, object]) -> list[object]:
    return cast("list[object]", value["enum"]) if "enum" in value else [value.get("const")]


def _render_found(error: "ValidationError") -> str:
    return f"found {one_line(json.dumps(error.instance, ensure_ascii=False), ECHO_BYTES_MAX)}"


def _render_enum(error: "ValidationError") -> str:
    values = map(_render_value, cast("list[object]", error.validator_value))
    return f"{_render_found(error)}; use one of {' | '.join(values)}"


def _render_const(error: "ValidationError") -> str:
    return f"{_render_found(error)}; use {_render_value(error.validator_value)}"


def _render_type(error: "ValidationError") -> str:
    wanted = error.validator_value
    kinds = cast("list[str]", wanted) if isinstance(wanted, list) else [str(wanted)]
    return f"{_render_found(error)}; send {' or '.join(_KINDS.get(kind, kind) for kind in kinds)}"


def _render_required(error: "ValidationError") -> str:
    # The fields of the artifact itself are listed with their shapes in the same answer.
    schema = cast("Mapping[str, Json]", error.schema)
    fields: Mapping[str, Mapping[str, Json]] = properties_of(schema) if error.absolute_path else {}
    shapes = {name: shape_of(fields.get(name, {})) for name in missing_names(error)}
    words = [f"`{name}`" if shape == "text" else f"`{name}` ({shape})" for name, shape in shapes.items()]
    return f"missing {', '.join(words)}"


def _render_additional(error: "ValidationError") -> str:
    known = properties_of(cast("Mapping[str, Json]", error.schema))
    extra = [name for name in cast("Mapping[str, object]", error.instance) if name not in known]
    shown = ", ".join(f"`{one_line(name, ECHO_BYTES_MAX)}`" for name in extra)
    return f"unknown field {shown}; use {', '.join(f'`{name}`' for name in known)}"


def _render_pattern(error: "ValidationError") -> str:
    return f"{_render_found(error)}; it must match `{error.validator_value}`"


def _render_any_of(error: "ValidationError") -> str:
    options = [_render_option(option) for option in cast("list[Mapping[str, object]]", error.validator_value)]
    if isinstance(error.instance, dict):
        return f"send {' or '.join(options)}"
    return f"{_render_found(error)}; send {' or '.join(options)}"


_RENDERERS: Mapping[str, Callable[["ValidationError"], str]] = {
    "enum": _render_enum,
    "const": _render_const,
    "type": _render_type,
    "required": _render_required,
    "additionalProperties": _render_additional,
    "pattern": _render_pattern,
    "contains": _render_contains,
    "anyOf": _render_any_of,
    "oneOf": _render_any_of,
}


def _render_value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _render_option(option: Mapping[str, object]) -> str:
    return str(option.get("description") or _KINDS.get(str(option.get("type")), "another value"))
