"""Turns models into JSON Schemas that every client accepts: flat, inlined, without unions (SRV-2)."""

from typing import Literal, cast

from pydantic import BaseModel

from interlock.kernel.canonical import Json
from interlock.kernel.shape import Shape
from interlock.kernel.shape.mirror import model_of

_REDUNDANT: tuple[tuple[str, Json], ...] = (("default", None), ("additionalProperties", {}), ("items", {}))
_FORBIDDEN = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs"})


def flat_schema(model: type[BaseModel | Shape], mode: Literal["validation", "serialization"]) -> dict[str, Json]:
    """Return a model's schema with definitions inlined and titles removed.

    In arguments (`validation`), an optional member may be absent, but never null, and every object lists its members,
    the required ones, and whether it accepts others. In answers (`serialization`), a required member may be null.
    """
    raw = cast("dict[str, Json]", model_of(model).model_json_schema(mode=mode, by_alias=True))
    definitions = cast("dict[str, Json]", raw.pop("$defs", {}))
    raw.pop("description", None)
    schema = cast("dict[str, Json]", _flatten(raw, definitions))
    if mode == "validation":
        assert not _collect_keywords(schema) & _FORBIDDEN, "arguments use no composition"
        return _make_explicit(schema)
    schema.setdefault("required", [])
    return schema


def _flatten(node: Json, definitions: dict[str, Json]) -> Json:
    if isinstance(node, list):
        return [_flatten(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = cast("dict[str, Json]", definitions[str(node["$ref"]).rpartition("/")[2]])
        return _flatten(target | {key: value for key, value in node.items() if key != "$ref"}, definitions)
    if "anyOf" in node and "default" in node:
        return _flatten(_drop_null(node), definitions)
    flat = {
        key: _flatten_member(key, value, definitions)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }
    return {key: value for key, value in flat.items() if (key, value) not in _REDUNDANT}


def _flatten_member(key: str, value: Json, definitions: dict[str, Json]) -> Json:
    if key == "properties" and isinstance(value, dict):
        return {name: _flatten(schema, definitions) for name, schema in value.items()}
    return _flatten(value, definitions)


def _make_explicit(node: dict[str, Json]) -> dict[str, Json]:
    """Return a flat schema in which every object states its members. Without that, clients guess."""
    explicit: dict[str, Json] = dict(node)
    if isinstance(items := node.get("items"), dict):
        explicit["items"] = _make_explicit(items)
    if node.get("type") == "object":
        members = cast("dict[str, dict[str, Json]]", node.get("properties", {}))
        explicit["properties"] = {name: _make_explicit(member) for name, member in members.items()}
        explicit.setdefault("required", [])
        explicit.setdefault("additionalProperties", True)
    return explicit


def _drop_null(node: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of T for `T | None = None`."""
    options = [option for option in cast("list[dict[str, Json]]", node["anyOf"]) if option.get("type") != "null"]
    assert len(options) == 1, "a published union is T or null"
    return options[0] | {key: value for key, value in node.items() if key not in {"anyOf", "default"}}


def _collect_keywords(node: Json) -> set[str]:
    """Collect the keywords of a schema. Names of properties are not keywords."""
    if isinstance(node, list):
        return {word for item in node for word in _collect_keywords(item)}
    if not isinstance(node, dict):
        return set()
    members = node.get("properties")
    schemas = list(members.values()) if isinstance(members, dict) else []
    below = [value for key, value in node.items() if key != "properties"]
    return set(node) | {word for item in [*schemas, *below] for word in _collect_keywords(item)}
