"""The corrected call of a refusal: the caller's own call in which only the wrong argument is changed (ANS-12)."""

import itertools
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from interlock.define.diagnostics import suggest_name
from interlock.kernel.budgets import ARTIFACT_DEPTH_MAX, CORRECTED_ARGUMENTS_MAX, ECHO_BYTES_MAX
from interlock.kernel.canonical import Json, nests_deeper_than
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.text import utf8_bytes
from interlock.server.tools.contract import ObjectArgument, Tool
from interlock.server.tools.evidence import NESTED

_PLACEHOLDERS: dict[str, Json] = {
    "workflowId": "<id from list_workflows>",
    "goal": "<what the user wants>",
    "workspacePath": "<absolute path of the project>",
    "ackToken": "<ackToken of the last answer>",
    "stateToken": "<stateToken of the last answer>",
    "checkpointToken": "<checkpointToken of the last answer>",
    "output": {"notesMarkdown": "<your notes>"},
    "notesMarkdown": "<your notes>",
    "artifacts": [{"kind": "<kind>"}],
}
"""What the caller has to fill in. A wrong argument without a placeholder is left out."""


def with_corrected_call(refusal: Refusal, tool: Tool, sent: Mapping[str, Json]) -> Refusal:
    """Return a refusal with the call that should have been sent, if the caller can correct it.

    A `VALIDATION_ERROR` with a path and no correction is corrected at that path.
    """
    correction, path = refusal.correction, refusal.details.get("path")
    if correction is None:
        if refusal.code is not ErrorCode.VALIDATION_ERROR or not isinstance(path, str) or not path:
            return refusal
        correction = Correction(wrong=(tuple(re.split(r"[.\[]", path)[:2]),))
    call = corrected_call(tool, sent, correction)
    return replace(refusal, details={**refusal.details, "correctedCall": call})


def corrected_call(tool: Tool, sent: Mapping[str, Json], correction: Correction) -> Json:
    """Apply a correction to the call that was sent."""
    instead: dict[str, Json] = {name: value for name, value in correction.instead.items() if value is not None}
    if correction.tool is not None:
        return {"tool": correction.tool, "arguments": instead}
    known, understood = tool.argument_names, sent if correction.understood is None else correction.understood
    arguments = {name: one for name, one in understood.items() if name in known and name not in correction.instead}
    for name, *inner in correction.wrong:
        holder = arguments.get(str(name))
        if inner and name in NESTED and isinstance(holder, dict):
            arguments[str(name)] = _with_placeholder(holder, str(inner[0]), _members(NESTED[str(name)]))
        else:
            arguments = _with_placeholder(arguments, str(name), known)
    return {"tool": tool.name, "arguments": instead | _shorten(arguments)}


def renamed(arguments: Mapping[str, Json], loc: tuple[int | str, ...], target: str) -> dict[str, Json]:
    """Move the value at `loc` to another argument, for example `output.notesMarkdown`. Returns a copy."""
    *holders, wrong = map(str, loc)
    moved = dict(arguments)
    inner = moved.get(holders[0]) if holders else None
    source = dict(inner) if isinstance(inner, dict) else moved
    value = source.pop(wrong)
    if holders:
        moved[holders[0]] = source
    name, _, member = target.partition(".")
    taken = moved.get(name)
    if member:
        moved[name] = {member: value} | (taken if isinstance(taken, dict) else {})
    elif taken is None:
        moved[name] = value
    return moved


def suggested_place(tool: Tool, loc: tuple[int | str, ...]) -> str | None:
    """Return the most similar argument for an unknown one: at the same level, or a member of an object."""
    wrong = str(loc[-1])
    if len(loc) > 1:
        holder = str(loc[0])
        guess = suggest_name(wrong, _members(NESTED[holder])) if holder in NESTED else None
        return f"{holder}.{guess}" if guess else None
    known = tool.argument_names
    places = {member: f"{name}.{member}" for name in NESTED if name in known for member in _members(NESTED[name])}
    if wrong in places:
        return places[wrong]
    guess = suggest_name(wrong, known)
    if guess is not None:
        return guess
    member = suggest_name(wrong, places)
    return places[member] if member is not None else None


def _members(model: type[ObjectArgument]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _with_placeholder(arguments: Mapping[str, Json], name: str, known: Collection[str]) -> dict[str, Json]:
    """Replace one argument by its placeholder, or leave it out if it has none. Returns a copy."""
    others = {key: value for key, value in arguments.items() if key != name}
    if name == "artifacts" and isinstance(one := arguments.get(name), dict):
        return {**others, name: list[Json]([one])}
    return others | ({name: _PLACEHOLDERS[name]} if name in known and name in _PLACEHOLDERS else {})


def _shorten(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Shorten arguments for an error: long values and the context (CTX-5) become placeholders."""
    shown: dict[str, Json] = {}
    for key, value in itertools.islice(arguments.items(), CORRECTED_ARGUMENTS_MAX):
        if key in NESTED and isinstance(value, dict):
            shown[key] = _shorten(value)
        else:
            shown[key] = value if _is_short(value) else f"<your {key}>"
    return shown


def _is_short(value: Json) -> bool:
    if isinstance(value, str):
        return utf8_bytes(value) <= ECHO_BYTES_MAX
    return (
        not isinstance(value, dict)
        and not nests_deeper_than(value, ARTIFACT_DEPTH_MAX)
        and len(json.dumps(value)) <= ECHO_BYTES_MAX
    )
