"""Drives that a signal ends: with their commands, and with the exit code of Ctrl-C."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e.test_drive import ABC, INTERRUPTIBLE, PATIENCE_S, STEPS, Terminal, agent, command, script, surroundings
from tests.support.server import workspace_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace_in(tmp_path, abc=ABC)
    return tmp_path


ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
UNINTERRUPTIBLE = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""Runs a command that ignores SIGINT, as a shell script does that runs it in the background."""


@pytest.mark.parametrize(
    ("around", "number"),
    [*((INTERRUPTIBLE, getattr(signal, name)) for name in ENDING), (UNINTERRUPTIBLE, signal.SIGTERM)],
)
def test_a_drive_that_is_ended_ends_the_commands_that_it_started(
    root: Path, around: tuple[str, ...], number: signal.Signals
) -> None:
    beats = root / "beats"
    argv = ["sh", "-c", f"(while sleep 0.05; do echo beat >> {beats}; done) & wait"]
    call = {"toolCalls": [{"name": "run_command", "arguments": {"argv": argv}}]}
    stated = agent(root, tools=[{"name": "run_command", "permission": "allow"}])
    model = script(root, {"steps": {**STEPS["steps"], "a": [call]}})
    process = subprocess.Popen(
        [*around, *command(root, "drive", "test.abc", "--agent", stated, "--model", model)],
        env=surroundings(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not beats.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in said
    size = beats.stat().st_size
    time.sleep(0.5)
    assert beats.stat().st_size == size


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_drive_that_asks_in_a_terminal_ends_although_nothing_is_typed(root: Path, number: signal.Signals) -> None:
    stated = agent(root, turn_chain={"confirm_between_turns": True}, autonomy="guided")
    terminal = Terminal(root, "test.abc", "--agent", stated, "--model", script(root, STEPS))
    terminal.read_until("Continue with turn 2? [y/N] ")
    time.sleep(0.5)  # until it waits for the answer
    terminal.process.send_signal(number)
    assert terminal.end() == 130, terminal.shown
    assert "Traceback" not in terminal.shown
