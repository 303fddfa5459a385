"""`interlock session …`: look at what was recorded, and mark what stays. No session is altered."""

# ruff: noqa: PLC0415 — each command is imported when it is chosen
import argparse
import os
from collections.abc import Callable
from typing import TypeAlias

from interlock.cli.group import Command, run_in_group

AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]
"""`add_parser` of what `add_subparsers` returns."""

_DESCRIPTION = """Look at recorded sessions, and mark those that stay. No command here alters a session.
Exit codes: 0 fine, 1 something does not verify or is not there, 2 the command line is wrong."""


def add_session_commands(add_parser: AddParser) -> None:
    """Add the command group to a parser's commands."""
    group = add_parser("session", help="verify and explain what was recorded", description=_DESCRIPTION)
    actions = group.add_subparsers(dest="action", metavar="action", required=True).add_parser
    verify = _action(actions, "verify", "make every recorded decision again and compare")
    verify.add_argument("sessions", metavar="SESSION", nargs="*", help="session ids; without, all of them")
    verify.add_argument(
        "--force", dest="is_forced", action="store_true", help="compare what another build of Interlock decided, too"
    )
    explain = _action(actions, "explain", "show why a run stands where it stands: conditions, inputs, the way taken")
    explain.add_argument("node", metavar="NODE|TOKEN", help="a node's id, or a stateToken or ackToken of it")
    for name, words in (("keep", "let sessions stay whatever their age"), ("unkeep", "let kept sessions expire again")):
        _action(actions, name, words).add_argument("sessions", metavar="SESSION", nargs="+", help="session ids")


def _action(actions: AddParser, name: str, words: str) -> argparse.ArgumentParser:
    parser = actions(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    # A default here would undo a value that was given before the command.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="where sessions are kept (INTERLOCK_DATA_DIR)")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON value instead")
    return parser


def run_session(chosen: argparse.Namespace) -> int:
    """Run one command of the group and return its exit code."""
    return run_in_group("session", lambda: _command(chosen), as_json=getattr(chosen, "as_json", False))


def _command(chosen: argparse.Namespace) -> Command:
    """Import a command and return it with its arguments."""
    from interlock.cli.arguments import place_arguments
    from interlock.server.settings import data_dir_of
    from interlock.store.local.store import LocalStore

    store = LocalStore(data_dir := data_dir_of(os.environ, place_arguments(chosen)))
    if chosen.action in ("keep", "unkeep"):
        from interlock.cli.session.keep import run_keep, run_unkeep

        run = run_keep if chosen.action == "keep" else run_unkeep
        return lambda: run(data_dir, chosen.sessions, as_json=chosen.as_json)
    if chosen.action == "verify":
        from interlock.cli.session.verify import run_verify

        return lambda: run_verify(store, chosen.sessions, as_json=chosen.as_json, is_forced=chosen.is_forced)
    from interlock.cli.session.explain import run_explain

    return lambda: run_explain(store, chosen.node, as_json=chosen.as_json)
