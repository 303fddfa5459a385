"""Reads from the log what an attempt is judged by: the same facts for the first call and for a later replay."""

from collections.abc import Iterator, Mapping
from functools import partial

from interlock.engine.ends import RunEnding
from interlock.engine.event_drafts import intent_id
from interlock.engine.gates import Reply
from interlock.engine.judge.attempt import Attempt, AwaitedEvent
from interlock.engine.request import Request
from interlock.kernel.ids import AttemptId, Digest, NodeId, ack_attempt
from interlock.plan.records import Task
from interlock.record.events import Actor
from interlock.record.payloads import GapRecorded, WorkRecorded
from interlock.record.world import APPROVAL, EXPIRED, UNANSWERED_CHOICE, Signed
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.approval import open_approval
from interlock.service.run.evidence.sent import evidence_refused
from interlock.service.run.evidence.verdicts import failed_verdict
from interlock.service.run.proofs import proof_context
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import attempts_on, chain_head
from interlock.views.outside import Demand, has_unknown_key
from interlock.views.recap import notes_of_attempt
from interlock.views.session import Node, Session

UNANSWERED: Mapping[str, str | int | float | bool] = {
    "approved": False,
    "choice": UNANSWERED_CHOICE,
    "note": "",
    "shown": "",
}
"""What a step reads of an answer that did not come in time."""


def attempt_on(
    reader: SessionReader,
    run_context: RunContext,
    attempt: tuple[Node, AttemptId],
    request: Request,
    actor: Actor | None,
) -> Attempt:
    """Build an actor's attempt on a node from the request and the log.

    Raises:
        ContentDamagedError: A snapshot or an artifact is missing or damaged.
    """
    session, (node, attempt_id) = run_context.session, attempt
    return Attempt(
        session=session.session,
        run=node.run,
        node=node.node,
        attempt=attempt_id,
        is_fork=attempt_id != ack_attempt(node.node),
        refusals=node.refusals,
        snapshot=run_context.loaded_snapshot(node),
        preferences=node.preferences,
        workflow=run_context.workflow,
        request=request,
        context=session.context(node.node),
        actor=actor,
        earlier=evidence_refused(reader, node, session.session),
        open_gaps=tuple(_open_gaps(session, node)),
        reporters=dict(_reporters(run_context, node)),
        earlier_notes=_earlier_notes(session, node),
        event=awaited_event(run_context, node),
        emitted=_emitted(run_context, node),
        notifies=run_context.run.notifies,
        proof=proof_context(run_context, node, pending_task(run_context, node)),
        failed_verdict=partial(failed_verdict, run_context, node),
    )


def awaited_event(run_context: RunContext, node: Node) -> AwaitedEvent | None:
    """Return the event that the step of a node takes, if it waits for one that is there (WORLD-4).

    Raises:
        ContentDamagedError: A snapshot is missing or damaged, or what was shown with the question of an answer.
    """
    awaits = pending_task(run_context, node).awaits
    if awaits is None:
        return None
    here = chain_head(run_context.session, node).node
    outside = run_context.session.outside
    demand = Demand(
        kind=awaits.event,
        assurance=awaits.assurance,
        keys=run_context.signing_keys,
        trusted_from=run_context.session.trusted_from,
        shown=_shown_now(run_context, node, here) if awaits.approval is not None else None,
    )
    found = outside.first_match(node.run, demand, here, node.taken)
    if found is None:
        return None
    data = found.data
    is_expired = data.event == EXPIRED
    fields = UNANSWERED if is_expired and awaits.approval is not None else data.fields
    # Nobody decided if the server itself recorded the answer of a run that never stops.
    is_decided = awaits.approval is None or data.via != "clock" or is_expired
    is_met = awaits.must is None or fields.get(awaits.must) is True
    return AwaitedEvent(event_id=found.event_id, fields=fields, is_expired=is_expired, is_met=is_met and is_decided)


def _shown_now(run_context: RunContext, node: Node, asked: NodeId) -> frozenset[Digest]:
    """Return the digests of the question of a node with what is shown with it; none if nobody has answered it."""
    if run_context.session.outside.last_about(node.run, APPROVAL, asked) is None:
        return frozenset()
    approval = open_approval(run_context.plans.reader, run_context, node)
    assert approval is not None, "the step waits for an answer"
    return approval.digests


def deciding_event(run_context: RunContext, node: Node) -> AwaitedEvent | None:
    """Return the event with which the waiting step of a node advances, if it is there; a rejection may not do."""
    event = awaited_event(run_context, node) if run_context.pending(node) is not None else None
    return event if event is not None and (event.is_met or node.preferences.never_stops) else None


def came_before(run_context: RunContext, node: Node) -> bool:
    """Say whether the event that the waiting step of a node takes was recorded before the run came there.

    What comes later does not change it, so a repeated answer says the same (ADV-5).
    """
    event = deciding_event(run_context, node)
    return event is not None and run_context.session.outside.events[event.event_id].index < node.index


def unknown_signer(run_context: RunContext, node: Node) -> Signed | None:
    """Return the signature for whose key alone the step of a node still waits: it is not configured here (WORLD-10)."""
    awaits = pending_task(run_context, node).awaits
    if awaits is None or awaits.assurance != "signed" or run_context.signing_keys is None:
        return None
    here = chain_head(run_context.session, node).node
    demand = Demand(kind=awaits.event, assurance=awaits.assurance)
    found = run_context.session.outside.first_match(node.run, demand, here, node.taken)
    is_unknown = found is not None and has_unknown_key(found.data, run_context.signing_keys)
    return found.data.signed if found is not None and is_unknown else None


def _emitted(run_context: RunContext, node: Node) -> frozenset[int]:
    """Return the numbers of the step's intents that are sent once in a run and that this run has recorded."""
    pending = run_context.pending(node)
    assert pending is not None, "a node with an attempt is not complete"
    intents = run_context.session.outside.intents
    return frozenset(
        number
        for number, one in enumerate(pending_task(run_context, node).emits)
        if one.once is not None and intent_id(node.run, None, pending.step_id, number) in intents
    )


def pending_task(run_context: RunContext, node: Node) -> Task:
    """Return the task that is pending at a node with an attempt.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    pending = run_context.pending(node)
    assert pending is not None, "a node with an attempt is not complete"
    task = run_context.workflow.steps[pending.step_id].task
    assert task is not None, "a pending step is a task"
    return task


def retry_node(run_context: RunContext, node: Node) -> Node:
    """Return the node to fork after a step was refused too often: its own, or of a step that waits the one before it.

    A step that waits takes the same event again, so the nearest step before it that does not wait is redone; if there
    is none, the waiting step itself (WORLD-4).

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    here = own = chain_head(run_context.session, node)
    while pending_task(run_context, here).awaits is not None:
        if here.parent is None:
            return own
        here = chain_head(run_context.session, run_context.session.nodes[here.parent])
    return here


def _reporters(run_context: RunContext, node: Node) -> Iterator[tuple[str, Actor | None]]:
    """Yield who last reported each step that the pending one verifies, on this branch; a skipped step has nobody.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    task = pending_task(run_context, node)
    wanted = set(task.verifies if task.by is not None else ())
    here = chain_head(run_context.session, node)
    # A step node was made by the report of the step that was pending at the node before it.
    while wanted and here.parent is not None:
        parent = run_context.session.nodes[here.parent]
        reported = _pending(run_context, parent)
        if reported in wanted:
            wanted.discard(reported)
            yield reported, here.actor
        here = chain_head(run_context.session, parent)


def _pending(run_context: RunContext, node: Node) -> str:
    pending = run_context.pending(node)
    assert pending is not None, "a node with an attempt is not complete"
    return pending.step_id


def ending_of(run_context: RunContext, work: WorkRecorded, actor: Actor | None, reply: Reply | None) -> RunEnding:
    """Build the question whether a run ends, from the log.

    Raises:
        ContentDamagedError: The snapshot of its preferred tip is missing or damaged.
    """
    session, run, view = run_context.session, run_context.run, run_context.view()
    assert run.tip is not None, "a run has a root"
    return RunEnding(
        session=session.session,
        run=run.run,
        title=f"{run_context.workflow.name}: run {view.label}",
        is_complete=run_context.pending(session.nodes[run.tip]) is None,
        work=work,
        actor=actor,
        reply=reply,
    )


def _earlier_notes(session: Session, node: Node) -> str | None:
    """Return the notes that were accepted for the step before a node's own; None if it has none."""
    return notes_of_attempt(chain_head(session, node))


def _open_gaps(session: Session, node: Node) -> Iterator[tuple[AttemptId, GapRecorded]]:
    """Yield the open gaps of all attempts on a node's step, on the whole chain of refused attempts."""
    waiting = [chain_head(session, node)]
    while waiting:
        here = waiting.pop()
        for attempt in attempts_on(here):
            advance = session.advance(here.node, attempt)
            if advance is None:
                continue
            child = session.nodes[advance.child]
            yield from ((attempt, gap) for gap in child.gaps if gap.gap_id in session.open_gaps)
            if child.kind == "blocked_attempt":
                waiting.append(child)
