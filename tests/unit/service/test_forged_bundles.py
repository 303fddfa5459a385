"""Bundles of somebody who knows how: each digest is good, and what the log says did not happen."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import ASK, asking, given
from tests.support.bundles import exported, imported, reattested, value_of
from tests.support.checks import CHECK, GREEN, checking, run_now
from tests.support.flow import document, step
from tests.support.outside import a_source, with_sources
from tests.support.verify import unsound

from interlock.engine.request import Request
from interlock.kernel.errors import Refusal
from interlock.service.outside.signatures import SigningKey
from interlock.service.trust import approve
from interlock.testing.harness import Harness

SHOWN, FORGED = "Delete only the temporary table.", "Delete all tables."


def ended(*_: object) -> bool:
    """Take the place of an advance: its process ended before."""
    return False


def with_other_notes(data: bytes) -> bytes:
    """Return a bundle in which other notes were reported than those that the person was shown."""
    value = value_of(data)
    events: list[dict[str, Any]] = value["session"]["events"]
    for event in events:
        if event["kind"] == "node_output_appended" and event["data"]["payload"].get("notesMarkdown") == SHOWN:
            event["data"]["payload"]["notesMarkdown"] = FORGED
        if event["data"].get("requestDigest") == Request(notes=SHOWN).digest():
            event["data"]["requestDigest"] = Request(notes=FORGED).digest()
    return reattested(value)


@pytest.mark.damages
@pytest.mark.inv("APPR-8", "WORLD-11")
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_signed_answer_does_not_count_for_what_its_person_was_not_shown(
    monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    source, private = a_source("wr.approval")
    workflow = asking(show=["notes.a"], assurance="signed")
    theirs, here = (with_sources(Harness.in_memory(workflow), source) for _ in range(2))
    first = theirs.start("test.flow", goal="Ship")
    theirs.advance(first, SHOWN)
    with monkeypatch.context() as killed:
        if not is_taken:
            killed.setattr(approve, "advance_waiting", ended)
        assert not isinstance(given(theirs, first, key=SigningKey(source="ci", private_key=private)), Refusal)
    honest = exported(theirs, theirs.session_of(first)).data
    for data, is_honest in ((honest, True), (with_other_notes(honest), False)):
        restored = imported(here, data).restored
        looked = here.call("continue_workflow", restored.ways_on[0].next_call.arguments)
        if is_taken:
            assert [one.code for one in unsound(here.store)] == ([] if is_honest else ["decision_mismatch"])
        else:
            after = here.advance(looked, None)
            assert after["pending"]["stepId"] == ("b" if is_honest else "agree")
            assert unsound(here.store) == []


@pytest.mark.inv("APPR-8", "VERIFY-1")
def test_an_answer_to_a_result_verifies_after_each_import_that_marks_the_result(tmp_path: Path) -> None:
    workflow = document(step("a"), CHECK, {**ASK, "show": ["check.tests"]}, step("b"), inputs=[GREEN])
    (tmp_path / "here").mkdir()
    here = checking(tmp_path / "here", workflow)
    there, further = Harness.in_memory(workflow), Harness.in_memory(workflow)
    (tmp_path / "here" / "project" / "passes").touch()
    first = here.start("test.flow", goal="Ship")
    here.advance(first, "Did it.")
    run_now(here, first)
    before = exported(here, here.session_of(first)).data
    assert not isinstance(given(here, first), Refusal)
    taken = imported(there, exported(here, here.session_of(first)).data).restored
    asked = imported(there, before).restored
    looked = there.call("continue_workflow", asked.ways_on[0].next_call.arguments)
    assert looked["pending"]["stepId"] == "agree"
    answer = given(there, looked)
    assert not isinstance(answer, Refusal)
    assert answer.is_advanced
    for session in (taken.session, asked.session):
        imported(further, exported(there, session).data)
    assert [unsound(one.store) for one in (here, there, further)] == [[], [], []]
