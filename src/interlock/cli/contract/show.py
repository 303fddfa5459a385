"""`interlock contract show`: a contract with its two sides, as JSON or as lines."""

import argparse
from collections.abc import Iterator

from interlock.cli.contract.chosen import add_contract_arguments, contract_command
from interlock.cli.screen import RefusedError, say, say_json
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.define.operations.files import to_file_json
from interlock.kernel.errors import Refusal
from interlock.service.contracts.definitions import Gathered
from interlock.service.contracts.start import find_shown_contract


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_contract_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print a contract and return the exit code.

    Raises:
        StopError: There is no such contract, or it has faults.
    """
    store = open_chosen_store(options)
    with answered_by_store():
        gathered = find_shown_contract(store, contract_command(options, store))
    if isinstance(gathered, Refusal):
        raise RefusedError(gathered)
    if options.as_json:
        say_json(
            {"contract": to_file_json(gathered.contract), "parts": [to_file_json(one) for one in gathered.definitions]}
        )
    else:
        say("\n".join(_lines(gathered)))
    return 0


def _lines(gathered: Gathered) -> Iterator[str]:
    contract, find = gathered.contract, gathered.definitions.find
    yield f"{contract.name}, version {contract.version} ({contract.id})"
    if contract.description:
        yield contract.description
    yield "Work:"
    names = [(one.flow_id, one.flow_version, "flow") for one in contract.work_flows]
    names += [(one.contract_id, one.contract_version, "contract") for one in contract.sub_contracts]
    for definition_id, version, kind in names:
        found = find(definition_id, version)
        yield f"  {kind} {found.name if found is not None else definition_id}, version {version}"
    yield "Outcomes:"
    for outcome in contract.required_outcomes:
        flows = [
            find(one.assessment_flow_id, one.assessment_flow_version)
            for one in contract.assessment_bindings
            if one.required_outcome_id == outcome.id
        ]
        judged = ", ".join(one.name for one in flows if one is not None) or "nothing"
        yield f"  {outcome.name}: assessed by {judged}"
