"""The operational model as a library: blocks, flows and contracts, their executions, event stores and adapters.

The entities, their fields and their JSON form are documented on the page about operations. Everything that is public
is named here; import it from this module.
"""

from interlock.define.operations.base import InvalidDefinitionError
from interlock.define.operations.blocks import PortDescriptor, WorkBlock
from interlock.define.operations.builders import ContractBuilder, FlowBuilder, WorkBlockBuilder
from interlock.define.operations.contracts import (
    AssessmentBinding,
    Contract,
    ContractReference,
    FlowReference,
    RequiredOutcome,
)
from interlock.define.operations.definitions import Definition, Definitions, Resolver, VersionTakenError, next_version
from interlock.define.operations.files import parse_definition, to_file_json, validate_definition
from interlock.define.operations.flows import Condition, Edge, Flow, NodeReference, PortMapping
from interlock.define.operations.report import Report
from interlock.define.operations.validate_contract import validate_contract
from interlock.define.operations.validate_flow import validate_block, validate_flow, validate_port_mappings
from interlock.operations.adapter import (
    Assignment,
    BaseAdapter,
    BlockFailedError,
    ExecutionAdapter,
    UnknownExecutionError,
    find_holder,
)
from interlock.operations.command_adapter import CommandAdapter
from interlock.operations.event_store import (
    EventRefusedError,
    EventStore,
    ExecutionEndedError,
    InMemoryEventStore,
)
from interlock.operations.session_store import SessionEventStore
from interlock.views.executions.derive import (
    derive_block_state,
    derive_contract_state,
    derive_flow_state,
    executor_lineage,
    latest_by_slot,
    open_slots,
)
from interlock.views.executions.events import ExecutionEvent, ExecutionEventType, ExecutionState, ExecutorInfo
from interlock.views.executions.model import AssessmentResult, BlockExecution, ContractExecution, FlowExecution

__all__ = [
    "AssessmentBinding",
    "AssessmentResult",
    "Assignment",
    "BaseAdapter",
    "BlockExecution",
    "BlockFailedError",
    "CommandAdapter",
    "Condition",
    "Contract",
    "ContractBuilder",
    "ContractExecution",
    "ContractReference",
    "Definition",
    "Definitions",
    "Edge",
    "EventRefusedError",
    "EventStore",
    "ExecutionAdapter",
    "ExecutionEndedError",
    "ExecutionEvent",
    "ExecutionEventType",
    "ExecutionState",
    "ExecutorInfo",
    "Flow",
    "FlowBuilder",
    "FlowExecution",
    "FlowReference",
    "InMemoryEventStore",
    "InvalidDefinitionError",
    "NodeReference",
    "PortDescriptor",
    "PortMapping",
    "Report",
    "RequiredOutcome",
    "Resolver",
    "SessionEventStore",
    "UnknownExecutionError",
    "VersionTakenError",
    "WorkBlock",
    "WorkBlockBuilder",
    "derive_block_state",
    "derive_contract_state",
    "derive_flow_state",
    "executor_lineage",
    "find_holder",
    "latest_by_slot",
    "next_version",
    "open_slots",
    "parse_definition",
    "to_file_json",
    "validate_block",
    "validate_contract",
    "validate_definition",
    "validate_flow",
    "validate_port_mappings",
]
