"""A run of a workflow or of a flow as executions: who worked on what, in which state, with which outcome."""

from typing import Any

import pytest
from tests.support.flows import WORK, WORKFLOW_ID, decision, harness_of, outputs
from tests.support.history import checkpointed
from tests.support.lifecycle import run_of

from interlock.define.operations.builders import FlowBuilder
from interlock.define.operations.flows import Condition
from interlock.record.events import Actor
from interlock.service.run.lifecycle import read_executions
from interlock.testing.harness import Harness, ToolResult, linear_workflow
from interlock.views.executions.derive import executor_lineage
from interlock.views.executions.model import BlockExecution
from interlock.views.executions.projection import NO_TIME, Executions, Recorded, executor_of, recorded_facts


def executions_of(harness: Harness, start: ToolResult) -> Executions:
    context = run_of(harness, start)
    assert context.run.tip is not None
    return read_executions(harness.store, context, context.session.nodes[context.run.tip])


def by_step(executions: Executions) -> dict[str, BlockExecution]:
    return {executions.slots[block.id]: block for block in executions.blocks}


def kinds(block: BlockExecution) -> list[str]:
    return [event.event_type for event in block.events]


@pytest.mark.inv("EXE-13")
def test_a_step_is_pending_until_its_first_report_and_a_refusal_is_progress() -> None:
    harness = Harness.in_memory(linear_workflow("test.two", "a", "b"))
    first = harness.start("test.two")
    assert by_step(executions_of(harness, first))["a"].state == "pending"
    refused = harness.advance(first, None)
    after = executions_of(harness, first)
    assert (by_step(after)["a"].state, after.flow.state) == ("in_progress", "in_progress")
    harness.advance(refused, "Did a.")
    found = by_step(executions_of(harness, first))
    assert [one for one in kinds(found["a"]) if not one.startswith("executor")] == [
        *("created", "started", "progress", "completed")
    ]
    assert found["b"].state == "pending"


@pytest.mark.inv("EXE-4", "EXE-13")
def test_a_takeover_shows_the_release_of_one_client_before_the_assignment_of_the_next() -> None:
    harness = Harness.in_memory(linear_workflow("test.one", "a"))
    first = harness.start("test.one")
    checkpointed(harness, first, "Half of it.", client="client-a")
    checkpointed(harness, first, "More of it.", client="client-b")
    block = by_step(executions_of(harness, first))["a"]
    assert [one.identifier for one in executor_lineage(block.events)] == ["client-a", "client-b"]
    assert kinds(block) == [
        *("created", "executor_assigned", "started", "progress"),
        *("executor_released", "executor_assigned", "progress"),
    ]
    released = block.events[4]
    assert released.executor is not None
    assert (released.executor.identifier, released.payload) == ("client-a", {"reason": "taken_over"})


@pytest.mark.inv("OPS-9", "EXE-11")
def test_the_outcome_of_a_flow_is_in_the_events_of_its_terminal_slots() -> None:
    flow = FlowBuilder("One").add_block(WORK, alias="one").entry("one").expected_outcome("a number").build()
    harness = harness_of(flow, WORK)
    first = harness.start(WORKFLOW_ID)
    harness.advance(first, None, output=outputs(go={"any": ["value"]}))
    executions = executions_of(harness, first)
    block = by_step(executions)["one"]
    assert (block.node_reference_id, block.work_block_id) == (flow.nodes[0].id, WORK.id)
    assert executions.terminal_slots == (flow.nodes[0].id,)
    produced = next(event for event in block.events if event.event_type == "outcome_produced")
    payload: Any = produced.payload
    stored = harness.store.artifact(payload["artifacts"][0])
    assert b'{"any":["value"]}' in stored


@pytest.mark.inv("EXE-13", "OPS-20")
def test_a_condition_that_an_agent_decides_is_an_execution_too_and_completes_nothing() -> None:
    condition = Condition(description="it is time")
    flow = FlowBuilder("Ask").add_block(WORK, alias="one").entry("one", condition=condition).build()
    harness = harness_of(flow, WORK)
    first = harness.start(WORKFLOW_ID)
    asked = executions_of(harness, first)
    assert ([*by_step(asked)], asked.flow.state) == (["--begin--ask-0"], "pending")
    harness.advance(first, None, output=decision(False))  # noqa: FBT003 — the value of a field
    found = executions_of(harness, first)
    assert {step: block.state for step, block in by_step(found).items()} == {
        "--begin--ask-0": "completed",
        "one": "skipped",
    }
    assert found.flow.state == "completed"


@pytest.mark.inv("EXE-13")
def test_the_ids_of_executions_and_their_events_stay_as_the_log_grows() -> None:
    harness = Harness.in_memory(linear_workflow("test.three", "a", "b", "c"))
    first = answer = harness.start("test.three")
    before: dict[str, list[Any]] = {}
    for _ in range(3):
        answer = harness.advance(answer, "Did it.")
        now = {step: [block.id, *block.events] for step, block in by_step(executions_of(harness, first)).items()}
        assert all(now[step][: len(events)] == events for step, events in before.items())
        before = now


def test_an_event_without_a_time_has_that_of_the_event_before_it() -> None:
    harness = Harness.in_memory(linear_workflow("test.one", "a"))
    events = harness.events(harness.session_of(harness.start("test.one")))
    timed = [event.changed(recorded_at=None, actor=None) for event in events]
    assert {fact.time for fact in recorded_facts(timed)} == {NO_TIME}
    timed[1] = timed[1].changed(recorded_at="2026-01-01T00:00:00Z")
    assert [fact.time for fact in recorded_facts(timed)][:3] == [NO_TIME, *["2026-01-01T00:00:00Z"] * 2]
    assert recorded_facts(timed)[0] == Recorded(time=NO_TIME, executor=None)


@pytest.mark.inv("READ-6", "EXE-13")
@pytest.mark.parametrize(
    "text", ["", "-", "2026-01-01", "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00Z\n", "x" * 99]
)
def test_a_recorded_time_that_is_none_is_as_if_it_were_missing(text: str) -> None:
    harness = Harness.in_memory(linear_workflow("test.one", "a"))
    first = harness.start("test.one")
    events = harness.events(harness.session_of(first))
    facts = recorded_facts(event.changed(recorded_at=text) for event in events)
    assert {fact.time for fact in facts} == {NO_TIME}
    context = run_of(harness, first)
    assert context.run.tip is not None
    assert read_executions(harness.store, context, context.session.nodes[context.run.tip], facts).blocks


def test_an_actor_is_shown_with_what_it_says_of_itself() -> None:
    actor = Actor(type="agent", identifier="x" * 300, metadata={"version": "1"})
    executor = executor_of(actor)
    assert executor is not None
    assert (executor.type, len(executor.identifier), executor.metadata) == ("agent", 200, {"version": "1"})
