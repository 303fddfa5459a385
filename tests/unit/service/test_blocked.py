"""Evidence that is missing: the step stays, what came is kept, and the way on is always in the answer."""

import pytest

from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX
from interlock.kernel.errors import ErrorCode
from interlock.record.events import (
    AdvanceRecordedEvent,
    ContextSetEvent,
    EdgeCreatedEvent,
    NodeCreatedEvent,
    NodeOutputAppendedEvent,
)
from interlock.testing.harness import Harness, ToolResult
from interlock.views.status import run_status

BAD: list[dict[str, object] | None] = [
    None,
    {},
    {"notesMarkdown": None},
    {"notesMarkdown": ""},
    {"notesMarkdown": " \n"},
    {"notesMarkdown": "<your notes>"},
    {"artifacts": [{"kind": "report"}]},
]


def refused_times(harness: Harness, answer: ToolResult, count: int) -> ToolResult:
    for _ in range(count):
        answer = harness.advance(answer, None)
        assert answer["kind"] == "blocked"
    return answer


@pytest.mark.inv("BLK-1", "BLK-6")
@pytest.mark.parametrize("output", BAD, ids=repr)
def test_a_step_without_notes_stays_and_says_what_is_missing(
    harness: Harness, output: dict[str, object] | None
) -> None:
    first = harness.start("test.abc")
    blocked = harness.call("continue_workflow", {"ackToken": first.ack, "output": output})
    assert (blocked["kind"], blocked["retryable"], blocked["isComplete"]) == ("blocked", True, False)
    assert not blocked.is_error
    (blocker,) = blocked["blockers"]
    assert blocker["code"] == "MISSING_REQUIRED_OUTPUT"
    assert blocker["pointer"] == {"kind": "output_contract", "contractRef": "wr.contracts.notes"}
    assert blocked["pending"] == first["pending"]
    assert blocked["run"]["step"] == first["run"]["step"]


@pytest.mark.inv("BLK-2", "CTX-1")
def test_a_refused_attempt_keeps_what_came_with_it_on_a_node_of_its_own(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first, None, output={"artifacts": [{"kind": "report", "n": 1}]}, context={"x": 1})
    events = harness.events(harness.session_of(first))
    (root, child) = [event for event in events if isinstance(event, NodeCreatedEvent)]
    assert (child.data.node_kind, child.data.parent_node_id) == ("blocked_attempt", root.scope.node_id)
    assert child.data.snapshot_ref == root.data.snapshot_ref
    assert not [event for event in events if isinstance(event, EdgeCreatedEvent)]
    (recorded,) = [event for event in events if isinstance(event, AdvanceRecordedEvent)]
    assert (recorded.scope.node_id, recorded.data.outcome.kind) == (root.scope.node_id, "blocked")
    (output,) = [event for event in events if isinstance(event, NodeOutputAppendedEvent)]
    (context,) = [event for event in events if isinstance(event, ContextSetEvent)]
    assert (output.scope.node_id, context.data.node_id) == (child.scope.node_id, child.scope.node_id)


@pytest.mark.inv("BLK-3")
def test_good_notes_with_the_tokens_of_a_blocked_answer_go_on(harness: Harness) -> None:
    first = harness.start("test.abc")
    blocked = harness.advance(first, None, context={"x": 1})
    assert blocked.ack != first.ack
    second = harness.follow(blocked, "Did a.")
    assert (second["kind"], second["pending"]["stepId"]) == ("ok", "b")
    assert harness.follow(blocked, "Did a.") == second
    assert harness.follow(second)["pending"]["stepId"] == "c"


@pytest.mark.inv("ADV-7", "BLK-3")
def test_the_spent_token_with_corrected_notes_is_not_silently_replayed(harness: Harness) -> None:
    first = harness.start("test.abc")
    blocked = harness.advance(first, None)
    again = harness.advance(first, "Did a.")
    assert again["kind"] == "blocked"
    assert again.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert again.ack == blocked.ack
    assert harness.advance(again, "Did a.")["pending"]["stepId"] == "b"


@pytest.mark.inv("BLK-5", "ADV-8")
def test_looking_at_any_node_of_a_chain_shows_the_last_blockers_and_its_tokens(harness: Harness) -> None:
    first = harness.start("test.abc")
    middle = refused_times(harness, first, 2)
    last = refused_times(harness, middle, 2)
    for answer in (first, middle, last):
        looked = harness.rehydrate(answer)
        assert (looked["kind"], looked.ack, looked.state) == ("blocked", last.ack, last.state)
        assert looked["blockers"] == last["blockers"]
        assert looked.text.index("Not accepted yet") < looked.text.index("Do a.")
    second = harness.advance(last, "Did a.")
    for answer in (first, middle, last):
        looked = harness.rehydrate(answer)
        assert looked.warnings == ["STEP_ALREADY_DONE"]
        assert looked["nextCall"]["arguments"]["stateToken"] == second.state


@pytest.mark.inv("TOK-6")
def test_any_state_token_of_a_chain_may_stand_beside_any_ack_of_it(harness: Harness) -> None:
    first = harness.start("test.abc")
    middle = refused_times(harness, first, 1)
    last = refused_times(harness, middle, 1)
    assert harness.advance(last, "Did a.", stateToken=first.state)["pending"]["stepId"] == "b"


@pytest.mark.produces("error:ATTEMPT_LIMIT_REACHED")
@pytest.mark.inv("BLK-4", "ANS-2")
def test_the_tenth_refusal_is_an_error_that_records_nothing_and_offers_a_fork(harness: Harness) -> None:
    first = harness.start("test.abc", goal="G")
    last = refused_times(harness, first, ATTEMPTS_PER_STEP_MAX - 1)
    count = len(harness.events(harness.session_of(first)))
    refused = harness.advance(last, None)
    assert refused.code is ErrorCode.ATTEMPT_LIMIT_REACHED
    assert harness.advance(last, None) == refused
    assert len(harness.events(harness.session_of(first))) == count
    fork = refused["details"]["fork"]
    assert fork["ackToken"] in refused.text
    assert first["run"]["label"] in refused["message"]
    assert "test.abc" in refused["message"]
    assert refused["details"]["blockers"][0]["message"] in refused.text
    forked = harness.advance(fork["ackToken"], "Did a.")
    assert forked["pending"]["stepId"] == "b"


@pytest.mark.inv("BLK-5")
def test_a_chain_that_is_used_up_is_shown_with_the_fork_and_then_with_the_tip_below_it(harness: Harness) -> None:
    first = harness.start("test.abc")
    last = refused_times(harness, first, ATTEMPTS_PER_STEP_MAX - 1)
    looked = harness.rehydrate(last)
    assert looked.warnings == ["ATTEMPT_LIMIT_REACHED"]
    assert (looked["kind"], looked["retryable"]) == ("blocked", False)
    assert "ackToken" not in looked.structure
    assert looked["nextCall"]["arguments"]["ackToken"] == looked["fork"]["ackToken"]
    forked = harness.follow(looked, "Did a.")
    assert forked["pending"]["stepId"] == "b"
    again = harness.rehydrate(first)
    assert again["nextCall"]["arguments"] == {"stateToken": forked.state, "run": first["run"]["label"]}
    assert again["fork"]["ackToken"] != looked["fork"]["ackToken"]


@pytest.mark.inv("BLK-5")
def test_a_chain_that_is_used_up_tells_to_send_nothing_that_it_does_not_offer(harness: Harness) -> None:
    """Its blockers are those of the last attempt; their advice must still be true of this answer."""
    first = harness.start("test.abc")
    refused_times(harness, first, ATTEMPTS_PER_STEP_MAX - 1)
    harness.follow(harness.rehydrate(first), "Did a.")
    looked = harness.rehydrate(first)
    assert "output" not in looked["nextCall"]["arguments"]
    assert "make the call that this answer shows with" not in looked.text


@pytest.mark.inv("BLK-4")
def test_the_fork_of_a_chain_that_is_used_up_has_ten_attempts_of_its_own(harness: Harness) -> None:
    first = harness.start("test.abc")
    refused_times(harness, first, ATTEMPTS_PER_STEP_MAX - 1)
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    blocked = harness.advance(fork, None)
    assert blocked["kind"] == "blocked"
    last = refused_times(harness, blocked, ATTEMPTS_PER_STEP_MAX - 2)
    refused = harness.advance(last, None)
    assert refused.code is ErrorCode.ATTEMPT_LIMIT_REACHED
    assert refused["details"]["fork"]["ackToken"] not in (fork, last.ack)
    assert harness.advance(refused["details"]["fork"]["ackToken"], "Did a.")["pending"]["stepId"] == "b"


@pytest.mark.inv("BLK-5", "ANS-3")
def test_a_fork_that_is_used_up_too_shows_another_fork_and_not_itself(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first, "Did a.")
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    last = refused_times(harness, harness.advance(fork, None), ATTEMPTS_PER_STEP_MAX - 2)
    shown = harness.rehydrate(last)
    assert shown.warnings == ["ATTEMPT_LIMIT_REACHED"]
    assert shown["nextCall"]["arguments"]["ackToken"] == shown["fork"]["ackToken"] != fork
    assert harness.follow(shown, "Did a otherwise.")["pending"]["stepId"] == "b"


@pytest.mark.inv("READ-4")
def test_a_run_is_blocked_while_its_tip_is_a_refused_attempt_and_may_stop(harness: Harness) -> None:
    def status(answer: ToolResult) -> str:
        session = harness.store.load(harness.session_of(answer))
        assert session is not None
        (run,) = session.runs.values()
        assert run.tip is not None
        return run_status(session, session.nodes[run.tip], harness.store.snapshot(session.nodes[run.tip].snapshot))

    first = harness.start("test.one")
    assert status(first) == "in_progress"
    blocked = harness.advance(first, None)
    assert status(first) == "blocked"
    harness.advance(blocked, "Done.")
    assert status(first) == "complete"
    free = harness.start("test.one", preferences={"autonomy": "full_auto_never_stop"})
    assert status(free) == "in_progress"
    harness.advance(free, None)
    assert status(free) == "complete_with_gaps"
