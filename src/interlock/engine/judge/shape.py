"""The shape of an artifact, in a notation for readers that is no valid call (ANS-22).

`list of {name, result: passed | failed, evidence?}`: a member without a type is a text, one with `?` is optional.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from interlock.kernel.blanks import Blank, Outline, choice_text
from interlock.kernel.canonical import Json, JsonScalar

_TYPES = {"integer": "whole number", "number": "number", "boolean": "true | false", "object": "object"}


def artifact_outline(schema: Mapping[str, Json]) -> dict[str, Outline]:
    """Return the smallest artifact of a schema: its constants, and a blank for each field that may be required."""
    properties = properties_of(schema)
    outline: dict[str, Outline] = {
        name: properties[name]["const"] if "const" in properties.get(name, {}) else field_blank(name, schema)
        for name in dict.fromkeys((*_required(schema), *_sometimes_required(schema)))
    }
    return dict(sorted(outline.items(), key=lambda item: _rank(item[1])))


def _rank(value: Outline) -> int:
    """Order constants before choices, and choices before what is written freely."""
    return 0 if not isinstance(value, Blank) else 1 if value.choices else 2


def field_blank(name: str, artifact: Mapping[str, Json]) -> Blank:
    """Return the blank of one field of an artifact's schema."""
    schema = properties_of(artifact).get(name, {})
    choices = tuple(cast("Sequence[JsonScalar]", schema.get("enum", [])))
    if schema.get("type") == "boolean":
        choices = (True, False)
    shape = None if choices else shape_of(schema)
    return Blank(what=str(schema.get("description", name)), choices=choices, shape=None if shape == "text" else shape)


def shape_of(schema: Mapping[str, Json]) -> str:
    """Return the notation of a schema."""
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " | ".join(map(str, cast("Sequence[JsonScalar]", schema["enum"])))
    if schema.get("type") == "array":
        return f"list of {shape_of(cast('Mapping[str, Json]', schema.get('items', {})))}{_bounds(schema, 'Items')}"
    if schema.get("type") == "object" and "properties" in schema:
        return f"{{{', '.join(_members(schema))}}}"
    return _TYPES.get(str(schema.get("type")), "text" + _bounds(schema, "Length"))


def _members(schema: Mapping[str, Json]) -> Iterator[str]:
    required = _required(schema)
    properties = properties_of(schema)
    for name in sorted(properties, key=lambda name: name not in required):
        shape = shape_of(properties[name])
        yield name + ("" if name in required else "?") + ("" if shape == "text" else f": {shape}")


def _bounds(schema: Mapping[str, Json], unit: str) -> str:
    words = [
        f"at {word} {limit}"
        for word, key in (("least", "min"), ("most", "max"))
        if isinstance(limit := schema.get(f"{key}{unit}"), int) and (limit > 1 or unit == "Items")
    ]
    if not words:
        return ""
    return f" ({', '.join(words)})" if unit == "Items" else f" of {' and '.join(words)} characters"


def properties_of(schema: Mapping[str, Json]) -> Mapping[str, Mapping[str, Json]]:
    """Return the schemas of an object's fields."""
    return cast("Mapping[str, Mapping[str, Json]]", schema.get("properties", {}))


def _sometimes_required(schema: Mapping[str, Json]) -> Iterator[str]:
    """Yield the fields that are required if another field has a certain value."""
    for rule in cast("Sequence[Mapping[str, Mapping[str, Json]]]", schema.get("allOf", ())):
        yield from _required(rule.get("then", {}))


def _required(schema: Mapping[str, Json]) -> Sequence[str]:
    return cast("Sequence[str]", schema.get("required", ()))


def outline_notation(outline: Outline) -> str:
    """Return an outline in the notation of `shape_of`: fixed values unchanged, a blank as its choices or shape."""
    if isinstance(outline, Blank):
        return " | ".join(map(choice_text, outline.choices)) or outline.shape or "text"
    if isinstance(outline, Mapping):
        return f"{{{', '.join(f'{name}: {outline_notation(value)}' for name, value in outline.items())}}}"
    return choice_text(cast("Json", outline))
