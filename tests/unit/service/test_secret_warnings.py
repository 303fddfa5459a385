"""The warning about secrets in a context: with the call that sent one, in both channels, and on its replay."""

import json

import pytest

from interlock.record.events import ContextSetEvent
from interlock.testing.harness import Harness, ToolResult, linear_workflow

VALUE = "hunter2-and-more"
CODE = "LOOKS_LIKE_SECRET"


def said(answer: ToolResult) -> str:
    return json.dumps(answer.structure) + answer.text


def test_a_start_with_a_secret_warns_in_both_channels_and_stores_it(harness: Harness) -> None:
    answer = harness.start("test.abc", context={"deploy": {"password": VALUE}})
    assert answer.warnings == [CODE]
    assert answer["warnings"][0]["message"] in answer.text
    assert "`deploy.password`" in answer.text
    assert VALUE not in said(answer)
    stored = [event for event in harness.events(harness.session_of(answer)) if isinstance(event, ContextSetEvent)]
    assert stored[0].data.context == {"deploy": {"password": VALUE}}


def test_a_start_without_a_secret_does_not_warn(harness: Harness) -> None:
    assert harness.start("test.abc", goal="Rotate the token", context={"token": "$DEPLOY_TOKEN"}).warnings == []


@pytest.mark.inv("ADV-5", "ANS-19")
def test_an_advance_that_brings_a_secret_warns_and_its_replay_says_the_same(harness: Harness) -> None:
    first = harness.start("test.abc")
    answer = harness.advance(first, context={"apiKey": VALUE})
    assert answer.warnings == [CODE]
    assert VALUE not in said(answer)
    again = harness.advance(first, context={"apiKey": VALUE})
    assert (again.structure, again.text) == (answer.structure, answer.text)
    changed = harness.advance(first, context={"apiKey": "another"})
    assert changed.warnings == ["REPLAY_PAYLOAD_IGNORED", CODE]


def test_a_refused_attempt_that_brings_a_secret_warns(harness: Harness) -> None:
    answer = harness.advance(harness.start("test.abc"), None, context={"apiKey": VALUE})
    assert answer["kind"] == "blocked"
    assert answer.warnings == [CODE]


def test_only_the_call_that_sent_it_is_warned(harness: Harness) -> None:
    first = harness.start("test.abc", context={"apiKey": VALUE})
    second = harness.advance(first)
    assert second.warnings == []
    assert harness.rehydrate(second).warnings == []
    assert harness.rehydrate(harness.start("test.abc", context={"apiKey": VALUE})).warnings == []


def test_removing_the_secret_is_no_alarm() -> None:
    harness = Harness.in_memory(linear_workflow("test.ab", "a", "b"))
    first = harness.start("test.ab", context={"apiKey": VALUE})
    assert harness.advance(first, context={"apiKey": None}).warnings == []


NOTES = f"Deployed.\n\npassword: {VALUE}2\n"


@pytest.mark.inv("ADV-5", "ANS-20")
def test_notes_with_a_secret_are_warned_of_by_line_and_the_replay_says_the_same(harness: Harness) -> None:
    first = harness.start("test.abc")
    answer = harness.advance(first, NOTES)
    assert answer.warnings == [CODE]
    assert "Line 3 of `output.notesMarkdown`" in answer.text
    assert VALUE not in said(answer)
    again = harness.advance(first, NOTES)
    assert (again.structure, again.text) == (answer.structure, answer.text)
    assert harness.advance(answer, "Done.").warnings == []


def test_a_refused_attempt_with_a_secret_in_its_notes_warns() -> None:
    contract = {"contractRef": "wr.contracts.loop_control"}
    document = linear_workflow("test.ab", {"id": "a", "title": "A", "prompt": "A.", "outputContract": contract}, "b")
    harness = Harness.in_memory(document)
    answer = harness.advance(harness.start("test.ab"), NOTES)
    assert answer["kind"] == "blocked"
    assert answer.warnings == [CODE]


@pytest.mark.inv("CHK-2")
def test_a_checkpoint_with_a_secret_in_its_notes_warns_and_the_next_one_does_not(harness: Harness) -> None:
    first = harness.start("test.abc")
    kept = harness.checkpoint(first, NOTES)
    assert kept.warnings == [CODE]
    assert VALUE not in said(kept)
    following = harness.checkpoint(kept, "Half done.")
    assert following.warnings == []
    again = harness.checkpoint(first, NOTES)
    assert (again.structure, again.text) == (kept.structure, kept.text)


def test_a_secret_behind_the_cut_of_long_notes_is_found(harness: Harness) -> None:
    long = f"{'x' * 5_000}\n{NOTES}"
    assert harness.advance(harness.start("test.abc"), long).warnings == ["NOTES_TRUNCATED", CODE]
    assert harness.checkpoint(harness.start("test.abc"), long).warnings == ["NOTES_TRUNCATED", CODE]


def test_a_goal_that_gives_a_secret_away_warns(harness: Harness) -> None:
    answer = harness.start("test.abc", goal=f"Log in with password: {VALUE}2")
    assert answer.warnings == [CODE]
    assert "`goal` in `context`" in answer.text
