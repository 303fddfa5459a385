"""The receipt of `interlock witness`: finds the run of a command, and records what became of the command.

Whatever becomes of the receipt, the command has run, so no message here says to repeat it (PROOF-8).
"""

import argparse
import sys
from collections.abc import Callable

from interlock.cli.outside.person import word_of_command
from interlock.cli.screen import RefusedError, StopError, complain
from interlock.cli.session.chosen import chosen_run
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.kernel.errors import Refusal
from interlock.service.failures import EXPECTED_ERRORS, fix_of_cause
from interlock.service.ports import AppendPorts, ReadPorts
from interlock.service.run.context import load_run_context
from interlock.service.run.plans import Plans
from interlock.service.trust.receipts import CommandSeen, pending_node, record_receipt
from interlock.store.ports.errors import StoreFailureError


def prepare_receipt(options: argparse.Namespace) -> Callable[[CommandSeen], None]:
    """Find the run and its pending step, and return what records the receipt of a command for it.

    Raises:
        StopError: There is no such run, no step of it is pending, or the store failed.
    """
    how, actor = word_of_command(options)
    store = open_chosen_store(options)
    with answered_by_store():
        session, run = chosen_run(store, Plans(store), options.wanted)
        node = pending_node(load_run_context(session, run, Plans(store)))
    if isinstance(node, Refusal):
        raise RefusedError(node)
    ports = AppendPorts(read=ReadPorts.over(store, store), writer=store)

    def record(seen: CommandSeen) -> None:
        """Record a receipt and say so on stderr.

        Raises:
            StopError: It is not recorded, or may not be.
        """
        with answered_by_store():
            outcome = record_receipt(ports, (session.session, run.run, node), seen, how, actor)
        if isinstance(outcome, Refusal):
            raise RefusedError(outcome)
        said = f"the receipt is recorded as {outcome.receipt.assurance}: {outcome.receipt.fields['command']} ended with"
        print(f"interlock: run `{outcome.label}`: {said} {seen.exit}.", file=sys.stderr)

    return record


def say_no_receipt(error: StopError | OSError, exit_code: int) -> None:
    """Say on stderr that the command ran, how it ended, why its receipt is not recorded, and what to do instead."""
    cause = error.__cause__
    if isinstance(error, StopError):
        message, advice = error.message, f"For later commands: {error.fix}"
    else:
        message, advice = f"{error.strerror or 'a file operation failed'}.", "Check permissions and the disk."
    is_unknown = isinstance(cause, StoreFailureError) and cause.may_be_recorded
    if isinstance(cause, EXPECTED_ERRORS):
        advice = fix_of_cause(cause)
    recorded = "may be recorded; `interlock session timeline` shows whether it is" if is_unknown else "is not recorded"
    said = f"The command ran and ended with exit code {exit_code}. Its receipt {recorded}: {message}"
    fix = f"Do not run it again for the receipt: say in the report of the step that it ran. {advice}"
    complain(StopError(said, fix.rstrip(), exit_code=1), "witness")
