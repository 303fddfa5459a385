"""A checkpoint keeps notes and a bookmark, and changes nothing else."""

import pytest
from tests.support.calls import assert_shown
from tests.support.ends import work_record
from tests.support.flow import loop, step
from tests.support.lifecycle import hold_lifecycle

from interlock.define.schemas import flat_schema
from interlock.kernel.budgets import CHECKPOINTS_PER_NODE_MAX, NOTES_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import NodeId, ack_attempt, checkpoint_attempt
from interlock.record.events import EdgeCreatedEvent, NodeCreatedEvent, NodeOutputAppendedEvent
from interlock.record.tokens import AttemptRef, StateRef, TokenKind, mint
from interlock.server.tools import tool_named
from interlock.service.tools.recap import DONE_SO_FAR
from interlock.testing.harness import FIXED_KEYS, Harness, ToolResult, linear_workflow
from interlock.views.session import Session

ARTIFACT = {"kind": "report", "passed": 3}


def fold_of(harness: Harness, answer: ToolResult) -> Session:
    fold = harness.ports.read.reader.load(harness.session_of(harness.rehydrate(answer)))
    assert fold is not None
    return fold


def node_of(harness: Harness, answer: ToolResult) -> NodeId:
    ref = harness.reference_of(answer)
    assert isinstance(ref, StateRef)
    return ref.node


@pytest.mark.inv("CHK-1")
def test_a_checkpoint_records_a_node_an_edge_and_what_was_sent_and_nothing_else(harness: Harness) -> None:
    first = harness.start("test.abc", goal="Show it")
    second = harness.advance(first)
    session = harness.session_of(first)
    before = harness.events(session)
    fold = fold_of(harness, second)
    kept = harness.checkpoint(second, "Half.", output={"notesMarkdown": "Half.", "artifacts": [ARTIFACT]})
    assert kept["kind"] == "ok"
    created, edge, notes, artifact = harness.events(session)[len(before) :]
    assert isinstance(created, NodeCreatedEvent)
    assert isinstance(edge, EdgeCreatedEvent)
    assert isinstance(notes, NodeOutputAppendedEvent)
    assert isinstance(artifact, NodeOutputAppendedEvent)
    assert (created.data.node_kind, created.scope.node_id) == ("checkpoint", kept["checkpoint"]["nodeId"])
    assert created.data.request_digest is not None
    assert (edge.data.edge_kind, edge.data.cause.kind) == ("checkpoint", "checkpoint_created")
    assert edge.data.cause.event_id == created.event_id
    assert {notes.scope.node_id, artifact.scope.node_id} == {node_of(harness, second)}
    after = fold_of(harness, second)
    assert [run.tip for run in after.runs.values()] == [run.tip for run in fold.runs.values()]


@pytest.mark.inv("CHK-1")
def test_every_token_stays_good_and_the_next_ordinary_advance_is_no_fork(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    kept = harness.checkpoint(harness.checkpoint(second))
    third = harness.advance(second, "Did b.")
    assert third["pending"]["stepId"] == "c"
    assert third.warnings == []
    causes = [
        event.data.cause.kind
        for event in harness.events(harness.session_of(harness.rehydrate(third)))
        if isinstance(event, EdgeCreatedEvent)
    ]
    assert causes == ["tip_advance", "checkpoint_created", "checkpoint_created", "tip_advance"]
    assert harness.follow(kept, "Did b.") == harness.advance(second, "Did b.")


@pytest.mark.inv("CHK-2")
def test_the_same_token_tells_the_same_for_ever_whatever_came_since(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    token = harness.rehydrate(second)["checkpointToken"]
    kept = harness.checkpoint(token, "One.")
    later = harness.checkpoint(kept, "Two.")
    harness.advance(harness.advance(second))
    assert harness.checkpoint(token, "One.") == kept
    assert harness.checkpoint(kept, "Two.") == later
    other = harness.checkpoint(token, "Other.")
    assert other.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert other["checkpointToken"] == kept["checkpointToken"]
    assert node_of(harness, other) == node_of(harness, kept) != node_of(harness, later)


@pytest.mark.inv("CHK-2")
def test_an_advance_that_is_repeated_after_a_checkpoint_carries_the_tokens_of_the_first(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first)
    harness.checkpoint(second)
    assert harness.advance(first) == second
    assert "checkpointToken" not in second.structure


@pytest.mark.inv("CHK-1", "REC-1")
def test_the_bookmark_shows_the_step_with_what_was_kept_in_any_process(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"), "Did a.")
    kept = harness.checkpoint(second, "Half of b.")
    looked = harness.rehydrate(kept["stateToken"])
    assert looked["pending"] == second["pending"]
    assert looked.ack == second.ack
    headline = "**Notes of the last checkpoint of this step, `Step b`**"
    assert looked["recap"] == f"{headline}\n> Half of b.\n\n{DONE_SO_FAR}`Step a`:\n> Did a."
    assert harness.rehydrate(second)["recap"] == looked["recap"]
    after = harness.rehydrate(harness.advance(second, "Did b."))["recap"]
    assert after == f"{DONE_SO_FAR}`Step b`:\n> Did b.\n\n`Step a`:\n> Did a."


@pytest.mark.inv("CHK-3", "READ-5")
def test_later_notes_supersede_those_of_the_checkpoint_before_and_never_those_of_the_step(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"), "Did a.")
    kept = harness.checkpoint(second, "One.")
    bare = harness.checkpoint(kept, None)
    harness.checkpoint(bare, "Two.")
    outputs = fold_of(harness, second).nodes[node_of(harness, second)].outputs
    assert [output.supersedes for output in outputs] == [None, None, outputs[1].output_id]
    assert "Two." in harness.rehydrate(second)["recap"]
    assert "One." not in harness.rehydrate(second)["recap"]


@pytest.mark.inv("CHK-3")
def test_what_a_checkpoint_brings_is_no_evidence_of_the_step(harness: Harness) -> None:
    first = harness.start("test.abc")
    refused = harness.advance(first, None)
    assert refused["kind"] == "blocked"
    harness.checkpoint(refused, "These are notes of a checkpoint.")
    again = harness.advance(refused, None)
    assert [one["code"] for one in again["blockers"]] == ["MISSING_REQUIRED_OUTPUT"]


def test_an_empty_checkpoint_is_a_bookmark(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    kept = harness.call(
        "checkpoint_workflow",
        {"checkpointToken": harness.rehydrate(second)["checkpointToken"], "stateToken": second.state},
    )
    assert kept["checkpoint"]["nodeId"].startswith("node_")
    assert "recap" in harness.rehydrate(kept["stateToken"]).structure


def test_of_a_step_that_is_done_a_checkpoint_leads_to_where_the_run_stands(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    harness.advance(second)
    late = harness.checkpoint(second, "Late.")
    assert "ackToken" not in late["nextCall"]["arguments"]
    shown = harness.call(late["nextCall"]["tool"], late["nextCall"]["arguments"])
    assert shown.warnings == ["STEP_ALREADY_DONE"]
    run = next(iter(fold_of(harness, second).runs.values()))
    assert run.tip == node_of(harness, harness.advance(second))


@pytest.mark.inv("LIFE-9")
def test_a_checkpoint_of_a_done_step_after_the_end_is_a_possible_history(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    end = harness.advance(harness.advance(second))
    assert end["isComplete"]
    harness.checkpoint(second, "Late.")
    session = fold_of(harness, second)
    hold_lifecycle(harness.store, session, next(iter(session.runs)))


@pytest.mark.inv("END-7")
@pytest.mark.parametrize("work", ["failed", "released"])
def test_work_of_a_done_step_cannot_be_left(harness: Harness, work: str) -> None:
    first = harness.start("test.abc")
    harness.advance(first)
    before = fold_of(harness, first).next_index
    output = work_record(work, "gave_up")
    refused = harness.call("checkpoint_workflow", {"ackToken": first.ack, "output": output})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert "without `wr.work_record`" in refused["suggestion"]
    assert fold_of(harness, first).next_index == before


def test_the_text_of_a_checkpoint_holds_its_tokens_and_the_next_call(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    kept = harness.checkpoint(second)
    for said in (kept["stateToken"], kept["checkpointToken"]):
        assert said in kept.text
    assert_shown(kept["nextCall"], kept.text)


def test_a_run_at_its_end_offers_no_checkpoint(harness: Harness) -> None:
    done = harness.advance(harness.start("test.one"))
    assert done["isComplete"]
    assert "checkpointToken" not in done.structure
    assert "checkpointToken" not in harness.rehydrate(done).structure


def test_long_notes_are_cut_as_those_of_a_step_are_and_kept_whole_beside(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    kept = harness.checkpoint(second, "x" * (NOTES_BYTES_MAX + 1))
    assert kept.warnings == ["NOTES_TRUNCATED"]
    assert harness.checkpoint(second, "x" * (NOTES_BYTES_MAX + 1)) == kept


@pytest.mark.inv("TOK-4", "TOK-6")
def test_tokens_of_other_kinds_and_other_steps_are_refused_in_words(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first)
    for wrong in (second.ack, second.state):
        refused = harness.checkpoint(wrong)
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        assert "`checkpointToken`" in refused.text
    assert harness.advance(harness.rehydrate(second)["checkpointToken"]).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    beside = harness.checkpoint(second, stateToken=first.state)
    assert beside.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert harness.checkpoint(second, stateToken=second.state)["kind"] == "ok"


@pytest.mark.inv("TOK-5")
def test_a_checkpoint_that_the_log_has_not_reached_is_refused_and_nothing_is_written() -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    session, node = harness.session_of(first), node_of(harness, first)
    run = next(iter(fold_of(harness, first).runs))

    def token(attempt: str) -> str:
        ref = AttemptRef(kind=TokenKind.CHECKPOINT, session=session, run=run, node=node, attempt=attempt)  # type: ignore[arg-type]
        return mint(ref, FIXED_KEYS.current)

    before = harness.events(session)
    for attempt in (checkpoint_attempt(node, 1), ack_attempt(node)):
        assert harness.checkpoint(token(attempt)).code is ErrorCode.TOKEN_UNKNOWN_NODE
    assert harness.events(session) == before


@pytest.mark.inv("CHK-4")
def test_one_step_has_as_many_checkpoints_as_a_token_can_count() -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    answer = harness.start("test.abc")
    first = answer
    for _ in range(CHECKPOINTS_PER_NODE_MAX):
        answer = harness.checkpoint(answer, None)
    assert "checkpointToken" not in answer.structure
    assert "checkpointToken" not in harness.rehydrate(first).structure
    assert harness.advance(first)["kind"] == "ok"


def test_a_checkpoint_in_a_pass_of_a_loop_keeps_to_its_pass(harness: Harness) -> None:
    twice = loop("turn", step("work"), **{"for": {"count": 2}}, maxIterations=2)
    looping = {"id": "test.loop", "name": "Loop", "steps": [twice]}
    looped = Harness.over(harness.store, looping)
    first = looped.start("test.loop")
    kept = looped.checkpoint(first, "First pass.")
    second = looped.advance(first)
    assert second["pending"]["loop"]["pass"] == 2
    assert "First pass." not in (looped.rehydrate(second).structure.get("recap") or "")
    assert looped.rehydrate(kept["stateToken"]).warnings == ["STEP_ALREADY_DONE"]


def test_a_wrong_witness_beside_a_checkpoint_is_reported_without_a_word_of_reporting_the_step(harness: Harness) -> None:
    first, other = harness.start("test.abc"), harness.start("test.abc")
    second = harness.advance(first)
    for beside in (other.state, second.state):
        refused = harness.checkpoint(first, stateToken=beside)
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        assert "ackToken" not in refused.text
        assert "Send only the `checkpointToken`" in refused.text


@pytest.mark.inv("REC-1")
def test_a_block_of_code_that_notes_leave_open_ends_with_them(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"), "```\n# not a headline")
    recap = harness.rehydrate(harness.advance(second, "~~~py\n```\nstill code"))["recap"]
    assert recap == f"{DONE_SO_FAR}`Step b`:\n> ~~~py\n> ```\n> still code\n\n`Step a`:\n> ```\n> # not a headline"


def checkpoint_by_ack(harness: Harness, answer: ToolResult, notes: str, **arguments: object) -> ToolResult:
    sent = {"ackToken": answer.ack, "output": {"notesMarkdown": notes}, **arguments}
    return harness.call("checkpoint_workflow", sent)


@pytest.mark.inv("CHK-5", "CHK-1")
def test_an_ack_token_saves_a_checkpoint_and_does_not_report_the_step(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    by_ack = checkpoint_by_ack(harness, second, "Half.")
    assert by_ack == harness.checkpoint(second, "Half.")
    assert "> Half." in harness.rehydrate(second)["recap"]
    assert harness.rehydrate(second)["pending"] == second["pending"]
    assert harness.advance(second)["pending"]["stepId"] == "c"


@pytest.mark.inv("CHK-5")
def test_a_repeated_ack_token_returns_the_checkpoint_with_its_content_and_else_makes_the_next(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    one, two = (checkpoint_by_ack(harness, second, notes) for notes in ("One.", "Two."))
    before = len(harness.events(harness.session_of(harness.rehydrate(second))))
    assert one["checkpoint"] != two["checkpoint"]
    assert checkpoint_by_ack(harness, second, "One.") == one
    assert checkpoint_by_ack(harness, second, "Two.") == two
    assert (one.warnings, two.warnings) == ([], [])
    assert len(harness.events(harness.session_of(harness.rehydrate(second)))) == before
    harness.advance(second)
    assert checkpoint_by_ack(harness, second, "Two.") == two


@pytest.mark.inv("CHK-5", "CHK-4")
def test_an_ack_token_has_no_more_checkpoints_than_a_checkpoint_token() -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    for number in range(CHECKPOINTS_PER_NODE_MAX):
        checkpoint_by_ack(harness, first, f"Note {number}.")
    refused = checkpoint_by_ack(harness, first, "One more.")
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "ackToken")


@pytest.mark.inv("CHK-5", "ANS-15")
def test_a_checkpoint_needs_a_token_and_takes_two_of_one_step(harness: Harness) -> None:
    first = harness.start("test.abc")
    neither = harness.call("checkpoint_workflow", {"output": {"notesMarkdown": "Half."}})
    call = neither["details"]["correctedCall"]
    assert call["arguments"] == {"output": {"notesMarkdown": "Half."}}
    assert [one["path"] for one in call["fill"]] == ["ackToken"]
    both = checkpoint_by_ack(harness, first, "Half.", checkpointToken=first["checkpointToken"])
    assert not both.is_error
    assert both == checkpoint_by_ack(harness, first, "Half.")
    assert both == checkpoint_by_ack(harness, first, "Half.", checkpointToken=first.ack)
    other = harness.start("test.abc")
    for beside in (other["checkpointToken"], harness.rehydrate(harness.advance(first))["checkpointToken"]):
        refused = checkpoint_by_ack(harness, first, "More.", checkpointToken=beside)
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        assert "Send only the `ackToken`" in refused.text
    three = checkpoint_by_ack(harness, first, "Half.", checkpointToken=first["checkpointToken"], stateToken=first.state)
    call = three["details"]["correctedCall"]
    assert call["arguments"] == {"checkpointToken": first["checkpointToken"], "output": {"notesMarkdown": "Half."}}


@pytest.mark.inv("TOK-6")
def test_a_state_token_is_no_published_argument_of_a_checkpoint_and_is_still_checked(harness: Harness) -> None:
    tool = tool_named("checkpoint_workflow")
    assert tool is not None
    schema = flat_schema(tool.arguments, "validation")
    assert isinstance(schema["properties"], dict)
    assert set(schema["properties"]) == {"ackToken", "checkpointToken", "output"}
    first, other = harness.start("test.abc"), harness.start("test.abc")
    assert checkpoint_by_ack(harness, first, "Half.", stateToken=first.state)["kind"] == "ok"
    refused = checkpoint_by_ack(harness, first, "More.", stateToken=other.state)
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH


@pytest.mark.parametrize("output", [None, {}, {"notesMarkdown": "  "}])
def test_a_checkpoint_of_nothing_does_not_say_that_it_saved_something(output: dict[str, str] | None) -> None:
    memory = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    sent = {"ackToken": memory.start("test.abc").ack} | ({"output": output} if output is not None else {})
    for _ in range(2):
        answer = memory.call("checkpoint_workflow", sent)
        assert "Nothing was sent to save, so this is only a bookmark." in answer.text
        assert "Saved" not in answer.text
