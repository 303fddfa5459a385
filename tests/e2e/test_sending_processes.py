"""Processes that end right after they recorded an intent still send it: a server whose client leaves, and a command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.outside import AWAIT, STATUS, sending
from tests.support.server import Server, workspace_in

from interlock.channels.channel import ChannelConfig
from interlock.testing.harness import Harness, linear_workflow

NOTIFY = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
A = {"id": "a", "title": "A", "prompt": "Do a.", "emit": [NOTIFY]}
SHIP = linear_workflow("team.ship", A, "b")
WAITS = linear_workflow("team.waits", "a", {**AWAIT, "emit": [NOTIFY]}, "b", inputs=[STATUS])
# The program needs longer to start than the process that starts it would otherwise live.
CHANNEL = """
[channels.slow]
kind = "command"
accepts = ["team.notify"]
sources = ["project"]
command = ["sh", "-c", "sleep 0.5; cat >> '{out}'; echo >> '{out}'"]
"""


def interlock(data_dir: Path, *words: str) -> Any:
    """Run a command in a process of its own and return the JSON that it prints."""
    command = [sys.executable, "-m", "interlock", *words, "--json", "--data-dir", str(data_dir)]
    done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=60)
    return json.loads(done.stdout)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    found = tmp_path / "data"
    found.mkdir()
    (found / "config.toml").write_text(CHANNEL.format(out=tmp_path / "out"))
    return found


@pytest.mark.inv("WORLD-6")
def test_a_server_whose_client_leaves_sends_what_its_last_call_recorded(tmp_path: Path, data_dir: Path) -> None:
    with Server(data_dir, workspace_in(tmp_path, ship=SHIP)) as server:
        first = server.start("team.ship", goal="Ship it")
        server.advance(first, "Did a, completely and with care.")
    assert [one["state"] for one in interlock(data_dir, "intent", "list")["intents"]] == ["delivered"]
    assert len((tmp_path / "out").read_text().splitlines()) == 1


@pytest.mark.inv("WORLD-6")
def test_a_command_that_completes_a_waiting_step_sends_what_the_step_emits(tmp_path: Path, data_dir: Path) -> None:
    channel = ChannelConfig(name="slow", kind="command", accepts=("team.notify",), sources=("project",), command=("x",))
    harness = sending(Harness.on_disk(data_dir, WAITS), channel)
    first = harness.start("team.waits", goal="Ship it")
    harness.advance(first)
    label, fields = str(first["run"]["label"]), json.dumps({"status": "green"})
    report = interlock(data_dir, "event", "send", "ci.finished", "--run", label, "--id", "1", "--fields", fields)
    assert report["isAdvanced"]
    assert [one["state"] for one in interlock(data_dir, "intent", "list")["intents"]] == ["delivered"]
    assert len((tmp_path / "out").read_text().splitlines()) == 1
