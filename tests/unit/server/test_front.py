"""What the front answers, and what it leaves to the server."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.commands import command_line
from interlock.cli.top.plain_serve import OPTIONS, may_answer_at_once, parse_plain
from interlock.kernel.budgets import FRONT_LINE_BYTES_MAX
from interlock.server.transport.descriptors import pipe_bytes
from interlock.server.transport.prepared import Prepared

ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"roots": {"listChanged": True}, "elicitation": {"form": {}}, "extensions": {"x/y": {"z": [1]}}},
    "clientInfo": {"name": "test", "title": "Test", "version": "1"},
}


def line(method: str, params: object = None, **more: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}} | more).encode()


def greeted() -> Prepared:
    prepared = Prepared()
    assert prepared.answer(line("initialize", HELLO)) is not None
    return prepared


@pytest.mark.inv("FRONT-1")
def test_a_handshake_is_answered_in_the_version_that_the_client_asked_for() -> None:
    found = Prepared().answer(line("initialize", HELLO, id="a"))
    assert found is not None
    assert found[0] == "a"
    answer = json.loads(found[1])
    assert answer["id"] == "a"
    assert answer["result"]["protocolVersion"] == HELLO["protocolVersion"]
    assert answer["result"]["serverInfo"]["name"] == "interlock"


@pytest.mark.inv("FRONT-1")
def test_after_a_handshake_notifications_and_blank_lines_get_no_answer() -> None:
    prepared = greeted()
    silent = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    assert [prepared.answer(one) for one in (silent, b"", b" \r")] == [("", b"")] * 3
    assert prepared.answer(line("tools/list", {"_meta": {"progressToken": 3}})) is not None


@pytest.mark.inv("FRONT-1")
@pytest.mark.parametrize(
    "sent",
    [
        b"{",
        b"[]",
        b"\xff",
        b"7",
        line("tools/call", {"name": "list_workflows"}),
        line("resources/list"),
        line("initialize", HELLO),
        line("tools/list", {"cursor": "x"}),
        line("tools/list", {"_meta": ENVELOPE}),
        line("tools/list", {"_meta": {"traceparent": "x"}}),
        line("tools/list", jsonrpc="1.0"),
        line("tools/list", id=True),
        line("tools/list", id=1.5),
        line("tools/list", id=None),
        line("tools/list", id=2**60),
        line("tools/list", id="é"),
        line("tools/list", id='"'),
        line("tools/list", more=1),
        line("tools/list", [1]),
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}',
        line("tools/list", {"_meta": {}}) + b" " * FRONT_LINE_BYTES_MAX,
        json.dumps({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}).encode(),
    ],
    ids=lambda sent: sent[:60].decode(errors="replace"),
)
def test_a_message_of_any_other_form_is_left_to_the_server(sent: bytes) -> None:
    assert greeted().answer(sent) is None


@pytest.mark.inv("FRONT-1")
@pytest.mark.parametrize(
    "change",
    [
        {"protocolVersion": "1999-01-01"},
        {"protocolVersion": "2026-07-28"},
        {"capabilities": {"roots": []}},
        {"capabilities": {"roots": {"listChanged": 1}}},
        {"capabilities": {"sampling": {"tools": 1}}},
        {"capabilities": {"experimental": {"x": 1}}},
        {"capabilities": None},
        {"clientInfo": {"name": "x"}},
        {"clientInfo": {"name": "x", "version": 1}},
        {"clientInfo": []},
        {"more": 1},
    ],
    ids=str,
)
def test_a_handshake_that_the_server_may_refuse_is_left_to_it(change: dict[str, Any]) -> None:
    assert Prepared().answer(line("initialize", HELLO | change)) is None


@pytest.mark.inv("FRONT-1")
def test_without_a_handshake_every_request_needs_its_envelope() -> None:
    prepared = Prepared()
    assert prepared.answer(line("tools/list")) is None
    assert prepared.answer(line("tools/list", {"_meta": ENVELOPE | {"more/more": 1}})) is None
    assert prepared.answer(line("server/discover", {"_meta": ENVELOPE})) is not None
    assert prepared.answer(line("initialize", HELLO)) is None
    assert prepared.answer(line("tools/list")) is None
    assert prepared.answer(line("tools/list", {"_meta": ENVELOPE})) is not None


@pytest.mark.inv("FRONT-1", "CHAT-1")
def test_the_tools_of_a_host_that_shows_pages_are_left_to_the_server() -> None:
    pages = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    modern = ENVELOPE | {"io.modelcontextprotocol/clientCapabilities": pages}
    prepared = Prepared()
    assert prepared.answer(line("server/discover", {"_meta": modern})) is not None
    assert prepared.answer(line("tools/list", {"_meta": modern})) is None
    prepared = Prepared()
    assert prepared.answer(line("initialize", HELLO | {"capabilities": pages})) is not None
    assert prepared.answer(line("tools/list")) is None
    assert prepared.answer(line("prompts/list")) is not None


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["serve"], {}),
        (["--data-dir", "a", "serve", "--workspace=b"], {"--data-dir": "a", "--workspace": "b"}),
        (["serve", "serve"], None),
        (["serve", "--data", "a"], None),
        (["serve", "--data-dir"], None),
        (["serve", "--data-dir", "--workspace"], None),
        (["serve", "--help"], None),
        (["--version"], None),
        (["session", "list"], None),
    ],
    ids=str,
)
def test_only_a_command_line_without_anything_unusual_is_plain(
    words: list[str], options: dict[str, str] | None
) -> None:
    assert parse_plain(words) == options


def test_a_plain_command_line_means_what_the_parser_says() -> None:
    words = ["--data-dir", "a", "serve", *(f"{name}=x{name}" for name in OPTIONS[1:])]
    parsed = vars(command_line(words).parse_args(words))
    plain = parse_plain(words)
    assert plain is not None
    assert {name: parsed[name.removeprefix("--").replace("-", "_")] for name in OPTIONS} == plain


@pytest.mark.inv("FRONT-1")
def test_clients_are_answered_at_once_only_if_every_setting_is_certainly_valid(tmp_path: Path) -> None:
    data = tmp_path / "missing" / "data"
    options = {"--data-dir": str(data), "--workspace": str(tmp_path)}
    assert may_answer_at_once(options, {})
    assert may_answer_at_once({}, {"INTERLOCK_DATA_DIR": str(data), "INTERLOCK_LOG_LEVEL": "info"})
    assert not may_answer_at_once(options, {"INTERLOCK_LOG_LEVEL": "loud"})
    assert not may_answer_at_once(options | {"--workspace": str(data)}, {})
    assert not may_answer_at_once(options | {"--core-source": str(data)}, {})
    data.mkdir(parents=True)
    assert may_answer_at_once(options, {})
    (data / "config.toml").touch()
    assert not may_answer_at_once(options, {})
    (tmp_path / "file").touch()
    assert not may_answer_at_once({"--data-dir": str(tmp_path / "file" / "data")}, {})


@pytest.mark.inv("FRONT-1")
@pytest.mark.skipif(sys.platform != "linux", reason="sets the size of a pipe")
def test_a_pipe_says_how_much_it_holds(tmp_path: Path) -> None:
    import fcntl  # noqa: PLC0415 — POSIX only

    source, sink = os.pipe()
    try:
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)
        assert pipe_bytes(sink) == 4096
    finally:
        os.close(source)
        os.close(sink)
    with (tmp_path / "answers").open("wb") as file:
        assert pipe_bytes(file.fileno()) is None
