"""A run as an event store: what the tools can record is recorded, and everything else is refused."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.executions import event, execution_id
from tests.support.flows import WORK, WORKFLOW_ID, harness_of
from tests.support.lifecycle import run_of

from interlock.define.operations.builders import FlowBuilder
from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid
from interlock.operations import EventRefusedError, EventStore, ExecutionEndedError, SessionEventStore
from interlock.service.run.lifecycle import read_executions
from interlock.testing.harness import Harness, ToolResult
from interlock.views.executions.events import ExecutionEvent, ExecutionEventType

FLOW = (
    FlowBuilder("Two").add_block(WORK, alias="one").add_block(WORK, alias="two").entry("one").edge("one", "two").build()
)


def opened() -> tuple[Harness, ToolResult, SessionEventStore]:
    """Return a run of two slots, and a store over it."""
    harness = harness_of(FLOW, WORK)
    first = harness.start(WORKFLOW_ID)

    def call(tool: str, arguments: Mapping[str, Json]) -> Mapping[str, Any]:
        return harness.call(tool, arguments).structure

    def read() -> Mapping[str, Any]:
        context = run_of(harness, first)
        assert context.run.tip is not None
        return read_executions(harness.store, context, context.session.nodes[context.run.tip]).to_json()

    return harness, first, SessionEventStore(call, read, first.structure)


def pending(store: SessionEventStore) -> Uuid:
    found = store.pending_execution()
    assert found is not None
    return found


def of(execution: Uuid, kind: ExecutionEventType, payload: Json = None) -> ExecutionEvent:
    return event(kind, payload=payload).model_copy(update={"execution_id": execution})


@pytest.mark.inv("ADPT-6", "EXE-5")
def test_an_outcome_and_the_completion_are_one_report_and_the_next_step_ispending_execution() -> None:
    _, _, session_store = opened()
    store: EventStore = session_store
    first = pending(session_store)
    store.append(of(first, "outcome_produced", {"go": 1}))
    assert [one.event_type for one in store.get_events(first)] == ["created"]
    store.append(of(first, "completed"))
    latest = store.get_latest_event(first)
    assert latest is not None
    assert latest.event_type == "completed"
    second = pending(session_store)
    assert second != first
    store.append(of(second, "outcome_produced", {"go": 2}))
    store.append(of(second, "completed"))
    assert session_store.answer["isComplete"]
    assert store.get_events(second, latest.timestamp) == []


@pytest.mark.inv("ADPT-6")
def test_progress_and_a_release_are_checkpoints() -> None:
    _, _, store = opened()
    first = pending(store)
    store.append(of(first, "progress", {"half": "done"}))
    store.append(of(first, "executor_released"))
    assert [one.event_type for one in store.get_events(first)] == [
        *("created", "started", "progress", "progress", "executor_released")
    ]


@pytest.mark.inv("ADPT-6", "EXE-6")
def test_work_that_failed_ends_its_execution_and_the_step_is_pending_in_another_one() -> None:
    _, _, store = opened()
    first = pending(store)
    store.append(of(first, "failed"))
    assert pending(store) != first
    with pytest.raises(ExecutionEndedError):
        store.append(of(first, "completed"))


@pytest.mark.inv("ADPT-6")
@pytest.mark.parametrize("kind", ["created", "executor_assigned", "started", "skipped", "cancelled"])
def test_what_the_tools_cannot_record_is_refused_and_nothing_is_recorded(kind: ExecutionEventType) -> None:
    harness, first, store = opened()
    before = harness.events(harness.session_of(first))
    with pytest.raises(EventRefusedError, match="by itself"):
        store.append(of(pending(store), kind))
    with pytest.raises(EventRefusedError, match="not the execution"):
        store.append(of(execution_id("another"), "progress"))
    assert store.get_latest_event(execution_id("another")) is None
    assert harness.events(harness.session_of(first)) == before


@pytest.mark.inv("ADPT-6")
def test_a_report_that_is_refused_does_not_complete_the_execution() -> None:
    _, _, store = opened()
    first = pending(store)
    store.append(of(first, "outcome_produced", {"wrong": 1}))
    with pytest.raises(EventRefusedError, match="refused"):
        store.append(of(first, "completed"))
    assert pending(store) == first
