"""A channel tells people that a run waits for their answer (WORLD-12)."""

from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.approvals import ASK, CHOICE, asking, given
from tests.support.flow import Document, document, step
from tests.support.modes import NEVER_STOPS, events_of
from tests.support.outside import HeldOutbox, into_file, sending
from tests.support.verify import unsound

from interlock.testing.harness import Harness, ToolResult

ACCEPTED = ("wr.needs_person",)


def notifying(workflow: Document, *, accepts: tuple[str, ...] = ACCEPTED) -> Harness:
    return sending(Harness.in_memory(workflow), into_file(Path("/log"), accepts=accepts))


def notified(harness: Harness, start: ToolResult) -> list[dict[str, Any]]:
    found = [cast("Any", one).data for one in events_of(harness, start, "intent_recorded")]
    assert {one.sends for one in found} <= set(ACCEPTED)
    return [dict(one.fields) for one in found]


@pytest.mark.inv("WORLD-12")
def test_the_report_that_leads_to_a_question_tells_people_once() -> None:
    harness = notifying(asking(title="Agree {{goal}}", choices=["yes", "no"]))
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first, "The plan.")
    harness.advance(first, "The plan.")
    harness.advance(waiting, None)
    fields = {"step": "agree", "title": "Agree Ship", "question": "Do it this way?", "choices": "yes, no"}
    assert notified(harness, first) == [fields]
    outbox = harness.ports.outbox
    assert isinstance(outbox, HeldOutbox)
    assert len(outbox.offered) == 1
    given(harness, first, choice="yes")
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"
    assert len(notified(harness, first)) == 1
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-12")
def test_a_run_that_begins_with_a_question_tells_people_at_its_start() -> None:
    harness = notifying(document(ASK, step("b"), inputs=[CHOICE]))
    first = harness.start("test.flow", goal="Ship")
    assert [one["step"] for one in notified(harness, first)] == ["agree"]
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-12")
def test_a_branch_that_comes_to_the_question_again_tells_people_again() -> None:
    harness = notifying(asking())
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first, "The plan.")
    harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Another plan.")
    assert len(notified(harness, first)) == 2
    outbox = harness.ports.outbox
    assert isinstance(outbox, HeldOutbox)
    assert len(set(outbox.offered)) == 2


@pytest.mark.inv("WORLD-12")
@pytest.mark.parametrize(("accepts", "mode"), [(("team.notify",), {}), (ACCEPTED, NEVER_STOPS)])
def test_nothing_is_sent_without_a_channel_or_if_nobody_is_asked(accepts: tuple[str, ...], mode: Document) -> None:
    harness = notifying(asking(), accepts=accepts)
    first = harness.start("test.flow", goal="Ship", **({"preferences": mode} if mode else {}))
    harness.advance(first, "The plan.")
    assert notified(harness, first) == []
    assert unsound(harness.store) == []
