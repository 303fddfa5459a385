"""`interlock session cancel` and `fail`: a person ends a run, and every view of it says so."""

from typing import get_args

import pytest
from tests.support.ends import work_record
from tests.support.history import Place, label_of
from tests.support.modes import answering
from tests.support.verify import unsound

from interlock.kernel.budgets import WORK_NOTE_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.record.payloads import WorkReason
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


@pytest.fixture
def first(harness: Harness) -> ToolResult:
    started = harness.start("team.ship", goal="Ship it")
    harness.advance(started, "Did a.")
    return started


@pytest.mark.inv("END-5", "END-6")
@pytest.mark.parametrize(("command", "status"), [("cancel", "cancelled"), ("fail", "failed")])
def test_a_person_ends_a_run_by_its_label_and_a_repeat_changes_nothing(
    place: Place, harness: Harness, first: ToolResult, command: str, status: str
) -> None:
    result = place.run(command, label_of(first), "--reason", "superseded", "--note", "Replaced by 2.0.")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"Run `{label_of(first)}` (team.ship) has ended: {status}, superseded.\n"
    event = harness.events(harness.session_of(first))[-1]
    assert event.kind == "work_recorded"
    assert event.actor is not None
    assert (event.actor.type, event.actor.identifier) == ("human", "command line")
    again = place.run(command, label_of(first), "--reason", "superseded", "--json").json()
    assert again == {
        "session": first["run"]["sessionId"],
        "run": first["run"]["runId"],
        "status": status,
        "reason": "superseded",
        "at": again["at"],
        "note": "Replaced by 2.0.",
        "isNew": False,
    }
    assert "nothing was changed" in place.run(command, label_of(first), "--reason", "superseded").out
    assert harness.events(harness.session_of(first))[-1] == event
    assert unsound(harness.store) == []


@pytest.mark.inv("END-9", "READ-4")
def test_every_view_of_an_ended_run_says_how_it_ended(place: Place, harness: Harness, first: ToolResult) -> None:
    harness.start("team.ship", goal="Other")
    place.run("cancel", label_of(first), "--reason", "user_request", "--note", "Plans changed.")
    session = first["run"]["sessionId"]
    assert "cancelled" in place.run("list").out
    assert [run["run"] for run in place.run("list", "--status", "cancelled", "--json").json()["runs"]] == [
        first["run"]["runId"]
    ]
    assert place.run("list", "--status", "failed", "--json").json()["runs"] == []
    (run,) = place.run("status", session, "--json").json()["runs"]
    assert (run["status"], run["endReason"]) == ("cancelled", "user_request")
    shown = place.run("show", session)
    assert "cancelled" in shown.out
    assert "Plans changed." in shown.out
    assert "command line" in shown.out
    assert "not done" in shown.out
    assert "pending" not in shown.out
    (run,) = place.run("show", session, "--json").json()["runs"]
    assert (run["ended"]["work"], run["ended"]["actor"]["type"]) == ("cancelled", "human")
    report = place.run("report", session).out
    assert "cancelled, user request" in report
    assert "Plans changed" in report
    timeline = place.run("timeline", session).out
    assert "ended the run: cancelled, user_request" in timeline
    assert "note: Plans changed." in timeline


@pytest.mark.inv("END-7", "END-9")
def test_how_work_was_left_is_shown_with_its_step(place: Place, harness: Harness) -> None:
    start = harness.start("team.ship")
    harness.checkpoint(start, None, output=work_record("released", "handoff", note="Ada continues.", refs=["a.md"]))
    shown = place.run("show")
    assert "work was left: released, handoff: Ada continues., references a.md" in shown.out
    (run,) = place.run("show", "--json").json()["runs"]
    assert run["steps"][0]["left"] == [
        {"work": "released", "reason": "handoff", "note": "Ada continues.", "refs": ["a.md"]}
    ]
    assert run["status"] == "in_progress"


@pytest.mark.inv("END-6")
def test_a_run_that_ended_otherwise_and_a_complete_one_are_refused(
    place: Place, harness: Harness, first: ToolResult
) -> None:
    assert place.run("cancel", label_of(first), "--reason", "duplicate").code == 0
    refused = place.run("fail", label_of(first), "--reason", "duplicate", "--json")
    assert (refused.code, refused.json()["error"]["code"]) == (1, ErrorCode.RUN_ENDED)
    done = harness.start("team.ship")
    harness.advance(harness.advance(done))
    refused = place.run("cancel", label_of(done), "--reason", "duplicate")
    assert (refused.code, "is complete, so it cannot be ended" in refused.err) == (1, True)


def test_a_name_that_refers_to_no_single_run_ends_nothing(place: Place, harness: Harness, first: ToolResult) -> None:
    harness.start("team.ship", sessionId=first["run"]["sessionId"])
    several = place.run("cancel", first["run"]["sessionId"], "--reason", "duplicate")
    assert (several.code, label_of(first) in several.err) == (2, True)
    unknown = place.run("cancel", "zzzz", "--reason", "duplicate", "--json")
    assert (unknown.code, unknown.json()["error"]["code"]) == (1, ErrorCode.SESSION_NOT_FOUND)
    assert {run["status"] for run in place.run("list", "--json").json()["runs"]} == {"in_progress"}


def test_a_session_with_one_run_names_that_run(place: Place, first: ToolResult) -> None:
    assert place.run("cancel", first["run"]["sessionId"], "--reason", "duplicate").code == 0


@pytest.mark.inv("END-1")
@pytest.mark.parametrize("note", ["", "  ", "é" * (WORK_NOTE_BYTES_MAX // 2) + "a", "half \udce9"])
def test_a_note_that_cannot_be_recorded_is_refused(place: Place, first: ToolResult, note: str) -> None:
    refused = place.run("cancel", label_of(first), "--reason", "duplicate", "--note", note)
    assert (refused.code, "--note" in refused.err) == (2, True)
    assert place.run("cancel", label_of(first), "--reason", "duplicate").code == 0


@pytest.mark.inv("END-1")
def test_the_reasons_are_the_closed_set(place: Place, harness: Harness) -> None:
    start = harness.start("team.ship")
    for reason in get_args(WorkReason):
        start = harness.start("team.ship")
        assert place.run("fail", label_of(start), "--reason", reason).code == 0
    with pytest.raises(SystemExit):
        place.run("fail", label_of(start), "--reason", "bored")


@pytest.mark.inv("ANS-20")
def test_a_note_that_looks_like_a_secret_is_warned_of(place: Place, first: ToolResult) -> None:
    result = place.run("cancel", label_of(first), "--reason", "policy", "--note", "password: hunter2")
    assert result.code == 0
    assert "looks like a secret" in result.err
    assert "hunter2" not in result.err


@pytest.mark.inv("END-4", "END-5")
def test_the_next_ack_reports_the_end_that_a_person_made_meanwhile(
    place: Place, harness: Harness, first: ToolResult
) -> None:
    second = harness.rehydrate(harness.advance(first, "Did a."))
    place.run("cancel", label_of(first), "--reason", "user_request")
    assert harness.advance(second).code is ErrorCode.RUN_ENDED
    # The ack that asks for the same end gets the answer of it, and no one is asked.
    assert harness.advance(second, None, output=work_record())["ended"]["reason"] == "user_request"
    assert answering(harness).advance(second, None, output=work_record("failed")).code is ErrorCode.RUN_ENDED
