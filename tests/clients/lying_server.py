"""A server with our published tools, whose answers do not keep to them: what a client must not take."""

import sys
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from interlock.server.tools import TOOLS
from interlock.server.transport.stdio import serve_stdio

Context = ServerRequestContext[Any, Any]


async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool.to_json()) for tool in TOOLS])


async def call_tool(_context: Context, _params: types.CallToolRequestParams) -> types.CallToolResult:
    text = types.TextContent(text="All is well.")
    return types.CallToolResult(content=[text], structured_content={"kind": "ok"})


if __name__ == "__main__":
    server: Server[Any] = Server("lying", on_list_tools=list_tools, on_call_tool=call_tool)
    sys.exit(anyio.run(serve_stdio, server))
