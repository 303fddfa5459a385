"""The executions of one branch of a run: its steps as executions of blocks, and the run as one of a flow (EXE-13).

A view of the lifecycle, which is a view of the log: nothing is stored for it. The plan may be that of a flow or of a
workflow. Of a workflow, each step instance is a slot, whose ids are derived from the pinned plan.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import cast

from interlock.kernel.budgets.operations import EXECUTOR_CHARS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import NodeId
from interlock.kernel.uuids import Uuid, derived_uuid
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.events import Actor, Event
from interlock.record.world import EventReceived
from interlock.views.executions.derive import derive_block_state, derive_flow_state, open_slots
from interlock.views.executions.events import (
    TERMINAL,
    TIME_PATTERN,
    ExecutionEvent,
    ExecutionEventType,
    ExecutorInfo,
    Time,
)
from interlock.views.executions.model import BlockExecution, FlowExecution
from interlock.views.lifecycle.events import LifecycleEvent, RefKind
from interlock.views.lifecycle.projection import Lifecycle
from interlock.views.node_position import chain_head
from interlock.views.session import Run, Session

NO_TIME: Time = "1970-01-01T00:00:00Z"
"""The time of the events of an old log before its first event that has one."""
_TIME = re.compile(TIME_PATTERN)


@frozen
class Executions:
    """A run as an execution of a flow, with the executions of its blocks in the order in which they began.

    `slots` has the step instance of each execution. `terminal_slots` are those that complete the flow.
    """

    flow: FlowExecution
    blocks: tuple[BlockExecution, ...]
    slots: Mapping[Uuid, str]
    terminal_slots: tuple[Uuid, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the executions as commands and resources show them."""
        return {
            "flow_execution": self.flow.to_json(),
            "block_executions": [block.to_json() for block in self.blocks],
            "steps": {str(execution): instance for execution, instance in self.slots.items()},
            "open_slots": list(open_slots(self.blocks)),
        }


@frozen
class Recorded:
    """When an event of the log was recorded, and by whom."""

    time: Time
    executor: ExecutorInfo | None


def recorded_facts(events: Iterable[Event]) -> tuple[Recorded, ...]:
    """Return the time and the executor of each event of a log. An event without a time has that of the one before.

    So has one whose time is none: a log may say anything there, because times order nothing (READ-6).
    """
    found: list[Recorded] = []
    time = NO_TIME
    for event in events:
        if event.recorded_at is not None and _TIME.fullmatch(event.recorded_at) is not None:
            time = event.recorded_at
        found.append(Recorded(time=time, executor=executor_of(event.actor)))
    return tuple(found)


def executor_of(actor: Actor | None) -> ExecutorInfo | None:
    """Return an actor of the log as an executor."""
    if actor is None:
        return None
    metadata = dict[str, Json](actor.metadata or {})
    return ExecutorInfo(
        type=actor.type, identifier=actor.identifier[:EXECUTOR_CHARS_MAX] or "(unnamed)", metadata=metadata
    )


def flow_execution_id(run: Run) -> Uuid:
    """Return the id of the execution of a flow that a run is."""
    return derived_uuid("flow_execution", run.run)


def project_executions(
    session: Session, run: Run, workflow: CompiledWorkflow, lifecycle: Lifecycle, facts: tuple[Recorded, ...]
) -> Executions:
    """Return the executions of the branch that a lifecycle follows. `facts` are those of the session's log."""
    received = {one.index: one.data for one in session.outside.events.values() if one.run == run.run}
    projection = _Projection(session=session, run=run, workflow=workflow, facts=facts, received=received)
    skipped = [(at, node, instance) for instance, (at, node) in lifecycle.skipped_at.items()]
    skipped = [one for one in skipped if projection.is_step(one[2])]
    for event in lifecycle.events:
        index = _index_of(event)
        while skipped and index is not None and skipped[0][0] < index:
            projection.add_skipped(*skipped.pop(0))
        if event.kind == "workflow.run.completed":
            while skipped:
                projection.add_skipped(*skipped.pop(0))
        projection.apply(event, index)
    for one in skipped:
        projection.add_skipped(*one)
    return projection.finish()


@mutable
class _Execution:
    """An execution in progress of the projection."""

    id: Uuid
    instance: str
    node: NodeId
    events: list[ExecutionEvent] = field(default_factory=list[ExecutionEvent])
    holder: ExecutorInfo | None = None
    is_started: bool = False


@mutable
class _Projection:
    session: Session
    run: Run
    workflow: CompiledWorkflow
    facts: tuple[Recorded, ...]
    received: Mapping[int, EventReceived]
    blocks: list[_Execution] = field(default_factory=list[_Execution])
    flow_events: list[ExecutionEvent] = field(default_factory=list[ExecutionEvent])
    current: dict[str, _Execution] = field(default_factory=dict[str, _Execution])
    _ordinals: dict[str, int] = field(default_factory=dict[str, int])
    _begun_at: dict[NodeId, _Execution] = field(default_factory=dict[NodeId, _Execution])
    _pending: str | None = None

    def is_step(self, instance: str) -> bool:
        """Return whether an instance is that of a step."""
        return instance.rpartition("::")[2] in self.workflow.steps

    def apply(self, event: LifecycleEvent, index: int | None) -> None:
        """Add what one event of the lifecycle says."""
        match event.kind:
            case "workflow.run.created":
                self._add_flow_event("created", index or 0)
            case "workflow.node.scheduled" if event.instance is not None and self.is_step(event.instance):
                assert index is not None, "it names the event that led to the step"
                self._pending = event.instance
                self._begin(event.instance, index, NodeId(_ref_of(event, "log_node") or ""))
            case "workflow.node.failed" if event.instance in self.current:
                progress: Json = {"attempt": event.attempt, "refused": event.code}
                self._work(self.current[event.instance], index, ("progress", progress))
            case "workflow.node.completed" if event.instance in self.current:
                self._complete(self.current[event.instance], event, index)
            case "workflow.checkpoint.saved":
                self._checkpoint(event, index)
            case "workflow.run.completed" | "workflow.run.failed" | "workflow.run.cancelled":
                self._end(event, index)
            case _:
                pass

    def add_skipped(self, index: int, node: NodeId, instance: str) -> None:
        """Add the execution of a step that was skipped."""
        skipped = self._begin(instance, index, node)
        self._add(skipped, "skipped", index)

    def finish(self) -> Executions:
        """Return what was added."""
        blocks = tuple(map(self._to_block, self.blocks))
        terminal = self._terminal_slots(blocks)
        origin = self.workflow.flow
        flow = FlowExecution(
            id=flow_execution_id(self.run),
            flow_id=origin.flow_id if origin is not None else derived_uuid("workflow", self.run.workflow_hash),
            flow_version=origin.flow_version if origin is not None else 1,
            block_executions=tuple(block.id for block in blocks),
            state=derive_flow_state(blocks, terminal),
            events=tuple(self.flow_events),
        )
        slots = {one.id: one.instance for one in self.blocks}
        return Executions(flow=flow, blocks=blocks, slots=slots, terminal_slots=terminal)

    def _begin(self, instance: str, index: int, node: NodeId) -> _Execution:
        ordinal = self._ordinals.get(node, 0)
        self._ordinals[node] = ordinal + 1
        begun = _Execution(id=derived_uuid("execution", self.run.run, node, ordinal), instance=instance, node=node)
        self._add(begun, "created", index, {"step": instance})
        self.blocks.append(begun)
        self.current[instance] = begun
        self._begun_at[node] = begun
        return begun

    def _work(self, execution: _Execution, index: int | None, *what: tuple[ExecutionEventType, Json]) -> None:
        """Add what an executor did. If it is another one than before, the one before is released first."""
        assert index is not None, "each report is an event of the log"
        executor = self.facts[index].executor
        if executor is not None and executor != execution.holder:
            if execution.holder is not None:
                self._add(execution, "executor_released", index, {"reason": "taken_over"}, execution.holder)
            self._add(execution, "executor_assigned", index)
            execution.holder = executor
        if not execution.is_started:
            execution.is_started = True
            self._add(execution, "started", index)
        for kind, payload in what:
            self._add(execution, kind, index, payload)

    def _complete(self, execution: _Execution, event: LifecycleEvent, index: int | None) -> None:
        artifacts: list[Json] = [ref.ref for ref in event.refs if ref.kind == "artifact"]
        outcome: dict[str, Json] = {"artifacts": artifacts} if artifacts else {}
        # What a step that waits took is its result.
        for one in (self.received[int(ref.ref)] for ref in event.refs if ref.kind == "event" and ref.ref != str(index)):
            outcome["event"] = {"kind": one.event, "assurance": one.assurance, "fields": dict(one.fields)}
        produced: list[tuple[ExecutionEventType, Json]] = [("outcome_produced", outcome)] if outcome else []
        self._work(execution, index, *produced, ("completed", {"attempt": event.attempt}))

    def _checkpoint(self, event: LifecycleEvent, index: int | None) -> None:
        """Add a checkpoint to the step of its node, and how it left the work on that step."""
        node = self.session.nodes[NodeId(_ref_of(event, "log_node") or "")]
        assert node.parent is not None, "a checkpoint has a parent"
        execution = self._begun_at.get(chain_head(self.session, self.session.nodes[node.parent]).node)
        if execution is None or derive_block_state(execution.events) in TERMINAL:
            return
        self._work(execution, index, ("progress", {"checkpoint": node.node}))
        assert index is not None, "a checkpoint is an event of the log"
        for left in node.left:
            reason: Json = {"reason": left.reason}
            if left.work == "released":
                self._add(execution, "executor_released", index, reason)
                execution.holder = None
            elif left.work == "failed":
                self._add(execution, "failed", index, reason)
                self._begin(execution.instance, index, execution.node)

    def _end(self, event: LifecycleEvent, index: int | None) -> None:
        """End the run, and with it the step that is pending. Steps that were never reached are skipped."""
        assert index is not None, "the end is an event of the log"
        kind = cast("ExecutionEventType", event.kind.removeprefix("workflow.run."))
        reason: Json = {"reason": event.code} if event.code is not None else None
        self._add_flow_event(kind, index, reason)
        pending = self.current.get(self._pending or "")
        if kind != "completed" and pending is not None:
            self._add(pending, kind, index, reason)
        if kind == "completed":
            reached = {one.instance.rpartition("::")[2] for one in self.blocks}
            for step in self.workflow.steps:
                if step not in reached:
                    self.add_skipped(index, NodeId(_ref_of(event, "log_node") or ""), step)

    def _add(
        self,
        execution: _Execution,
        kind: ExecutionEventType,
        index: int,
        payload: Json = None,
        executor: ExecutorInfo | None = None,
    ) -> None:
        event = self._event(execution.id, len(execution.events), kind, index, payload)
        execution.events.append(event if executor is None else event.model_copy(update={"executor": executor}))

    def _add_flow_event(self, kind: ExecutionEventType, index: int, payload: Json = None) -> None:
        flow = flow_execution_id(self.run)
        self.flow_events.append(self._event(flow, len(self.flow_events), kind, index, payload))

    def _event(
        self, execution: Uuid, ordinal: int, kind: ExecutionEventType, index: int, payload: Json
    ) -> ExecutionEvent:
        fact = self.facts[index]
        return ExecutionEvent(
            id=derived_uuid("event", execution, ordinal),
            timestamp=fact.time,
            execution_id=execution,
            event_type=kind,
            executor=fact.executor,
            payload=payload,
            metadata={"log_event": index},
        )

    def _to_block(self, one: _Execution) -> BlockExecution:
        slot, block, version = self._slot_of(one.instance)
        return BlockExecution(
            id=one.id,
            node_reference_id=slot,
            work_block_id=block,
            work_block_version=version,
            state=derive_block_state(one.events),
            events=tuple(one.events),
        )

    def _slot_of(self, instance: str) -> tuple[Uuid, Uuid, int]:
        step = instance.rpartition("::")[2]
        slot = self.workflow.slots.get(step)
        if slot is not None:
            return slot.slot, slot.block, slot.block_version
        pinned = self.run.workflow_hash
        return derived_uuid("slot", pinned, instance), derived_uuid("block", pinned, step), 1

    def _terminal_slots(self, blocks: Iterable[BlockExecution]) -> tuple[Uuid, ...]:
        """Return the slots that complete the flow: those without an outgoing edge.

        Of a workflow they are all that were reached: how often a step is repeated is known only in the end, and a run
        that goes on has a pending step.
        """
        if self.workflow.flow is None:
            return tuple(dict.fromkeys(block.node_reference_id for block in blocks))
        graphs = self.workflow.graphs
        return tuple(
            slot.slot
            for slot in self.workflow.flow.slots
            if all(graphs.nodes[edge.target].kind == "terminal" for edge in graphs.out_edges[slot.node_id])
        )


def _ref_of(event: LifecycleEvent, kind: RefKind) -> str | None:
    return next((ref.ref for ref in event.refs if ref.kind == kind), None)


def _index_of(event: LifecycleEvent) -> int | None:
    """Return the index of the event of the log that an event of a lifecycle comes from; None if it names none."""
    index = _ref_of(event, "event")
    return int(index) if index is not None else None
