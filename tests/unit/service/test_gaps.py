"""A run that never stops: what is missing is disclosed, the cautious way is taken, redoing the step settles it."""

from typing import Any

import pytest
from tests.support.flow import IS_FAST, Document, choose, deciding, loop, step
from tests.support.modes import (
    NEVER_STOPS,
    STOPS,
    codes,
    details_of,
    events_of,
    gaps_in,
    serving,
    session_of,
    status_of,
    with_artifacts,
)

from interlock.kernel.budgets import GAPS_MAX, RESOLVED_GAPS_MAX
from interlock.record.events import DecisionTraceAppendedEvent
from interlock.testing.harness import Harness, ToolResult

REVIEW = {"contractRef": "wr.contracts.review_verdict"}
RATED: Document = {
    "id": "risk",
    "purpose": "How risky.",
    "dimensions": [{"id": "harm", "purpose": "How bad.", "levels": ["low", "high"]}],
}
CAPABLE: Document = {"capabilities": {"web_browsing": "required"}}
PROBED = "wr.capability_observation"
MISSING, INVALID = "missing_required_output", "invalid_required_output"
CODES = {
    MISSING: "MISSING_REQUIRED_OUTPUT",
    INVALID: "INVALID_REQUIRED_OUTPUT",
    "required_capability_unknown": "REQUIRED_CAPABILITY_UNKNOWN",
    "required_capability_unavailable": "REQUIRED_CAPABILITY_UNAVAILABLE",
    "invariant_violation": "INVARIANT_VIOLATION",
}


def seen(status: str) -> Document:
    return {"kind": PROBED, "capability": "web_browsing", "status": status}


CASES: dict[str, tuple[list[Document], Document, Document, list[str]]] = {
    "no notes": ([step("a")], {}, with_artifacts(notes=None), [MISSING]),
    "no artifact": ([step("a", outputContract=REVIEW)], {}, with_artifacts(), [MISSING]),
    "a broken artifact": (
        [step("a", outputContract=REVIEW)],
        {},
        with_artifacts({"kind": "wr.review_verdict", "verdict": "?"}),
        [INVALID],
    ),
    "no ratings": (
        [step("a", assessmentRefs=["risk", "other"])],
        {"assessments": [RATED, RATED | {"id": "other"}]},
        with_artifacts(),
        [MISSING, MISSING],
    ),
    "short notes": ([step("a", validationCriteria={"type": "length", "min": 99})], {}, with_artifacts(), [INVALID]),
    "no context key": ([step("a", produces=["cause"])], {}, with_artifacts(), [MISSING]),
    "nothing to copy": (
        [step("a", set=[{"key": "mode", "from": "box.size"}])],
        {},
        with_artifacts(),
        [MISSING],
    ),
    "an undecided skip": ([step("a"), step("b", when=IS_FAST)], {}, with_artifacts(), [MISSING]),
    "an undecided choice": ([step("a"), choose("x", (IS_FAST, [step("b")]))], {}, with_artifacts(), [MISSING]),
    "an undecided count": (
        [step("a"), loop("l", step("b"), **{"for": {"countFrom": "level"}})],
        {},
        with_artifacts(),
        [MISSING],
    ),
    "undecided items": (
        [step("a"), loop("l", step("b"), forEach={"items": "things"})],
        {},
        with_artifacts(),
        [MISSING],
    ),
    "an undecided while": ([step("a"), loop("l", step("b"), **{"while": IS_FAST})], {}, with_artifacts(), [MISSING]),
    "an unmet need": ([step("a"), step("b", needs=["box"])], {}, with_artifacts(), [MISSING]),
    "a capability that is not there": ([step("a")], CAPABLE, with_artifacts(seen("unavailable")), [
        "required_capability_unavailable"
    ]),
    "a capability nobody knows of": ([step("a")], CAPABLE, with_artifacts(seen("unknown")), [
        "required_capability_unknown"
    ]),
    "a loop that wants more": (
        [loop("l", deciding("i"), maxIterations=1, **{"while": {"kind": "loop_control"}})],
        {},
        with_artifacts({"kind": "wr.loop_control", "decision": "continue"}),
        ["invariant_violation"],
    ),
}  # fmt: skip


def finished(harness: Harness, answer: ToolResult) -> ToolResult:
    while not answer["isComplete"]:
        assert answer["kind"] == "ok"
        answer = harness.advance(answer)
    return answer


@pytest.mark.produces(
    "reason:missing_required_output",
    "reason:invalid_required_output",
    "reason:required_capability_unknown",
    "reason:required_capability_unavailable",
    "reason:invariant_violation",
    "blocker:MISSING_REQUIRED_OUTPUT",
    "blocker:INVALID_REQUIRED_OUTPUT",
    "blocker:REQUIRED_CAPABILITY_UNKNOWN",
    "blocker:REQUIRED_CAPABILITY_UNAVAILABLE",
    "blocker:INVARIANT_VIOLATION",
    "event:gap_recorded",
)
@pytest.mark.inv("MODE-1", "MODE-2")
@pytest.mark.parametrize("name", CASES)
def test_what_blocks_one_run_is_disclosed_by_another_which_goes_on(name: str) -> None:
    steps, more, output, expected = CASES[name]
    harness = serving(*steps, **more)
    for preferences in ({}, STOPS):
        first = harness.start("test.flow", preferences=preferences)
        blocked = harness.advance(first, output=output)
        assert codes(blocked) == [CODES[detail] for detail in expected]
        assert status_of(harness, first) == "blocked"
        assert gaps_in(harness, first) == []
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    second = harness.advance(first, output=output)
    gaps = gaps_in(harness, first)
    assert details_of(gaps) == expected
    assert {gap.severity for gap in gaps} == {"critical"}
    assert second.warnings.count("GAP_RECORDED") == len(expected)
    assert (second["kind"], harness.advance(first, output=output).text) == ("ok", second.text)
    last = finished(harness, second)
    assert "COMPLETE_WITH_GAPS" in last.warnings
    assert status_of(harness, first) == "complete_with_gaps"
    assert [event.kind for event in harness.events(harness.session_of(first)) if event.kind == "advance_recorded"]


CAUTIOUS = {
    "an undecided skip": "`mode`",
    "an undecided choice": "`mode`",
    "an undecided count": "`l`",
    "undecided items": "`l`",
    "an undecided while": "`mode`",
}


@pytest.mark.inv("MODE-2", "TRACE-2")
@pytest.mark.parametrize("name", CAUTIOUS)
def test_the_cautious_way_is_taken_and_the_trace_says_that_it_could_not_be_decided(name: str) -> None:
    steps, more, output, _ = CASES[name]
    harness = serving(*steps, step("z"), **more)
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    assert harness.advance(first, output=output)["pending"]["stepId"] == "z"
    (event,) = events_of(harness, first, "decision_trace_appended")
    assert isinstance(event, DecisionTraceAppendedEvent)
    (result,) = [entry.summary for entry in event.data.entries if entry.kind == "evaluated_condition"]
    assert result.endswith("cannot be decided")


@pytest.mark.inv("MODE-2", "TRACE-2")
def test_a_loop_that_cannot_be_decided_under_way_does_not_claim_that_its_condition_ended_it() -> None:
    harness = serving(loop("l", step("b"), **{"while": IS_FAST}), step("z"))
    first = harness.start("test.flow", preferences=NEVER_STOPS, context={"mode": "fast"})
    assert harness.advance(first, context={"mode": None})["pending"]["stepId"] == "z"
    entries = [one for event in events_of(harness, first, "decision_trace_appended") for one in told_in(event)]
    assert entries[-2] == "`l` ends: its condition cannot be decided."


def told_in(event: Any) -> list[str]:
    return [entry.summary for entry in event.data.entries]


@pytest.mark.inv("MODE-2", "TRACE-2")
def test_an_endless_walk_is_left_and_disclosed() -> None:
    inner = loop("i", step("b", when=IS_FAST), maxIterations=1000, **{"for": {"count": 1000}})
    harness = serving(step("a"), loop("o", inner, maxIterations=1000, **{"for": {"count": 1000}}), step("z"))
    mode: Document = {"mode": "slow"}
    assert codes(harness.advance(harness.start("test.flow", context=mode))) == ["INVARIANT_VIOLATION"]
    first = harness.start("test.flow", preferences=NEVER_STOPS, context=mode)
    assert harness.advance(first)["pending"]["stepId"] == "z"
    assert details_of(gaps_in(harness, first)) == ["invariant_violation"]
    words = [one for event in events_of(harness, first, "decision_trace_appended") for one in told_in(event)]
    assert words[-2].endswith("further reasons are left out.")


@pytest.mark.inv("MODE-2")
def test_a_run_that_never_stops_begins_without_what_its_first_step_turns_on() -> None:
    harness = serving(step("a", when=IS_FAST), step("b"))
    assert harness.start("test.flow").is_error
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    assert (first["pending"]["stepId"], first.warnings) == ("b", ["GAP_RECORDED"])
    assert details_of(gaps_in(harness, first)) == [MISSING]


# Settled.


@pytest.mark.inv("GAP-2")
def test_redoing_the_step_settles_its_gaps_and_the_run_is_complete() -> None:
    harness = serving(step("a", produces=["cause"]), step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    finished(harness, harness.advance(first, None))
    before = gaps_in(harness, first)
    assert (len(before), status_of(harness, first)) == (2, "complete_with_gaps")
    half = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], context={"cause": None})
    assert len(session_of(harness, first).open_gaps) == 2, "one is settled, one is left again under its new attempt"
    assert half["pending"]["stepId"] == "b"
    whole = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], context={"cause": "it"})
    assert len(session_of(harness, first).open_gaps) == 0
    last = finished(harness, whole)
    assert last.warnings == []
    assert status_of(harness, first) == "complete"
    assert gaps_in(harness, first)[: len(before)] == before, "a gap never changes"


@pytest.mark.inv("GAP-2", "ANS-19")
def test_a_replay_of_what_left_a_gap_still_tells_it_after_it_was_settled() -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    second = harness.advance(first, None)
    harness.advance(harness.rehydrate(first)["fork"]["ackToken"])
    assert harness.advance(first, None).text == second.text


@pytest.mark.inv("ANS-19")
def test_gaps_that_come_after_a_run_completed_leave_its_warning_as_it_was() -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    second = harness.advance(first, None)
    last = harness.advance(second, None)
    assert "COMPLETE_WITH_GAPS" in last.warnings
    branch = harness.advance(harness.rehydrate(second)["fork"]["ackToken"], None)
    assert "COMPLETE_WITH_GAPS" in branch.warnings
    assert len(gaps_in(harness, first)) == 3
    assert harness.advance(second, None).text == last.text


@pytest.mark.inv("READ-7")
def test_after_a_change_to_a_mode_that_may_stop_status_and_answers_agree_that_the_run_goes_on() -> None:
    harness = serving(step("a"), step("b"), step("c"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    second = harness.advance(first, None, preferences={"autonomy": "guided"})
    seen = harness.rehydrate(second)
    assert (second["kind"], second["nextIntent"]) == ("ok", "perform_pending_then_continue")
    assert (seen["kind"], seen.warnings, status_of(harness, first)) == ("ok", ["GAP_RECORDED"], "in_progress")
    [gap] = gaps_in(harness, first)
    assert f"Still missing, an open gap of this run: {gap.summary}" in seen.text
    refused = harness.advance(second, None)
    assert (refused["kind"], harness.rehydrate(refused)["kind"]) == ("blocked", "blocked")
    assert status_of(harness, first) == "blocked"
    third = harness.advance(refused)
    assert harness.rehydrate(third).warnings == ["GAP_RECORDED"]
    assert status_of(harness, first) == "in_progress"
    redone = harness.advance(harness.rehydrate(first)["fork"]["ackToken"])
    assert harness.rehydrate(redone).warnings == []


@pytest.mark.inv("READ-7")
def test_a_refused_attempt_that_raises_the_autonomy_blocks_no_longer() -> None:
    harness = serving(step("a", produces=["k"]), step("b"))
    first = harness.start("test.flow")
    refused = harness.advance(first, preferences=NEVER_STOPS)
    assert refused["kind"] == "blocked"
    assert (harness.rehydrate(refused)["kind"], status_of(harness, first)) == ("ok", "in_progress")
    assert harness.advance(refused)["kind"] == "ok"


@pytest.mark.inv("GAP-3")
def test_a_run_that_never_stops_is_in_progress_whatever_it_lacks() -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    harness.advance(first, None)
    assert status_of(harness, first) == "in_progress"


@pytest.mark.inv("GAP-1", "GAP-2")
def test_many_gaps_are_disclosed_up_to_the_budget_and_settled_over_and_over() -> None:
    keys = [f"k{number}" for number in range(50)]
    harness = serving(step("a", produces=keys, outputContract=REVIEW, notes="required"), step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    second = harness.advance(first, None)
    assert len(gaps_in(harness, first)) == GAPS_MAX
    assert second.warnings.count("GAP_RECORDED") == 11, "ten by name and one that counts"
    for _ in range(5):
        harness.advance(harness.rehydrate(first)["fork"]["ackToken"], None)
    is_open = len(session_of(harness, first).open_gaps)
    assert is_open > 2 * RESOLVED_GAPS_MAX
    verdict: Document = {
        "kind": "wr.review_verdict",
        "verdict": "clean",
        "confidence": "high",
        "findings": [],
        "summary": "Yes.",
    }
    for left in (is_open - RESOLVED_GAPS_MAX, is_open - 2 * RESOLVED_GAPS_MAX):
        fork = harness.rehydrate(first)["fork"]["ackToken"]
        done = harness.advance(fork, output=with_artifacts(verdict), context=dict.fromkeys(keys, "x"))
        assert done["kind"] == "ok"
        assert len(session_of(harness, first).open_gaps) == left


@pytest.mark.inv("WALK-6")
def test_the_gap_of_an_exhausted_loop_holds_loop_iteration_and_limit_as_data() -> None:
    steps, _, output, _ = CASES["a loop that wants more"]
    harness = serving(*steps)
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    last = harness.advance(first, output=output)
    [gap] = gaps_in(harness, first)
    assert gap.details == {"loopId": "l", "iteration": 1, "maxIterations": 1}
    assert "The run is complete with 1 open gap; report" in last.text
