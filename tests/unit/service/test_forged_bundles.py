"""Bundles of somebody who knows how: each digest is good, and what the log says did not happen."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import ASK, asking, given, recorded_alone
from tests.support.bundles import exported, imported, reattested, refused, value_of
from tests.support.checks import CHECK, GREEN, NEEDED, checking, run_now
from tests.support.flow import document, step
from tests.support.outside import a_source, with_sources
from tests.support.proofs import HeldTree, begun, proof, provable, witnessed
from tests.support.verify import unsound

from interlock.engine.request import Request
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import NodeId, checkpoint_attempt, node_of_attempt
from interlock.record.content import REDACTED
from interlock.record.world import APPROVAL, RECEIPT, RECORDED_FIELDS, TREE
from interlock.record.world import CHECK as CHECK_KIND
from interlock.service.audit.verify import not_compared, verify_with_words
from interlock.service.contracts.status import read_json
from interlock.service.outside.signatures import SigningKey
from interlock.service.transfer import bundle_check
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHOWN, FORGED = "Delete only the temporary table.", "Delete all tables."


def unchecked(*_: object) -> None:
    """Take the place of a check, so that a bundle comes in that another build accepted."""


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
def test_a_signed_answer_does_not_count_for_what_its_person_was_not_shown(*, is_taken: bool) -> None:
    source, private = a_source("wr.approval")
    workflow = asking(show=["notes.a"], assurance="signed")
    theirs, here = (with_sources(Harness.in_memory(workflow), source) for _ in range(2))
    first = theirs.start("test.flow", goal="Ship")
    theirs.advance(first, SHOWN)
    key = SigningKey(source="ci", private_key=private)
    if is_taken:
        assert not isinstance(given(theirs, first, key=key), Refusal)
    else:
        recorded_alone(theirs, first, key)
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


Body = dict[str, Any]


def a_run() -> tuple[Harness, bytes]:
    """Return the bundle of a run with a step that is done and a checkpoint, whose second step is pending."""
    harness = Harness.in_memory(linear_workflow("test.flow", "a", "b", "c"))
    first = harness.start("test.flow", goal="Ship")
    harness.call("checkpoint_workflow", {"ackToken": first["ackToken"], "output": {"notesMarkdown": "So far."}})
    harness.advance(first, "Did a.")
    return harness, exported(harness, harness.session_of(first)).data


def of_kind(events: list[Body], kind: str) -> Body:
    """Return a copy of the last event of a kind, which a new event is made of."""
    return json.loads(json.dumps(next(one for one in reversed(events) if one["kind"] == kind)))


def with_append(value: Body, *events: Body) -> bytes:
    """Return a bundle's value with one more append."""
    held, manifest = value["session"]["events"], value["session"]["manifest"]
    for event in events:
        event["eventId"] = f"evt_{len(held):026d}"
        held.append(event)
    manifest.append({"kind": "segment_closed", "lastEventIndex": len(held) - 1})
    return reattested(value)


def forged_context(events: list[Body]) -> list[Body]:
    event = of_kind(events, "context_set")
    event["data"] |= {"contextId": "ctx_" + "0" * 26, "context": {"goal": "Forged"}}
    return [event]


def forged_preferences(events: list[Body]) -> list[Body]:
    event = of_kind(events, "preferences_changed")
    event["data"] |= {
        "changeId": "prefchg_" + "0" * 26,
        "source": "user",
        "delta": [{"key": "autonomy", "value": "full_auto_never_stop"}],
        "effective": {"autonomy": "full_auto_never_stop", "riskPolicy": "conservative"},
    }
    return [event]


def forged_notes(events: list[Body]) -> list[Body]:
    event = of_kind(events, "node_output_appended")
    event["data"] |= {"outputId": "out_" + "0" * 26, "payload": {"payloadKind": "notes", "notesMarkdown": FORGED}}
    return [event]


def forged_checkpoint(events: list[Body]) -> list[Body]:
    """A checkpoint whose output is one of the attempt that made its node."""
    made = next(one for one in events if one["data"].get("nodeKind") == "checkpoint")
    node = NodeId(made["data"]["parentNodeId"])
    event, output = json.loads(json.dumps(made)), forged_notes(events)[0]
    event["scope"]["nodeId"] = node_of_attempt(checkpoint_attempt(node, 1))
    output["scope"]["nodeId"] = node
    return [event, output]


def skipped_checkpoint(events: list[Body]) -> list[Body]:
    """A checkpoint that is not the next one of its node."""
    made = next(one for one in events if one["data"].get("nodeKind") == "checkpoint")
    event = json.loads(json.dumps(made))
    event["scope"]["nodeId"] = node_of_attempt(checkpoint_attempt(NodeId(made["data"]["parentNodeId"]), 7))
    return [event]


def an_observation(events: list[Body], scope: Body | None, key: str = "redacted_from") -> Body:
    event = of_kind(events, "node_output_appended")
    value = {"type": "short_string", "value": "sess_" + "0" * 26}
    event |= {"kind": "observation_recorded", "data": {"key": key, "value": value, "confidence": "high"}}
    event.pop("scope")
    return event if scope is None else event | {"scope": scope}


def forged_redaction(events: list[Body]) -> list[Body]:
    """The mark of a redacted copy, as one of a run."""
    return [an_observation(events, {"runId": of_kind(events, "node_created")["scope"]["runId"]})]


def forged_position(events: list[Body]) -> list[Body]:
    return [an_observation(events, None, "git_branch")]


def a_redaction_in_company(events: list[Body]) -> list[Body]:
    return [an_observation(events, None), an_observation(events, None, "git_branch")]


FOREIGN = (
    forged_context,
    forged_preferences,
    forged_notes,
    forged_checkpoint,
    skipped_checkpoint,
    forged_redaction,
    forged_position,
    a_redaction_in_company,
)
"""Appends without a start or an attempt that no call makes."""


@pytest.mark.damages
@pytest.mark.inv("BND-4", "VERIFY-7")
@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda one: one.__name__)
def test_an_append_that_no_call_makes_is_no_part_of_a_history(
    monkeypatch: pytest.MonkeyPatch, foreign: Callable[[list[Body]], list[Body]]
) -> None:
    harness, data = a_run()
    value = value_of(data)
    changed = with_append(value, *foreign(value["session"]["events"]))
    refusal = refused(Harness.in_memory(), changed)
    assert refusal.code is ErrorCode.BUNDLE_EVENT_ORDER_INVALID
    assert "no append holds this" in refusal.message
    monkeypatch.setattr(bundle_check, "_check_appends", unchecked)
    imported(harness, changed)
    (found,) = unsound(harness.store)
    assert found.code == "chain_broken"
    assert "no append holds this" in found.found


@pytest.mark.inv("BND-4", "VERIFY-7")
def test_a_run_cannot_jump_over_a_step() -> None:
    _, data = a_run()
    value = value_of(data)
    events = value["session"]["events"]
    node, edge = of_kind(events, "node_created"), of_kind(events, "edge_created")
    last, made = node["scope"]["nodeId"], "node_" + "0" * 26
    node["scope"]["nodeId"] = edge["data"]["toNodeId"] = made
    node["data"]["parentNodeId"] = edge["data"]["fromNodeId"] = last
    refusal = refused(Harness.in_memory(), with_append(value, node, edge))
    assert refusal.code is ErrorCode.BUNDLE_EVENT_ORDER_INVALID
    assert "made by no recorded attempt" in refusal.message


@pytest.mark.damages
@pytest.mark.inv("VERIFY-7")
@pytest.mark.parametrize("is_start", [False, True])
def test_a_start_or_an_attempt_observes_only_where_it_is_made(
    monkeypatch: pytest.MonkeyPatch, *, is_start: bool
) -> None:
    harness, data = a_run()
    value = value_of(data)
    events, manifest = value["session"]["events"], value["session"]["manifest"]
    bounds = [one for one in manifest if one["kind"] == "segment_closed"]
    event = an_observation(events, None) | {"eventId": "evt_" + "0" * 26}
    place = bounds[0 if is_start else -1]["lastEventIndex"] + 1
    events.insert(place, event)
    for one in bounds if is_start else bounds[-1:]:
        one["lastEventIndex"] += 1
    changed = reattested(value)
    assert refused(Harness.in_memory(), changed).code is ErrorCode.BUNDLE_EVENT_ORDER_INVALID
    monkeypatch.setattr(bundle_check, "_check_appends", unchecked)
    imported(harness, changed)
    assert [one.code for one in unsound(harness.store)] == ["chain_broken"]


@pytest.mark.damages
@pytest.mark.inv("EVD-13", "VERIFY-7")
def test_only_its_own_mark_makes_a_session_a_redacted_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    harness, data = a_run()
    value = value_of(data)
    monkeypatch.setattr(bundle_check, "_check_appends", unchecked)
    for event in value["session"]["events"]:
        if event["kind"] == "context_set":
            event["data"]["context"] = {"goal": REDACTED}
        if event["kind"] == "advance_recorded":
            event["data"]["requestDigest"] = Request(notes=FORGED).digest()
    session = imported(harness, with_append(value, *forged_redaction(value["session"]["events"]))).restored.session
    reader = harness.ports.read.reader
    assert verify_with_words(reader, harness.ports.read.plans, session).redacted is None
    assert not_compared(reader, session, reader.appends(session)) == frozenset()
    assert {one.code for one in unsound(harness.store)} == {"hash_mismatch", "chain_broken"}


def with_an_answer(_: Path) -> tuple[Harness, ToolResult]:
    harness = Harness.in_memory(asking())
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first, SHOWN)
    given(harness, first, is_approved=False, note="No.")
    return harness, first


def with_a_result(root: Path) -> tuple[Harness, ToolResult]:
    harness = checking(root, NEEDED)
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first)
    run_now(harness, first)
    return harness, first


def with_a_receipt(_: Path) -> tuple[Harness, ToolResult]:
    tree = HeldTree()
    harness = provable(proof(tree="unchanged"), tree=tree)
    first = begun(harness)
    fix = harness.advance(first, "The plan.")
    witnessed(harness, first)
    tree.content = "two"
    harness.advance(fix, "All tests pass.")
    return harness, first


@pytest.mark.inv("WORLD-2", "WORLD-11")
@pytest.mark.parametrize(
    ("recorded", "kind"),
    [(with_an_answer, APPROVAL), (with_a_result, CHECK_KIND), (with_a_receipt, RECEIPT), (with_a_receipt, TREE)],
)
def test_an_event_of_interlock_without_what_it_records_is_no_part_of_a_history(
    tmp_path: Path, recorded: Callable[[Path], tuple[Harness, ToolResult]], kind: str
) -> None:
    harness, first = recorded(tmp_path)
    value = value_of(exported(harness, harness.session_of(first)).data)
    (event, *_) = (one for one in value["session"]["events"] if one["data"].get("event") == kind)
    fields, whole = event["data"]["fields"], dict(event["data"]["fields"])
    for field in RECORDED_FIELDS[kind]:
        fields.clear()
        fields.update({name: one for name, one in whole.items() if name != field})
        for other in ({}, {field: 1 if isinstance(whole[field], str) else "1"}):
            fields.update(other)
            refusal = refused(Harness.in_memory(), reattested(value))
            assert refusal.code is ErrorCode.BUNDLE_EVENT_ORDER_INVALID
            assert f"{kind} has no field `{field}`" in refusal.message


def with_other_artifact(data: bytes, text: str) -> bytes:
    """Return a bundle whose only artifact is another text."""
    value = value_of(data)
    session = value["session"]
    payloads = (one["data"].get("payload", {}) for one in session["events"])
    (digest,) = (one["sha256"] for one in payloads if "sha256" in one)
    session["artifacts"][digest] = {"encoding": "utf-8", "data": text}
    return reattested(json.loads(json.dumps(value).replace(digest, digest_of_bytes(text.encode()))))


@pytest.mark.damages
@pytest.mark.inv("BND-5", "REC-1")
@pytest.mark.parametrize("text", ["", "[" * 100_000, "null", "[]", '"text"', "{}", '{"kind":7}'])
def test_an_artifact_that_is_none_is_named_and_hides_nothing(text: str) -> None:
    harness = Harness.in_memory(linear_workflow("test.two", "a", "b"))
    first = harness.start("test.two")
    harness.advance(first, None, output={"notesMarkdown": "Did it.", "artifacts": [{"kind": "mine"}]})
    data = with_other_artifact(exported(harness, harness.session_of(first)).data, text)
    here = Harness.in_memory()
    restored = imported(here, data).restored
    looked = here.call("continue_workflow", restored.ways_on[0].next_call.arguments)
    assert "Did it." in looked.text
    assert f"- `{7 if '7' in text else 'artifact'}` {digest_of_bytes(text.encode())[:15]}" in looked.text
    assert read_json(here.store, digest_of_bytes(text.encode())) == ({"kind": 7} if "7" in text else {})
