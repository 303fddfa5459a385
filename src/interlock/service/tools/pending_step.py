"""The pending step of a node as answers show it: its prompt, and what a call that reports it must contain."""

import json
from collections.abc import Iterable

from interlock.define.declared import declared_blank
from interlock.engine.answer.parts import PendingStepView
from interlock.engine.answer.prompt import prompt_of
from interlock.engine.answer.structure import WaitingOut
from interlock.engine.gates import NO_APPROVAL, ApprovalContext, asks_of, needs_confirmation
from interlock.engine.judge.confirmation import CLAIM
from interlock.engine.judge.evidence import artifact_outlines
from interlock.engine.outside import EVENT_KIND
from interlock.engine.template import rendered_line, with_loop_variables
from interlock.kernel.blanks import Blank
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import Task
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import LoopFrame
from interlock.service.run.attempts import unknown_signer
from interlock.service.run.context import RunContext
from interlock.views.node_position import chain_head
from interlock.views.session import Node


def render_pending_step(
    run_context: RunContext, node: Node, asking: ApprovalContext = NO_APPROVAL
) -> PendingStepView | None:
    """Render the pending step of a node with the node's context; None if the run is complete there.

    `asking` is how the caller's client can ask people.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    pending = run_context.pending(node)
    if pending is None:
        return None
    return render_step_at(run_context, node, pending.step_id, pending.loop_path, asking)


def render_step_at(
    run_context: RunContext,
    node: Node,
    step_id: str,
    loop_path: tuple[LoopFrame, ...],
    asking: ApprovalContext = NO_APPROVAL,
) -> PendingStepView:
    """Render a step of the plan with a node's context, as if it were pending there in these passes.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    step = run_context.workflow.steps[step_id]
    assert step.task is not None, "a step is a task"
    graphs, never_stops = run_context.workflow.graphs, node.preferences.never_stops
    seen = with_loop_variables(graphs, run_context.session.context(node.node), loop_path)
    marks = ExecutionState(graphs, run_context.snapshot(node).state)
    marks.stack = list(loop_path)
    parallel = marks.open_parallel_to(step.node_id)
    return PendingStepView(
        number=run_context.workflow.numbers[step.node_id],
        total=len(run_context.workflow.numbers),
        step_id=step.node_id,
        title=rendered_line(step.title, seen),
        prompt=prompt_of(run_context.workflow, step, seen, never_stops=never_stops, parallel_with=parallel),
        needs_notes=step.task.evidence.notes == "required",
        needs_confirmation=not never_stops and needs_confirmation(step, seen),
        agent_role=step.task.agent_role,
        loop=run_context.passing(loop_path),
        artifacts=artifact_outlines(run_context.workflow, step),
        context=_key_blanks(run_context.workflow, step.task.produces),
        parallel_with=parallel,
        waiting=_waiting(run_context, node, step.task),
        claim=CLAIM if asking.needs_claim and not never_stops and asks_of(step, seen) else None,
    )


def _waiting(run_context: RunContext, node: Node, task: Task) -> WaitingOut | None:
    """Return what a step waits for: always the same words, so that repeated answers are equal."""
    awaits = task.awaits
    if awaits is None:
        return None
    fields = {name: f"<{kind}>" for name, kind in sorted(awaits.fields.items())}
    sent = {"kind": EVENT_KIND, "event": awaits.event, "id": "<unique id>", "fields": fields}
    label = run_context.session.label(run_context.run.run)
    word = {"signed": "a configured source signs and sends it", "executed": "Interlock itself records it"}
    command = f"`interlock event send {awaits.event} --run {label}`"
    by = word.get(awaits.assurance, f"a person or CI sends it with {command}")
    how = f"The run waits for the event `{awaits.event}`: {by}. Until it arrives, the step asks for no work."
    if awaits.assurance == "claimed":
        how += f" If you know that it happened, add the artifact {json.dumps(sent)} to the call."
    if awaits.timeout_s is not None:
        how += f" It waits at most {awaits.timeout_s} seconds."
    signer = unknown_signer(run_context, node)
    if signer is not None:
        how += (
            f" An event that {json.dumps(signer.source)} signed is recorded, but its key {signer.public_key} is not"
            " configured here. Only the user can add it to `config.toml`, if the user trusts it."
        )
    since = chain_head(run_context.session, node).at
    return WaitingOut(for_="event", event=awaits.event, since=since, how=how)


def _key_blanks(workflow: CompiledWorkflow, keys: Iterable[str]) -> dict[str, Blank]:
    """Return the blanks of the context keys that a step sets, as they are declared."""
    known = workflow.declared
    return {key: declared_blank(known[key]) if key in known else Blank(what=f"the value of {key}") for key in keys}
