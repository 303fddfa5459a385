"""Runs the check that a step waits for, records its result, and lets the run continue (CHECK-1, CHECK-3)."""

import time

from interlock.channels.check import CheckFault, PlacedCheck, run_command
from interlock.kernel.budgets import DISPATCH_PAUSE_S
from interlock.kernel.budgets.workflow import CHECK_BUSY_TRIES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.record.world import EventReceived
from interlock.service.outside.checks import check_refusal, result_record, results_at, waiting_check
from interlock.service.ports import HeldCheck, Ports, WaitingCheck
from interlock.service.run.context import RunContext
from interlock.service.tools.check_result import command_line, lost_run, record_result
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.send_event import Recorded
from interlock.store.ports.errors import SessionBusyError


@frozen
class CheckReport:
    """A result that was recorded, and whether the run has advanced with it."""

    waiting: WaitingCheck
    result: EventReceived
    is_advanced: bool


def run_check(ports: Ports, run_context: RunContext, after: int | None = None) -> CheckReport | Refusal | None:
    """Run the check that the preferred tip of a run waits for; None if another process runs it, or has run it.

    `after` is the number of results that the caller knows: with a further one, nothing runs. If an earlier run ended
    without a result, that is recorded, and nothing runs.

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
    with ports.checks.hold(waiting.node) as held:
        session = ports.read.load(waiting.session)
        if held is None or session is None:
            return None
        # Only who holds the right to run it knows that no result is on its way.
        known = len(results_at(session, waiting.run, waiting.node))
        if known > (waiting.results if after is None else after):
            return None
        waiting = replace(waiting, results=known)
        recorded = _record(ports, waiting, lost_run(ports, waiting, held) or _result(ports, waiting, placed, held))
    if isinstance(recorded, Refusal):
        return recorded
    newest = results_at(recorded.run_context.session, waiting.run, waiting.node)[-1]
    return CheckReport(waiting=waiting, result=newest.data, is_advanced=recorded.is_advanced)


def _result(ports: Ports, waiting: WaitingCheck, placed: PlacedCheck, held: HeldCheck) -> EventReceived:
    """Run a check, and return its result."""
    held.mark(waiting.results + 1)
    result = run_command(placed, held.descriptor)
    after = ports.checks.find(waiting)
    if isinstance(after, CheckFault) or after.protected_state != placed.protected_state:
        result = replace(result, ended="changed")
    return result_record(waiting, result, command_line(placed))


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
            return record_result(ports, waiting, result)
        except SessionBusyError:
            if left == 1:
                raise
            time.sleep(DISPATCH_PAUSE_S)
    raise AssertionError("the last try returns or raises")
