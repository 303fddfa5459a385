"""What a command about contracts names: a contract, a session that executes one, and the definitions of a project."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.outside.writing import command_settings
from interlock.cli.screen import RefusedError, StopError
from interlock.cli.session.chosen import chosen_session, read_history
from interlock.cli.session.lifecycle.end import COMMAND_LINE
from interlock.cli.workflow.places import chosen_places
from interlock.define.operations.definitions import Definitions
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line
from interlock.kernel.uuids import Uuid
from interlock.service.contracts.start import ContractCommand, RunOrigin, observe_workspace, refuse_no_contract
from interlock.service.ports import Ports
from interlock.service.run.plans import Plans
from interlock.store.ports.definitions import DefinitionArchive
from interlock.store.ports.store import StoreReader


@frozen
class NamedContract:
    """A contract as a command line names it: its id and its version; None: the highest one."""

    contract_id: Uuid
    version: int | None


def add_contract_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a contract, and the options of the store and the project."""
    add_store_options(parser)
    parser.add_argument("--workflows-dir", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--core-source", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    named = "the id or the name of a contract, with @V for a version (default: the highest)"
    parser.add_argument("contract", metavar="ID[@V]", help=named)


def project_definitions(options: argparse.Namespace) -> Definitions:
    """Return the blocks, flows and contracts of the project."""
    places = chosen_places(options)
    return places.catalog.view(places.workspace).definitions


def contract_command(
    options: argparse.Namespace, archive: DefinitionArchive, goal: str | None = None
) -> ContractCommand:
    """Return what the command line names: a contract of the project, or a published one.

    Raises:
        StopError: No contract has this name, or several have it.
    """
    from interlock.service.contracts.definitions import read_published  # noqa: PLC0415 — only a name needs it

    places = chosen_places(options)
    definitions = places.catalog.view(places.workspace).definitions
    name, _, version = str(options.contract).partition("@")
    if version and not version.isdecimal():
        raise StopError(f"{one_line(version, ECHO_BYTES_MAX)!r} is not a version.", "Write a number.", exit_code=2)
    published = read_published(archive)
    known = [*definitions, *published.sound.values()]
    ids = {one.id for one in known if name in {one.id, one.name}} | {one for one, _ in published.damaged if one == name}
    if len(ids) != 1:
        found = f"{len(ids)} contracts have" if ids else "No contract has"
        fix = "`interlock contract list` lists the contracts and their ids."
        if published.damaged:
            fix += " Published definitions are damaged: `interlock doctor` names them."
        raise StopError(f"{found} the name {one_line(name, ECHO_BYTES_MAX)!r}.", fix, exit_code=1)
    return ContractCommand(
        contract_id=ids.pop(),
        version=int(version) if version else None,
        definitions=definitions,
        goal=goal,
        actor=COMMAND_LINE,
        workspace=places.workspace,
    )


def origin_of(options: argparse.Namespace, ports: Ports) -> RunOrigin:
    """Return who begins runs in a session that exists: a person, in the workspace of the command line."""
    return RunOrigin(actor=COMMAND_LINE, observed=observe_workspace(ports, command_settings(options).workspace))


def contract_session(store: StoreReader, name: str) -> SessionId:
    """Return the session that executes a contract.

    Raises:
        StopError: The name fits no session or several.
        RefusedError: The session executes no contract.
    """
    chosen = chosen_session(store, Plans(store), name)
    if not read_history(store, chosen).session.contracts:
        raise RefusedError(refuse_no_contract(chosen.session))
    return chosen.session


def checked_outcome(outcome: object) -> None:
    """Raise the refusal of a use case, if it is one.

    Raises:
        RefusedError: It is one.
    """
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
