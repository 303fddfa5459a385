"""States of blocks, flows and contracts follow from events alone, by ranked rules."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.executions import ANN, BOT, block_execution, event, slot_id

from interlock.kernel.uuids import derived_uuid
from interlock.views.executions.derive import (
    derive_block_state,
    derive_contract_state,
    derive_flow_state,
    executor_lineage,
    open_slots,
    rank_states,
)
from interlock.views.executions.events import TERMINAL, ExecutionEventType, ExecutionState
from interlock.views.executions.model import ContractExecution, FlowExecution

TYPES: tuple[ExecutionEventType, ...] = get_args(ExecutionEventType)
STATES: tuple[ExecutionState, ...] = get_args(ExecutionState)
DONE: tuple[ExecutionEventType, ...] = ("created", "started", "completed")
RUNNING: tuple[ExecutionEventType, ...] = ("created", "started")


@pytest.mark.inv("EXE-1", "EXE-3", "EXE-12")
@given(st.lists(st.sampled_from(TYPES), max_size=8))
def test_the_state_of_a_block_is_its_first_end_or_else_whether_it_was_started(kinds: list[ExecutionEventType]) -> None:
    ends = [kind for kind in kinds if kind in TERMINAL]
    expected = ends[0] if ends else ("in_progress" if "started" in kinds else "pending")
    assert derive_block_state([event(kind) for kind in kinds]) == expected


@pytest.mark.inv("EXE-2", "EXE-3")
def test_the_closed_sets_have_ten_types_and_six_states() -> None:
    assert len(TYPES) == 10
    assert len(STATES) == 6
    assert set(STATES) >= TERMINAL
    assert set(TYPES) >= TERMINAL


@pytest.mark.inv("EXE-7", "EXE-12")
@pytest.mark.parametrize("size", range(4))
def test_every_combination_of_states_is_ranked_in_the_documented_order(size: int) -> None:
    for states in product(STATES, repeat=size):
        found = rank_states(states, states)
        if "failed" in states:
            assert found == "failed"
        elif "cancelled" in states:
            assert found == "cancelled"
        elif states and all(one in {"completed", "skipped"} for one in states):
            assert found == "completed"
        elif all(one == "pending" for one in states):
            assert found == "pending"
        else:
            assert found == "in_progress"


@pytest.mark.inv("EXE-7")
def test_a_flow_with_every_slot_pending_is_pending() -> None:
    blocks = [block_execution("a", "created"), block_execution("b", "created")]
    assert derive_flow_state(blocks, [slot_id("b")]) == "pending"


@pytest.mark.inv("EXE-7")
def test_a_flow_without_executions_is_pending_also_without_slots() -> None:
    assert derive_flow_state([], [slot_id("a")]) == "pending"
    assert derive_flow_state([], []) == "pending"


@pytest.mark.inv("EXE-7")
def test_a_flow_without_a_terminal_slot_never_completes() -> None:
    assert derive_flow_state([block_execution("a", *DONE)], []) == "in_progress"


@pytest.mark.inv("EXE-7")
def test_a_failed_block_outranks_a_cancelled_one_and_both_outrank_a_completed_end() -> None:
    failed, cancelled = block_execution("a", "started", "failed"), block_execution("b", "cancelled")
    end = block_execution("end", *DONE)
    assert derive_flow_state([failed, cancelled], [slot_id("end")]) == "failed"
    assert derive_flow_state([cancelled, end], [slot_id("end")]) == "cancelled"


@pytest.mark.inv("EXE-8")
def test_a_skipped_terminal_slot_counts_as_satisfied() -> None:
    blocks = [block_execution("a", *DONE), block_execution("b", "created", "skipped")]
    assert derive_flow_state(blocks, [slot_id("a"), slot_id("b")]) == "completed"


@pytest.mark.inv("EXE-8")
def test_a_terminal_slot_without_an_execution_is_not_satisfied() -> None:
    assert derive_flow_state([block_execution("a", *DONE)], [slot_id("a"), slot_id("b")]) == "in_progress"


@pytest.mark.inv("EXE-7")
def test_a_flow_whose_ends_are_done_is_completed_and_lists_the_slots_that_still_run() -> None:
    blocks = [block_execution("a", *RUNNING), block_execution("end", *DONE)]
    assert derive_flow_state(blocks, [slot_id("end")]) == "completed"
    assert open_slots(blocks) == (slot_id("a"),)


@pytest.mark.inv("EXE-6", "EXE-7")
def test_a_later_execution_of_a_slot_replaces_a_failed_one() -> None:
    blocks = [block_execution("a", "started", "failed"), block_execution("a", *DONE)]
    assert [one.state for one in blocks] == ["failed", "completed"]
    assert derive_flow_state(blocks, [slot_id("a")]) == "completed"
    assert derive_flow_state(blocks[::-1], [slot_id("a")]) == "failed"


@pytest.mark.inv("EXE-4")
def test_a_handoff_shows_both_executors_in_their_order() -> None:
    events = [
        event("executor_assigned", executor=ANN),
        event("started", executor=ANN),
        event("executor_released", executor=ANN),
        event("executor_assigned", executor=BOT),
        event("completed", executor=BOT),
    ]
    assert derive_block_state(events) == "completed"
    assert executor_lineage(events) == (ANN, BOT)


def flow_execution(state: ExecutionState) -> FlowExecution:
    return FlowExecution(id=derived_uuid("f", state), flow_id=derived_uuid("flow"), flow_version=1, state=state)


def contract_execution(state: ExecutionState) -> ContractExecution:
    pact = derived_uuid("contract")
    return ContractExecution(id=derived_uuid("c", state), contract_id=pact, contract_version=1, state=state)


@pytest.mark.inv("GOAL-5", "EXE-12")
@pytest.mark.parametrize("state", STATES)
def test_a_contract_is_ranked_over_its_flows_and_sub_contracts_together(state: ExecutionState) -> None:
    done = [flow_execution("completed")]
    assert derive_contract_state(done, [contract_execution(state)]) == rank_states(
        ["completed", state], ["completed", state]
    )
    assert derive_contract_state([flow_execution(state)]) == rank_states([state], [state])


@pytest.mark.inv("GOAL-5")
def test_a_failed_sub_contract_fails_a_contract_whose_own_flows_are_complete() -> None:
    assert derive_contract_state([flow_execution("completed")], [contract_execution("failed")]) == "failed"


@pytest.mark.inv("GOAL-5")
def test_a_contract_without_executions_is_pending() -> None:
    assert derive_contract_state([]) == "pending"


@pytest.mark.inv("EXE-9")
def test_one_execution_may_belong_to_two_flows_and_changes_neither() -> None:
    shared = block_execution("a", *DONE)
    first = derive_flow_state([shared], [slot_id("a")])
    second = derive_flow_state([shared, block_execution("b", "created")], [slot_id("b")])
    assert (first, second) == ("completed", "in_progress")
