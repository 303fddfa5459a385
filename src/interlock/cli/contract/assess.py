"""`interlock contract assess`: begin what the assessment of an outcome needs next."""

import argparse

from interlock.cli.contract.chosen import contract_session, origin_of
from interlock.cli.options import add_store_options
from interlock.cli.outside.writing import command_ports
from interlock.cli.screen import RefusedError, counted, say, say_json
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.errors import Refusal
from interlock.service.contracts.assess import assess_contract


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the session of a contract, or the label of one of its runs")
    parser.add_argument("outcome", metavar="OUTCOME", nargs="?", help="the name or id of an outcome (default: all)")


def run(options: argparse.Namespace) -> int:
    """Begin test flows or assessments, print what began and what is awaited, and return the exit code.

    Raises:
        StopError: There is no such session or outcome.
    """
    ports = command_ports(options)
    with answered_by_store():
        session = contract_session(open_chosen_reader(options), options.session)
        outcome = assess_contract(ports, session, options.outcome, origin_of(options, ports))
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    if options.as_json:
        say_json({"session": session, "runs": list(outcome.begun), "waiting": list(outcome.waiting)})
        return 0
    say(f"Began {counted(len(outcome.begun), 'run')}.")
    for one in outcome.waiting:
        say(f"Waiting for {one}. Then assess again.")
    return 0
