"""The tools of a run: those that the profile names and that are available; the others are left out with a warning."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import field
from typing import Any, Self, cast

from interlock.drive.agent.profile import Profile, ToolEntry
from interlock.drive.faults import TurnError
from interlock.drive.tools.builtin import BUILTINS, RUN_COMMAND
from interlock.drive.tools.commands import in_sandbox
from interlock.drive.tools.remote import connect_tools, http_tool
from interlock.drive.tools.tool import Invoke, ResolvedTool, ToolHints
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen


@frozen
class FunctionTool:
    """A tool that an embedding program passes in: a profile names it with the type `function`."""

    description: str
    input_schema: Mapping[str, Json]
    invoke: Invoke
    hints: ToolHints = field(default_factory=ToolHints)


@frozen
class Resolution:
    """The tools of a turn by name, and why others were left out."""

    tools: Mapping[str, ResolvedTool]
    warnings: tuple[str, ...]


class Toolbox:
    """Resolves the tools of a profile once, and keeps the connections to MCP servers until it is closed."""

    def __init__(
        self, profile: Profile, functions: Mapping[str, FunctionTool] | None = None, *, only_repeatable: bool = False
    ) -> None:
        self._profile = profile
        self._only_repeatable = only_repeatable
        self._functions = dict(functions or {})
        self._exits = AsyncExitStack()
        self._resolution: Resolution | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    async def resolve(self) -> Resolution:
        """Return the tools that are available. What is not available is left out with a warning (TOOL-2)."""
        if self._resolution is None:
            found: dict[str, ResolvedTool] = {}
            warnings: list[str] = []
            for index, entry in enumerate(self._profile.tools):
                for tool in await self._of_entry(entry, index, warnings):
                    fault = _schema_fault(tool.input_schema)
                    if fault is not None:
                        warnings.append(f"The tool {tool.name!r} is left out: {fault}")
                    elif tool.permission == "deny":
                        warnings.append(f"The tool {tool.name!r} is left out: the profile denies it.")
                    elif self._only_repeatable and not tool.hints.may_repeat:
                        warnings.append(f"The tool {tool.name!r} is left out: parallel steps make no lasting calls.")
                    elif tool.name in found:
                        warnings.append(f"The tool {tool.name!r} is left out: there are two of this name.")
                    else:
                        found[tool.name] = tool
            self._resolution = Resolution(tools=found, warnings=tuple(warnings))
        return self._resolution

    async def _of_entry(self, entry: ToolEntry, index: int, warnings: list[str]) -> list[ResolvedTool]:
        try:
            match entry.type:
                case "mcp":
                    return await connect_tools(entry, self._exits, warnings)
                case "http" if entry.url is not None:
                    return [http_tool(entry, index)]
                case "builtin" | "function" if (tool := self._local(entry, index)) is not None:
                    return [tool]
                case _:
                    warnings.append(f"The tool {entry.name!r} of type `{entry.type}` is left out: it is not available.")
        except TurnError as error:
            warnings.append(f"The tool {entry.name!r} is left out: {error.fault.message}")
        return []

    def _local(self, entry: ToolEntry, index: int) -> ResolvedTool | None:
        """Return a function or a built-in tool; None if there is none of this name."""
        function = self._functions.get(entry.name)
        builtin = BUILTINS.get(entry.name)
        if function is not None:
            schema, hints, invoke = function.input_schema, function.hints, function.invoke
            description = function.description
        elif builtin is not None and entry.type == "builtin":
            schema, hints, invoke, description = builtin.schema(), builtin.hints, builtin.invoke, builtin.description
        else:
            return None
        if entry.name == RUN_COMMAND and self._profile.security.sandbox:
            invoke = in_sandbox(self._profile.security.sandbox)
        return ResolvedTool(
            name=entry.name,
            description=entry.description or description,
            input_schema=schema,
            source={"type": "manifest", "toolIndex": index},
            transport="function",
            invoke=invoke,
            timeout_ms=entry.timeout_ms,
            retry=entry.retry,
            is_parallel=entry.parallel,
            permission=entry.permission or hints.permission(),
            hints=hints,
            fallback=entry.fallback,
        )


def _schema_fault(schema: Mapping[str, Json]) -> str | None:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 — it takes long to import

    try:
        Draft202012Validator.check_schema(cast("dict[str, Any]", dict(schema)))
    except SchemaError as error:
        return f"its schema is not valid: {error.message}"
    if schema.get("type") != "object":
        return "its schema does not describe an object."
    return None


def input_fault(schema: Mapping[str, Json], arguments: Json) -> str | None:
    """Return where and how arguments break the schema of a tool; None if they fit (TOOL-3)."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 — as above

    errors = Draft202012Validator(cast("dict[str, Any]", dict(schema))).iter_errors(arguments)
    first = min(errors, key=lambda error: list(map(str, error.absolute_path)), default=None)
    if first is None:
        return None
    path = ".".join(map(str, first.absolute_path)) or "(arguments)"
    return f"`{path}`: {first.message}"
