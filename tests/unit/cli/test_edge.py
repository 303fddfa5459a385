"""How a command ends that the operating system or Ctrl-C stopped: a message, an exit code, and no traceback."""

import errno
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from interlock.cli.frame.edge import ending_as_interrupted, run_at_edge
from interlock.cli.frame.running import printing
from interlock.cli.main import main
from interlock.testing.harness import Harness, linear_workflow

Printed = pytest.CaptureFixture[str]
TOO_LONG = "n" * 300
"""No file system takes this name, not even from root."""


@pytest.mark.parametrize(
    "command",
    [
        "config check",
        "config show",
        "session list",
        "session export 0001",
        "session verify",
        "session keep sess_aaaaaaaaaaaaaaaaaaaaaaaaaa",
        "keys status",
        "keys rotate",
        "gc",
        "doctor",
    ],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["plain", "json"])
def test_a_data_directory_that_the_system_refuses_ends_a_command_with_a_message(
    tmp_path: Path, capsys: Printed, command: str, *, as_json: bool
) -> None:
    data_dir = tmp_path / TOO_LONG
    code = main([*command.split(), "--data-dir", str(data_dir), *(["--json"] if as_json else [])])
    result = capsys.readouterr()
    assert code == 1
    assert "Traceback" not in result.err
    if as_json:
        assert json.loads(result.out)


def test_a_failed_file_operation_names_the_last_part_of_the_path_alone(tmp_path: Path, capsys: Printed) -> None:
    assert main(["config", "check", str(tmp_path / TOO_LONG)]) == 1
    result = capsys.readouterr()
    assert result.out == ""
    assert result.err.startswith(f"interlock config: {TOO_LONG}: {os.strerror(errno.ENAMETOOLONG)}.\n")
    assert str(tmp_path) not in result.err


def test_a_failed_file_operation_is_an_error_object_with_json(tmp_path: Path, capsys: Printed) -> None:
    assert main(["config", "check", str(tmp_path / TOO_LONG), "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert sorted(error) == ["code", "message", "retry", "suggestion"]
    assert (error["code"], error["retry"]) == ("STORE_FAILED", {"kind": "not_retryable"})
    assert error["message"] == f"{TOO_LONG}: {os.strerror(errno.ENAMETOOLONG)}."


def test_a_name_that_steers_a_terminal_is_written_out_in_the_message(tmp_path: Path, capsys: Printed) -> None:
    missing = tmp_path / "a\x1b[2J\nb"
    assert run_at_edge(lambda: len(missing.read_bytes()), Namespace(command="x")) == 1
    assert capsys.readouterr().err.startswith("interlock x: a\\x1b[2J\\nb: No such file or directory.\n")


def test_an_operation_without_a_path_is_reported_too(capsys: Printed) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert run_at_edge(lambda: os.fsync(writing) or 0, Namespace(command="keys")) == 1
    assert capsys.readouterr().err.startswith("interlock keys: A file operation: Bad file descriptor.\n")


def test_ctrl_c_ends_a_command_with_130_and_without_a_word(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting(io.RawIOBase):
        """A standard input at which the user presses Ctrl-C."""

        def readable(self) -> bool:
            return True

        def readinto(self, _: object) -> int:
            signal.raise_signal(signal.SIGINT)
            return 0

    # A shell that starts the tests in the background ignores Ctrl-C for them.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Waiting())))
    try:
        code = main(["session", "import", "-", "--data-dir", str(tmp_path / "data")])
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert code == 130
    assert capsys.readouterr() == ("", "")


IMPORTING = """
import signal, sys
from importlib.abc import MetaPathFinder

class Stopping(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "interlock.cli.session.verify":
            {stop}

sys.meta_path.insert(0, Stopping())
from interlock.cli.main import main
from interlock.testing.harness import Harness, linear_workflow
sys.exit(main(["session", "verify"]))
"""


@pytest.mark.parametrize(
    ("stop", "code", "message"),
    [
        ("signal.signal(signal.SIGINT, signal.default_int_handler); signal.raise_signal(signal.SIGINT)", 130, ""),
        ("raise PermissionError(13, 'Permission denied', name)", 1, "interlock command line: "),
    ],
    ids=["Ctrl-C", "a file that cannot be read"],
)
def test_what_stops_the_import_of_a_command_ends_it_without_a_traceback(stop: str, code: int, message: str) -> None:
    """A command is imported while its command line is parsed, before anything else of it runs."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING.format(stop=stop)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(message)
    assert bool(done.stderr) == bool(message)


WITHOUT_STDIN = [
    ("session delete {run}", 2, "Add --yes"),
    ("session redact {run} --value -", 1, "interlock session: "),
    ("session import -", 1, "BUNDLE_INVALID_FORMAT"),
    ("event send ci --run {run} --id 1 --signed -", 2, "is not JSON"),
    ("drive --ask --agent {data}/a.yaml wr.quick_task", 2, "--ask needs a terminal"),
    ("witness {run} -- sh -c 'exit 4'", 4, "the receipt is recorded as claimed"),
]


@pytest.mark.inv("PROOF-1")
@pytest.mark.parametrize(("line", "code", "message"), WITHOUT_STDIN, ids=[line for line, _, _ in WITHOUT_STDIN])
def test_a_closed_standard_input_is_an_empty_one(tmp_path: Path, line: str, code: int, message: str) -> None:
    start = Harness.on_disk(tmp_path, linear_workflow("team.ship", "a")).start("team.ship")
    words = shlex.split(line.format(run=start["run"]["label"], data=tmp_path))
    command = [sys.executable, "-m", "interlock", "--data-dir", str(tmp_path), *words]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert message in done.stderr


def test_a_full_disk_below_another_file_is_not_taken_for_the_output() -> None:
    """Both failures have one number, and neither names a path: only the stream tells them apart."""

    def full() -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        printing(full)


ENDING = [signal.SIGTERM, signal.SIGHUP] if sys.platform != "win32" else [signal.SIGTERM]


def signalled(number: signal.Signals) -> int:
    """Run a command that gets a signal; return its exit code."""

    def command() -> int:
        with ending_as_interrupted():
            signal.raise_signal(number)
        return 0

    return run_at_edge(command, Namespace())


@pytest.mark.parametrize("number", ENDING, ids=str)
def test_a_signal_that_would_end_the_process_ends_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    assert signalled(number) == 130
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("number", ENDING, ids=str)
def test_a_signal_ends_a_command_that_ignores_ctrl_c_too(number: signal.Signals) -> None:
    """A shell script lets the commands ignore it that it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert signalled(number) == 130
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", ENDING, ids=str)
def test_a_signal_that_is_ignored_stays_so(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with ending_as_interrupted():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
