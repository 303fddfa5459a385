"""Events and executions for tests, and what must hold of the executions of every run."""

from itertools import count

from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid, derived_uuid
from interlock.operations.event_store import InMemoryEventStore
from interlock.record.snapshot import Complete
from interlock.service.run.context import RunContext
from interlock.service.run.lifecycle import read_executions
from interlock.store.ports.store import StoreReader
from interlock.views.executions.derive import derive_block_state, derive_flow_state
from interlock.views.executions.events import ExecutionEvent, ExecutionEventType, ExecutorInfo
from interlock.views.executions.model import BlockExecution
from interlock.views.executions.projection import Executions
from interlock.views.lifecycle.projection import Lifecycle
from interlock.views.lifecycle.state import instance_states
from interlock.views.session import Node

_NUMBERS = count()
ANN = ExecutorInfo(type="human", identifier="ann")
BOT = ExecutorInfo(type="agent", identifier="bot")


def event(
    kind: ExecutionEventType,
    execution: str = "e",
    *,
    executor: ExecutorInfo | None = None,
    time: str = "2026-01-01T00:00:00Z",
    payload: Json = None,
) -> ExecutionEvent:
    return ExecutionEvent(
        id=derived_uuid("event", next(_NUMBERS)),
        timestamp=time,
        execution_id=execution_id(execution),
        event_type=kind,
        executor=executor,
        payload=payload,
    )


def execution_id(name: str) -> Uuid:
    return derived_uuid("execution", name)


def slot_id(name: str) -> Uuid:
    return derived_uuid("slot", name)


def block_execution(slot: str, *kinds: ExecutionEventType) -> BlockExecution:
    events = tuple(event(kind, f"of {slot}") for kind in kinds)
    return BlockExecution(
        id=derived_uuid("execution", slot, next(_NUMBERS)),
        node_reference_id=slot_id(slot),
        work_block_id=derived_uuid("block", slot),
        work_block_version=1,
        state=derive_block_state(events),
        events=events,
    )


def hold_executions(store: StoreReader, context: RunContext, tip: Node, lifecycle: Lifecycle) -> None:
    """Hold the executions of a branch against its lifecycle, its status, and the rules of their own events."""
    executions = read_executions(store, context, tip)
    states = {one.instance: one for one in instance_states(lifecycle, context.workflow)}
    latest = {executions.slots[block.id]: block for block in executions.blocks}
    is_complete = isinstance(context.snapshot(tip).state, Complete)
    ended = context.run.ended
    for instance, one in states.items():
        if instance in latest:
            state = latest[instance].state
            if one.state in {"completed", "skipped"}:
                assert state == one.state
            elif ended is not None:
                assert state == ended.kind
            else:
                assert state in ({"skipped"} if is_complete else {"pending", "in_progress"})
    steps = {key for key, one in states.items() if one.node in context.workflow.steps and one.state != "pending"}
    assert steps <= set(latest)
    for instance in steps:
        blocks = [one for one in executions.blocks if executions.slots[one.id] == instance]
        refused = [
            event.payload["refused"]
            for one in blocks
            for event in one.events
            if isinstance(event.payload, dict) and "refused" in event.payload
        ]
        assert refused == list(states[instance].failed)
    if is_complete:
        assert executions.flow.state == "completed"
    elif ended is not None:
        assert executions.flow.state == ended.kind
    else:
        assert executions.flow.state in {"pending", "in_progress"}
    assert executions.flow.state == derive_flow_state(executions.blocks, executions.terminal_slots)
    hold_events(executions)


def hold_events(executions: Executions) -> None:
    """Hold that the events of executions could have been appended one by one, and give the states shown."""
    replayed = InMemoryEventStore()
    for block in executions.blocks:
        for one in block.events:
            replayed.append(one)
        assert replayed.get_events(block.id) == list(block.events)
        assert derive_block_state(block.events) == block.state
        assert block.events[0].event_type == "created"
        indexes = [one.metadata["log_event"] for one in block.events]
        assert indexes == sorted(indexes, key=lambda index: int(str(index)))
    ids = [one.id for block in executions.blocks for one in block.events]
    assert len(ids) == len(set(ids))
    assert executions.flow.block_executions == tuple(dict.fromkeys(block.id for block in executions.blocks))
