"""A check that a server begins: its result is there for the open call, and for the next chat after a kill."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_stdio_transport import ENDS, ENVELOPE, serving
from tests.support.checks import NEEDED
from tests.support.forked_server import ForkedServer
from tests.support.forkserver import forking_python
from tests.support.server import Server, events_of, step_of, until, workspace_in
from tests.support.verify import unsound_below

from interlock.config.checks import TAKEN

ROOT = Path(__file__).parents[2]


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


UNTIL_GO = "echo x >> started; while test -e started && ! test -e go; do sleep 0.05; done"
"""A check that runs until `go` is there. It also ends when its directory is removed, so no test leaves it behind."""


@pytest.mark.inv("CHECK-1", "CHECK-6")
def test_the_call_of_a_waiting_step_stays_open_until_the_check_has_ended(tmp_path: Path) -> None:
    data, space = configured(tmp_path, "sleep 0.5; echo $(ls passes); test -e passes")
    with ForkedServer(data, space) as server:
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
    data, space = configured(tmp_path, UNTIL_GO)
    with ForkedServer(data, space) as first, ForkedServer(data, space) as second:
        start = first.start("test.flow", goal="Ship")
        waiting = first.advance(start)
        until((space / "started").exists)
        first.kill()
        command = [
            forking_python(),
            "-m",
            "interlock",
            "--data-dir",
            str(data),
            "checks",
            "run",
            waiting["run"]["label"],
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        begun = subprocess.run([*command, "--after", "0"], capture_output=True, check=False)
        assert begun.returncode == TAKEN, "the server that begins a process reads that no run was lost"
        (space / "go").touch()
        assert (done.returncode, "Another process runs this check" in done.stderr) == (1, True)
        assert step_of(second.advance(waiting, None)) == "b"
        assert (space / "started").read_text() == "x\n"
        assert [one["passed"] for one in results(second, start)] == [True]
    assert unsound_below(data) == []


@pytest.mark.inv("CHECK-3")
def test_two_servers_that_both_wait_for_a_check_run_it_once(tmp_path: Path) -> None:
    data, space = configured(tmp_path, "echo x >> started; sleep 0.5; test -e passes")
    with ForkedServer(data, space) as first, ForkedServer(data, space) as second, ThreadPoolExecutor(2) as both:
        start = first.start("test.flow", goal="Ship")
        waiting = first.advance(start)
        failed = first.advance(waiting, None)
        (space / "started").unlink()
        (space / "passes").touch()
        asked = [both.submit(server.advance, failed, None) for server in (first, second)]
        assert [step_of(one.result()) for one in asked] == ["b", "b"]
        assert (space / "started").read_text() == "x\n"
        assert [one["passed"] for one in results(first, start)] == [False, True]
    assert unsound_below(data) == []


CLIENT = """
import sys
from pathlib import Path
from tests.support.server import Server

data, space = map(Path, sys.argv[1:])
with Server(data, space) as server:
    waiting = server.advance(server.start("test.flow", goal="Ship"))
    server.advance(waiting, None)
"""


@pytest.mark.inv("CHECK-3", "CHECK-6")
def test_a_check_whose_client_is_killed_ends_and_the_next_chat_takes_its_result(tmp_path: Path) -> None:
    data, space = configured(tmp_path, UNTIL_GO)
    with subprocess.Popen([sys.executable, "-c", CLIENT, str(data), str(space)], cwd=ROOT) as client:
        until((space / "started").exists)
        time.sleep(0.2)  # its call waits for the check
        client.kill()
    with ForkedServer(data, space) as later:
        (found,) = later.call("resume_session", query="Ship")["candidates"]
        shown = later.call(found["nextCall"]["tool"], **found["nextCall"]["arguments"])
        (space / "go").touch()
        assert step_of(later.advance(shown, None)) == "b"
        assert [one["passed"] for one in results(later, shown)] == [True]
    assert (space / "started").read_text() == "x\n"
    assert unsound_below(data) == []


@pytest.mark.skipif(sys.platform == "win32", reason="waits on pipes with select")
@pytest.mark.inv("SRV-7")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("is_direct", [False, True])
def test_a_call_that_waits_for_a_check_is_answered_by_a_server_that_ends(
    tmp_path: Path, end: str | signal.Signals, *, is_direct: bool
) -> None:
    data, space = configured(tmp_path, UNTIL_GO)
    unusual = {} if is_direct else {"unknown": True}
    places = ["--data-dir", str(data), "--workspace", str(space)]
    with serving(command=[forking_python(), "-m", "interlock", "serve", *places]) as server:

        def send(identity: int, tool: str, **arguments: Any) -> None:
            params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE, **unusual}
            server.send({"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params})

        send(1, "start_workflow", workflowId="test.flow", goal="Ship")
        token = server.answer()["result"]["structuredContent"]["ackToken"]
        send(2, "continue_workflow", ackToken=token, output={"notesMarkdown": "Done."})
        waiting = server.answer()["result"]["structuredContent"]
        send(3, "continue_workflow", ackToken=waiting["ackToken"])
        until((space / "started").exists)
        time.sleep(0.2)  # the call waits for the check
        server.end(end)
        answer = server.answer()
        (space / "go").touch()
        found = answer["result"]["structuredContent"]
        assert (answer["id"], found["waiting"], found["ackToken"]) == (3, waiting["waiting"], waiting["ackToken"])
        assert server.exit_code() == 0
