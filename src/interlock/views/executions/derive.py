"""Derives the states of executions. Pure functions; the rules are ranked, and the first that applies decides (EXE-12).

1. One part failed: `failed`.
2. One part was cancelled: `cancelled`.
3. All parts that decide are completed or skipped, and there is at least one: `completed`.
4. No part exists, or all are pending: `pending`.
5. Otherwise: `in_progress`.

The parts of a flow are the latest executions of its slots, so a later success replaces a failed attempt; those of its
terminal slots decide. The parts of a contract are its flows and sub-contracts, and all of them decide. A flow
without a terminal slot never completes. A completed flow may have slots that are still running: see `open_slots`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from interlock.kernel.uuids import Uuid
from interlock.views.executions.events import (
    ADMINISTRATIVE,
    TERMINAL,
    ExecutionEvent,
    ExecutionState,
    ExecutorInfo,
)
from interlock.views.executions.model import BlockExecution, ContractExecution, FlowExecution

_SATISFIED: frozenset[ExecutionState] = frozenset({"completed", "skipped"})


def derive_block_state(events: Iterable[ExecutionEvent]) -> ExecutionState:
    """Return the state after these events, in the order in which they were appended. The first end counts (EXE-6)."""
    state: ExecutionState = "pending"
    for event in events:
        match event.event_type:
            case "completed" | "failed" | "skipped" | "cancelled":
                return event.event_type
            case "started":
                state = "in_progress"
            case _:
                pass
    return state


def derive_flow_state(blocks: Sequence[BlockExecution], terminal_slots: Collection[Uuid]) -> ExecutionState:
    """Return the state of a flow from all executions of its slots, in the order in which they began (EXE-7, EXE-8).

    `terminal_slots` are the ids of the slots without an outgoing edge.
    """
    states: dict[Uuid, ExecutionState] = {slot: block.state for slot, block in latest_by_slot(blocks).items()}
    deciding: list[ExecutionState] = [states.get(slot, "pending") for slot in terminal_slots]
    return rank_states(states.values(), deciding)


def derive_contract_state(
    flows: Iterable[FlowExecution], sub_contracts: Iterable[ContractExecution] = ()
) -> ExecutionState:
    """Return the state of a contract from those of its flows and sub-contracts. Assessments do not count (GOAL-5)."""
    states: list[ExecutionState] = [one.state for one in (*flows, *sub_contracts)]
    return rank_states(states, states)


def rank_states(states: Iterable[ExecutionState], deciding: Collection[ExecutionState]) -> ExecutionState:
    """Return the state of the whole from those of its parts. `deciding`: the parts that complete it."""
    found = frozenset(states)
    if "failed" in found:
        return "failed"
    if "cancelled" in found:
        return "cancelled"
    if deciding and _SATISFIED.issuperset(deciding):
        return "completed"
    return "pending" if found <= {"pending"} else "in_progress"


def latest_by_slot(blocks: Iterable[BlockExecution]) -> Mapping[Uuid, BlockExecution]:
    """Return the execution of each slot that counts: the latest. Failed attempts before it stay in the history."""
    return {block.node_reference_id: block for block in blocks}


def open_slots(blocks: Iterable[BlockExecution]) -> tuple[Uuid, ...]:
    """Return the slots whose latest execution has not ended. A completed flow may have some."""
    return tuple(slot for slot, block in latest_by_slot(blocks).items() if block.state in {"pending", "in_progress"})


def executor_lineage(events: Iterable[ExecutionEvent]) -> tuple[ExecutorInfo, ...]:
    """Return the executors to which an execution was assigned, the first one first (EXE-4)."""
    return tuple(
        event.executor for event in events if event.event_type == "executor_assigned" and event.executor is not None
    )


def may_append(state: ExecutionState, event: ExecutionEvent) -> bool:
    """Return whether an execution in this state accepts an event (EXE-6)."""
    return state not in TERMINAL or event.event_type in ADMINISTRATIVE
