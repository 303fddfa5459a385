"""Tools of MCP servers, discovered by `tools/list`, and tools behind an HTTP address (TOOL-1, TOOL-2)."""

import json
import math
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import cast

import anyio
import httpx2
from mcp import Client, StdioServerParameters, types

from interlock.drive.agent.profile import ToolEntry
from interlock.drive.faults import Fault, TurnError
from interlock.drive.tools.builtin import SAFE_NAME
from interlock.drive.tools.tool import Invoke, ResolvedTool, ToolContext, ToolHints
from interlock.kernel.budgets.drive import TOOL_ANSWER_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.descent import DESCENDANT


async def connect_tools(entry: ToolEntry, exits: AsyncExitStack, warnings: list[str]) -> list[ResolvedTool]:
    """Connect to an MCP server and return those of its tools that the entry names.

    Connecting, and listing all tools, may each take as long as a call.

    Raises:
        TurnError: The server cannot be reached.
    """
    seconds = entry.timeout_ms / 1000
    try:
        # A connection outlives a time limit around it, so the client has its own.
        client = await exits.enter_async_context(Client(_address(entry), read_timeout_seconds=seconds))
        with anyio.fail_after(seconds):
            listed = await _list_tools(client)
    except Exception as error:  # a foreign server may fail in any way, and its tools are then left out
        message = f"The MCP server {entry.name!r} cannot be reached: {type(error).__name__}."
        raise TurnError(Fault(code="TOOL_ERROR", message=message)) from error
    named = {*entry.capabilities, *entry.permissions}
    missing = sorted(named - {tool.name for tool in listed})
    if missing:
        warnings.append(f"The MCP server {entry.name!r} has no tool {', '.join(missing)}.")
    if not named:
        warnings.append(
            f"No tool of the MCP server {entry.name!r} is named in `capabilities`, so the driver offers none."
        )
    return [_resolved(entry, client, tool) for tool in listed if tool.name in named]


def _address(entry: ToolEntry) -> StdioServerParameters | str:
    if entry.url is not None:
        return entry.url
    if not entry.command:
        message = f"The tool {entry.name!r} of type `mcp` has neither `command` nor `url`."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
    program, *arguments = entry.command
    return StdioServerParameters(command=program, args=arguments, env={**entry.env, DESCENDANT: "1"})


async def _list_tools(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if page.next_cursor is None:
            return tools
        cursor = page.next_cursor


def _resolved(entry: ToolEntry, client: Client, tool: types.Tool) -> ResolvedTool:
    hints = _hints(tool.annotations)
    permission = entry.permissions.get(tool.name) or entry.permission or hints.permission()
    return ResolvedTool(
        name=SAFE_NAME.sub("_", f"{entry.name}__{tool.name}"),
        description=tool.description or tool.name,
        input_schema=cast("Mapping[str, Json]", tool.input_schema),
        source={"type": "mcp", "serverUri": entry.url or entry.name, "capability": tool.name},
        transport="mcp",
        invoke=_invoke_remote(client, tool.name),
        timeout_ms=entry.timeout_ms,
        retry=entry.retry,
        is_parallel=entry.parallel,
        permission=permission,
        hints=hints,
        fallback=entry.fallback,
    )


def _hints(annotations: types.ToolAnnotations | None) -> ToolHints:
    if annotations is None:
        return ToolHints()
    is_read_only = annotations.read_only_hint is True
    return ToolHints(
        is_read_only=is_read_only,
        is_destructive=annotations.destructive_hint is not False and not is_read_only,
        is_idempotent=annotations.idempotent_hint is True,
    )


def _invoke_remote(client: Client, name: str) -> Invoke:
    async def invoke(arguments: Mapping[str, Json], context: ToolContext) -> object:
        meta = cast("types.RequestParamsMeta", {"traceparent": context.trace}) if context.trace is not None else None
        # The executor limits the time of a call.
        result = await client.call_tool(name, dict(arguments), meta=meta, read_timeout_seconds=math.inf)
        texts = [one.text for one in result.content if isinstance(one, types.TextContent)]
        if result.is_error:
            raise TurnError(Fault(code="TOOL_ERROR", message="\n".join(texts) or "The tool failed.", recoverable=True))
        return result.structured_content if result.structured_content is not None else "\n".join(texts)

    return invoke


async def _read_body(name: str, response: httpx2.Response) -> bytearray:
    """Return the body of an answer.

    Raises:
        TurnError: It is larger than what a tool may answer.
    """
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > TOOL_ANSWER_BYTES_MAX:
            message = f"The tool {name!r} answered with more than {TOOL_ANSWER_BYTES_MAX} bytes."
            raise TurnError(Fault(code="TOOL_ERROR", message=message))
    return body


def http_tool(entry: ToolEntry, index: int) -> ResolvedTool:
    """Return a tool that posts its arguments to an address and reads JSON."""
    address = entry.url or ""

    async def invoke(arguments: Mapping[str, Json], _context: ToolContext) -> object:
        try:
            async with (
                httpx2.AsyncClient(timeout=None) as http,
                http.stream("POST", address, json=dict(arguments)) as response,
            ):
                body = await _read_body(entry.name, response)
        except httpx2.HTTPError as error:
            message = f"The tool {entry.name!r} cannot be reached: {type(error).__name__}."
            raise TurnError(Fault(code="TOOL_ERROR", message=message, recoverable=True)) from error
        if response.is_error:
            message = f"The tool {entry.name!r} answered with the status {response.status_code}."
            raise TurnError(Fault(code="TOOL_ERROR", message=message, recoverable=response.is_server_error))
        return cast("object", json.loads(bytes(body)))

    hints = ToolHints()
    return ResolvedTool(
        name=entry.name,
        description=entry.description or entry.name,
        input_schema=entry.input_schema or {"type": "object"},
        source={"type": "manifest", "toolIndex": index},
        transport="http",
        invoke=invoke,
        timeout_ms=entry.timeout_ms,
        retry=entry.retry,
        is_parallel=entry.parallel,
        permission=entry.permission or hints.permission(),
        hints=hints,
        fallback=entry.fallback,
    )
