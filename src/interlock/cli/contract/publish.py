"""`interlock contract publish`: keep definitions under their id and version, for ever."""

import argparse

from interlock.cli.contract.chosen import add_contract_arguments, contract_command
from interlock.cli.screen import RefusedError, counted, say, say_json
from interlock.cli.store import open_chosen_store
from interlock.cli.upkeep.failures import answered_by_upkeep
from interlock.kernel.errors import Refusal
from interlock.service.contracts.start import find_contract, publish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_contract_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Publish a contract and everything that it refers to; return the exit code.

    Raises:
        StopError: There is no such contract, it has faults, or a version was published with other content.
    """
    store = open_chosen_store(options)
    with answered_by_upkeep():
        gathered = find_contract(store, contract_command(options, store))
        if isinstance(gathered, Refusal):
            raise RefusedError(gathered)
        refusal = publish(store, gathered)
    if refusal is not None:
        raise RefusedError(refusal)
    if options.as_json:
        say_json(
            {"published": [{"id": one.id, "version": one.version, "name": one.name} for one in gathered.definitions]}
        )
    else:
        say(f"Published {counted(len(gathered.definitions), 'definition')} of {gathered.contract.name!r}.")
    return 0
