"""`interlock contract start`: execute a contract in a new session, with a run for each work flow."""

import argparse

from interlock.cli.contract.chosen import add_contract_arguments, contract_command
from interlock.cli.outside.writing import command_ports
from interlock.cli.screen import RefusedError, counted, say, say_json
from interlock.cli.store import open_chosen_store
from interlock.cli.upkeep.failures import answered_by_upkeep
from interlock.kernel.errors import Refusal
from interlock.service.contracts.start import start_contract


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_contract_arguments(parser)
    parser.add_argument("--goal", metavar="TEXT", help="what this execution is for; each run names it")


def run(options: argparse.Namespace) -> int:
    """Start a contract, print its session, and return the exit code.

    Raises:
        StopError: There is no such contract, it has faults, or a version was published with other content.
    """
    store = open_chosen_store(options)
    ports = command_ports(options)
    with answered_by_upkeep():
        # A name that fits no contract is refused before anything is written.
        command = contract_command(options, store, options.goal)
        # Agents get tokens for the runs. If sessions exist and the ring does not, it counts as lost.
        ports.key_ring.ensure_keys()
        outcome = start_contract(ports, store, command)
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    if options.as_json:
        say_json({"session": outcome.session, "runs": list(outcome.runs)})
    else:
        runs = counted(len(outcome.runs), "run")
        say(f"{outcome.contract.name} is executed in {outcome.session}, with {runs}.")
        say("Agents find the runs with `resume_session`; `interlock contract status` shows the state.")
    return 0
