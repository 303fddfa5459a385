"""Events of a bundle take the id of no event that is known better here."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import asking, given
from tests.support.bundles import exported, imported, reattested, refused, value_of
from tests.support.checks import NEEDED, checking, run_now
from tests.support.flow import Document
from tests.support.outside import a_source, artifact, sent, signed_event, waiting_for, with_sources
from tests.support.verify import unsound

from interlock.kernel.errors import ErrorCode
from interlock.service.outside.signatures import SigningKey
from interlock.service.tools.send_event import EventReport
from interlock.service.transfer.bundle_check import checked_bundle
from interlock.service.trust.approve import ApprovalReport
from interlock.service.trust.run_check import CheckReport
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import CounterClock, FixedKeyRing, Harness, ToolResult


def looked_at(here: Harness, data: bytes) -> ToolResult:
    """Import a bundle of one run, and return the answer that shows its current step."""
    return here.call("continue_workflow", imported(here, data).restored.ways_on[0].next_call.arguments)


def with_events(data: bytes, *events: tuple[str, str, Document, str, str]) -> bytes:
    """Return a bundle with events about its last node: kind, id with `NODE` for the node, fields, level and way."""
    value = value_of(data)
    held, manifest = value["session"]["events"], value["session"]["manifest"]
    last = next(one for one in reversed(held) if one["kind"] == "node_created")
    for kind, sent_id, fields, assurance, via in events:
        event = {name: member for name, member in last.items() if name not in ("data", "dedupeKey")}
        event |= {"kind": "event_received", "eventId": f"evt_{len(held):026d}"}
        event["data"] = {
            "event": kind,
            "sentId": sent_id.replace("NODE", last["scope"]["nodeId"]),
            "fields": fields,
            "assurance": assurance,
            "via": via,
        }
        held.append(event)
        manifest.append({"kind": "segment_closed", "lastEventIndex": len(held) - 1})
    return reattested(value)


def waiting_bundle(theirs: Harness, *events: tuple[str, str, Document, str, str]) -> bytes:
    """Return the bundle of a run whose second step is pending, with events."""
    first = theirs.start("test.flow", goal="Ship")
    theirs.advance(first, "Did a.")
    return with_events(exported(theirs, theirs.session_of(first)).data, *events)


@pytest.mark.inv("WORLD-2", "WORLD-11")
def test_an_event_of_a_bundle_keeps_out_none_that_is_known_better_here() -> None:
    workflow = waiting_for(assurance="observed")
    theirs, here = (Harness.in_memory(workflow) for _ in range(2))
    first = theirs.start("test.flow", goal="Ship")
    assert isinstance(sent(theirs, first, "build-7"), EventReport)
    looked = looked_at(here, exported(theirs, theirs.session_of(first)).data)
    waiting = here.advance(looked)
    assert here.advance(waiting, None)["pending"]["stepId"] == "ci"
    report = sent(here, looked, "build-7")
    assert isinstance(report, EventReport)
    assert (report.is_new, report.is_advanced) == (True, True)
    again = sent(here, looked, "build-7")
    assert isinstance(again, EventReport)
    assert (again.is_new, again.received.event_id) == (False, report.received.event_id)
    assert checked_bundle(exported(here, here.session_of(looked)).data).banner is None


@pytest.mark.inv("WORLD-2", "WORLD-11")
def test_a_claim_that_a_bundle_has_already_is_not_recorded_again() -> None:
    workflow = waiting_for(assurance="signed")
    theirs, here = Harness.in_memory(workflow), Harness.in_memory(workflow)
    first = theirs.start("test.flow", goal="Ship")
    assert isinstance(sent(theirs, first, "1"), EventReport)
    looked = looked_at(here, exported(theirs, theirs.session_of(first)).data)
    waiting = here.advance(looked)
    answer = here.advance(waiting, None, output={"artifacts": [artifact("1")]})
    assert answer["pending"]["stepId"] == "ci"
    report = sent(here, looked, "1", assurance="claimed")
    assert isinstance(report, EventReport)
    assert (report.is_new, report.level) == (False, "claimed")
    session = here.store.load(here.session_of(looked))
    assert session is not None
    assert len(session.outside.events) == 1


@pytest.mark.inv("WORLD-2", "WORLD-10", "WORLD-11")
def test_an_event_that_another_key_signed_is_another_event() -> None:
    workflow = waiting_for(assurance="signed")
    (fake, fake_key), (real, key) = a_source("ci.finished"), a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(workflow), fake)
    here, further = (with_sources(Harness.in_memory(workflow), real) for _ in range(2))
    first = theirs.start("test.flow", goal="Ship")
    forged: dict[str, Any] = signed_event(theirs, first, fake_key).to_json()
    assert isinstance(sent(theirs, first, forged.pop("id"), **forged), EventReport)
    looked = looked_at(here, exported(theirs, theirs.session_of(first)).data)
    here.advance(looked)
    event: dict[str, Any] = signed_event(here, looked, key).to_json()
    report = sent(here, looked, event.pop("id"), **event)
    assert isinstance(report, EventReport)
    assert (report.is_new, report.is_advanced) == (True, True)
    repeated = sent(here, looked, "1", **event)
    assert isinstance(repeated, EventReport)
    assert (repeated.is_new, repeated.received.event_id) == (False, report.received.event_id)
    looked_at(further, exported(here, here.session_of(looked)).data)
    assert [unsound(one.store) for one in (here, further)] == [[], []]


@pytest.mark.inv("WORLD-10", "WORLD-11")
def test_an_agent_brings_the_event_whose_id_a_bundle_has_with_another_key() -> None:
    workflow = waiting_for(assurance="signed")
    (fake, fake_key), (real, key) = a_source("ci.finished"), a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(workflow), fake)
    here = with_sources(Harness.in_memory(workflow), real)
    first = theirs.start("test.flow", goal="Ship")
    forged: dict[str, Any] = signed_event(theirs, first, fake_key).to_json()
    assert isinstance(sent(theirs, first, forged.pop("id"), **forged), EventReport)
    looked = looked_at(here, exported(theirs, theirs.session_of(first)).data)
    waiting = here.advance(looked)
    event = signed_event(here, looked, key).to_json()
    answered = here.advance(waiting, None, output={"artifacts": [{"kind": "wr.event", **event}]})
    assert answered["pending"]["stepId"] == "b"
    assert "warnings" not in answered.structure


@pytest.mark.inv("APPR-1", "WORLD-11")
@pytest.mark.parametrize("is_signed", [False, True])
def test_an_answer_of_a_bundle_keeps_no_answer_out(*, is_signed: bool) -> None:
    source, private = a_source("wr.approval")
    key = SigningKey(source="ci", private_key=private) if is_signed else None
    workflow = asking(assurance="signed" if is_signed else "observed")
    answer: Document = {"approved": False, "choice": "reject", "note": "", "shown": "x"}
    data = waiting_bundle(Harness.in_memory(workflow), ("wr.approval", "NODE.2", answer, "observed", "command"))
    here = with_sources(Harness.in_memory(workflow), source)
    looked = looked_at(here, data)
    rejected = given(here, looked, is_approved=False, key=key)
    assert isinstance(rejected, ApprovalReport)
    report = given(here, looked, key=key)
    assert isinstance(report, ApprovalReport)
    assert report.is_advanced
    assert unsound(here.store) == []


@pytest.mark.inv("CHECK-3", "WORLD-11")
def test_a_result_of_a_bundle_keeps_no_result_out(tmp_path: Path) -> None:
    result: Document = {"check": "tests", "command": "true", "digest": "sha256:" + "0" * 64, "ended": "exited"}
    result |= {"exit": 1, "output": "", "passed": False, "run": 1, "seconds": 1}
    here = checking(tmp_path, NEEDED)
    looked = looked_at(here, waiting_bundle(here, ("wr.check", "NODE.2", result, "executed", "check")))
    (tmp_path / "project" / "passes").touch()
    report = run_now(here, looked)
    assert isinstance(report, CheckReport)
    assert report.is_advanced


@pytest.mark.inv("WORLD-4", "WORLD-11")
def test_the_time_of_a_step_is_over_although_a_bundle_says_so_too() -> None:
    workflow, clock = waiting_for(timeout="1h"), CounterClock()
    data = waiting_bundle(Harness.in_memory(workflow), ("wr.expired", "NODE", {}, "executed", "clock"))
    here = Harness.over(MemoryStore(), workflow, clock=clock, keys=FixedKeyRing())
    looked = looked_at(here, data)
    assert here.advance(looked, None)["pending"]["stepId"] == "ci"
    clock.skip_ms(24 * 3_600_000)
    assert here.advance(looked, None)["pending"]["stepId"] == "b"
    assert unsound(here.store) == []


@pytest.mark.inv("WORLD-2", "BND-4")
def test_a_bundle_has_a_signed_event_once() -> None:
    source, key = a_source("ci.finished")
    theirs = with_sources(Harness.in_memory(waiting_for()), source)
    first = theirs.start("test.flow", goal="Ship")
    event: dict[str, Any] = signed_event(theirs, first, key).to_json()
    assert isinstance(sent(theirs, first, event.pop("id"), **event), EventReport)
    value = value_of(exported(theirs, theirs.session_of(first)).data)
    held, manifest = value["session"]["events"], value["session"]["manifest"]
    held.append({**held[-1], "eventId": "evt_" + "0" * 26})
    manifest.append({"kind": "segment_closed", "lastEventIndex": len(held) - 1})
    refusal = refused(with_sources(Harness.in_memory(), source), reattested(value))
    assert refusal.code is ErrorCode.BUNDLE_EVENT_ORDER_INVALID
    assert "recorded twice" in refusal.message
