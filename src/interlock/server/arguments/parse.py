"""Parsing the arguments of a tool call: lenient about harmless mistakes, strict about all others (ANS-11, ANS-12)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from interlock.define.faults import find_value
from interlock.kernel.budgets import ARTIFACT_DEPTH_MAX, ECHO_BYTES_MAX, PATH_BYTES_MAX, WORDS_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.frozen import replace
from interlock.kernel.text import one_line, render_path
from interlock.server.arguments.clean import clean, with_listed_artifact
from interlock.server.arguments.corrected import what_belongs_in
from interlock.server.arguments.left_out import left_out
from interlock.server.arguments.misplaced import (
    Location,
    find_path,
    find_place,
    loose_artifacts,
    place_unknown,
    wrapped_arguments,
)
from interlock.server.tools import TOOLS
from interlock.server.tools.contract import Arguments, Caller, Fault, Tool
from interlock.service.tokens.mint import PREFIXES

_UNION_MEMBERS = frozenset({"list", "dict", "str", "bool", "int", "float", "nullable", "constrained-str"})
_UNKNOWN = "extra_forbidden"
"""The type of pydantic's error of an argument that does not exist."""
_EXPECTED_TYPES = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""The expected JSON type, by the error type of pydantic."""


def parse_arguments(tool: Tool, sent: Mapping[str, Json], caller: Caller) -> Arguments | Refusal:
    """Return the arguments of a call, or a refusal that says where the fault is and how to correct the call."""
    arguments = _parse(tool, sent)
    if isinstance(arguments, Fault):
        return _refusal(tool, arguments)
    fault = next(arguments.faults(caller), None)
    return arguments if fault is None else _refusal(tool, fault)


def _refusal(tool: Tool, fault: Fault) -> Refusal:
    """Return a `VALIDATION_ERROR` that names the tool, the path and what to send."""
    path = one_line(fault.path, PATH_BYTES_MAX)
    where = f"`{path}`: " if path else ""
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=one_line(f"{tool.name}: {where}{fault.message}", PATH_BYTES_MAX + WORDS_BYTES_MAX),
        suggestion=fault.suggestion,
        details={"tool": tool.name, "path": path, **fault.details},
        correction=fault.correction,
    )


def _parse(tool: Tool, sent: Mapping[str, Json]) -> Arguments | Fault:
    cleaned, fault = clean(tool, sent)
    if fault is not None:
        return fault
    try:
        return tool.arguments.model_validate(cleaned)
    except ValidationError as error:
        return _fault_of_validation(tool, cleaned, error)
    except RecursionError:
        return Fault("", "The arguments are nested too deeply.", "Flatten them.")


def _fault_of_validation(tool: Tool, cleaned: Mapping[str, Json], error: ValidationError) -> Fault:
    """Describe the first fault and the correct call. Unknown arguments are reported first."""
    faults = error.errors(include_url=False, include_input=False)
    unknown = [one["loc"] for one in faults if one["type"] == _UNKNOWN]
    if unknown:
        return _fault_of_unknown(tool, cleaned, unknown)
    fault, place = faults[0], _published_location(faults[0]["loc"])
    understood = with_listed_artifact(cleaned)
    path, correction = render_path(place), Correction(wrong=_wrong_locations(tool, understood), understood=understood)
    if fault["type"] == "missing":
        message = "This required argument is missing."
        return Fault(path, message, f"Send it: {what_belongs_in(path)}.", correction=correction)
    message, fix = f"Found {_describe_value(cleaned, place)}.", f"Send {_describe_expected(fault)}."
    return Fault(path, message, fix, correction=correction)


def _fault_of_unknown(tool: Tool, cleaned: Mapping[str, Json], unknown: Sequence[Location]) -> Fault:
    """Refuse arguments that do not exist: those that wrap other ones first. Say where to send what they hold."""
    wrapping = (one for one in unknown if wrapped_arguments(tool, cleaned, one))
    wrapper = next(wrapping, None)
    loc = unknown[0] if wrapper is None else wrapper
    accepts = partial(_accepts, tool)
    path = find_path(tool, loc)
    is_of_artifact = any(loc in one for one in loose_artifacts(tool, cleaned, unknown, accepts))
    place = find_place(tool, cleaned, loc, accepts) if wrapper is None and path is None else None
    key, name = one_line(str(loc[-1]), ECHO_BYTES_MAX), None if place is None else place.rpartition(".")[2]
    placed = place_unknown(tool, cleaned, unknown, accepts)
    understood = placed.understood or {}
    stays = f"`{place}` has another value" if path is None else f"`{path[0]}` has another value at that place"
    wrong = _wrong_locations(tool, understood)
    meant = place if path is None else render_path(int(one) if one.isdecimal() else one for one in path)
    is_lost = left_out({key: cast("Json", find_value(cleaned, loc))}, understood) == [key]
    asked = next((str(one) for one, *_ in placed.wrong if one in PREFIXES), None)
    if wrapper is not None:
        fix = f"Send what `{key}` holds as arguments of `{tool.name}` itself."
    elif is_of_artifact:
        fix = f"Send `{key}` in an object of the list `output.artifacts`, as in the call below."
    elif is_lost and (place, path) != (None, None):
        fix = f"Left out of the call below: `{key}`, because {stays}."
    elif meant is not None and meant in map(render_path, wrong):
        fix = f"It is meant for `{one_line(meant, ECHO_BYTES_MAX)}`, which does not take its value."
    elif path is not None:
        fix = f"`{key}` is a path and not a name. Send its value at that place, as in the call below."
    elif place is None:
        fix = f"Leave `{key}` out.{_other_tools_hint(tool, loc)}"
    else:
        is_moved = place != name if len(loc) == 1 else "." not in place
        fix = f"Send it as `{place}`." if is_moved else f"Did you mean `{name}`? Send it under that name."
    if asked is not None:
        fix = f"Two values of `{asked}` were sent, which may be of two runs. Send the one of the run that you mean."
    correction = replace(placed, wrong=(*placed.wrong, *wrong))
    return Fault(
        render_path(loc), "This argument does not exist.", fix, details={"didYouMean": name}, correction=correction
    )


def _wrong_locations(tool: Tool, arguments: Mapping[str, Json]) -> tuple[Location, ...]:
    """Return the places of the faults that arguments have by their types."""
    cleaned, fault = clean(tool, arguments)
    if fault is not None:
        return (tuple(fault.path.split(".")),)
    try:
        tool.arguments.model_validate(cleaned)
    except ValidationError as error:
        return tuple(_published_location(one["loc"]) for one in error.errors(include_url=False, include_input=False))
    return ()


def _accepts(tool: Tool, place: str, value: Json) -> bool:
    """Say whether an argument, or a member of one, takes a value, apart from faults inside the value."""
    name, _, member = place.partition(".")
    wrong = _wrong_locations(tool, {name: {member: value} if member else value})
    return not any(render_path(loc) in (name, place) for loc in wrong)


def _other_tools_hint(tool: Tool, loc: Location) -> str:
    """Name the other tools that have this argument."""
    others = [f"`{one.name}`" for one in TOOLS if one is not tool and len(loc) == 1 and loc[0] in one.argument_names]
    return f" It is an argument of {' and '.join(others)}." if others else ""


def _describe_expected(fault: ErrorDetails) -> str:
    """Describe the value that is expected instead of a wrong one."""
    if fault["type"] in _EXPECTED_TYPES:
        return _EXPECTED_TYPES[fault["type"]]
    expected = fault.get("ctx", {}).get("expected")
    return f"one of {expected}" if isinstance(expected, str) else "a JSON value"


def _published_location(loc: Location) -> Location:
    """Return a location without the names that pydantic adds for the members of a union.

    A very deep location is shortened to the value that contains it.
    """
    own = loc[:1] + tuple(part for part in loc[1:] if part not in _UNION_MEMBERS)
    return own if len(own) <= ARTIFACT_DEPTH_MAX else own[: 3 if own[0] == "output" else 2]


def _describe_value(cleaned: Mapping[str, Json], loc: Location) -> str:
    value = find_value(cleaned, loc)
    if isinstance(value, str):
        return repr(one_line(value, ECHO_BYTES_MAX))
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = ((int | float, "a number"), (type(None), "null"), (list, "a list"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "an object")
