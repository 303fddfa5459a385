"""The demo is run as a user runs it: it tells the truth, leaves nothing behind, and says so when it fails."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.forkserver import forking_python

from interlock.kernel.ids import SessionId
from interlock.store.local.store import LocalStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

DEMO = ["-m", "interlock", "demo"]
BROKEN_CODE = (
    "from interlock.cli.top import demo; demo.WORKFLOW = 'wr.none'; from interlock.cli.main import main;"
    " raise SystemExit(main(['demo']))"
)
BROKEN = ["-c", BROKEN_CODE]
ACTS = (
    "1  An agent starts a workflow",
    "2  The agent reports steps",
    "3  kill -9, in the middle of a call",
    "4  A new server continues",
    "5  A new chat reads the state",
    "6  Weak evidence is refused",
    "7  The agent completes the run",
    "8  The agent redoes an old step",
    "9  The log, verified from disk",
    "10  The run, drawn from the log",
)
GRAPH = """\
├── ● Fix the scope
│   └── ⑂ redone on a branch
│       ├── ● Understand the intent
│       └── ● Lens 1: defects  ◀ preferred tip
├── ● Understand the intent
├── ● Lens 1: defects
├── ● Lens 2: tests and operation
├── ✗ Lens 2: tests and operation (refused)
├── ● Lens 3: abuse
├── ● Try to refute the findings
├── ● Give the verdict
└── ● Complete
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """Keep what the demo writes in one place, and mislead it about the user's own files."""
    user = {"INTERLOCK_DATA_DIR": str(tmp_path / "user"), "INTERLOCK_WORKFLOWS_DIR": str(tmp_path / "user")}
    (tmp_path / "temp").mkdir()
    return os.environ | user | {"TMPDIR": str(tmp_path / "temp"), "COLUMNS": "200"} | more


def play(arguments: list[str], env: dict[str, str], python: str = sys.executable) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([python, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)


def printed_commands(out: str) -> list[list[str]]:
    """Return the commands that a demo printed, each on a line of its own."""
    return [shlex.split(line) for line in re.findall(r"^ {6}(\S*interlock .*)$", out, re.MULTILINE)]


def run_printed(words: list[str], env: dict[str, str]) -> str:
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True).stdout


def assert_nothing_is_left(tmp_path: Path, out: str) -> None:
    assert list((tmp_path / "temp").iterdir()) == []
    assert not (tmp_path / "user").exists()
    for process_id in re.findall(r"[Pp]rocess (\d+)", out):
        with pytest.raises(ProcessLookupError):
            os.kill(int(process_id), 0)


@pytest.mark.inv("CRASH-8", "ANS-3")
def test_the_demo_checks_every_act_draws_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    surroundings = environment(tmp_path)
    done = play(DEMO, surroundings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert [done.stdout.count(f"\n{act}\n") for act in ACTS] == [1] * len(ACTS)
    assert GRAPH in done.stdout
    claims = done.stdout.count("  ✓ ")
    assert claims >= 20
    assert f"{claims} claims checked, all of them hold" in done.stdout
    register, keep = printed_commands(done.stdout)
    assert keep[1:] == ["demo", "--keep"]
    assert "claude mcp add" in run_printed(register, surroundings)
    assert len(set(re.findall(r"[Pp]rocess (\d+)", done.stdout))) == 2
    assert "\x1b" not in done.stdout
    assert not re.search(r"(ack|st)_\w{8}", done.stdout), "a token is printed as its kind and its end"
    assert_nothing_is_left(tmp_path, done.stdout)


def test_the_data_directory_can_be_kept_and_is_whole_also_where_the_signs_cannot_be_written(tmp_path: Path) -> None:
    surroundings = environment(tmp_path, PYTHONIOENCODING="ascii", COLUMNS="60")
    done = play([*DEMO, "--keep"], surroundings)
    assert done.returncode == 0, done.stdout + done.stderr
    read = printed_commands(done.stdout)[-1]
    assert "Review the change to the login form" in run_printed(read, surroundings)
    kept = Path(read[read.index("--data-dir") + 1])
    [directory] = (kept / "sessions").iterdir()
    assert LocalStore(kept).load(SessionId(directory.name)) is not None


def test_what_does_not_hold_is_named_and_fails_the_demo(tmp_path: Path) -> None:
    done = play(BROKEN, environment(tmp_path), forking_python())
    assert done.returncode == 1
    assert "✗ Check failed: start_workflow returned an error: **WORKFLOW_NOT_FOUND**" in done.stdout
    assert "Traceback" not in done.stderr
    assert_nothing_is_left(tmp_path, done.stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_stopped_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    env = environment(tmp_path, PYTHONUNBUFFERED="1")
    # A job in the background of a shell ignores SIGINT, and what it starts inherits that.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    play_it = heeding + "import sys; from interlock.cli.main import main; sys.exit(main(['demo']))"
    with subprocess.Popen([sys.executable, "-c", play_it], env=env, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        printed = ""
        while "4  A new server" not in printed:
            line = demo.stdout.readline()
            assert line, printed
            printed += line
        demo.send_signal(number)
        printed += demo.stdout.read()
    assert demo.returncode == 130
    assert "Interrupted." in printed
    assert "KeyboardInterrupt" not in printed
    assert_nothing_is_left(tmp_path, printed)


def test_a_demo_that_nobody_reads_to_the_end_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [forking_python(), *DEMO], env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.readline()
        demo.stdout.close()
        assert demo.stderr.read() == ""
    assert demo.returncode == 1
    assert_nothing_is_left(tmp_path, "")
