"""Takes events from outside in: checked against the plan, each once, recorded with what they allow (WORLD-3)."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import count

from interlock.engine.answer.structure import Warned
from interlock.engine.ends import Ended
from interlock.engine.judge.attempt import Advanced, Refused
from interlock.engine.outside import SentEvent, SourceKey, declared_fault, is_signed
from interlock.kernel.budgets import CLAIMS_WAITING_MAX, EVENTS_PER_RUN_MAX, EVENTS_WAITING_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import NodeId, RunId, SessionId
from interlock.record.append_plan import AppendPlan, EventDraft, stamp
from interlock.record.events import Actor, EventReceivedEvent
from interlock.record.world import EXPIRED, UNCOUNTED, Assurance, EventReceived, Signed, Via
from interlock.service.clock import Clock
from interlock.service.outside.signatures import verified
from interlock.service.ports import AppendPorts
from interlock.service.run.attempts import awaited_event
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.evidence.approval import waiting_since
from interlock.store.ports.writer import SessionLock
from interlock.views.evolution import evolve
from interlock.views.node_position import chain_head
from interlock.views.outside import OWN_KINDS, Received, level_of
from interlock.views.session import Node, Session


@frozen
class Arrival:
    """How an event came here, and how well it is known for that: a signature counts more."""

    via: Via
    assurance: Assurance


BY_CLAIM = Arrival(via="claim", assurance="claimed")
"""An agent says so."""


def checked_event(
    run_context: RunContext, sent: SentEvent, how: Arrival, sources: Mapping[str, SourceKey]
) -> EventReceived | Refusal:
    """Return the record of an event that was sent to a run, or why it is refused. Reads nothing."""
    fault = declared_fault(run_context.workflow, sent)
    if fault is not None:
        return _refused(run_context, fault.member, fault.found, fault.fix)
    if sent.node is not None and (
        sent.node not in run_context.session.nodes or run_context.session.nodes[sent.node].run != run_context.run.run
    ):
        return _refused(run_context, "node", "The run has no such node.", "Leave `node` out, or name one of the run.")
    signed: Signed | None = None
    if sent.signed is not None:
        found = verified(run_context.run.run, sent, sources)
        if isinstance(found, str):
            return _refused(run_context, "signed", found, "Sign the event again, for this run and with this content.")
        signed = found
    return EventReceived(
        event=sent.event,
        sent_id=sent.id,
        fields=dict(sent.fields),
        assurance=how.assurance if signed is None else "signed",
        via=how.via,
        signed=signed,
    )


def find_event(run_context: RunContext, event: EventReceived, node: NodeId | None) -> Received | None:
    """Return the event of a run with the same kind, id, node, level and signer, if it is recorded (WORLD-2).

    The level is the one that counts here: an event of a bundle is not the same as one that is known better.
    """
    same = _with_id(run_context, (event.event, event.sent_id, node), event.assurance)
    return next((one for one in same if event.signed is None or _signer(one.data) == _signer(event)), None)


def find_sent(run_context: RunContext, sent: SentEvent) -> Received | None:
    """Return the recorded event that an agent sent: with its signature, or else as a claim."""
    same = _with_id(run_context, (sent.event, sent.id, sent.node), "claimed" if sent.signed is None else "signed")
    return next((one for one in same if sent.signed is None or _is_signed_by_signer(run_context, sent, one)), None)


def _with_id(run_context: RunContext, named: tuple[str, str, NodeId | None], level: Assurance) -> Iterator[Received]:
    """Yield the events of a run with a kind, an id of the sender and a node that have a level here, oldest first."""
    (kind, sent_id, node), session = named, run_context.session
    for one in session.outside.received(run_context.run.run, kind):
        is_named = (one.data.sent_id, one.node) == (sent_id, node)
        if is_named and level_of(one, session.trusted_from, run_context.signing_keys) == level:
            yield one


def free_id(run_context: RunContext, kind: str, node: NodeId, number: int) -> str:
    """Return the id of the next event of a kind that Interlock records about a node: the first that is free.

    It has a number, at least the given one: a bundle can give its events any id.
    """
    recorded = run_context.session.outside.received(run_context.run.run, kind)
    taken = {one.data.sent_id for one in recorded if one.node == node}
    return next(one for at in count(number) if (one := f"{node}.{at}") not in taken)


def _signer(event: EventReceived) -> tuple[str, str] | None:
    return (event.signed.source, event.signed.public_key) if event.signed is not None else None


def _is_signed_by_signer(run_context: RunContext, sent: SentEvent, recorded: Received) -> bool:
    """Say whether the key of a recorded event signed the sent one, too."""
    key = recorded.data.signed.public_key if recorded.data.signed is not None else None
    return key is not None and is_signed(run_context.run.run, sent, key)


@frozen
class Intake:
    """Events from outside that the next append of a session begins with, and the session as it is with them.

    Nothing of it is recorded before that append, so whatever is decided with the events is recorded with them (APP-9).
    """

    session: Session
    events: tuple[EventReceivedEvent, ...] = ()

    def plan(self) -> AppendPlan:
        """Return the plan that records the events alone."""
        return AppendPlan(session=self.session.session, drafts=(), received=self.events)


def take_in(
    ports: AppendPorts,
    intake: Intake,
    run_context: RunContext,
    event: tuple[EventReceived, NodeId | None],
    actor: Actor | None,
) -> Intake | Refusal:
    """Return the intake with one more event, unless `find_event` finds it: then the recorded one stays as it is.

    The session's lock is held: the index of the event is the one that it gets.
    """
    (data, node), session = event, intake.session
    run_context = run_context.at(session)
    if find_event(run_context, data, node) is not None:
        return intake
    refusal = limit_refusal(run_context, data, 0)
    if refusal is not None:
        return refusal
    plan = AppendPlan(session=session.session, drafts=(EventDraft(data=data, run=run_context.run.run, node=node),))
    [stamped] = stamp(plan, next_index=session.next_index, stamps=ports.stamps(actor)).events
    assert isinstance(stamped, EventReceivedEvent), "the draft is one"
    if session.holds(stamped):
        # Its bundle was imported before signatures were checked.
        return _refused(run_context, "id", "A false event of a bundle has its id.", "Send the event with another id.")
    return Intake(session=evolve(session, stamped), events=(*intake.events, stamped))


def append_intake(ports: AppendPorts, lock: SessionLock, intake: Intake, actor: Actor | None) -> Session:
    """Record the events of an intake alone, in one append; with none, nothing is written.

    Raises:
        StoreFailureError: The disk failed; they may be recorded.
    """
    return ports.append(lock, intake.plan(), actor) if intake.events else intake.session


def append_decision(
    ports: AppendPorts, lock: SessionLock, intake: Intake, decided: Advanced | Refused | Ended, actor: Actor | None
) -> Session:
    """Append the plan of a decision, after the events that it was made with, whole or not at all (APP-9).

    Raises:
        StoreFailureError: The disk failed. Nothing was recorded, unless it is `may_be_recorded`.
    """
    if isinstance(decided, Advanced):
        [(reference, _)] = decided.plan.snapshots
        ports.read.plans.keep(reference, decided.snapshot)
    return ports.append(lock, replace(decided.plan, received=intake.events), actor)


@frozen
class HeldRun:
    """A run as it is under the lock of its session, with the proof of the lock."""

    lock: SessionLock
    run_context: RunContext


@contextmanager
def hold_run(ports: AppendPorts, where: tuple[SessionId, RunId]) -> Generator[HeldRun | Refusal]:
    """Hold the lock of a run's session; give a refusal if the session was deleted since the caller read it (LOCK-10).

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    session_id, run_id = where
    with ports.hold(session_id) as lock:
        session = lock.session
        if session is None or run_id not in session.runs:
            yield refuse_gone(session_id)
        else:
            yield HeldRun(lock=lock, run_context=load_run_context(session, session.runs[run_id], ports.read.plans))


def refuse_gone(session: SessionId) -> Refusal:
    """Refuse a call about a session that was deleted after the call began."""
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"The session {session} is not there any more: it was deleted meanwhile. Nothing was recorded.",
        suggestion="`interlock session list` lists the runs that are there.",
        details={"sessionId": session},
    )


def limit_refusal(run_context: RunContext, data: EventReceived, ahead: int) -> Refusal | None:
    """Refuse an event if too many of its run wait for a step; `ahead` are recorded before it."""
    session, run = run_context.session, run_context.run.run
    waiting, known = session.outside.waiting(run) + ahead, session.outside.of_run.get(run, 0) + ahead
    waiting_max, what = EVENTS_WAITING_MAX, "events"
    if data.assurance == "claimed":
        # Claims have a share of their own, so that they cannot keep out what is known better.
        waiting, waiting_max, what = session.outside.waiting_claims(run) + ahead, CLAIMS_WAITING_MAX, "claimed events"
    if data.event not in {EXPIRED, *OWN_KINDS, *UNCOUNTED} and (waiting >= waiting_max or known >= EVENTS_PER_RUN_MAX):
        found = f"{waiting} {what} of the run wait for a step; the limit is {waiting_max}."
        if known >= EVENTS_PER_RUN_MAX:
            found = f"The run has {known} events, which is the limit."
        return _refused(run_context, "event", found, "Send no more events to this run until it has taken some.")
    return None


def content_warnings(recorded: Received, sent: SentEvent) -> Iterator[Warned]:
    """Yield that an event was sent again with other content: the first one counts."""
    if dict(recorded.data.fields) != dict(sent.fields):
        message = f"The event `{sent.event}` with this id is recorded with other fields. The first one counts."
        yield Warned(code="EVENT_CONTENT_IGNORED", message=message)


def take_in_expiry(
    ports: AppendPorts, intake: Intake, run_context: RunContext, node: Node, actor: Actor | None
) -> Intake | Refusal:
    """Take in that the step of a node waited too long, if it did: before an event that came too late (WORLD-4).

    Raises:
        ContentDamagedError: See `service.failures`.
    """
    expired = expiry_of(run_context, node, ports.clock)
    if expired is None or awaited_event(run_context, node) is not None:
        return intake
    return take_in(ports, intake, run_context, (expired, NodeId(expired.sent_id)), actor)


def expiry_of(run_context: RunContext, node: Node, clock: Clock) -> EventReceived | None:
    """Return the record that the step of a node waited longer than it may; None if it did not, or waits for nothing."""
    pending = run_context.pending(node)
    task = run_context.workflow.steps[pending.step_id].task if pending is not None else None
    since = waiting_since(run_context, node)
    if task is None or task.awaits is None or task.awaits.timeout_s is None or since is None:
        return None
    if clock.unix_ms() < (since + timedelta(seconds=task.awaits.timeout_s)).timestamp() * 1000:
        return None
    return EventReceived(
        event=EXPIRED, sent_id=chain_head(run_context.session, node).node, fields={}, assurance="executed", via="clock"
    )


def _refused(run_context: RunContext, member: str, found: str, fix: str) -> Refusal:
    view = run_context.view()
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}): {found} Nothing was recorded.",
        suggestion=fix,
        details={"path": member, "run": view.to_json()},
    )
