"""The reference page of the built-ins."""

import json
from collections.abc import Iterable, Mapping
from typing import cast, get_args

from interlock.cli.workflow.builtins import registry
from interlock.define.parts import CapabilityName
from interlock.engine.judge.shape import artifact_outline, outline_notation
from interlock.kernel.canonical import Json
from interlock.plan.builtins.features import FEATURES, Feature
from interlock.plan.builtins.packs import PACKS, Pack
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.builtins.templates import TEMPLATES, RoutineTemplate


def builtins_page() -> str:
    """Return the reference page of everything that ships under `wr.*` except workflows."""
    parts = [
        "# Built-ins\n\nA closed set. Workflows refer to these by id, and a plan pins the ones it uses.",
        "## Capabilities\n\nWhat a client may be able to do, and a workflow states that it needs.\n\n"
        + "\n".join(f"- `{name}`" for name in get_args(CapabilityName)),
        "## Contract packs\n\n" + "\n\n".join(_pack(pack) for pack in PACKS.values()),
        "## Features\n\nEach adds its lines to every step that is written in `promptBlocks`.\n\n"
        + "\n\n".join(_feature(feature) for feature in FEATURES.values()),
        "## References\n\n" + _table(("id", "text"), ((f"`{one.ref_id}`", one.text) for one in SNIPPETS.values())),
        "## Routine templates\n\n" + "\n\n".join(_template(template) for template in TEMPLATES.values()),
    ]
    return "\n\n".join(parts) + "\n"


def builtins_registry() -> dict[str, Json]:
    """Return the same as data: for tools that list, complete or check references to built-ins (SRV-11)."""
    found = registry()
    return {
        "capabilities": found["capabilities"],
        "contractPacks": found["contracts"],
        "features": found["features"],
        "references": found["references"],
        "routineTemplates": found["routines"],
    }


def _pack(pack: Pack) -> str:
    parts = [f"### {pack.contract_ref}", pack.purpose, "\n".join(f"- {line}" for line in pack.lines)]
    if pack.schema is not None and pack.kind is not None:
        more = "refused" if pack.schema.get("additionalProperties") is False else "allowed"
        parts += [
            _table(("field", "value", "required"), _fields(pack.schema)) + f"\n\nOther fields are {more}.",
            f"What an answer asks for: `{outline_notation(artifact_outline(pack.schema))}`.",
        ]
    return "\n\n".join(parts)


def _fields(schema: Mapping[str, Json]) -> Iterable[tuple[str, str, str]]:
    """Yield a row for each field of an artifact, the required ones first."""
    properties = cast("dict[str, dict[str, Json]]", schema["properties"])
    required = cast("list[str]", schema["required"])
    for name in sorted(properties, key=lambda name: (name != "kind", name not in required, name)):
        yield f"`{name}`", _value(properties[name]), "yes" if name in required else ""


def _value(schema: Mapping[str, Json]) -> str:
    """Return in words what a schema accepts."""
    match schema:
        case {"const": constant}:
            return f"`{json.dumps(constant)}`"
        case {"enum": list(choices)}:
            return " | ".join(f"`{choice}`" for choice in choices)
        case {"anyOf": list(options)}:
            return " or ".join(_value(cast("dict[str, Json]", option)) for option in options)
        case {"type": "array", "items": dict(item)}:
            return f"list of {_value(item)}{_bounds(schema, 'minItems', 'maxItems')}"
        case {"type": "object", "properties": dict()}:
            rows = _fields({"required": [], **schema})
            return "{" + ", ".join(f"{name}{'' if needed else '?'}: {value}" for name, value, needed in rows) + "}"
        case {"type": "object", "additionalProperties": dict(item)}:
            return f"object of {_value(item)}"
        case _:
            words, least, most = _PLAIN[str(schema["type"])]
            return words + _bounds(schema, least, most)


_PLAIN = {
    "string": ("text", "minLength", "maxLength"),
    "integer": ("whole number", "minimum", "maximum"),
    "number": ("number", "minimum", "maximum"),
    "boolean": ("true or false", "", ""),
    "object": ("object", "minProperties", "maxProperties"),
}
"""How a type is called, and the keywords that bound it."""


def _bounds(schema: Mapping[str, Json], least: str, most: str) -> str:
    """Return the bounds of a value; that a text may not be empty goes without saying."""
    low, high = schema.get(least), schema.get(most)
    lower = "" if low is None or (least == "minLength" and low == 1) else f"at least {low}"
    upper = f"at most {high}" if high is not None else ""
    return f" ({', '.join(bound for bound in (lower, upper) if bound)})" if lower or upper else ""


def _feature(feature: Feature) -> str:
    config = [(f"`{one.name}`", one.in_words(), f"`{json.dumps(one.default)}`") for one in feature.config]
    lines = [*feature.constraints, *feature.procedure, *feature.verify]
    parts = [f"### {feature.feature_id}", feature.purpose, "\n".join(f"- {line}" for line in lines)]
    parts += [_table(("setting", "value", "default"), config)] if config else []
    return "\n\n".join(parts)


def _template(template: RoutineTemplate) -> str:
    args = ", ".join(f"`{name}`" for name in template.args) or "none"
    steps = "\n".join(f"{number}. `{step.step_id}` {step.title}" for number, step in enumerate(template.steps, start=1))
    return f"### {template.template_id}\n\n{template.purpose} Arguments: {args}.\n\n{steps}"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
