"""Every bundled workflow without any evidence: one run reaches its end and discloses it, another stops each time."""

from typing import Any

import pytest
from tests.support.modes import NEVER_STOPS, gaps_in, status_of
from tests.unit.test_bundled_workflows import INPUT, SOURCES, compiled

from interlock.engine.judge.violations import REASONS
from interlock.kernel.canonical import Json
from interlock.record.outcome import BlockerCode
from interlock.testing.harness import Harness, ToolResult

CALLS_MAX = 400


def serving(workflow_id: str) -> Harness:
    """Return a harness that serves a bundled workflow under the id of a project's own."""
    return Harness.in_memory(SOURCES[workflow_id] | {"id": "test.bundled"})


def needed(workflow_id: str) -> dict[str, Json]:
    return {one.key: INPUT[one.type] for one in compiled(workflow_id).workflow.inputs if one.required}


def begun(harness: Harness, workflow_id: str, **more: Any) -> ToolResult:
    first = harness.start("test.bundled", goal="See", context=needed(workflow_id), **more)
    assert not first.is_error, first.text
    return first


@pytest.mark.inv("MODE-2", "MODE-7")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_a_run_without_any_evidence_reaches_its_end_and_discloses_each_lack(workflow_id: str) -> None:
    harness = serving(workflow_id)
    answer = first = begun(harness, workflow_id, preferences=NEVER_STOPS)
    calls = 0
    while not answer["isComplete"]:
        calls += 1
        assert calls < CALLS_MAX
        known = len(gaps_in(harness, first))
        answer = harness.advance(answer, None)
        assert answer["kind"] == "ok"
        left = gaps_in(harness, first)[known:]
        assert left, "a step without evidence leaves a gap"
        assert answer.warnings.count("GAP_RECORDED") == len([gap for gap in left if gap.severity == "critical"])
    assert status_of(harness, first) == "complete_with_gaps"
    assert "COMPLETE_WITH_GAPS" in answer.warnings


def reasons_of(harness: Harness, first: ToolResult, known: int) -> set[BlockerCode]:
    return {REASONS[gap.reason.detail].code for gap in gaps_in(harness, first)[known:]}


@pytest.mark.inv("MODE-1", "MODE-7")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_the_same_steps_stop_a_run_that_may_stop_with_the_codes_of_those_gaps(workflow_id: str) -> None:
    """One run, set back and forth: each step is tried without evidence by a branch that may stop, then passed."""
    harness = serving(workflow_id)
    answer = first = begun(harness, workflow_id)
    for _ in range(CALLS_MAX):
        if answer["isComplete"]:
            break
        blocked = harness.advance(answer, None, preferences=NEVER_STOPS)
        assert blocked["kind"] == "blocked"
        stopped = {blocker["code"] for blocker in blocked["blockers"]}
        known = len(gaps_in(harness, first))
        answer = harness.advance(blocked, None, preferences={"autonomy": "guided"})
        assert answer["kind"] == "ok"
        # What keeps the run from going on behind the step is only seen where the step is passed.
        assert stopped <= reasons_of(harness, first, known)
    assert answer["isComplete"]
