"""Steps that wait for the result of a check which Interlock runs itself."""

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.approvals import ASK
from tests.support.bundles import exported, imported, resealed, value_of
from tests.support.checks import BRANCHING, CHECK, GREEN, NEEDED, checking, held, lose, run_now, shell
from tests.support.ends import ended_by_command
from tests.support.flow import document, step
from tests.support.inbox import inbox_in
from tests.support.modes import NEVER_STOPS, events_of, files_below, gaps_in, session_of, status_of
from tests.support.server import until
from tests.support.verify import unsound

from interlock.cli.main import main
from interlock.config.checks import PROJECT_CHECKS, LocalChecks, project_checks
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId
from interlock.record.events import parse_event
from interlock.record.manifest import attest_history
from interlock.service.trust.run_check import CheckReport
from interlock.store.opening import open_check_files
from interlock.testing.harness import Harness, ToolResult

CHECKS_FILE = '[checks.tests]\ncommand = ["/bin/sh", "-c", "test -e passes"]\n'


def at_the_check(harness: Harness, **start: object) -> tuple[ToolResult, ToolResult]:
    """Start the workflow and report its first step; return both answers."""
    first = harness.start("test.flow", goal="Ship", **start)
    return first, harness.advance(first)


def module_that_marks(directory: Path, mark: Path) -> None:
    """Write a file that would be imported in place of a module of the standard library."""
    directory.mkdir(exist_ok=True)
    (directory / "shlex.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(3)\n")


@pytest.mark.inv("CHECK-9")
def test_the_process_of_a_check_imports_nothing_from_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, data, mark = checking(tmp_path, NEEDED), tmp_path / "data", tmp_path / "imported"
    (tmp_path / "project" / "passes").touch()
    workspaces = json.dumps([str(tmp_path / "project")])
    (data / "config.toml").write_text(f"{CHECKS_FILE}workspaces = {workspaces}\n")
    for directory in (data, data / "modules"):
        module_that_marks(directory, mark)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["modules", "", *sys.path]))
    local = held(harness).local
    first, _ = at_the_check(replace(harness, ports=replace(harness.ports, checks=local)))
    until(lambda: bool(results(harness, first)) or mark.exists())
    assert not mark.exists()
    assert [one["ended"] for one in results(harness, first)] == ["exit"]


def script(path: Path, interpreter: str) -> None:
    path.write_text(f"#!{interpreter}\n")
    path.chmod(0o700)


def results(harness: Harness, start: ToolResult) -> list[dict[str, Any]]:
    return [cast("Any", one).data.fields for one in events_of(harness, start, "event_received")]


@pytest.mark.inv("CHECK-1", "CHECK-4")
def test_a_check_that_passes_lets_the_run_continue_by_itself(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    (tmp_path / "project" / "passes").touch()
    first, waiting = at_the_check(harness)
    assert waiting["waiting"].items() >= {"for": "check", "event": "tests"}.items()
    assert [one.name for one in held(harness).begun] == ["tests"]
    report = run_now(harness, first)
    assert isinstance(report, CheckReport)
    assert report.is_advanced
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"
    [event] = events_of(harness, first, "event_received")
    data = cast("Any", event).data
    assert (data.assurance, data.via, data.fields["passed"], data.fields["exit"]) == ("executed", "check", True, 0)
    assert unsound(harness.store) == []


@pytest.mark.inv("CHECK-4", "ADV-5")
def test_no_answer_says_of_a_check_that_passed_that_it_did_not(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    (tmp_path / "project" / "passes").touch()
    first, waiting = at_the_check(harness)
    run_now(harness, first)
    assert harness.advance(first).text == waiting.text
    assert "waiting" not in harness.rehydrate(waiting).structure
    other = harness.advance(first, "Other notes than those that are recorded.")
    assert "REPLAY_PAYLOAD_IGNORED" in other.warnings
    assert "waiting" not in other.structure


@pytest.mark.inv("CHECK-4")
def test_a_check_that_fails_holds_the_run_until_a_later_run_of_it_passes(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    first, waiting = at_the_check(harness)
    report = run_now(harness, first)
    assert isinstance(report, CheckReport)
    assert not report.is_advanced
    again = harness.advance(waiting, None)
    assert again["waiting"]["for"] == "check"
    assert "Run 1 of the check `tests` did not pass (exit code 1)" in again.text
    assert held(harness).begun[-1].results == 1
    (tmp_path / "project" / "passes").touch()
    run_now(harness, first)
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"
    assert [(one["run"], one["passed"]) for one in results(harness, first)] == [(1, False), (2, True)]
    assert unsound(harness.store) == []


@pytest.mark.inv("CHECK-4")
def test_a_step_that_reads_the_result_goes_on_with_any_result(tmp_path: Path) -> None:
    harness = checking(tmp_path, BRANCHING)
    first, waiting = at_the_check(harness)
    run_now(harness, first)
    third = harness.advance(waiting, None)
    assert third["pending"]["stepId"] == "b"
    assert session_of(harness, first).context(harness.reference_of(third).node)["green"] is False
    assert gaps_in(harness, first) == []


@pytest.mark.inv("CHECK-4")
def test_a_run_that_never_stops_waits_for_the_result_and_keeps_a_failed_one_as_a_critical_gap(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    first, waiting = at_the_check(harness, preferences=NEVER_STOPS)
    assert harness.advance(waiting, None)["waiting"]["for"] == "check"
    report = run_now(harness, first)
    assert isinstance(report, CheckReport)
    assert report.is_advanced
    third = harness.advance(waiting, None)
    harness.advance(third, "Finished the rest of the work.")
    [gap] = gaps_in(harness, first)
    assert (gap.severity, gap.reason.detail) == ("critical", "invalid_required_output")
    assert status_of(harness, first) == "complete_with_gaps"
    assert unsound(harness.store) == []


@pytest.mark.inv("CHECK-3")
def test_a_result_is_not_made_twice_for_one_call(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    first, _ = at_the_check(harness)
    assert isinstance(run_now(harness, first, after=0), CheckReport)
    assert run_now(harness, first, after=0) is None
    with held(harness).hold(held(harness).begun[0].node) as lock:
        assert lock is not None
        assert run_now(harness, first) is None
    assert len(results(harness, first)) == 1


@pytest.mark.inv("CHECK-7")
def test_a_run_of_a_check_that_was_lost_counts_as_failed_and_every_view_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = checking(tmp_path, NEEDED)
    first, waiting = at_the_check(harness)
    left = lose(harness)
    again = harness.advance(waiting, None)
    said = "did not pass (its process ended without a result)"
    assert f"Run 1 of the check `tests` {said}." in again.text
    assert held(harness).begun[-1].results == 1, "the call that records it runs the check again"
    assert not left.exists()
    [item] = inbox_in(harness)
    assert item.title.endswith(f"the check `tests` {said}")
    for command in ("show", "timeline", "report"):
        assert main(["--data-dir", str(tmp_path / "data"), "session", command, harness.session_of(first)]) == 0
        assert "its process ended without a result" in capsys.readouterr().out, command
    (tmp_path / "project" / "passes").touch()
    run_now(harness, first)
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"
    assert [(one["run"], one["ended"], one["exit"]) for one in results(harness, first)] == [
        (1, "lost", 255),
        (2, "exit", 0),
    ]
    assert unsound(harness.store) == []


@pytest.mark.inv("CHECK-7")
def test_a_step_that_reads_the_result_goes_on_with_a_lost_run(tmp_path: Path) -> None:
    harness = checking(tmp_path, BRANCHING)
    first, waiting = at_the_check(harness)
    lose(harness)
    third = harness.advance(waiting, None)
    assert third["pending"]["stepId"] == "b"
    assert session_of(harness, first).context(harness.reference_of(third).node)["green"] is False
    assert len(held(harness).begun) == 1
    assert unsound(harness.store) == []


@pytest.mark.inv("CHECK-7")
def test_a_command_that_finds_a_lost_run_reports_it_and_the_next_command_runs_the_check(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    (tmp_path / "project" / "passes").touch()
    first, _ = at_the_check(harness)
    lose(harness)
    for ended in ("lost", "exit"):
        report = run_now(harness, first)
        assert isinstance(report, CheckReport)
        assert report.result.fields["ended"] == ended
    assert len(results(harness, first)) == 2


@pytest.mark.inv("CHECK-7")
@pytest.mark.parametrize("content", ["", "no number", "1"])
def test_a_lock_file_is_no_lost_run_if_no_run_began_or_its_result_is_recorded(tmp_path: Path, content: str) -> None:
    harness = checking(tmp_path, NEEDED)
    first, waiting = at_the_check(harness)
    run_now(harness, first)
    left = lose(harness)
    left.write_text(content)
    harness.advance(waiting, None)
    run_now(harness, first)
    assert [one["ended"] for one in results(harness, first)] == ["exit", "exit"]
    assert not left.exists()


@pytest.mark.inv("CHECK-7", "READ-1")
def test_a_look_at_a_step_whose_check_was_lost_records_nothing(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    first, waiting = at_the_check(harness)
    lose(harness)
    before = files_below(tmp_path)
    assert harness.rehydrate(waiting)["waiting"]["for"] == "check"
    assert files_below(tmp_path) == before
    assert results(harness, first) == []


@pytest.mark.inv("CHECK-2")
@pytest.mark.parametrize("change", ["command", "workspaces", "timeout_s", "removed"])
def test_a_definition_that_changes_during_a_run_runs_nothing(tmp_path: Path, change: str) -> None:
    harness = checking(tmp_path, NEEDED)
    first, waiting = at_the_check(harness)
    changed: dict[str, Any] = {
        "command": {"command": ("/bin/true",)},
        "workspaces": {"workspaces": (str(tmp_path / "other"),)},
        "timeout_s": {"timeout_s": 1},
    }
    config = replace(shell(tmp_path / "project"), **changed.get(change, {}))
    local = LocalChecks(data_dir=tmp_path / "data", configured=() if change == "removed" else (config,))
    held(harness).local = local
    before = files_below(tmp_path)
    refused = harness.advance(waiting, None)
    assert (refused.code, refused["details"]["check"]) == (ErrorCode.EFFECT_UNCOVERED, "tests")
    assert isinstance(run_now(harness, first), Refusal)
    assert files_below(tmp_path) == before


@pytest.mark.inv("CHECK-2")
def test_a_protected_file_that_changes_before_or_during_a_check_makes_no_passed_result(tmp_path: Path) -> None:
    project = tmp_path / "project"
    harness = checking(tmp_path, NEEDED, check=shell(project, "touch Makefile.new; true", protect=("Makefile*",)))
    first, waiting = at_the_check(harness)
    report = run_now(harness, first)
    assert isinstance(report, CheckReport)
    assert (report.result.fields["ended"], report.result.fields["passed"]) == ("changed", False)
    refused = harness.advance(waiting, None)
    assert refused.code is ErrorCode.EFFECT_UNCOVERED
    assert "`Makefile*`" in refused["message"]
    (project / "Makefile.new").unlink()
    assert harness.advance(waiting, None)["waiting"]["for"] == "check"


REPLACED = "mv t/test.sh kept; echo exit 0 > t/test.sh; sh t/test.sh; r=$?; mv kept t/test.sh; exit $r"
REWRITTEN = "cp t/test.sh kept; echo exit 0 > t/test.sh; sh t/test.sh; r=$?; cat kept > t/test.sh; exit $r"
LINKED = "cp -p t/test.sh kept; mv t/link kept2; ln -s ../kept t/link; rm t/link; mv kept2 t/link; exit 0"
TARGET = "mv target kept; cp kept target; mv kept target; exit 0"
READ = "cat t/* > t/cache; mkdir t/more; rm t/cache; exit 0"


@pytest.mark.inv("CHECK-8")
@pytest.mark.parametrize(
    ("script", "ended"),
    [(REPLACED, "changed"), (REWRITTEN, "changed"), (LINKED, "changed"), (TARGET, "changed"), (READ, "exit")],
    ids=["replaced", "rewritten", "link replaced", "target of a link replaced", "read"],
)
def test_a_protected_file_that_was_changed_and_put_back_while_the_check_ran_makes_no_passed_result(
    tmp_path: Path, script: str, ended: str
) -> None:
    project = tmp_path / "project"
    (project / "t").mkdir(parents=True)
    (project / "t" / "test.sh").write_text("exit 1\n")
    (project / "target").write_text("the target of a link\n")
    (project / "t" / "link").symlink_to("../target")
    harness = checking(tmp_path, NEEDED, check=shell(project, script, protect=("t/*.sh", "t/link")))
    first, waiting = at_the_check(harness)
    report = run_now(harness, first)
    assert isinstance(report, CheckReport)
    assert (report.result.fields["ended"], report.result.fields["passed"]) == (ended, ended == "exit")
    assert ended == "exit" or "protected files were changed while it ran" in harness.advance(waiting, None).text


@pytest.mark.inv("CHECK-2", "CHECK-8")
def test_equal_files_of_another_inode_and_time_are_the_ones_that_the_run_began_with(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED, check=shell(tmp_path / "project", "true", protect=("t",)))
    protected = tmp_path / "project" / "t"
    protected.write_text("exit 1\n")
    first, _ = at_the_check(harness)
    protected.rename(tmp_path / "kept")
    protected.write_text("exit 1\n")
    report = run_now(harness, first)
    assert isinstance(report, CheckReport)
    assert report.is_advanced


@pytest.mark.inv("CHECK-5")
def test_a_workflow_whose_check_cannot_run_does_not_start(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    elsewhere = replace(harness, workspace=tmp_path)
    within = LocalChecks(data_dir=tmp_path / "project" / "data", configured=(shell(tmp_path / "project"),))
    for one, words in (
        (elsewhere, "may not run in the workspace"),
        (replace(harness, ports=replace(harness.ports, checks=within)), "data directory"),
        (Harness.in_memory(NEEDED), "is not defined"),
    ):
        refused = one.start("test.flow", goal="Ship")
        assert refused.code is ErrorCode.EFFECT_UNCOVERED
        assert words in refused["message"]
        assert refused["suggestion"]
    assert list((tmp_path / "data").glob("sessions/*")) == []


@pytest.mark.inv("CHECK-5")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-program", "is in none of the directories that a check searches (/usr/local/bin"),
        ("/no/such/program", "'/no/such/program' is no program that can be started"),
        ("./stale", "its interpreter '/no/such/python' is no program that can be started"),
    ],
)
def test_a_run_does_not_start_if_the_program_of_its_check_is_not_found(
    tmp_path: Path, command: str, words: str
) -> None:
    harness = checking(tmp_path, NEEDED, check=shell(tmp_path / "project", command=(command,)))
    script(tmp_path / "project" / "stale", "/no/such/python")
    refused = harness.start("test.flow", goal="Ship")
    assert refused.code is ErrorCode.EFFECT_UNCOVERED
    assert words in refused["message"]
    assert "[checks.tests]" in refused["suggestion"]


@pytest.mark.inv("CHECK-5")
def test_a_run_may_make_the_program_of_its_check_in_the_workspace(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED, check=shell(tmp_path / "project", command=("./made",)))
    first, waiting = at_the_check(harness)
    assert harness.advance(waiting, None).code is ErrorCode.EFFECT_UNCOVERED
    script(tmp_path / "project" / "made", "/bin/sh")
    run_now(harness, first)
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"


@pytest.mark.inv("CHECK-5")
def test_a_program_that_does_not_start_is_a_result_which_says_why(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED, check=shell(tmp_path / "project", command=("./verify",)))
    program = tmp_path / "project" / "verify"
    program.write_text("true\n")
    program.chmod(0o700)
    first, waiting = at_the_check(harness)
    run_now(harness, first)
    refused = harness.advance(waiting, None)
    assert "'./verify' cannot be started: Exec format error" in refused.text
    script(program, "/bin/sh")
    run_now(harness, first)
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"


@pytest.mark.inv("CHECK-5", "INBOX-1")
def test_a_program_that_is_gone_during_the_run_is_named_by_the_waiting_answer_and_in_the_inbox(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED, check=shell(tmp_path / "project", command=("./verify",)))
    program = tmp_path / "project" / "verify"
    script(program, "/bin/sh")
    first, waiting = at_the_check(harness)
    program.unlink()
    refused = harness.advance(waiting, None)
    assert refused.code is ErrorCode.EFFECT_UNCOVERED
    assert "which was not started: the program './verify' of the check `tests` is not found" in refused["message"]
    [item] = inbox_in(harness)
    assert "the check `tests` does not run: the program './verify'" in item.title
    script(program, "/bin/sh")
    assert inbox_in(harness) == []
    run_now(harness, first)
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"


@pytest.mark.inv("CHECK-5")
def test_the_checks_of_a_project_run_only_as_a_person_allowed_them(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    project = tmp_path / "project"
    held(harness).local = LocalChecks(data_dir=tmp_path / "data")
    (project / ".interlock").mkdir()
    (project / PROJECT_CHECKS).write_text(CHECKS_FILE)
    refused = harness.start("test.flow", goal="Ship")
    assert refused.code is ErrorCode.EFFECT_UNCOVERED
    assert "is not allowed yet" in refused["message"]
    files = open_check_files(tmp_path / "data")
    files.allow(str(project), project_checks(project).digest)
    (project / "passes").touch()
    first, waiting = at_the_check(harness)
    (project / PROJECT_CHECKS).write_text(CHECKS_FILE.replace("test -e passes", "true"))
    assert harness.advance(waiting, None).code is ErrorCode.EFFECT_UNCOVERED
    assert "has changed since it was allowed" in harness.start("test.flow", goal="Ship")["message"]
    (project / PROJECT_CHECKS).write_text(CHECKS_FILE)
    listed = tmp_path / "data" / "config" / "checks.json"
    kept = listed.read_bytes()
    listed.write_bytes(kept[:-1])
    for answer in (harness.advance(waiting, None), harness.start("test.flow", goal="Ship")):
        assert "`config/checks.json` of the data directory" in answer["message"]
        assert "Restore it from a backup" in answer["suggestion"]
    listed.write_bytes(kept)
    assert isinstance(run_now(harness, first), CheckReport)
    files.allow(str(project), None)
    assert "is not allowed yet" in harness.start("test.flow", goal="Ship")["message"]


def test_a_run_that_ended_takes_no_result(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    first, _ = at_the_check(harness)
    ended_by_command(harness, first)
    refusal = run_now(harness, first)
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.RUN_ENDED


def test_an_import_of_the_run_keeps_its_result(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    (tmp_path / "project" / "passes").touch()
    first, waiting = at_the_check(harness)
    run_now(harness, first)
    shutil.rmtree(tmp_path / "project")
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"


def forged(here: Harness, session: SessionId) -> bytes:
    """Return a bundle, whole in itself, whose author made a failed check a passed one."""
    value = value_of(exported(here, session).data)
    text = json.dumps(value["session"]["events"])
    said = text.replace('"passed": false', '"passed": true').replace('"exit": 1', '"exit": 0')
    assert said != text, "the result is in the bundle"
    value["session"]["events"] = json.loads(said)
    events = iter([parse_event(json.dumps(one).encode()) for one in value["session"]["events"]])
    history = [tuple(islice(events, len(group))) for group in here.store.history(session)]
    groups = attest_history(session, history)
    value["session"]["manifest"] = [json.loads(line) for _, group in groups for line in group.data.splitlines()]
    return resealed(value)


@pytest.mark.inv("WORLD-11")
def test_a_result_that_came_with_a_bundle_is_not_believed_by_a_step_that_still_waits(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here, there = checking(tmp_path / "here", NEEDED), checking(tmp_path / "there", NEEDED)
    first, _ = at_the_check(here)
    run_now(here, first)
    restored = imported(there, forged(here, here.session_of(first))).restored
    looked = there.call("continue_workflow", restored.ways_on[0].next_call.arguments)
    before = len(there.store.history(restored.session))
    # The check must run here, and this directory has another definition of it than the one that the run began with.
    assert there.advance(looked, None)["code"] == "EFFECT_UNCOVERED"
    assert len(there.store.history(restored.session)) == before
    assert results(there, looked)[0]["passed"] is True, "the forged result is in the log, as a claim of the bundle"
    assert unsound(there.store) == []


@pytest.mark.inv("WORLD-11", "INBOX-1")
def test_of_a_result_that_came_with_a_bundle_is_said_what_it_is(tmp_path: Path) -> None:
    harness = checking(tmp_path, NEEDED)
    first, _ = at_the_check(harness)
    run_now(harness, first)
    session = harness.session_of(first)
    for data, found in (
        (exported(harness, session).data, "did not pass (exit code 1, imported result)"),
        (forged(harness, session), "passed according to an imported bundle, which proves nothing here"),
    ):
        restored = imported(harness, data).restored
        looked = harness.call("continue_workflow", restored.ways_on[0].next_call.arguments)
        assert f"Run 1 of the check `tests` {found}." in looked.text
        assert ("Correct the cause" in looked.text) == ("did not pass" in found)
        [item] = [one for one in inbox_in(harness) if one.session == restored.session]
        assert item.title.endswith(f"the check `tests` {found}")


@pytest.mark.inv("WORLD-11")
def test_what_a_step_took_before_the_export_stays_taken(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here, there = checking(tmp_path / "here", NEEDED), checking(tmp_path / "there", NEEDED)
    (tmp_path / "here" / "project" / "passes").touch()
    first, _ = at_the_check(here)
    run_now(here, first)
    restored = imported(there, exported(here, here.session_of(first)).data).restored
    looked = there.call("continue_workflow", restored.ways_on[0].next_call.arguments)
    assert looked["pending"]["stepId"] == "b"
    assert unsound(there.store) == []


@pytest.mark.inv("WORLD-11")
def test_a_question_says_of_a_result_that_came_with_a_bundle_that_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    workflow = document(step("a"), CHECK, {**ASK, "show": ["check.tests"]}, step("b"), inputs=[GREEN])
    here, there = checking(tmp_path / "here", workflow), checking(tmp_path / "there", workflow)
    (tmp_path / "here" / "project" / "passes").touch()
    first, _ = at_the_check(here)
    run_now(here, first)
    imported(there, exported(here, here.session_of(first)).data)
    for harness, heading in ((here, "(passed, exit code 0):"), (there, "(passed, exit code 0, imported):")):
        [item] = inbox_in(harness)
        assert f"check.tests {heading}" in item.text


@pytest.mark.inv("WORLD-11", "PROOF-7")
def test_a_level_that_came_with_a_bundle_is_shown_as_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here, there = checking(tmp_path / "here", NEEDED), checking(tmp_path / "there", NEEDED)
    (tmp_path / "here" / "project" / "passes").touch()
    first, waiting = at_the_check(here)
    run_now(here, first)
    end = here.advance(here.advance(waiting, None), "Finished the rest of the work.")
    session = here.session_of(first)
    copy = imported(there, exported(here, session).data).restored.session

    def printed(root: Path, *words: str) -> str:
        assert main(["--data-dir", str(root / "data"), "session", *words]) == 0
        return capsys.readouterr().out

    for root, name, is_copy in ((tmp_path / "here", session, False), (tmp_path / "there", copy, True)):
        [run] = json.loads(printed(root, "show", name, "--json"))["runs"]
        assert run["restsOn"] == end["restsOn"] | ({"imported": True} if is_copy else {})
        [event] = [one for step in run["steps"] for one in step["received"]]
        assert (event["assurance"], event["isImported"]) == ("executed", is_copy)
        level = "(executed, imported, via check)" if is_copy else "(executed, via check)"
        assert level in printed(root, "timeline", name)
        for command in ("show", "report"):
            text = printed(root, command, name)
            assert ("The run was imported" in text) == is_copy
            assert level in text, command
        report = printed(root, "report", name)
        assert ("according to the imported bundle, Interlock ran the check" in report) == is_copy
        bundle = ", according to the imported bundle" if is_copy else ""
        assert f"1 step was reported by `check` (Interlock itself{bundle})" in report


@pytest.mark.inv("CHECK-7")
def test_a_system_that_starts_no_process_is_named_by_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    harness = checking(tmp_path, NEEDED)
    _, waiting = at_the_check(harness)
    own = replace(harness, ports=replace(harness.ports, checks=held(harness).local))
    monkeypatch.setattr(subprocess, "Popen", start)
    refused = own.advance(waiting, None)
    assert refused.code is ErrorCode.EFFECT_UNCOVERED
    assert "no process can be started for the check `tests`: Resource temporarily unavailable" in refused["message"]
