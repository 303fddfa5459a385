"""Runs the check that a step waits for, records its result, and lets the run continue (CHECK-1, CHECK-3)."""

import shlex
import time

from interlock.channels.check import CheckFault, run_command
from interlock.kernel.budgets import CHECK_COMMAND_BYTES_MAX, DISPATCH_PAUSE_S
from interlock.kernel.budgets.workflow import CHECK_BUSY_TRIES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.text import one_line
from interlock.record.events import Actor
from interlock.record.world import EventReceived
from interlock.service.outside.checks import check_refusal, result_record, results_at, waiting_check
from interlock.service.outside.receive import Intake, hold_run, take_in
from interlock.service.ports import Ports, WaitingCheck
from interlock.service.run.context import RunContext
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.send_event import Recorded, record_advancing
from interlock.store.ports.errors import SessionBusyError
from interlock.version import VERSION

RUNNER = Actor(type="system", identifier="check", metadata={"version": VERSION})
"""Who records the result of a check."""


@frozen
class CheckReport:
    """A result that was recorded, and whether the run has advanced with it."""

    waiting: WaitingCheck
    result: EventReceived
    is_advanced: bool


def run_check(ports: Ports, run_context: RunContext, after: int | None = None) -> CheckReport | Refusal | None:
    """Run the check that the preferred tip of a run waits for; None if another process runs it, or has run it.

    `after` is the number of results that the caller knows: with a further one, nothing runs.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    waiting = _waiting(run_context)
    if isinstance(waiting, Refusal):
        return waiting
    placed = ports.checks.find(waiting)
    if isinstance(placed, CheckFault):
        return check_refusal(run_context, waiting, placed)
    with ports.checks.hold(waiting.node) as lock:
        session = ports.read.load(waiting.session)
        if lock is None or session is None:
            return None
        # Only who holds the right to run it knows that no result is on its way.
        known = len(results_at(session, waiting.run, waiting.node))
        if known > (waiting.results if after is None else after):
            return None
        result = run_command(placed, lock)
        if isinstance(ports.checks.find(waiting), CheckFault):
            result = replace(result, ended="changed")
        command = one_line(shlex.join(placed.config.argv), CHECK_COMMAND_BYTES_MAX)
        recorded = _record(ports, waiting, result_record(replace(waiting, results=known), result, command))
    if isinstance(recorded, Refusal):
        return recorded
    newest = results_at(recorded.run_context.session, waiting.run, waiting.node)[-1]
    return CheckReport(waiting=waiting, result=newest.data, is_advanced=recorded.is_advanced)


def _waiting(run_context: RunContext) -> WaitingCheck | Refusal:
    tip = run_context.run.tip
    assert tip is not None, "a run has a root"
    refusal = refuse_ended(run_context)
    if refusal is not None:
        return refusal
    found = waiting_check(run_context, run_context.session.nodes[tip])
    if found is not None:
        return found
    view = run_context.view()
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}) does not wait for a check now.",
        suggestion="`interlock inbox` lists what runs wait for.",
        details={"run": view.to_json()},
    )


def _record(ports: Ports, waiting: WaitingCheck, result: EventReceived) -> Recorded | Refusal:
    """Record a result. A session that is busy is tried again: the check has run, and its result must not be lost."""
    for left in range(CHECK_BUSY_TRIES_MAX, 0, -1):
        try:
            with hold_run(ports, (waiting.session, waiting.run)) as held:
                if isinstance(held, Refusal):
                    return held
                if (refusal := refuse_ended(held.run_context)) is not None:
                    return refusal
                nothing = Intake(session=held.run_context.session)
                intake = take_in(ports, nothing, held.run_context, (result, waiting.node), RUNNER)
                return intake if isinstance(intake, Refusal) else record_advancing(ports, held, intake, RUNNER)
        except SessionBusyError:
            if left == 1:
                raise
            time.sleep(DISPATCH_PAUSE_S)
    raise AssertionError("the last try returns or raises")
