"""Questions to a person after their time is over: nobody is asked any more, and each place says what follows."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.approvals import asking, given, replying
from tests.support.flow import Document, document, step
from tests.support.inbox import inbox_in
from tests.support.modes import NEVER_STOPS
from tests.support.verify import unsound

from interlock.engine.answer.model import HumanInputRequired
from interlock.engine.gates import ApprovalContext
from interlock.engine.request import Request
from interlock.kernel.errors import Refusal
from interlock.record.short_tokens import decode_token
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.continue_workflow import ContinueCommand, continue_workflow
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import CounterClock, FixedKeyRing, Harness, ToolResult

DAY_MS = 24 * 3600 * 1000
REDO = "To ask again, the step before it, `Step a`, is done again on a new branch."
ON = "The run continues without an answer, with the next call of its agent."
ALONE = "No step before it can be done again, so only a new run asks again."


def at_the_question(body: Document, **start: Any) -> tuple[Harness, CounterClock, ToolResult, ToolResult]:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), body, clock=clock, keys=FixedKeyRing())
    first = harness.start("test.flow", goal="Ship", **start)
    waiting = first if "waiting" in first.structure else harness.advance(first, "The plan.")
    return harness, clock, first, waiting


def question_to(harness: Harness, waiting: ToolResult) -> bool:
    """Say whether a client that can ask is told to ask."""
    command = ContinueCommand(
        tokens=SentTokens(argument="ackToken", token=decode_token(waiting.ack)),
        request=Request(asking=ApprovalContext(client_can=True)),
    )
    return isinstance(continue_workflow(harness.ports, command), HumanInputRequired)


@pytest.mark.inv("APPR-9")
@pytest.mark.parametrize("is_rejected", [False, True])
def test_an_expired_question_asks_nobody_and_leads_to_the_step_before_it(*, is_rejected: bool) -> None:
    harness, clock, first, waiting = at_the_question(asking(expires="24h"))
    if is_rejected:
        assert not isinstance(given(harness, first, is_approved=False, note="No."), Refusal)
    assert question_to(harness, waiting)
    clock.skip_ms(DAY_MS)
    assert not question_to(harness, waiting)
    shown = harness.rehydrate(waiting)
    held = harness.advance(waiting, None)
    for answer in (shown, held):
        assert f"The question has expired: no answer counts any more. {REDO}" in answer["waiting"]["how"]
        assert "interlock approve" not in answer.text
        assert ("So far the answer is 'reject'" in answer.text) is is_rejected
        assert answer["nextIntent"] == "rehydrate_only"
        assert "Next, call `continue_workflow` to see the step before it" in answer.text
    [item] = inbox_in(harness)
    assert (item.kind, item.commands) == ("expired", (REDO,))
    assert "(expired)" in item.title
    refusal = given(harness, first)
    assert isinstance(refusal, Refusal)
    assert refusal.suggestion == REDO
    earlier = harness.call(held.structure["nextCall"]["tool"], dict(held["nextCall"]["arguments"]))
    again = harness.advance(str(earlier["fork"]["ackToken"]), "Another plan.")
    assert "interlock approve" in again.text
    given(harness, first)
    assert harness.advance(again, None)["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []


@pytest.mark.inv("APPR-9")
def test_an_expired_question_whose_answer_is_read_continues_with_the_next_call() -> None:
    body = asking(expires="24h", set=[{"key": "choice", "from": "event.choice"}])
    harness, clock, _, waiting = at_the_question(body)
    clock.skip_ms(DAY_MS)
    shown = harness.rehydrate(waiting)
    assert ON in shown["waiting"]["how"]
    assert inbox_in(harness)[0].commands == (ON,)
    assert harness.advance(shown, None)["pending"]["stepId"] == "b"


@pytest.mark.inv("APPR-9")
def test_an_expired_question_of_a_run_that_never_stops_holds_nothing_up() -> None:
    harness, clock, _, waiting = at_the_question(asking(expires="24h"), preferences=NEVER_STOPS)
    clock.skip_ms(DAY_MS)
    assert ON in harness.rehydrate(waiting)["waiting"]["how"]
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"


@pytest.mark.inv("APPR-9")
def test_an_expired_question_of_a_first_step_says_that_only_a_new_run_asks_again() -> None:
    asked = {"type": "approve", "id": "agree", "title": "Agree", "question": "Do it?", "expires": "24h"}
    harness, clock, _, waiting = at_the_question(document(asked, step("b")))
    clock.skip_ms(DAY_MS)
    assert ALONE in harness.advance(waiting, None).text
    assert inbox_in(harness)[0].commands == (ALONE,)


@pytest.mark.inv("APPR-9", "ADV-5")
def test_the_repeated_report_of_the_step_before_it_is_answered_as_it_was() -> None:
    harness, clock, first, waiting = at_the_question(asking(expires="24h"))
    clock.skip_ms(DAY_MS)
    assert harness.advance(first, "The plan.") == waiting


@pytest.mark.inv("APPR-9")
def test_an_answer_that_a_person_began_before_the_end_of_the_time_is_not_recorded_after_it() -> None:
    harness, clock, _, waiting = at_the_question(asking(expires="24h"))
    assert question_to(harness, waiting)
    clock.skip_ms(DAY_MS)
    late = replying(harness, "accept").advance(waiting, None)
    assert REDO in late.text
    assert replace(harness, asking=ApprovalContext(client_can=True)).advance(waiting, None).text == late.text
