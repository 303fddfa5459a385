"""The channel `mcp`: one call of a tool of another MCP server, which is started for it over stdio (WORLD-6)."""

import json
import os
from typing import cast

from interlock.channels.channel import ChannelConfig, Message, Result
from interlock.channels.command import child_environment
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import CHANNEL_NOTE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line


class McpChannel:
    """Calls the configured tool once for each message; the message is its arguments."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. A result that is an error: refused; no connection: failed; no answer: unknown."""
        import anyio  # noqa: PLC0415 — only this channel needs it in a thread

        return anyio.run(self._deliver, message.body)

    async def _deliver(self, message: bytes) -> Result:
        import anyio  # noqa: PLC0415 — see above
        from mcp import ClientSession  # noqa: PLC0415 — slow to import
        from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415 — see above

        program, *arguments = self._config.command
        server = StdioServerParameters(command=program, args=arguments, env=child_environment(os.environ))
        is_sent = False
        assert self._config.tool is not None, "the configuration was checked"
        try:
            with anyio.fail_after(self._config.timeout_s):
                async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
                    await session.initialize()
                    is_sent = True
                    result = await session.call_tool(self._config.tool, cast("dict[str, Json]", json.loads(message)))
        except Exception as error:  # noqa: BLE001 — whatever another server does must not reach this one
            words = one_line(f"{type(error).__name__}: {error}", CHANNEL_NOTE_BYTES_MAX)
            return Result(outcome="unknown" if is_sent else "failed", note=words)
        texts = [str(getattr(block, "text", "")) for block in result.content]
        if result.is_error:
            return Result(outcome="refused", note=one_line(" ".join(texts), CHANNEL_NOTE_BYTES_MAX) or "an error")
        structured = cast("dict[str, Json] | None", result.structured_content)
        return Result(outcome="delivered", reply=structured or parse_reply(" ".join(texts).encode()))
