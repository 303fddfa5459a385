"""A run that a person ended is unchanged: nothing more is recorded, and what was recorded is answered as before."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.bundles import exported, imported
from tests.support.calls import with_samples
from tests.support.ends import CANCELLED, ended_by_command, work_record
from tests.support.flow import Document, document, step
from tests.support.history import appended
from tests.support.lifecycle import hold_lifecycle, lifecycle_at, run_of
from tests.support.modes import (
    CAN_ASK,
    NEVER_STOPS,
    answering,
    asking,
    claim,
    codes,
    events_of,
    files_below,
    session_of,
    status_of,
    with_artifacts,
)
from tests.support.tampering import Body, Tampering
from tests.support.verify import unsound

from interlock.engine.answer.model import HumanInputRequired
from interlock.engine.request import Request
from interlock.kernel.blanks import fill_in
from interlock.kernel.budgets import QUESTION_BYTES_MAX, WORK_NOTE_BYTES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import RunId
from interlock.record.append_plan import EventDraft
from interlock.record.events import WorkRecordedEvent
from interlock.record.payloads import NotesPayload, WorkRecorded
from interlock.record.short_tokens import decode_token
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.continue_workflow import ContinueCommand, continue_workflow
from interlock.service.tools.end_run import EndedRun
from interlock.testing.harness import Harness, ToolResult
from interlock.views.lifecycle.state import resume_point

STEPS = document(step("a"), step("b"), step("c"))
PASSWORD = "password: hunter2"


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness.on_disk(tmp_path, STEPS)


def ends_of(harness: Harness, start: ToolResult) -> list[WorkRecordedEvent]:
    found = events_of(harness, start, "work_recorded")
    return [event for event in found if isinstance(event, WorkRecordedEvent)]


# After the end.


@pytest.mark.inv("END-4", "LIFE-11")
@pytest.mark.produces("error:RUN_ENDED", "event:work_recorded")
def test_after_an_end_every_ack_and_checkpoint_is_refused_and_nothing_is_recorded(
    tmp_path: Path, harness: Harness
) -> None:
    first = harness.start("test.flow", goal="Ship")
    second = harness.advance(first)
    fork = str(harness.rehydrate(first)["fork"]["ackToken"])
    assert isinstance(ended_by_command(harness, first), EndedRun)
    before = files_below(tmp_path)
    for refused in (
        harness.advance(second),
        harness.advance(second, None),
        harness.advance(fork),
        harness.checkpoint(second),
        harness.advance(second, None, output=work_record("failed", "gave_up")),
    ):
        assert refused.code is ErrorCode.RUN_ENDED
        assert (refused["retry"]["kind"], refused["details"]["run"]["label"]) == (
            "not_retryable",
            first["run"]["label"],
        )
        ended = {"status": "cancelled", "reason": "user_request", "note": "No longer wanted."}
        assert refused["details"]["ended"].items() >= ended.items()
        assert "start_workflow" in refused["suggestion"]
    assert files_below(tmp_path) == before
    assert unsound(harness.store) == []


@pytest.mark.inv("END-4", "ADV-5", "CHK-2")
def test_what_was_recorded_before_the_end_is_answered_byte_for_byte(harness: Harness) -> None:
    first = harness.start("test.flow", goal="Ship")
    kept = harness.checkpoint(first)
    refused = harness.advance(first, None)
    second = harness.advance(refused, "Did a.")
    harness.advance(second)
    ended_by_command(harness, first)
    assert harness.checkpoint(first) == kept
    assert harness.advance(first, None) == refused
    assert harness.advance(refused, "Did a.") == second
    other = harness.advance(refused, "Something else.")
    assert other.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert harness.follow(other)["ended"]["status"] == "cancelled"


@pytest.mark.inv("END-4", "READ-1")
def test_rehydrating_an_ended_run_says_how_it_ended_and_gives_nothing_to_do(tmp_path: Path, harness: Harness) -> None:
    first = harness.start("test.flow", goal="Ship")
    second = harness.advance(first, "Did a.")
    ended_by_command(harness, first)
    before = files_below(tmp_path)
    for seen in (harness.rehydrate(first), harness.rehydrate(second)):
        assert seen["ended"]["status"] == "cancelled"
        assert (seen["isComplete"], seen["nextIntent"], seen["nextCall"], seen["pending"]) == (
            False,
            "rehydrate_only",
            None,
            None,
        )
        assert not {"ackToken", "checkpointToken", "fork", "guidance"} & set(seen.structure)
        assert "Did a." in seen["recap"]
        assert "cancelled: user request" in seen.text
        assert "> No longer wanted." in seen.text
        assert "ackToken" not in seen.text
    assert files_below(tmp_path) == before


@pytest.mark.inv("END-3")
def test_another_run_of_the_session_continues(harness: Harness) -> None:
    first = harness.start("test.flow")
    ended_by_command(harness, first)
    other = harness.start("test.flow", sessionId=first["run"]["sessionId"])
    assert harness.advance(other)["pending"]["stepId"] == "b"
    assert (status_of(harness, first), status_of(harness, other)) == ("cancelled", "in_progress")


@pytest.mark.inv("END-6")
def test_a_complete_run_cannot_be_ended_neither_by_a_command_nor_by_an_ack(harness: Harness) -> None:
    first = harness.start("test.flow")
    harness.advance(harness.advance(harness.advance(first)))
    refused = ended_by_command(harness, first)
    assert isinstance(refused, Refusal)
    assert (refused.code, "is complete" in refused.message) == (ErrorCode.VALIDATION_ERROR, True)
    fork = str(harness.rehydrate(first)["fork"]["ackToken"])
    answer = answering(harness).advance(fork, None, output=work_record())
    assert (answer.code, "is complete" in answer["message"]) == (ErrorCode.VALIDATION_ERROR, True)
    assert ends_of(harness, first) == []


@pytest.mark.inv("END-6")
def test_a_second_end_for_the_same_reason_changes_nothing_and_another_one_is_refused(harness: Harness) -> None:
    first = harness.start("test.flow")
    once = ended_by_command(harness, first)
    again = ended_by_command(harness, first, WorkRecorded(work="cancelled", reason="user_request"))
    assert isinstance(once, EndedRun)
    assert isinstance(again, EndedRun)
    assert (once.is_new, again.is_new, again.ended) == (True, False, once.ended)
    for work in (
        WorkRecorded(work="failed", reason="user_request"),
        WorkRecorded(work="cancelled", reason="duplicate"),
    ):
        refused = ended_by_command(harness, first, work)
        assert isinstance(refused, Refusal)
        assert refused.code is ErrorCode.RUN_ENDED
    assert len(ends_of(harness, first)) == 1


@pytest.mark.inv("READ-4", "END-9")
def test_only_its_id_finds_an_ended_run(harness: Harness) -> None:
    first = harness.start("test.flow", goal="Ship the app")
    other = harness.start("test.flow", goal="Something else")
    ended_by_command(harness, first, WorkRecorded(work="failed", reason="gave_up"))
    found = [one["run"]["runId"] for one in harness.resume("app")["candidates"]]
    assert found == [other["run"]["runId"]]
    assert "Nothing matches" in harness.resume("app")["reason"]
    by_id = harness.resume(runId=first["run"]["runId"])
    (one,) = by_id["candidates"]
    assert (one["status"], "pendingStep" in one) == ("failed", False)
    assert "failed (gave_up)" in by_id.text
    assert "To continue" not in by_id.text
    seen = harness.call(one["nextCall"]["tool"], one["nextCall"]["arguments"])
    assert seen["ended"] == {"status": "failed", "reason": "gave_up", "at": seen["ended"]["at"]}
    ended_by_command(harness, other)
    nothing = harness.resume()
    assert nothing["candidates"] == []
    assert "Every run here is cancelled or failed" in nothing["reason"]


# In a chat.


@pytest.mark.inv("END-5")
def test_a_person_who_agrees_ends_the_run_and_their_answer_is_kept(harness: Harness) -> None:
    first = harness.start("test.flow", goal="Ship")
    agreed = answering(harness, comment="Drop it.")
    ended = agreed.advance(first, None, output=work_record(note="The user changed plans."))
    assert (ended["kind"], ended["ended"]["status"], ended["ended"]["note"]) == (
        "ok",
        "cancelled",
        "The user changed plans.",
    )
    assert (ended["nextCall"], ended["isComplete"]) == (None, False)
    (event,) = ends_of(harness, first)
    assert event.data.answer_ref is not None
    assert b"Drop it." in harness.store.artifact(event.data.answer_ref)
    assert session_of(harness, first).runs[RunId(first["run"]["runId"])].ended is not None
    # The same ack again, by anybody, is answered from the record and asks nobody.
    for same in (harness, asking(harness), agreed):
        assert same.advance(first, None, output=work_record(note="Other words.")) == ended
    assert unsound(harness.store) == []


@pytest.mark.inv("END-5")
@pytest.mark.parametrize("preferences", [{}, NEVER_STOPS])
@pytest.mark.parametrize("action", [None, "decline", "cancel"])
def test_without_a_persons_yes_nothing_ends_and_nothing_is_recorded(
    tmp_path: Path, harness: Harness, preferences: Document, action: str | None
) -> None:
    first = harness.start("test.flow", preferences=preferences)
    before = files_below(tmp_path)
    asker = asking(harness, client_can=False, claims="always") if action is None else answering(harness, action, "No.")
    sent = with_artifacts(work_record()["artifacts"][0], claim(), notes=None)
    for output in (work_record(), sent):
        answer = asker.advance(first, None, output=output)
        assert (answer["kind"], codes(answer)) == ("blocked", ["USER_ONLY_DEPENDENCY"])
        assert "The run has not ended." in answer.text
        assert "interlock session cancel" in answer.text
        assert answer.ack == first.ack
    assert files_below(tmp_path) == before
    assert asker.follow(answer)["pending"]["stepId"] == "b"


@pytest.mark.inv("END-5")
def test_the_question_says_that_the_run_cannot_be_continued_and_why_it_should_end(harness: Harness) -> None:
    first = harness.start("test.flow", goal="Ship")
    note = "é" * (WORK_NOTE_BYTES_MAX // 2)
    artifact = {"kind": "wr.work_record", "work": "failed", "reason": "gave_up", "note": note}
    command = ContinueCommand(
        tokens=SentTokens(argument="ackToken", token=decode_token(first.ack)),
        request=Request(artifacts=(artifact,), asking=CAN_ASK),
    )
    found = continue_workflow(harness.ports, command)
    assert isinstance(found, HumanInputRequired)
    (ask,) = found.question.asks
    assert "End this run as failed? It cannot be continued afterwards. Reason: gave up." in ask.ask
    assert note in ask.ask
    assert len(ask.ask.encode()) < QUESTION_BYTES_MAX
    assert first["run"]["label"] in found.question.title


@pytest.mark.inv("END-5")
@pytest.mark.parametrize(
    "more",
    [
        {"output": {"notesMarkdown": "Did a."}},
        {"output": {"artifacts": [{"kind": "report"}]}},
        {"context": {"mode": "fast"}},
        {"preferences": NEVER_STOPS},
    ],
)
def test_evidence_beside_an_end_is_refused_with_the_call_that_sends_the_end_alone(
    harness: Harness, more: Document
) -> None:
    first = harness.start("test.flow")
    output: Document = {**more.get("output", {})}
    output["artifacts"] = [*output.get("artifacts", []), *work_record()["artifacts"]]
    refused = answering(harness).advance(first, None, **{**more, "output": output})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert "checkpoint_workflow" in refused["suggestion"]
    corrected = refused["details"]["correctedCall"]
    assert corrected["arguments"] == {"ackToken": first.ack, "output": work_record()}
    assert answering(harness).call(corrected["tool"], corrected["arguments"])["ended"]["status"] == "cancelled"


WRONG = [
    ({"work": "released"}, "work"),
    ({"work": None}, "work"),
    ({"reason": "bored"}, "reason"),
    ({"note": ""}, "note"),
    ({"note": 5}, "note"),
    ({"note": "x" * (WORK_NOTE_BYTES_MAX + 1)}, "note"),
    ({"refs": ["x"] * 17}, "refs"),
    ({"refs": ["x" * 513]}, "refs"),
    ({"refs": "x"}, "refs"),
    ({"answerRef": "sha256:" + "0" * 64}, "answerRef"),
]


@pytest.mark.inv("END-1", "END-5")
@pytest.mark.parametrize(("change", "member"), WRONG)
def test_a_work_record_with_a_fault_is_refused_with_its_member(harness: Harness, change: Document, member: str) -> None:
    first = harness.start("test.flow")
    artifact = {**work_record()["artifacts"][0], **change}
    refused = answering(harness).advance(first, None, output={"artifacts": [artifact]})
    assert (refused.code, refused["details"]["path"]) == (
        ErrorCode.VALIDATION_ERROR,
        f"output.artifacts[0].{member}",
    )
    assert ends_of(harness, first) == []


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize(("change", "member"), WRONG)
def test_the_corrected_call_of_a_work_record_changes_only_the_wrong_member(
    harness: Harness, change: Document, member: str
) -> None:
    first = harness.start("test.flow")
    right = work_record()["artifacts"][0]
    refused = answering(harness).advance(first, None, output={"artifacts": [{**right, **change}]})
    corrected = with_samples(refused["details"]["correctedCall"])
    (filled,) = corrected["arguments"]["output"]["artifacts"]
    assert filled.keys() == right.keys()
    assert {name for name in right if filled[name] != right[name]} <= {member}


CHOSEN = {f"output.artifacts[0].{member}": value for member, value in work_record()["artifacts"][0].items()}


@pytest.mark.inv("ANS-15", "ANS-24")
@pytest.mark.parametrize("change", [{}, {"reason": "bored", "status": "half"}])
def test_leaving_a_step_in_a_report_is_led_to_a_checkpoint_with_the_notes(harness: Harness, change: Document) -> None:
    first = harness.start("test.flow")
    left = work_record("released", "handoff")["artifacts"][0]
    sent = {"notesMarkdown": "Half of it.", "artifacts": [{**left, **change}]}
    refused = answering(harness).advance(first, None, run=first["run"]["label"], output=sent)
    assert refused["details"]["path"].startswith("output.artifacts[0].")
    call = refused["details"]["correctedCall"]
    arguments = fill_in(call["arguments"], call["fill"], lambda _: "handoff")
    assert (call["tool"], arguments) == (
        "checkpoint_workflow",
        {"ackToken": first.ack, "output": {**sent, "artifacts": [left]}},
    )
    assert not harness.call(call["tool"], arguments).is_error
    (event,) = ends_of(harness, first)
    assert (event.is_end, event.data.work) == (False, "released")


@pytest.mark.inv("ANS-15", "ANS-24")
def test_the_corrected_call_of_a_work_record_with_several_faults_is_not_refused(harness: Harness) -> None:
    """Nothing else is recorded with an end, so notes that came with it are not in the call."""
    first = harness.start("test.flow")
    wrong: Document = {"kind": "wr.work_record", "status": "done", "note": "", "refs": []}
    beside: Document = {"notesMarkdown": "Did a.", "artifacts": [{"kind": "report"}, wrong]}
    kept = harness.checkpoint(first, None, output=beside)["details"]["correctedCall"]
    assert kept["arguments"]["output"] == {"notesMarkdown": "Did a.", "artifacts": [{"kind": "report"}]}
    asked = {"output.artifacts[1].kind", "output.artifacts[1].work", "output.artifacts[1].reason"}
    assert {one["path"] for one in kept["fill"]} == asked
    alone: Document = {"artifacts": [wrong]}
    for sent in (alone, beside):
        refused = answering(harness).advance(first, None, output=sent)
        assert ("Save notes" in refused["suggestion"]) == (sent is beside)
        call = refused["details"]["correctedCall"]
        arguments: Document = fill_in(call["arguments"], call["fill"], lambda one: CHOSEN[str(one["path"])])
        assert arguments == {"ackToken": first.ack, "output": work_record()}
    assert answering(harness).call(call["tool"], arguments)["ended"]["status"] == "cancelled"


@pytest.mark.inv("ANS-15", "ANS-24")
@pytest.mark.parametrize("argument", ["ackToken", "checkpointToken"])
def test_the_end_of_a_run_in_a_checkpoint_is_led_to_a_report(harness: Harness, argument: str) -> None:
    first = harness.start("test.flow")
    sent = {"notesMarkdown": "Half of it.", **work_record()}
    refused = harness.call("checkpoint_workflow", {argument: first[argument], "output": sent})
    call = refused["details"]["correctedCall"]
    assert (call["tool"], call["fill"]) == ("continue_workflow", [])
    assert call["arguments"] == {"ackToken": first.ack, "output": work_record()}
    assert answering(harness).call(call["tool"], call["arguments"])["ended"]["status"] == "cancelled"


def test_the_members_of_a_record_are_asked_for_by_their_choices_alone(harness: Harness) -> None:
    refused = harness.advance(harness.start("test.flow"), None, output={"artifacts": [{"kind": "wr.work_record"}]})
    assert "- `output.artifacts[0].work` (cancelled | failed)\n" in refused.text + "\n"
    assert "your answer to the step" not in refused.text


@pytest.mark.parametrize(
    ("note", "shown"),
    [("The user's plan.", " --note 'The user'\"'\"'s plan.'"), ("A\nB", " --note 'A B'"), ("x" * 300, "")],
)
def test_the_command_that_ends_a_run_has_the_note_of_the_agent(harness: Harness, note: str, shown: str) -> None:
    first = harness.start("test.flow")
    asked = harness.advance(first, None, output=work_record(note=note))
    command = f"interlock session cancel {first['run']['label']} --reason user_request{shown}`."
    assert asked["blockers"][0]["suggestedFix"].endswith(command)


def test_two_work_records_in_one_call_are_refused(harness: Harness) -> None:
    first = harness.start("test.flow")
    refused = answering(harness).advance(first, None, output={"artifacts": work_record()["artifacts"] * 2})
    assert refused["details"]["path"] == "output.artifacts[1]"


@pytest.mark.inv("END-5", "ANS-20")
def test_a_note_that_looks_like_a_secret_is_warned_of_by_its_line(harness: Harness) -> None:
    first = harness.start("test.flow")
    kept = harness.checkpoint(first, None, output=work_record("released", "handoff", note=PASSWORD))
    assert kept.warnings == ["LOOKS_LIKE_SECRET"]
    assert harness.checkpoint(first, None, output=work_record("released", "handoff", note=PASSWORD)) == kept
    ended = answering(harness).advance(first, None, output=work_record(note=f"a\n{PASSWORD}"))
    (warned,) = ended["warnings"]
    assert warned["code"] == "LOOKS_LIKE_SECRET"
    assert "Line 2 of the `note`" in warned["message"]
    assert "hunter2" not in warned["message"]


# Work that is left.


@pytest.mark.inv("END-7")
@pytest.mark.parametrize("work", ["released", "failed"])
def test_work_on_a_step_is_left_with_a_checkpoint_and_the_run_continues(harness: Harness, work: str) -> None:
    first = harness.start("test.flow")
    output = {"notesMarkdown": "Half of it.", **work_record(work, "handoff", note="Ada continues.", refs=["a.md"])}
    kept = harness.checkpoint(first, None, output=output)
    (event,) = ends_of(harness, first)
    assert (event.is_end, event.data.work, event.data.refs) == (False, work, ("a.md",))
    session = session_of(harness, first)
    root = next(node for node in session.nodes.values() if node.parent is None)
    assert root.left == (event.data,)
    assert [type(one.payload) for one in root.outputs] == [NotesPayload]
    assert session.runs[root.run].tip == root.node
    again = harness.call("checkpoint_workflow", {"checkpointToken": kept["checkpointToken"], "output": output})
    assert len(session_of(harness, first).nodes[root.node].left) == 2
    assert not again.is_error
    assert harness.advance(first)["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []


@pytest.mark.inv("END-7")
def test_a_checkpoint_ends_no_run(harness: Harness) -> None:
    first = harness.start("test.flow")
    refused = answering(harness).checkpoint(first, None, output=work_record("cancelled"))
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "output.artifacts[0].work")
    assert "ackToken" in refused["suggestion"]


# Verified, carried, repaired.


def recorded(harness: Harness, *, in_chat: bool) -> ToolResult:
    first = harness.start("test.flow")
    second = harness.advance(first)
    if in_chat:
        answering(harness).advance(second, None, output=work_record())
    else:
        ended_by_command(harness, first)
    return first


@pytest.mark.damages
@pytest.mark.inv("END-8", "VERIFY-2")
def test_an_end_that_no_person_agreed_to_is_no_decision_of_ours(tmp_path: Path, harness: Harness) -> None:
    recorded(harness, in_chat=False)
    assert unsound(harness.store) == []

    def by_an_agent(event: Body) -> None:
        event["actor"] = {"type": "agent", "identifier": "client"}

    alter(tmp_path, by_an_agent)
    (found,) = unsound(Harness.on_disk(tmp_path, STEPS).store)
    assert (found.code, found.where) == ("decision_mismatch", "work_recorded")
    assert "no person agreed" in found.found


@pytest.mark.damages
@pytest.mark.inv("END-8", "VERIFY-2")
def test_an_end_with_another_reason_than_the_person_agreed_to_is_no_decision_of_ours(
    tmp_path: Path, harness: Harness
) -> None:
    recorded(harness, in_chat=True)
    assert unsound(harness.store) == []

    def for_another_reason(event: Body) -> None:
        event["data"]["reason"] = "gave_up"

    alter(tmp_path, for_another_reason)
    (found,) = unsound(Harness.on_disk(tmp_path, STEPS).store)
    assert (found.code, found.where) == ("decision_mismatch", "work_recorded.data.answerRef")


@pytest.mark.damages
@pytest.mark.inv("END-8")
def test_an_end_of_a_complete_run_is_no_decision_of_ours(harness: Harness) -> None:
    first = harness.start("test.flow")
    harness.advance(harness.advance(harness.advance(first)))
    appended(harness, first, EventDraft(data=CANCELLED, run=RunId(first["run"]["runId"])))
    (found,) = unsound(harness.store)
    assert (found.code, "the run was complete" in found.found) == ("decision_mismatch", True)


@pytest.mark.damages
@pytest.mark.inv("END-8")
def test_an_answer_that_is_gone_is_reported(tmp_path: Path, harness: Harness) -> None:
    first = recorded(harness, in_chat=True)
    (event,) = ends_of(harness, first)
    assert event.data.answer_ref is not None
    (tmp_path / "artifacts" / event.data.answer_ref.removeprefix("sha256:")).unlink()
    (found,) = unsound(Harness.on_disk(tmp_path, STEPS).store)
    assert (found.code, event.data.answer_ref in found.where) == ("hash_mismatch", True)


@pytest.mark.inv("END-4", "BND-6")
@pytest.mark.parametrize("in_chat", [True, False])
def test_an_ended_run_is_exported_and_imported_with_its_end_and_the_answer(
    tmp_path: Path, harness: Harness, *, in_chat: bool
) -> None:
    first = recorded(harness, in_chat=in_chat)
    there = Harness.on_disk(tmp_path / "there", STEPS)
    imported(there, exported(harness, harness.session_of(first)).data)
    before = session_of(harness, first)
    assert session_of(there, first) == replace(before, imported=before.next_index)
    assert status_of(there, first) == "cancelled"
    assert unsound(there.store) == []


def alter(root: Path, change: Callable[[Body], None]) -> None:
    log = Tampering(root)
    (event,) = (event for plan in log.plans for event in plan if event["kind"] == "work_recorded")
    change(event)
    log.rewrite()


# In the lifecycle.


@pytest.mark.inv("END-9", "LIFE-3")
@pytest.mark.parametrize("in_chat", [True, False])
def test_the_end_is_the_last_event_of_the_lifecycle_and_a_branch_cannot_be_resumed(
    harness: Harness, *, in_chat: bool
) -> None:
    first = recorded(harness, in_chat=in_chat)
    session, run_context = session_of(harness, first), run_of(harness, first)
    lifecycle = lifecycle_at(harness, first)
    last = lifecycle.events[-1]
    assert (last.kind, last.code) == ("workflow.run.cancelled", "user_request")
    assert [ref.kind for ref in last.refs] == ["event", *(["gate_answer"] if in_chat else [])]
    assert run_context.run.tip is not None
    tip = session.nodes[run_context.run.tip]
    point = resume_point(session, tip, run_context.workflow, run_context.snapshot)
    assert (point.obstacle, point.last_completed, point.next_runnable) == ("run_ended", "a", "b")
    hold_lifecycle(harness.store, session, run_context.run.run)
