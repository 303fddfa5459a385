"""The pending step of a node as answers show it: its prompt, and what a call that reports it must contain."""

import json
from collections.abc import Iterable, Iterator

from interlock.define.declared import declared_blank
from interlock.define.parts import AwaitEvent
from interlock.engine.answer.identity import WaitingOut
from interlock.engine.answer.parts import PendingStepView
from interlock.engine.answer.prompt import prompt_of
from interlock.engine.gates import NO_APPROVAL, ApprovalContext, asks_of, needs_confirmation
from interlock.engine.judge.amended import amended_outlines
from interlock.engine.judge.confirmation import CLAIM, claim_in
from interlock.engine.judge.evidence import artifact_outlines
from interlock.engine.outside import EVENT_KIND
from interlock.engine.template import ValueRoom, rendered_line, with_loop_variables
from interlock.kernel.blanks import Blank
from interlock.kernel.frozen import replace
from interlock.kernel.text import duration_words, quoted
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import NOTES_CONTRACT, PlanNode, Task
from interlock.plan.walk import ExecutionState
from interlock.record.context import Context
from interlock.record.outcome import BlockerReport, ContextKeyPointer
from interlock.record.snapshot import LoopFrame
from interlock.record.world import APPROVAL, LOST
from interlock.service.outside.approvals import way_out
from interlock.service.outside.checks import results_at, unmet_words
from interlock.service.outside.demand import how_to_send, unknown_key_words, weaker_level
from interlock.service.run.attempts import came_before, pending_task, unknown_signer
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.approval import expiry_of_question
from interlock.service.run.evidence.sent import evidence_refused
from interlock.service.run.proofs import proof_lines
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import chain_head, node_position
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
    return render_step_at(run_context, node, pending.step_id, run_context.frames(node), asking)


def step_to_redo(run_context: RunContext, node: Node) -> Node | None:
    """Return the step to do again because the question of the pending step of a node has expired, if there is one.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    awaits = pending_task(run_context, node).awaits
    if awaits is None or awaits.approval is None:
        return None
    is_over = expiry_of_question(run_context, node, awaits).is_over(run_context.now_ms)
    return way_out(run_context, node).redone if is_over else None


def with_kept_evidence(
    reader: SessionReader, run_context: RunContext, node: Node, view: PendingStepView, refused: BlockerReport | None
) -> PendingStepView:
    """Return the pending step of an attempt that blockers refused, which asks only for what has to change (EVID-13).

    A claim of a confirmation is asked for again only with context or an artifact, which may change what it is about.
    Context that a later decision lacks changes it if its key has a value already.

    Raises:
        ContentDamagedError: What was sent is missing or damaged.
    """
    step = run_context.workflow.steps[view.step_id]
    if step.evidence_schema_ref == NOTES_CONTRACT and view.claim is None:
        return view
    refused_evidence = evidence_refused(reader, node, run_context.session.session)
    if refused_evidence is None:
        return view
    sent = refused_evidence.artifacts
    blockers = refused.blockers if refused is not None else ()
    if step.evidence_schema_ref != NOTES_CONTRACT:
        view = replace(view, artifacts=amended_outlines(run_context.workflow, step, sent, blockers))
    context = run_context.session.context(node.node)
    lacking = (one.pointer.key for one in blockers if isinstance(one.pointer, ContextKeyPointer))
    is_about_other = view.context or view.artifacts or any(key.partition(".")[0] in context for key in lacking)
    return view if is_about_other or claim_in(sent) is None else replace(view, claim=None)


def render_step_at(
    run_context: RunContext,
    node: Node,
    step_id: str,
    frames: tuple[LoopFrame, ...],
    asking: ApprovalContext = NO_APPROVAL,
) -> PendingStepView:
    """Render a step of the plan with a node's context, as if it were pending there in these passes.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    step = run_context.workflow.steps[step_id]
    assert step.task is not None, "a step is a task"
    graphs, never_stops = run_context.workflow.graphs, node.preferences.never_stops
    pending = run_context.pending(node)
    is_pending = pending is not None and pending.step_id == step_id
    seen = with_loop_variables(graphs, run_context.session.context(node.node), frames)
    marks = ExecutionState(graphs, run_context.snapshot(node).state)
    marks.stack = list(frames)
    # Only the first step beside another carries its prompt: the later ones come when that work may be done already.
    # A step of another loop or pass has other variables, so its prompt comes with it.
    scope = graphs.scope_of[step.node_id]
    parallel = {
        one: graphs.scope_of[one] == scope and marks.is_first_beside(step.node_id, one)
        for one in marks.ready_beside(step.node_id)
    }
    return PendingStepView(
        number=run_context.workflow.numbers[step.node_id],
        total=len(run_context.workflow.numbers),
        step_id=step.node_id,
        title=rendered_line(step.title, seen),
        prompt="\n\n".join(
            [
                prompt_of(run_context.workflow, step, seen, never_stops=never_stops, parallel_with=parallel),
                *_proofs(run_context, step.task),
            ]
        ),
        needs_notes=step.task.evidence.notes == "required",
        needs_confirmation=not never_stops and needs_confirmation(step, seen),
        agent_role=step.task.agent_role,
        loop=run_context.passing(frames),
        artifacts=artifact_outlines(run_context.workflow, step),
        context=_key_blanks(run_context.workflow, step.task.produces),
        parallel_with=tuple(parallel),
        waiting=_waiting(run_context, node, step.task, seen, is_pending=is_pending),
        claim=CLAIM if _takes_claim(step, seen, asking) and not never_stops else None,
    )


def _proofs(run_context: RunContext, task: Task) -> Iterator[str]:
    """Yield the commands whose receipts the report of a step needs, as a part of its prompt (PROOF-2)."""
    lines: list[str] = []
    for line, proof in proof_lines(run_context, task):
        when = f"Before a report with the verdict `{proof.verdict}`" if proof.verdict else "Before the report"
        how = "run" if proof.assurance == "claimed" else "ask the user to run, in a terminal of their own,"
        lines.append(f"{when}, {how} `{line}`.")
    if lines:
        yield "\n".join(["**Proof of this step**", *(f"- {line}" for line in lines)])


def _takes_claim(step: PlanNode, seen: Context, asking: ApprovalContext) -> bool:
    """Say whether the call of a step can have an agent's claim that a person approved."""
    assert step.task is not None, "a step is a task"
    awaits = step.task.awaits
    if awaits is not None and awaits.approval is not None:
        return awaits.assurance == "claimed"
    return asking.needs_claim and bool(asks_of(step, seen))


def _waiting(run_context: RunContext, node: Node, task: Task, seen: Context, *, is_pending: bool) -> WaitingOut | None:
    """Return what a step waits for: always the same words, so that repeated answers are equal.

    An answer that is repeated after the step was done says nothing of what came in between (ADV-5), and neither does
    that of a step which is not pending at the node.
    """
    awaits = task.awaits
    if awaits is None:
        return None
    since = chain_head(run_context.session, node).at
    is_done = not is_pending or node_position(run_context.session, node.node).passed_to is not None
    unknown = None if is_done else unknown_signer(run_context, node)
    signer = f" {unknown_key_words(unknown)}" if unknown is not None else ""
    if awaits.check is not None:
        how = _check_words(run_context, node, awaits.check, is_done=is_done)
        return WaitingOut(for_="check", event=awaits.check, since=since, how=how)
    if awaits.approval is not None:
        question = rendered_line(awaits.approval.question, seen, ValueRoom())
        said = "" if is_done else _last_answer(run_context, node)
        is_over = expiry_of_question(run_context, node, awaits).is_over(run_context.now_ms)
        if is_over and not is_done:
            over = f"The question has expired: no answer counts any more. {way_out(run_context, node).words}"
            how = f"A person was asked: {question} {said}{over}"
        else:
            how = _approval_words(awaits, question, said, run_context.session.label(node.run))
        return WaitingOut(for_="approval", event=question, since=since, how=f"{how}{signer}")
    if is_pending and came_before(run_context, node):
        how = f"The event `{awaits.event}` is recorded already. The call takes it; the step asks for no work."
        return WaitingOut(for_="event", event=awaits.event, since=since, how=how)
    fields = {name: f"<{kind}>" for name, kind in sorted(awaits.fields.items())}
    sent = {"kind": EVENT_KIND, "event": awaits.event, "id": "<unique id>", "fields": fields}
    by = how_to_send(awaits, run_context.session.label(node.run), node.run)
    how = f"The run waits for the event `{awaits.event}`: {by}. Until it arrives, the step asks for no work."
    weaker = None if is_done else weaker_level(run_context, node)
    if weaker is not None:
        how += f" It was sent as `{weaker}`, and the step takes it only as `{awaits.assurance}` or better."
    if awaits.assurance == "claimed":
        how += f" If you know that it happened, add the artifact {json.dumps(sent)} to the call."
    if awaits.timeout_s is not None:
        how += f" It waits at most {duration_words(awaits.timeout_s * 1000)}."
    return WaitingOut(for_="event", event=awaits.event, since=since, how=f"{how}{signer}")


def _last_answer(run_context: RunContext, node: Node) -> str:
    """Say what was answered so far to the question of a step; nothing if nobody has answered."""
    session = run_context.session
    last = session.outside.last_about(node.run, APPROVAL, chain_head(session, node).node)
    if last is None:
        return ""
    fields, level = last.data.fields, session.describe_level(last.index, last.data, run_context.signing_keys)
    note = f" The note:\n\n{quoted(str(fields['note']))}\n\n" if fields["note"] else " "
    return f"So far the answer is {fields['choice']!r} ({level}).{note}"


def _approval_words(awaits: AwaitEvent, question: str, said: str, label: str) -> str:
    """Say who decides, how, and what was `said` so far."""
    assert awaits.approval is not None, "the step has a question"
    choices = ", ".join(f"`{one}`" for one in awaits.approval.choices)
    more = " --choice NAME" if awaits.approval.has_several else ""
    more += " --sign KEYFILE" if awaits.assurance == "signed" else ""
    note = " --note TEXT" if awaits.approval.needs_note else ""
    how = (
        f"A person decides ({choices}): {question} {said}Stop here. Tell the user to run"
        f" `interlock approve {label}{more}` or `interlock reject {label}{more}{note}` in a terminal of their own."
    )
    if awaits.assurance == "claimed":
        how += " If they approve in the chat, write into the artifact who approved what: it is kept as your claim."
    return how


def _check_words(run_context: RunContext, node: Node, name: str, *, is_done: bool) -> str:
    """Say what became of a check that did not pass, and that it runs."""
    head = chain_head(run_context.session, node).node
    results = results_at(run_context.session, node.run, head)
    unmet = unmet_words(run_context.session, results[-1]) if results and not is_done else None
    if unmet is None:
        return f"Interlock runs the check `{name}`. The step asks for no work; the call returns the result."
    last = results[-1].data.fields
    output = f" Its output ends with:\n\n{quoted(str(last['output']))}\n\n" if last["output"] else " "
    correct = "" if last["passed"] else "Correct the cause. "
    if last["ended"] == LOST:
        label = run_context.session.label(node.run)
        correct = (
            "The command may have ended it, or the system, for example because no memory was left. In a terminal,"
            f" `interlock checks run {label}` runs it and prints errors. {correct}"
        )
    found = f"Run {last['run']} of the check `{name}` {unmet}.{output}{correct}"
    return f"{found}The call runs the check again and returns the result."


def _key_blanks(workflow: CompiledWorkflow, keys: Iterable[str]) -> dict[str, Blank]:
    """Return the blanks of the context keys that a step sets, as they are declared."""
    known = workflow.declared
    return {key: declared_blank(known[key]) if key in known else Blank(what=f"the value of {key}") for key in keys}
