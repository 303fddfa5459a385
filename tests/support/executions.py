"""Events and executions for tests, with as little writing as possible."""

from itertools import count

from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid, derived_uuid
from interlock.views.executions.derive import derive_block_state
from interlock.views.executions.events import ExecutionEvent, ExecutionEventType, ExecutorInfo
from interlock.views.executions.model import BlockExecution

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
