"""The corrected call of a refusal: the caller's own call in which only the wrong argument is changed (ANS-12)."""

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from interlock.engine.answer.model import CONTINUE_TOOL, WORKFLOW_BLANK
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
from interlock.record.short_tokens import decode_token
from interlock.server.arguments.clean import clean, with_listed_artifact
from interlock.server.arguments.left_out import left_out, left_out_words
from interlock.server.arguments.misplaced import unknown_names
from interlock.server.tools import tool_named
from interlock.server.tools.contract import Tool, member_names
from interlock.server.tools.evidence import NESTED
from interlock.service.tokens.resolve import SentTokens

LookUp: TypeAlias = Callable[[SentTokens], Mapping[str, Outline] | Refusal]
"""Returns the evidence that the step of a token asks for, or why a report with the token is refused."""
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


def what_belongs_in(name: str) -> str:
    """Return the words for what a required argument takes."""
    blank = _BLANKS.get(name)
    return (blank.what if isinstance(blank, Blank) else None) or "it is required"


def with_corrected_call(refusal: Refusal, tool: Tool, sent: Mapping[str, Json], look_up: LookUp) -> Refusal:
    """Return a refusal with the call that should have been sent, if the caller can correct it.

    A `VALIDATION_ERROR` with a path and no correction is corrected at that path. The corrected report of such an error
    is looked up: it asks for the evidence of its step, and is corrected in turn if its token would be refused. What was
    sent and is not in the corrected call is named.
    """
    sent, _ = clean(tool, sent)
    correction, path = refusal.correction, refusal.details.get("path")
    is_of_arguments = refusal.code is ErrorCode.VALIDATION_ERROR
    if correction is None:
        if not is_of_arguments or not isinstance(path, str) or not path:
            return refusal
        correction = Correction(wrong=(tuple(re.findall(r"[^.\[\]]+", path)),))
    if correction.tool is not None:
        tool, correction = _other_tool(correction)
    wanted: Mapping[str, Outline] | Refusal = {}
    if is_of_arguments:
        wanted = _look_up(tool, _understood(tool, sent, correction) | dict(correction.instead), look_up)
    if isinstance(wanted, Refusal) and wanted.correction is not None:
        refusal = replace(refusal, suggestion=f"{wanted.message} {wanted.suggestion}")
        correction = replace(correction, instead={**correction.instead, **wanted.correction.instead})
        if wanted.correction.tool is not None:
            tool, correction = _other_tool(wanted.correction)
            is_of_arguments = False
        wanted = _look_up(tool, correction.instead, look_up)
    wanted = {} if isinstance(wanted, Refusal) else wanted
    kept = _kept(tool, sent, correction)
    keys = _context_keys(tool, sent, kept, wanted)
    if keys:
        places = {("context", key): blank for key, blank in keys.items()}
        wrong, blanks = (*correction.wrong, *places), {**correction.blanks, **places}
        correction = replace(correction, wrong=wrong, blanks=blanks)
        key = _last_name(str(path))
        if key in keys:
            refusal = replace(refusal, suggestion=f"Send `{key}` in `context`, as in the call below.")
    call = _corrected_call(tool, kept, correction, wanted)
    if is_of_arguments:
        paths = [one for one in left_out(sent, {**correction.instead, **kept}) if not _is_said(one, refusal, call)]
        refusal = replace(refusal, suggestion=refusal.suggestion + left_out_words(paths))
    shown: Json = {"tool": tool.name, "arguments": call.arguments, "fill": [one.to_json() for one in call.fill]}
    return replace(refusal, details={**refusal.details, "correctedCall": shown})


def _context_keys(
    tool: Tool, sent: Mapping[str, Json], kept: Mapping[str, Json], wanted: Mapping[str, Outline]
) -> dict[str, Blank]:
    """Return the keys of the context that a step asks for and that were sent as arguments, or in the `output`."""
    asked, context, output = wanted.get("context"), kept.get("context", {}), kept.get("output")
    if not isinstance(asked, Mapping) or not isinstance(context, dict):
        return {}
    artifacts = output.get("artifacts") if isinstance(output, dict) else None
    placed = {
        name for one in (artifacts if isinstance(artifacts, list) else []) if isinstance(one, dict) for name in one
    }
    loose = unknown_names(tool, sent) - context.keys() - placed
    return {name: blank for name, blank in asked.items() if name in loose and isinstance(blank, Blank)}


def _last_name(path: str) -> str:
    return path.rpartition(".")[2]


def _is_said(path: str, refusal: Refusal, call: NextCall) -> bool:
    """Say whether a refusal already says what becomes of a value that is left out: it is to go, or is asked for."""
    if path == refusal.details.get("path") and refusal.suggestion.startswith(("Leave ", "Left out ")):
        return True
    asked = [one.path for one in call.fill]
    return f"context.{_last_name(path)}" in asked or any(
        _is_within(path, one) or _is_within(one, path) for one in asked
    )


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _other_tool(correction: Correction) -> tuple[Tool, Correction]:
    """Return the tool that a correction names, and the correction of its call: of no arguments but those it holds."""
    other = tool_named(correction.tool or "")
    assert other is not None, "a correction names a tool that there is"
    return other, replace(correction, tool=None, understood=correction.understood or {})


def _look_up(tool: Tool, arguments: Mapping[str, Outline], look_up: LookUp) -> Mapping[str, Outline] | Refusal:
    """Look up a call that reports a step, or means to; of every other call, and of an unknown token, nothing is known.

    A token that does not verify is refused when the corrected call is sent: it may be damaged in several ways.
    """
    tokens = _report_tokens(tool, arguments)
    if tokens is None:
        return {}
    found = look_up(tokens)
    if isinstance(found, Refusal) and found.code is not ErrorCode.TOKEN_SCOPE_MISMATCH:
        return {}
    return found


def _understood(tool: Tool, sent: Mapping[str, Json], correction: Correction) -> dict[str, Json]:
    """Return the arguments of the tool that a correction applies to, without those that it replaces."""
    understood = sent if correction.understood is None else correction.understood
    known = tool.argument_names
    return {name: one for name, one in understood.items() if name in known and name not in correction.instead}


def _report_tokens(tool: Tool, arguments: Mapping[str, Outline]) -> SentTokens | None:
    """Return the tokens of a report; None for every other call."""
    ack, state, run = (arguments.get(name) for name in ("ackToken", "stateToken", "run"))
    label = run if isinstance(run, str) else None
    if tool.name != CONTINUE_TOOL:
        return None
    if isinstance(ack, str):
        return SentTokens(argument="ackToken", token=decode_token(ack), run=label)
    if isinstance(state, str) and "output" in arguments:
        return SentTokens(argument="stateToken", token=decode_token(state), run=label)
    return None


def _kept(tool: Tool, sent: Mapping[str, Json], correction: Correction) -> dict[str, Json]:
    """Return what a corrected call keeps of the arguments. A list of artifacts keeps its positions: null is a gap."""
    arguments = with_listed_artifact(_understood(tool, sent, correction))
    for path in correction.wrong:
        arguments = _without(arguments, path)
    return arguments


def _corrected_call(
    tool: Tool, kept: Mapping[str, Json], correction: Correction, wanted: Mapping[str, Outline]
) -> NextCall:
    """Return the call with what is kept of it. `wanted` is the evidence that its step asks for, if it is known."""
    instead = {name: value for name, value in correction.instead.items() if value is not None}
    known = tool.argument_names
    shown: dict[str, Outline] = _shorten(kept, ECHO_BYTES_MAX)
    blanks = {name: blank for name, blank in _BLANKS.items() if name in known}
    if wanted:
        blanks = {name: blank for name, blank in blanks.items() if name != "output"} | dict(wanted)
    output = cast("Mapping[str, Outline]", wanted.get("output", {}))
    for path in correction.wrong:
        name, *inner = path
        holder = shown.get(str(name))
        if inner and name == "context":
            shown = _with_context_key(shown, kept, str(inner[0]), correction.blanks.get(path))
        elif inner and name in NESTED and isinstance(holder, dict):
            members = dict.fromkeys(member_names(NESTED[str(name)]))
            inner_blanks = {member: one for member, one in {**_BLANKS, **output}.items() if member in members}
            shown[str(name)] = _with_inner_blank(holder, inner, correction.blanks.get(path), inner_blanks)
        else:
            shown = _with_blank(shown, str(name), blanks)
            if name == "output":
                shown = dict(wanted) | shown
    shown = _without_gaps(shown, blanks, output)
    outline = {name: value for name, value in (instead | shown).items() if value not in (None, "")}
    for name in tool.arguments.missing(outline):
        outline = {**outline, name: blanks.get(name, Blank())}
    return NextCall.of(tool.name, outline)


def _with_context_key(
    shown: Mapping[str, Outline], kept: Mapping[str, Json], key: str, blank: Blank | None
) -> dict[str, Outline]:
    """Ask for a key of the context, if it has a blank, and for every other one as it was sent (CTX-5)."""
    sent = cast("Mapping[str, Json]", kept.get("context") or {})
    holder = shown.get("context")
    keys = holder if isinstance(holder, Mapping) else {name: repeat_blank(name) for name in sent}
    asked: Outline = {**keys, key: blank} if blank is not None else keys
    if len(asked) > CORRECTED_ARGUMENTS_MAX:
        asked = Blank(what="your context, corrected", shape="object")
    return {**shown, "context": asked} if asked else {name: one for name, one in shown.items() if name != "context"}


def _without_gaps(
    shown: dict[str, Outline], blanks: Mapping[str, Outline], wanted: Mapping[str, Outline]
) -> dict[str, Outline]:
    """Return a call whose list of artifacts has no gaps. What is left empty is asked for, if the step asks for it."""
    holder = shown.get("output")
    listed = holder.get("artifacts") if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or not isinstance(listed, list) or None not in listed:
        return shown
    items = [one for one in listed if one is not None]
    filled = {"artifacts": items} if items else {name: one for name, one in wanted.items() if name == "artifacts"}
    output = {name: one for name, one in holder.items() if name != "artifacts"} | filled
    return {**shown, "output": output} if output else _with_blank(shown, "output", blanks)


def _with_blank(arguments: Mapping[str, Outline], name: str, blanks: Mapping[str, Outline]) -> dict[str, Outline]:
    """Replace one argument by its blank, or leave it out if it has none. Returns a copy."""
    others = {key: value for key, value in arguments.items() if key != name}
    return others | ({name: blanks[name]} if name in blanks else {})


def _with_inner_blank(
    holder: Mapping[str, Outline], inner: Sequence[int | str], blank: Blank | None, blanks: Mapping[str, Outline]
) -> dict[str, Outline]:
    """Put the blank of a member of an argument in its place. Of an artifact, that of its member."""
    place = _place_in_artifact(inner, holder.get("artifacts"))
    if place is None:
        name = str(inner[0])
        return _with_blank(holder, name, blanks if blank is None else {name: blank})
    listed = cast("list[Outline]", holder["artifacts"])
    at, member = place
    artifact = listed[at]
    filled = _KIND_BLANK if member == "kind" else blank
    if filled is None or member is None or not isinstance(artifact, Mapping):
        return dict(holder)
    return {**holder, "artifacts": _with_item(listed, at, {member: filled, **artifact})}


def _without(arguments: dict[str, Json], path: Sequence[int | str]) -> dict[str, Json]:
    """Take out what is wrong, however long it is, so that the rest can be shown: of an artifact, only its member.

    Returns a copy. A whole artifact that is taken out leaves null at its position.
    """
    name, *inner = path
    holder = arguments.get(str(name))
    if not inner or not (name in NESTED or name == "context") or not isinstance(holder, dict):
        return {key: value for key, value in arguments.items() if key != name}
    place = _place_in_artifact(inner, holder.get("artifacts"))
    if place is None:
        return {**arguments, str(name): {key: value for key, value in holder.items() if key != inner[0]}}
    listed = cast("list[Json]", holder["artifacts"])
    at, member = place
    item, left = listed[at], cast("Json", None)
    if member is not None and isinstance(item, dict):
        left = {key: value for key, value in item.items() if key != member}
    return {**arguments, str(name): {**holder, "artifacts": _with_item(listed, at, left)}}


def _with_item(items: Sequence[_Item], at: int, item: _Item) -> list[_Item]:
    return [*items[:at], item, *items[at + 1 :]]


def _place_in_artifact(inner: Sequence[int | str], listed: Outline) -> tuple[int, str | None] | None:
    """Return the position of an artifact and the member that a path leads to; None if it leads elsewhere."""
    match inner:
        case ["artifacts", at, *members] if isinstance(listed, list) and str(at).isdecimal() and int(at) < len(listed):
            return int(at), str(members[0]) if members else None
        case _:
            return None


def _shorten(arguments: Mapping[str, Json], bytes_max: int) -> dict[str, Outline]:
    """Shorten arguments for an error: a blank replaces a long value, and the context (CTX-5).

    Evidence may be longer, because many agents send the shown call as it is.
    """
    shown: dict[str, Outline] = {}
    for key, value in itertools.islice(arguments.items(), CORRECTED_ARGUMENTS_MAX):
        if key in NESTED and isinstance(value, dict):
            shown[key] = _shorten(value, EVIDENCE_ECHO_BYTES_MAX)
        else:
            shown[key] = value if _is_short(value, bytes_max) else repeat_blank(key)
    return shown


def _is_short(value: Json, bytes_max: int) -> bool:
    if isinstance(value, str):
        return utf8_bytes(value) <= bytes_max
    return (
        not isinstance(value, dict)
        and not nests_deeper_than(value, ARTIFACT_DEPTH_MAX)
        and len(json.dumps(value)) <= bytes_max
    )
