"""Looking at a run shows where it stands and moves nothing; redoing a step is possible, but only on purpose."""

import pytest

from interlock.kernel.budgets import RECAP_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import NodeId
from interlock.kernel.text import TRUNCATION_MARKER, utf8_bytes
from interlock.record.events import EdgeCreatedEvent
from interlock.service.audit.verify import verify_session
from interlock.service.run.plans import Plans
from interlock.service.tools.recap import DONE_SO_FAR
from interlock.testing.harness import Harness, ToolResult, linear_workflow


def edges(harness: Harness, answer: ToolResult) -> list[tuple[NodeId, NodeId, str]]:
    return [
        (event.data.from_node_id, event.data.to_node_id, event.data.cause.kind)
        for event in harness.events(harness.session_of(answer))
        if isinstance(event, EdgeCreatedEvent)
    ]


@pytest.mark.inv("ADV-8")
def test_looking_at_the_pending_step_shows_it_with_the_tokens_that_were_given(harness: Harness) -> None:
    first = harness.start("test.abc", goal="G")
    second = harness.advance(first, "Did a.")
    looked = harness.rehydrate(second)
    assert looked["pending"] == second["pending"]
    assert (looked.ack, looked.state) == (second.ack, second.state)
    assert looked["nextCall"].items() > second["nextCall"].items()
    assert looked["nextIntent"] == "rehydrate_only"
    assert looked["recap"] == f"{DONE_SO_FAR}`Step a`:\n> Did a."
    assert "Did a." in looked.text
    assert looked.warnings == []
    assert {"sessionId", "runId", "workflowName", "goal"} <= set(looked["run"])
    assert looked["preferences"] == {"autonomy": "guided", "riskPolicy": "conservative"}
    assert harness.follow(looked)["pending"]["stepId"] == "c"


@pytest.mark.inv("ADV-8")
def test_looking_twice_is_the_same_bytes(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(harness.advance(first, None))
    for answer in (first, second):
        assert harness.rehydrate(answer) == harness.rehydrate(answer)


@pytest.mark.inv("ADV-9")
def test_an_honest_question_after_a_lost_answer_does_not_fork(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first, "Did a.")
    looked = harness.rehydrate(first)
    assert looked.warnings == ["STEP_ALREADY_DONE"]
    assert "ackToken" not in looked.structure
    assert looked["pending"]["stepId"] == "a"
    line = looked.text.partition("\n")[0]
    assert "step 1 of 3: `Step a`" in line
    assert "step 2 of 3: `Step b`" in line
    assert looked["nextCall"]["arguments"]["stateToken"] == second.state
    here = harness.follow(looked)
    assert here.ack == second.ack
    third = harness.follow(here)
    assert third["pending"]["stepId"] == "c"
    assert [cause for _, _, cause in edges(harness, first)] == ["tip_advance"] * 2


@pytest.mark.inv("ADV-9")
def test_a_passed_step_points_at_the_tip_however_far_the_run_went(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first)
    third = harness.advance(second)
    assert harness.rehydrate(first)["nextCall"]["arguments"]["stateToken"] == third.state
    last = harness.advance(third)
    looked = harness.rehydrate(second)
    assert "complete" in looked["warnings"][0]["message"]
    assert looked["nextCall"]["arguments"]["stateToken"] == last.state
    end = harness.follow(looked)
    assert (end["isComplete"], end["pending"], end["nextCall"], end["nextIntent"]) == (True, None, None, "complete")


@pytest.mark.inv("ADV-10")
def test_a_fork_makes_a_sibling_and_leaves_the_other_branch_alone(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first, "Did a.")
    third = harness.advance(second, "Did b.")
    before = harness.rehydrate(third)
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Did a otherwise.")
    assert forked["pending"]["stepId"] == "b"
    assert forked.state not in (second.state, third.state)
    assert [cause for _, _, cause in edges(harness, first)] == ["tip_advance", "tip_advance", "intentional_fork"]
    (root, _, _), _, (from_node, _, _) = edges(harness, first)
    assert from_node == root
    assert harness.rehydrate(third) == before
    assert harness.rehydrate(forked)["recap"] == f"{DONE_SO_FAR}`Step a`:\n> Did a otherwise."
    assert harness.rehydrate(third)["recap"] == f"{DONE_SO_FAR}`Step b`:\n> Did b.\n\n`Step a`:\n> Did a."
    assert harness.advance(third)["isComplete"]


@pytest.mark.inv("ADV-10")
def test_the_answer_to_a_fork_says_in_both_channels_that_a_branch_was_made(harness: Harness) -> None:
    """An agent that takes a branch for the run itself reports the wrong thing to its user."""
    first = harness.start("test.abc")
    harness.advance(first)
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Otherwise.")
    assert "branch" in forked.text
    assert "branch" in str({key: forked.structure.get(key) for key in ("warnings", "fork", "run")})


@pytest.mark.inv("ADV-9")
def test_where_the_run_prefers_another_branch_it_is_named(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first)
    third = harness.advance(second)
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Otherwise.")
    looked = harness.rehydrate(second)
    assert looked["nextCall"]["arguments"]["stateToken"] == third.state
    assert "the branch that was continued last is at step 2 of 3: `Step b`" in looked["warnings"][0]["message"]
    assert "continued last" in looked.text.partition("\n")[0]
    assert harness.rehydrate(first)["nextCall"]["arguments"]["stateToken"] == forked.state


@pytest.mark.inv("ADV-11")
def test_forking_a_step_n_times_makes_n_branches_and_each_replays(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first)
    tokens: list[str] = []
    answers: list[ToolResult] = []
    for number in range(5):
        tokens.append(harness.rehydrate(first)["fork"]["ackToken"])
        answers.append(harness.advance(tokens[-1], f"Variant {number}."))
    assert len(set(tokens)) == len({answer.state for answer in answers}) == 5
    for number, token in enumerate(tokens):
        assert harness.advance(token, f"Variant {number}.") == answers[number]
    assert len(edges(harness, first)) == 6


@pytest.mark.inv("ADV-11")
def test_the_fork_beyond_the_limit_is_refused_and_the_limit_named() -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    harness.advance(first)
    for _ in range(255):
        assert not harness.advance(harness.rehydrate(first)["fork"]["ackToken"]).is_error
    count = len(harness.events(harness.session_of(first)))
    refused = harness.advance(harness.rehydrate(first)["fork"]["ackToken"])
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert refused["details"]["maxForks"] == 255
    assert first["run"]["label"] in refused["message"]
    assert len(harness.events(harness.session_of(first))) == count


@pytest.mark.inv("ADV-10", "BLK-3")
def test_a_refused_fork_is_a_blocked_attempt_whose_tokens_go_on(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first)
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    blocked = harness.advance(fork, None)
    assert (blocked["kind"], blocked["pending"]["stepId"]) == ("blocked", "a")
    assert harness.rehydrate(blocked)["kind"] == "blocked"
    assert harness.rehydrate(blocked).ack == blocked.ack
    assert harness.advance(fork, None) == blocked
    forked = harness.advance(blocked, "Otherwise.")
    assert (forked["kind"], forked["pending"]["stepId"]) == ("ok", "b")
    assert harness.rehydrate(forked)["recap"] == f"{DONE_SO_FAR}`Step a`:\n> Otherwise."


def long_run(notes: list[str]) -> tuple[Harness, ToolResult]:
    harness = Harness.in_memory(linear_workflow("test.long", *(f"s{at}" for at in range(len(notes) + 1))))
    answer = harness.start("test.long")
    for text in notes:
        answer = harness.advance(answer, text)
    return harness, harness.rehydrate(answer)


@pytest.mark.inv("ANS-6")
def test_the_recap_has_the_newest_notes_first() -> None:
    _, looked = long_run(["first notes", "second notes", "third notes"])
    notes = "`Step s2`:\n> third notes\n\n`Step s1`:\n> second notes\n\n`Step s0`:\n> first notes"
    assert looked["recap"] == DONE_SO_FAR + notes


@pytest.mark.inv("ANS-6")
@pytest.mark.parametrize("size", [50, 333, 1500, 3000, 4096])
def test_a_recap_above_the_budget_loses_the_oldest_and_is_marked(size: int) -> None:
    _, looked = long_run([f"{at:03d} {'é' * ((size - 4) // 2)}" for at in range(60)])
    recap = looked["recap"]
    assert utf8_bytes(recap) <= RECAP_BYTES_MAX
    assert recap.endswith(TRUNCATION_MARKER) or size == 50
    assert recap.startswith(f"{DONE_SO_FAR}`Step s59`:\n> 059 ")
    assert recap in looked.text
    whole = [at for at in range(60) if f"{at:03d} {'é' * ((size - 4) // 2)}" in recap]
    assert whole == list(range(60 - len(whole), 60))


@pytest.mark.inv("ANS-6")
def test_a_recap_that_fits_but_would_cost_a_walk_of_the_whole_run_is_marked_as_cut() -> None:
    _, looked = long_run(["x"] * 250)
    assert looked["recap"].startswith(f"{DONE_SO_FAR}`Step s249`:\n> x\n\n`Step s248`:\n> x")
    assert looked["recap"].endswith(TRUNCATION_MARKER)
    assert "`Step s0`" not in looked["recap"]


@pytest.mark.inv("ANS-6")
def test_a_run_without_notes_has_no_recap(harness: Harness) -> None:
    assert "recap" not in harness.rehydrate(harness.start("test.abc")).structure


@pytest.mark.inv("ANS-6")
def test_notes_of_refused_attempts_are_no_part_of_the_recap(harness: Harness) -> None:
    first = harness.start("test.abc")
    blocked = harness.advance(first, None, output={"artifacts": [{"kind": "k"}]})
    second = harness.advance(blocked, "Good.")
    notes, _, named = harness.rehydrate(second)["recap"].removeprefix(DONE_SO_FAR).partition("\n\n")
    assert notes == "`Step a`:\n> Good."
    assert named.startswith("**Stored artifacts, newest first**\n- `k` sha256:")
    assert len(named.splitlines()) == 2, "what a retry keeps is named once"


@pytest.mark.inv("ANS-5", "PLAN-5")
def test_guidance_and_references_come_on_start_and_rehydrate_and_not_on_advance() -> None:
    reference = {"id": "r", "title": "R", "source": "docs/r.md", "purpose": "Binding.", "authoritative": True}
    document = linear_workflow("test.abc", "a", "b", guidance=["Be kind."], references=[reference], agentRole="You.")
    harness = Harness.in_memory(document)
    first = harness.start("test.abc")
    second = harness.advance(first)
    again = harness.rehydrate(second)
    assert first["guidance"] == again["guidance"] == ["Be kind."]
    assert first["references"] == [reference]
    assert again["references"] == [{"title": "R", "source": "docs/r.md"}]
    assert not {"guidance", "references"} & set(second.structure)
    assert first["pending"]["agentRole"] == again["pending"]["agentRole"] == "You."
    assert "agentRole" not in second["pending"]


@pytest.mark.inv("TRACE-4")
def test_a_step_that_is_redone_on_a_branch_is_traced_as_an_advance_from_a_passed_node(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first, "Did a.")
    forked = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Did a otherwise.")
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    traced = {
        node.node: [(one.kind, [ref.to_json() for ref in one.refs or ()]) for one in node.trace]
        for node in session.nodes.values()
    }
    entry = ("detected_non_tip_advance", [{"kind": "step_id", "stepId": "a"}])
    assert entry in traced[harness.reference_of(forked).node]
    assert entry not in traced[harness.reference_of(second).node]
    assert verify_session(harness.store, Plans(harness.store), session.session) == ()
