"""The end of a run otherwise than by its last step: ending it, asking for it, refusing later calls (END-4, END-5)."""

import shlex
from typing import assert_never

from interlock.engine.answer.model import Answer, AnswerModel, EndedOut, HumanInputRequired, render_answer
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.ends import Ended, EndNotAgreed, RunComplete, decide_end, is_same_end
from interlock.kernel.budgets import AUTHORED_SHARE_BYTES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import AttemptId, RunId, SessionId
from interlock.kernel.text import code_span, flat, utf8_bytes
from interlock.record.events import Actor
from interlock.record.outcome import Blocker, WorkflowStepPointer, build_report
from interlock.record.payloads import WorkRecorded
from interlock.service.ports import AppendPorts, Ports
from interlock.service.run.attempts import ending_of
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tokens.mint import Mint, minting
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.unanswered import after_append
from interlock.store.ports.keys import KeyRing
from interlock.views.session import Node, RunEnd, Session


@frozen
class EndedRun:
    """A run that ended, and how. `is_new` says whether this call ended it."""

    label: str
    workflow_id: str
    ended: RunEnd
    is_new: bool


def ended_out(ended: RunEnd) -> EndedOut:
    """Return how a run ended, as answers and refusals say it."""
    return EndedOut(status=ended.kind, reason=ended.work.reason, at=ended.at, note=ended.work.note)


def refuse_ended(run_context: RunContext) -> Refusal | None:
    """Refuse a call that would record something of an ended run; None if the run has not ended (END-4)."""
    ended, view = run_context.run.ended, run_context.view()
    if ended is None:
        return None
    return Refusal(
        code=ErrorCode.RUN_ENDED,
        message=f"Run `{view.label}` ({view.workflow_id}) has ended: {ended.kind}, reason `{ended.work.reason}`."
        " Nothing more of it is recorded.",
        suggestion="Stop working on this run and tell the user how it ended. To do the work after all, begin a new run"
        " with `start_workflow`, if the user wants it. A `stateToken` alone still shows what was done.",
        details={"run": view.to_json(), "ended": ended_out(ended).to_json()},
    )


def refuse_complete(run_context: RunContext) -> Refusal:
    """Refuse to end a run whose last step is done (END-6)."""
    view = run_context.view()
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}) is complete, so it cannot be ended.",
        suggestion="Nothing needs to be done: a complete run is not offered as unfinished work.",
        details={"run": view.to_json()},
    )


def end_run(
    ports: AppendPorts, where: tuple[SessionId, RunId], work: WorkRecorded, actor: Actor
) -> EndedRun | Refusal | None:
    """End a run for a person; None if there is no such run.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError: See `service.failures`; nothing
            was recorded, unless a `StoreFailureError` says that it may be.
    """
    session_id, run_id = where
    with ports.hold(session_id) as lock:
        session = lock.session
        if session is None or run_id not in session.runs:
            return None
        run_context = load_run_context(session, session.runs[run_id], ports.read.plans)
        ended = run_context.run.ended
        if ended is not None:
            return _ended_run(session, run_id) if is_same_end(ended.work, work) else refuse_ended(run_context)
        decision = decide_end(ending_of(run_context, work, actor, None))
        match decision:
            case Ended():
                after = ports.append(lock, decision.plan, actor)
                return replace(_ended_run(after, run_id), is_new=True)
            case RunComplete():
                return refuse_complete(run_context)
            case EndNotAgreed():
                raise AssertionError("a person's own call needs no question")
            case _:
                assert_never(decision)


def _ended_run(session: Session, run_id: RunId) -> EndedRun:
    run = session.runs[run_id]
    assert run.ended is not None, "the run ended"
    return EndedRun(label=session.label(run_id), workflow_id=run.workflow_id, ended=run.ended, is_new=False)


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
    command = (
        f"interlock session {'cancel' if work.work == 'cancelled' else 'fail'} {view.label} --reason {work.reason}"
    )
    note = flat(work.note or "")
    if note and utf8_bytes(note) <= AUTHORED_SHARE_BYTES_MAX:
        command += f" --note {shlex.quote(note)}"
    blocker = Blocker(
        code="USER_ONLY_DEPENDENCY",
        pointer=WorkflowStepPointer(step_id=step.step_id),
        message=f"The run has not ended. {found.why}",
        suggested_fix=f"Continue with the step. The user can end the run with {code_span(command)}.",
    )
    return HumanInputRequired(
        question=found.question,
        subject=attempt_id,
        answer=render_answer(
            AnswerModel(
                occasion="advance",
                run=view,
                state_token=mint.state(node.node),
                ack_token=mint.retry(node.node, attempt_id),
                step=step,
                blockers=build_report([blocker]),
            )
        ),
    )
