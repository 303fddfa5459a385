"""The end of a run that is not its last step: refusing calls after it, and ending a run for a person (END-4, END-6)."""

from dataclasses import dataclass, replace
from typing import assert_never

from interlock.engine.ends import Ended, EndNotAgreed, RunComplete, decide_end, is_same_end
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import RunId, SessionId
from interlock.record.events import Actor
from interlock.record.payloads import WorkRecorded
from interlock.service.ports import AppendPorts
from interlock.service.run.attempts import ending_of
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tools.append import append_plan
from interlock.views.session import RunEnd, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """A run that ended, and how. `is_new` says whether this call ended it."""

    label: str
    workflow_id: str
    ended: RunEnd
    is_new: bool


def ended_json(ended: RunEnd) -> dict[str, Json]:
    """Return how a run ended, as answers and refusals say it."""
    fields: dict[str, Json] = {"status": ended.kind, "reason": ended.work.reason, "at": ended.at}
    return fields | ({"note": ended.work.note} if ended.work.note is not None else {})


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
        details={"run": view.to_json(), "ended": ended_json(ended)},
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
                after = append_plan(ports, lock, decision.plan, actor)
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
