"""Every recorded decision follows again from what came in; where somebody altered the record, the node is named."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.flow import IS_FAST, Document, declared, document, loop, step
from tests.support.modes import NEVER_STOPS, answering, asking, claim, codes, serving, with_artifacts
from tests.support.tampering import Body, Tampering
from tests.support.verify import unsound

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import NodeId, ack_attempt, fork_attempt, node_of_attempt
from interlock.service.audit.proof import prove_session
from interlock.service.audit.verify import (
    Mismatch,
    unfinished_note,
    verify_session,
    verify_with_words,
)
from interlock.service.run.plans import Plans
from interlock.store.local import layout
from interlock.store.local.files import OsFiles
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import Health, SessionUnhealthyError
from interlock.testing.harness import Harness

pytestmark = pytest.mark.damages

Alteration = Callable[[Tampering], NodeId]

WORKFLOW = document(
    step("a", set=[{"key": "seen", "from": "mode"}, {"key": "summary", "value": "set"}]),
    step("quick", when=IS_FAST),
    step("rate", outputContract={"contractRef": "wr.contracts.review_verdict"}, notes="required"),
    loop("twice", step("again"), **{"for": {"count": 2}}),
    step("gate", requireConfirmation=True),
    step("end"),
    inputs=[declared("mode"), declared("seen"), declared("summary"), declared("note")],
)
VERDICT: Document = {
    "kind": "wr.review_verdict",
    "verdict": "minor",
    "confidence": "high",
    "findings": [{"severity": "nit", "summary": "A word."}],
    "summary": "Sound.",
}
DIVERGENCE: Document = {"kind": "wr.workflow_divergence", "reason": "efficiency_skip", "summary": "Done before."}
OBSERVED: Document = {"kind": "wr.capability_observation", "capability": "web_browsing", "status": "available"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a bit of everything: a choice, sets, a refusal, an artifact, a loop, a claim, gaps, preferences."""
    root = tmp_path_factory.mktemp("recorded")
    harness = Harness.on_disk(root, WORKFLOW)
    at = harness.start("test.flow", goal="G", context={"mode": "fast", "note": "n"})
    at = harness.advance(at, "Did a.", context={"note": "m"})
    at = harness.advance(at, None)
    at = harness.advance(at, "Was quick.", output=with_artifacts(DIVERGENCE, OBSERVED, notes="Was quick."))
    at = harness.advance(at, output=with_artifacts(VERDICT), preferences={"riskPolicy": "balanced"})
    at = harness.advance(harness.advance(at), preferences=NEVER_STOPS)
    at = harness.advance(at, None, output=with_artifacts(claim(), notes=None))
    assert harness.advance(at)["isComplete"]
    return root


@pytest.fixture
def root(recorded: Path, tmp_path: Path) -> Path:
    """A copy of that run, which a test may alter."""
    return shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)


def verified(root: Path, **options: bool) -> tuple[Mismatch, ...]:
    """Return what does not verify of the one session that a process finds in a directory."""
    store = LocalStore(root)
    (name,) = store.sessions()
    return verify_session(store, Plans(store), name, **options)


def setting(*path: str | int, to: Any) -> Callable[[Body], None]:
    """Return a change that sets a member, wherever it stands."""

    def change(body: Body) -> None:
        inner: Any = body
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = to

    return change


def altering(kind: str, *path: str | int, to: Any, number: int = 0) -> Alteration:
    return lambda log: log.alter(kind, setting("data", *path, to=to), number=number)


def capturing(*path: str | int, to: Any, number: int = 0) -> Alteration:
    return lambda log: log.alter_capture(setting(*path, to=to), number=number)


def lowering(log: Tampering) -> NodeId:
    """Let a preference be another than the one that was sent."""

    def change(event: Body) -> None:
        event["data"]["delta"][0]["value"] = event["data"]["effective"]["riskPolicy"] = "aggressive"

    return log.alter("preferences_changed", change, number=1)


def rating_otherwise(log: Tampering) -> NodeId:
    """Let an artifact be another than the one that was sent."""

    def change(event: Body) -> None:
        payload = event["data"]["payload"]
        payload["sha256"] = log.refiled(layout.artifact(payload["sha256"]), setting("verdict", to="blocking"))

    return log.alter("node_output_appended", change, number=artifact_number(log, "wr.review_verdict"))


def artifact_number(log: Tampering, kind: str) -> int:
    """Return which of the outputs is an artifact of a kind."""
    outputs = [event for plan in log.plans for event in plan if event["kind"] == "node_output_appended"]
    for number, event in enumerate(outputs):
        payload = event["data"]["payload"]
        is_artifact = payload["payloadKind"] == "artifact_ref"
        if is_artifact and json.loads((log.root / layout.artifact(payload["sha256"])).read_bytes())["kind"] == kind:
            return number
    raise LookupError(kind)


def refusing(log: Tampering) -> NodeId:
    """Let an attempt that was accepted be recorded as refused."""
    blocker = {
        "code": "INVARIANT_VIOLATION",
        "pointer": {"kind": "context_budget"},
        "message": "No.",
        "suggestedFix": "None.",
    }
    return altering("advance_recorded", "outcome", to={"kind": "blocked", "blockers": {"blockers": [blocker]}})(log)


def accepting(log: Tampering) -> NodeId:
    """Let an attempt that was refused be recorded as accepted."""
    outcome = {"kind": "advanced", "toNodeId": log.node_of("advance_recorded", number=1)}
    return altering("advance_recorded", "outcome", to=outcome, number=1)(log)


def elsewhere(log: Tampering) -> NodeId:
    """Let a gap stand on the node before it."""
    root = log.node_of("run_started")
    return log.alter("gap_recorded", setting("scope", "nodeId", to=root))


def opened_by_a_person(log: Tampering) -> NodeId:
    """Let a gate have been opened by a person, where there was a claim."""
    traces = [event for plan in log.plans for event in plan if event["kind"] == "decision_trace_appended"]
    files = [log.root / layout.artifact(event["data"]["captureRef"]) for event in traces]
    number = next(at for at, file in enumerate(files) if "gate" in json.loads(file.read_bytes()))
    return capturing("gate", "openedBy", to="person", number=number)(log)


def read_by_nobody_yet(log: Tampering) -> NodeId:
    """Let a run have been started with another value, which a later decision reads; return that decision's node."""
    altering("context_set", "context", "mode", to="slow")(log)
    return log.node_of("decision_trace_appended")


IN_THE_RECORD: dict[str, tuple[Alteration, str, str]] = {
    "what a decision read": (
        capturing("decisions", 0, "read", 0, "value", to="slow"),
        "decision_mismatch",
        "capture: decisions[0].read[0].value",
    ),
    "how it was decided": (
        capturing("decisions", 0, "verdict", to=False),
        "decision_mismatch",
        "capture: decisions[0].verdict",
    ),
    "the way that was taken": (
        capturing("decisions", 0, "took", to="elsewhere"),
        "decision_mismatch",
        "capture: decisions[0].took",
    ),
    "that there was a decision": (capturing("decisions", to=[]), "decision_mismatch", "capture: decisions[0]"),
    "what was captured as set": (
        capturing("effects", 0, "value", to="slow"),
        "effect_mismatch",
        "capture: effects[0].value",
    ),
    "the outcome of an action": (
        capturing("outcomes", 0, "kind", to="skipped"),
        "effect_mismatch",
        "capture: outcomes[0].kind",
    ),
    "whether a trigger emitted": (
        capturing("triggers", 0, "emitted", to=False),
        "decision_mismatch",
        "capture: triggers[0].emitted",
    ),
    "what a step read": (
        capturing("read", to=[{"path": "mode", "value": 1}]),
        "decision_mismatch",
        "capture: read[0].value",
    ),
    "the manifest of the workflow": (capturing("adapter", to="other"), "decision_mismatch", "capture: adapter"),
    "a member that no version has": (capturing("future", to=1), "decision_mismatch", "capture: future"),
    "a member of an outcome that no version has": (
        capturing("outcomes", 0, "future", to=1),
        "effect_mismatch",
        "capture: outcomes[0].future",
    ),
    "who opened a gate": (opened_by_a_person, "decision_mismatch", "capture: gate.openedBy"),
    "what was left out of a capture": (capturing("leftOut", to=1), "decision_mismatch", "capture: leftOut"),
    "the reference to a capture": (
        lambda log: log.alter("decision_trace_appended", lambda event: event["data"].pop("captureRef")),
        "missing_capture",
        "decision_trace_appended",
    ),
    "a trace as a whole": (
        lambda log: log.drop("decision_trace_appended"),
        "missing_capture",
        "decision_trace_appended",
    ),
    "the kind of a reason": (
        altering("decision_trace_appended", "entries", 0, "kind", to="exited_loop"),
        "decision_mismatch",
        "decision_trace_appended.data.entries[0].kind",
    ),
    "what a reason refers to": (
        altering("decision_trace_appended", "entries", 0, "refs", 0, "stepId", to="end"),
        "decision_mismatch",
        "decision_trace_appended.data.entries[0].refs[0].stepId",
    ),
    "context that came in": (
        altering("context_set", "context", "note", to="k", number=1),
        "hash_mismatch",
        "advance_recorded.data.requestDigest",
    ),
    "context at the start, which a later decision read": (
        read_by_nobody_yet,
        "decision_mismatch",
        "capture: decisions[0]",
    ),
    "what a step set": (
        altering("context_set", "context", "seen", to="slow", number=2),
        "effect_mismatch",
        "context_set.data.context.seen",
    ),
    "what a step set, under the name of a summary": (
        altering("context_set", "context", "summary", to="other", number=2),
        "effect_mismatch",
        "context_set.data.context.summary",
    ),
    "true for 1": (
        altering("context_set", "context", "seen", to=True, number=2),
        "effect_mismatch",
        "context_set.data.context.seen",
    ),
    "that a step set something": (
        lambda log: log.drop("context_set", number=2),
        "effect_mismatch",
        "context_set / decision_trace_appended",
    ),
    "notes": (
        altering("node_output_appended", "payload", "notesMarkdown", to="Did b."),
        "hash_mismatch",
        "advance_recorded.data.requestDigest",
    ),
    "notes of a retry": (
        altering("node_output_appended", "payload", "notesMarkdown", to="Was slow.", number=1),
        "hash_mismatch",
        "advance_recorded.data.requestDigest",
    ),
    "an artifact": (rating_otherwise, "hash_mismatch", "advance_recorded.data.requestDigest"),
    "a preference that was sent": (lowering, "hash_mismatch", "advance_recorded.data.requestDigest"),
    "the digest of a request": (
        altering("advance_recorded", "requestDigest", to=digest_of_bytes(b"")),
        "hash_mismatch",
        "advance_recorded.data.requestDigest",
    ),
    "an accepted attempt": (refusing, "decision_mismatch", "advance_recorded.data.outcome"),
    "a refused attempt": (accepting, "decision_mismatch", "advance_recorded.data.outcome"),
    "why an attempt was refused": (
        altering(
            "advance_recorded", "outcome", "blockers", "blockers", 0, "code", to="INVALID_REQUIRED_OUTPUT", number=1
        ),
        "decision_mismatch",
        "advance_recorded.data.outcome.blockers.blockers[0].code",
    ),
    "where the run stood": (
        lambda log: log.alter_snapshot(setting("enginePayload", "engineState", "skipped", "values", to=["end"])),
        "snapshot_mismatch",
        "node_created.data.snapshotRef",
    ),
    "the severity of a gap": (
        altering("gap_recorded", "severity", to="info"),
        "effect_mismatch",
        "gap_recorded.data.severity",
    ),
    "the reason of a gap": (
        altering("gap_recorded", "reason", "detail", to="invalid_required_output", number=1),
        "effect_mismatch",
        "gap_recorded.data.reason.detail",
    ),
    "that there was a gap": (lambda log: log.drop("gap_recorded"), "effect_mismatch", "gap_recorded.data"),
    "the node of a gap": (elsewhere, "effect_mismatch", "gap_recorded.scope.nodeId"),
    "what a client can do": (
        altering("capability_observed", "status", to="unavailable"),
        "effect_mismatch",
        "capability_observed.data.status",
    ),
    "why the script was left": (
        altering("divergence_recorded", "reason", to="safety_stop"),
        "effect_mismatch",
        "divergence_recorded.data.reason",
    ),
    "the cause of an edge": (
        altering("edge_created", "cause", "kind", to="intentional_fork"),
        "decision_mismatch",
        "edge_created.data.cause.kind",
    ),
    "the event that an edge names": (
        lambda log: log.alter("edge_created", lambda event: event["data"]["cause"].update(eventId=event["eventId"])),
        "decision_mismatch",
        "edge_created.data.cause.eventId",
    ),
    "what a run executes, by name": (
        altering("run_started", "workflowId", to="test.other"),
        "decision_mismatch",
        "run_started.data.workflowId",
    ),
}
"""Each alteration, what it is called, and where it is seen."""


@pytest.mark.inv("VERIFY-1")
def test_a_run_with_a_bit_of_everything_is_sound(root: Path) -> None:
    assert verified(root) == ()
    assert verified(root, is_forced=True) == ()


@pytest.mark.inv("VERIFY-1")
def test_the_digest_of_a_retry_is_checked_however_many_fields_its_artifacts_have(tmp_path: Path) -> None:
    """Only what a contract requires may have been omitted; a field of any other artifact was sent with it."""
    harness = Harness.on_disk(tmp_path, document(step("a", produces=["level"]), step("b"), inputs=[]))
    artifacts = [{"kind": kind, **{f"field{at}": at for at in range(9)}} for kind in ("mine", "yours")]
    output = with_artifacts(*artifacts)
    refused = harness.advance(harness.start("test.flow"), output=output)
    assert harness.advance(refused, output=output, context={"level": 1})["kind"] == "ok"
    assert verified(tmp_path) == ()
    altering("advance_recorded", "requestDigest", to=digest_of_bytes(b""), number=1)(Tampering(tmp_path))
    assert [found.code for found in verified(tmp_path)] == ["hash_mismatch"]


@pytest.mark.inv("VERIFY-1")
def test_an_attempt_that_asked_for_more_autonomy_and_was_refused_is_sound() -> None:
    """Nobody agreed to the autonomy, so the log does not hold it; the digest of the request still does."""
    harness = asking(serving(step("a"), step("b")))
    blocked = harness.advance(harness.start("test.flow"), None, preferences=NEVER_STOPS)
    assert codes(blocked) == ["MISSING_REQUIRED_OUTPUT"]
    assert unsound(harness.store) == []


@pytest.mark.inv("VERIFY-1")
@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("preferences", [{}, NEVER_STOPS, {**NEVER_STOPS, "riskPolicy": "balanced"}])
def test_what_a_person_said_no_to_is_sound(preferences: Document, *, gated: bool) -> None:
    harness = answering(serving(step("a", requireConfirmation=gated), step("b")), "decline", "Not yet.")
    answer = harness.advance(harness.start("test.flow"), preferences=preferences)
    assert answer["kind"] == ("blocked" if gated or preferences else "ok")
    assert unsound(harness.store) == []


@pytest.mark.inv("VERIFY-1")
def test_notes_that_say_nothing_and_evidence_that_is_sent_twice_are_sound() -> None:
    harness = serving(step("a", produces=["level"]), step("b", notes="optional"), step("c"))
    output = with_artifacts({"kind": "mine"}, claim())
    at = harness.advance(harness.start("test.flow"), None, output=output)
    at = harness.advance(at, None, output=output)
    at = harness.advance(at, " ", context={"level": 1})
    assert harness.advance(at, " ")["pending"]["stepId"] == "c"
    assert unsound(harness.store) == []


@pytest.mark.inv("VERIFY-2")
@pytest.mark.parametrize("what", IN_THE_RECORD)
def test_one_altered_fact_is_found_at_its_node_though_every_digest_is_good_again(root: Path, what: str) -> None:
    alteration, code, where = IN_THE_RECORD[what]
    node = alteration(Tampering(root))
    (session,) = LocalStore(root).sessions()
    assert LocalStore(root).load(session) is not None, "the log itself is healthy"
    first = verified(root)[0]
    assert (first.code, first.node, first.where) == (code, node, where), first
    assert first.fix


@pytest.mark.inv("VERIFY-2")
def test_other_words_are_shown_and_no_mismatch_because_an_earlier_release_may_have_used_them(root: Path) -> None:
    log = Tampering(root)
    altering("decision_trace_appended", "entries", 0, "summary", to="Other words.")(log)
    altering("gap_recorded", "summary", to="Other words.")(log)
    altering("advance_recorded", "outcome", "blockers", "blockers", 0, "message", to="Other words.", number=1)(log)
    assert verified(root) == ()
    store = LocalStore(root)
    words = verify_with_words(store, Plans(store), log.session).words
    assert [one.where for one in words] == [
        "decision_trace_appended.entries[0].summary",
        "advance_recorded.outcome.blockers.blockers[0].message",
        "gap_recorded.summary",
    ]
    assert all("Other words." in one.found for one in words)


# Damage: digests are as they were.


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def content_of(log: Tampering, what: str) -> Path:
    """Return a file that the tip alone needs, or the run as a whole."""
    if what == "the captured record":
        return log.file_of_capture()
    if what == "the pinned workflow":
        (file,) = (log.root / layout.PINNED).iterdir()
        return file
    if what == "the snapshot of the tip":
        (created,) = [event for event in log.plans[-1] if event["kind"] == "node_created"]
        return log.root / layout.snapshot(created["data"]["snapshotRef"])
    outputs = [event for plan in log.plans for event in plan if event["kind"] == "node_output_appended"]
    output = outputs[artifact_number(log, "wr.review_verdict")]
    return log.root / layout.artifact(output["data"]["payload"]["sha256"])


CONTENT = {
    "the captured record": ("capture", "missing_capture"),
    "the snapshot of the tip": ("snapshot", "hash_mismatch"),
    "an artifact": ("artifact", "hash_mismatch"),
    "the pinned workflow": ("pinned workflow", "hash_mismatch"),
}


@pytest.mark.inv("VERIFY-2")
@pytest.mark.parametrize("what", CONTENT)
def test_one_changed_byte_of_content_is_found_at_the_advance_that_needs_it(root: Path, what: str) -> None:
    log = Tampering(root)
    flip(content_of(log, what))
    found = verified(root)[0]
    assert (found.code, found.found) == ("hash_mismatch", "wrong bytes")
    assert found.where.startswith(f"{CONTENT[what][0]} sha256:")
    assert found.node in LocalStore(root).load(log.session).nodes  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize("what", CONTENT)
def test_content_that_is_gone_is_reported_at_the_advance_that_needs_it(root: Path, what: str) -> None:
    log = Tampering(root)
    content_of(log, what).unlink()
    found = verified(root)[0]
    assert (found.code, found.found) == (CONTENT[what][1], "missing")
    assert found.where.startswith(CONTENT[what][0])


def test_a_capture_that_is_no_object_is_reported_though_its_name_is_right(root: Path) -> None:
    log = Tampering(root)
    data = b"[]"
    digest = digest_of_bytes(data)
    (root / layout.artifact(digest)).write_bytes(data)
    node = log.alter("decision_trace_appended", setting("data", "captureRef", to=digest))
    (found,) = verified(root)
    assert (found.code, found.node, found.found) == ("hash_mismatch", node, "no JSON object")


def test_a_log_that_is_not_healthy_is_reported_as_a_whole(root: Path) -> None:
    log = Tampering(root)
    flip(root / layout.events_dir(log.session) / "00000000-00000004.jsonl")
    (found,) = verified(root)
    assert (found.code, found.node) == ("hash_mismatch", None)
    assert "corrupt_head" in found.found


def test_a_log_of_a_newer_release_is_reported_as_such(root: Path) -> None:
    log = Tampering(root)
    manifest = root / layout.manifest(log.session)
    manifest.write_bytes(manifest.read_bytes().replace(b'"v":1', b'"v":2', 1))
    (found,) = verified(root)
    assert (found.code, found.node) == ("unsupported_version", None)


# What cannot be history.


def test_events_that_contradict_each_other_are_reported_as_a_broken_chain(root: Path) -> None:
    log = Tampering(root)
    log.drop("node_created", number=1)
    with pytest.raises(SessionUnhealthyError) as unhealthy:
        LocalStore(root).load(log.session)
    assert (unhealthy.value.health, unhealthy.value.breaks_history) == (Health.CORRUPT_TAIL, True)
    (found,) = verified(root)
    assert (found.code, found.node) == ("chain_broken", None)
    assert "which is not in the log" in found.found


class CountedFiles(OsFiles):
    """Files that count how often each of them is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads = Counter[str]()

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        self.reads[path] += 1
        return super().read(path, offset, bytes_max)


def test_a_session_is_verified_with_one_read_of_its_log(root: Path) -> None:
    """Each further read parses all events again, which takes a third of the time of a long session."""
    files = CountedFiles(root)
    store = LocalStore(root, files=files)
    (session,) = store.sessions()
    found = verify_with_words(store, Plans(store), session)
    assert (found.mismatches, unfinished_note(store, session), found.redacted) == ((), None, None)
    segments = {path: count for path, count in files.reads.items() if "/events/" in path}
    assert found.examined is not None
    assert len(segments) == found.examined.appends
    assert set(segments.values()) == {1}


@pytest.mark.inv("VERIFY-7")
def test_a_step_that_is_done_without_an_attempt_is_damage_to_each_view(root: Path) -> None:
    log = Tampering(root)
    log.drop("advance_recorded", number=-1)
    (root / layout.settled(log.session)).unlink()
    store = LocalStore(root)
    with pytest.raises(SessionUnhealthyError) as unhealthy:
        store.load(log.session)
    assert (unhealthy.value.health, unhealthy.value.breaks_history) == (Health.CORRUPT_TAIL, True)
    proof = prove_session(store, Plans(store), log.session)
    assert [one.code for one in proof.mismatches] == ["chain_broken"]
    assert "made by no recorded attempt" in proof.mismatches[0].found
    assert (proof.conformance, proof.redacted) == ((), None)


def test_an_attempt_that_is_none_on_its_node_is_reported_as_a_broken_chain(root: Path) -> None:
    altering("advance_recorded", "attemptId", to="att_" + "0" * 26)(Tampering(root))
    (found,) = verified(root)
    assert (found.code, found.node) == ("chain_broken", None)
    assert "is not the next attempt on" in found.found


def test_an_attempt_that_makes_no_node_is_reported_as_a_broken_chain_at_the_node_it_is_about(root: Path) -> None:
    log = Tampering(root)
    event = next(event for plan in reversed(log.plans) for event in plan if event["kind"] == "advance_recorded")
    log.plans[-1] = [event]
    log.rewrite()
    (root / layout.settled(log.session)).unlink()
    (found,) = verified(root)
    assert (found.code, found.node) == ("chain_broken", event["scope"]["nodeId"])


def test_an_attempt_on_a_node_whose_run_is_complete_is_reported_as_a_broken_chain(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, document(step("a")))
    start = harness.start("test.flow")
    harness.advance(start)
    harness.advance(harness.rehydrate(start)["fork"]["ackToken"])
    log = Tampering(tmp_path)
    end = log.node_of("node_created", number=1)

    first, moved = log.node_of("node_created"), json.dumps(log.plans[-1])
    attempt, instead = fork_attempt(first, 0), ack_attempt(end)
    made = (node_of_attempt(attempt), node_of_attempt(instead))
    for one, other in ((attempt, instead), made, (first, end)):
        moved = moved.replace(one, other)
    log.plans[-1] = json.loads(moved)
    log.rewrite()
    (found,) = verified(tmp_path)
    assert (found.code, found.node) == ("chain_broken", end)


# Another build's operators.


@pytest.mark.inv("VERIFY-3")
def test_what_other_operators_decided_is_not_compared_unless_it_is_asked_for(root: Path) -> None:
    node = capturing("catalogue", to=digest_of_bytes(b"another"))(Tampering(root))
    (found,) = verified(root)
    assert (found.code, found.node) == ("provenance_mismatch", node)
    assert "--force" in found.fix
    assert verified(root, is_forced=True) == (), "they decided alike"


@pytest.mark.inv("VERIFY-3")
@pytest.mark.parametrize("is_altered", [False, True])
def test_a_capture_of_version_1_is_compared_by_what_that_version_had(root: Path, *, is_altered: bool) -> None:
    def make_version_1(capture: Body) -> None:
        for name in ("outcomes", "triggers", "read", "adapter"):
            capture.pop(name)
        for one in capture["decisions"]:
            one.pop("emitted", None)
        capture |= {"v": 1, "catalogue": digest_of_bytes(b"the operators of that version")}
        if is_altered:
            capture["decisions"], capture["effects"] = [], []

    log = Tampering(root)
    log.alter_capture(make_version_1)
    log.alter_capture(make_version_1, number=1)
    assert {one.code for one in verified(root)} == {"provenance_mismatch"}
    assert [one.code for one in verified(root, is_forced=True)] == ["decision_mismatch"] * (2 if is_altered else 0)


@pytest.mark.inv("VERIFY-1")
@pytest.mark.parametrize("version", [0, 3, "2", None])
def test_a_capture_of_a_version_that_is_not_known_is_not_read(root: Path, version: object) -> None:
    node = capturing("v", to=version)(Tampering(root))
    (found,) = verified(root, is_forced=True)
    assert (found.code, found.node) == ("unsupported_version", node)


@pytest.mark.inv("VERIFY-3")
def test_a_capture_that_names_no_operators_is_of_others(root: Path) -> None:
    Tampering(root).alter_capture(lambda capture: capture.pop("catalogue"))
    (found,) = verified(root)
    assert found.code == "provenance_mismatch"


@pytest.mark.inv("VERIFY-3")
def test_where_comparing_is_forced_the_first_decision_that_differs_is_shown(root: Path) -> None:
    log = Tampering(root)
    capturing("catalogue", to=digest_of_bytes(b"another"))(log)
    node = capturing("decisions", 0, "verdict", to=False)(log)
    assert [one.code for one in verified(root)] == ["provenance_mismatch"]
    (found,) = verified(root, is_forced=True)
    assert (found.code, found.node, found.where) == ("decision_mismatch", node, "capture: decisions[0].verdict")
    assert found.found == "recorded: false; replayed: true"
