"""`interlock contract claim`: let a run that has ended count for a contract too."""

import argparse

from interlock.cli.contract.chosen import contract_session
from interlock.cli.options import add_store_options
from interlock.cli.screen import RefusedError, StopError, say, say_json
from interlock.cli.session.chosen import chosen_session, read_history
from interlock.cli.session.lifecycle.end import COMMAND_LINE
from interlock.cli.store import open_chosen_store
from interlock.cli.upkeep.failures import answered_by_upkeep
from interlock.kernel.errors import Refusal
from interlock.service.contracts.claim import claim_run
from interlock.service.ports import AppendPorts, ReadPorts
from interlock.service.run.plans import Plans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("claimed", metavar="RUN", help="a run label or id, or what else names a session with one run")
    parser.add_argument("--for", dest="session", metavar="SESSION", required=True, help="the session of the contract")


def run(options: argparse.Namespace) -> int:
    """Claim a run, print what it counts for, and return the exit code.

    Raises:
        StopError: No single run was named, it has not ended, or the contract has no flow for it.
    """
    store = open_chosen_store(options)
    ports = AppendPorts(read=ReadPorts.over(store, store), writer=store)
    with answered_by_upkeep():
        chosen = chosen_session(store, Plans(store), options.claimed)
        source = read_history(store, chosen).session
        runs = chosen.runs(source)
        if len(runs) != 1:
            fix = "Name one run by its label: `interlock session list` lists them."
            raise StopError(f"{chosen.session} has {len(runs)} runs.", fix, exit_code=2)
        session = contract_session(store, options.session)
        outcome = claim_run(ports, store.upkeep, (chosen.session, runs[0]), session, COMMAND_LINE)
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    if options.as_json:
        say_json(outcome.to_json())
    else:
        place = f"{outcome.binding.role} flow {outcome.binding.position + 1}"
        say(f"Run {source.label(runs[0])} ({outcome.state}) counts for {place} of the contract.")
    return 0
