"""`checkpoint_workflow`: keep notes and a bookmark without advancing; a replay answers from the record (CHK-2)."""

from dataclasses import field

from interlock.engine.answer.checkpoint import CheckpointModel, render_checkpoint
from interlock.engine.answer.model import Answer
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.answer.structure import Warned
from interlock.engine.checkpoint import Checkpoint, plan_checkpoint
from interlock.engine.ends import work_in
from interlock.engine.request import Request
from interlock.kernel.budgets import CHECKPOINTS_PER_NODE_MAX
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import AttemptId, ack_attempt, checkpoint_attempt, derived_id, node_of_attempt
from interlock.record.append_plan import AppendPlan
from interlock.record.events import Actor
from interlock.record.payloads import NotesPayload
from interlock.service.ports import Ports, ReadPorts
from interlock.service.run.evidence.sent import whole_notes
from interlock.service.tokens.mint import Argument, minting
from interlock.service.tokens.resolve import SentTokens, lost_history, resolve_token
from interlock.service.tools import warnings
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.tools.target import Target, load_target
from interlock.service.unanswered import after_append
from interlock.store.ports.keys import KeyRing
from interlock.views.node_position import node_position
from interlock.views.recap import current_output
from interlock.views.session import Node, Session


@frozen
class CheckpointCommand:
    """A parsed call; `request` holds only notes and artifacts."""

    tokens: SentTokens
    request: Request = field(default_factory=Request)
    actor: Actor | None = None


@frozen
class _Call:
    """A requested checkpoint, its target, and the keys that sign the answer.

    The keys are read before the append: after it, nothing may prevent the answer.
    """

    target: Target
    request: Request
    ring: KeyRing
    argument: Argument

    def attempt(self, session: Session) -> AttemptId:
        """Return the checkpoint that the call makes or has made.

        A `checkpointToken` names it. An `ackToken` names only the step: then it is the checkpoint with the same
        content or, if there is none, the next one (CHK-5).
        """
        sent, node = self.target.attempt, session.nodes[self.target.node.node]
        assert sent is not None, "a checkpoint is an attempt"
        if self.argument == "checkpointToken":
            return sent
        digest, following = self.request.digest(), checkpoint_attempt(node.node, node.checkpoints)
        made = (checkpoint_attempt(node.node, number) for number in range(node.checkpoints))
        return next((one for one in made if session.nodes[node_of_attempt(one)].request_digest == digest), following)


def checkpoint_workflow(ports: Ports, command: CheckpointCommand) -> Answer | Refusal:
    """Make a checkpoint, or return the recorded one.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded, unless a `StoreFailureError` says that it may be.
    """
    argument = command.tokens.argument
    if argument == "stateToken":
        return _refuse_state(ports.read, command.tokens)
    target = load_target(ports.read, command.tokens)
    if isinstance(target, Refusal):
        return target
    call = _Call(target=target, request=command.request, ring=ports.key_ring.ensure_keys(), argument=argument)
    session = target.run_context.session
    attempt = call.attempt(session)
    if node_of_attempt(attempt) in session.nodes:
        return _render_recorded(ports, call, session, attempt)
    refusal = _refusal(call, session, attempt)
    if refusal is not None:
        return refusal
    with ports.hold(session.session, label=target.run_context.view().label) as lock:
        now = lock.session
        if now is None or target.node.node not in now.nodes:
            return lost_history(argument, run=target.run_context.view())
        session, attempt = now, call.attempt(now)
        if node_of_attempt(attempt) not in session.nodes:
            refusal = _refusal(call, session, attempt)
            if refusal is not None:
                return refusal
            session = ports.append(lock, _plan(call, session, attempt), command.actor)
    return _render_recorded(ports, call, session, attempt)


def _refuse_state(ports: ReadPorts, sent: SentTokens) -> Refusal:
    """Refuse a `stateToken` alone; the corrected call is that of the same text as `ackToken`."""
    found = resolve_token(ports, replace(sent, argument="ackToken"))
    correction = Correction(instead={"ackToken": sent.token.text})
    if isinstance(found, Refusal):
        correction = found.correction or Correction()
    if correction.tool is None:
        correction = replace(correction, instead={**correction.instead, "stateToken": None})
    return Refusal(
        code=ErrorCode.TOKEN_SCOPE_MISMATCH,
        message="Only a `stateToken` was sent, and it only shows the step: a checkpoint needs the step's `ackToken`.",
        suggestion="Send the `ackToken` of the last answer of the run.",
        details=found.details if isinstance(found, Refusal) else {},
        correction=correction,
    )


def _refusal(call: _Call, session: Session, attempt: AttemptId) -> Refusal | None:
    """Refuse a token ahead of the history, an ended run, work of a done step, a checkpoint too many (TOK-5, CHK-4)."""
    run_context = call.target.run_context.at(session)
    node = session.nodes[call.target.node.node]
    ended = refuse_ended(run_context)
    if ended is not None:
        return ended
    if work_in(call.request)[0] is not None and node_position(session, node.node).passed_to is not None:
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message="The step is done, so its work cannot be left. Nothing was recorded.",
            suggestion="Send the checkpoint without `wr.work_record`, or name the step that is pending now.",
            details={"path": "output.artifacts", "run": run_context.view(node).to_json()},
        )
    is_next = attempt == checkpoint_attempt(node.node, node.checkpoints)
    if not is_next or run_context.pending(node) is None:
        return lost_history(call.argument, run=run_context.view(node))
    if node.checkpoints < CHECKPOINTS_PER_NODE_MAX:
        return None
    run_view = run_context.view(node)
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The step of run `{run_view.label}` has {node.checkpoints} checkpoints, which is the limit.",
        suggestion="Finish the step, or report what is done with `continue_workflow`.",
        details={"path": call.argument, "maxCheckpoints": CHECKPOINTS_PER_NODE_MAX, "run": run_view.to_json()},
    )


def _plan(call: _Call, session: Session, attempt: AttemptId) -> AppendPlan:
    node = session.nodes[call.target.node.node]
    # A checkpoint replaces the notes of an earlier checkpoint only, not those of the attempt that made the node.
    current = current_output(node, "recap")
    return plan_checkpoint(
        Checkpoint(
            session=session.session,
            run=node.run,
            node=node.node,
            attempt=attempt,
            workflow_hash=call.target.run_context.run.workflow_hash,
            snapshot=node.snapshot,
            request=call.request,
            supersedes=current.output_id if current is not None and current.is_of_checkpoint else None,
        )
    )


@after_append()
def _render_recorded(ports: Ports, call: _Call, session: Session, attempt: AttemptId) -> Answer:
    """Render a recorded checkpoint, always the same: later events do not change it."""
    target = call.target
    run_context = target.run_context.at(session)
    node, made = session.nodes[target.node.node], session.nodes[node_of_attempt(attempt)]
    step = render_pending_step(run_context, node, call.request.asking)
    assert step is not None, "a checkpoint is of a step"
    mint = minting(ports.read, call.ring, session, run_context.run)
    following = _number(node, attempt) + 1
    return render_checkpoint(
        CheckpointModel(
            run=run_context.view(node),
            node=made.node,
            step=step,
            state_token=mint.state(made.node),
            checkpoint_token=mint.checkpoint(node.node, following) if following < CHECKPOINTS_PER_NODE_MAX else None,
            is_empty=made.request_digest == Request().digest(),
            ack_token=None if _was_done(session, node, made) else mint.ack(node.node),
            warnings=(
                *warnings.notes_cut(_notes(node, attempt)),
                *_warn_of_ignored(made, call.request),
                *secret_warnings(
                    None,
                    whole_notes(ports.read.reader, node, attempt),
                    next((work.note for work in made.left), None),
                ),
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
