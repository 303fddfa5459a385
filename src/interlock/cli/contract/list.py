"""`interlock contract list`: the contracts of the project, the published ones, and the sessions that execute one."""

import argparse

from interlock.cli.contract.chosen import project_definitions
from interlock.cli.options import add_store_options
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.store import answered_by_store, open_chosen_store
from interlock.define.operations.contracts import Contract
from interlock.kernel.canonical import Json
from interlock.service.contracts.definitions import parse_stored

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
        published = [parse_stored(data) for data in store.published().values()]
        sessions: dict[tuple[str, int], list[str]] = {}
        for name in store.sessions():
            session = store.load(name)
            for bound in session.contracts[:1] if session is not None else ():
                sessions.setdefault((bound.contract_id, bound.contract_version), []).append(name)
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
        say_json({"contracts": [*rows]})
    elif not rows:
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
    return 0
