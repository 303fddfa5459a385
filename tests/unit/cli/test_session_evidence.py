"""The evidence of a run can be read: in the terminal, as JSON, and in a report by somebody who has nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import READING as ASKING
from tests.support.approvals import given
from tests.support.checks import NEEDED as NEEDED_CHECK
from tests.support.checks import checking, run_now
from tests.support.evidence import NOTES, artifacts_for
from tests.support.history import MINUTE, Place, begun_at, label_of
from tests.support.modes import NEVER_STOPS, answering, claim, with_artifacts

from interlock.kernel.ids import RunId, SessionId
from interlock.plan.records import PlanNode
from interlock.service.run.context import load_run_context
from interlock.store.git import GitAnchors
from interlock.testing.harness import Harness, ToolResult, linear_workflow

BUNDLED = Path(__file__).parents[3] / "src" / "interlock" / "workflows"
CHECK = {"id": "check", "title": "Check it", "prompt": "Run the tests.", "set": [{"key": "size", "from": "size"}]}
SHIP = {
    **linear_workflow("team.ship", {**CHECK, "produces": ["size"]}, "b", name="Ship it"),
    "inputs": [{"key": "size", "description": "How much.", "type": "number", "required": False}],
}
REPORT: dict[str, Any] = {
    "kind": "team.report",
    "verdict": "failed",
    "summary": "One of two fails.",
    "checks": [
        {"name": "The suite", "result": "failed", "evidence": "make test: 1 | failed"},
        {"name": "The linter", "result": "skipped", "evidence": "not installed"},
    ],
    "files": ["a.py", "b.py"],
    "extra": {"n": 1},
}


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def checked(place: Place, harness: Harness, report: dict[str, Any] = REPORT) -> ToolResult:
    """Be refused once in the first step, then report it with an artifact and a context key."""
    first = harness.start("team.ship", goal="Ship 1.0", context={"mode": "fast"})
    place.later(1)
    refused = harness.advance(first, None, output={"artifacts": [{"kind": "team.sketch", "n": 7}]})
    place.later(2)
    harness.advance(refused, "It **ran**.", output=with_artifacts(report, notes="It **ran**."), context={"size": 3})
    return first


@pytest.mark.inv("EVD-1")
def test_the_evidence_of_every_step_is_shown_with_the_content_of_its_artifacts(place: Place, harness: Harness) -> None:
    checked(place, harness)
    shown = place.run("show", "--evidence").out.splitlines()
    for line in (
        "      > It **ran**.",
        "      > verdict: failed",
        "      > summary: One of two fails.",
        "      > files: a.py · b.py",
        '      > extra: {"n": 1}',
        "      > checks: 2",
        "      > - The suite",
        "      >   evidence: make test: 1 | failed",
        "      >   result: failed",
        "      > - size",
        "        Before: not set",
        "        After: 3",
        "      What attempt 1 sent:",
        "        > n: 7",
    ):
        assert line in shown, line
    assert "    - failed, team.report of step 1, Check it: One of two fails." in shown


@pytest.mark.inv("EVD-1")
def test_the_same_evidence_is_in_json(place: Place, harness: Harness) -> None:
    checked(place, harness)
    (run,) = place.run("show", "--json").json()["runs"]
    step = run["steps"][0]
    assert [one["content"] for one in step["artifacts"]] == [{**REPORT}, {"kind": "team.sketch", "n": 7}]
    assert (step["stepId"], step["prompt"].splitlines()[0]) == ("check", "Run the tests.")
    assert (step["tookMs"], step["waitedForPersonMs"]) == (3 * MINUTE, 0)
    assert step["context"] == [{"key": "size", "change": "added", "before": None, "after": 3, "isComputed": True}]
    (refused,) = step["refused"]
    assert ([one["content"]["n"] for one in refused["artifacts"]], refused["notes"]) == ([7], None)
    assert {one["code"] for one in refused["blockers"]} == {"MISSING_REQUIRED_OUTPUT"}
    (verdict,) = run["verdicts"]
    assert (verdict["verdict"], verdict["standing"], verdict["isInEffect"]) == ("failed", "failed", True)
    assert verdict["step"]["title"] == "Check it"


@pytest.mark.inv("EVD-1")
@pytest.mark.parametrize("wanted", ["1", "check", "CHECK it"])
def test_one_step_is_shown_by_its_number_id_or_title(place: Place, harness: Harness, wanted: str) -> None:
    checked(place, harness)
    shown = place.run("show", "--step", wanted).out
    assert "Run the tests." in shown
    assert "make test: 1 | failed" in shown
    assert "Step b" not in shown
    (run,) = place.run("show", "--step", wanted, "--json").json()["runs"]
    assert [step["stepId"] for step in run["steps"]] == ["check"]


def test_a_step_that_no_run_came_to_is_refused_with_those_that_were(place: Place, harness: Harness) -> None:
    checked(place, harness)
    outcome = place.run("show", "--step", "none")
    assert (outcome.code, outcome.out) == (1, "")
    assert "Name one of these by its number or id: 1 check, 2 b." in outcome.err


@pytest.mark.inv("EVD-3")
def test_the_context_is_shown_with_the_step_that_set_each_key(place: Place, harness: Harness) -> None:
    checked(place, harness)
    assert place.run("context").out.splitlines() == [
        f"Ship it: context of run {place.run('list', '--json').json()['runs'][0]['label']}",
        "  > - goal",
        "    value: Ship 1.0",
        "    set in: the start",
        "  > - mode",
        "    value: fast",
        "    set in: the start",
        "  > - size",
        "    value: 3",
        "    set in: step 1, Check it, by the plan, from the evidence",
    ]
    (run,) = place.run("context", "--json").json()["runs"]
    assert [(one["key"], one["value"], one["isComputed"]) for one in run["context"]] == [
        ("goal", "Ship 1.0", False),
        ("mode", "fast", False),
        ("size", 3, True),
    ]


def test_an_empty_context_is_reported_as_empty(place: Place) -> None:
    place.serving(linear_workflow("team.bare", "a")).start("team.bare")
    assert "The context is empty." in place.run("context").out


@pytest.mark.inv("EVD-2")
def test_a_failed_verdict_is_visible_in_list_and_status_until_a_later_one_replaces_it(
    place: Place, harness: Harness
) -> None:
    first = checked(place, harness)
    for command in ("list", "status"):
        assert "in progress, verdict failed" in place.run(command).out
        assert [run["verdict"] for run in place.run(command, "--json").json()["runs"]] == ["failed"]
    fork = str(harness.rehydrate(first)["fork"]["ackToken"])
    repaired = with_artifacts({"kind": "team.report", "verdict": "passed"})
    harness.advance(fork, None, output=repaired, context={"size": 4})
    assert "verdict" not in place.run("list").out
    assert [run["verdict"] for run in place.run("list", "--json").json()["runs"]] == ["passed"]


@pytest.mark.inv("EVD-2")
def test_a_verdict_in_a_summary_is_the_same_with_and_without_the_cache(place: Place, harness: Harness) -> None:
    checked(place, harness)
    cached = place.run("list", "--json").out
    for path in place.root.glob("sessions/*/cache/*"):
        path.unlink()
    assert place.run("list", "--json").out == cached


@pytest.mark.damages
def test_an_artifact_that_is_lost_is_reported_and_hides_nothing_else(place: Place, harness: Harness) -> None:
    checked(place, harness)
    for stored in place.root.glob("artifacts/**/*"):
        if stored.is_file() and b"One of two fails" in stored.read_bytes():
            stored.unlink()
    shown = place.run("show", "--evidence").out
    assert "missing or damaged" in shown
    assert "It **ran**." in shown
    assert "the stored evidence is missing or damaged" in place.run("report").out


def played(place: Place, name: str, sent: Mapping[str, list[dict[str, Any]]], **start: object) -> ToolResult:
    """Play a bundled workflow to its end as an agent with this evidence, seven minutes a step."""
    document = json.loads((BUNDLED / f"{name}.json").read_text(encoding="utf-8"))
    harness = place.serving({**document, "id": f"team.{name}"})
    harness = begun_at(harness, GitAnchors(repo_root="/home/ada/secret", branch="fix/login", head_sha="a1" * 20))
    first = answer = harness.start(f"team.{name}", **start)
    assert not answer.is_error, answer.text
    while not answer.structure.get("isComplete"):
        step = pending(harness, first)
        place.later(7)
        output = with_artifacts(*sent.get(step.node_id, evidence_of(harness, first, step)), notes=notes_of(step))
        asked = answering(harness, n1="Yes, send it out.") if step.task and step.task.needs_user else harness
        answer = asked.advance(answer, None, output=output, context=context_of(harness, first, step))
        assert not answer.is_error, answer.text
        assert "Not accepted yet" not in answer.text, answer.text
    return first


def pending(harness: Harness, first: ToolResult) -> PlanNode:
    run_context, state = at_tip(harness, first)
    return run_context.workflow.steps[state.pending.step.step_id]


def at_tip(harness: Harness, first: ToolResult) -> tuple[Any, Any]:
    session = harness.store.load(SessionId(first["run"]["sessionId"]))
    assert session is not None
    run_context = load_run_context(session, session.runs[RunId(first["run"]["runId"])], harness.ports.read.plans)
    tip = run_context.run.tip
    assert tip is not None
    return run_context, run_context.snapshot(session.nodes[tip]).state


def evidence_of(harness: Harness, first: ToolResult, step: PlanNode) -> list[dict[str, Any]]:
    return artifacts_for(at_tip(harness, first)[0].workflow, step)


def notes_of(step: PlanNode) -> str:
    return f"Notes of {step.node_id}.\n\n- {NOTES}"


def context_of(harness: Harness, first: ToolResult, step: PlanNode) -> dict[str, Any]:
    declared = at_tip(harness, first)[0].workflow.declared
    wanted = step.task.produces if step.task is not None else ()
    values: dict[str, Any] = {"boolean": False, "list": ["one"], "number": 1}
    return {
        key: next(iter(declared[key].choices or ()), values.get(str(declared[key].type), "said"))
        for key in wanted
        if key in declared
    }


FAILED_SUITE = {"name": "The suite", "evidence": "make test: 213 passed, 1 failed", "result": "failed"}
RUN_SUITE = {"name": "The suite", "evidence": "make test: 214 passed", "result": "passed"}
NOT_RUN = {"name": "On Windows", "evidence": "no such machine here", "result": "skipped"}


def verification(verdict: str, *checks: Mapping[str, str]) -> list[dict[str, Any]]:
    summary = f"The checks {verdict}."
    return [{"kind": "wr.verification_report", "verdict": verdict, "checks": [*checks], "summary": summary}]


@pytest.mark.inv("EVD-4")
def test_a_reviewer_of_a_repaired_task_reads_what_failed_what_passed_and_what_was_not_run(place: Place) -> None:
    sent = {"check": verification("failed", FAILED_SUITE), "repair": verification("passed", RUN_SUITE, NOT_RUN)}
    played(place, "quick_task", sent, goal="Fix the typo")
    report = place.run("report").out
    assert "- **Verdicts:** 1 passed\n" in report
    assert (
        "| failed, replaced by a later verdict | 2. `Check it` | `wr.verification_report` | The checks failed. |"
        in report
    )
    assert "| The suite | make test: 214 passed | passed |" in report.split("## Steps")[0]
    assert "check not run: On Windows: no such machine here" in section(report, "What is missing")
    assert "- **Steps:** 3 of 4 done, 1 skipped by decisions of the plan\n" in report
    assert "skipped by decisions of the plan (see Path): `4. Settle what is open`." in section(
        report, "What is missing"
    )
    assert "after step 2, `Check it`: `verdict` equals 'failed': holds" in section(report, "Path")
    assert "after step 2, `Check it`: next is step " in section(report, "Path")
    assert "\nResult, as the agent reports it, step " in report.split("## Verdicts")[0]
    assert "No answer of a person to Interlock is recorded" in section(report, "What this rests on")
    assert "- **Began on:** branch `fix/login`, commit `a1a1a1" in report
    assert "- **Last seen on:** the same commit: changes that were not committed are not part of this record" in report
    assert "- **Status:** complete\n" in report
    assert "/home/ada" not in report


@pytest.mark.inv("EVD-4")
def test_a_skipped_step_of_a_loop_has_its_title_with_a_mark_for_the_pass(place: Place) -> None:
    played(place, "code_review", {}, goal="Review it")
    skipped = "skipped by decisions of the plan (see Path): `8. Read what was missed, round …`"
    assert skipped in section(place.run("report").out, "What is missing")


@pytest.mark.inv("EVD-4")
def test_a_reviewer_of_a_release_reads_who_gave_the_go_and_how_the_readiness_was_rated(place: Place) -> None:
    played(place, "release_readiness", {}, goal="Release 2.4", context={"version": "2.4"})
    report = place.run("report").out
    assert "`quality`: ready" in section(report, "Verdicts")
    grounds = section(report, "What this rests on")
    assert "step 7, `Get the go`: a person was asked through `a client`: Go or no-go for 2.4" in grounds
    assert "The answer: Yes, send it out." in grounds
    assert "| `released` | `true` | 7. `Get the go` |" in section(report, "Context at the end")


@pytest.mark.inv("EVD-4")
def test_a_reviewer_of_an_investigation_reads_the_cause_its_rating_and_each_task(place: Place) -> None:
    first = played(place, "bug_investigation", {}, goal="Off by one cent", context={"wants": "fix"})
    report = place.run("report").out
    assert "`support`: proven" in section(report, "Verdicts")
    assert "| `cause` | proven |" in section(report, "Context at the end")
    done = [step for step in place.run("show", "--all", "--json").json()["runs"][0]["steps"] if step["isDone"]]
    steps = section(report, "Steps")
    for step in done:
        assert f"Notes of {step['stepId']}." in steps
        assert step["prompt"].splitlines()[0][:60] in steps
    assert f"{len(done)} steps were reported by an unnamed client" in section(report, "What this rests on")
    assert first["run"]["sessionId"] in section(report, "Record")


def section(report: str, name: str) -> str:
    """Return a section of a report."""
    return report.split(f"\n## {name}\n")[1].split("\n## ", maxsplit=1)[0]


ASKED = linear_workflow("team.ask", {"id": "a", "title": "Agree", "prompt": "Ask.", "requireConfirmation": True})


@pytest.mark.inv("EVD-4")
def test_a_report_says_when_an_agent_claims_that_a_person_confirmed(place: Place) -> None:
    harness = place.serving(ASKED)
    first = harness.start("team.ask")
    place.later(31)
    harness.advance(first, None, output=with_artifacts(claim(), notes="Asked."))
    report = place.run("report", label_of(first)).out
    grounds = section(report, "What this rests on")
    said = "a confirmation that only the agent claims (Interlock asked nobody), confirmed by: Ada"
    said += "; in these words: She read it and said yes"
    assert f"step 1, `Agree`: {said}" in grounds
    assert "No answer of a person" in grounds
    assert "waiting for a person" not in report
    assert "wait for a person" not in report


@pytest.mark.inv("EVD-4")
def test_a_report_says_how_long_a_step_waited_for_a_person_after_a_refusal(place: Place) -> None:
    harness = place.serving(ASKED)
    first = harness.start("team.ask")
    place.later(1)
    declined = answering(harness, "decline").advance(first, "Asked.")
    place.later(30)
    answering(harness).advance(declined, "Asked again.")
    report = place.run("report", label_of(first)).out
    assert "after 31 min, of which 30 min waiting for a person, at attempt 2." in section(report, "Steps")
    assert "- **Time:** from `2025-01-01T00:00:00.000Z`" in report
    assert "31 min, of which 30 min waiting for a person" in report.split("## Verdicts")[0]


@pytest.mark.inv("EVD-4", "OBS-6")
def test_a_report_says_on_which_commit_a_run_began_and_where_it_was_last_seen(place: Place) -> None:
    harness = place.serving(linear_workflow("team.ship", "a", "b", "c"))
    main, dev = (
        GitAnchors(repo_root="/r", branch="main", head_sha="a" * 40),
        GitAnchors(repo_root="/r", branch="dev", head_sha="b" * 40),
    )
    first = begun_at(harness, main).start("team.ship")
    assert "Last seen on" not in place.run("report").out
    second = begun_at(harness, main).advance(first, "Stayed.")
    assert "- **Last seen on:** the same commit: changes that were not" in place.run("report").out
    begun_at(harness, dev).advance(second, "Moved.")
    report = place.run("report").out
    assert f"- **Began on:** branch `main`, commit `{'a' * 40}`" in report
    assert f"- **Last seen on:** branch `dev`, commit `{'b' * 40}`" in report


@pytest.mark.inv("EVD-4")
def test_a_report_tells_a_check_that_interlock_ran_from_the_word_of_the_agent(place: Place) -> None:
    harness = checking(place.root.parent, NEEDED_CHECK)
    first = harness.start("test.flow")
    waiting = harness.advance(first)
    (place.root.parent / "project" / "passes").touch()
    run_now(harness, first)
    harness.advance(waiting)
    grounds = section(place.run("report").out, "What this rests on")
    assert "It ran no command" not in grounds
    assert "Interlock ran the check `tests` (`/bin/sh -c 'test -e passes'`): it passed, exit code 0, " in grounds


@pytest.mark.inv("EVD-4")
def test_a_report_names_the_answer_of_a_person_and_how_well_it_is_known(place: Place) -> None:
    harness = place.serving(ASKING)
    first = harness.start("test.flow")
    waiting = harness.advance(first)
    given(harness, first, note="Keep it small.")
    harness.advance(waiting, None)
    grounds = section(place.run("report").out, "What this rests on")
    assert "was answered (observed, via command): approve; the person added: Keep it small." in grounds
    assert "No answer of a person" not in grounds


@pytest.mark.inv("EVD-4")
def test_a_report_says_that_nobody_was_asked_in_a_run_that_never_stops(place: Place) -> None:
    harness = place.serving(ASKING)
    harness.advance(harness.advance(harness.start("test.flow", preferences=NEVER_STOPS)), None)
    grounds = section(place.run("report").out, "What this rests on")
    assert "no person was asked the question, so Interlock recorded (via clock): reject" in grounds
    assert "No answer of a person to Interlock is recorded in this run." in grounds
    assert "2 claimed" in grounds
    assert "xecuted" not in grounds
