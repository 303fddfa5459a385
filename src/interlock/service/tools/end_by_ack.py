"""An agent's ack that asks for the end of its run: the person is asked, and the answer is rendered (END-4, END-5)."""

from interlock.engine.answer.model import Answer, AnswerModel, EndedOut, HumanInputRequired, render_answer
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.ends import EndNotAgreed, is_same_end
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import AttemptId, ack_attempt
from interlock.record.outcome import Blocker, WorkflowStepPointer, build_report
from interlock.record.payloads import WorkRecorded
from interlock.service.ports import Ports
from interlock.service.run.context import RunContext
from interlock.service.tokens.mint import Mint, minting
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.unanswered import after_append
from interlock.store.ports.keys import KeyRing
from interlock.views.session import Node, RunEnd


def ended_out(ended: RunEnd) -> EndedOut:
    """Return how a run ended, as answers carry it."""
    return EndedOut(status=ended.kind, reason=ended.work.reason, at=ended.at, note=ended.work.note)


def answer_after_end(
    ports: Ports, ring: KeyRing, run_context: RunContext, work: WorkRecorded | None
) -> Answer | Refusal | None:
    """Answer an ack of an ended run: how it ended if the ack asked for that end, else a refusal; None if it is open."""
    ended = run_context.run.ended
    if ended is not None and work is not None and is_same_end(ended.work, work):
        return render_end(ports, ring, run_context)
    return refuse_ended(run_context)


@after_append()
def render_end(ports: Ports, ring: KeyRing, run_context: RunContext) -> Answer:
    """Render how a run ended, always the same: nothing of a run follows its end."""
    run = run_context.run
    assert run.ended is not None, "the run ended"
    assert run.tip is not None, "a run has a root"
    return render_answer(
        AnswerModel(
            occasion="advance",
            run=run_context.view(),
            state_token=minting(ports.read, ring, run_context.session, run).state(run.tip),
            step=None,
            ended=ended_out(run.ended),
            warnings=tuple(secret_warnings(None, None, run.ended.work.note)),
        )
    )


def ask_to_end(
    mint: Mint, run_context: RunContext, attempt: tuple[Node, AttemptId], work: WorkRecorded, found: EndNotAgreed
) -> HumanInputRequired:
    """Return the question whether to end a run, and the answer if no person agrees: the run goes on."""
    node, attempt_id = attempt
    step, view = render_pending_step(run_context, node), run_context.view(node)
    assert step is not None, "an ack is of a pending step"
    is_ordinary = attempt_id == ack_attempt(node.node)
    command = (
        f"interlock session {'cancel' if work.work == 'cancelled' else 'fail'} {view.label} --reason {work.reason}"
    )
    blocker = Blocker(
        code="USER_ONLY_DEPENDENCY",
        pointer=WorkflowStepPointer(kind="workflow_step", step_id=step.step_id),
        message=f"The run has not ended. {found.why}",
        suggested_fix=f"Continue with the step. The user can end the run with `{command}`.",
    )
    return HumanInputRequired(
        question=found.question,
        subject=attempt_id,
        answer=render_answer(
            AnswerModel(
                occasion="advance",
                run=view,
                state_token=mint.state(node.node),
                ack_token=mint.ack(node.node) if is_ordinary else mint.fork(node.node, node.forks),
                step=step,
                blockers=build_report([blocker]),
            )
        ),
    )
