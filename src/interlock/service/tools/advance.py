"""Advance: look for the recorded outcome; if there is none, lock, look again, decide and append (ADV-5, ADV-6).

One function renders the answer of a first call and of its replay, from the same recorded facts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from interlock.engine.advance import decide_advance
from interlock.engine.answer.model import (
    CONTINUE_TOOL,
    Answer,
    AnswerModel,
    HumanInputRequired,
    PendingApproval,
    render_answer,
)
from interlock.engine.answer.parts import PendingStepView
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.answer.structure import Fork, Warned
from interlock.engine.ends import Ended, EndNotAgreed, RunComplete, decide_end, work_in
from interlock.engine.judge.attempt import Advanced, ApprovalMissing, AttemptLimitReached, Refused, Waiting
from interlock.engine.judge.confirmation import CLAIM
from interlock.engine.outside import SentEvent, events_in
from interlock.engine.request import Request
from interlock.engine.template import title_in_code
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, FORKS_PER_NODE_MAX, PROMPT_REPEATED_BYTES_MAX
from interlock.kernel.canonical import NotCanonicalError
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import AttemptId, NodeId, ack_attempt, fork_attempt, node_of_attempt
from interlock.kernel.text import utf8_bytes
from interlock.record.events import Actor
from interlock.record.outcome import Blocked, Blocker, BlockerReport
from interlock.record.payloads import ObservationRecorded, WorkRecorded
from interlock.record.world import EventReceived
from interlock.service.outside.approvals import answer_in, missing_note, question_of
from interlock.service.outside.demand import is_too_late
from interlock.service.outside.receive import (
    BY_CLAIM,
    Intake,
    append_decision,
    append_intake,
    checked_event,
    content_warnings,
    find_event,
    find_sent,
    limit_refusal,
    take_in,
    take_in_expiry,
)
from interlock.service.ports import Ports
from interlock.service.run.attempts import attempt_on, deciding_event, ending_of, retry_node
from interlock.service.run.context import RunContext
from interlock.service.run.context_limits import context_refusal, fixed_keys, set_key_refusal
from interlock.service.run.evidence.approval import open_approval
from interlock.service.run.evidence.sent import answered_at, whole_notes
from interlock.service.run.observations import new_observations, observed_of
from interlock.service.run.proofs import tree_now, tree_record
from interlock.service.run.rests_on import rests_on
from interlock.service.tokens.mint import Mint, minting
from interlock.service.tokens.resolve import lost_history
from interlock.service.tools import warnings
from interlock.service.tools.end_run import answer_after_end, ask_to_end, refuse_complete, render_end
from interlock.service.tools.pending_step import render_pending_step, step_to_redo, with_kept_evidence
from interlock.service.tools.target import Target
from interlock.service.unanswered import after_append
from interlock.store.ports.keys import KeyRing
from interlock.store.ports.workspace import WorkTree
from interlock.store.ports.writer import SessionLock
from interlock.views import session as fold_types
from interlock.views.node_position import attempts_on, chain_head, node_position, refusal_of, tip_below
from interlock.views.recap import notes_of_attempt
from interlock.views.session import Node, Session


@frozen
class _Call:
    """An attempt on its target, the request, who makes it, and the keys that sign the answer.

    `sent` are the events that came with it, `seen` the git position of the workspace that it came from; `tree` is the
    working tree, if a proof of the step demands to know it. `is_recorded` says that this call recorded the outcome.
    """

    target: Target
    attempt: AttemptId
    request: Request
    actor: Actor | None
    ring: KeyRing
    sent: tuple[SentEvent, ...] = ()
    tree: WorkTree | None = None
    seen: tuple[ObservationRecorded, ...] = ()
    is_recorded: bool = False


def advance(
    ports: Ports, target: Target, request: Request, actor: Actor | None, workspace: Path | None = None
) -> Answer | Refusal | HumanInputRequired:
    """Attempt to advance the target, whose run knows the signing keys, or return the recorded outcome of that attempt.

    With the outcome, it records what changed in the git position of the workspace (OBS-6).

    If only a person's answer is missing, nothing is recorded and no lock is kept: the same call is made again with the
    person's reply (GATE-3).

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded, unless a `StoreFailureError` says that it may be.
    """
    attempt = target.attempt
    assert attempt is not None, "an advance has an attempt"
    sent, request = events_in(request)
    # The keys are read before the append: after it, nothing may prevent the answer.
    ring = ports.key_ring.ensure_keys()
    call = _Call(target=target, attempt=attempt, request=request, actor=actor, ring=ring, sent=sent)
    # Recorded outcomes never change, so a hit needs no lock; a miss is checked again under the lock (ADV-5, ADV-6).
    recorded = target.run_context.session.advance(target.node.node, attempt)
    if recorded is not None:
        return _render_outcome(ports, call, target.run_context.session, recorded)
    work, _ = work_in(request)
    closed = answer_after_end(ports, call.ring, target.run_context, work)
    closed = closed or _attempt_refusal(target, target.run_context.session) or _context_refusal(target, request)
    if closed is not None:
        return closed
    # Git is read before the lock: no other process may wait for it.
    seen = observed_of(ports.read.anchors_again(workspace), keeps_repo_root=ports.keeps_repo_root)
    call = replace(call, seen=seen, tree=tree_now(ports.read.tree, target.run_context, target.node))
    view = target.run_context.view()
    with ports.hold(target.run_context.session.session, label=view.label) as lock:
        session = lock.session
        if session is None or target.node.node not in session.nodes:
            return lost_history("ackToken", run=view)
        recorded = session.advance(target.node.node, attempt)
        is_ours = recorded is None
        if is_ours:
            outcome = _record(ports, lock, call, session)
            if not isinstance(outcome, Session):
                return outcome
            session = outcome
            recorded = session.advance(target.node.node, attempt)
    if recorded is None:
        return render_end(ports, call.ring, target.run_context.at(session))
    if is_ours:
        # Who recorded an intent sends it, and nobody else by itself (WORLD-6).
        ports.outbox.offer(session.session, session.outside.of_node(node_of_attempt(attempt)))
    return _render_outcome(ports, replace(call, is_recorded=is_ours), session, recorded)


def _record(
    ports: Ports, lock: SessionLock, call: _Call, session: Session
) -> Session | Answer | Refusal | HumanInputRequired:
    """Take in the events of the call, decide the attempt, and append both; or append the events, and return why."""
    work, _ = work_in(call.request)
    closed = answer_after_end(ports, call.ring, call.target.run_context.at(session), work)
    if closed is not None:
        return closed
    received = _receive(ports, call, session)
    if isinstance(received, Refusal):
        return received
    outcome = _decide(ports, call, received.session)
    if isinstance(outcome, Answer | Refusal | HumanInputRequired):
        append_intake(ports, lock, received, call.actor)
        return outcome
    if not isinstance(outcome, Ended):
        run, made = call.target.run_context.run.run, node_of_attempt(call.attempt)
        observed = new_observations(received.session, run, made, call.seen)
        outcome = replace(outcome, plan=replace(outcome.plan, drafts=(*outcome.plan.drafts, *observed)))
    return append_decision(ports, lock, received, outcome, call.actor)


def _receive(ports: Ports, call: _Call, session: Session) -> Intake | Refusal:
    """Take in the events that came with the call, and that the step waited too long if it did (WORLD-3, WORLD-4)."""
    run_context = call.target.run_context.at(session)
    node = session.nodes[call.target.node.node]
    checked = list[tuple[EventReceived, NodeId | None]]()
    for sent in call.sent:
        # All are checked before one is taken in: a refusal says that nothing was recorded.
        found = checked_event(run_context, sent, BY_CLAIM, ports.sources)
        if not isinstance(found, Refusal) and find_event(run_context, found, sent.node) is None:
            found = limit_refusal(run_context, found, len(checked)) or found
        if isinstance(found, Refusal):
            return found
        checked.append((found, sent.node))
    if call.tree is not None:
        read = tree_record(run_context, node, call.tree)
        checked += [read] if read is not None else []
    intake = take_in_expiry(ports, Intake(session=session), run_context, node, call.actor)
    for event in checked:
        if isinstance(intake, Refusal):
            return intake
        intake = take_in(ports, intake, run_context, event, call.actor)
    if isinstance(intake, Refusal):
        return intake
    return _receive_answer(ports, call, run_context.at(intake.session), intake)


def _receive_answer(ports: Ports, call: _Call, run_context: RunContext, intake: Intake) -> Intake | Refusal:
    """Take in a person's answer that came with the call, if the step waits for one (APPR-2)."""
    node = run_context.session.nodes[call.target.node.node]
    approval = open_approval(ports.read.reader, run_context, node)
    if approval is None or deciding_event(run_context, node) is not None:
        return intake
    if approval.expiry.is_over(ports.clock.unix_ms()):
        return intake
    answer = answer_in(run_context, approval, call.request)
    if answer is None:
        return intake
    return take_in(ports, intake, run_context, (answer, approval.node.node), call.actor)


def _context_refusal(target: Target, request: Request) -> Refusal | None:
    run_context, node = target.run_context, target.node
    context, workflow = run_context.session.context(node.node), run_context.workflow
    refusal = context_refusal(context, request.context)
    # Most reports send no such key: then the snapshot is read once, under the lock.
    if refusal is not None or fixed_keys(workflow, context).isdisjoint(request.context):
        return refusal
    state, blockers = run_context.snapshot(node).state, refusal_of(run_context.session, node)
    return set_key_refusal(workflow, state, context, request.context, blockers)


def _attempt_refusal(target: Target, session: Session) -> Refusal | None:
    """Refuse an attempt whose token is ahead of the recorded history, and forks beyond the limit (TOK-5, ADV-11)."""
    node = session.nodes[target.node.node]
    if target.attempt == ack_attempt(node.node):
        return None
    if target.attempt != fork_attempt(node.node, node.forks):
        return lost_history("ackToken", run=target.run_context.view(node))
    if node.forks >= FORKS_PER_NODE_MAX:
        run_view = target.run_context.view(node)
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"The step of run `{run_view.label}` was forked {node.forks} times, which is the limit.",
            suggestion="Fork a later step, or begin a new run with `start_workflow`.",
            details={"path": "ackToken", "maxForks": FORKS_PER_NODE_MAX, "run": run_view.to_json()},
        )
    return None


def _decide(
    ports: Ports, call: _Call, session: Session
) -> Advanced | Refused | Ended | Answer | Refusal | HumanInputRequired:
    """Decide the attempt from the session as loaded under the lock; an attempt may ask for the end of its run."""
    run_context, node = call.target.run_context, session.nodes[call.target.node.node]
    refusal = _attempt_refusal(call.target, session)
    if refusal is not None:
        return refusal
    with ports.read.trace.span("decide"):
        if run_context.pending(node) is None:
            return lost_history("ackToken", run=run_context.view(node))
        run_context = run_context.at(session)
        work, _ = work_in(call.request)
        if work is not None:
            return _decide_end(ports, call, run_context, work)
        attempt = attempt_on(ports.read.reader, run_context, (node, call.attempt), call.request, call.actor)
        decision = decide_advance(attempt)
    match decision:
        case Advanced() | Refused():
            return decision
        case AttemptLimitReached():
            return _refuse_further_attempts(
                minting(ports.read, call.ring, session, run_context.run), run_context, node, decision.blockers
            )
        case ApprovalMissing():
            return _require_person(ports, call, run_context, node, decision)
        case Waiting():
            return _wait(ports, call, run_context, node)
        case _:
            assert_never(decision)


def _decide_end(
    ports: Ports, call: _Call, run_context: RunContext, work: WorkRecorded
) -> Ended | Refusal | HumanInputRequired:
    node = run_context.session.nodes[call.target.node.node]
    decision = decide_end(ending_of(run_context, work, call.actor, call.request.asking.reply))
    match decision:
        case Ended():
            return decision
        case RunComplete():
            return refuse_complete(run_context)
        case EndNotAgreed():
            mint = minting(ports.read, call.ring, run_context.session, run_context.run)
            return ask_to_end(mint, run_context, (node, call.attempt), work, decision)
        case _:
            assert_never(decision)


def _require_person(
    ports: Ports, call: _Call, run_context: RunContext, node: Node, found: ApprovalMissing
) -> HumanInputRequired:
    """Return the question for a person, and the answer for a client that cannot ask. This records nothing."""
    mint = minting(ports.read, call.ring, run_context.session, run_context.run)
    facts = AnswerModel(
        occasion="advance",
        run=run_context.view(node),
        state_token=mint.state(node.node),
        ack_token=mint.retry(node.node, call.attempt),
        step=render_pending_step(run_context, node, call.request.asking),
        blockers=BlockerReport(blockers=found.blockers),
        awaited=PendingApproval(claim=CLAIM if found.takes_claims else None),
    )
    return HumanInputRequired(question=found.question, subject=call.attempt, answer=render_answer(facts))


def _wait(ports: Ports, call: _Call, run_context: RunContext, node: Node) -> Answer | HumanInputRequired:
    """Return what the step waits for; if it is a person's answer and the client can ask for it, the question."""
    now_ms = ports.clock.unix_ms()
    approval = open_approval(ports.read.reader, run_context, node)
    is_open = approval is not None and not approval.expiry.is_over(now_ms)
    missing = missing_note(approval, call.request.asking.reply) if approval is not None and is_open else None
    answer = _render_waiting(ports, call, replace(run_context, now_ms=now_ms), node, missing)
    question = question_of(approval, call.request.asking, now_ms) if approval is not None else None
    return answer if question is None else HumanInputRequired(question=question, subject=call.attempt, answer=answer)


def _render_waiting(ports: Ports, call: _Call, run_context: RunContext, node: Node, missing: str | None) -> Answer:
    """Render what the step waits for, with the tokens of the call: nothing was recorded (WORLD-3).

    `missing` says what a person's reply lacks.
    """
    mint = minting(ports.read, call.ring, run_context.session, run_context.run)
    is_ordinary = call.attempt == ack_attempt(node.node)
    redone = step_to_redo(run_context, node)
    step = render_pending_step(run_context, node, call.request.asking)
    if missing is not None and step is not None and step.waiting is not None:
        how = f"{missing} {step.waiting.how}"
        step = replace(step, waiting=step.waiting.changed(how=how))
    return render_answer(
        AnswerModel(
            occasion="advance",
            run=run_context.view(node),
            state_token=mint.state(node.node),
            ack_token=mint.ack(node.node) if is_ordinary else mint.fork(node.node, node.forks),
            step=step,
            redirect=mint.state(redone.node) if redone is not None else None,
        )
    )


def _refuse_further_attempts(mint: Mint, run_context: RunContext, node: Node, blockers: tuple[Blocker, ...]) -> Refusal:
    run_view, first = run_context.view(node), retry_node(run_context, node)
    is_own = first.node == chain_head(run_context.session, node).node
    what = "retry the step" if is_own else f"redo the step before it, {title_in_code(run_context.title(first))},"
    fork = Fork(
        ack_token=mint.fork(first.node, first.forks),
        note=f"To {what} on a new branch, call `{CONTINUE_TOOL}` with this `ackToken`.",
    )
    return Refusal(
        code=ErrorCode.ATTEMPT_LIMIT_REACHED,
        message=f"The step of run `{run_view.label}` ({run_view.workflow_id}) was refused {ATTEMPTS_PER_STEP_MAX} times"
        f" in a row; no further attempt is recorded. Last reason: {blockers[0].message}",
        suggestion=f"Stop and tell the user what is missing. To {what} on a new branch, call `{CONTINUE_TOOL}`"
        f' with the `ackToken` for the new branch (`details.fork`), `run: "{run_view.label}"` and the evidence.',
        details={
            "run": run_view.to_json(),
            "fork": fork.to_json(),
            "blockers": [blocker.to_json() for blocker in blockers],
        },
    )


@after_append()
def _render_outcome(ports: Ports, call: _Call, session: Session, recorded: fold_types.Advance) -> Answer:
    """Render a recorded outcome: the node that it made, with that node's own tokens."""
    target, request = call.target, call.request
    run_context = target.run_context.at(session)
    child = session.nodes[node_of_attempt(recorded.attempt)]
    mint = minting(ports.read, call.ring, session, run_context.run)
    blockers = recorded.outcome.blockers if isinstance(recorded.outcome, Blocked) else None
    step = render_pending_step(run_context, child, request.asking)
    if step is not None:
        step = with_kept_evidence(ports.read.reader, run_context, child, step, blockers)
        step = _without_repetition(run_context, session.nodes[recorded.node], step, is_refused=blockers is not None)
    was_changed = child.preferences != session.nodes[recorded.node].preferences
    is_same = call.is_recorded or _is_same_request(recorded, request)
    # A caller that repeats the same content gets the same answer as before.
    later_tip = None if is_same else _find_later_tip(run_context, child)
    if step is not None and later_tip is not None:
        step = replace(step, waiting=None)
    with ports.read.trace.span("render"):
        return render_answer(
            AnswerModel(
                occasion="advance",
                run=run_context.view(child),
                state_token=mint.state(child.node),
                ack_token=mint.ack(child.node) if step is not None else None,
                checkpoint_token=mint.checkpoint(child.node, 0) if step is not None else None,
                step=step,
                blockers=blockers,
                warnings=(
                    *_warnings(run_context, recorded, child, is_same=is_same),
                    *_event_warnings(run_context, child, call.sent),
                    *secret_warnings(
                        session.deltas.get(child.node), whole_notes(ports.read.reader, child, recorded.attempt)
                    ),
                ),
                redirect=mint.state(later_tip.node) if later_tip is not None else None,
                where=f"already done; the run is at {run_context.describe_position(later_tip)}"
                if later_tip is not None
                else None,
                preferences=child.preferences if was_changed else None,
                answered=answered_at(ports.read.reader, child),
                rests_on=rests_on(run_context, child) if step is None else None,
            )
        )


def _without_repetition(
    run_context: RunContext, before: Node, step: PendingStepView, *, is_refused: bool
) -> PendingStepView:
    """Leave out what the answer before has said: the same role, a long unchanged prompt (ANS-27)."""
    pending = run_context.pending(before)
    assert pending is not None, "an attempt is on a pending step"
    reported = run_context.workflow.steps[pending.step_id].task
    if reported is not None and reported.agent_role == step.agent_role:
        step = replace(step, agent_role=None)
    if is_refused and utf8_bytes(step.prompt) > PROMPT_REPEATED_BYTES_MAX:
        shown = render_pending_step(run_context, before)
        if shown is not None and shown.prompt == step.prompt:
            return replace(step, prompt=_UNCHANGED)
    return step


_UNCHANGED = (
    "The prompt of this step is the same as in the answer that you reported on. If you do not have that answer any"
    " more, find the run with `resume_session`: it shows the step again."
)


def _find_later_tip(run_context: RunContext, child: Node) -> Node | None:
    """Return the run's later tip, for a caller that repeats an old attempt; None if it is the latest."""
    is_passed = node_position(run_context.session, child.node).passed_to is not None
    return run_context.session.nodes[tip_below(run_context.session, child)] if is_passed else None


def _warnings(run_context: RunContext, recorded: fold_types.Advance, child: Node, *, is_same: bool) -> Iterator[Warned]:
    yield from warnings.notes_cut(notes_of_attempt(child))
    if child.kind == "step" and _is_branch(run_context.session, recorded):
        message = "This is a new branch. The earlier branch is unchanged."
        yield Warned(code="BRANCH_CREATED", message=message)
    if not is_same:
        message = (
            "This attempt is already recorded with other content. That record is unchanged; the new content was"
            " ignored."
        )
        if run_context.pending(child) is not None:
            message += " Continue with the next call."
        yield Warned(code="REPLAY_PAYLOAD_IGNORED", message=message)
    yield from warnings.decided_otherwise(run_context, child)
    yield from warnings.disclosed(child)
    yield from warnings.claimed(child)
    if child.preferences != run_context.session.nodes[recorded.node].preferences:
        yield from warnings.beyond_advice(run_context.workflow, child.preferences)
    if run_context.pending(child) is None:
        yield from warnings.open_at_the_end(run_context.session, child)


def _event_warnings(run_context: RunContext, child: Node, sent: tuple[SentEvent, ...]) -> Iterator[Warned]:
    """Yield what became of events that came with the call, unless they are recorded as they were sent."""
    for one in sent:
        recorded = find_sent(run_context, one)
        if recorded is None:
            message = (
                f"The attempt is already recorded, so the event `{one.event}` was not. Send it with the next call."
            )
            yield Warned(code="EVENT_NOT_RECORDED", message=message)
        elif is_too_late(run_context, child, recorded):
            message = f"The event `{one.event}` came too late: its step had waited longer than it may, and continued."
            yield Warned(code="EVENT_TOO_LATE", message=message)
        else:
            yield from content_warnings(recorded, one)


def _is_branch(session: Session, recorded: fold_types.Advance) -> bool:
    """Say whether an attempt, or the first refused attempt of its chain, was a fork."""
    node, attempt = session.nodes[recorded.node], recorded.attempt
    while node.kind == "blocked_attempt" and node.parent is not None:
        made, node = node.node, session.nodes[node.parent]
        attempt = next(one for one in attempts_on(node) if node_of_attempt(one) == made)
    return attempt != ack_attempt(node.node)


def _is_same_request(recorded: fold_types.Advance, request: Request) -> bool:
    """Say whether a request equals the recorded one; a request that is not canonical JSON never does."""
    try:
        return recorded.request_digest == request.digest()
    except NotCanonicalError:
        return False
