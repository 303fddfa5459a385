"""A server with three tools, served by our transport: what the transport tests talk to."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from interlock.server.transport.stdio import serve_stdio

Context = ServerRequestContext[object, object]
NAMES = ("echo", "slow", "park")


async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in NAMES])


async def call_tool(_context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments, text = params.arguments or {}, "never"
    match params.name:
        case "echo":
            text = echo(arguments["text"], arguments.get("how"))
        case "slow":
            port, marker = int(arguments["port"]), Path(arguments["marker"])
            for _ in range(arguments["gates"]):
                text = await to_thread.run_sync(pass_gate, port, marker, abandon_on_cancel=False)
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


async def main() -> int:
    server = Server(
        "echo",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    return await serve_stdio(server, on_closing=say_closing if "--say-closing" in sys.argv else None)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
