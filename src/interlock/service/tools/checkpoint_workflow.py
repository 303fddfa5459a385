"""`checkpoint_workflow`: keep notes and a bookmark without advancing; a replay answers from the record (CHK-2)."""

from dataclasses import dataclass, field, replace

from interlock.engine.answer.checkpoint import CheckpointModel, render_checkpoint
from interlock.engine.answer.model import Answer
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.answer.structure import Warned
from interlock.engine.checkpoint import Checkpoint, plan_checkpoint
from interlock.engine.request import Request
from interlock.kernel.budgets import CHECKPOINTS_PER_NODE_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import AttemptId, ack_attempt, checkpoint_attempt, derived_id, node_of_attempt
from interlock.record.append_plan import AppendPlan
from interlock.record.events import Actor
from interlock.record.payloads import NotesPayload
from interlock.record.snapshot import Running
from interlock.service.ports import Ports
from interlock.service.run.attempts import whole_notes
from interlock.service.tokens.mint import minting
from interlock.service.tokens.resolve import SentTokens, lost_history
from interlock.service.tools import warnings
from interlock.service.tools.append import append_plan
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.tools.target import Target, load_target
from interlock.service.unanswered import after_append
from interlock.store.ports.keys import KeyRing
from interlock.views.recap import current_output
from interlock.views.session import Node, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCommand:
    """A parsed call; `request` holds only notes and artifacts."""

    tokens: SentTokens
    request: Request = field(default_factory=Request)
    actor: Actor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A requested checkpoint, its target, and the keys that sign the answer.

    The keys are read before the append: after it, nothing may prevent the answer.
    """

    target: Target
    request: Request
    ring: KeyRing


def checkpoint_workflow(ports: Ports, command: CheckpointCommand) -> Answer | Refusal:
    """Make a checkpoint, or return the recorded one.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded, unless a `StoreFailureError` says that it may be.
    """
    target = load_target(ports.read, command.tokens)
    if isinstance(target, Refusal):
        return target
    assert target.attempt is not None, "a checkpoint is an attempt"
    call = _Call(target=target, request=command.request, ring=ports.key_ring.ensure_keys())
    session, made = target.run_context.session, node_of_attempt(target.attempt)
    if made in session.nodes:
        return _render_recorded(ports, call, session)
    refusal = _refusal(target, session)
    if refusal is not None:
        return refusal
    with ports.hold(session.session, label=target.run_context.view().label) as lock:
        now = lock.session
        if now is None or target.node.node not in now.nodes:
            return lost_history("checkpointToken", run=target.run_context.view())
        session = now
        if made not in session.nodes:
            refusal = _refusal(target, session)
            if refusal is not None:
                return refusal
            session = append_plan(ports, lock, _plan(target, session, command.request), command.actor)
    return _render_recorded(ports, call, session)


def _refusal(target: Target, session: Session) -> Refusal | None:
    """Refuse a token ahead of the recorded history, a complete run, and a checkpoint over the limit (TOK-5, CHK-4)."""
    node, run_context = session.nodes[target.node.node], target.run_context
    is_next = target.attempt == checkpoint_attempt(node.node, node.checkpoints)
    if not is_next or not isinstance(run_context.snapshot(node).state, Running):
        return lost_history("checkpointToken", run=run_context.view(node))
    if node.checkpoints < CHECKPOINTS_PER_NODE_MAX:
        return None
    run_view = run_context.view(node)
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The step of run `{run_view.label}` has {node.checkpoints} checkpoints, which is the limit.",
        suggestion="Finish the step, or report what is done with `continue_workflow`.",
        details={"path": "checkpointToken", "maxCheckpoints": CHECKPOINTS_PER_NODE_MAX, "run": run_view.to_json()},
    )


def _plan(target: Target, session: Session, request: Request) -> AppendPlan:
    node, attempt = session.nodes[target.node.node], target.attempt
    assert attempt is not None, "a checkpoint is an attempt"
    # A checkpoint replaces the notes of an earlier checkpoint only, not those of the attempt that made the node.
    current = current_output(node, "recap")
    return plan_checkpoint(
        Checkpoint(
            session=session.session,
            run=node.run,
            node=node.node,
            attempt=attempt,
            workflow_hash=target.run_context.run.workflow_hash,
            snapshot=node.snapshot,
            request=request,
            supersedes=current.output_id if current is not None and current.is_of_checkpoint else None,
        )
    )


@after_append()
def _render_recorded(ports: Ports, call: _Call, session: Session) -> Answer:
    """Render a recorded checkpoint, always the same: later events do not change it."""
    target = call.target
    assert target.attempt is not None, "a checkpoint is an attempt"
    run_context = replace(target.run_context, session=session, run=session.runs[target.run_context.run.run])
    node, made = session.nodes[target.node.node], session.nodes[node_of_attempt(target.attempt)]
    step = render_pending_step(run_context, node)
    assert step is not None, "a checkpoint is of a step"
    mint = minting(ports.read, call.ring, session, run_context.run)
    following = _number(node, target.attempt) + 1
    return render_checkpoint(
        CheckpointModel(
            run=run_context.view(node),
            node=made.node,
            step=step,
            state_token=mint.state(made.node),
            checkpoint_token=mint.checkpoint(node.node, following) if following < CHECKPOINTS_PER_NODE_MAX else None,
            ack_token=None if _was_done(session, node, made) else mint.ack(node.node),
            warnings=(
                *warnings.notes_cut(_notes(node, target.attempt)),
                *_warn_of_ignored(made, call.request),
                *secret_warnings(None, whole_notes(ports.read.reader, node, target.attempt)),
            ),
        )
    )


def _number(node: Node, attempt: AttemptId) -> int:
    """Return the number, from 0, of the checkpoint that an attempt made on its node."""
    return next(number for number in range(node.checkpoints) if checkpoint_attempt(node.node, number) == attempt)


def _notes(node: Node, attempt: AttemptId) -> str | None:
    """Return the notes of a checkpoint, as they are stored."""
    notes_id = derived_id("out", attempt, "notes")
    payloads = [output.payload for output in node.outputs if output.output_id == notes_id]
    return next((payload.notes_markdown for payload in payloads if isinstance(payload, NotesPayload)), None)


def _was_done(session: Session, node: Node, made: Node) -> bool:
    """Say whether the step was already reported when the checkpoint was made."""
    advance = session.advance(node.node, ack_attempt(node.node))
    return advance is not None and advance.index < made.index


def _warn_of_ignored(made: Node, request: Request) -> tuple[Warned, ...]:
    if made.request_digest in (None, request.digest()):
        return ()
    message = (
        "This checkpoint is already recorded with other content. That record is unchanged; the new content was ignored."
        " To save it, send it with the `checkpointToken` of this answer."
    )
    return (Warned(code="REPLAY_PAYLOAD_IGNORED", message=message),)
