"""Every error of a command with `--json` has the envelope that tools answer with."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main
from interlock.kernel.errors import CODES, ErrorCode
from interlock.store.local.locks import OsLocks
from interlock.testing.harness import Harness, linear_workflow

Printed = pytest.CaptureFixture[str]
FAULTY = '{"id": "t.x", "name": "X", "steps": []}'


def error_of(capsys: Printed, code: int, *words: str) -> dict[str, Any]:
    """Run a command with `--json` and return the error that it printed."""
    try:
        ended = main([*words, "--json"])
    except SystemExit as stop:
        ended = int(stop.code or 0)
    assert ended == code
    error = json.loads(capsys.readouterr().out)["error"]
    assert (
        {"code", "message", "retry", "suggestion"}
        <= error.keys()
        <= {"code", "message", "retry", "suggestion", "details"}
    )
    assert error["message"]
    assert error["suggestion"]
    assert error["retry"]["kind"] == CODES[ErrorCode(error["code"])].retry.value
    return error


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with an empty data directory below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


@pytest.mark.inv("ANS-17")
@pytest.mark.parametrize(
    ("command", "exit_code", "code"),
    [
        ("workflow inspect nope.nope", 1, "WORKFLOW_NOT_FOUND"),
        ("workflow plan nope/nope.json", 2, "WORKFLOW_NOT_FOUND"),
        ("workflow plan faulty.json", 1, "WORKFLOW_INVALID"),
        ("workflow validate nope.json", 2, "VALIDATION_ERROR"),
        ("session show", 1, "SESSION_NOT_FOUND"),
        ("session show sess_x", 1, "SESSION_NOT_FOUND"),
        ("session verify sess_zz", 1, "SESSION_NOT_FOUND"),
        ("session explain node_x", 1, "SESSION_NOT_FOUND"),
        ("session export sess_zz", 1, "SESSION_NOT_FOUND"),
        ("session keep sess_zz", 1, "SESSION_NOT_FOUND"),
        ("session import nonexistent", 1, "VALIDATION_ERROR"),
        ("session import faulty.json", 1, "BUNDLE_INVALID_FORMAT"),
        ("session list --since never", 2, "VALIDATION_ERROR"),
        ("session list --limit 0", 2, "VALIDATION_ERROR"),
        ("session list --limit none", 2, "VALIDATION_ERROR"),
        ("session list --nope", 2, "VALIDATION_ERROR"),
        ("session repair", 2, "VALIDATION_ERROR"),
        ("sessions list", 2, "VALIDATION_ERROR"),
        ("config check nope.toml", 2, "VALIDATION_ERROR"),
    ],
)
def test_an_error_has_the_one_envelope(place: Path, capsys: Printed, command: str, exit_code: int, code: str) -> None:
    (place / "faulty.json").write_text(FAULTY)
    assert error_of(capsys, exit_code, *command.split())["code"] == code


@pytest.mark.inv("ANS-17")
def test_faults_of_a_file_are_details_of_the_envelope(place: Path, capsys: Printed) -> None:
    (place / "faulty.json").write_text(FAULTY)
    details = error_of(capsys, 1, "workflow", "plan", "faulty.json")["details"]
    assert details["file"] == "faulty.json"
    assert [one["path"] for one in details["diagnostics"]] == ["steps"]


@pytest.mark.inv("ANS-17")
def test_a_busy_data_directory_says_when_to_retry(tmp_path: Path, capsys: Printed) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a"))
    session = str(harness.session_of(harness.start("test.abc")))
    with OsLocks(tmp_path).hold_upkeep():
        error = error_of(capsys, 1, "session", "keep", session, "--data-dir", str(tmp_path))
    assert (error["code"], error["retry"]["afterMs"]) == ("SESSION_LOCKED", 1000)


@pytest.mark.inv("ANS-17")
@pytest.mark.damages
def test_a_damaged_session_has_the_envelope_of_its_refusal(tmp_path: Path, capsys: Printed) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a"))
    session = str(harness.session_of(harness.start("test.abc")))
    (tmp_path / "sessions" / session / "manifest.jsonl").unlink()
    error = error_of(capsys, 1, "session", "show", session, "--data-dir", str(tmp_path))
    assert (error["code"], error["details"]["sessionId"]) == ("SESSION_NOT_HEALTHY", session)
