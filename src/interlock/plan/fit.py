"""Checks on load that a snapshot fits the plan that it pins: an impossible state is never executed (SNAP-4)."""

from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import Complete, ExecutionSnapshot, LoopFrame, Running, step_instance_key


def snapshot_fault(snapshot: ExecutionSnapshot, workflow: CompiledWorkflow) -> str | None:
    """Return why a snapshot is impossible in its plan, or None if it is possible."""
    state, graphs = snapshot.state, workflow.graphs
    stack = state.loop_stack if isinstance(state, Running) else ()
    fault = _stack_fault(graphs, stack)
    if fault is not None:
        return fault
    execution = ExecutionState(graphs, state)
    fault = _keys_fault(graphs, execution)
    if fault is not None:
        return fault
    # The loops around the pending step are themselves unresolved, each in the graph around it.
    for depth in range(len(stack)):
        execution.stack = list(stack[:depth])
        if _next(execution) != stack[depth].loop_id:
            return f"loop {stack[depth].loop_id!r} is not the next node"
    execution.stack = list(stack)
    if isinstance(state, Complete):
        last = _next(execution)
        is_end = last is not None and graphs.nodes[last].kind == "terminal"
        return None if is_end else "complete, but some step is neither completed nor skipped"
    pending = state.pending.step.step_id
    if pending not in workflow.steps:
        return f"pending step {pending!r} is not in the plan"
    return (
        None if _next(execution) == pending else f"the completed steps are not the ones before {pending!r} in the plan"
    )


def _next(execution: ExecutionState) -> str | None:
    """Return the next node that is not dead; None if there is none."""
    found = execution.next_open()
    return None if found is None or found.is_dead else found.node.node_id


def _stack_fault(graphs: Graphs, stack: tuple[LoopFrame, ...]) -> str | None:
    scope: str | None = None
    for frame in stack:
        if frame.loop_id not in graphs.loops or graphs.scope_of[frame.loop_id] != scope:
            return f"loop {frame.loop_id!r} is not in the plan at this place"
        if frame.iteration >= graphs.loops[frame.loop_id].max_iterations:
            return f"loop {frame.loop_id!r} is beyond its bound"
        if (graphs.loops[frame.loop_id].items is None) != (frame.items_at is None):
            return f"loop {frame.loop_id!r} has a list in the plan or in the snapshot, but not in both"
        scope = frame.loop_id
    return None


def _keys_fault(graphs: Graphs, execution: ExecutionState) -> str | None:
    """Return why the marked keys are impossible; None if they are possible."""
    keys = _keys(graphs, execution)
    completed, skipped, taken = map(frozenset, (execution.completed, execution.skipped, execution.taken))
    for name, marked in (("completed", completed), ("skipped", skipped)):
        unknown = marked - keys
        if unknown:
            return f"{name} step {min(unknown)!r} is not in the plan"
    unknown = taken - _edge_keys(graphs, execution) if taken else taken
    if unknown:
        return f"edge {min(unknown)!r} is not in the plan"
    return next(
        (fault for scope, frames in _scopes(execution) if (fault := _walk_fault(execution, scope, frames))), None
    )


def _walk_fault(execution: ExecutionState, scope: str | None, frames: tuple[LoopFrame, ...]) -> str | None:
    """Return why the execution of a scope cannot come from a walk; None if they can."""
    graphs, completed, skipped = execution.graphs, execution.completed, execution.skipped
    prefix = step_instance_key("", frames)
    for node in graphs.members[scope]:
        key, edges = prefix + node.node_id, graphs.in_edges.get(node.node_id, ())
        is_skipped = key in skipped
        if not is_skipped and key not in completed:
            continue
        if any(prefix + edge.source not in completed and prefix + edge.source not in skipped for edge in edges):
            return f"{node.node_id!r} is done, but a node before it is not"
        is_reached = not edges or any(execution.is_taken(edge, prefix) for edge in edges)
        if is_reached == is_skipped:
            return f"{node.node_id!r} is {'skipped' if is_skipped else 'completed'}, but no edge led to that"
        if node.kind == "decision" and not is_skipped:
            chosen = sum(prefix + edge.edge_id in execution.taken for edge in graphs.out_edges.get(node.node_id, ()))
            if chosen != 1:
                return f"the decision {node.node_id!r} did not choose exactly one edge"
    return None


def _scopes(execution: ExecutionState) -> list[tuple[str | None, tuple[LoopFrame, ...]]]:
    """Return every scope that a key may be in: the outermost, and that of each active loop."""
    stack = tuple(execution.stack)
    return [(None, ()), *((stack[depth].loop_id, stack[: depth + 1]) for depth in range(len(stack)))]


def _edge_keys(graphs: Graphs, execution: ExecutionState) -> set[str]:
    return {
        step_instance_key("", frames) + edge.edge_id
        for scope, frames in _scopes(execution)
        for node in graphs.members[scope]
        if node.kind == "decision"
        for edge in graphs.out_edges.get(node.node_id, ())
    }


def _keys(graphs: Graphs, execution: ExecutionState) -> set[str]:
    keys: set[str] = set()
    for scope, frames in _scopes(execution):
        prefix = step_instance_key("", frames)
        keys.update(prefix + node.node_id for node in graphs.members[scope])
    return keys
