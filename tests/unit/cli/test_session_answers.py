"""What views say of answers of people and results of checks, and of those who gave them."""

from types import SimpleNamespace

import pytest
from mcp import types
from tests.support.approvals import asking, given
from tests.support.checks import NEEDED, checking, run_now
from tests.support.contexts import call_context
from tests.support.history import Place, checkpointed, label_of, redone
from tests.support.proofs import HeldTree, begun, proving, with_tree, witnessed

from interlock.server.calls import Calls
from interlock.testing.harness import Harness, ToolResult

NONE = "No answer of a person to Interlock is recorded"


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(asking(show=["notes.a"]))


def rejected(harness: Harness) -> tuple[ToolResult, ToolResult]:
    """Let a person reject the plan; return the answers of the start and of the waiting step."""
    first = harness.start("test.flow")
    waiting = harness.advance(first)
    given(harness, first, is_approved=False, note="Too risky.")
    return first, waiting


@pytest.mark.inv("EVD-1", "EVD-4")
def test_a_rejection_is_in_every_view_while_the_step_waits_and_after_it_went_on(place: Place, harness: Harness) -> None:
    first, waiting = rejected(harness)
    answered = "was answered (observed, via command): reject; the person added: Too risky.;"
    report = place.run("report").out
    assert f"{answered} the step has not continued with it" in report
    assert NONE not in report
    pending = place.run("show", "--json").json()["runs"][0]["steps"][-1]
    assert [(one["fields"]["choice"], one["isTaken"]) for one in pending["received"]] == [("reject", False)]
    assert "received the event wr.approval (observed, via command); the step has not con" in place.run("show").out
    given(harness, first)
    harness.advance(waiting, None)
    report = place.run("report").out
    assert f"{answered} the step did not continue with it" in report
    assert "was answered (observed, via command): approve\n" in report


@pytest.mark.inv("EVD-4")
def test_an_answer_about_a_plan_that_was_redone_is_reported_as_one_on_another_branch(
    place: Place, harness: Harness
) -> None:
    first = harness.start("test.flow")
    waiting = harness.advance(first)
    given(harness, first, note="Plan A.")
    harness.advance(waiting, None)
    redone(harness, first, "Plan B.")
    report = place.run("report").out
    assert "step 2, `Agree the plan`, on another branch: the question to a person was answered (observed, " in report
    assert NONE not in report
    [elsewhere] = place.run("show", "--json").json()["runs"][0]["stepsElsewhere"]
    assert [one["fields"]["note"] for one in elsewhere["received"]] == ["Plan A."]


@pytest.mark.inv("EVD-4")
def test_a_report_names_a_failed_check_before_and_after_one_that_passed(place: Place) -> None:
    harness = checking(place.root.parent, NEEDED)
    first = harness.start("test.flow")
    waiting = harness.advance(first)
    run_now(harness, first)
    failed = "it did not pass, exit code 1, "
    report = place.run("report").out
    assert "It ran no command" not in report
    assert failed in report
    (place.root.parent / "project" / "passes").touch()
    run_now(harness, first, after=1)
    harness.advance(waiting)
    report = place.run("report").out
    assert failed in report
    assert "it passed, exit code 0, " in report


@pytest.mark.inv("WORLD-2")
def test_the_timeline_says_what_was_decided(place: Place, harness: Harness) -> None:
    first, _ = rejected(harness)
    given(harness, first)
    lines = place.run("timeline").out
    assert "(observed, via command): reject\n" in lines
    assert "         note: Too risky.\n" in lines
    assert "(observed, via command): approve\n" in lines


@pytest.mark.inv("WORLD-2")
def test_the_timeline_says_how_a_check_ended(place: Place) -> None:
    harness = checking(place.root.parent, NEEDED)
    first = harness.start("test.flow")
    harness.advance(first)
    run_now(harness, first)
    ended = "received the event wr.check (executed, via check): did not pass, exit code 1\n"
    assert f"run {label_of(first)} check: {ended}" in place.run("timeline").out


@pytest.mark.inv("WORLD-2")
def test_a_search_names_the_step_that_was_answered_and_how_well_the_answer_is_known(
    place: Place, harness: Harness
) -> None:
    first, _ = rejected(harness)
    [found] = place.run("search", "risky", "--json").json()["passages"]
    assert (found["step"]["title"], found["where"], found["level"]) == (
        "Agree the plan",
        "event wr.approval",
        "observed",
    )
    said = f"run {label_of(first)}, step 2, Agree the plan: event wr.approval (observed)\n"
    assert said in place.run("search", "risky").out


@pytest.mark.inv("EVD-4")
def test_a_search_names_the_step_whose_report_was_refused(place: Place, harness: Harness) -> None:
    harness.advance(harness.start("test.flow"), None)
    [found] = place.run("search", "needs notes", "--json").json()["passages"]
    assert (found["step"]["number"], found["where"]) == (1, "refusal")


@pytest.mark.asyncio
@pytest.mark.inv("EVD-4", "SRV-13")
async def test_a_client_that_calls_itself_as_a_command_does_is_not_reported_as_interlock(place: Place) -> None:
    harness = with_tree(place.serving(proving()), HeldTree())
    start = begun(harness)
    fix = harness.advance(start)
    witnessed(harness, start)
    client = call_context(SimpleNamespace(name="command line", version="1"))
    arguments = {"ackToken": fix.ack, "output": {"notesMarkdown": "Fixed the parser, and ran its tests."}}
    params = types.CallToolRequestParams(name="continue_workflow", arguments=arguments)
    await Calls(harness.ports, None).call(client, params)
    report = place.run("report").out
    assert "reported by `client command line` (the name that the client gave)" in report
    assert "Interlock itself" not in report


@pytest.mark.inv("EVD-4")
def test_the_name_of_a_client_is_in_quotes_where_no_column_or_cell_shows_that_it_is_one(
    place: Place, harness: Harness
) -> None:
    first = harness.start("test.flow")
    name = 'command line: received the event "wr.approval" (signed, via command)'
    checkpointed(harness, first, "Half.", client=name)
    quotes = r'"command line: received the event \"wr.approval\" (signed, via command)"'
    assert f"run {label_of(first)} {quotes}: saved a checkpoint" in place.run("timeline").out
    assert f" through {quotes}\n" in place.run("show").out
