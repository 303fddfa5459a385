"""A server whose tool asks a person and tells what came back: over our transport as a script, or in memory."""

import json
import socket
import sys
from dataclasses import asdict
from pathlib import Path

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.lowlevel import Server

from interlock.engine.gates import Question, QuestionItem, Reply
from interlock.server.elicitation.ask import Context, Elicitation, can_ask
from interlock.server.transport.stdio import serve_stdio
from interlock.service.clock import Clock, SystemClock
from interlock.store.local.store import LocalStore
from interlock.store.ports.keys import KeyRingWriter

APPROVAL = Question(
    title="Release notes, step Publish", asks=(QuestionItem(reason="needs_user_approval", ask="Publish the release?"),)
)
CHOICE = Question(title="Release", asks=(QuestionItem(reason="needs_user_choice", ask="Which region?"),))


class Gate:
    """What the tool asks about; a test may exchange it between two calls."""

    def __init__(self, key_ring: KeyRingWriter, clock: Clock) -> None:
        self.question = APPROVAL
        self.subject = "att_1"
        self._elicitation = Elicitation(key_ring, clock)

    async def call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if not can_ask(context):
            return text_result("nobody can be asked")
        if params.arguments:
            await to_thread.run_sync(wait_at, int(params.arguments["port"]))
        reply = await self._elicitation.ask(context, params, self.question, self.subject)
        if not isinstance(reply, Reply):
            return reply
        return text_result(json.dumps({name: one for name, one in asdict(reply).items() if name != "origin"}))

    def server(self) -> Server[dict[str, object]]:
        async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])

        return Server("asking", on_list_tools=list_tools, on_call_tool=self.call)


def wait_at(port: int) -> None:
    """Block until the test closes the connection, as a call does that judges evidence before anyone is asked."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)


def text_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


if __name__ == "__main__":
    gate = Gate(LocalStore(Path(sys.argv[1])), SystemClock())
    sys.exit(anyio.run(serve_stdio, gate.server()))
