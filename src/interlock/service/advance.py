"""Advance: probe for the recorded outcome, else lock, probe again, decide, append (locks 1.2, ARCHITECTURE).

The answer of a first call and of its replay are told by the same function from the same recorded facts.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from interlock.engine.advance import Advanced, Attempt, LimitReached, Refused, decide_advance
from interlock.engine.answer import Answer, Facts, ForkOffer, Warned, render_answer
from interlock.engine.request import WHOLE_NOTES_CONTENT_TYPE, Request
from interlock.engine.secret_scanning import secret_warnings
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, FORKS_PER_NODE_MAX, NOTES_BYTES_MAX
from interlock.kernel.canonical import Json, NotCanonicalError
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import AttemptId, ack_attempt, fork_attempt, node_of_attempt
from interlock.kernel.text import TRUNCATION_MARKER, utf8_bytes
from interlock.record.append_plan import Stamps
from interlock.record.events import Actor
from interlock.record.outcome import Blocked, Blocker
from interlock.record.payloads import ArtifactPayload, IterationRef, LoopRef, StepRef
from interlock.record.snapshot import Complete
from interlock.service.context import context_refusal
from interlock.service.ports import Ports
from interlock.service.shell import mint_event, recorded_at
from interlock.service.target import Target
from interlock.service.tokens import Mint, lost_history
from interlock.service.words import Scene
from interlock.views import session as facts_of
from interlock.views.recap import current_notes
from interlock.views.session import Node, Session
from interlock.views.standing import attempts_on, chain_head


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """An attempt as it was sent."""

    target: Target
    attempt: AttemptId
    request: Request


def advance(ports: Ports, target: Target, request: Request, actor: Actor | None) -> Answer | Refusal:
    """Attempt to advance the target, or tell what came of that attempt when it was made.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded.
    """
    assert target.attempt is not None, "an advance has an attempt"
    call = _Call(target=target, attempt=target.attempt, request=request)
    # Committed outcomes never change, so a hit needs no lock; a miss is made sure of under it (locks 1.2).
    recorded = target.scene.session.advance(target.node.node, call.attempt)
    if recorded is not None:
        return _told(ports, call, target.scene.session, recorded)
    refusal = _attempt_refusal(call, target.scene.session) or context_refusal(
        target.scene.session.context(target.node.node), request.context
    )
    if refusal is not None:
        return refusal
    with ports.writer.hold(target.scene.session.session) as witness:
        session = witness.session
        if session is None or target.node.node not in session.nodes:
            return lost_history("ackToken", words=target.scene.words())
        recorded = session.advance(target.node.node, call.attempt)
        if recorded is None:
            outcome = _decided(ports, call, session)
            if isinstance(outcome, Refusal):
                return outcome
            with ports.read.trace.span("append"):
                session = ports.writer.append(witness, outcome.plan, _stamps(ports, actor))
            if isinstance(outcome, Advanced):
                child = session.nodes[node_of_attempt(call.attempt)]
                ports.read.plans.keep(child.snapshot, outcome.snapshot)
            recorded = session.advance(target.node.node, call.attempt)
    assert recorded is not None, "an append of an attempt records it"
    return _told(ports, call, session, recorded)


def _stamps(ports: Ports, actor: Actor | None) -> Stamps:
    return Stamps(mint_event_id=lambda: mint_event(ports.shell), recorded_at=recorded_at(ports.shell), actor=actor)


def _attempt_refusal(call: _Call, session: Session) -> Refusal | None:
    """Refuse an attempt that no recorded history leads to, and forks beyond the limit (D2, D3)."""
    node = session.nodes[call.target.node.node]
    if call.attempt == ack_attempt(node.node):
        return None
    if call.attempt != fork_attempt(node.node, node.forks):
        return lost_history("ackToken", words=call.target.scene.words(node))
    if node.forks >= FORKS_PER_NODE_MAX:
        words = call.target.scene.words(node)
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"The step of run `{words.label}` was forked {node.forks} times; at most {FORKS_PER_NODE_MAX}.",
            suggestion="Fork a later step, or begin a new run with `start_workflow`.",
            details={"path": "ackToken", "maxForks": FORKS_PER_NODE_MAX, "run": words.to_json()},
        )
    return None


def _decided(ports: Ports, call: _Call, session: Session) -> Advanced | Refused | Refusal:
    """Judge the attempt by the facts as they are under the lock."""
    scene, node = call.target.scene, session.nodes[call.target.node.node]
    refusal = _attempt_refusal(call, session)
    if refusal is not None:
        return refusal
    with ports.read.trace.span("decide"):
        snapshot = scene.snapshot(node)
        if isinstance(snapshot.state, Complete):
            return lost_history("ackToken", words=scene.words(node))
        decision = decide_advance(
            Attempt(
                session=session.session,
                run=node.run,
                node=node.node,
                attempt=call.attempt,
                is_fork=call.attempt != ack_attempt(node.node),
                refusals=node.refusals,
                snapshot=snapshot,
                preferences=node.preferences,
                workflow=scene.workflow,
                request=call.request,
                context=session.context(node.node),
                earlier=_brought(ports, node),
            )
        )
    match decision:
        case Advanced() | Refused():
            return decision
        case LimitReached():
            return _limit_reached(ports, scene, session, node, decision.blockers)
        case _:
            assert_never(decision)


def _brought(ports: Ports, node: Node) -> Request | None:
    """Return the evidence that a refused attempt brought; None where the node is none."""
    if node.kind != "blocked_attempt":
        return None
    notes, artifacts = current_notes(node), list[Mapping[str, Json]]()
    for output in node.outputs:
        if not isinstance(output.payload, ArtifactPayload):
            continue
        stored = ports.read.reader.artifact(output.payload.sha256)
        if output.payload.content_type == WHOLE_NOTES_CONTENT_TYPE:
            notes = stored.decode("utf-8")
        else:
            artifacts.append(json.loads(stored))
    return Request(notes=notes, artifacts=tuple(artifacts))


def _limit_reached(ports: Ports, scene: Scene, session: Session, node: Node, blockers: tuple[Blocker, ...]) -> Refusal:
    words, first = scene.words(node), chain_head(session, node)
    mint = Mint(ring=ports.read.key_ring.ensured(), session=session, run=scene.run)
    fork = ForkOffer(
        ack_token=mint.attempt(first.node, fork_attempt(first.node, first.forks)),
        note="To try the step again on a fresh branch, ack with this token.",
    )
    return Refusal(
        code=ErrorCode.ATTEMPT_LIMIT_REACHED,
        message=f"The step of run `{words.label}` ({words.workflow_id}) was refused {ATTEMPTS_PER_STEP_MAX} times in"
        f" a row; nothing more is recorded. Last reason: {blockers[0].message}",
        suggestion="Stop and tell the user what is missing. To try again on a fresh branch, send `continue_workflow`"
        f' with `ackToken` set to `details.fork.ackToken`, `run: "{words.label}"` and the evidence.',
        details={
            "run": words.to_json(),
            "fork": fork.to_json(),
            "blockers": [blocker.to_json() for blocker in blockers],
        },
    )


def _told(ports: Ports, call: _Call, session: Session, recorded: facts_of.Advance) -> Answer:
    """Tell a recorded outcome: the node it made, with that node's own tokens."""
    scene = Scene(
        session=session,
        run=session.runs[call.target.scene.run.run],
        workflow=call.target.scene.workflow,
        plans=ports.read.plans,
    )
    child = session.nodes[node_of_attempt(recorded.attempt)]
    mint = Mint(ring=ports.read.key_ring.ensured(), session=session, run=scene.run)
    step = scene.step(child)
    blockers = recorded.outcome.blockers if isinstance(recorded.outcome, Blocked) else None
    was_changed = "preferences" if child.preferences != call.target.node.preferences else None
    with ports.read.trace.span("render"):
        return render_answer(
            Facts(
                occasion="advance",
                run=scene.words(child),
                state_token=mint.state(child.node),
                ack_token=mint.attempt(child.node, ack_attempt(child.node)) if step is not None else None,
                step=step,
                blockers=blockers,
                warnings=_warnings(call, scene, recorded, child),
                preferences=child.preferences if was_changed else None,
            )
        )


def _warnings(call: _Call, scene: Scene, recorded: facts_of.Advance, child: Node) -> tuple[Warned, ...]:
    warnings: list[Warned] = []
    notes = current_notes(child)
    if notes is not None and notes.endswith(TRUNCATION_MARKER) and utf8_bytes(notes) >= NOTES_BYTES_MAX - 3:
        message = (
            f"The notes were over {NOTES_BYTES_MAX} bytes: recaps show them cut, with a marker at the end; the whole is"
            " stored beside them as an artifact."
        )
        warnings.append(Warned(code="NOTES_TRUNCATED", message=message))
    if child.kind == "step" and _is_branch(scene.session, recorded):
        message = "This is a branch of its own: what came after the redone step before stays as it was."
        warnings.append(Warned(code="BRANCH_CREATED", message=message))
    if not _is_same_request(recorded, call.request):
        message = (
            "This attempt was recorded before with other content; that record stands and what came now was ignored."
            " Use the tokens of this answer to go on."
        )
        warnings.append(Warned(code="REPLAY_PAYLOAD_IGNORED", message=message))
    return (*warnings, *_reasons(scene, child), *secret_warnings(scene.session.deltas.get(child.node)))


def _is_branch(session: Session, recorded: facts_of.Advance) -> bool:
    """Say whether an attempt, or the first of the refused ones before it, was a fork."""
    node, attempt = session.nodes[recorded.node], recorded.attempt
    while node.kind == "blocked_attempt" and node.parent is not None:
        made, node = node.node, session.nodes[node.parent]
        attempt = next(one for one in attempts_on(node) if node_of_attempt(one) == made)
    return attempt != ack_attempt(node.node)


def _reasons(scene: Scene, child: Node) -> Iterator[Warned]:
    """Tell what the recorded reasons hold that an agent should know: loops that were used up, levels read otherwise."""
    for entry in child.trace:
        refs = entry.refs or ()
        loop = next((ref.loop_id for ref in refs if isinstance(ref, LoopRef)), None)
        passes = next((ref.value for ref in refs if isinstance(ref, IterationRef)), None)
        if entry.kind == "exited_loop" and loop and passes == scene.workflow.graphs.loops[loop].max_iterations:
            message = f"The loop {loop!r} ended because its {passes} passes are used up, not because it was done."
            yield Warned(code="LOOP_LIMIT_REACHED", message=message)
        if entry.kind == "evaluated_condition" and any(isinstance(ref, StepRef) for ref in refs):
            yield Warned(code="LEVEL_NORMALISED", message=entry.summary)


def _is_same_request(recorded: facts_of.Advance, request: Request) -> bool:
    """Say whether a request is what was recorded; one that cannot be recorded at all is not."""
    try:
        return recorded.request_digest == request.digest()
    except NotCanonicalError:
        return False
