"""Drivers killed at random moments: no step is done twice, no call that must not be repeated is made twice."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_drive import agent, command, notes, run, script, surroundings
from tests.support.server import workspace_in

from interlock.testing.harness import linear_workflow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
STEPS = ("a", "b", "c")
RUN_S = 2.6
"""How long an undisturbed drive takes: kills fall into this time."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many kills, from which seed."""

    seed: int
    kills: int

    def __str__(self) -> str:
        return f"{self.kills} kills"


def effect_script(root: Path) -> dict[str, Any]:
    """Each step writes a file, which may be repeated, appends to a log, which must not, and reports."""
    append = [sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')"]

    def answers(step: str) -> list[dict[str, Any]]:
        write = {"name": "write_file", "arguments": {"path": f"{step}.txt", "content": step}}
        effect = {"name": "run_command", "arguments": {"argv": [*append, str(root / "effects.log"), step]}}
        return [{"toolCalls": [write]}, {"toolCalls": [effect]}, notes(step)]

    return {"steps": {step: answers(step) for step in STEPS}}


def effects(root: Path) -> Counter[str]:
    log = root / "effects.log"
    return Counter(log.read_text().split()) if log.exists() else Counter()


def drive(root: Path, arguments: list[str], kill_after_s: float | None) -> tuple[int, str]:
    """Run a driver; kill it after a time, not its server. Return the exit code and what it printed."""
    process = subprocess.Popen(
        command(root, "drive", *arguments, "--json", python=sys.executable),
        env=surroundings(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=kill_after_s)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
    return process.returncode, printed


def run_of(root: Path) -> str | None:
    listed = json.loads(run(root, "session", "list", "--json").stdout or "{}")
    runs = listed.get("runs", [])
    return runs[0]["run"] if runs else None


def play(root: Path, draw: random.Random, kills_left: int) -> tuple[int, set[str]]:
    """Drive one run to its end through kills. Return how many there were, and the steps whose effect was lost.

    The script does not ask for a lost effect again, as a model would.
    """
    tools = [{"name": name, "permission": "allow"} for name in ("write_file", "run_command")]
    options = ["--agent", agent(root, tools=tools), "--model", script(root, effect_script(root))]
    start, kills, settle, name = ["test.abc", *options], 0, list[str](), None
    lost = set[str]()
    while True:
        name = name or run_of(root)
        arguments = start if name is None else ["--resume", name, *options, *settle]
        settle = []
        is_killed = kills < kills_left
        code, printed = drive(root, arguments, draw.uniform(0.3, RUN_S) if is_killed else 60.0)
        if code == -signal.SIGKILL:
            kills += 1
            continue
        result = json.loads(printed)
        if result.get("status") == "complete":
            return kills, lost
        assert result.get("status") == "person_needed", result
        # The test is the person: it looks at what the call would have written.
        step = result["step"]
        happened = effects(root)[step] == 1
        lost |= set() if happened else {step}
        settle = ["--lost-calls", "happened" if happened else "not-happened"]


def kinds_of(session: Path) -> list[str]:
    """The kinds of all events of a session."""
    segments = (session / "events").glob("*.jsonl")
    return [json.loads(line)["kind"] for path in segments for line in path.read_text().splitlines()]


def check(root: Path, lost: set[str]) -> None:
    assert effects(root) == {step: 1 for step in STEPS if step not in lost}, "each effect took place once, or was lost"
    advances = [kinds_of(session).count("advance_recorded") for session in (root / "data" / "sessions").iterdir()]
    # A driver killed at its start may leave a second run, begun by its server after the list was read.
    assert max(advances) == sum(advances) == len(STEPS), "each step was done once, in one run"
    assert run(root, "session", "verify").returncode == 0


@pytest.mark.inv("DRIVE-13", "TURN-1")
@pytest.mark.parametrize(
    "plan", [Plan(seed=7, kills=5), pytest.param(Plan(seed=300, kills=300), marks=pytest.mark.soak)], ids=str
)
def test_no_kill_repeats_a_step_or_an_effect_and_every_run_ends(plan: Plan, tmp_path: Path) -> None:
    draw, kills, number = random.Random(plan.seed), 0, 0
    while kills < plan.kills:
        root = tmp_path / f"run{number}"
        root.mkdir()
        workspace_in(root, abc=linear_workflow("test.abc", *STEPS))
        more, lost = play(root, draw, min(5, plan.kills - kills))
        check(root, lost)
        kills += more
        number += 1
    sys.stdout.write(f"{kills} kills, {number} runs\n")
