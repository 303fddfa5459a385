"""Drives and servers whose traces, events and errors go nowhere: the same exit code and the same log."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.test_drive import ABC, PATIENCE_S, STEPS, agent, command, script, surroundings
from tests.support.server import workspace_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uses a shell")
SINKS = ["2>&-", "2>/dev/full", "2>&1 >out | true"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
START = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "start_workflow", "arguments": {"workflowId": "test.abc", "goal": "Show it"}},
}


def shell(root: Path, words: list[str], sink: str, **environment: str) -> int:
    """Run a command with its output in the file `out` and its errors in a sink, and return its exit code."""
    output = "" if ">out" in sink else ">out"
    line = f'{{ "$@" {sink.partition(" | ")[0]} {output}; echo $? >code; }} | true; wait; cat code'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *words],
        cwd=root,
        env=surroundings(root, INTERLOCK_TRACE="1", **environment),
        input=b"".join(json.dumps(one).encode() + b"\n" for one in (INITIALIZE, START)),
        stdout=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    return int(done.stdout)


def events(root: Path) -> list[str]:
    """Return the kinds of all events of the only session."""
    (session,) = (root / "data" / "sessions").iterdir()
    lines = [line for file in sorted((session / "events").iterdir()) for line in file.read_text().splitlines()]
    return [json.loads(line)["kind"] for line in lines]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace_in(tmp_path, abc=ABC)
    return tmp_path


@pytest.mark.inv("TEL-4")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("sink", SINKS)
def test_a_drive_whose_errors_and_events_go_nowhere_ends_as_any_other(root: Path, sink: str) -> None:
    stated = agent(root, observability={"activity_stream": {"enabled": True, "file": "/dev/full"}})
    words = command(root, "drive", "test.abc", "--agent", stated, "--model", script(root, STEPS))
    assert shell(root, words, sink) == 0
    assert (root / "out").read_text().splitlines()[0].endswith("of test.abc: complete")
    assert events(root).count("advance_recorded") == 3


@pytest.mark.inv("TEL-4")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("sink", SINKS)
def test_a_server_whose_trace_goes_nowhere_answers_and_ends_as_any_other(root: Path, sink: str) -> None:
    words = [*command(root, "serve"), "--workspace", str(root / "space"), "--workflows-dir", str(root / "none")]
    assert shell(root, words, sink) == 0
    answers = {one["id"]: one for one in map(json.loads, (root / "out").read_text().splitlines())}
    assert answers[2]["result"]["structuredContent"]["pending"]["stepId"] == "a"
    assert "run_started" in events(root)
