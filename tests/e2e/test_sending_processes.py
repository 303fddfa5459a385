"""Processes that end right after they recorded an intent still send it: a server whose client leaves, and a command."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.forked_server import ForkedServer
from tests.support.forkserver import forking_python
from tests.support.outside import AWAIT, STATUS, into_file, sender_of, sending
from tests.support.server import workspace_in

from interlock.channels.channel import ChannelConfig
from interlock.service.outside.dispatch import Dispatcher
from interlock.store.opening import open_untried
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
    command = [forking_python(), "-m", "interlock", *words, "--json", "--data-dir", str(data_dir)]
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
    with ForkedServer(data_dir, workspace_in(tmp_path, ship=SHIP)) as server:
        first = server.start("team.ship", goal="Ship it")
        server.advance(first, "Did a, completely and with care.")
    assert [one["state"] for one in interlock(data_dir, "intent", "list")["intents"]] == ["delivered"]
    assert len((tmp_path / "out").read_text().splitlines()) == 1


@pytest.mark.inv("WORLD-13")
@pytest.mark.skipif(os.name == "nt", reason="Windows does not keep when the status of a file changed")
def test_a_server_sends_after_its_start_what_a_killed_process_did_not_try(tmp_path: Path, data_dir: Path) -> None:
    harness = Harness.on_disk(data_dir, SHIP)
    channel = into_file(tmp_path / "none")
    killed = Dispatcher(sender=sender_of(harness, channel), untried=open_untried(data_dir))
    killed.close()
    harness = replace(harness, ports=replace(harness.ports, outbox=killed))
    harness.advance(harness.start("team.ship", goal="Ship it"), "Did a, completely and with care.")
    assert [one["state"] for one in interlock(data_dir, "intent", "list")["intents"]] == ["undelivered"]
    with ForkedServer(data_dir, workspace_in(tmp_path, ship=SHIP)) as server:
        server.call("list_workflows")
        limit = time.perf_counter() + 20
        while list((data_dir / "outbox").iterdir()) and time.perf_counter() < limit:
            server.call("list_workflows")
    assert [one["state"] for one in interlock(data_dir, "intent", "list")["intents"]] == ["delivered"]
    assert len((tmp_path / "out").read_text().splitlines()) == 1


@pytest.mark.inv("WORLD-6", "WORLD-7")
@pytest.mark.parametrize("made_by", ["import", pytest.param("repair", marks=pytest.mark.damages), "restored backup"])
def test_a_server_over_a_copy_sends_its_own_intents_and_none_that_the_copy_holds(
    tmp_path: Path, data_dir: Path, made_by: str
) -> None:
    kept = tmp_path / "original"
    channel = ChannelConfig(name="slow", kind="command", accepts=("team.notify",), sources=("project",), command=("x",))
    harness = sending(Harness.on_disk(kept, SHIP), channel)
    first = harness.start("team.ship", goal="Ship it")
    harness.advance(harness.advance(first, "Did a, completely and with care."), "Did b with care.")
    session = harness.session_of(first)
    if made_by == "import":
        bundle = tmp_path / "bundle.json"
        interlock(kept, "session", "export", session, "--out", str(bundle))
        interlock(data_dir, "session", "import", str(bundle))
    else:
        shutil.copytree(kept, data_dir, dirs_exist_ok=True)
    if made_by == "repair":
        max((data_dir / "sessions" / session / "events").iterdir()).unlink()
        interlock(data_dir, "session", "repair", session)
    (data_dir / "config.toml").write_text(
        CHANNEL.format(out=tmp_path / "out").replace('["project"]', '["project", "imported"]')
    )
    with ForkedServer(data_dir, workspace_in(tmp_path, ship=SHIP)) as server:
        mine = server.start("team.ship", goal="Ship another one")
        server.advance(mine, "Did a of the other one, completely.")
        server.call("resume_session")
    [sent] = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert sent["run"] == mine["run"]["runId"]
    states = {
        (one["run"] == mine["run"]["runId"], one["state"]) for one in interlock(data_dir, "intent", "list")["intents"]
    }
    assert states == {(True, "delivered"), (False, "undelivered")}
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
