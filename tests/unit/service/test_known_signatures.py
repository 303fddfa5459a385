"""How well a signed event is known where its key is not configured."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.approvals import asking, recorded_alone
from tests.support.bundles import exported, imported
from tests.support.inbox import inbox_in
from tests.support.outside import a_source, sent, signed_event, waiting_for, with_sources
from tests.support.verify import unsound

from interlock.kernel.ids import SessionId
from interlock.service.outside.signatures import SigningKey
from interlock.service.report.resource import session_record
from interlock.service.tools.send_event import EventReport
from interlock.testing.harness import Harness, ToolResult

DOCUMENT = waiting_for(assurance="claimed")


def to_the_end(harness: Harness, answer: ToolResult) -> ToolResult:
    while not answer["isComplete"]:
        answer = harness.advance(answer, None if answer.structure.get("waiting") else "Looked, and found it in order.")
    return answer


def record_of(harness: Harness, session: SessionId) -> str:
    found = session_record(harness.ports.read, session, harness.ports.signing_keys)
    assert isinstance(found, str)
    return found


@pytest.mark.inv("PROOF-7", "WORLD-11")
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("is_taken_there", [True, False])
def test_a_signature_with_a_key_that_is_not_configured_here_is_a_claim(*, is_known: bool, is_taken_there: bool) -> None:
    source, key = a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(DOCUMENT), source)
    first = theirs.start("test.flow", goal="Ship")
    event: dict[str, Any] = signed_event(theirs, first, key).to_json()
    assert isinstance(sent(theirs, first, event.pop("id"), **event), EventReport)
    if is_taken_there:
        assert to_the_end(theirs, first)["restsOn"] == {"claimed": 2, "observed": 0, "signed": 1, "executed": 0}
    here = with_sources(Harness.in_memory(DOCUMENT), *([source] if is_known else []))
    restored = imported(here, exported(theirs, theirs.session_of(first)).data).restored
    ended = to_the_end(here, here.call("continue_workflow", restored.ways_on[0].next_call.arguments))
    assert (ended["restsOn"]["claimed"], ended["restsOn"]["signed"]) == ((2, 1) if is_known else (3, 0))
    assert here.rehydrate(ended)["restsOn"] == ended["restsOn"]
    level, by = ("signed", "`ci`:") if is_known else ("claimed", "`ci` with a key that is not configured here:")
    assert f"({level}, imported, via command), signed by {by}" in record_of(here, restored.session)
    assert unsound(here.store) == []


@pytest.mark.inv("PROOF-7")
def test_a_view_that_knows_no_keys_calls_no_step_signed() -> None:
    source, key = a_source("ci.finished")
    harness = with_sources(Harness.in_memory(DOCUMENT), source)
    first = harness.start("test.flow", goal="Ship")
    event: dict[str, Any] = signed_event(harness, first, key).to_json()
    assert isinstance(sent(harness, first, event.pop("id"), **event), EventReport)
    end = to_the_end(harness, first)
    without = replace(harness, ports=replace(harness.ports, sources={}))
    assert without.rehydrate(end)["restsOn"] == {"claimed": 3, "observed": 0, "signed": 0, "executed": 0}
    unknown = session_record(harness.ports.read, harness.session_of(first))
    assert isinstance(unknown, str)
    assert "What the steps rest on: 3 claimed" in unknown


@pytest.mark.inv("WORLD-10")
def test_the_step_and_the_inbox_name_the_unknown_key_of_a_signed_answer() -> None:
    source, key = a_source("wr.approval")
    document = asking(assurance="signed")
    theirs, here = with_sources(Harness.in_memory(document), source), Harness.in_memory(document)
    first = theirs.start("test.flow", goal="Ship")
    theirs.advance(first, "The plan.")
    recorded_alone(theirs, first, SigningKey(source="ci", private_key=key))
    restored = imported(here, exported(theirs, theirs.session_of(first)).data).restored
    shown = here.call("continue_workflow", restored.ways_on[0].next_call.arguments)
    named = f'"ci" signed is recorded, but its key {source.public_key} is not configured here.'
    for text in (shown.text, here.advance(shown, None).text):
        assert "So far the answer is 'approve' (claimed, imported)." in text
        assert named in text
    [item] = inbox_in(here)
    assert item.title.endswith("(answered before: approve, claimed, imported, via command)")
    assert named in item.text
    [known] = inbox_in(with_sources(here, source))
    assert "signed, imported" in known.title
    assert "not configured" not in known.text
