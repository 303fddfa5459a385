"""An adapter drives an execution and writes every fact by the store's append."""

import sys
from collections.abc import Callable

import pytest
from tests.support.definitions import uuid
from tests.support.executions import event, execution_id

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import WorkBlockBuilder
from interlock.define.operations.flows import Condition, NodeReference
from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid
from interlock.operations import (
    Assignment,
    BaseAdapter,
    BlockFailedError,
    CommandAdapter,
    EventStore,
    ExecutionAdapter,
    ExecutorInfo,
    InMemoryEventStore,
    UnknownExecutionError,
    derive_block_state,
    executor_lineage,
)

TEST = WorkBlockBuilder("Run Smoke Tests").input("target").output("verdict").hint("ci").build()
SLOT = NodeReference(id=uuid("slot"), target_id=TEST.id, target_version=1, alias="smoke")
WORKER = ExecutorInfo(type="agent", identifier="worker")


class Worker(BaseAdapter):
    """Does the work by a function."""

    def __init__(self, work: Callable[[Assignment], Json], executor: ExecutorInfo = WORKER) -> None:
        super().__init__()
        self._work_of = work
        self._executor = executor

    def choose_executor(self, block: WorkBlock) -> ExecutorInfo:
        assert block == TEST
        return self._executor

    def do_work(self, assignment: Assignment) -> Json:
        return self._work_of(assignment)

    def evaluate_condition(self, condition: Condition, context: Json) -> bool:
        return condition.description == context


@pytest.mark.inv("ADPT-3", "ADPT-5", "OPS-1")
def test_an_executed_block_is_created_assigned_started_and_completed_with_its_outcome() -> None:
    store, before = InMemoryEventStore(), (TEST.to_json(), SLOT.to_json())

    def work(assignment: Assignment) -> Json:
        assignment.progress({"half": "done"})
        return {"verdict": f"{assignment.inputs} on {assignment.node_ref.alias}"}

    adapter: ExecutionAdapter = Worker(work)
    execution = adapter.execute_block(TEST, SLOT, "https://test", store)
    events = store.get_events(execution)
    assert [one.event_type for one in events] == [
        *("created", "executor_assigned", "started", "progress", "outcome_produced", "completed")
    ]
    assert events[-2].payload == {"verdict": "https://test on smoke"}
    assert executor_lineage(events) == (WORKER,)
    assert (TEST.to_json(), SLOT.to_json()) == before


@pytest.mark.inv("ADPT-3")
def test_work_that_fails_is_an_event_with_its_reason_and_a_retry_is_another_execution() -> None:
    store = InMemoryEventStore()

    def fail(assignment: Assignment) -> Json:
        raise BlockFailedError(f"no access to {assignment.inputs}")

    failed = Worker(fail).execute_block(TEST, SLOT, "x", store)
    latest = store.get_latest_event(failed)
    assert latest is not None
    assert (latest.event_type, latest.payload) == ("failed", {"reason": "no access to x"})
    again = Worker(lambda _: None).execute_block(TEST, SLOT, "x", store)
    assert again != failed
    assert [derive_block_state(store.get_events(one)) for one in (failed, again)] == ["failed", "completed"]


@pytest.mark.inv("EXE-4", "EXE-5", "ADPT-3")
def test_another_adapter_resumes_the_execution_of_a_crashed_one_from_the_store_alone() -> None:
    store = InMemoryEventStore()

    def crash(_: Assignment) -> Json:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Worker(crash, ExecutorInfo(type="agent", identifier="A")).execute_block(TEST, SLOT, {"n": 1}, store)
    (execution,) = store.execution_ids()
    heir = ExecutorInfo(type="human", identifier="B")
    Worker(lambda one: one.inputs, heir).resume_block(execution, store)
    events = store.get_events(execution)
    assert [one.event_type for one in events] == [
        *("created", "executor_assigned", "started"),
        *("executor_released", "executor_assigned", "outcome_produced", "completed"),
    ]
    assert [one.identifier for one in executor_lineage(events)] == ["A", "B"]
    assert (events[3].executor, events[3].payload) == (
        ExecutorInfo(type="agent", identifier="A"),
        {"reason": "crashed"},
    )
    assert events[-2].payload == {"n": 1}
    Worker(lambda _: None).resume_block(execution, store)
    assert store.get_events(execution) == events


@pytest.mark.inv("EXE-1", "ADPT-5")
def test_an_adapter_that_writes_nothing_leaves_the_execution_pending() -> None:
    class Silent(Worker):
        def execute_block(self, block: WorkBlock, node_ref: NodeReference, inputs: Json, store: EventStore) -> Uuid:
            del block, node_ref, inputs, store
            return execution_id("silent")

    store = InMemoryEventStore()
    execution = Silent(lambda _: None).execute_block(TEST, SLOT, None, store)
    assert derive_block_state(store.get_events(execution)) == "pending"


def test_an_execution_that_no_event_describes_cannot_be_resumed() -> None:
    store = InMemoryEventStore()
    with pytest.raises(UnknownExecutionError):
        Worker(lambda _: None).resume_block(execution_id("e"), store)
    store.append(event("created", payload="of another adapter"))
    with pytest.raises(UnknownExecutionError):
        Worker(lambda _: None).resume_block(execution_id("e"), store)


@pytest.mark.inv("ADPT-4", "ADPT-5")
def test_a_script_and_an_agent_write_to_one_store_and_each_takes_what_its_hints_allow() -> None:
    store = InMemoryEventStore()
    echo = [sys.executable, "-c", "import json, sys; print(json.dumps({'verdict': json.load(sys.stdin)['target']}))"]
    script = CommandAdapter({"ci": echo}, name="ci/smoke", seconds_max=30)
    by_script = script.execute_block(TEST, SLOT, {"target": "staging"}, store)
    by_agent = Worker(lambda _: "seen").execute_block(TEST, SLOT, {"target": "staging"}, store)
    outcomes = [
        one.payload
        for execution in (by_script, by_agent)
        for one in store.get_events(execution)
        if one.event_type == "outcome_produced"
    ]
    assert outcomes == [{"verdict": "staging"}, "seen"]
    assert [one.type for one in executor_lineage(store.get_events(by_script))] == ["system"]


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        ({}, "no command for the hints ci"),
        ({"ci": [sys.executable, "-c", "import sys; sys.exit('broken')"]}, "exited with 1: broken"),
        ({"ci": ["/no/such/command"]}, "No such file"),
    ],
    ids=["no command", "an exit code", "no program"],
)
def test_a_script_that_cannot_do_the_work_fails_the_block(commands: dict[str, list[str]], reason: str) -> None:
    store = InMemoryEventStore()
    execution = CommandAdapter(commands, name="ci", seconds_max=30).execute_block(TEST, SLOT, None, store)
    latest = store.get_latest_event(execution)
    assert latest is not None
    assert latest.event_type == "failed"
    assert reason in str(latest.payload)


def test_output_that_is_not_json_is_the_outcome_as_text() -> None:
    store = InMemoryEventStore()
    script = CommandAdapter({"ci": [sys.executable, "-c", "print('all good')"]}, name="ci", seconds_max=30)
    execution = script.execute_block(TEST, SLOT, None, store)
    assert [one.payload for one in store.get_events(execution) if one.event_type == "outcome_produced"] == ["all good"]
    with pytest.raises(NotImplementedError, match="is it good"):
        script.evaluate_condition(Condition(description="is it good"), None)
