"""`interlock contract resume`: begin the runs that an interrupted start did not begin."""

import argparse

from interlock.cli.contract.chosen import contract_session, origin_of
from interlock.cli.options import add_store_options
from interlock.cli.outside.writing import command_ports
from interlock.cli.screen import RefusedError, counted, say, say_json
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.errors import Refusal
from interlock.service.contracts.start import resume_contract


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the session of a contract, or the label of one of its runs")
    parser.add_argument("--goal", metavar="TEXT", help="what this execution is for; each new run names it")


def run(options: argparse.Namespace) -> int:
    """Begin a run for each work flow that has neither a run nor a claim, and return the exit code.

    Raises:
        StopError: There is no such session, or it executes no contract.
    """
    ports = command_ports(options)
    with answered_by_store():
        session = contract_session(open_chosen_reader(options), options.session)
        outcome = resume_contract(ports, session, options.goal, origin_of(options, ports))
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    if options.as_json:
        say_json({"session": outcome.session, "runs": list(outcome.runs)})
    else:
        say(f"Began {counted(len(outcome.runs), 'run')} of {outcome.contract.name}.")
    return 0
