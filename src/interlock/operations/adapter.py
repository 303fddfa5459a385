"""The execution adapter: what drives work. The protocol, and a base class that writes the events (ADPT-3 to ADPT-5)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, cast
from uuid import uuid4

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.flows import Condition, NodeReference
from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen
from interlock.kernel.uuids import Uuid
from interlock.operations.event_store import EventStore
from interlock.views.executions.derive import derive_block_state
from interlock.views.executions.events import TERMINAL, ExecutionEvent, ExecutionEventType, ExecutorInfo


class ExecutionAdapter(Protocol):
    """Drives work: any orchestrator can implement it. It writes by the `append` of the given store alone."""

    def execute_block(self, block: WorkBlock, node_ref: NodeReference, inputs: Json, store: EventStore) -> Uuid:
        """Begin the execution of a block and return its id.

        The adapter chooses an executor by the block's hints, and never changes the block or the slot.
        """
        ...

    def resume_block(self, block_execution_id: Uuid, store: EventStore) -> None:
        """Continue an execution from its last event, for example after its executor crashed."""
        ...

    def evaluate_condition(self, condition: Condition, context: Json) -> bool:
        """Return whether an edge with this condition is taken."""
        ...


class BlockFailedError(Exception):
    """The work of a block failed. The message is recorded with the event `failed`."""


class UnknownExecutionError(InterlockError):
    """A store has no event `created` of this adapter's form for an execution, so it cannot be resumed."""

    def __init__(self, execution_id: Uuid) -> None:
        super().__init__(f"execution {execution_id}: no event says what it executes")
        self.execution_id = execution_id


@frozen
class Assignment:
    """What an executor has to do: a block, in a slot, with its inputs. `progress` records an intermediate result."""

    block: WorkBlock
    node_ref: NodeReference
    inputs: Json
    executor: ExecutorInfo
    progress: Callable[[Json], None]


def read_clock() -> str:
    """Return the current time in the form of events."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def mint_uuid() -> Uuid:
    """Return a new random UUID."""
    return Uuid(str(uuid4()))


class BaseAdapter(ABC):
    """Writes the events of an execution in their order. A subclass chooses the executor and does the work.

    The event `created` holds the block, the slot and the inputs, so another process can resume the execution from the
    store alone.
    """

    def __init__(self, now: Callable[[], str] = read_clock, new_id: Callable[[], Uuid] = mint_uuid) -> None:
        self._now = now
        self._new_id = new_id

    @abstractmethod
    def choose_executor(self, block: WorkBlock) -> ExecutorInfo:
        """Return an executor that has the capabilities that the block's hints name."""

    @abstractmethod
    def do_work(self, assignment: Assignment) -> Json:
        """Do the work and return its outcome.

        Raises:
            BlockFailedError: The work failed.
        """

    @abstractmethod
    def evaluate_condition(self, condition: Condition, context: Json) -> bool:
        """Return whether an edge with this condition is taken."""

    def execute_block(self, block: WorkBlock, node_ref: NodeReference, inputs: Json, store: EventStore) -> Uuid:
        """Execute a block to its end and return the id of the execution. A failure is an event, not an error."""
        execution = self._new_id()
        begun: Json = {"work_block": block.to_json(), "node_reference": node_ref.to_json(), "inputs": inputs}
        self._append(store, execution, "created", payload=begun)
        self._work(store, execution)
        return execution

    def resume_block(self, block_execution_id: Uuid, store: EventStore) -> None:
        """Continue an execution to its end. An execution that has ended stays as it is.

        An executor that did not release the execution is recorded as crashed before another one is assigned.

        Raises:
            UnknownExecutionError: No event says what is executed.
        """
        events = store.get_events(block_execution_id)
        if derive_block_state(events) in TERMINAL:
            return
        holder = find_holder(events)
        if holder is not None:
            payload: Json = {"reason": "crashed"}
            self._append(store, block_execution_id, "executor_released", executor=holder, payload=payload)
        self._work(store, block_execution_id)

    def _work(self, store: EventStore, execution: Uuid) -> None:
        events = store.get_events(execution)
        block, node_ref, inputs = _read_created(execution, events)
        executor = self.choose_executor(block)

        def record(kind: ExecutionEventType, payload: Json = None) -> None:
            self._append(store, execution, kind, executor=executor, payload=payload)

        record("executor_assigned")
        if derive_block_state(events) == "pending":
            record("started", {"inputs": inputs})
        assignment = Assignment(
            block=block,
            node_ref=node_ref,
            inputs=inputs,
            executor=executor,
            progress=lambda payload: record("progress", payload),
        )
        try:
            outcome = self.do_work(assignment)
        except BlockFailedError as error:
            record("failed", {"reason": str(error)})
            return
        record("outcome_produced", outcome)
        record("completed")

    def _append(
        self,
        store: EventStore,
        execution: Uuid,
        kind: ExecutionEventType,
        *,
        executor: ExecutorInfo | None = None,
        payload: Json = None,
    ) -> None:
        store.append(
            ExecutionEvent(
                id=self._new_id(),
                timestamp=self._now(),
                execution_id=execution,
                event_type=kind,
                executor=executor,
                payload=payload,
            )
        )


def find_holder(events: list[ExecutionEvent]) -> ExecutorInfo | None:
    """Return the executor that an execution is assigned to; None if it was released or never assigned."""
    holder: ExecutorInfo | None = None
    for event in events:
        if event.event_type == "executor_assigned":
            holder = event.executor
        elif event.event_type == "executor_released":
            holder = None
    return holder


def _read_created(execution: Uuid, events: list[ExecutionEvent]) -> tuple[WorkBlock, NodeReference, Json]:
    begun = next((one.payload for one in events if one.event_type == "created"), None)
    if not isinstance(begun, dict) or not {"work_block", "node_reference", "inputs"} <= begun.keys():
        raise UnknownExecutionError(execution)
    block = WorkBlock.from_json(cast("dict[str, Json]", begun["work_block"]))
    node_ref = NodeReference.from_json(cast("dict[str, Json]", begun["node_reference"]))
    return block, node_ref, begun["inputs"]
