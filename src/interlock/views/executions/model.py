"""Executions of blocks, flows and contracts: views of their events, never stored (EXE-1)."""

from typing import Annotated

from pydantic import Field

from interlock.define.operations.base import UuidField, Value, Version
from interlock.kernel.canonical import Json
from interlock.views.executions.events import ExecutionEvent, ExecutionState

Events = Annotated[tuple[ExecutionEvent, ...], Field(strict=False)]
Ids = Annotated[tuple[UuidField, ...], Field(strict=False)]


class BlockExecution(Value):
    """One execution of a block in a slot of a flow. Inputs, outputs, executors and times are in its events."""

    id: UuidField
    node_reference_id: UuidField
    work_block_id: UuidField
    work_block_version: Version
    state: ExecutionState
    events: Events = ()


class FlowExecution(Value):
    """One execution of a flow. Its state follows from those of its blocks; its own events only inform (EXE-7)."""

    id: UuidField
    flow_id: UuidField
    flow_version: Version
    block_executions: Ids = ()
    state: ExecutionState
    events: Events = ()


class AssessmentResult(Value):
    """The verdict of one execution of an assessment flow: the output of its terminal slot (GOAL-7)."""

    required_outcome_id: UuidField
    assessment_flow_execution_id: UuidField
    result: Json = None


class ContractExecution(Value):
    """One execution of a contract. Assessments are listed, and never change its state (GOAL-6)."""

    id: UuidField
    contract_id: UuidField
    contract_version: Version
    flow_executions: Ids = ()
    sub_contract_executions: Ids = ()
    assessment_executions: Annotated[tuple[AssessmentResult, ...], Field(strict=False)] = ()
    state: ExecutionState
    events: Events = ()
