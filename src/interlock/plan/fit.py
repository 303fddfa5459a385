"""Does a snapshot fit the plan it pins? Checked on load: an impossible state is never executed (locks 1)."""

from interlock.plan.compiled import CompiledWorkflow
from interlock.record.snapshot import ExecutionSnapshot, Running


def snapshot_fault(snapshot: ExecutionSnapshot, workflow: CompiledWorkflow) -> str | None:
    """Return what is wrong with a snapshot against its plan, or None if it fits."""
    state = snapshot.state
    unknown = [key for key in (*state.completed.values, *state.skipped.values) if key not in workflow.steps]
    if unknown:
        return f"step {unknown[0]!r} is not in the plan"
    if isinstance(state, Running):
        pending = state.pending.step.step_id
        if pending not in workflow.steps:
            return f"pending step {pending!r} is not in the plan"
        if state.loop_stack:
            return f"loop {state.loop_stack[0].loop_id!r} is not in the plan"
        passed = {node.step_id for node in workflow.plan.nodes[: workflow.numbers[pending] - 1]}
        if len(passed) != len(state.completed.values) + len(state.skipped.values) or not passed.issuperset(
            (*state.completed.values, *state.skipped.values)
        ):
            return f"what is done is not what comes before {pending!r} in the plan"
        return None
    if len(state.completed.values) + len(state.skipped.values) != len(workflow.steps):
        return "complete, but some step is neither completed nor skipped"
    return None
