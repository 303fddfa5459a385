"""The registration of this Interlock with a client: a command, a block for the client's file, a link."""

import base64
import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from interlock.cli.screen import printable_line
from interlock.config.data_dir import PlaceArguments, data_dir_origin
from interlock.config.model import Config
from interlock.config.settings import settings_from
from interlock.kernel.canonical import Json
from interlock.kernel.descent import own_program
from interlock.kernel.frozen import frozen

NAME = "interlock"
"""The name of the server in a client's configuration."""

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "claude-code": ".mcp.json in the project",
        "claude-desktop": "claude_desktop_config.json (Settings, Developer, Edit Config)",
        "cursor": "~/.cursor/mcp.json, or .cursor/mcp.json in the project",
        "vscode": ".vscode/mcp.json in the project",
        "codex": "~/.codex/config.toml",
        "gemini": "~/.gemini/settings.json",
        "json": "the client's own file",
    }
)
"""The file that each block belongs in."""

_REPLACED: Mapping[str, str] = MappingProxyType(
    {"claude-code": r"\$\{", "cursor": r"\$\{", "vscode": r"\$\{", "gemini": r"\$\{?\w"}
)
"""What each client replaces in its file if the environment has the name that follows. It cannot be escaped."""


@frozen
class Registration:
    """Ways to register the server with a client. A way that a client does not support is empty."""

    client: str
    command: tuple[str, ...]
    block: str
    add: str = ""
    remove: str = ""
    link: str = ""

    def warning(self) -> str:
        """Return a warning if the client would change the command as it reads its file."""
        pattern = _REPLACED.get(self.client)
        if pattern is None or not any(re.search(pattern, word) for word in self.command):
            return ""
        return "This client replaces names after a `$`, and a path above contains one. Use another path."

    def to_json(self) -> dict[str, Json]:
        """Return the object as `--json` prints it."""
        fields: dict[str, Json] = {"client": self.client, "file": PLACES[self.client]}
        fields |= {"command": list[Json](self.command), "block": self.block}
        given = {"add": self.add, "remove": self.remove, "link": self.link, "warning": self.warning()}
        return fields | {key: words for key, words in given.items() if words}

    def in_words(self) -> str:
        """Render the ways for people: each with an instruction, and the text to copy on lines of its own."""
        ways = [
            ("run this in a terminal", self.add),
            ("open this link", self.link),
            (f"put this into {PLACES[self.client]}; if it lists other servers, add only the entry", self.block),
        ]
        given = [(words, text) for words, text in ways if text]
        paragraphs = [f"{'or ' * (number > 0)}{words}:\n\n{text}" for number, (words, text) in enumerate(given)]
        paragraphs = [f"{one[0].upper()}{one[1:]}" for one in paragraphs]
        if self.remove:
            paragraphs.append(f"To remove it again:\n\n{self.remove}")
        return "\n\n".join([*paragraphs, *filter(None, [self.warning()])])


def registration(client: str, command: list[str]) -> Registration:
    """Return the ways to register a command with a client."""
    add, remove = _own_commands(client, command)
    return Registration(
        client=client,
        command=tuple(command),
        block=client_block(client, command),
        add=shell_line(add),
        remove=shell_line(remove),
        link=_link(client, command),
    )


def client_block(client: str, command: list[str]) -> str:
    """Return the block for a client's file: TOML for Codex, JSON for every other."""
    if client == "codex":
        program, *arguments = map(_toml, command)
        return f"[mcp_servers.{NAME}]\ncommand = {program}\nargs = [{', '.join(arguments)}]"
    is_typed = client in {"claude-code", "vscode"}
    server: dict[str, Json] = ({"type": "stdio"} if is_typed else {}) | _entry(command)
    key = "servers" if client == "vscode" else "mcpServers"
    return json.dumps({key: {NAME: server}}, indent=2)


def serving_command(environment: Mapping[str, str], arguments: PlaceArguments) -> list[str]:
    """Return the command that serves, with absolute paths: clients start it anywhere, in an environment of their own.

    So paths from arguments or from this environment are written out. Every server finds the defaults of the platform.

    Raises:
        SettingsError: An argument names a path that is not a directory.
    """
    settings = settings_from(environment, arguments, Config())
    command = [*installed_command(), "serve"]
    if data_dir_origin(environment, arguments) != "default" or environment.get("XDG_DATA_HOME"):
        command += ["--data-dir", str(settings.data_dir)]
    if arguments.workspace:
        command += ["--workspace", str(settings.workspace)]
    if settings.user_workflows_origin != "default":
        command += ["--workflows-dir", str(settings.user_workflows)]
    return command


def shell_line(words: list[str]) -> str:
    """Quote words as one line for a shell, without terminal control characters."""
    return " ".join(map(_shell_word, words))


def _own_commands(client: str, command: list[str]) -> tuple[list[str], list[str]]:
    """Return the client's own commands that add and remove a server, for all projects of the user."""
    match client:
        case "claude-code":
            scope = ["--scope", "user", NAME]
            return ["claude", "mcp", "add", *scope, "--", *command], ["claude", "mcp", "remove", *scope]
        case "codex":
            return ["codex", "mcp", "add", NAME, "--", *command], ["codex", "mcp", "remove", NAME]
        case "gemini":
            scope = ["--scope", "user", NAME]
            return ["gemini", "mcp", "add", *scope, *command], ["gemini", "mcp", "remove", *scope]
        case "vscode":
            return ["code", "--add-mcp", json.dumps({"name": NAME, **_entry(command)})], []
        case _:
            return [], []


def _link(client: str, command: list[str]) -> str:
    match client:
        case "cursor":
            config = base64.b64encode(json.dumps(_entry(command)).encode()).decode()
            return f"cursor://anysphere.cursor-deeplink/mcp/install?name={NAME}&config={quote(config, safe='')}"
        case "vscode":
            return f"vscode:mcp/install?{quote(json.dumps({'name': NAME, **_entry(command)}), safe='')}"
        case _:
            return ""


def _entry(command: list[str]) -> dict[str, Json]:
    program, *arguments = command
    return {"command": program, "args": list[Json](arguments)}


def installed_command() -> list[str]:
    """Return the command that starts this Interlock from anywhere."""
    sibling = Path(sys.executable).with_name("interlock")
    found = str(sibling) if sibling.is_file() else shutil.which("interlock")
    return [str(Path(found).absolute())] if found is not None else own_program()


def _shell_word(word: str) -> str:
    """Quote a word. Terminal control characters are written as bytes, which shells read in any locale."""
    if printable_line(word) == word:
        return shlex.quote(word)
    spelled = (char if " " <= char <= "~" and char not in "\\'" else _in_bytes(char) for char in word)
    return f"$'{''.join(spelled)}'"


def _in_bytes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def _toml(text: str) -> str:
    """Return a TOML string, in ASCII. JSON's short escapes are TOML's too; other characters have one of its own."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else f"\\U{ord(char):08x}" for char in plain)
