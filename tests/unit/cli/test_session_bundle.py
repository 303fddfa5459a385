"""`interlock session export | import | repair`: files, words, exit codes, and what is never overwritten."""

import io
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.bundles import DOCUMENT, a_session
from tests.support.modes import files_below

from interlock.cli.main import main
from interlock.cli.session import import_ as importing
from interlock.cli.session.import_ import restoring
from interlock.kernel.errors import ErrorCode
from interlock.service.transfer.import_ import import_session
from interlock.store.local.locks import OsLocks
from interlock.store.opening import open_memory_store, open_store
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.testing.harness import Harness

Printed = pytest.CaptureFixture[str]


class Place:
    """Two data directories and a current directory; the first holds a session."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.here, self.there = root / "here", root / "there"
        self.session = a_session(Harness.on_disk(self.here, DOCUMENT))
        self.bundle = root / f"{self.session}.interlock.json"

    def run(self, *arguments: str, there: bool = False) -> int:
        return main(["session", *arguments, "--data-dir", str(self.there if there else self.here)])

    def damage(self, at: int = 4) -> None:
        path = sorted((self.here / "sessions" / self.session / "events").iterdir())[at]
        path.write_bytes(path.read_bytes() + b"x")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


def printed(capsys: Printed) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_session_goes_from_one_data_directory_to_another_and_on(place: Place, capsys: Printed) -> None:
    assert place.run("export", place.session) == 0
    result = capsys.readouterr().out
    assert f"Wrote {place.bundle.name}" in result
    assert f"interlock session import {place.bundle.name}" in result
    assert place.run("import", place.bundle.name, there=True) == 0
    result = capsys.readouterr().out
    assert f"as {place.session}." in result
    assert "(test.flow), in progress" in result
    calls = [line for line in result.splitlines() if line.startswith("  continue_workflow ")]
    assert len(calls) == 3
    there = Harness.on_disk(place.there, DOCUMENT)
    looked = there.call("continue_workflow", json.loads(calls[0].removeprefix("  continue_workflow ")))
    assert not there.follow(looked).is_error
    assert place.run("verify", there=True) == 0


def test_a_second_import_makes_a_second_session_and_says_so(place: Place, capsys: Printed) -> None:
    place.run("export", place.session)
    assert place.run("import", str(place.bundle)) == 0
    assert f"The session id in the bundle, {place.session}, exists here already" in capsys.readouterr().out
    assert place.run("import", str(place.bundle), "--json") == 0
    result = printed(capsys)
    assert result["bundledSessionId"] == place.session != result["sessionId"]
    assert (result["groups"], len(result["runs"])) == (8, 3)
    assert result["runs"][0]["nextCall"]["tool"] == "continue_workflow"
    assert len(open_store(place.here).sessions()) == 3


def test_a_file_that_stands_there_is_not_overwritten_unless_forced(place: Place, capsys: Printed) -> None:
    place.bundle.write_text("mine")
    assert place.run("export", place.session) == 1
    assert "Nothing was overwritten" in capsys.readouterr().err
    assert place.bundle.read_text() == "mine"
    assert place.run("export", place.session, "--force") == 0
    assert json.loads(place.bundle.read_bytes())["session"]["sessionId"] == place.session
    assert stat.S_IMODE(place.bundle.stat().st_mode) == 0o600
    assert place.run("export", place.session, "--out", "other.json", "--json") == 0
    capsys.readouterr()
    assert {path.name for path in place.root.iterdir()} == {"here", place.bundle.name, "other.json"}


@pytest.mark.parametrize("out", ["nowhere/x.json", "here"])
def test_a_file_that_cannot_be_written_leaves_nothing_beside_it(place: Place, capsys: Printed, out: str) -> None:
    before = files_below(place.root)
    assert place.run("export", place.session, "--out", out, "--force") == 1
    assert "cannot be written" in capsys.readouterr().err
    assert files_below(place.root) == before


def test_standard_output_carries_the_bundle_and_nothing_else(
    place: Place, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.run("export", place.session, "--out", "-") == 0
    data = capfdbinary.readouterr().out
    assert json.loads(data)["bundleSchemaVersion"] == 1
    assert place.run("export", place.session, "--out", "-", "--json") == 2
    capfdbinary.readouterr()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert place.run("import", "-", there=True) == 0
    assert open_store(place.there).sessions() == (place.session,)


@pytest.mark.inv("BND-9")
@pytest.mark.damages
def test_a_damaged_session_is_exported_under_a_banner_only(place: Place, capsys: Printed) -> None:
    place.damage()
    assert place.run("export", place.session) == 1
    result = capsys.readouterr().err
    assert "SESSION_NOT_HEALTHY" in result
    assert "--salvage" in result
    assert not place.bundle.exists()
    assert place.run("export", place.session, "--salvage", "--json") == 0
    assert printed(capsys)["salvage"]["code"] == "SALVAGED_PREFIX"
    assert place.run("export", place.session, "--salvage", "--force") == 0
    assert "SALVAGED_PREFIX: this is not the complete session" in capsys.readouterr().out
    assert place.run("import", str(place.bundle), "--json", there=True) == 0
    assert printed(capsys)["salvage"]["groupsLeftOut"] == 4
    assert place.run("import", str(place.bundle), there=True) == 0
    result = capsys.readouterr().out
    assert "SALVAGED_PREFIX: the bundle contains only the intact beginning" in result
    assert "what followed it is unknown" in result


@pytest.mark.inv("BND-1")
def test_a_bundle_that_was_changed_is_refused_with_its_code_in_both_forms(place: Place, capsys: Printed) -> None:
    place.run("export", place.session)
    place.bundle.write_bytes(place.bundle.read_bytes().replace(b"Did a.", b"Did b."))
    capsys.readouterr()
    assert place.run("import", str(place.bundle), there=True) == 1
    result = capsys.readouterr().err
    assert "BUNDLE_INTEGRITY_FAILED: The bundle is refused: session/events: differs from its entry." in result
    assert "Nothing was stored." in result
    assert place.run("import", str(place.bundle), "--json", there=True) == 1
    error = printed(capsys)["error"]
    assert (error["code"], error["details"]["where"]) == ("BUNDLE_INTEGRITY_FAILED", "session/events")
    assert "fix" not in error
    assert not place.there.exists()


def test_a_file_that_is_not_there_or_too_large_is_reported_in_words(
    place: Place, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.run("import", "nope.json") == 1
    assert "nope.json cannot be read: No such file" in capsys.readouterr().err
    assert place.run("import", "here") == 1
    capsys.readouterr()
    place.run("export", place.session)
    monkeypatch.setattr(importing, "BUNDLE_BYTES_MAX", 100)
    assert place.run("import", str(place.bundle)) == 1
    assert "BUNDLE_INVALID_FORMAT" in capsys.readouterr().err


@pytest.mark.inv("SAL-3")
@pytest.mark.damages
def test_repair_says_what_it_copied_what_it_left_out_and_how_to_go_on(place: Place, capsys: Printed) -> None:
    assert place.run("repair", place.session) == 1
    assert "is not damaged" in capsys.readouterr().err
    place.damage()
    before = files_below(place.here / "sessions" / place.session)
    assert place.run("repair", place.session) == 0
    result = capsys.readouterr().out
    assert "SALVAGED_PREFIX: copied" in result
    assert "(other bytes than the manifest attests); appends: 4, events:" in result
    assert f"{place.session} is unchanged." in result
    assert "  continue_workflow {" in result
    assert place.run("repair", place.session, "--json") == 0
    answer = printed(capsys)
    assert (answer["repairedSessionId"], answer["groups"]) == (place.session, 4)
    assert answer["salvage"]["groupsLeftOut"] == 4
    assert files_below(place.here / "sessions" / place.session) == before
    assert place.run("verify", answer["sessionId"]) == 0
    assert place.run("verify", place.session) == 1
    assert "interlock session repair" in capsys.readouterr().out


@pytest.mark.inv("SAL-3")
@pytest.mark.damages
def test_repair_of_a_log_that_verifies_says_that_the_session_itself_goes_on(place: Place, capsys: Printed) -> None:
    for path in (place.here / "artifacts").iterdir():
        path.unlink()
    assert place.run("repair", place.session) == 0
    result = capsys.readouterr().out
    assert "PARTIAL_DATA: copied" in result
    assert "Its log is intact" in result


def test_sessions_that_are_not_there_are_named(place: Place, capsys: Printed) -> None:
    for action in ("export", "repair"):
        assert place.run(action, "sess_nope") == 1
        assert "SESSION_NOT_FOUND" in capsys.readouterr().err


@pytest.mark.produces("error:SESSION_LOCKED")
@pytest.mark.damages
def test_a_damaged_session_that_another_process_holds_is_locked_and_not_called_damaged(
    place: Place, capsys: Printed
) -> None:
    place.damage()
    with OsLocks(place.here).hold(place.session):
        assert place.run("repair", place.session, "--json") == 1
    refusal = json.loads(capsys.readouterr().out)["error"]
    assert refusal["code"] == ErrorCode.SESSION_LOCKED
    assert refusal["retry"] == {"kind": "retryable_after_ms", "afterMs": 1_000}
    assert place.run("repair", place.session) == 0


@pytest.mark.inv("EVD-13")
def test_a_session_is_copied_without_a_value_that_is_read_from_a_pipe(
    place: Place, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_below(place.here / "sessions" / place.session)
    monkeypatch.setattr(sys, "stdin", io.StringIO("ünicode\n"))
    assert place.run("redact", place.session, "--value", "-", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["redactedSessionId"], found["texts"]) == (place.session, 1)
    assert files_below(place.here / "sessions" / place.session) == before
    events = (place.here / "sessions" / found["sessionId"] / "events").iterdir()
    assert not [path for path in events if "ünicode" in path.read_text(encoding="utf-8")]
    assert place.run("verify", found["sessionId"]) == 0
    said = capsys.readouterr().out
    assert f"{found['sessionId']}: sound, as far as it was compared\n  note: This is a redacted copy of" in said
    assert place.run("report", found["sessionId"]) == 0
    assert "again, except those that read what was redacted" in capsys.readouterr().out
    place.run("timeline", found["sessionId"])
    assert ": recorded that this session is a redacted copy\n" in capsys.readouterr().out
    assert place.run("redact", found["sessionId"], "--value", "ünicode") == 1
    assert "does not contain the value" in capsys.readouterr().err


@pytest.mark.inv("HIS-3")
def test_a_copy_shares_the_label_of_its_run_and_the_label_alone_is_refused_with_both(
    place: Place, capsys: Printed
) -> None:
    assert place.run("export", place.session) == 0
    assert place.run("import", str(place.bundle), "--json") == 0
    capsys.readouterr()
    assert place.run("list", "--json") == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    label = runs[0]["label"]
    sessions = {run["session"] for run in runs if run["label"] == label}
    assert len(sessions) == 2
    assert place.run("show", label) == 1
    refused = capsys.readouterr().err
    assert all(session in refused for session in sessions)
    for session in sessions:
        assert place.run("show", session) == 0


class Unreadable(io.BytesIO):
    """An input for which there is not enough memory."""

    def read(self, _size: int | None = -1, /) -> bytes:
        raise MemoryError


class Unparsable(bytes):
    """A bundle for whose content there is not enough memory."""

    __slots__ = ()

    def startswith(self, *_: object) -> bool:
        raise MemoryError


@pytest.mark.inv("FAIL-8")
def test_a_bundle_that_does_not_fit_into_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Unreadable()))
    assert main(["--data-dir", str(tmp_path / "data"), "session", "import", "-"]) == 1
    assert "there is not enough memory. Nothing was stored." in capsys.readouterr().err
    with pytest.raises(StoreFailureError) as failed:
        import_session(restoring(open_memory_store()), Unparsable(b"{}"))
    assert failed.value.kind is FailureKind.NO_MEMORY
