"""What `interlock doctor --client` prints is read by the client's own parser, from the place where it says it belongs.

Cursor, VS Code and Claude Desktop have no parser that runs without a screen. Theirs is read by the Inspector, which
takes the same `mcpServers` object, or held against the documented shape; each test says which.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.clients.installed import Clients

pytestmark = pytest.mark.inv("DOC-3")

INSPECTOR, CODEX, GEMINI = "@modelcontextprotocol/inspector", "@openai/codex", "@google/gemini-cli"

DATA_DIR = 'd ä "1" \\ 𝄞'
"""A name that no quoting survives by luck."""

VSCODE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["servers"],
    "properties": {
        "servers": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["type", "command"],
                "properties": {
                    "type": {"const": "stdio"},
                    "command": {"type": "string"},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "cwd": {"type": "string"},
                    "env": {"type": "object"},
                    "envFile": {"type": "string"},
                },
            },
        }
    },
}
"""A `mcp.json` of VS Code with servers over stdio, as its documentation describes it."""


def block_for(clients: Clients, client: str) -> dict[str, Any]:
    """Return what the doctor prints for a client: the block, the file that it belongs in, the command in it."""
    data_dir = str(clients.home.with_name(DATA_DIR))
    asked = ["doctor", "--client", client, "--data-dir", data_dir, "--json"]
    ended = clients.finish([sys.executable, "-m", "interlock", *asked])
    assert ended.code == 0, ended.output
    return json.loads(ended.out)


def put(block: dict[str, Any], path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(block["block"], encoding="utf-8")
    return path


def test_claude_code_reads_the_block_from_the_project_and_connects_once_it_is_approved(clients: Clients) -> None:
    clients.wanted("@anthropic-ai/claude-code")
    block = block_for(clients, "claude-code")
    assert block["file"].startswith(".mcp.json")
    put(block, clients.project / ".mcp.json")
    pending = clients.claude("mcp", "get", "interlock")
    assert (pending.code, "Pending approval" in pending.out) == (0, True), pending.output
    assert f"Args: {' '.join(block['command'][1:])}" in pending.out
    settings = clients.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"enableAllProjectMcpServers": True}), encoding="utf-8")
    assert "✔ Connected" in clients.claude("mcp", "get", "interlock").out


def test_codex_reads_the_block_and_has_the_command_to_the_letter(clients: Clients) -> None:
    clients.wanted(CODEX)
    block = block_for(clients, "codex")
    assert block["file"].startswith("~/.codex/config.toml")
    put(block, clients.home / ".codex" / "config.toml")
    ended = clients.run(CODEX, "codex", "mcp", "get", "interlock", "--json")
    assert ended.code == 0, ended.output
    found = json.loads(ended.out)
    assert (found["enabled"], found["transport"]["type"]) == (True, "stdio")
    assert [found["transport"]["command"], *found["transport"]["args"]] == block["command"]


def test_gemini_cli_reads_the_block_and_connects(clients: Clients) -> None:
    clients.wanted(GEMINI)
    block = block_for(clients, "gemini")
    assert block["file"].startswith("~/.gemini/settings.json")
    clients.put_gemini_settings(**json.loads(block["block"]))
    ended = clients.run(GEMINI, "gemini", "mcp", "list")
    assert "✓ interlock" in ended.output, ended.output
    assert "Connected" in ended.output


@pytest.mark.parametrize("client", ["cursor", "claude-desktop", "json"])
def test_the_inspector_reads_the_mcp_servers_of_a_client_without_a_parser_of_its_own_and_connects(
    clients: Clients, client: str
) -> None:
    clients.wanted(INSPECTOR)
    path = put(block_for(clients, client), clients.home / "mcp.json")
    wanted = ["--config", str(path), "--server", "interlock", "--method", "tools/list", "--format", "json"]
    ended = clients.run(INSPECTOR, "mcp-inspector", "--cli", *wanted)
    assert ended.code == 0, ended.output
    assert len(json.loads(ended.out)["result"]["tools"]) == 6


def test_the_block_for_vscode_has_the_documented_shape_and_the_inspector_connects_to_its_command(
    clients: Clients,
) -> None:
    clients.wanted(INSPECTOR)
    block = block_for(clients, "vscode")
    assert block["file"].startswith(".vscode/mcp.json")
    document = json.loads(block["block"])
    Draft202012Validator(VSCODE).validate(document)
    server = document["servers"]["interlock"]
    command = [server["command"], *server["args"]]
    ended = clients.run(INSPECTOR, "mcp-inspector", "--cli", *command, "--method", "tools/list", "--format", "json")
    assert ended.code == 0, ended.output
    assert len(json.loads(ended.out)["result"]["tools"]) == 6
