"""Rehydrate: show a node, or what a report of its step must contain. Depends only on the log (READ-1, ADV-8)."""

from collections.abc import Mapping

from interlock.engine.answer.model import CONTINUE_TOOL, Answer, AnswerModel, evidence_outline, render_answer
from interlock.engine.answer.prompt import guidance_of
from interlock.engine.answer.structure import Fork, Warned
from interlock.engine.gates import ApprovalContext
from interlock.engine.template import title_in_code
from interlock.kernel.blanks import Outline
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, CHECKPOINTS_PER_NODE_MAX
from interlock.kernel.errors import Correction, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import WorkflowHash
from interlock.service.failures import EXPECTED_ERRORS
from interlock.service.ports import ReadPorts
from interlock.service.run.attempts import retry_node
from interlock.service.run.context import RunContext
from interlock.service.run.rests_on import rests_on
from interlock.service.tokens.mint import Mint, minting
from interlock.service.tokens.resolve import SentTokens, scope_mismatch
from interlock.service.tokens.suggest import place_of
from interlock.service.tools import warnings
from interlock.service.tools.end_run import ended_out
from interlock.service.tools.pending_step import render_pending_step, step_to_redo, with_kept_evidence
from interlock.service.tools.recap import Recap
from interlock.service.tools.target import Target, load_target
from interlock.service.tools.warnings import SourceRemoved
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import NodePosition, node_position, tip_below
from interlock.views.session import Node


@frozen
class _View:
    reader: SessionReader
    run_context: RunContext
    node: Node
    position: NodePosition
    mint: Mint
    asking: ApprovalContext


def rehydrate(
    ports: ReadPorts, target: Target, asking: ApprovalContext, source: WorkflowHash | SourceRemoved | None = None
) -> Answer:
    """Show the addressed node: its step and its position. `source` is the hash of the workflow's current source.

    Raises:
        StoreFailureError, ContentDamagedError, KeyRingDamagedError: See `service.failures`.
    """
    view, run_context = _view(ports, target, asking), target.run_context
    with ports.trace.span("render"):
        answer_model = _build_model(view)
        more = (
            *warnings.source_changed(run_context.run, source),
            *warnings.still_open(run_context.session, view.position.last),
        )
        return render_answer(replace(answer_model, warnings=(*answer_model.warnings, *more)))


def look_up_report(ports: ReadPorts, sent: SentTokens, asking: ApprovalContext) -> Mapping[str, Outline] | Refusal:
    """Return the evidence that the step of a token still asks for: none if it is done or cannot be read.

    A token that the call cannot have is refused as the call would be, and so is a report that no token makes possible.
    """
    try:
        target = load_target(ports, sent)
        if isinstance(target, Refusal):
            return target
        wanted = _asked_evidence(ports, target, asking)
        is_closed = target.run_context.run.ended is not None or sent.argument == "stateToken"
        return _refuse_report(ports, target) if wanted is None and is_closed else wanted or {}
    except EXPECTED_ERRORS:
        return {}


def _refuse_report(ports: ReadPorts, target: Target) -> Refusal:
    """Refuse a report on a step that is not pending any more; the correction shows where the run is."""
    run_context = target.run_context
    refusal = scope_mismatch(
        f"The step of run `{run_context.view().label}` takes no report any more.",
        "The call below shows where the run is.",
    )
    place = place_of(ports, run_context.session, run_context.run)
    if place is None:
        return refusal
    return replace(refusal, correction=Correction(tool=CONTINUE_TOOL, instead=place.show_arguments()))


def _asked_evidence(ports: ReadPorts, target: Target, asking: ApprovalContext) -> Mapping[str, Outline] | None:
    """Return what a report of the addressed step must contain; None if the step takes no report any more.

    Raises:
        StoreFailureError, ContentDamagedError, KeyRingDamagedError: See `service.failures`.
    """
    answer_model = _build_model(_view(ports, target, asking))
    if answer_model.step is None or answer_model.ack_token is None:
        return None
    return evidence_outline(answer_model.step, answer_model.blockers)


def _view(ports: ReadPorts, target: Target, asking: ApprovalContext) -> _View:
    run_context, node = target.run_context, target.node
    return _View(
        reader=ports.reader,
        run_context=run_context,
        node=node,
        position=node_position(run_context.session, node.node),
        mint=minting(ports, target.ring, run_context.session, run_context.run),
        asking=asking,
    )


def _build_model(view: _View) -> AnswerModel:
    run_context, node, position = view.run_context, view.node, view.position
    at = position.first if position.passed_to is not None else position.last
    answer_model = AnswerModel(
        occasion="rehydrate",
        run=run_context.view(node),
        state_token=view.mint.state(at.node),
        step=render_pending_step(run_context, node, view.asking),
        preferences=at.preferences,
        recap=Recap(reader=view.reader, run_context=run_context, position=position).text(),
        guidance=guidance_of(run_context.workflow, never_stops=at.preferences.never_stops),
        references=run_context.workflow.references,
    )
    if run_context.run.ended is not None:
        return replace(
            answer_model,
            step=None,
            ended=ended_out(run_context.run.ended),
            guidance=(),
            references=(),
            preferences=None,
        )
    if answer_model.step is None:
        return replace(answer_model, rests_on=rests_on(run_context, at))
    if position.passed_to is not None:
        return _add_redirect(view, answer_model)
    if position.is_used_up:
        return _add_retry_fork(view, answer_model)
    last = position.last
    ack = view.mint.ack(last.node)
    is_free = last.checkpoints < CHECKPOINTS_PER_NODE_MAX
    checkpoint = view.mint.checkpoint(last.node, last.checkpoints) if is_free else None
    # A refused attempt that raised the autonomy blocks no longer: the next attempt is accepted (READ-7).
    blockers = None if last.preferences.never_stops else position.blockers
    step = with_kept_evidence(view.reader, run_context, last, answer_model.step, position.blockers)
    redone = step_to_redo(run_context, node)
    return replace(
        answer_model,
        step=step,
        ack_token=ack,
        checkpoint_token=checkpoint,
        blockers=blockers,
        redirect=view.mint.state(redone.node) if redone is not None else None,
    )


def _add_redirect(view: _View, answer_model: AnswerModel) -> AnswerModel:
    """Add to a finished step the token of the current one; no ack token, which would fork the step silently (ADV-9)."""
    run_context, first = view.run_context, view.position.first
    tip = run_context.session.nodes[tip_below(run_context.session, first)]
    tip_place = run_context.describe_position(tip)
    where = f"already done; the run is at {tip_place}"
    run_tip = run_context.run.tip
    if run_tip is not None and run_tip != tip.node:
        preferred = run_context.describe_position(run_context.session.nodes[run_tip])
        where = f"already done; this branch is at {tip_place}; the branch that was continued last is at {preferred}"
    assert answer_model.step is not None, "a step that is done was a step"
    return replace(
        answer_model,
        step=replace(answer_model.step, waiting=None),
        redirect=view.mint.state(tip.node),
        # A step that waits has nothing to redo: its predecessor can be forked (WORLD-4).
        fork=None
        if answer_model.step.waiting is not None
        else _fork(view, "To redo this step on a new branch (the old branch stays),"),
        where=where,
        warnings=(
            Warned(code="STEP_ALREADY_DONE", message=f"The step {title_in_code(answer_model.step.title)} is {where}."),
        ),
    )


def _add_retry_fork(view: _View, answer_model: AnswerModel) -> AnswerModel:
    """Add the fork to retry a step whose attempts are used up: nothing more is recorded on its chain (BLK-5)."""
    run_context, first = view.run_context, view.position.first
    warning = Warned(
        code="ATTEMPT_LIMIT_REACHED",
        message=f"The step was refused {ATTEMPTS_PER_STEP_MAX - 1} times in a row; ask the user before you try again.",
    )
    answer_model = replace(answer_model, blockers=view.position.blockers, warnings=(warning,))
    retried = retry_node(run_context, first)
    if retried.node != first.node:
        # A step that waits takes the same event again. The step before it can be redone on a new branch.
        return replace(answer_model, redirect=view.mint.state(retried.node))
    answer_model = replace(answer_model, fork=_fork(view, "To retry the step on a new branch,"))
    tip = tip_below(run_context.session, first)
    # If the tip is the end of this chain, a redirect would lead back here: only a fork continues.
    if tip == view.position.last.node:
        return answer_model
    return replace(answer_model, redirect=view.mint.state(tip))


def _fork(view: _View, words: str) -> Fork:
    first = view.position.first
    note = f"{words} call `{CONTINUE_TOOL}` with this `ackToken`."
    return Fork(ack_token=view.mint.fork(first.node, first.forks), note=note)
