"""Advance: probe for the recorded outcome, else lock, probe again, decide, append (ADV-5, ADV-6).

The answer of a first call and of its replay are told by the same function from the same recorded facts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from interlock.engine.advance import decide_advance
from interlock.engine.answer.model import Answer, AnswerModel, HumanInputRequired, PendingApproval, render_answer
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.answer.structure import Fork, Warned
from interlock.engine.judge.attempt import Advanced, ApprovalMissing, AttemptLimitReached, Refused
from interlock.engine.request import CONFIRMATION_KIND, Request
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, FORKS_PER_NODE_MAX
from interlock.kernel.canonical import Json, NotCanonicalError
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import AttemptId, ack_attempt, fork_attempt, node_of_attempt
from interlock.record.events import Actor
from interlock.record.outcome import Blocked, Blocker, BlockerReport
from interlock.record.snapshot import Complete
from interlock.service.ports import Ports
from interlock.service.run.attempts import answered_at, attempt_on, whole_notes
from interlock.service.run.context import RunContext
from interlock.service.tokens.mint import Mint, minting
from interlock.service.tokens.resolve import lost_history
from interlock.service.tools import warnings
from interlock.service.tools.append import append_plan
from interlock.service.tools.context_limits import context_refusal
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.tools.target import Target
from interlock.service.unanswered import after_append
from interlock.store.ports.keys import KeyRing
from interlock.views import session as facts_of
from interlock.views.node_position import attempts_on, chain_head, node_position, tip_below
from interlock.views.recap import notes_of_attempt
from interlock.views.session import Node, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """An attempt on its target with what was sent, and the keys that sign its answer."""

    target: Target
    attempt: AttemptId
    request: Request
    ring: KeyRing


def advance(
    ports: Ports, target: Target, request: Request, actor: Actor | None
) -> Answer | Refusal | HumanInputRequired:
    """Attempt to advance the target, or tell what came of that attempt when it was made.

    Where nothing but a person's word is missing, nothing is recorded and nothing held: the same call is made again with
    what the person said (GATE-3).

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded, unless a `StoreFailureError` says that it may be.
    """
    attempt = target.attempt
    assert attempt is not None, "an advance has an attempt"
    # The keys are read before anything is appended: once it is, nothing may keep the answer back.
    call = _Call(target=target, attempt=attempt, request=request, ring=ports.key_ring.ensured())
    # Committed outcomes never change, so a hit needs no lock; a miss is made sure of under it (ADV-5, ADV-6).
    recorded = target.scene.session.advance(target.node.node, attempt)
    if recorded is not None:
        return _told(ports, call, target.scene.session, recorded)
    refusal = _attempt_refusal(target, target.scene.session) or context_refusal(
        target.scene.session.context(target.node.node), request.context
    )
    if refusal is not None:
        return refusal
    with ports.hold(target.scene.session.session) as witness:
        session = witness.session
        if session is None or target.node.node not in session.nodes:
            return lost_history("ackToken", words=target.scene.words())
        recorded = session.advance(target.node.node, attempt)
        if recorded is None:
            outcome = _decided(ports, call, session)
            if isinstance(outcome, Refusal | HumanInputRequired):
                return outcome
            if isinstance(outcome, Advanced):
                [(reference, _)] = outcome.plan.snapshots
                ports.read.plans.keep(reference, outcome.snapshot)
            session = append_plan(ports, witness, outcome.plan, actor)
            recorded = session.advance(target.node.node, attempt)
    assert recorded is not None, "an append of an attempt records it"
    return _told(ports, call, session, recorded)


def _attempt_refusal(target: Target, session: Session) -> Refusal | None:
    """Refuse an attempt that no recorded history leads to, and forks beyond the limit (TOK-5, ADV-11)."""
    node = session.nodes[target.node.node]
    if target.attempt == ack_attempt(node.node):
        return None
    if target.attempt != fork_attempt(node.node, node.forks):
        return lost_history("ackToken", words=target.scene.words(node))
    if node.forks >= FORKS_PER_NODE_MAX:
        words = target.scene.words(node)
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"The step of run `{words.label}` was forked {node.forks} times, which is the limit.",
            suggestion="Fork a later step, or begin a new run with `start_workflow`.",
            details={"path": "ackToken", "maxForks": FORKS_PER_NODE_MAX, "run": words.to_json()},
        )
    return None


def _decided(ports: Ports, call: _Call, session: Session) -> Advanced | Refused | Refusal | HumanInputRequired:
    """Judge the attempt by the facts as they are under the lock."""
    scene, node = call.target.scene, session.nodes[call.target.node.node]
    refusal = _attempt_refusal(call.target, session)
    if refusal is not None:
        return refusal
    with ports.read.trace.span("decide"):
        if isinstance(scene.snapshot(node).state, Complete):
            return lost_history("ackToken", words=scene.words(node))
        scene = replace(scene, session=session)
        decision = decide_advance(attempt_on(ports.read.reader, scene, node, call.attempt, call.request))
    match decision:
        case Advanced() | Refused():
            return decision
        case AttemptLimitReached():
            return _limit_reached(minting(ports.read, call.ring, session, scene.run), scene, node, decision.blockers)
        case ApprovalMissing():
            return _needs_person(ports, call, scene, node, decision)
        case _:
            assert_never(decision)


def _needs_person(
    ports: Ports, call: _Call, scene: RunContext, node: Node, found: ApprovalMissing
) -> HumanInputRequired:
    """Nothing is recorded: where nobody can be asked, the same tokens are told again, and who must confirm and how."""
    mint = minting(ports.read, call.ring, scene.session, scene.run)
    is_ordinary = call.attempt == ack_attempt(node.node)
    claim: dict[str, Json] = {"kind": CONFIRMATION_KIND, "confirmedBy": "<who>", "statement": "<what they confirmed>"}
    facts = AnswerModel(
        occasion="advance",
        run=scene.words(node),
        state_token=mint.state(node.node),
        ack_token=mint.ack(node.node) if is_ordinary else mint.fork(node.node, node.forks),
        step=render_pending_step(scene, node),
        blockers=BlockerReport(blockers=found.blockers),
        awaited=PendingApproval(claim=claim if found.takes_claims else None),
    )
    return HumanInputRequired(question=found.question, subject=call.attempt, answer=render_answer(facts))


def _limit_reached(mint: Mint, scene: RunContext, node: Node, blockers: tuple[Blocker, ...]) -> Refusal:
    words, first = scene.words(node), chain_head(scene.session, node)
    fork = Fork(
        ack_token=mint.fork(first.node, first.forks),
        note="To retry the step on a new branch, send this as `ackToken`.",
    )
    return Refusal(
        code=ErrorCode.ATTEMPT_LIMIT_REACHED,
        message=f"The step of run `{words.label}` ({words.workflow_id}) was refused {ATTEMPTS_PER_STEP_MAX} times in"
        f" a row; no further attempt is recorded. Last reason: {blockers[0].message}",
        suggestion="Stop and tell the user what is missing. To retry on a new branch, send `continue_workflow`"
        f' with `ackToken` set to `details.fork.ackToken`, `run: "{words.label}"` and the evidence.',
        details={
            "run": words.to_json(),
            "fork": fork.to_json(),
            "blockers": [blocker.to_json() for blocker in blockers],
        },
    )


@after_append()
def _told(ports: Ports, call: _Call, session: Session, recorded: facts_of.Advance) -> Answer:
    """Tell a recorded outcome: the node it made, with that node's own tokens."""
    target, request = call.target, call.request
    scene = replace(target.scene, session=session, run=session.runs[target.scene.run.run])
    child = session.nodes[node_of_attempt(recorded.attempt)]
    mint = minting(ports.read, call.ring, session, scene.run)
    step = render_pending_step(scene, child)
    blockers = recorded.outcome.blockers if isinstance(recorded.outcome, Blocked) else None
    was_changed = child.preferences != session.nodes[recorded.node].preferences
    gone_on = _gone_on_to(request, scene, recorded, child)
    with ports.read.trace.span("render"):
        return render_answer(
            AnswerModel(
                occasion="advance",
                run=scene.words(child),
                state_token=mint.state(child.node),
                ack_token=mint.ack(child.node) if step is not None else None,
                checkpoint_token=mint.checkpoint(child.node, 0) if step is not None else None,
                step=step,
                blockers=blockers,
                warnings=(
                    *_warnings(request, scene, recorded, child),
                    *secret_warnings(
                        session.deltas.get(child.node), whole_notes(ports.read.reader, child, recorded.attempt)
                    ),
                ),
                redirect=mint.state(gone_on.node) if gone_on is not None else None,
                where=f"already done; the run is at {scene.stands_at(gone_on)}" if gone_on is not None else None,
                preferences=child.preferences if was_changed else None,
                answered=answered_at(ports.read.reader, child),
            )
        )


def _gone_on_to(request: Request, scene: RunContext, recorded: facts_of.Advance, child: Node) -> Node | None:
    """Return where the run has gone on to since, for a caller who repeats an old attempt with other content.

    A caller who repeats the same content asks for the same answer.
    """
    if _is_same_request(recorded, request):
        return None
    is_passed = node_position(scene.session, child.node).passed_to is not None
    return scene.session.nodes[tip_below(scene.session, child)] if is_passed else None


def _warnings(request: Request, scene: RunContext, recorded: facts_of.Advance, child: Node) -> Iterator[Warned]:
    yield from warnings.notes_cut(notes_of_attempt(child))
    if child.kind == "step" and _is_branch(scene.session, recorded):
        message = "This is a new branch. The earlier branch is unchanged."
        yield Warned(code="BRANCH_CREATED", message=message)
    if not _is_same_request(recorded, request):
        message = (
            "This attempt is already recorded with other content. That record is unchanged; the new content was"
            " ignored. Continue with the next call."
        )
        yield Warned(code="REPLAY_PAYLOAD_IGNORED", message=message)
    yield from warnings.decided_otherwise(scene, child)
    yield from warnings.disclosed(child)
    yield from warnings.claimed(child)
    if child.preferences != scene.session.nodes[recorded.node].preferences:
        yield from warnings.beyond_advice(scene.workflow, child.preferences)
    if isinstance(scene.snapshot(child).state, Complete):
        yield from warnings.open_at_the_end(scene.session, child)


def _is_branch(session: Session, recorded: facts_of.Advance) -> bool:
    """Say whether an attempt, or the first of the refused ones before it, was a fork."""
    node, attempt = session.nodes[recorded.node], recorded.attempt
    while node.kind == "blocked_attempt" and node.parent is not None:
        made, node = node.node, session.nodes[node.parent]
        attempt = next(one for one in attempts_on(node) if node_of_attempt(one) == made)
    return attempt != ack_attempt(node.node)


def _is_same_request(recorded: facts_of.Advance, request: Request) -> bool:
    """Say whether a request is what was recorded; one that cannot be recorded at all is not."""
    try:
        return recorded.request_digest == request.digest()
    except NotCanonicalError:
        return False
