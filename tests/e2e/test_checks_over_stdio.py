"""A check that a server begins: its result is there for the open call, and for the next chat after a kill."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.checks import NEEDED
from tests.support.server import Server, events_of, step_of, workspace_in
from tests.support.verify import unsound_below

TRIES_MAX = 600


def configured(tmp_path: Path, script: str) -> tuple[Path, Path]:
    """Make a data directory and a workspace whose check `tests` is a shell script."""
    space, data = workspace_in(tmp_path, flow=NEEDED), tmp_path / "data"
    data.mkdir()
    lines = f'command = ["/bin/sh", "-c", {json.dumps(script)}]\nworkspaces = [{json.dumps(str(space))}]\n'
    (data / "config.toml").write_text(f"[checks.tests]\n{lines}")
    return data, space


def results(server: Server, start: Any) -> list[dict[str, Any]]:
    found = [one for one in events_of(server, start) if one["kind"] == "event_received"]
    assert {(one["data"]["assurance"], one["data"]["via"]) for one in found} <= {("executed", "check")}
    return [one["data"]["fields"] for one in found]


@pytest.mark.inv("CHECK-1", "CHECK-6")
def test_the_call_of_a_waiting_step_stays_open_until_the_check_has_ended(tmp_path: Path) -> None:
    data, space = configured(tmp_path, "sleep 0.5; echo $(ls passes); test -e passes")
    with Server(data, space) as server:
        start = server.start("test.flow", goal="Ship")
        waiting = server.advance(start)
        failed = server.advance(waiting, None)
        assert "did not pass" in failed.text
        (space / "passes").touch()
        assert step_of(server.advance(failed, None)) == "b"
        assert [one["passed"] for one in results(server, start)] == [False, True]
    assert unsound_below(data) == []


@pytest.mark.inv("CHECK-3")
def test_a_check_outlives_its_server_and_runs_once_at_a_time(tmp_path: Path) -> None:
    data, space = configured(tmp_path, "echo x >> started; until test -e go; do sleep 0.05; done")
    with Server(data, space) as first, Server(data, space) as second:
        start = first.start("test.flow", goal="Ship")
        waiting = first.advance(start)
        for _ in range(TRIES_MAX):
            if (space / "started").exists():
                break
            time.sleep(0.05)
        first.kill()
        command = [sys.executable, "-m", "interlock", "--data-dir", str(data), "checks", "run", waiting["run"]["label"]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        (space / "go").touch()
        assert (done.returncode, "Another process runs this check" in done.stderr) == (1, True)
        assert step_of(second.advance(waiting, None)) == "b"
        assert (space / "started").read_text() == "x\n"
        assert [one["passed"] for one in results(second, start)] == [True]
    assert unsound_below(data) == []
