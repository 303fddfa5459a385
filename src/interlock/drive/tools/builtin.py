"""The built-in tools of a driver without a coding client: files of the workspace, commands, the agent's own state."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from anyio import from_thread, to_thread

from interlock.drive.faults import ToolAnswerError, TurnError
from interlock.drive.tools.commands import run_command
from interlock.drive.tools.tool import READS, Invoke, ToolContext, ToolHints
from interlock.drive.tools.workspace import Listing, Workspace
from interlock.kernel.budgets.drive import SEARCH_MATCHES_MAX, TOOL_OUTPUT_CHARS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen

RUN_COMMAND = "run_command"


@frozen
class BuiltinTool:
    """A built-in tool: its description, the schema of its input, its hints, and what it does."""

    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    hints: ToolHints
    invoke: Invoke

    def schema(self) -> dict[str, Json]:
        """Return the schema of the input."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


def _in_thread(work: Callable[[Mapping[str, Json], Workspace], Json]) -> Invoke:
    """Return a tool that reads or writes files without holding up the driver, so that its time limit ends it."""

    async def invoke(arguments: Mapping[str, Json], context: ToolContext) -> object:
        return await to_thread.run_sync(work, arguments, context.workspace)

    return invoke


def _read_file(arguments: Mapping[str, Json], workspace: Workspace) -> Json:
    lines = workspace.read(_text(arguments, "path")).splitlines()
    first, count = _number(arguments, "firstLine", 1), _number(arguments, "lines", len(lines))
    shown = "\n".join(lines[max(first - 1, 0) : max(first - 1, 0) + max(count, 0)])
    return {"text": shown[:TOOL_OUTPUT_CHARS_MAX], "lines": len(lines), "isCut": len(shown) > TOOL_OUTPUT_CHARS_MAX}


def _list_files(arguments: Mapping[str, Json], workspace: Workspace) -> Json:
    found = _files(arguments, workspace)
    return {"files": list(found.paths), "isCut": found.is_cut}


def _search_files(arguments: Mapping[str, Json], workspace: Workspace) -> Json:
    wanted, found = _text(arguments, "text"), _files(arguments, workspace)
    matches: list[Json] = []
    unread = 0
    for path in found.paths:
        from_thread.check_cancelled()
        try:
            lines = workspace.read(path).splitlines()
        except TurnError:
            unread += 1
            continue
        for number, line in enumerate(lines, start=1):
            if wanted not in line:
                continue
            if len(matches) == SEARCH_MATCHES_MAX:
                return {"matches": matches, "isCut": True, "unreadFiles": unread}
            matches.append({"path": path, "line": number, "text": line[:TOOL_OUTPUT_CHARS_MAX]})
    return {"matches": matches, "isCut": found.is_cut, "unreadFiles": unread}


def _files(arguments: Mapping[str, Json], workspace: Workspace) -> Listing:
    path, pattern = _text(arguments, "path", "."), _text(arguments, "pattern", "*")
    return workspace.files(path, pattern, from_thread.check_cancelled)


def _write_file(arguments: Mapping[str, Json], workspace: Workspace) -> Json:
    return {"bytes": workspace.write(_text(arguments, "path"), _text(arguments, "content"))}


def _patch_file(arguments: Mapping[str, Json], workspace: Workspace) -> Json:
    path, old, new = (_text(arguments, name) for name in ("path", "old", "new"))
    text = workspace.read(path)
    if text.count(old) != 1:
        message = f"`old` occurs {text.count(old)} times in {path!r}; it must occur once. Send more lines around it."
        raise ToolAnswerError(message)
    return {"bytes": workspace.write(path, text.replace(old, new))}


async def _state_get(arguments: Mapping[str, Json], context: ToolContext) -> object:
    keys = [str(key) for key in cast("list[Json]", arguments.get("keys", []))]
    return await context.state.get_many(keys)


async def _state_set(arguments: Mapping[str, Json], context: ToolContext) -> object:
    ttl = arguments.get("ttlSeconds")
    await context.state.set(
        _text(arguments, "key"), arguments.get("value"), float(ttl) if isinstance(ttl, int | float) else None
    )
    return {"set": True}


async def _state_append(arguments: Mapping[str, Json], context: ToolContext) -> object:
    await context.state.append(_text(arguments, "key"), arguments.get("value"))
    return {"appended": True}


async def _state_delete(arguments: Mapping[str, Json], context: ToolContext) -> object:
    await context.state.delete(_text(arguments, "key"))
    return {"deleted": True}


def _text(arguments: Mapping[str, Json], name: str, default: str = "") -> str:
    found = arguments.get(name, default)
    return found if isinstance(found, str) else default


def _number(arguments: Mapping[str, Json], name: str, default: int) -> int:
    found = arguments.get(name, default)
    return found if isinstance(found, int) else default


def _string(description: str) -> Json:
    return {"type": "string", "description": description}


_PATH: Mapping[str, Json] = {"path": _string("A path in the workspace.")}
_WHERE: Mapping[str, Json] = {
    "path": _string("A directory in the workspace; the whole workspace without it."),
    "pattern": _string("A glob that a file's path ends with, such as `*.py`."),
}
_KEY: Mapping[str, Json] = {"key": {"type": "string", "minLength": 1}}
_WRITES = ToolHints(is_idempotent=True)
_OWN_STATE = ToolHints(is_destructive=False, is_idempotent=True)

BUILTINS: Mapping[str, BuiltinTool] = MappingProxyType(
    {
        "read_file": BuiltinTool(
            description="Read a text file, or some lines of it.",
            properties={**_PATH, "firstLine": {"type": "integer"}, "lines": {"type": "integer"}},
            required=("path",),
            hints=READS,
            invoke=_in_thread(_read_file),
        ),
        "list_files": BuiltinTool(
            description="List files.", properties=_WHERE, required=(), hints=READS, invoke=_in_thread(_list_files)
        ),
        "search_files": BuiltinTool(
            description="Find the lines that contain a text. Files that are no text or too large are not read.",
            properties={**_WHERE, "text": _string("The text.")},
            required=("text",),
            hints=READS,
            invoke=_in_thread(_search_files),
        ),
        "write_file": BuiltinTool(
            description="Write a whole file.",
            properties={**_PATH, "content": _string("The whole content.")},
            required=("path", "content"),
            hints=_WRITES,
            invoke=_in_thread(_write_file),
        ),
        "patch_file": BuiltinTool(
            description="Replace a text that occurs once in a file.",
            properties={**_PATH, "old": _string("The text to replace."), "new": _string("What replaces it.")},
            required=("path", "old", "new"),
            hints=ToolHints(),
            invoke=_in_thread(_patch_file),
        ),
        RUN_COMMAND: BuiltinTool(
            description="Run a command in the workspace, without a shell.",
            properties={"argv": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
            required=("argv",),
            hints=ToolHints(),
            invoke=run_command,
        ),
        "state_get": BuiltinTool(
            description="Read values that you kept.",
            properties={"keys": {"type": "array", "items": {"type": "string"}}},
            required=("keys",),
            hints=READS,
            invoke=_state_get,
        ),
        "state_set": BuiltinTool(
            description="Keep a value for later turns.",
            properties={**_KEY, "value": {}, "ttlSeconds": {"type": "number", "exclusiveMinimum": 0}},
            required=("key", "value"),
            hints=_OWN_STATE,
            invoke=_state_set,
        ),
        "state_append": BuiltinTool(
            description="Append a value to a list that you keep.",
            properties={**_KEY, "value": {}},
            required=("key", "value"),
            hints=_OWN_STATE,
            invoke=_state_append,
        ),
        "state_delete": BuiltinTool(
            description="Remove a value that you kept.",
            properties=_KEY,
            required=("key",),
            hints=_OWN_STATE,
            invoke=_state_delete,
        ),
    }
)
"""Every built-in tool by its name. A profile offers those that it names. The state of a turn that fails is rolled
back, so repeating a call of it has no other effect."""

SAFE_NAME = re.compile(r"[^A-Za-z0-9_-]")
"""What the name of a tool may not hold, for all models."""
