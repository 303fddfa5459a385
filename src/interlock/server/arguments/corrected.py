"""The corrected call of a refusal: the caller's own call in which only the wrong argument is changed (ANS-12)."""

import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from interlock.engine.answer.model import WORKFLOW_BLANK
from interlock.engine.answer.structure import NextCall
from interlock.engine.request import NOTES_BLANK, repeat_blank
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import (
    ARTIFACT_DEPTH_MAX,
    CORRECTED_ARGUMENTS_MAX,
    ECHO_BYTES_MAX,
    EVIDENCE_ECHO_BYTES_MAX,
)
from interlock.kernel.canonical import Json, nests_deeper_than
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.frozen import replace
from interlock.kernel.text import utf8_bytes
from interlock.server.tools import tool_named
from interlock.server.tools.contract import Tool, member_names
from interlock.server.tools.evidence import NESTED

_Item = TypeVar("_Item")

_KIND_BLANK = Blank(what="the kind of the artifact")
_BLANKS: Mapping[str, Outline] = {
    "workflowId": WORKFLOW_BLANK,
    "ackToken": Blank(what="the ackToken of the last answer"),
    "stateToken": Blank(what="the stateToken of the last answer"),
    "checkpointToken": Blank(what="the checkpointToken of the last answer"),
    "output": {"notesMarkdown": NOTES_BLANK},
    "notesMarkdown": NOTES_BLANK,
    "artifacts": [{"kind": _KIND_BLANK}],
}
"""What the caller has to supply. A wrong argument that is not listed is optional and is left out."""


def with_corrected_call(refusal: Refusal, tool: Tool, sent: Mapping[str, Json]) -> Refusal:
    """Return a refusal with the call that should have been sent, if the caller can correct it.

    A `VALIDATION_ERROR` with a path and no correction is corrected at that path.
    """
    correction, path = refusal.correction, refusal.details.get("path")
    if correction is None:
        if refusal.code is not ErrorCode.VALIDATION_ERROR or not isinstance(path, str) or not path:
            return refusal
        correction = Correction(wrong=(tuple(re.findall(r"[^.\[\]]+", path)),))
    call = corrected_call(tool, sent, correction)
    return replace(refusal, details={**refusal.details, "correctedCall": call})


def corrected_call(tool: Tool, sent: Mapping[str, Json], correction: Correction) -> Json:
    """Apply a correction to the call that was sent."""
    instead = {name: value for name, value in correction.instead.items() if value is not None}
    understood = correction.understood
    if correction.tool is not None:
        other, understood = tool_named(correction.tool), understood or {}
        assert other is not None, "a correction names a tool that there is"
        tool = other
    elif understood is None:
        understood = sent
    known = tool.argument_names
    arguments = {name: one for name, one in understood.items() if name in known and name not in correction.instead}
    for path in correction.wrong:
        arguments = _without_member(arguments, path)
    shown: dict[str, Outline] = _shorten(arguments, ECHO_BYTES_MAX)
    for path in correction.wrong:
        name, *inner = path
        holder, sent_holder = shown.get(str(name)), arguments.get(str(name))
        if inner == ["artifacts"] and isinstance(sent_holder, dict) and isinstance(sent_holder.get("artifacts"), dict):
            continue
        if inner and name in NESTED and isinstance(holder, dict):
            members = member_names(NESTED[str(name)])
            shown[str(name)] = _with_inner_blank(holder, inner, correction.blanks.get(path), members)
        else:
            shown = _with_blank(shown, str(name), known)
    outline = instead | shown
    for name in tool.arguments.missing(outline):
        outline = _with_blank(outline, name, known)
    return _call(tool.name, outline)


def _call(tool: str, outline: Mapping[str, Outline]) -> Json:
    call = NextCall.of(tool, outline)
    return {"tool": tool, "arguments": call.arguments, "fill": [one.to_json() for one in call.fill]}


def _with_blank(arguments: Mapping[str, Outline], name: str, known: Collection[str]) -> dict[str, Outline]:
    """Replace one argument by its blank, or leave it out if it has none. Returns a copy."""
    others = {key: value for key, value in arguments.items() if key != name}
    return others | ({name: _BLANKS[name]} if name in known and name in _BLANKS else {})


def _with_inner_blank(
    holder: Mapping[str, Outline], inner: Sequence[int | str], blank: Blank | None, known: Collection[str]
) -> dict[str, Outline]:
    """Replace a member of an argument by its blank. Of an artifact, only its member, which was taken out before."""
    listed, place = holder.get("artifacts"), _place_in_artifact(inner)
    if place is None or not isinstance(listed, list):
        return _with_blank(holder, str(inner[0]), known)
    at, member = place
    filled = _KIND_BLANK if member == "kind" else blank
    artifact = listed[at]
    assert isinstance(artifact, Mapping), "only an object has such a fault"
    with_member: Outline = artifact if filled is None else {member: filled, **artifact}
    return {**holder, "artifacts": _with_item(listed, at, with_member)}


def _without_member(arguments: dict[str, Json], path: Sequence[int | str]) -> dict[str, Json]:
    """Take the wrong member out of an artifact, however long it is, so that the rest can be shown. Returns a copy."""
    name, *inner = path
    holder, place = arguments.get(str(name)), _place_in_artifact(inner)
    listed = holder.get("artifacts") if isinstance(holder, dict) else None
    if place is None or not isinstance(holder, dict) or not isinstance(listed, list):
        return arguments
    at, member = place
    artifact = listed[at]
    assert isinstance(artifact, dict), "only an object has such a fault"
    others: Json = {key: value for key, value in artifact.items() if key != member}
    return {**arguments, str(name): {**holder, "artifacts": _with_item(listed, at, others)}}


def _with_item(items: Sequence[_Item], at: int, item: _Item) -> list[_Item]:
    return [*items[:at], item, *items[at + 1 :]]


def _place_in_artifact(inner: Sequence[int | str]) -> tuple[int, str] | None:
    """Return the position of the artifact and the member that a path leads to; None if it leads elsewhere."""
    match inner:
        case ["artifacts", at, member, *_]:
            return int(at), str(member)
        case _:
            return None


def _shorten(arguments: Mapping[str, Json], bytes_max: int) -> dict[str, Outline]:
    """Shorten arguments for an error: a blank replaces a long value, and the context (CTX-5).

    Evidence may be longer, because many agents send the shown call as it is. A single artifact without its list is put
    into one.
    """
    shown: dict[str, Outline] = {}
    for key, value in itertools.islice(arguments.items(), CORRECTED_ARGUMENTS_MAX):
        if key in NESTED and isinstance(value, dict):
            shown[key] = _shorten(value, EVIDENCE_ECHO_BYTES_MAX)
        else:
            one: Json = [value] if key == "artifacts" and isinstance(value, dict) else value
            shown[key] = one if _is_short(one, bytes_max) else repeat_blank(key)
    return shown


def _is_short(value: Json, bytes_max: int) -> bool:
    if isinstance(value, str):
        return utf8_bytes(value) <= bytes_max
    return (
        not isinstance(value, dict)
        and not nests_deeper_than(value, ARTIFACT_DEPTH_MAX)
        and len(json.dumps(value)) <= bytes_max
    )
