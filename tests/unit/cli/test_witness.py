"""`interlock witness`: the command runs unchanged, and its receipt is recorded."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.modes import events_of
from tests.support.proofs import begun, proving

from interlock.channels.kept_output import KeptOutput
from interlock.cli.main import main
from interlock.cli.outside.pass_through import start_command
from interlock.kernel.canonical import digest_of_bytes
from interlock.testing.harness import Harness, ToolResult

SCRIPT = "import os, sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr); sys.exit(3)"


def answering(*, answer: bool) -> Callable[[Path], bool]:
    """Return a function that says whether an agent's client started the process."""

    def says(_: Path) -> bool:
        return answer

    return says


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def started(root: Path) -> tuple[Harness, ToolResult, str]:
    harness = Harness.on_disk(root / "data", proving())
    start = begun(harness)
    return harness, start, str(start["run"]["label"])


def receipts(harness: Harness, start: ToolResult) -> list[Any]:
    return [one.to_json()["data"] for one in events_of(harness, start, "event_received")]


@pytest.mark.inv("PROOF-1")
def test_the_command_runs_unchanged_and_its_receipt_says_how_it_ended(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    harness, start, label = started(root)
    place = ["--data-dir", str(root / "data")]
    assert main([*place, "witness", label, "--", sys.executable, "-c", SCRIPT]) == 3
    shown = capfd.readouterr()
    assert shown.out == "out\n"
    assert shown.err.startswith("err\n")
    assert "recorded as claimed" in shown.err
    [receipt] = receipts(harness, start)
    fields = receipt["fields"]
    assert (receipt["event"], receipt["assurance"], receipt["via"]) == ("wr.receipt", "claimed", "command")
    assert (fields["exit"], fields["directory"]) == (3, str(root / "project"))
    assert fields["digest"] in {digest_of_bytes(b"out\nerr\n"), digest_of_bytes(b"err\nout\n")}
    assert set(fields["output"].split()) == {"out", "err"}
    assert (fields["tree"], fields["commit"]) == ("unknown", "unknown")
    assert fields["command"].startswith(sys.executable)


@pytest.mark.inv("PROOF-1")
def test_a_receipt_of_a_person_is_observed_and_one_below_a_client_is_claimed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, start, label = started(root)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.delenv("INTERLOCK_DESCENDANT", raising=False)
    for is_below in (False, True):
        monkeypatch.setattr("interlock.cli.outside.person.is_of_agent", answering(answer=is_below))
        assert main(["--data-dir", str(root / "data"), "witness", label, "--", "true"]) == 0
    assert [one["assurance"] for one in receipts(harness, start)] == ["observed", "claimed"]


@pytest.mark.inv("PROOF-1")
def test_the_exit_code_is_that_of_the_command_whatever_becomes_of_the_receipt(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    harness, start, label = started(root)
    place = ["--data-dir", str(root / "data")]
    assert main([*place, "witness", "nope", "--", "sh", "-c", "exit 7"]) == 7
    assert "No session or run" in capfd.readouterr().err
    assert main([*place, "witness", label, "--", "sh", "-c", "kill -TERM $$"]) == 128 + 15
    assert main([*place, "witness", label, "--", "no-such-command"]) == 127
    assert main([*place, "witness", label, "--", str(root)]) == 126
    assert main([*place, "witness", label, "--"]) == 2
    assert [one["fields"]["exit"] for one in receipts(harness, start)] == [-15]


@pytest.mark.inv("PROOF-1")
def test_in_a_terminal_the_command_has_one_of_the_same_size_and_its_keys(root: Path) -> None:
    harness, start, label = started(root)
    script = "stty size </dev/tty; test -t 1 && test -t 2 && echo both; read line; echo got $line; exit 4"
    words = [sys.executable, "-m", "interlock", "--data-dir", str(root / "data"), "witness", label, "--"]
    near, far = pty.openpty()
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'stty rows 31 cols 97; exec "$@"', "sh", *words, "sh", "-c", script],
        stdin=far,
        stdout=far,
        stderr=far,
        start_new_session=True,
        preexec_fn=lambda: os.login_tty(far),  # noqa: PLW1509 — one thread
    )
    os.close(far)
    os.write(near, b"hello\n")
    shown = b""
    try:
        while data := os.read(near, 4096):
            shown += data
    except OSError:
        pass
    assert process.wait() == 4
    lines = shown.decode().splitlines()
    assert {"31 97", "both", "got hello"} <= set(lines), lines
    [receipt] = receipts(harness, start)
    assert receipt["fields"]["output"].splitlines() == ["31 97", "both", "got hello"]
    os.close(near)


@pytest.mark.inv("PROOF-1")
def test_the_time_of_a_command_does_not_contain_what_this_process_does_after_its_end() -> None:
    command = start_command(["true"])
    command.start()
    time.sleep(1)
    assert command.wait() == 0
    assert command.seconds < 0.5


@pytest.mark.inv("PROOF-1", "CHECK-1")
def test_what_is_kept_of_an_output_is_its_end_without_control_characters_and_fits_in_an_event() -> None:
    kept = KeptOutput(2_000)
    kept.add(b"\x1b[31mred\x1b[0m\r\n")
    assert kept.text() == "red"
    for data in (b'"' * 5_000, b"\x01\xff" * 5_000, b"\n\\" * 5_000):
        kept.add(data)
        assert len(json.dumps(kept.text(), ensure_ascii=False).encode()) <= 3_000
    assert KeptOutput(10).digest() == digest_of_bytes(b"")


@pytest.mark.inv("PROOF-7")
def test_reports_and_their_json_say_what_a_run_rests_on(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness = Harness.on_disk(root / "data", proving())
    start = begun(harness, command=None)
    harness.advance(harness.advance(start, "The plan."), "Looks good.")
    words = ["--data-dir", str(root / "data"), "session"]
    assert main([*words, "show", str(start["run"]["label"]), "--json"]) == 0
    [run] = json.loads(capsys.readouterr().out)["runs"]
    assert run["restsOn"] == {"claimed": 2, "observed": 0, "signed": 0, "executed": 0, "notProven": ["fix"]}
    for command in ("show", "report"):
        assert main([*words, command, str(start["run"]["label"])]) == 0
        assert (
            "What the steps rest on: 2 claimed. Done without the proof that the workflow can demand:"
            in capsys.readouterr().out
        )
