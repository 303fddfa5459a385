"""`interlock contract graph`: a contract with its two sides and its state, as lines, a mermaid diagram or a picture."""

import argparse
from collections.abc import Iterator
from typing import Literal, assert_never

from interlock.cli.contract.chosen import add_contract_arguments, contract_command, contract_session
from interlock.cli.contract.status import status_lines
from interlock.cli.screen import RefusedError, StopError, say, say_json
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.define.operations.contracts import Contract
from interlock.kernel.errors import Refusal
from interlock.kernel.text import flat
from interlock.service.contracts.definitions import Gathered
from interlock.service.contracts.start import find_shown_contract
from interlock.service.contracts.status import ContractStatus, read_status
from interlock.service.ports import ReadPorts
from interlock.views.picture.contract_picture import ContractPart, ContractShape, contract_chart
from interlock.views.picture.svg import render_svg

GraphForm = Literal["text", "mermaid", "svg"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_contract_arguments(parser)
    parser.add_argument("--session", metavar="SESSION", help="show the state of this execution of the contract")
    parser.add_argument(
        "--format", choices=("text", "mermaid", "svg"), default="text", help="how to draw it (default: text)"
    )


def run(options: argparse.Namespace) -> int:
    """Draw a contract and return the exit code.

    Raises:
        StopError: There is no such contract or session, or the contract has faults.
    """
    store = open_chosen_store(options)
    with answered_by_store():
        command = contract_command(options, store)
        gathered = find_shown_contract(store, command)
        if isinstance(gathered, Refusal):
            raise RefusedError(gathered)
        status: ContractStatus | None = None
        if options.session is not None:
            session = contract_session(store, options.session)
            status = read_status(ReadPorts.over(store, store), session)
            assert status is not None, "the session executes a contract"
            executed = status.contract
            if executed.id != command.contract_id or command.version not in (None, executed.version):
                message = f"{session} executes {executed.name!r}, version {executed.version}: another contract."
                fix = f"Draw that one: `interlock contract graph {executed.id}@{executed.version} --session {session}`."
                raise StopError(message, fix, exit_code=1)
    shape = _shape(gathered, gathered.contract) if status is None else _shape_of_status(status)
    if options.as_json:
        say_json(shape.to_json())
        return 0
    form: GraphForm = options.format
    match form:
        case "text":
            say("\n".join(_tree(shape, "") if status is None else status_lines(status)))
        case "mermaid":
            say("\n".join(["flowchart LR", *_mermaid(shape, "c")]))
        case "svg":
            print(render_svg(contract_chart(shape)))
        case _:
            assert_never(form)
    return 0


def _shape(gathered: Gathered, contract: Contract) -> ContractShape:
    find = gathered.definitions.find
    flows = [(one.alias, find(one.flow_id, one.flow_version)) for one in contract.work_flows]
    parts = [find(one.contract_id, one.contract_version) for one in contract.sub_contracts]
    return ContractShape(
        name=contract.name,
        version=contract.version,
        state=None,
        flows=tuple(ContractPart(name=alias or flow.name) for alias, flow in flows if flow is not None),
        parts=tuple(_shape(gathered, one) for one in parts if isinstance(one, Contract)),
        goals=tuple(ContractPart(name=outcome.name) for outcome in contract.required_outcomes),
    )


def _shape_of_status(status: ContractStatus) -> ContractShape:
    return ContractShape(
        name=status.contract.name,
        version=status.contract.version,
        state=status.execution.state,
        flows=tuple(ContractPart(name=name, state=state) for name, state, _ in status.flows),
        parts=tuple(map(_shape_of_status, status.parts)),
        goals=tuple(ContractPart(name=goal.name, state=goal.state) for goal in status.goals),
    )


def _tree(shape: ContractShape, indent: str) -> Iterator[str]:
    yield f"{indent}{shape.name}, version {shape.version}"
    for flow in shape.flows:
        yield f"{indent}  flow {flow.name}"
    for part in shape.parts:
        yield from _tree(part, f"{indent}  ")
    for goal in shape.goals:
        yield f"{indent}  goal {goal.name}"


def _mermaid(shape: ContractShape, name: str) -> Iterator[str]:
    """Yield the lines of a contract: work on the one side, outcomes on the other."""
    yield f'  {name}["{_escape(shape.label)}"]'
    for at, flow in enumerate(shape.flows):
        yield f'  {name} -- work --> {name}w{at}("{_escape(flow.label)}")'
    for at, part in enumerate(shape.parts):
        yield f"  {name} -- work --> {name}s{at}"
        yield from _mermaid(part, f"{name}s{at}")
    for at, goal in enumerate(shape.goals):
        yield f'  {name} -. outcome .-> {name}o{at}{{{{"{_escape(goal.label)}"}}}}'


def _escape(label: str) -> str:
    """Return a text for a node: no character of it can end the label."""
    return flat(label).replace('"', "'").replace("&", "#amp;").replace("<", "#lt;").replace(">", "#gt;")
