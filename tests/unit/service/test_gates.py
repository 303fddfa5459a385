"""A gate opens by a person's word alone: it is asked for last, kept with its client, and repeated on replay."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from tests.support.flow import IS_FAST, Document, document, step
from tests.support.modes import (
    NEVER_STOPS,
    STOPS,
    answering,
    asking,
    claim,
    codes,
    events_of,
    files_below,
    gaps_in,
    serving,
    session_of,
    status_of,
    with_artifacts,
)
from tests.support.tampering import Body, Tampering
from tests.support.verify import unsound

from interlock.engine.answer.model import HumanInputRequired
from interlock.engine.gates import UserReason
from interlock.engine.request import REPLY_CONTENT_TYPE, PreferenceDelta, Request
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.record.events import AdvanceRecordedEvent, PreferencesChangedEvent
from interlock.record.payloads import ArtifactPayload
from interlock.record.short_tokens import decode_token
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.continue_workflow import ContinueCommand, continue_workflow
from interlock.service.tools.start_workflow import StartCommand, start_workflow
from interlock.store.local import layout
from interlock.testing.harness import Harness, ToolResult

GATED = step("a", requireConfirmation=True)
BLOCKING = [{}, STOPS]


def question_of(harness: Harness, answer: ToolResult) -> HumanInputRequired:
    """Return what a person would be asked by an ack of an answer."""
    tokens = SentTokens(argument="ackToken", token=decode_token(answer.ack))
    command = ContinueCommand(tokens=tokens, request=Request(notes="Done.", asking=harness.asking))
    found = continue_workflow(harness.ports, command)
    assert isinstance(found, HumanInputRequired)
    return found


@pytest.mark.inv("GATE-1")
@pytest.mark.parametrize("preferences", BLOCKING)
@pytest.mark.parametrize("can_ask", [True, False])
def test_a_step_that_is_to_be_confirmed_waits_and_nothing_is_recorded(
    tmp_path: Path, preferences: Document, *, can_ask: bool
) -> None:
    harness = Harness.on_disk(tmp_path, document(GATED, step("b")))
    first = harness.start("test.flow", preferences=preferences)
    before = files_below(tmp_path)
    waiting = asking(harness, client_can=can_ask).advance(first)
    assert (waiting["kind"], waiting["nextIntent"]) == ("blocked", "await_user_confirmation")
    assert codes(waiting) == ["USER_ONLY_DEPENDENCY"]
    assert (waiting.ack, waiting.state) == (first.ack, first.state)
    assert "Nothing was recorded" in waiting.text
    assert files_below(tmp_path) == before


@pytest.mark.inv("GATE-1")
def test_a_conditional_confirmation_is_asked_for_where_it_holds_or_cannot_be_known() -> None:
    harness = asking(serving(step("a", confirmWhen=IS_FAST), step("b")))
    asked = {mode: harness.advance(harness.start("test.flow", context=mode_of(mode)))["kind"] for mode in MODES}
    assert asked == {"fast": "blocked", "slow": "ok", None: "blocked"}


MODES = ("fast", "slow", None)


def mode_of(mode: str | None) -> Document:
    return {"mode": mode} if mode else {}


@pytest.mark.produces(
    "reason:needs_user_secret_or_token",
    "reason:needs_user_account_access",
    "reason:needs_user_artifact",
    "reason:needs_user_choice",
    "reason:needs_user_approval",
    "reason:needs_user_environment_action",
    "blocker:USER_ONLY_DEPENDENCY",
)
@pytest.mark.inv("GATE-1", "MODE-2")
@pytest.mark.parametrize("reason", get_args(UserReason))
def test_what_only_a_person_can_give_is_asked_for_in_the_words_of_the_author(reason: str) -> None:
    more = {"choiceKind": "irreversible_action"} if reason == "needs_user_choice" else {}
    harness = serving(step("a", needsUser=[{"reason": reason, "ask": "Which of {{mode}}?", **more}]), step("b"))
    first = harness.start("test.flow", context={"mode": "these"})
    (ask,) = question_of(asking(harness), first).question.asks
    assert (ask.reason, ask.ask, ask.choice_kind) == (reason, "Which of these?", more.get("choiceKind"))
    assert ask.wants_answer == (reason not in ("needs_user_secret_or_token", "needs_user_approval"))
    blocked = asking(harness).advance(first)
    assert codes(blocked) == ["USER_ONLY_DEPENDENCY"]
    assert "Which of these?" in blocked["blockers"][0]["message"]
    free = harness.start("test.flow", context={"mode": "these"}, preferences=NEVER_STOPS)
    assert harness.advance(free)["pending"]["stepId"] == "b"
    (gap,) = gaps_in(harness, free)
    assert (gap.severity, gap.reason.category, gap.reason.detail) == ("critical", "user_only_dependency", reason)


def test_the_agent_reads_what_to_ask_for_in_the_words_that_the_person_reads() -> None:
    ask = {"reason": "needs_user_approval", "ask": "Do you agree to {{plan.name}}?"}
    harness = serving(step("a"), step("b", needsUser=[ask]))
    shown = harness.advance(harness.start("test.flow"), context={"plan": {"name": "three slices"}})
    asked = question_of(harness, shown).question.asks[0].ask
    assert asked == "Do you agree to three slices?"
    assert f"- {asked} (approval)" in shown["pending"]["prompt"]


@pytest.mark.inv("GATE-6")
def test_a_person_is_shown_no_notes_at_a_gate_so_a_claim_is_kept_for_a_report_with_other_notes() -> None:
    short, long = "Did it.", "Dropped the old table, after its rows had been copied to the new one."
    gate = step("a", requireConfirmation=True, validationCriteria={"type": "length", "min": 40})
    harness = serving(gate, step("b"))
    first = harness.start("test.flow")
    command = ContinueCommand(
        tokens=SentTokens(argument="ackToken", token=decode_token(first.ack)),
        request=Request(notes=long, asking=asking(harness).asking),
    )
    asked = continue_workflow(harness.ports, command)
    assert isinstance(asked, HumanInputRequired)
    assert [one.ask for one in asked.question.asks] == ["Do you approve the step 'Step a'?"]
    refused = harness.advance(first, output=with_artifacts(claim(), notes=short))
    assert refused["kind"] == "blocked"
    assert harness.advance(refused, long)["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []


@pytest.mark.inv("GATE-2")
@pytest.mark.parametrize("lacking", ["notes", "a context key"])
def test_nobody_is_asked_before_the_evidence_holds(lacking: str) -> None:
    harness = answering(serving(step("a", requireConfirmation=True, produces=["cause"]), step("b")))
    first = harness.start("test.flow")
    notes, context = (None, {"cause": "it"}) if lacking == "notes" else ("Done.", {})
    for client in (harness, asking(harness)):
        blocked = client.advance(first, notes, context=context)
        assert codes(blocked) == ["MISSING_REQUIRED_OUTPUT"]
        assert "answered" not in blocked.structure
    assert len(events_of(harness, first, "advance_recorded")) == 1


@pytest.mark.inv("GATE-2")
def test_nobody_is_asked_before_the_way_on_is_known() -> None:
    harness = asking(serving(GATED, step("b", when=IS_FAST), step("c")))
    assert codes(harness.advance(harness.start("test.flow"))) == ["MISSING_REQUIRED_OUTPUT"]


@pytest.mark.inv("GATE-3")
def test_what_a_person_said_is_kept_with_the_client_and_shown_first_and_on_replay() -> None:
    harness = serving(
        step("a", needsUser=[{"reason": "needs_user_choice", "ask": "Which?", "choiceKind": "scope_boundary"}]),
        step("b"),
    )
    first = harness.start("test.flow")
    second = answering(harness, comment="Be quick", n1="The red one").advance(first)
    asks = [{"reason": "needs_user_choice", "choiceKind": "scope_boundary", "ask": "Which?", "answer": "The red one"}]
    record = {"kind": "wr.confirmation", "client": "a client", "asks": asks, "comment": "Be quick"}
    assert second["answered"] == record
    for words in ("The user was asked and said yes", "- Which?\n  > The red one", "Be quick"):
        assert words in second.text
    session = session_of(harness, first)
    (child,) = [node for node in session.nodes.values() if node.parent is not None]
    files = [one.payload for one in child.outputs if isinstance(one.payload, ArtifactPayload)]
    assert [file.content_type for file in files] == [REPLY_CONTENT_TYPE]
    assert files[0].sha256 == digest_of_bytes(canonical_bytes(record))
    assert child.trace[0].summary == "The step was approved by a person through a client."
    assert gaps_in(harness, first) == []


@pytest.mark.damages
def test_a_stored_answer_of_a_person_that_is_none_is_damage_and_no_fault_of_ours(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, document(GATED, step("b")))
    first = harness.start("test.flow")
    answering(harness).advance(first)
    log = Tampering(tmp_path)

    def refer(event: Body) -> None:
        payload = event["data"]["payload"]
        payload["sha256"] = log.refiled(layout.artifact(payload["sha256"]), lambda reply: reply.update(asks=5))

    log.alter("node_output_appended", refer, number=1)
    replayed = Harness.on_disk(tmp_path, document(GATED, step("b"))).advance(first)
    assert replayed.code is ErrorCode.SESSION_NOT_HEALTHY
    assert replayed["details"]["found"] == "no reply of a person"


@pytest.mark.inv("GATE-3")
@pytest.mark.parametrize("later", ["asks nobody", "was declined"])
def test_a_replay_asks_nobody_and_tells_the_same(later: str) -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow")
    second = answering(harness).advance(first)
    replayed = (asking(harness) if later == "asks nobody" else answering(harness, "decline")).advance(first)
    assert (replayed.text, replayed.structure) == (second.text, second.structure)


@pytest.mark.inv("GATE-4")
def test_a_person_who_declines_refuses_the_attempt_in_their_words_and_is_asked_again() -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow")
    blocked = answering(harness, "decline", comment="Not on a Friday").advance(first)
    assert codes(blocked) == ["USER_ONLY_DEPENDENCY"]
    assert "Not on a Friday" in blocked["blockers"][0]["message"]
    assert "a client" in blocked["blockers"][0]["message"]
    assert blocked.ack != first.ack
    assert status_of(harness, first) == "blocked"
    (event,) = events_of(harness, first, "advance_recorded")
    assert isinstance(event, AdvanceRecordedEvent)
    assert event.data.outcome.kind == "blocked"
    assert gaps_in(harness, first) == []
    assert asking(harness).advance(blocked, None)["nextIntent"] == "await_user_confirmation"
    assert answering(harness).advance(blocked, None)["pending"]["stepId"] == "b"


@pytest.mark.inv("GATE-1")
def test_a_person_who_does_not_answer_leaves_everything_as_it_was() -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow")
    cancelled = answering(harness, "cancel").advance(first)
    assert cancelled["nextIntent"] == "await_user_confirmation"
    assert events_of(harness, first, "advance_recorded") == []


# Autonomy.


@pytest.mark.inv("GATE-5")
@pytest.mark.parametrize("can_ask", [True, False])
def test_a_change_of_preferences_never_opens_the_gate_it_comes_with(*, can_ask: bool) -> None:
    harness = asking(serving(GATED, GATED | {"id": "b"}, step("c")), client_can=can_ask)
    first = harness.start("test.flow")
    waiting = harness.advance(first, preferences=NEVER_STOPS)
    assert waiting["nextIntent"] == "await_user_confirmation"
    second = answering(harness).advance(first, preferences=NEVER_STOPS)
    assert second["pending"]["stepId"] == "b"
    assert harness.advance(second)["pending"]["stepId"] == "c"


@pytest.mark.inv("GATE-5")
def test_more_autonomy_is_asked_for_where_the_client_can_ask() -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow")
    waiting = asking(harness).advance(first, preferences=STOPS)
    assert "full_auto_stop_on_user_deps" in waiting["blockers"][0]["message"]
    second = answering(harness).advance(first, preferences=STOPS)
    assert second["preferences"]["autonomy"] == "full_auto_stop_on_user_deps"
    assert second["answered"]["asks"][0]["reason"] == "needs_user_approval"
    less = asking(harness).advance(second, preferences={"autonomy": "guided"})
    assert less["isComplete"]
    assert harness.advance(harness.start("test.flow"), preferences=STOPS)["kind"] == "ok"


@pytest.mark.inv("GATE-5")
@pytest.mark.parametrize("how", ["declined", "evidence is missing"])
def test_a_refused_attempt_brings_no_autonomy_that_nobody_granted(how: str) -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow")
    client, notes = (answering(harness, "decline"), "Done.") if how == "declined" else (asking(harness), None)
    wanted = NEVER_STOPS | {"riskPolicy": "balanced"}
    blocked = client.advance(first, notes, preferences=wanted)
    assert blocked["preferences"] == {"autonomy": "guided", "riskPolicy": "balanced"}
    changed = [
        one for one in events_of(harness, first, "preferences_changed") if isinstance(one, PreferencesChangedEvent)
    ]
    assert [change.key for change in changed[-1].data.delta] == ["riskPolicy"]
    assert asking(harness).advance(blocked)["nextIntent"] == "await_user_confirmation"


@pytest.mark.inv("GATE-5", "GATE-2")
def test_a_start_with_more_autonomy_is_asked_for_and_records_nothing_before(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", document(step("a", when=IS_FAST), step("b")))
    mode: Document = {"mode": "slow"}
    for client in (asking(harness), answering(harness, "cancel"), answering(harness, "decline", comment="No")):
        refused = client.start("test.flow", preferences=STOPS, context=mode)
        assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "preferences.autonomy")
        assert not (tmp_path / "data").exists()
    undecided = asking(harness).start("test.flow", preferences=STOPS)
    assert undecided["details"]["path"] == "context.mode", "a run that cannot begin is asked about by nobody"
    begun = answering(harness).start("test.flow", preferences=STOPS, context=mode)
    assert begun["preferences"]["autonomy"] == "full_auto_stop_on_user_deps"
    assert not asking(harness).start("test.flow", context=mode).is_error


@pytest.mark.inv("GATE-5")
def test_a_word_for_one_start_is_none_for_another() -> None:
    other = document(step("a")) | {"id": "test.other"}
    harness = asking(Harness.in_memory(document(step("a")), other))
    request = Request(preferences=PreferenceDelta(autonomy="full_auto_never_stop"), asking=harness.asking)
    subjects: set[str] = set()
    for name in ("test.flow", "test.other"):
        command = StartCommand(workflow_id=name, workspace=None, request=request)
        found = start_workflow(harness.ports, command)
        assert isinstance(found, HumanInputRequired)
        subjects.add(found.subject)
    assert len(subjects) == 2


@pytest.mark.inv("GATE-1")
def test_more_asks_than_a_report_holds_are_reported_within_it() -> None:
    needs = [{"reason": "needs_user_approval", "ask": f"Number {number}?"} for number in range(10)]
    harness = asking(serving(step("a", needsUser=needs, requireConfirmation=True), step("b")))
    waiting = harness.advance(harness.start("test.flow"), preferences=STOPS)
    assert len(waiting["blockers"]) == 10


ASKS_A_PERSON = ("await_user_confirmation", "ask the user", "ask before", "needs the user", "only the user", "wait for")


@pytest.mark.inv("MODE-8")
def test_no_answer_of_a_run_that_never_stops_asks_the_agent_to_ask_or_wait_for_a_person() -> None:
    needs = [{"reason": reason, "ask": f"Which {reason} is it?"} for reason in get_args(UserReason)]
    needs = [need | ({"choiceKind": "scope_boundary"} if "choice" in need["reason"] else {}) for need in needs]
    harness = serving(step("a", requireConfirmation=True, needsUser=needs), step("b", requireConfirmation=True))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    answers = [
        first,
        harness.rehydrate(first),
        second := harness.advance(first),
        harness.rehydrate(first),
        harness.rehydrate(second),
    ]
    for answer in [*answers, harness.advance(second), harness.checkpoint(second)]:
        words = (answer.text + str(answer.structure)).lower()
        assert [one for one in ASKS_A_PERSON if one in words] == []
    for need in needs:
        assert need["ask"] in first["pending"]["prompt"]
    assert "Do you approve the step 'Step a'?" in first["pending"]["prompt"]
    assert "decide as the user would, and write each assumption down" in first["pending"]["prompt"]
    assert first["nextIntent"] == second["nextIntent"] == "perform_pending_then_continue"
    assert len(gaps_in(harness, first)) == len(needs) + 2


@pytest.mark.inv("MODE-8")
def test_a_question_to_clarify_is_asked_of_the_user_only_in_a_run_that_may_stop() -> None:
    workrail: Document = {
        "id": "test.flow",
        "name": "A",
        "description": "B.",
        "version": "1.0.0",
        "clarificationPrompts": ["Which branch?"],
        "steps": [{"id": "a", "title": "A", "prompt": "Do it."}],
    }
    harness = Harness.in_memory(workrail)
    assert harness.start("test.flow")["guidance"] == ["Ask the user if it is not clear: Which branch?"]
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    assert first["guidance"][-1] == "If it is not clear, assume an answer: Which branch?"
    assert harness.rehydrate(first)["guidance"] == first["guidance"]


@pytest.mark.inv("MODE-9")
def test_the_kind_of_a_choice_is_shown_in_every_question_and_recorded_with_the_answer_and_the_gap() -> None:
    need = {"reason": "needs_user_choice", "ask": "Which one?", "choiceKind": "scope_boundary"}
    harness = serving(step("a", needsUser=[need]), step("b"))
    first = harness.start("test.flow")
    assert "Which one? (choice: scope boundary)" in first["pending"]["prompt"]
    [blocker] = asking(harness).advance(first)["blockers"]
    assert "the user's choice: scope boundary." in blocker["message"]
    assert blocker["details"] == {"ask": 1, "choiceKind": "scope_boundary"}
    second = answering(harness, n1="This one.").advance(first)
    assert second["answered"]["asks"] == [
        {"answer": "This one.", "ask": "Which one?", "reason": "needs_user_choice", "choiceKind": "scope_boundary"}
    ]
    free = harness.start("test.flow", preferences=NEVER_STOPS)
    harness.advance(free)
    assert [gap.summary for gap in gaps_in(harness, free)] == [
        "The run continued without the user's choice: scope boundary. The question, which was not asked: Which one?"
    ]


@pytest.mark.inv("MODE-9")
def test_a_choice_without_a_kind_is_no_workflow() -> None:
    need = {"reason": "needs_user_choice", "ask": "Which one?"}
    found = serving(step("a", needsUser=[need])).start("test.flow")
    assert [(one["path"], one["code"]) for one in found["details"]["diagnostics"]] == [
        ("steps[0].needsUser[0]", "missing_key")
    ]


def claim_blanks(answer: ToolResult) -> list[str]:
    """Return the members of the claim that the next call of an answer asks for."""
    kinds = answer["nextCall"]["arguments"].get("output", {}).get("artifacts", [])
    assert kinds in ([], [{"kind": "wr.confirmation"}])
    return [one["path"] for one in answer["nextCall"]["fill"] if "artifacts" in one["path"]]


CLAIM_BLANKS = ["output.artifacts[0].kind", "output.artifacts[0].confirmedBy", "output.artifacts[0].statement"]


@pytest.mark.inv("GATE-9")
@pytest.mark.parametrize(
    "gate", [{"requireConfirmation": True}, {"needsUser": [{"reason": "needs_user_secret_or_token", "ask": "Set it."}]}]
)
def test_a_gate_where_no_one_can_be_asked_shows_its_claim_in_the_first_call(gate: Document) -> None:
    harness = asking(serving(step("z"), step("a", **gate), step("b")), client_can=False)
    answer = harness.advance(harness.start("test.flow"))
    kept = harness.checkpoint(answer)
    refused = harness.advance(answer, None)
    for shown in (answer, harness.rehydrate(answer), kept, refused):
        assert claim_blanks(shown) == CLAIM_BLANKS
        assert "`output.artifacts[0].statement`" in shown.text
    assert harness.follow(refused)["pending"]["stepId"] == "b"


@pytest.mark.inv("GATE-9")
def test_where_a_person_can_be_asked_or_no_claim_counts_no_claim_is_shown() -> None:
    gated = serving(GATED, step("b"))
    assert claim_blanks(asking(gated, client_can=True).start("test.flow")) == []
    never = asking(gated, client_can=False)
    never = replace(never, asking=replace(never.asking, claims="never"))
    answer = never.start("test.flow")
    assert [*claim_blanks(answer), *claim_blanks(never.rehydrate(answer)), *claim_blanks(never.advance(answer))] == []
    assert claim_blanks(gated.start("test.flow", preferences=NEVER_STOPS)) == []
    assert claim_blanks(serving(step("a"), step("b")).start("test.flow")) == []
