"""What goes into a client's configuration, so that it starts this Interlock on this data directory."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from interlock.kernel.canonical import Json
from interlock.server.settings import PlaceArguments, data_dir_of, data_dir_origin

NAME = "interlock"
"""What the server is called in a client's configuration."""

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "claude-code": ".mcp.json in the project",
        "claude-desktop": "claude_desktop_config.json (Settings, Developer, Edit Config)",
        "cursor": ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        "vscode": ".vscode/mcp.json in the project",
        "codex": "~/.codex/config.toml",
        "gemini": "~/.gemini/settings.json",
        "json": "the client's own place",
    }
)
"""Where each block belongs."""


def client_block(client: str, command: list[str]) -> str:
    """Return the block for a client: TOML for Codex, JSON for every other."""
    program, *arguments = command
    if client == "codex":
        return f"[mcp_servers.{NAME}]\ncommand = {_toml(program)}\nargs = [{', '.join(map(_toml, arguments))}]"
    server: dict[str, Json] = {"command": program, "args": list[Json](arguments)}
    if client in {"claude-code", "vscode"}:
        server = {"type": "stdio", **server}
    key = "servers" if client == "vscode" else "mcpServers"
    return json.dumps({key: {NAME: server}}, indent=2)


def serving_command(environment: Mapping[str, str], arguments: PlaceArguments) -> list[str]:
    """Return the command that serves, with absolute paths: clients start it anywhere, with a short search path.

    The data directory is named unless it is the platform's own, which every client's server finds by itself.
    """
    command = [*_program(), "serve"]
    if data_dir_origin(environment, arguments) != "default":
        command += ["--data-dir", str(data_dir_of(environment, arguments))]
    return command


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("interlock")
    found = str(beside) if beside.is_file() else shutil.which("interlock")
    return [str(Path(found).absolute())] if found is not None else [sys.executable, "-m", "interlock"]


def _toml(text: str) -> str:
    """Return a TOML string, in ASCII. JSON's short escapes are TOML's too; other characters have one of its own."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else f"\\U{ord(char):08x}" for char in plain)
