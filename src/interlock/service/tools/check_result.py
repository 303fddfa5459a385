"""Records what became of a check: its result, or that its process ended without one (CHECK-1, CHECK-7)."""

import shlex

from interlock.channels.check import CheckFault, PlacedCheck, lost_result
from interlock.kernel.budgets import CHECK_COMMAND_BYTES_MAX
from interlock.kernel.errors import Refusal
from interlock.kernel.text import one_line
from interlock.record.events import Actor
from interlock.record.world import EventReceived
from interlock.service.outside.checks import result_record, tip_check
from interlock.service.outside.receive import Intake, hold_run, take_in
from interlock.service.ports import HeldCheck, Ports, WaitingCheck
from interlock.service.run.context import RunContext
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.send_event import Recorded, record_advancing
from interlock.version import VERSION

RUNNER = Actor(type="system", identifier="check", metadata={"version": VERSION})
"""Who records the result of a check."""


def record_result(ports: Ports, waiting: WaitingCheck, result: EventReceived) -> Recorded | Refusal:
    """Record the result of a check, with the advance that it allows.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    with hold_run(ports, (waiting.session, waiting.run)) as held:
        if isinstance(held, Refusal):
            return held
        if (refusal := refuse_ended(held.run_context)) is not None:
            return refusal
        nothing = Intake(session=held.run_context.session)
        intake = take_in(ports, nothing, held.run_context, (result, waiting.node), RUNNER)
        return intake if isinstance(intake, Refusal) else record_advancing(ports, held, intake, RUNNER)


def record_lost_run(ports: Ports, run_context: RunContext) -> bool:
    """Record that a run of the check for which a run waits ended without a result; return whether one did.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    waiting = tip_check(run_context)
    if waiting is None or not ports.checks.is_unfinished(waiting):
        return False
    with ports.checks.hold(waiting.node) as held:
        session = ports.read.load(waiting.session)
        # Another process may have recorded it meanwhile.
        now = tip_check(run_context.at(session)) if session is not None else None
        if held is None or now is None or now.node != waiting.node:
            return False
        lost = lost_run(ports, now, held)
        return lost is not None and isinstance(record_result(ports, now, lost), Recorded)


def lost_run(ports: Ports, waiting: WaitingCheck, held: HeldCheck) -> EventReceived | None:
    """Return the result of the next run of a check if that run ended without one: it began, and nobody runs it.

    A process that could not begin the run counts, too, unless it refused to run the check and would refuse it again.
    """
    code, is_begun = ports.checks.exit_of(waiting), (held.unfinished or 0) > waiting.results
    if waiting.pinned is None or (code is None and not is_begun):
        return None
    placed = ports.checks.find(waiting)
    if isinstance(placed, CheckFault) and not is_begun:
        return None
    command = "" if isinstance(placed, CheckFault) else command_line(placed)
    return result_record(waiting, lost_result(code), command)


def command_line(placed: PlacedCheck) -> str:
    """Return the command of a check as a result shows it."""
    return one_line(shlex.join(placed.config.argv), CHECK_COMMAND_BYTES_MAX)
