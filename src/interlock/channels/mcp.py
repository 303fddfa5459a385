"""The channel `mcp`: one call of a tool of another MCP server, which is started for it over stdio (WORLD-6)."""

import json
import os
import time
from typing import TYPE_CHECKING, cast

from interlock.channels.channel import ChannelConfig, Message, Result
from interlock.channels.child import Child, ChildStartError, Command, Kept, running_child, small_environment
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import (
    CHANNEL_NOTE_BYTES_MAX,
    CHECK_GRACE_S,
    MCP_OUTPUT_BYTES_MAX,
    MCP_OUTPUT_LINES_MAX,
    NAMED_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp import ClientSession
    from mcp.shared.message import SessionMessage


class McpChannel:
    """Calls the configured tool once for each message; the message is its arguments."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. A result that is an error: refused; the call was not sent: failed; no answer: unknown."""
        import anyio  # noqa: PLC0415 — only this channel needs it in a thread

        until_s = time.monotonic() + self._config.timeout_s
        command = Command(argv=self._config.command, environment=small_environment(os.environ))
        lines, errors = _Lines(), Kept(CHANNEL_NOTE_BYTES_MAX)
        try:
            with running_child(command, lines.add, errors.add) as child:
                found = anyio.run(_Try(self._config, child, lines).deliver, message.body)
                child.message = b""
                if found.outcome in ("delivered", "refused"):
                    # A server ends when its input ends; one that does not is ended with all that it started.
                    child.follow(min(until_s, time.monotonic() + CHECK_GRACE_S))
                child.end()
        except ChildStartError as error:
            return Result(outcome="failed", note=one_line(str(error), CHANNEL_NOTE_BYTES_MAX))
        said = errors.data.decode("utf-8", "replace").strip().splitlines()
        if found.note is None or found.outcome == "refused" or not said:
            return found
        return Result(outcome=found.outcome, note=one_line(f"{found.note} {said[-1]}", CHANNEL_NOTE_BYTES_MAX))


class _Lines:
    """Splits what a server writes into lines, and counts it."""

    def __init__(self) -> None:
        self._size = self._number = 0
        self._rest = b""
        self._whole: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Add a piece."""
        self._size += len(data)
        self._number += data.count(b"\n")
        if self.is_within:
            *whole, self._rest = (self._rest + data).split(b"\n")
            self._whole += whole

    def take(self) -> list[bytes]:
        """Return the lines that are complete since the last call."""
        found, self._whole = self._whole, []
        return found

    @property
    def is_within(self) -> bool:
        """Whether the server has written no more than one try allows."""
        return self._size <= MCP_OUTPUT_BYTES_MAX and self._number <= MCP_OUTPUT_LINES_MAX


class _Try:
    """One try over the pipes of a server."""

    def __init__(self, config: ChannelConfig, child: Child, lines: _Lines) -> None:
        assert config.tool is not None, "the configuration was checked"
        self._tool, self._timeout_s = config.tool, config.timeout_s
        self._child, self._lines = child, lines
        self._is_sent = False

    async def deliver(self, message: bytes) -> Result:
        """Connect, look for the tool, and call it."""
        import anyio  # noqa: PLC0415 — see above
        from mcp import ClientSession  # noqa: PLC0415 — slow to import
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 — see above

        found: Result | None = None
        with anyio.move_on_after(self._timeout_s):
            feed, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
            sent, written = anyio.create_memory_object_stream[SessionMessage]()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, feed)
                tasks.start_soon(self._read_errors)
                tasks.start_soon(self._write, written)
                async with ClientSession(received, sent) as session:
                    found = await self._call(session, message)
                tasks.cancel_scope.cancel()
        return found or self._without_answer(f"There was no whole answer within {self._timeout_s} s.")

    async def _call(self, session: "ClientSession", message: bytes) -> Result:
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult  # noqa: PLC0415 — see above

        arguments = cast("dict[str, Json]", json.loads(message))
        request = CallToolRequest(params=CallToolRequestParams(name=self._tool, arguments=arguments))
        try:
            await session.initialize()
            names = await _tool_names(session, self._tool)
            if self._tool not in names:
                known = ", ".join(f"`{one}`" for one in names[:NAMED_MAX]) or "none"
                return Result(
                    outcome="failed",
                    note=one_line(f"The server has no tool `{self._tool}`. It has {known}.", CHANNEL_NOTE_BYTES_MAX),
                )
            self._is_sent = True
            # Not `call_tool`: it checks the result against a schema of that server, with patterns of its own.
            result = await session.send_request(request, CallToolResult)
        except Exception as error:  # noqa: BLE001 — whatever another server does must not reach this one
            return self._without_answer(f"{type(error).__name__}: {error}")
        texts = " ".join(str(getattr(block, "text", "")) for block in result.content)
        if result.is_error:
            return Result(outcome="refused", note=one_line(texts, CHANNEL_NOTE_BYTES_MAX) or "an error")
        structured = cast("dict[str, Json] | None", result.structured_content)
        answer = texts if structured is None else json.dumps(structured)
        return Result(outcome="delivered", reply=parse_reply(answer.encode("utf-8", "replace")))

    def _without_answer(self, words: str) -> Result:
        if not self._lines.is_within:
            words = f"The server wrote more than {MCP_OUTPUT_BYTES_MAX} bytes or {MCP_OUTPUT_LINES_MAX} lines."
        note = one_line(words, CHANNEL_NOTE_BYTES_MAX)
        return Result(outcome="unknown" if self._is_sent else "failed", note=note)

    async def _read(self, feed: "MemoryObjectSendStream[SessionMessage | Exception]") -> None:
        """Pass messages to the session; its end, or too many bytes, end the connection."""
        import anyio  # noqa: PLC0415 — see above
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 — see above
        from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415 — see above

        [pipe, *_] = self._child.output_pipes
        async with feed:
            while pipe in self._child.output_pipes and self._lines.is_within:
                await anyio.wait_readable(pipe)
                self._child.read(pipe)
                for line in self._lines.take():
                    try:
                        await feed.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
                    except ValueError:
                        # What is no message is the server's own output.
                        continue

    async def _read_errors(self) -> None:
        import anyio  # noqa: PLC0415 — see above

        [_, pipe] = self._child.output_pipes
        while pipe in self._child.output_pipes:
            await anyio.wait_readable(pipe)
            self._child.read(pipe)

    async def _write(self, written: "MemoryObjectReceiveStream[SessionMessage]") -> None:
        import anyio  # noqa: PLC0415 — see above

        async with written:
            async for one in written:
                self._child.message = one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                while self._child.message and self._child.input_pipe is not None:
                    await anyio.wait_writable(self._child.input_pipe)
                    self._child.write()


async def _tool_names(session: "ClientSession", wanted: str) -> list[str]:
    """Return the names of the tools of a server, page by page up to the wanted one."""
    from mcp_types import PaginatedRequestParams  # noqa: PLC0415 — see above

    names, cursor = list[str](), None
    while wanted not in names:
        params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        page = await session.list_tools(params=params)
        names += [one.name for one in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            break
    return names
