"""From what a client sent to a tool's arguments: lenient in what is harmless, exact in what is not (ANS-11, ANS-12)."""

import json
import re
from collections.abc import Mapping
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from interlock.define.faults import find_value, render_path
from interlock.kernel.budgets import (
    ARGUMENT_VALUES_MAX,
    ARTIFACT_DEPTH_MAX,
    ECHO_BYTES_MAX,
    LINE_DEPTH_MAX,
    NUMBER_DIGITS_MAX,
    PATH_BYTES_MAX,
    WORDS_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess
from interlock.kernel.text import one_line
from interlock.server.corrected import corrected_call, renamed, suggested_place
from interlock.server.tools import TOOLS
from interlock.server.tools.contract import Arguments, Caller, Fault, Tool
from interlock.service.tokens.mint import PREFIXES

INJECTED_BY_CLIENTS = frozenset({"wait_for_previous"})
"""Arguments that clients add to every tool's schema and send along; they are not ours and mean nothing here."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT_BOUNDS = JsonBounds(values_max=ARGUMENT_VALUES_MAX, depth_max=LINE_DEPTH_MAX)
_ARMS = frozenset({"list", "dict", "str", "bool", "int", "float", "nullable", "constrained-str"})
_OBJECTS = frozenset({"output", "context", "preferences"})
_ELSEWHERE = frozenset(name for tool in TOOLS for name in tool.argument_names)
"""What is an argument of some tool, and so not evidence under another name."""
_KINDS = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""What an argument of another kind should have been, in the words of JSON."""


def parse_arguments(tool: Tool, sent: Mapping[str, Json], caller: Caller) -> Arguments | Refusal:
    """Return the arguments of a call, or a refusal with the path, what was found and how to correct the call."""
    arguments = _parsed(tool, sent)
    if isinstance(arguments, Fault):
        return _refusal(tool, arguments)
    fault = next(arguments.faults(caller), None)
    return arguments if fault is None else _refusal(tool, fault)


def _refusal(tool: Tool, fault: Fault) -> Refusal:
    """Return a `VALIDATION_ERROR` that names the tool, the place, and what to send."""
    path = one_line(fault.path, PATH_BYTES_MAX)
    where = f"`{path}`: " if path else ""
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=one_line(f"{tool.name}: {where}{fault.message}", PATH_BYTES_MAX + WORDS_BYTES_MAX),
        suggestion=fault.suggestion,
        details={"tool": tool.name, "path": path, **fault.details},
        correction=fault.correction,
    )


def _parsed(tool: Tool, sent: Mapping[str, Json]) -> Arguments | Fault:
    cleaned = _cleaned(tool, sent)
    if isinstance(cleaned, Fault):
        return cleaned
    try:
        return tool.arguments.model_validate(cleaned)
    except ValidationError as error:
        return _invalid(tool, cleaned, error)
    except RecursionError:
        return Fault("", "The arguments nest too deep.", "Flatten them.")


def _cleaned(tool: Tool, sent: Mapping[str, Json]) -> dict[str, Json] | Fault:
    """Drop what clients inject, take null and "" on an optional argument as absent, read objects sent as text."""
    fields = tool.arguments.model_fields
    names = tool.argument_names
    cleaned: dict[str, Json] = {}
    for key, value in sent.items():
        if key in INJECTED_BY_CLIENTS:
            continue
        field = fields.get(names.get(key, ""))
        if field is not None and not field.is_required() and value in (None, ""):
            continue
        if isinstance(value, str) and _SURROGATE.search(value):
            return Fault(key, "The text holds a lone surrogate.", "Send valid Unicode text.")
        if key in _OBJECTS and isinstance(value, str):
            read = _read(value)
            if read is None:
                return Fault(key, f"Found {_unread(value)}.", f"Send `{key}` as an object.")
            value = read  # noqa: PLW2901 — the object is what the text meant
        cleaned[key] = _without_nulls(value) if key in {"output", "preferences"} else value
    return cleaned


def _without_nulls(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    kept: dict[str, Json] = {
        key: item
        for key, item in value.items()
        if item is not None and key not in INJECTED_BY_CLIENTS and (item != "" or key == "notesMarkdown")
    }
    artifacts = kept.get("artifacts")
    if isinstance(artifacts, str) and (read := _read_any(artifacts)) is not None:
        kept["artifacts"] = read
    return kept


def _read(text: str) -> dict[str, Json] | None:
    value = _read_any(text)
    return value if isinstance(value, dict) else None


def _unread(text: str) -> str:
    """Return what a text is that was not read as an object."""
    match _excess(text):
        case None:
            return "text that is not a JSON object"
        case "values":
            return f"a JSON text of more than {ARGUMENT_VALUES_MAX} values"
        case "depth":
            return f"a JSON text that nests deeper than {LINE_DEPTH_MAX} levels"
        case "digits":
            return f"a JSON text with a number of more than {NUMBER_DIGITS_MAX} digits"


def _excess(text: str) -> Excess | None:
    return find_excess(text.encode("utf-8", "surrogatepass"), _TEXT_BOUNDS)


def _read_any(text: str) -> Json:
    if _excess(text) is not None:
        return None
    try:
        return cast("Json", json.loads(text))
    except ValueError:
        return None


def _invalid(tool: Tool, cleaned: Mapping[str, Json], error: ValidationError) -> Fault:
    """Word the first fault, and say how the call should have been."""
    faults = error.errors(include_url=False, include_input=False)
    fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    if fault["type"] == "extra_forbidden":
        return _unknown(tool, cleaned, fault["loc"])
    loc = _own_part(fault["loc"])
    path, correction = render_path(loc), Correction(wrong=(loc,), understood=cleaned)
    if fault["type"] == "missing":
        message = "This argument is required and was not sent."
        fix = f"Send it, for example: {json.dumps(corrected_call(tool, cleaned, correction))}"
        return Fault(path, message, fix, correction=correction)
    message, fix = f"Found {_found(cleaned, loc)}.", f"Send {_wanted(fault)} there."
    return Fault(path, message, fix, correction=correction)


def _unknown(tool: Tool, cleaned: Mapping[str, Json], loc: tuple[int | str, ...]) -> Fault:
    """Refuse an argument that does not exist; suggest the likely one, else say to leave it out."""
    place = _token_argument(tool, cleaned, loc) or suggested_place(tool, loc)
    key = one_line(str(loc[-1]), ECHO_BYTES_MAX)
    name = None if place is None else place.rpartition(".")[2]
    if place is None:
        correction = _without_unknown(tool, cleaned, loc)
        fix = f"Leave `{key}` out.{_belongs_to(tool, loc)}"
    else:
        correction = Correction(understood=renamed(cleaned, loc, place))
        is_moved = len(loc) == 1 and place != name
        fix = f"Send it as `{place}`." if is_moved else f"Did you mean `{name}`? Send it under that name."
    return Fault(
        render_path(loc), "This argument is not known.", fix, details={"didYouMean": name}, correction=correction
    )


def _without_unknown(tool: Tool, cleaned: Mapping[str, Json], loc: tuple[int | str, ...]) -> Correction:
    """Leave out an argument that does not exist. If it may be the evidence, `output` is where that belongs."""
    output, known = cleaned.get("output"), tool.argument_names
    is_report = "output" in known and ("ackToken" in cleaned or "checkpointToken" in cleaned)
    outer, *inner = map(str, loc)
    is_evidence = is_report and (bool(inner) or outer not in _ELSEWHERE)
    if not is_evidence or (isinstance(output, dict) and output.keys() - set(inner)):
        return Correction(wrong=(loc,), understood=cleaned)
    others = {key: value for key, value in cleaned.items() if key != outer}
    return Correction(wrong=(("output",),), understood=others)


def _belongs_to(tool: Tool, loc: tuple[int | str, ...]) -> str:
    """Say which tools take an argument that this one does not."""
    others = [f"`{one.name}`" for one in TOOLS if one is not tool and len(loc) == 1 and loc[0] in one.argument_names]
    return f" It is an argument of {' and '.join(others)}." if others else ""


def _token_argument(tool: Tool, cleaned: Mapping[str, Json], loc: tuple[int | str, ...]) -> str | None:
    """Return the argument that a token under another name belongs in, as its beginning says."""
    value = cleaned.get(str(loc[0])) if len(loc) == 1 else None
    if not isinstance(value, str):
        return None
    return next(
        (name for name, start in PREFIXES.items() if value.startswith(start) and name in tool.argument_names), None
    )


def _wanted(fault: ErrorDetails) -> str:
    """Return what should stand where a value is at fault."""
    if fault["type"] in _KINDS:
        return _KINDS[fault["type"]]
    expected = fault.get("ctx", {}).get("expected")
    return f"one of {expected}" if isinstance(expected, str) else "a JSON value"


def _own_part(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return a location without the model's own words for the arms of a free JSON value.

    What lies very deep is told by the value it lies in.
    """
    own = loc[:1] + tuple(part for part in loc[1:] if part not in _ARMS)
    return own if len(own) <= ARTIFACT_DEPTH_MAX else own[: 3 if own[0] == "output" else 2]


def _found(cleaned: Mapping[str, Json], loc: tuple[int | str, ...]) -> str:
    value = find_value(cleaned, loc)
    if isinstance(value, str):
        return repr(one_line(value, ECHO_BYTES_MAX))
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = ((int | float, "a number"), (type(None), "null"), (list, "a list"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "an object")
