"""`interlock session …`: look at what was recorded, carry it elsewhere, repair it. Looking writes nothing."""

# ruff: noqa: PLC0415 — each command is imported when it is chosen
import argparse
import os
from collections.abc import Collection

from interlock.cli.group import Command, run_in_group
from interlock.cli.parsers import AddParser, add_command
from interlock.cli.session.looking import LOOKING, add_looking_commands, looking

_DESCRIPTION = """Look at recorded sessions, mark those that stay, carry them elsewhere, repair them.
Exit codes: 0 fine, 1 something does not verify or is not there, 2 the command line is wrong."""


def add_session_commands(add_parser: AddParser, said: Collection[str]) -> None:
    """Add the command group to a parser's commands; filled in where it is among the words of the command line."""
    group = add_parser(
        "session", help="look at what was recorded, carry it elsewhere, repair it", description=_DESCRIPTION
    )
    if "session" not in said:
        return
    actions = group.add_subparsers(dest="action", metavar="action", required=True).add_parser
    add_looking_commands(lambda name, words: add_command(actions, name, words))
    verify = add_command(actions, "verify", "make every recorded decision again and compare")
    verify.add_argument("sessions", metavar="SESSION", nargs="*", help="session ids; without, all of them")
    verify.add_argument(
        "--force", dest="is_forced", action="store_true", help="compare what another build of Interlock decided, too"
    )
    explain = add_command(
        actions, "explain", "show why a run stands where it stands: conditions, inputs, the way taken"
    )
    explain.add_argument("node", metavar="NODE|TOKEN", help="a node's id, or a stateToken or ackToken of it")
    export = add_command(actions, "export", "write a session with all it refers to into one file")
    export.add_argument("session", metavar="SESSION", help="the session's id, or a run's label")
    export.add_argument("--out", metavar="FILE", help="the file; `-` for standard output (SESSION.interlock.json)")
    export.add_argument(
        "--salvage", dest="is_salvage", action="store_true", help="of a damaged session, export what is sound"
    )
    export.add_argument("--force", dest="is_forced", action="store_true", help="overwrite the file")
    bring = add_command(actions, "import", "make a session of a file that export wrote")
    bring.add_argument("file", metavar="FILE", help="the file; `-` for standard input")
    repair = add_command(actions, "repair", "copy what is sound of a damaged session into a new one")
    repair.add_argument("session", metavar="SESSION", help="the damaged session's id")
    for name, words in (("keep", "let sessions stay whatever their age"), ("unkeep", "let kept sessions expire again")):
        add_command(actions, name, words).add_argument("sessions", metavar="SESSION", nargs="+", help="session ids")


def run_session(chosen: argparse.Namespace) -> int:
    """Run one command of the group and return its exit code."""
    return run_in_group("session", lambda: _command(chosen), as_json=getattr(chosen, "as_json", False))


def _command(chosen: argparse.Namespace) -> Command:
    """Import a command and return it with its arguments."""
    from interlock.cli.arguments import place_arguments
    from interlock.cli.screen import StopError
    from interlock.config.settings import SettingsError, check_data_dir, data_dir_of
    from interlock.store.opening import open_store

    data_dir = data_dir_of(os.environ, place_arguments(chosen))
    try:
        check_data_dir(data_dir)
    except SettingsError as error:
        raise StopError(error.message, error.fix, exit_code=2) from error
    store = open_store(data_dir)
    if chosen.action in LOOKING:
        return looking(chosen, store)
    match chosen.action:
        case "keep" | "unkeep":
            from interlock.cli.session.chosen import named_sessions
            from interlock.cli.session.keep import run_keep, run_unkeep

            run = run_keep if chosen.action == "keep" else run_unkeep
            return lambda: run(data_dir, named_sessions(store, chosen.sessions), as_json=chosen.as_json)
        case "verify":
            from interlock.cli.session.chosen import named_sessions
            from interlock.cli.session.verify import run_verify

            return lambda: run_verify(
                store, named_sessions(store, chosen.sessions), as_json=chosen.as_json, is_forced=chosen.is_forced
            )
        case "export":
            from interlock.cli.session.export import ExportOrder, run_export

            order = ExportOrder(
                session=chosen.session,
                out=chosen.out,
                is_salvage=chosen.is_salvage,
                is_forced=chosen.is_forced,
                as_json=chosen.as_json,
            )
            return lambda: run_export(store, order)
        case "import":
            from interlock.cli.session.import_ import run_import

            return lambda: run_import(store, chosen.file, as_json=chosen.as_json)
        case "repair":
            from interlock.cli.session.chosen import named_sessions
            from interlock.cli.session.repair import run_repair

            return lambda: run_repair(store, *named_sessions(store, [chosen.session]), as_json=chosen.as_json)
        case _:
            from interlock.cli.session.explain import run_explain

            return lambda: run_explain(store, chosen.node, as_json=chosen.as_json)
