"""`interlock doctor --client`: what it prints is what shells, files and clients read as the command that it means."""

import base64
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.unit.cli.upkeep.conftest import Site

from interlock.cli.upkeep.clients import PLACES, registration, shell_line

ODD = [
    "a b",
    "it's",
    'say "so"',
    "Übung é 𝄞",
    "$HOME",
    "${HOME}",
    "back\\slash",
    "`id`; !! & | * ? # ~",
    "--",
    "a=b%20+c",
    "~~~???",
    "line\nfeed\ttab",
    "\x7f\x1b[31m",
    "right\u202eleft",
]
"""Names of directories that people have, or that something could read as more than a name."""
every_odd_name = pytest.mark.parametrize("name", ODD, ids=ascii)
every_client = pytest.mark.parametrize("client", list(PLACES))


def entry(client: str, block: str) -> dict[str, Any]:
    """Return how a block starts the server, read as the client's own kind of file is."""
    if client == "codex":
        found = tomllib.loads(block)["mcp_servers"]
    else:
        found = json.loads(block)["servers" if client == "vscode" else "mcpServers"]
    assert set(found) == {"interlock"}
    server: dict[str, Any] = found["interlock"]
    return server


def command_of(server: dict[str, Any]) -> list[str]:
    return [server["command"], *server["args"]]


def words_of(line: str) -> list[str]:
    """Return the words that a real shell reads in a line, which has to be one."""
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, encoding="utf-8", env={"HOME": "/x"}, check=True
    )
    return printed.stdout.split("\0")[:-1]


def added_by(client: str, line: str) -> list[str]:
    """Return the command that a client's own command adds."""
    words = words_of(line)
    match client:
        case "claude-code":
            assert words[:7] == ["claude", "mcp", "add", "--scope", "user", "interlock", "--"]
            return words[7:]
        case "codex":
            assert words[:5] == ["codex", "mcp", "add", "interlock", "--"]
            return words[5:]
        case "gemini":
            assert words[:6] == ["gemini", "mcp", "add", "--scope", "user", "interlock"]
            return words[6:]
        case _:
            assert words[:2] == ["code", "--add-mcp"]
            server = json.loads(words[2])
            assert server.pop("name") == "interlock"
            return command_of(server)


def linked_by(client: str, link: str) -> list[str]:
    """Return the command that an install link holds."""
    parts = urlsplit(link)
    if client == "cursor":
        assert (parts.scheme, parts.netloc, parts.path) == ("cursor", "anysphere.cursor-deeplink", "/mcp/install")
        asked = parse_qs(parts.query)
        assert asked["name"] == ["interlock"]
        return command_of(json.loads(base64.b64decode(asked["config"][0], validate=True)))
    assert (parts.scheme, parts.path) == ("vscode", "mcp/install")
    server = json.loads(unquote(parts.query))
    assert server.pop("name") == "interlock"
    return command_of(server)


@pytest.mark.inv("DOC-3")
@every_odd_name
@every_client
def test_every_way_to_register_starts_the_same_command_whatever_its_path_holds(client: str, name: str) -> None:
    command = [f"/opt/{name}/interlock", "serve", "--data-dir", f"/srv/{name}/data"]
    result = registration(client, command)
    assert command_of(entry(client, result.block)) == command
    assert not result.add or added_by(client, result.add) == command
    assert not result.link or linked_by(client, result.link) == command


@every_odd_name
@every_client
def test_what_is_printed_for_a_client_holds_no_character_that_steers_a_terminal(client: str, name: str) -> None:
    said = registration(client, [f"/opt/{name}/interlock", "serve"]).in_words()
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", said) is None


def test_clients_with_a_command_or_a_link_of_their_own_get_one() -> None:
    result = {client: registration(client, ["/x/interlock", "serve"]) for client in PLACES}
    assert {client for client, one in result.items() if one.add} == {"claude-code", "codex", "gemini", "vscode"}
    assert {client for client, one in result.items() if one.remove} == {"claude-code", "codex", "gemini"}
    assert {client for client, one in result.items() if one.link} == {"cursor", "vscode"}


@every_client
def test_the_types_that_a_client_wants_stand_in_its_block(client: str) -> None:
    server = entry(client, registration(client, ["/x/interlock", "serve"]).block)
    assert server.get("type") == ("stdio" if client in {"claude-code", "vscode"} else None)


@pytest.mark.parametrize(
    ("client", "name", "is_reported"),
    [
        ("gemini", "a$HOME", True),
        ("gemini", "a${HOME}", True),
        ("gemini", "5$", False),
        ("claude-code", "a${HOME}", True),
        ("claude-code", "a$HOME", False),
        ("codex", "a${HOME}", False),
    ],
)
def test_a_path_that_a_client_would_change_is_reported(client: str, name: str, *, is_reported: bool) -> None:
    result = registration(client, [f"/opt/{name}/interlock", "serve"])
    assert ("Use another path." in result.in_words()) is is_reported
    assert ("warning" in result.to_json()) is is_reported


@pytest.mark.inv("DOC-3")
@every_client
def test_people_and_programs_read_the_same(site: Site, client: str) -> None:
    result, said = site.json("doctor", "--client", client), site.said("doctor", "--client", client)
    assert (result["client"], result["file"]) == (client, PLACES[client])
    assert command_of(entry(client, result["block"])) == result["command"]
    assert result["command"][1:] == ["serve", "--data-dir", str(site.data_dir)]
    assert Path(result["command"][0]).is_absolute()
    copied = said.rstrip("\n").split("\n\n")
    assert {result[key] for key in ("block", "add", "remove", "link") if key in result} <= set(copied)
    assert result["file"] in said
    assert not site.data_dir.exists()


@pytest.mark.inv("DOC-3")
def test_what_is_printed_starts_this_program_from_anywhere(site: Site) -> None:
    command = site.json("doctor", "--client", "json")["command"]
    started = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", env={}, check=False)
    assert (started.returncode, started.stderr) == (0, b"")


@pytest.mark.inv("DOC-3")
def test_what_the_environment_of_a_shell_names_is_written_out_for_a_client_that_has_another(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INTERLOCK_WORKFLOWS_DIR", "mine")
    named = ["--data-dir", str(site.data_dir), "--workflows-dir", str(tmp_path / "mine")]
    assert site.json("doctor", "--client", "json")["command"][2:] == named
    monkeypatch.delenv("INTERLOCK_DATA_DIR")
    monkeypatch.delenv("INTERLOCK_WORKFLOWS_DIR")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert site.json("doctor", "--client", "json")["command"][1:] == ["serve"]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert site.json("doctor", "--client", "json")["command"][2] == "--data-dir"
    (tmp_path / "space").mkdir()
    result = site.json("--workspace", "space", "doctor", "--client", "json", "--data-dir", "runs")
    assert result["command"][2:] == ["--data-dir", str(tmp_path / "runs"), "--workspace", str(tmp_path / "space")]


def test_a_workspace_that_is_not_there_is_reported_and_nothing_is_printed(site: Site) -> None:
    said = site.complained("--workspace", "nowhere", "doctor", "--client", "json", code=2)
    assert "there is no directory nowhere" in said


def test_the_command_is_found_beside_the_interpreter_then_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program = tmp_path / "bin" / "interlock"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert site.json("doctor", "--client", "json")["command"][0] == str(program)
    program.unlink()
    assert site.json("doctor", "--client", "json")["command"][:4] == [str(tmp_path / "python"), "-P", "-m", "interlock"]
    (tmp_path / "interlock").touch()
    assert site.json("doctor", "--client", "json")["command"][0] == str(tmp_path / "interlock")


def test_words_that_need_no_quotes_get_none() -> None:
    assert shell_line(["claude", "--", "/opt/interlock-1.0/bin/interlock"]) == (
        "claude -- /opt/interlock-1.0/bin/interlock"
    )
