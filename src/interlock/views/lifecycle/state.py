"""The effective state of a branch: of each node instance, and where to resume (LIFE-5, LIFE-7)."""

from collections.abc import Callable
from typing import Literal

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import ExecutionSnapshot, Running, step_instance_key
from interlock.views.lifecycle.projection import Lifecycle
from interlock.views.node_position import node_position, path_to
from interlock.views.session import Node, Session

State = Literal["pending", "scheduled", "started", "failed", "retried", "completed", "skipped"]
_STATE_AFTER: dict[str, State] = {
    "workflow.node.scheduled": "scheduled",
    "workflow.node.started": "started",
    "workflow.node.failed": "failed",
    "workflow.node.retried": "retried",
    "workflow.node.completed": "completed",
}


@frozen
class InstanceState:
    """The state of a node in its loop passes. `failed` has the code of each failed attempt, the first one first."""

    instance: str
    node: str
    state: State
    failed: tuple[str, ...] = ()


def instance_states(lifecycle: Lifecycle, workflow: CompiledWorkflow) -> tuple[InstanceState, ...]:
    """Return the state of each node instance: first those that the run reached or skipped, then those that are pending.

    A failed attempt stays in the list when a later one succeeds (LIFE-3). Nodes in loops count only once reached: how
    many passes there will be is not known.
    """
    found: dict[str, InstanceState] = {}
    for event in lifecycle.events:
        state = _STATE_AFTER.get(event.kind)
        if state is None or event.instance is None or event.node is None:
            continue
        before = found.get(event.instance)
        failed = before.failed if before is not None else ()
        if event.kind == "workflow.node.failed" and event.code is not None:
            failed = (*failed, event.code)
        found[event.instance] = InstanceState(instance=event.instance, node=event.node, state=state, failed=failed)
    for key in lifecycle.skipped:
        found[key] = InstanceState(instance=key, node=key.rpartition("::")[2], state="skipped")
    for node in workflow.graphs.members[None]:
        if node.node_id not in found:
            found[node.node_id] = InstanceState(instance=node.node_id, node=node.node_id, state="pending")
    return tuple(found.values())


Obstacle = Literal["run_ended", "complete", "attempts_used_up", "step_done"]
"""Why a branch cannot be continued at its tip: a closed set."""


@frozen
class ResumePoint:
    """Where a branch can be resumed, from its tip alone.

    `last_completed` and `next_runnable` are step instances; `parallel` are those that can begin beside the next one.
    `obstacle` is None if it is safe to resume.
    """

    tip: NodeId
    last_completed: str | None
    next_runnable: str | None
    parallel: tuple[str, ...]
    obstacle: Obstacle | None


def resume_point(
    session: Session, tip: Node, workflow: CompiledWorkflow, snapshot_of: Callable[[Node], ExecutionSnapshot]
) -> ResumePoint:
    """Return where a branch can be resumed. This is a read: it makes no call and repeats no step (LIFE-5).

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    path = path_to(session, tip)
    done = pending_instance(snapshot_of(path[-2].at)) if len(path) > 1 else None
    snapshot = snapshot_of(tip)
    following, state = pending_instance(snapshot), snapshot.state
    parallel: tuple[str, ...] = ()
    if isinstance(state, Running):
        marks = ExecutionState(workflow.graphs, state)
        parallel = tuple(marks.ready_beside(state.pending.step.step_id).values())
    return ResumePoint(
        tip=tip.node,
        last_completed=done,
        next_runnable=following,
        parallel=parallel,
        obstacle=_obstacle(session, tip, following),
    )


def pending_instance(snapshot: ExecutionSnapshot) -> str | None:
    """Return the key of the pending step instance; None if the run is complete there."""
    state = snapshot.state
    if not isinstance(state, Running):
        return None
    return step_instance_key(state.pending.step.step_id, state.pending.step.loop_path)


def _obstacle(session: Session, tip: Node, following: str | None) -> Obstacle | None:
    if following is None:
        return "complete"
    if session.runs[tip.run].ended is not None:
        return "run_ended"
    position = node_position(session, tip.node)
    if position.passed_to is not None:
        return "step_done"
    return "attempts_used_up" if position.is_used_up else None
