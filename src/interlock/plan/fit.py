"""Does a snapshot fit the plan it pins? Checked on load: an impossible state is never executed (SNAP-4)."""

from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import Complete, ExecutionSnapshot, LoopFrame, Running, step_instance_key


def snapshot_fault(snapshot: ExecutionSnapshot, workflow: CompiledWorkflow) -> str | None:
    """Return what is wrong with a snapshot against its plan, or None if it fits."""
    state, graphs = snapshot.state, workflow.graphs
    stack = state.loop_stack if isinstance(state, Running) else ()
    fault = _stack_fault(graphs, stack)
    if fault is not None:
        return fault
    marks = ExecutionState(graphs, state)
    fault = _marks_fault(graphs, marks)
    if fault is not None:
        return fault
    # The loops around the pending step are themselves unresolved, each in the graph around it.
    for depth in range(len(stack)):
        marks.stack = list(stack[:depth])
        if _next(marks) != stack[depth].loop_id:
            return f"loop {stack[depth].loop_id!r} is not the next node"
    marks.stack = list(stack)
    if isinstance(state, Complete):
        last = _next(marks)
        is_end = last is not None and graphs.nodes[last].kind == "terminal"
        return None if is_end else "complete, but some step is neither completed nor skipped"
    pending = state.pending.step.step_id
    if pending not in workflow.steps:
        return f"pending step {pending!r} is not in the plan"
    return None if _next(marks) == pending else f"the completed steps are not the ones before {pending!r} in the plan"


def _next(marks: ExecutionState) -> str | None:
    """Return the node that comes next and is not dead; None where there is none."""
    found = marks.next_open()
    return None if found is None or found.is_dead else found.node.node_id


def _stack_fault(graphs: Graphs, stack: tuple[LoopFrame, ...]) -> str | None:
    scope: str | None = None
    for frame in stack:
        if frame.loop_id not in graphs.loops or graphs.scope_of[frame.loop_id] != scope:
            return f"loop {frame.loop_id!r} is not in the plan at this place"
        if frame.iteration >= graphs.loops[frame.loop_id].max_iterations:
            return f"loop {frame.loop_id!r} is beyond its bound"
        scope = frame.loop_id
    return None


def _marks_fault(graphs: Graphs, marks: ExecutionState) -> str | None:
    """Return which key names nothing that can be resolved at this place."""
    keys = _keys(graphs, marks)
    for name, marked in (("completed", marks.completed), ("skipped", marks.skipped)):
        strange = marked - keys
        if strange:
            return f"{name} step {min(strange)!r} is not in the plan"
    strange = marks.taken - _edge_keys(graphs, marks) if marks.taken else set[str]()
    if strange:
        return f"edge {min(strange)!r} is not in the plan"
    return next((fault for scope, frames in _scopes(marks) if (fault := _past_fault(marks, scope, frames))), None)


def _past_fault(marks: ExecutionState, scope: str | None, frames: tuple[LoopFrame, ...]) -> str | None:
    """Return why what is marked in a scope cannot have come about: the rule of the walk, read backwards."""
    graphs, completed, skipped = marks.graphs, marks.completed, marks.skipped
    prefix = step_instance_key("", frames)
    for node in graphs.members[scope]:
        key, edges = prefix + node.node_id, graphs.in_edges.get(node.node_id, ())
        is_skipped = key in skipped
        if not is_skipped and key not in completed:
            continue
        if any(prefix + edge.source not in completed and prefix + edge.source not in skipped for edge in edges):
            return f"{node.node_id!r} is done, but a node before it is not"
        is_reached = not edges or any(marks.is_taken(edge, prefix) for edge in edges)
        if is_reached == is_skipped:
            return f"{node.node_id!r} is {'skipped' if is_skipped else 'completed'}, but no edge led to that"
        if node.kind == "decision" and not is_skipped:
            chosen = sum(prefix + edge.edge_id in marks.taken for edge in graphs.out_edges.get(node.node_id, ()))
            if chosen != 1:
                return f"the decision {node.node_id!r} did not choose exactly one edge"
    return None


def _scopes(marks: ExecutionState) -> list[tuple[str | None, tuple[LoopFrame, ...]]]:
    """Return every scope that a key may stand in: the outermost, and that of each loop under way."""
    stack = tuple(marks.stack)
    return [(None, ()), *((stack[depth].loop_id, stack[: depth + 1]) for depth in range(len(stack)))]


def _edge_keys(graphs: Graphs, marks: ExecutionState) -> set[str]:
    return {
        step_instance_key("", frames) + edge.edge_id
        for scope, frames in _scopes(marks)
        for node in graphs.members[scope]
        if node.kind == "decision"
        for edge in graphs.out_edges.get(node.node_id, ())
    }


def _keys(graphs: Graphs, marks: ExecutionState) -> set[str]:
    keys: set[str] = set()
    for scope, frames in _scopes(marks):
        prefix = step_instance_key("", frames)
        keys.update(prefix + node.node_id for node in graphs.members[scope])
    return keys
