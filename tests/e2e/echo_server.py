"""A server with four tools, served by our transport: what the transport tests talk to."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from interlock.server.transport import stdio

Context = ServerRequestContext[Any, Any]
NAMES = ("echo", "slow", "park", "report")


async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in NAMES])


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments, text = params.arguments or {}, "never"
    match params.name:
        case "echo":
            text = echo(arguments["text"], arguments.get("how"))
        case "slow":
            port, marker = int(arguments["port"]), Path(arguments["marker"])
            for _ in range(arguments["gates"]):
                text = await to_thread.run_sync(pass_gate, port, marker, abandon_on_cancel=False)
        case "report":
            await context.session.report_progress(0.5, message="half")
            text = "reported"
        case _:
            await anyio.sleep_forever()
    return types.CallToolResult(content=[types.TextContent(text=text)])


def echo(text: str, how: str | None) -> str:
    """Return the text, after making the noise that a careless handler or child makes."""
    if how == "noisily":
        print("stray print")  # noqa: T201 — the noise under test
        os.write(1, b"stray write\n")
        child = [sys.executable, "-c", "import sys; print('stray child', len(sys.stdin.read()))"]
        subprocess.run(child, check=True)
    return "half of a pair: \udcff" if how == "unsendably" else text


def pass_gate(port: int, marker: Path) -> str:
    """Tell the test that the thread runs, block until it opens the gate, then leave the marker."""
    with socket.create_connection(("127.0.0.1", port)) as gate:
        gate.recv(1)
    marker.touch()
    return "through"


def say_closing() -> None:
    os.write(2, b"closing\n")


async def say_call(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Write a line to stderr for each call that the SDK is given."""
    if ctx.method == "tools/call":
        os.write(2, b"through the SDK\n")
    return await call_next(ctx)


async def main() -> int:
    server: Server[Any] = Server(
        "echo",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    if "--say-calls" in sys.argv:
        server.middleware.append(say_call)
    if "--soon" in sys.argv:
        stdio.DRAIN_TOTAL_SECONDS_MAX = 1
    return await stdio.serve_stdio(server, on_closing=say_closing if "--say-closing" in sys.argv else None)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
