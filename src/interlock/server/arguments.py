"""From what a client sent to a command: lenient in what is harmless, exact in what is not (D16 to D18)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from interlock.define.faults import document_path, value_at
from interlock.engine.request import PreferenceDelta, Request, is_placeholder
from interlock.kernel.budgets import (
    ARGUMENT_VALUES_MAX,
    ARTIFACT_BYTES_MAX,
    ARTIFACT_DEPTH_MAX,
    ARTIFACTS_MAX,
    ECHO_BYTES_MAX,
    LINE_DEPTH_MAX,
    NOTES_INPUT_BYTES_MAX,
    NUMBER_DIGITS_MAX,
    PATH_BYTES_MAX,
    QUERY_BYTES_MAX,
    WORDS_BYTES_MAX,
)
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, nests_deeper_than
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import ID_BODY_PATTERN, RunId, SessionId
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess
from interlock.kernel.text import one_line, utf8_bytes
from interlock.record.events import Actor
from interlock.server.corrected import corrected_call, meant_place, renamed_call
from interlock.server.tools import (
    TOOLS,
    Arguments,
    CheckpointArguments,
    ContinueArguments,
    InspectArguments,
    ListArguments,
    OutputArgument,
    PreferencesArgument,
    ResumeArguments,
    StartArguments,
    Tool,
    argument_names,
)
from interlock.service.checkpoint_workflow import CheckpointCommand
from interlock.service.continue_workflow import ContinueCommand
from interlock.service.inspect_workflow import InspectCommand
from interlock.service.list_workflows import ListCommand
from interlock.service.mint import PREFIXES
from interlock.service.resume_session import ResumeCommand
from interlock.service.start_workflow import SESSION_STAND_IN, StartCommand

INJECTED_BY_CLIENTS = frozenset({"wait_for_previous"})
"""Arguments that clients add to every tool's schema and send along; they are not ours and mean nothing here."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT_BOUNDS = JsonBounds(values_max=ARGUMENT_VALUES_MAX, depth_max=LINE_DEPTH_MAX)
_SESSION_ID = rf"sess_{ID_BODY_PATTERN}"
_RUN_ID = rf"run_{ID_BODY_PATTERN}"
_OfWorkspace = ListArguments | InspectArguments | StartArguments | ResumeArguments
_ARMS = frozenset({"list", "dict", "str", "bool", "int", "float", "nullable", "constrained-str"})
_OBJECTS = frozenset({"output", "context", "preferences"})
_ELSEWHERE = frozenset(name for tool in TOOLS for name in argument_names(tool))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a command takes from its surroundings: the default workspace, who calls, and what may be sent."""

    workspace: Path | None
    actor: Actor | None = None
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX


Command = ListCommand | InspectCommand | StartCommand | ContinueCommand | CheckpointCommand | ResumeCommand


def parse_arguments(tool: Tool, sent: Mapping[str, Json], caller: Caller) -> Command | Refusal:
    """Return the command of a call, or a refusal with the path, what was found and the corrected call."""
    cleaned = _cleaned(tool, sent)
    if isinstance(cleaned, Refusal):
        return cleaned
    try:
        arguments = tool.arguments.model_validate(cleaned)
    except ValidationError as error:
        return _invalid(tool, cleaned, error)
    except RecursionError:
        return refused(tool, "", "The arguments nest too deep.", "Flatten them.")
    return _command(tool, arguments, caller)


def refused(tool: Tool, path: str, message: str, suggestion: str, **details: Json) -> Refusal:
    """Return a `VALIDATION_ERROR` that names the tool, the place, and what to send."""
    path = one_line(path, PATH_BYTES_MAX)
    where = f"`{path}`: " if path else ""
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=one_line(f"{tool.name}: {where}{message}", PATH_BYTES_MAX + WORDS_BYTES_MAX),
        suggestion=suggestion,
        details={"tool": tool.name, "path": path, **details},
    )


def _cleaned(tool: Tool, sent: Mapping[str, Json]) -> dict[str, Json] | Refusal:
    """Drop what clients inject, take null and "" on an optional argument as absent, read objects sent as text."""
    fields = tool.arguments.model_fields
    names = argument_names(tool)
    cleaned: dict[str, Json] = {}
    for key, value in sent.items():
        if key in INJECTED_BY_CLIENTS:
            continue
        field = fields.get(names.get(key, ""))
        if field is not None and not field.is_required() and value in (None, ""):
            continue
        if isinstance(value, str) and _SURROGATE.search(value):
            return refused(tool, key, "The text holds a lone surrogate.", "Send valid Unicode text.")
        if key in _OBJECTS and isinstance(value, str):
            read = _read(value)
            if read is None:
                return refused(tool, key, f"Found {_unread(value)}.", f"Send `{key}` as an object.")
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


def _invalid(tool: Tool, sent: Mapping[str, Json], error: ValidationError) -> Refusal:
    """Tell the first fault in words, and show the call as it should have been."""
    faults = error.errors(include_url=False, include_input=False)
    fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    loc = _own_part(fault["loc"])
    path = document_path(loc)
    match fault["type"]:
        case "extra_forbidden":
            return _unknown(tool, sent, fault["loc"])
        case "missing":
            call = corrected_call(tool, sent, loc)
            message = "This argument is required and was not sent."
            return refused(tool, path, message, f"Send it, for example: {json.dumps(call)}", correctedCall=call)
        case _:
            message, call = f"Found {_found(sent, loc)}.", corrected_call(tool, sent, loc)
            return refused(tool, path, message, f"Send {_wanted(fault)} there.", correctedCall=call)


def _unknown(tool: Tool, sent: Mapping[str, Json], loc: tuple[int | str, ...]) -> Refusal:
    """Refuse an argument that there is not, and name the one that was meant; else it is to be left out."""
    path, meant = document_path(loc), _token_argument(tool, sent, loc) or meant_place(tool, loc)
    key = one_line(str(loc[-1]), ECHO_BYTES_MAX)
    name = None if meant is None else meant.rpartition(".")[2]
    if meant is None:
        call, fix = _without_unknown(tool, sent, loc), f"Leave `{key}` out.{_belongs_to(tool, loc)}"
    else:
        call = renamed_call(tool, sent, loc, meant)
        is_moved = len(loc) == 1 and meant != name
        fix = f"Send it as `{meant}`." if is_moved else f"Did you mean `{name}`? Send it under that name."
    return refused(tool, path, "This argument is not known.", fix, didYouMean=meant and name, correctedCall=call)


def _without_unknown(tool: Tool, sent: Mapping[str, Json], loc: tuple[int | str, ...]) -> Json:
    """Return a call without an argument that there is not. Where it may be the evidence, there is a place for that."""
    output, known = sent.get("output"), argument_names(tool)
    is_report = "output" in known and ("ackToken" in sent or "checkpointToken" in sent)
    outer, *inner = map(str, loc)
    is_evidence = is_report and (bool(inner) or outer not in _ELSEWHERE)
    if not is_evidence or (isinstance(output, dict) and output.keys() - set(inner)):
        return corrected_call(tool, sent, loc)
    return corrected_call(tool, {key: value for key, value in sent.items() if key != outer}, ("output",))


def _belongs_to(tool: Tool, loc: tuple[int | str, ...]) -> str:
    """Say which tools take an argument that this one does not."""
    others = [f"`{one.name}`" for one in TOOLS if one is not tool and len(loc) == 1 and loc[0] in argument_names(one)]
    return f" It is an argument of {' and '.join(others)}." if others else ""


def _token_argument(tool: Tool, sent: Mapping[str, Json], loc: tuple[int | str, ...]) -> str | None:
    """Return the argument that a token under another name belongs in, as its beginning says."""
    value = sent.get(str(loc[0])) if len(loc) == 1 else None
    if not isinstance(value, str):
        return None
    return next(
        (name for name, start in PREFIXES.items() if value.startswith(start) and name in argument_names(tool)), None
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


def _found(sent: Mapping[str, Json], loc: tuple[int | str, ...]) -> str:
    value = value_at(sent, loc)
    if isinstance(value, str):
        return repr(one_line(value, ECHO_BYTES_MAX))
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = ((int | float, "a number"), (type(None), "null"), (list, "a list"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "an object")


def _command(tool: Tool, arguments: Arguments, caller: Caller) -> Command | Refusal:
    if isinstance(arguments, ContinueArguments):
        return _continue(tool, arguments, caller)
    if isinstance(arguments, CheckpointArguments):
        return _checkpoint(tool, arguments, caller)
    assert isinstance(arguments, _OfWorkspace), "a tool has one of six models"
    workspace = _workspace(tool, arguments, caller)
    if isinstance(workspace, Refusal):
        return workspace
    match arguments:
        case ListArguments():
            return ListCommand(workspace=workspace, query=arguments.query, tag=arguments.tag)
        case InspectArguments():
            return InspectCommand(
                workflow_id=arguments.workflow_id, workspace=workspace, detail=arguments.detail or "summary"
            )
        case StartArguments():
            return _start(tool, arguments, workspace, caller)
        case ResumeArguments():
            return _resume(tool, arguments, workspace)


def _workspace(tool: Tool, arguments: _OfWorkspace, caller: Caller) -> Path | Refusal | None:
    path = arguments.workspace_path
    if path is None:
        return caller.workspace
    if not Path(path).is_absolute() or "\0" in path:
        return refused(
            tool,
            "workspacePath",
            f"Found {one_line(path, ECHO_BYTES_MAX)!r}, which is not an absolute path.",
            "Send the project's absolute path, or leave it out to use the server's workspace.",
            correctedCall=corrected_call(tool, _sent(arguments), ("workspacePath",)),
        )
    return Path(path)


def _sent(arguments: Arguments) -> dict[str, Json]:
    return arguments.model_dump(by_alias=True, exclude_unset=True)


def _start(tool: Tool, arguments: StartArguments, workspace: Path | None, caller: Caller) -> StartCommand | Refusal:
    context = dict(arguments.context or {})
    if arguments.goal is not None and context.setdefault("goal", arguments.goal) != arguments.goal:
        return refused(
            tool,
            "goal",
            "`goal` and `context.goal` differ; the goal is the context key of that name.",
            "Send the goal once, as `goal` or in `context`.",
            correctedCall=corrected_call(tool, {key: one for key, one in _sent(arguments).items() if key != "goal"}),
        )
    if arguments.session_id is not None and re.fullmatch(_SESSION_ID, arguments.session_id) is None:
        return refused(
            tool,
            "sessionId",
            f"Found {one_line(arguments.session_id, ECHO_BYTES_MAX)!r}, which is no session id.",
            "Copy the `sessionId` of an answer of that session, or leave it out to begin a new one.",
            correctedCall=corrected_call(tool, _sent(arguments), ("sessionId",), told={"sessionId": SESSION_STAND_IN}),
        )
    if is_placeholder(arguments.goal):
        return refused(tool, "goal", "It only says what belongs there.", "Send what the user wants, or leave it out.")
    return StartCommand(
        workflow_id=arguments.workflow_id,
        workspace=workspace,
        request=Request(context=context, preferences=_preferences(arguments.preferences)),
        session=None if arguments.session_id is None else SessionId(arguments.session_id),
        actor=caller.actor,
    )


def _continue(tool: Tool, arguments: ContinueArguments, caller: Caller) -> ContinueCommand | Refusal:
    if arguments.ack_token is None:
        refusal = _look_refusal(tool, arguments)
        if refusal is not None:
            return refusal
    refusal = _evidence_refusal(tool, arguments.output, caller.artifact_bytes_max)
    if refusal is not None:
        return refusal
    output = arguments.output or OutputArgument()
    return ContinueCommand(
        ack_token=arguments.ack_token,
        state_token=arguments.state_token,
        run=arguments.run,
        workspace=caller.workspace,
        request=Request(
            notes=output.notes_markdown,
            artifacts=tuple(output.artifacts or ()),
            context=dict(arguments.context or {}),
            preferences=_preferences(arguments.preferences),
        ),
        actor=caller.actor,
    )


def _checkpoint(tool: Tool, arguments: CheckpointArguments, caller: Caller) -> CheckpointCommand | Refusal:
    refusal = _evidence_refusal(tool, arguments.output, caller.artifact_bytes_max)
    if refusal is not None:
        return refusal
    output = arguments.output or OutputArgument()
    return CheckpointCommand(
        checkpoint_token=arguments.checkpoint_token,
        state_token=arguments.state_token,
        request=Request(notes=output.notes_markdown, artifacts=tuple(output.artifacts or ())),
        actor=caller.actor,
    )


def _resume(tool: Tool, arguments: ResumeArguments, workspace: Path | None) -> ResumeCommand | Refusal:
    for name, value, pattern in (
        ("sessionId", arguments.session_id, _SESSION_ID),
        ("runId", arguments.run_id, _RUN_ID),
    ):
        if value is not None and re.fullmatch(pattern, value) is None:
            return refused(
                tool,
                name,
                f"Found {one_line(value, ECHO_BYTES_MAX)!r}, which is no such id.",
                f"Copy the `{name}` of an answer, or leave it out and send a few words as `query`.",
                correctedCall=corrected_call(tool, _sent(arguments), (name,)),
            )
    query = arguments.query
    if query is not None and utf8_bytes(query) > QUERY_BYTES_MAX:
        return _too_large(tool, "query", utf8_bytes(query), QUERY_BYTES_MAX, fix="Send a few words.")
    return ResumeCommand(
        query=query,
        workspace=workspace,
        git_branch=arguments.git_branch,
        git_head_sha=arguments.git_head_sha,
        session=None if arguments.session_id is None else SessionId(arguments.session_id),
        run=None if arguments.run_id is None else RunId(arguments.run_id),
    )


def _look_refusal(tool: Tool, arguments: ContinueArguments) -> Refusal | None:
    """A call without an `ackToken` only looks: it needs a `stateToken` and takes nothing beside it (locks 1.2)."""
    beside = {"output": arguments.output, "context": arguments.context, "preferences": arguments.preferences}
    if arguments.state_token is None:
        # Who brings something reports a step; who brings nothing looks, and must not be led to report one.
        is_report = any(value is not None for value in beside.values())
        wanted = (
            [("ackToken",), *([("output",)] if arguments.output is None else [])] if is_report else [("stateToken",)]
        )
        return refused(
            tool,
            "ackToken" if is_report else "stateToken",
            "Neither `ackToken` nor `stateToken` was sent.",
            "Send the `nextCall` of the last answer: its `ackToken` with your notes where a step is done, its"
            " `stateToken` alone to see where the run stands.",
            correctedCall=corrected_call(tool, _sent(arguments), *wanted),
        )
    extra = [name for name, value in beside.items() if value is not None]
    if not extra:
        return None
    return refused(
        tool,
        extra[0],
        f"A `stateToken` alone only shows the step, so `{extra[0]}` would be lost.",
        "To report the step as done, send the `ackToken` of the same answer with it; to look, leave it out.",
        correctedCall=corrected_call(tool, _sent(arguments), ("ackToken",)),
    )


def _evidence_refusal(tool: Tool, output: OutputArgument | None, artifact_bytes_max: int) -> Refusal | None:
    if output is None:
        return None
    notes, artifacts = output.notes_markdown or "", output.artifacts or []
    if utf8_bytes(notes) > NOTES_INPUT_BYTES_MAX:
        return _too_large(tool, "output.notesMarkdown", utf8_bytes(notes), NOTES_INPUT_BYTES_MAX)
    if any("\ud800" <= char <= "\udfff" for char in notes):
        return refused(tool, "output.notesMarkdown", "The text holds a lone surrogate.", "Send valid Unicode text.")
    if len(artifacts) > ARTIFACTS_MAX:
        return refused(tool, "output.artifacts", f"Found {len(artifacts)} artifacts.", f"Send at most {ARTIFACTS_MAX}.")
    for at, artifact in enumerate(artifacts):
        refusal = _artifact_refusal(tool, f"output.artifacts[{at}]", artifact, artifact_bytes_max)
        if refusal is not None:
            return refusal
    return None


def _artifact_refusal(tool: Tool, path: str, artifact: dict[str, Json], bytes_max: int) -> Refusal | None:
    if not isinstance(artifact.get("kind"), str) or is_placeholder(artifact["kind"]):
        return refused(
            tool, f"{path}.kind", "An artifact has a `kind`, a text.", 'Add it, for example "kind": "report".'
        )
    if nests_deeper_than(artifact, ARTIFACT_DEPTH_MAX):
        return refused(tool, path, f"It nests deeper than {ARTIFACT_DEPTH_MAX} levels.", "Flatten it.")
    try:
        size = len(canonical_bytes(artifact))
    except NotCanonicalError as error:
        return refused(tool, f"{path}.{error.path}".rstrip("."), f"Found {error.found}.", "Send it as text.")
    return _too_large(tool, path, size, bytes_max) if size > bytes_max else None


def _too_large(
    tool: Tool, path: str, measured: int, limit: int, *, fix: str = "Write the long part to a file and give its path."
) -> Refusal:
    return refused(
        tool,
        path,
        f"It has {measured} bytes, at most {limit} (UTF-8 bytes).",
        fix,
        measuredBytes=measured,
        maxBytes=limit,
    )


def _preferences(argument: PreferencesArgument | None) -> PreferenceDelta:
    if argument is None:
        return PreferenceDelta()
    return PreferenceDelta(autonomy=argument.autonomy, risk_policy=argument.risk_policy)
