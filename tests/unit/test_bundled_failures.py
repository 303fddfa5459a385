"""A failure in a bundled workflow leads to more work, to a person, or to open gaps, never to a plain end.

Every step that asks for a verdict or a rating is answered with each value that says failure, on a branch of its own,
and again as often as the workflow comes back to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.evidence import FAILED, GOOD, LEVELS, NOTES, Change, artifacts_for, contract_of, failures_of
from tests.support.modes import NEVER_STOPS, claim, status_of
from tests.unit.test_bundled_workflows import ITEMS, SOURCES, compiled

from interlock.kernel.canonical import Json
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode
from interlock.testing.harness import Harness, ToolResult

STEPS_MAX = 60
FULL: dict[str, Json] = {
    **{key: [item] for key, item in ITEMS.items()},
    "irreversible": True,
    "kind": "guide",
    "reproduction": "reliable",
    "reversible": False,
    "safety": "thin",
    "size": "large",
    "wanted": "tests",
    "wants": "fix",
}
"""What an agent sends for each key so that a run meets as many steps with evidence as it can."""
NEEDED: dict[str, Json] = {"version": "2.4.0"}
"""What some workflow is not started without."""


@dataclass(kw_only=True)
class Run:
    """A run of one workflow through the server's own calls, by a client that cannot ask its user."""

    workflow: CompiledWorkflow
    harness: Harness
    answered: set[str] = field(default_factory=set[str])
    """The steps whose evidence said failure at least once."""
    reports: int = 0

    @classmethod
    def of(cls, workflow_id: str) -> "Run":
        harness = Harness.in_memory(SOURCES[workflow_id] | {"id": "test.bundled"})
        return cls(workflow=compiled(workflow_id).workflow, harness=harness)

    def begin(self, context: Mapping[str, Json] | None = None, **more: Any) -> ToolResult:
        inputs = {one.key: NEEDED[one.key] for one in self.workflow.inputs if one.required} | dict(context or {})
        first = self.harness.start("test.bundled", goal="See", context=inputs, **more)
        assert not first.is_error, first.text
        return first

    def step(self, answer: ToolResult) -> PlanNode:
        return self.workflow.steps[answer["pending"]["stepId"]]

    def send(
        self, token: str, node: PlanNode, change: Change | None = None, *, is_confirmed: bool = False
    ) -> ToolResult:
        assert node.task is not None
        artifacts = artifacts_for(self.workflow, node, change)
        confirmed = [claim()] if is_confirmed else []
        self.reports += 1
        output = {"notesMarkdown": f"{NOTES} Report {self.reports}.", "artifacts": [*artifacts, *confirmed]}
        context = {key: FULL[key] for key in node.task.produces}
        return self.harness.advance(token, None, output=output, context=context)

    def good(self, answer: ToolResult) -> ToolResult:
        """Pass a step, and its gate where it has one."""
        node = self.step(answer)
        passed = self.send(self.token(answer), node)
        return self.send(passed.ack, node, is_confirmed=True) if asks_a_person(passed) else passed

    def token(self, answer: ToolResult) -> str:
        """Return what sends a step again on a branch of its own; the step's own token where it was not sent yet."""
        shown = self.harness.rehydrate(answer)
        return str(shown["fork"]["ackToken"]) if "fork" in shown.structure else shown.ack


def asks_a_person(answer: ToolResult) -> bool:
    return any(one["code"] == "USER_ONLY_DEPENDENCY" for one in answer.structure.get("blockers", ()))


def calls_for_work(answer: ToolResult) -> bool:
    """Say whether a report was refused for what it rates, not for how it is written."""
    return all("level" in one.get("details", {}) for one in answer["blockers"])


def keys_set(node: PlanNode) -> set[str]:
    """Return the keys that a step sets from its evidence."""
    assert node.task is not None
    return {one.key for one in node.task.sets if (one.source or "").partition(".")[0] in ("artifact", "assessments")}


def assert_steers(run: Run, answer: ToolResult, change: Change) -> None:
    """Send evidence that says failure, and follow the branch until something has come of it."""
    node = run.step(answer)
    run.answered.add(node.node_id)
    following = run.send(run.token(answer), node, change)
    for _ in range(STEPS_MAX):
        if following["kind"] == "blocked":
            assert asks_a_person(following) or calls_for_work(following), following.text
            return
        if following["isComplete"]:
            assert "COMPLETE_WITH_GAPS" in following.warnings, f"{node.node_id} ends plainly after {change}"
            return
        reached = run.step(following)
        if keys_set(reached) & keys_set(node):
            # The same question again. Where the answer is good, work was done; it may as well be bad once more.
            for again in failures_of(run.workflow, reached):
                assert_steers(run, following, again)
            return
        following = run.send(following.ack, reached)
    raise AssertionError(f"nothing came of {change} at {node.node_id}")


def assert_each_new_failure_steers(run: Run, answer: ToolResult) -> None:
    """Send each failure that a step can report, unless an earlier call sent those of this step."""
    node = run.step(answer)
    if node.node_id not in run.answered:
        for change in failures_of(run.workflow, node):
            assert_steers(run, answer, change)


def walk_to_the_repair(run: Run) -> None:
    """Follow a run in which every contract says failure until something is repaired, and all is well from then on.

    Some steps judge an earlier failure again after the repair, so no run without one comes to them.
    """
    answer, is_repaired = run.begin(), False
    while not answer["isComplete"]:
        assert_each_new_failure_steers(run, answer)
        node = run.step(answer)
        failures = (
            [] if is_repaired else [one for one in failures_of(run.workflow, node) if one.of == contract_of(node)]
        )
        is_repaired |= node.node_id == "repair"
        if is_repaired or not failures:
            answer = run.good(answer)
            continue
        sent = run.send(run.token(answer), node, failures[0])
        answer = run.send(sent.ack, node, failures[0], is_confirmed=True) if asks_a_person(sent) else sent


@pytest.mark.inv("MODE-13")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_whatever_says_failure_leads_to_more_work_or_to_a_person(workflow_id: str) -> None:
    run = Run.of(workflow_id)
    answer = first = run.begin()
    while not answer["isComplete"]:
        assert_each_new_failure_steers(run, answer)
        answer = run.good(answer)
    assert status_of(run.harness, first) == "complete"
    if "repair" in run.workflow.steps:
        walk_to_the_repair(run)
    asked = {name for name, one in run.workflow.steps.items() if any(failures_of(run.workflow, one))}
    assert run.answered == asked, "each step whose evidence can say failure was answered with it"


@pytest.mark.inv("MODE-13")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_what_follows_a_failure_is_never_what_follows_success(workflow_id: str) -> None:
    """Otherwise the next step would not know of it. A step that asks a person itself has put the failure there."""
    run = Run.of(workflow_id)
    answer = run.begin()
    while not answer["isComplete"]:
        node, before = run.step(answer), answer
        answer = run.good(answer)
        passed = None if answer["isComplete"] else answer["pending"]["stepId"]
        for change in failures_of(run.workflow, node):
            failed = run.send(run.token(before), node, change)
            if failed["kind"] == "ok" and not is_judged_later(run.workflow, node):
                assert not failed["isComplete"], (node.node_id, change)
                assert failed["pending"]["stepId"] != passed, (node.node_id, change)


def is_judged_later(workflow: CompiledWorkflow, node: PlanNode) -> bool:
    """Say whether the consequence comes after steps that every run takes: the test above follows it to there."""
    return (workflow.workflow_id, node.node_id) in {
        ("wr.bug_investigation", "experiment"),
        ("wr.release_readiness", "build"),
    }


@pytest.mark.inv("MODE-13")
@pytest.mark.parametrize("workflow_id", SOURCES)
def test_where_everything_fails_a_run_that_never_stops_ends_with_open_gaps(workflow_id: str) -> None:
    run = Run.of(workflow_id)
    answer = run.begin(preferences=NEVER_STOPS)
    for _ in range(STEPS_MAX):
        if answer["isComplete"]:
            break
        node = run.step(answer)
        answer = run.send(answer.ack, node, next(failures_of(run.workflow, node), None))
    assert "COMPLETE_WITH_GAPS" in answer.warnings


def test_every_contract_and_dimension_of_the_bundled_workflows_is_known_to_these_tests() -> None:
    workflows = [compiled(workflow_id).workflow for workflow_id in SOURCES]
    contracts = {contract_of(node) for workflow in workflows for node in workflow.steps.values()} - {None}
    rated = {
        (rating.id, dimension.id): dimension.levels
        for workflow in workflows
        for rating in workflow.ratings.values()
        for dimension in rating.dimensions
    }
    assert contracts == set(GOOD) == set(FAILED)
    assert set(rated) == set(LEVELS)
    assert all({best, *failing} <= set(rated[name]) for name, (best, failing) in LEVELS.items())
