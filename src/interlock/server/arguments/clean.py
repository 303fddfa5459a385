"""Cleans the arguments of a call: what clients add or send in another form than the schema's (ANS-11)."""

from collections.abc import Mapping
from typing import cast

from interlock.kernel.canonical import Json
from interlock.kernel.text import has_surrogate
from interlock.plan.builtins.packs import PACKS
from interlock.server.arguments.json_text import read_json
from interlock.server.tools.contract import Fault, Tool

INJECTED_BY_CLIENTS = frozenset({"wait_for_previous"})
"""Arguments that some clients add to every tool's schema and send. They are ignored."""
_OBJECTS = frozenset({"output", "context", "preferences"})


def clean(tool: Tool, sent: Mapping[str, Json]) -> tuple[dict[str, Json], Fault | None]:
    """Drop injected arguments, treat null and "" in an optional argument as absent, parse objects sent as strings.

    The first fault, if any, leaves its argument as it was sent.
    """
    fields, names = tool.arguments.model_fields, tool.argument_names
    cleaned: dict[str, Json] = {}
    first: Fault | None = None
    for key, value in sent.items():
        if key in INJECTED_BY_CLIENTS:
            continue
        field = fields.get(names.get(key, ""))
        if field is not None and not field.is_required() and value in (None, ""):
            continue
        cleaned[key], fault = _clean_value(key, value)
        first = first or fault
    return cleaned, first


def _clean_value(key: str, value: Json) -> tuple[Json, Fault | None]:
    if isinstance(value, str):
        if has_surrogate(value):
            return value, Fault(key, "The text contains half of a surrogate pair.", "Send valid Unicode text.")
        if key in _OBJECTS:
            value, fault = _read_text(key, value, f"Send `{key}` as an object.")
            if not isinstance(value, dict):
                other = Fault(key, "Found a string that is not a JSON object.", f"Send `{key}` as an object.")
                return value, fault or other
    return _without_nulls(key, value) if key in {"output", "preferences"} else (value, None)


def _without_nulls(name: str, value: Json) -> tuple[Json, Fault | None]:
    if not isinstance(value, dict):
        return value, None
    kept: dict[str, Json] = {
        key: item
        for key, item in value.items()
        if item is not None and key not in INJECTED_BY_CLIENTS and (item != "" or key == "notesMarkdown")
    }
    if "artifacts" not in kept:
        return kept, None
    kept["artifacts"], fault = _read_text(f"{name}.artifacts", kept["artifacts"], "Send a list.")
    if not isinstance(kept["artifacts"], list):
        return kept, fault
    items = [
        _read_text(f"{name}.artifacts[{at}]", item, "Send an object.") for at, item in enumerate(kept["artifacts"])
    ]
    kept["artifacts"] = [item for item, _ in items]
    return kept, next((one for _, one in items if one is not None), fault)


def _read_text(path: str, value: Json, fix: str) -> tuple[Json, Fault | None]:
    """Return the object or list that a text of JSON is, or else the value as it is, with the fault and its place."""
    if not isinstance(value, str):
        return value, None
    read = read_json(value)
    if read.fault is None:
        return read.value if isinstance(read.value, dict | list) else value, None
    if not read.place:
        return value, Fault(path, f"Found a string of JSON {read.fault}.", fix)
    place = f"{path}{'' if read.place.startswith('[') else '.'}{read.place}"
    return value, Fault(path, f"Found a string of JSON {read.fault}, at `{place}`.", fix, details={"path": place})


def fitted(place: str, value: Json) -> Json:
    """Return a value in the form that its place takes: artifacts in a list.

    An object in its place is one artifact, or holds artifacts by their positions, kinds or contracts, or with their
    kinds under any names. Then a name is the kind of each artifact under it that has none.
    """
    if place != "output.artifacts" or not isinstance(value, dict):
        return value
    listed = [(key, one) for key, held in value.items() for one in (held if isinstance(held, list) else [held])]
    if "kind" in value or not listed or not all(_is_named_artifact(key, one) for key, one in listed):
        return [value]
    return [_with_kind(key, cast("dict[str, Json]", one)) for key, one in listed]


def _is_named_artifact(name: str, value: Json) -> bool:
    """Say whether a value under a name can only be an artifact. With no kind and no dotted name, it may not."""
    return isinstance(value, dict) and (name.isdecimal() or "." in name or isinstance(value.get("kind"), str))


def _with_kind(name: str, artifact: dict[str, Json]) -> dict[str, Json]:
    """Return an artifact that was sent under a position, a kind or a contract."""
    pack = PACKS.get(name)
    kind = (pack.kind if pack is not None else None) or name
    return artifact if name.isdecimal() else {"kind": kind, **artifact}


def with_listed_artifact(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments with a list of one artifact if a single artifact is in place of the list."""
    output = arguments.get("output")
    if not isinstance(output, dict) or "artifacts" not in output:
        return dict(arguments)
    artifacts = fitted("output.artifacts", output["artifacts"])
    return {**arguments, "output": {**output, "artifacts": artifacts}}
