"""Opens the configured channels: one line for each kind."""

from typing import assert_never

from interlock.channels.channel import Channel, ChannelConfig


def open_channel(config: ChannelConfig) -> Channel:
    """Return a channel as it is configured. Sends nothing; the module of its kind is imported only now."""
    match config.kind:
        case "command":
            from interlock.channels.command import CommandChannel  # noqa: PLC0415 — see above

            return CommandChannel(config)
        case "http":
            from interlock.channels.http import HttpChannel  # noqa: PLC0415 — see above

            return HttpChannel(config)
        case "file":
            from interlock.channels.file import FileChannel  # noqa: PLC0415 — see above

            return FileChannel(config)
        case "mcp":
            from interlock.channels.mcp import McpChannel  # noqa: PLC0415 — see above

            return McpChannel(config)
        case _:
            assert_never(config.kind)
