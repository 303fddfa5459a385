"""The receipt of `interlock witness`: finds the run of a command, and records what became of the command."""

import argparse
import sys
from collections.abc import Callable

from interlock.cli.outside.person import word_of_command
from interlock.cli.screen import RefusedError, StopError, complain
from interlock.cli.session.chosen import chosen_run
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.kernel.errors import Refusal
from interlock.service.ports import AppendPorts, ReadPorts
from interlock.service.run.context import load_run_context
from interlock.service.run.plans import Plans
from interlock.service.trust.receipts import CommandSeen, pending_node, record_receipt


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
        """Record a receipt and say so on stderr, or say why there is none."""
        try:
            with answered_by_store():
                outcome = record_receipt(ports, (session.session, run.run, node), seen, how, actor)
                if isinstance(outcome, Refusal):
                    raise RefusedError(outcome)
        except StopError as stop:
            complain(stop, options.command, as_json=False)
            return
        said = f"the receipt is recorded as {outcome.receipt.assurance}: {outcome.receipt.fields['command']} ended with"
        print(f"interlock: run `{outcome.label}`: {said} {seen.exit}.", file=sys.stderr)

    return record
