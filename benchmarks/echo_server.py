"""The floor of a server on this SDK: one tool, low level, the SDK's own transport, nothing else."""

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[object, object]


async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """Answer `tools/list`."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return types.ListToolsResult(tools=[types.Tool(name="echo", description="Says it again.", input_schema=schema)])


async def call_tool(_context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer `tools/call` with what was sent, in both channels."""
    text = str((params.arguments or {})["text"])
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content={"text": text})


async def main() -> None:
    """Serve until the client leaves."""
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
