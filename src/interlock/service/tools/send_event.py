"""Records an event that did not come with a report, and advances the run if it waits for the event (WORLD-3)."""

from interlock.define.parts import AwaitEvent
from interlock.engine.answer.structure import Warned
from interlock.engine.outside import SentEvent
from interlock.engine.request import Request
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import RunId, SessionId, ack_attempt
from interlock.record.events import Actor
from interlock.record.outcome import AdvancedTo
from interlock.record.world import Assurance
from interlock.service.outside.demand import unmet_demand
from interlock.service.outside.receive import (
    Arrival,
    checked_event,
    content_warnings,
    find_event,
    limit_refusal,
    record_event,
)
from interlock.service.ports import Ports
from interlock.service.run.attempts import deciding_event, pending_task
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tools.advance import advance, record_expiry
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.target import Target
from interlock.views.outside import Received, level_of
from interlock.views.session import Node


@frozen
class EventReport:
    """What became of an event: its record, whether this call made it, and whether the run advanced.

    `level` says how well the recorded event is known here. `unmet` is what the steps demand that wait for it,
    if none of them takes an event that is known so little. `expired` is the event without which the run advances,
    because its step had waited longer than it may.
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
    """Record an event of a run, then make the call that the run waits for, if it waits for this event.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    session_id, run_id = where
    with ports.hold(session_id) as lock:
        session = lock.session
        if session is None or run_id not in session.runs:
            return _no_run()
        loaded = load_run_context(session, session.runs[run_id], ports.read.plans)
        run_context = replace(loaded, signing_keys=ports.signing_keys)
        refusal = refuse_ended(run_context) or _refuse_complete(run_context)
        checked = refusal or checked_event(run_context, sent, how, ports.sources)
        if isinstance(checked, Refusal):
            return checked
        earlier = find_event(run_context, checked, sent.node)
        full = limit_refusal(run_context, checked, 0) if earlier is None else None
        recorded = full or record_expiry(ports, lock, run_context, _tip(run_context), actor)
        if not isinstance(recorded, Refusal):
            recorded = record_event(ports, lock, run_context.at(recorded), (checked, sent.node), actor)
        if isinstance(recorded, Refusal):
            return recorded
        run_context = run_context.at(recorded)
    received = find_event(run_context, checked, sent.node)
    assert received is not None, "it is recorded"
    expired = _expired(run_context)
    return EventReport(
        label=run_context.view().label,
        received=received,
        level=level_of(received, run_context.session.trusted_from, run_context.signing_keys),
        is_new=earlier is None,
        is_advanced=advance_waiting(ports, run_context, actor),
        warnings=tuple(content_warnings(earlier, sent)) if earlier is not None else (),
        unmet=unmet_demand(run_context.workflow, sent.event, checked.assurance),
        expired=expired,
    )


def _expired(run_context: RunContext) -> str | None:
    """Return the event without which the step of the tip continues, because it did not come in time."""
    tip = _tip(run_context)
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


def advance_waiting(ports: Ports, run_context: RunContext, actor: Actor) -> bool:
    """Advance a run whose preferred tip waits for an event that is there; say whether it advanced.

    The attempt is that of the node's own ack, so an agent that calls at the same moment makes no second advance.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError: As above.
    """
    run_context = replace(run_context, signing_keys=ports.signing_keys)
    tip = run_context.run.tip
    assert tip is not None, "a run has a root"
    node = run_context.session.nodes[tip]
    if deciding_event(run_context, node) is None:
        return False
    target = Target(run_context=run_context, node=node, ring=ports.key_ring.ensure_keys(), attempt=ack_attempt(tip))
    advance(ports, target, Request(), actor)
    # The outcome says less than the log: a refused attempt is an answer, too.
    session = ports.read.load(run_context.session.session)
    recorded = session.advance(tip, ack_attempt(tip)) if session is not None else None
    return recorded is not None and isinstance(recorded.outcome, AdvancedTo)


def _no_run() -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message="The run is not there any more.",
        suggestion="`interlock session list` lists the runs.",
    )
