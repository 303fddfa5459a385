"""`interlock contract status`: the work of a contract and its goals, apart from each other."""

import argparse
from collections.abc import Iterator

from interlock.cli.contract.chosen import contract_session
from interlock.cli.options import add_store_options
from interlock.cli.screen import RefusedError, say, say_json
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.service.contracts.start import refuse_no_contract
from interlock.service.contracts.status import ContractStatus, read_status
from interlock.service.ports import ReadPorts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("session", metavar="SESSION", help="the session of a contract, or the label of one of its runs")


def run(options: argparse.Namespace) -> int:
    """Print the state of a contract and return the exit code.

    Raises:
        StopError: There is no such session, or it executes no contract.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        session = contract_session(store, options.session)
        status = read_status(ReadPorts.over(store, store), session)
    if status is None:
        raise RefusedError(refuse_no_contract(session))
    if options.as_json:
        say_json(status.to_json())
    else:
        say("\n".join(status_lines(status)))
    return 0


def status_lines(status: ContractStatus, indent: str = "") -> Iterator[str]:
    """Yield the state of a contract and of its parts, line by line."""
    yield f"{indent}{status.contract.name}, version {status.contract.version}: work {_words(status.execution.state)}"
    for name, state, executions in status.flows:
        runs = ", ".join(f"{one.label}{' (claimed)' if one.is_claimed else ''}" for one in executions)
        yield f"{indent}  flow {name}: {_words(state)}{f' ({runs})' if runs else ''}"
    for part in status.parts:
        yield from status_lines(part, f"{indent}  ")
    for goal in status.goals:
        yield f"{indent}  goal {goal.name}: {_words(goal.state)}"


def _words(state: str) -> str:
    return state.replace("_", " ")
