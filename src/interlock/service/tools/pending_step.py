"""The step that is pending at a node, as it is handed out: its prompt, and what a call that reports it must hold."""

from interlock.engine.answer.parts import PendingStepView
from interlock.engine.answer.prompt import prompt_of
from interlock.engine.gates import needs_confirmation
from interlock.engine.judge.evidence import wanted_artifacts
from interlock.engine.template import rendered_line, with_loop_variables
from interlock.record.snapshot import Running
from interlock.service.run.context import RunContext
from interlock.views.session import Node


def render_pending_step(scene: RunContext, node: Node) -> PendingStepView | None:
    """Return the step that is pending at a node, rendered with the node's context; None if it is complete.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    state = scene.snapshot(node).state
    if not isinstance(state, Running):
        return None
    pending = state.pending.step
    step = scene.workflow.steps[pending.step_id]
    assert step.task is not None, "a pending step is a task"
    graphs = scene.workflow.graphs
    seen = with_loop_variables(graphs, scene.session.context(node.node), pending.loop_path)
    return PendingStepView(
        number=scene.workflow.numbers[step.node_id],
        total=len(scene.workflow.numbers),
        step_id=step.node_id,
        title=rendered_line(step.title, seen),
        prompt=prompt_of(scene.workflow, step, seen),
        needs_notes=step.task.evidence.notes == "required",
        needs_confirmation=needs_confirmation(step, seen),
        agent_role=step.task.agent_role,
        loop=scene.passing(pending.loop_path),
        artifacts=wanted_artifacts(scene.workflow, step),
        context_keys=step.task.produces,
        context=seen,
        parallel_with=graphs.parallel_to(step.node_id),
    )
