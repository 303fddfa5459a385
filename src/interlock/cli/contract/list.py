"""`interlock contract list`: the contracts of the project, the published ones, and the sessions that execute one."""

import argparse

from interlock.cli.contract.chosen import project_definitions
from interlock.cli.options import add_store_options
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.session.chosen import say_damaged, say_unreadable
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.define.operations.contracts import Contract
from interlock.kernel.canonical import Json
from interlock.service.contracts.definitions import read_published
from interlock.service.contracts.lost import lost_definitions
from interlock.service.run.summaries import Unreadable, unreadable_by
from interlock.store.ports.definitions import DefinitionKey
from interlock.store.ports.errors import UNUSABLE_SESSION
from interlock.store.ports.store import StoreReader

_HEADS = ("ID", "VERSION", "NAME", "PUBLISHED", "SESSIONS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("--workflows-dir", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--core-source", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Print every contract; return the exit code."""
    store = open_chosen_store(options)
    with answered_by_store():
        archive, lost = read_published(store), lost_definitions(store, store)
        sessions, unreadable = _executions(store)
    published, damaged = archive.sound.values(), [*archive.damaged.values(), *lost.values()]
    known = {(one.id, one.version): one for one in (*published, *project_definitions(options))}
    contracts = sorted(
        (one for one in known.values() if isinstance(one, Contract)), key=lambda one: (one.name, one.version)
    )
    there = {(one.id, one.version) for one in published}
    rows: list[dict[str, Json]] = [
        {
            "id": one.id,
            "version": one.version,
            "name": one.name,
            "published": (one.id, one.version) in there,
            "sessions": [*sessions.get((one.id, one.version), [])],
        }
        for one in contracts
    ]
    if options.as_json:
        names: list[Json] = [one.name for one in damaged]
        say_json({"contracts": [*rows], "unreadable": [one.session for one in unreadable], "damaged": names})
        return 0
    if not rows:
        say("There is no contract: write one below `.interlock/operations`.")
    else:
        table = (
            (
                one.id,
                str(one.version),
                one.name,
                "yes" if row["published"] else "no",
                ", ".join(sessions.get((one.id, one.version), [])),
            )
            for one, row in zip(contracts, rows, strict=True)
        )
        say_table(_HEADS, table, ids=("ID", "SESSIONS"))
    say_damaged(damaged)
    say_unreadable(unreadable)
    return 0


def _executions(store: StoreReader) -> tuple[dict[DefinitionKey, list[str]], list[Unreadable]]:
    """Return the sessions that execute each contract, and those of which it is not known: they cannot be read."""
    found: dict[DefinitionKey, list[str]] = {}
    unreadable: list[Unreadable] = []
    for name in store.sessions():
        try:
            session = store.load(name)
        except UNUSABLE_SESSION as error:
            unreadable.append(unreadable_by(name, error))
            continue
        for bound in session.contracts[:1] if session is not None else ():
            found.setdefault((bound.contract_id, bound.contract_version), []).append(name)
    return found, unreadable
