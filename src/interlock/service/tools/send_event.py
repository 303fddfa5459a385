"""Records an event that did not come with a report, with the advance of the run if it waits for the event (WORLD-3)."""

from interlock.define.parts import AwaitEvent
from interlock.engine.advance import decide_advance
from interlock.engine.answer.structure import Warned
from interlock.engine.judge.attempt import Advanced, Refused
from interlock.engine.outside import SentEvent
from interlock.engine.request import Request
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import NodeId, RunId, SessionId, ack_attempt, node_of_attempt
from interlock.record.events import Actor, EventReceivedEvent
from interlock.record.world import Assurance, EventReceived
from interlock.service.outside.demand import is_too_late, unmet_demand
from interlock.service.outside.receive import (
    Arrival,
    HeldRun,
    Intake,
    append_decision,
    append_intake,
    checked_event,
    content_warnings,
    find_event,
    hold_run,
    take_in,
    take_in_expiry,
)
from interlock.service.ports import Ports
from interlock.service.run.attempts import attempt_on, deciding_event, pending_task
from interlock.service.run.context import RunContext
from interlock.service.tools.end_run import refuse_ended
from interlock.views.outside import Received, level_of
from interlock.views.session import Node


@frozen
class EventReport:
    """What became of an event: its record, whether this call made it, and whether the run advanced.

    `level` says how well the recorded event is known here. `unmet` is what the steps demand that wait for it,
    if none of them takes an event that is known so little. `expired` is the event without which the run advances or
    has advanced, because its step had waited longer than it may.
    """

    label: str
    received: Received
    level: Assurance
    is_new: bool
    is_advanced: bool
    warnings: tuple[Warned, ...] = ()
    unmet: AwaitEvent | None = None
    expired: str | None = None


def send_event(
    ports: Ports, where: tuple[SessionId, RunId], sent: SentEvent, how: Arrival, actor: Actor
) -> EventReport | Refusal:
    """Record an event of a run, with the advance that it allows if the run waits for this event.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    with hold_run(ports, where) as held:
        if isinstance(held, Refusal):
            return held
        run_context = replace(held.run_context, signing_keys=ports.signing_keys)
        refusal = refuse_ended(run_context) or _refuse_complete(run_context)
        checked = refusal or checked_event(run_context, sent, how, ports.sources)
        if isinstance(checked, Refusal):
            return checked
        earlier = find_event(run_context, checked, sent.node)
        intake = take_in_expiry(ports, Intake(session=run_context.session), run_context, _tip(run_context), actor)
        if not isinstance(intake, Refusal):
            intake = take_in(ports, intake, run_context, (checked, sent.node), actor)
        if isinstance(intake, Refusal):
            return intake
        expired = _expired(run_context.at(intake.session), checked, sent.node)
        recorded = record_advancing(ports, held, intake, actor)
    run_context = recorded.run_context
    received = find_event(run_context, checked, sent.node)
    assert received is not None, "it is recorded"
    return EventReport(
        label=run_context.view().label,
        received=received,
        level=level_of(received, run_context.session.trusted_from, run_context.signing_keys),
        is_new=earlier is None,
        is_advanced=recorded.is_advanced,
        warnings=tuple(content_warnings(earlier, sent)) if earlier is not None else (),
        unmet=unmet_demand(run_context.workflow, sent.event, checked.assurance),
        expired=expired,
    )


@frozen
class Recorded:
    """The run with the events that were recorded, whether it advanced with them, and the events."""

    run_context: RunContext
    events: tuple[EventReceivedEvent, ...]
    is_advanced: bool


def record_advancing(ports: Ports, held: HeldRun, intake: Intake, actor: Actor) -> Recorded:
    """Record events from outside and, if the step of the preferred tip waits for one, its advance: as one append.

    The attempt is that of the node's own ack, so an agent that calls at the same moment makes no second advance.

    Raises:
        StoreFailureError, ContentDamagedError: See `service.failures`; nothing was recorded, unless a
            `StoreFailureError` says that it may be.
    """
    run_context = replace(held.run_context, signing_keys=ports.signing_keys).at(intake.session)
    node = _tip(run_context)
    decision = _decide_waiting(ports, run_context, node, actor)
    if decision is None:
        session = append_intake(ports, held.lock, intake, actor)
        return Recorded(run_context=run_context.at(session), events=intake.events, is_advanced=False)
    session = append_decision(ports, held.lock, intake, decision, actor)
    # Who recorded an intent sends it, and nobody else by itself (WORLD-6).
    ports.outbox.offer(session.session, session.outside.of_node(node_of_attempt(ack_attempt(node.node))))
    is_advanced = isinstance(decision, Advanced)
    return Recorded(run_context=run_context.at(session), events=intake.events, is_advanced=is_advanced)


def _decide_waiting(ports: Ports, run_context: RunContext, node: Node, actor: Actor) -> Advanced | Refused | None:
    """Decide the attempt on a step that waits for an event, if the event is there; None if nothing is to record."""
    if deciding_event(run_context, node) is None:
        return None
    with ports.read.trace.span("decide"):
        attempt = (node, ack_attempt(node.node))
        decision = decide_advance(attempt_on(ports.read.reader, run_context, attempt, Request(), actor))
    return decision if isinstance(decision, Advanced | Refused) else None


def _expired(run_context: RunContext, sent: EventReceived, node: NodeId | None) -> str | None:
    """Return the event without which a step continues, because it did not come in time: of the tip, or this one."""
    tip = _tip(run_context)
    received = find_event(run_context, sent, node)
    if received is not None and is_too_late(run_context, tip, received):
        return sent.event
    event = deciding_event(run_context, tip)
    awaits = pending_task(run_context, tip).awaits if event is not None and event.is_expired else None
    return awaits.event if awaits is not None else None


def _tip(run_context: RunContext) -> Node:
    assert run_context.run.tip is not None, "a run has a root"
    return run_context.session.nodes[run_context.run.tip]


def _refuse_complete(run_context: RunContext) -> Refusal | None:
    """Refuse an event for a run that is complete, unless another branch of it has a step to do."""
    session, view = run_context.session, run_context.view()
    if run_context.pending(_tip(run_context)) is not None:
        return None
    # Only a complete run is searched, and an event for one is a mistake of its sender.
    leaves = (one for one in session.nodes.values() if one.run == run_context.run.run and not one.children)
    if any(one.kind != "checkpoint" and run_context.pending(one) is not None for one in leaves):
        return None
    return Refusal(
        code=ErrorCode.RUN_ENDED,
        message=f"Run `{view.label}` ({view.workflow_id}) is complete: no step of it waits for an event. Nothing was"
        " recorded.",
        suggestion="Send the event to another run: `interlock session list` lists them.",
        details={"run": view.to_json()},
    )
