"""The call that a caller should have sent: their own, with nothing changed but the argument at fault (D16)."""

import itertools
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from interlock.define.diagnostics import did_you_mean
from interlock.kernel.budgets import ARTIFACT_DEPTH_MAX, CORRECTED_ARGUMENTS_MAX, ECHO_BYTES_MAX
from interlock.kernel.canonical import Json, nests_deeper_than
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.text import utf8_bytes
from interlock.server.tools import Arguments, OutputArgument, PreferencesArgument, Tool, argument_names

NESTED: dict[str, type[Arguments]] = {"output": OutputArgument, "preferences": PreferencesArgument}
"""The arguments that are objects with members of their own."""

_STANDS_FOR: dict[str, Json] = {
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
"""What is shown where a caller has to fill something in; an argument that is not here is left out."""

_NOTHING: Mapping[str, Json] = MappingProxyType({})


def corrected_call(
    tool: Tool, sent: Mapping[str, Json], *wrong: tuple[int | str, ...], told: Mapping[str, Json] = _NOTHING
) -> Json:
    """Return a call with each argument at fault, or missing, replaced by what stands for it, or left out.

    `told` are arguments of our own, which are shown whole.
    """
    known = argument_names(tool)
    arguments: dict[str, Json] = {name: value for name, value in sent.items() if name in known}
    for name, *inner in wrong:
        holder = arguments.get(str(name))
        if inner and name in NESTED and isinstance(holder, dict):
            arguments[str(name)] = _replaced(holder, str(inner[0]), _members(NESTED[str(name)]))
        else:
            arguments = _replaced(arguments, str(name), known)
    return {"tool": tool.name, "arguments": dict(told) | _shortened(arguments)}


def with_corrected_call(refusal: Refusal, tool: Tool, sent: Mapping[str, Json]) -> Refusal:
    """Return a refusal with the call that should have been sent, where what was wrong is an argument of the call."""
    if "correctedCall" in refusal.details:
        return refusal
    path = refusal.details.get("path")
    if refusal.instead:
        own = {name: value for name, value in sent.items() if name not in refusal.instead}
        told = {name: value for name, value in refusal.instead.items() if value is not None}
        call = corrected_call(tool, own, told=told)
    elif refusal.code is ErrorCode.VALIDATION_ERROR and isinstance(path, str) and path:
        call = corrected_call(tool, sent, tuple(re.split(r"[.\[]", path)[:2]))
    else:
        return refusal
    return replace(refusal, details={**refusal.details, "correctedCall": call})


def renamed_call(tool: Tool, sent: Mapping[str, Json], loc: tuple[int | str, ...], target: str) -> Json:
    """Return a call with what stands at a place moved to the argument that was meant, `output.notesMarkdown` say."""
    *holders, wrong = map(str, loc)
    arguments = dict(sent)
    inner = arguments.get(holders[0]) if holders else None
    source = dict(inner) if isinstance(inner, dict) else arguments
    value = source.pop(wrong)
    if holders:
        arguments[holders[0]] = source
    name, _, member = target.partition(".")
    taken = arguments.get(name)
    if member:
        arguments[name] = {member: value} | (taken if isinstance(taken, dict) else {})
    elif taken is None:
        arguments[name] = value
    return corrected_call(tool, arguments)


def meant_place(tool: Tool, loc: tuple[int | str, ...]) -> str | None:
    """Return the argument that an unknown one was meant to be: one beside it, or a member of one that is an object."""
    wrong = str(loc[-1])
    if len(loc) > 1:
        holder = str(loc[0])
        guess = did_you_mean(wrong, _members(NESTED[holder])) if holder in NESTED else None
        return f"{holder}.{guess}" if guess else None
    known = argument_names(tool)
    places = {member: f"{name}.{member}" for name in NESTED if name in known for member in _members(NESTED[name])}
    if wrong in places:
        return places[wrong]
    guess = did_you_mean(wrong, known)
    if guess is not None:
        return guess
    member = did_you_mean(wrong, places)
    return places[member] if member is not None else None


def _members(model: type[Arguments]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _replaced(arguments: Mapping[str, Json], name: str, known: Collection[str]) -> dict[str, Json]:
    """Return arguments with what stands for one in its place; one that there is not is left out."""
    others = {key: value for key, value in arguments.items() if key != name}
    if name == "artifacts" and isinstance(one := arguments.get(name), dict):
        return {**others, name: list[Json]([one])}
    return others | ({name: _STANDS_FOR[name]} if name in known and name in _STANDS_FOR else {})


def _shortened(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Return arguments fit for an error: long values and the context (locks 18.2) are named, not repeated."""
    shown: dict[str, Json] = {}
    for key, value in itertools.islice(arguments.items(), CORRECTED_ARGUMENTS_MAX):
        if key in NESTED and isinstance(value, dict):
            shown[key] = _shortened(value)
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
