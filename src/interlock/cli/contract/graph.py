"""`interlock contract graph`: a contract as a tree in the terminal, or as a mermaid diagram, with its state."""

import argparse
from collections.abc import Iterator

from interlock.cli.contract.chosen import add_contract_arguments, contract_command, contract_session
from interlock.cli.contract.status import status_lines
from interlock.cli.screen import RefusedError, say
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.define.operations.contracts import Contract
from interlock.kernel.errors import Refusal
from interlock.kernel.text import flat
from interlock.service.contracts.definitions import Gathered
from interlock.service.contracts.start import find_contract
from interlock.service.contracts.status import ContractStatus, read_status
from interlock.service.ports import ReadPorts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_contract_arguments(parser)
    parser.add_argument("--session", metavar="SESSION", help="show the state of this execution of the contract")
    parser.add_argument("--format", choices=("text", "mermaid"), default="text", help="how to draw it (default: text)")


def run(options: argparse.Namespace) -> int:
    """Draw a contract and return the exit code.

    Raises:
        StopError: There is no such contract or session, or the contract has faults.
    """
    store = open_chosen_store(options)
    with answered_by_store():
        gathered = find_contract(store, contract_command(options, store))
        if isinstance(gathered, Refusal):
            raise RefusedError(gathered)
        status: ContractStatus | None = None
        if options.session is not None:
            status = read_status(ReadPorts.over(store, store), contract_session(store, options.session))
    if options.format == "mermaid":
        say("\n".join(["flowchart LR", *_mermaid(gathered, gathered.contract, "c", status)]))
    else:
        say("\n".join(status_lines(status) if status is not None else _tree(gathered, gathered.contract, "")))
    return 0


def _tree(gathered: Gathered, contract: Contract, indent: str) -> Iterator[str]:
    yield f"{indent}{contract.name}, version {contract.version}"
    find = gathered.definitions.find
    for one in contract.work_flows:
        flow = find(one.flow_id, one.flow_version)
        yield f"{indent}  flow {flow.name if flow is not None else one.flow_id}"
    for one in contract.sub_contracts:
        part = find(one.contract_id, one.contract_version)
        if isinstance(part, Contract):
            yield from _tree(gathered, part, f"{indent}  ")
    for outcome in contract.required_outcomes:
        yield f"{indent}  goal {outcome.name}"


def _mermaid(gathered: Gathered, contract: Contract, name: str, status: ContractStatus | None) -> Iterator[str]:
    """Yield the lines of a contract: work on the one side, outcomes on the other."""
    find = gathered.definitions.find
    yield f'  {name}["{_label(contract.name, status.execution.state if status is not None else None)}"]'
    for at, one in enumerate(contract.work_flows):
        flow = find(one.flow_id, one.flow_version)
        state = status.flows[at][1] if status is not None else None
        yield f'  {name} -- work --> {name}w{at}("{_label(flow.name if flow is not None else "", state)}")'
    for at, one in enumerate(contract.sub_contracts):
        part = find(one.contract_id, one.contract_version)
        if isinstance(part, Contract):
            yield f"  {name} -- work --> {name}s{at}"
            yield from _mermaid(gathered, part, f"{name}s{at}", status.parts[at] if status is not None else None)
    for at, outcome in enumerate(contract.required_outcomes):
        state = status.goals[at].state if status is not None else None
        yield f'  {name} -. outcome .-> {name}o{at}{{{{"{_label(outcome.name, state)}"}}}}'


def _label(name: str, state: str | None) -> str:
    """Return a text for a node: no character of it can end the label."""
    words = flat(name).replace('"', "'").replace("&", "#amp;").replace("<", "#lt;").replace(">", "#gt;")
    return words if state is None else f"{words}: {state.replace('_', ' ')}"
