"""Rehydrate: show a node as it is. Pure over the log: two calls give the same bytes (READ-1, ADV-8)."""

from dataclasses import dataclass, replace

from interlock.engine.answer.model import Answer, AnswerModel, render_answer
from interlock.engine.answer.parts import title_in_code
from interlock.engine.answer.prompt import guidance_of
from interlock.engine.answer.structure import Fork, Warned
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, CHECKPOINTS_PER_NODE_MAX
from interlock.kernel.ids import WorkflowHash
from interlock.service.ports import ReadPorts
from interlock.service.run.context import RunContext
from interlock.service.tokens.mint import Mint
from interlock.service.tools import warnings
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.tools.recap import Recap
from interlock.service.tools.target import Target
from interlock.store.ports.errors import KeyRingDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import NodePosition, node_position, tip_below
from interlock.views.session import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    reader: SessionReader
    scene: RunContext
    node: Node
    standing: NodePosition
    mint: Mint


def rehydrate(ports: ReadPorts, target: Target, source_hash: WorkflowHash | None = None) -> Answer:
    """Return the addressed node's own step and where it stands; `source_hash` is what its workflow compiles to now.

    Raises:
        StoreFailureError, ContentDamagedError, KeyRingDamagedError: See `service.failures`.
    """
    scene, node = target.scene, target.node
    ring = ports.key_ring.keys()
    if ring is None:
        raise KeyRingDamagedError("the key ring vanished after a token verified")
    here = _Here(
        reader=ports.reader,
        scene=scene,
        node=node,
        standing=node_position(scene.session, node.node),
        mint=Mint(ring=ring, session=scene.session, run=scene.run, form=ports.token_format),
    )
    with ports.trace.span("render"):
        facts = _facts(here)
        changed = tuple(warnings.source_changed(scene.run, source_hash))
        return render_answer(replace(facts, warnings=(*facts.warnings, *changed)))


def _facts(here: _Here) -> AnswerModel:
    scene, node, standing = here.scene, here.node, here.standing
    at = standing.first if standing.passed_to is not None else standing.last
    facts = AnswerModel(
        occasion="rehydrate",
        run=scene.words(node),
        state_token=here.mint.state(at.node),
        step=render_pending_step(scene, node),
        preferences=at.preferences,
        recap=Recap(reader=here.reader, scene=scene, standing=standing).text(),
        guidance=guidance_of(scene.workflow),
        references=scene.workflow.references,
    )
    if facts.step is None:
        return facts
    if standing.passed_to is not None:
        return _passed(here, facts)
    if standing.is_used_up:
        return _used_up(here, facts)
    last = standing.last
    ack = here.mint.ack(last.node)
    is_free = last.checkpoints < CHECKPOINTS_PER_NODE_MAX
    checkpoint = here.mint.checkpoint(last.node, last.checkpoints) if is_free else None
    return replace(facts, ack_token=ack, checkpoint_token=checkpoint, blockers=standing.blockers)


def _passed(here: _Here, facts: AnswerModel) -> AnswerModel:
    """The step is done: no token that would silently fork it, but the way to where the run stands (ADV-9)."""
    scene, first = here.scene, here.standing.first
    tip = scene.session.nodes[tip_below(scene.session, first)]
    stands = scene.stands_at(tip)
    where = f"already done; the run is at {stands}"
    run_tip = scene.run.tip
    if run_tip is not None and run_tip != tip.node:
        preferred = scene.stands_at(scene.session.nodes[run_tip])
        where = f"already done; this branch is at {stands}; the run's preferred branch is at {preferred}"
    assert facts.step is not None, "a step that is done was a step"
    return replace(
        facts,
        redirect=here.mint.state(tip.node),
        fork=_fork(here, "To redo this step on a new branch, keeping the old one,"),
        where=where,
        warnings=(Warned(code="STEP_ALREADY_DONE", message=f"The step {title_in_code(facts.step.title)} is {where}."),),
    )


def _used_up(here: _Here, facts: AnswerModel) -> AnswerModel:
    """Nothing more is recorded on this chain; a fork of its first node goes on (BLK-5)."""
    scene, first = here.scene, here.standing.first
    warned = Warned(
        code="ATTEMPT_LIMIT_REACHED",
        message=f"The step was refused {ATTEMPTS_PER_STEP_MAX - 1} times in a row; ask the user before you try again.",
    )
    facts = replace(
        facts,
        blockers=here.standing.blockers,
        warnings=(warned,),
        fork=_fork(here, "To retry the step on a new branch,"),
    )
    tip = tip_below(scene.session, first)
    # Where the tip is this chain's own end, looking there would lead back here: only another fork goes on.
    if tip == here.standing.last.node:
        return facts
    return replace(facts, redirect=here.mint.state(tip))


def _fork(here: _Here, words: str) -> Fork:
    first = here.standing.first
    return Fork(ack_token=here.mint.fork(first.node, first.forks), note=f"{words} send this as `ackToken`.")
