"""What each running server applied is shown, and whether it needs a restart (CFG-7)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.console import Browser, console_of

from interlock.cli.main import main
from interlock.config.places import CONFIG_FILE
from interlock.testing.harness import Harness

HELLO: dict[str, object] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CALLS: tuple[dict[str, object], ...] = (
    {"id": 0, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/call", "params": {"name": "list_workflows", "arguments": {}}},
)


def started(data_dir: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a server, and send it a call."""
    server = subprocess.Popen(
        [sys.executable, "-m", "interlock", "serve", "--data-dir", str(data_dir), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    for call in CALLS:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n")
    server.stdin.flush()
    return server


def wait_for_answer(server: subprocess.Popen[bytes]) -> None:
    """Wait until a server has answered the call: then it is announced."""
    assert server.stdout is not None
    while json.loads(server.stdout.readline()).get("id") != 1:
        pass


def shown(capsys: pytest.CaptureFixture[str], data_dir: Path) -> Any:
    capsys.readouterr()
    assert main(["config", "show", "--json", "--data-dir", str(data_dir)]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say which processes run")
@pytest.mark.inv("CFG-7", "CON-12")
def test_each_running_server_is_shown_with_what_it_applied_and_whether_it_needs_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert shown(capsys, tmp_path)["servers"] == []
    servers = [started(tmp_path), started(tmp_path, "--workflows-dir", str(own))]
    try:
        for server in servers:
            wait_for_answer(server)
        found = shown(capsys, tmp_path)
        hashes = {one["pid"]: one["appliedConfigHash"] for one in found["servers"]}
        assert [*hashes] == sorted(server.pid for server in servers)
        assert hashes[servers[0].pid] == found["appliedConfigHash"] != hashes[servers[1].pid]
        assert {(one["client"], one["restartRequired"]) for one in found["servers"]} == {(os.getpid(), False)}
        app, _ = console_of(Harness.on_disk(tmp_path))
        browser = Browser(app)
        browser.enter()
        page = browser.get("/settings").text
        assert all(f">{server.pid}<" in page for server in servers)
        assert page.count("has the values of the file") == len(servers)
        (tmp_path / CONFIG_FILE).write_text('[gates]\nclaims = "never"\n', encoding="utf-8")
        assert [one["restartRequired"] for one in shown(capsys, tmp_path)["servers"]] == [True, True]
        assert main(["config", "show", "--data-dir", str(tmp_path)]) == 0
        assert f"Running server {servers[0].pid} of client {os.getpid()}: has older values: restart it" in (
            capsys.readouterr().out
        )
    finally:
        for server in servers:
            server.communicate()
    assert shown(capsys, tmp_path)["servers"] == []
