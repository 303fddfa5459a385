"""Every way in which an agent with the user's shell can answer for a person, against the table of the documentation."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_process import DETACH, ME, approve, terminal
from tests.support.server import ABC, until, workspace_in

from interlock.testing.harness import Harness, linear_workflow

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read as Linux shows them")

ROOT = Path(__file__).parents[2]
ASKING = linear_workflow(
    "test.ask", "a", {"type": "approve", "id": "ok", "title": "Agree", "question": "Deploy?", "assurance": "claimed"}
)
CHECKED = linear_workflow("test.check", "a", {"type": "check", "id": "c", "title": "Check", "run": "forge"})
NOTE: dict[str, Any] = {"kind": "team.note", "fields": {"text": {"value": "x"}}}
SENDING = linear_workflow("test.channel", {"id": "a", "title": "A", "prompt": "Do a.", "emit": [NOTE]})


def table() -> dict[str, str]:
    """Return the level of each way as the documentation has it."""
    text = (ROOT / "docs" / "trust.md").read_text()
    rows = re.findall(r"^\| .* \| `(\w+)` \|  *<!-- ([a-z ]+) -->$", text, re.MULTILINE)
    assert len(rows) == text.count("<!-- ") > 10
    return {way: level for level, way in rows}


QUICK = ["command", "terminal", "own session", "detached terminal", "own server", "same client"]
"""The ways that start few processes: the others are tried by `make soak`."""


def placed(tmp_path: Path) -> tuple[Path, Path]:
    data, space = tmp_path / "data", workspace_in(tmp_path, ask=ASKING, check=CHECKED, channel=SENDING, abc=ABC)
    data.mkdir()
    profile: dict[str, Any] = {"role": "You are a test.", "reliability": {"retry": {"max_retries": 0}}}
    (space / "agent.json").write_text(json.dumps(profile))
    forge = json.dumps([sys.executable, ME, "forge", str(data), str(space)])
    (data / "config.toml").write_text(
        f"[checks.forge]\ncommand = {forge}\nworkspaces = [{json.dumps(str(space))}]\n"
        f'[channels.desk]\nkind = "command"\naccepts = ["team.note"]\nsources = ["user", "bundled", "project"]\n'
        f"command = {forge}\n"
    )
    return data, space


def waiting_run(harness: Harness) -> tuple[str, str]:
    """Begin a run that waits for an answer; return its session and its label."""
    first = harness.start("test.ask", goal="Ship")
    harness.advance(first, "The plan is complete, in one sentence.")
    return harness.session_of(first), str(first["run"]["label"])


def answers(data: Path, session: str) -> list[tuple[str, str]]:
    files = sorted((data / "sessions" / session / "events").glob("*.jsonl"))
    events: list[Any] = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    found = [one["data"] for one in events if one["kind"] == "event_received"]
    return [(one["assurance"], one["via"]) for one in found]


@contextmanager
def agent(data: Path, space: Path) -> Generator["subprocess.Popen[str]"]:
    """Start the client of an agent."""
    command = [sys.executable, ME, "client", str(data), str(space)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=space) as process:
        yield process
        process.communicate()


def level_of(process: "subprocess.Popen[str]", data: Path, way: str, run: tuple[str, str]) -> str:
    """Let the agent answer in a way, and return the level that the log has."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{json.dumps([way, '/'.join(run)])}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n", way
    until(lambda: answers(data, run[0]) != [])
    ((level, _),) = answers(data, run[0])
    return level


@pytest.mark.inv("WORLD-9")
@pytest.mark.parametrize(
    ("ways", "tries"), [(QUICK, 1), pytest.param(sorted(table()), 20, marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_each_way_to_answer_for_a_person_reaches_the_documented_level(
    tmp_path: Path, ways: list[str], tries: int
) -> None:
    data, space = placed(tmp_path)
    harness = Harness.on_disk(data, ASKING)
    found: dict[str, set[str]] = {}
    with agent(data, space) as process:
        for way in ways:
            for _ in range(tries):
                found.setdefault(way, set()).add(level_of(process, data, way, waiting_run(harness)))
    assert found == {way: {table()[way]} for way in ways}


@pytest.mark.inv("WORLD-9")
def test_a_person_in_a_terminal_of_their_own_is_observed_while_an_agent_works(tmp_path: Path) -> None:
    data, space = placed(tmp_path)
    session, run = waiting_run(Harness.on_disk(data, ASKING))
    with agent(data, space) as process:
        assert process.stdout is not None
        assert level_of(process, data, "terminal", waiting_run(Harness.on_disk(data, ASKING))) == "claimed"
        terminal([sys.executable, "-c", DETACH, *approve(str(data), f"{session}/{run}")], {"PATH": os.environ["PATH"]})
    assert answers(data, session) == [("observed", "command")]
