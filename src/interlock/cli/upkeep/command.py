"""`interlock gc`, `interlock keys …` and `interlock doctor`: what a data directory needs now and then."""

# ruff: noqa: PLC0415 — each command is imported when it is chosen
import argparse
import os

from interlock.cli.group import Command, run_in_group
from interlock.cli.parsers import AddParser, add_command

CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "json")
"""The clients that `doctor --client` knows."""

_GC = """Take sessions that have expired and files that nothing refers to any more: first into the directory `trash`,
for good with the next run. Where any session is damaged or newer than this release, nothing is taken.
Exit codes: 0 fine, 1 nothing could be taken, and why is said, 2 the command line is wrong."""
_KEYS = """See and rotate the keys that sign tokens. No key is ever printed.
Exit codes: 0 fine, 1 the key ring cannot be used, 2 the command line is wrong."""
_DOCTOR = """Look whether everything is as it should be, and say what to do where it is not. Nothing is written.
Exit codes: 0 all is fine, 1 something needs attention, 2 the command line is wrong."""


def add_upkeep_commands(add_parser: AddParser) -> None:
    """Add the commands to a parser's commands."""
    gc = add_command(add_parser, "gc", "take what has expired and what nothing refers to", _GC)
    gc.add_argument("--dry-run", dest="is_dry_run", action="store_true", help="show what would go, and write nothing")
    keys = add_parser("keys", help="see and rotate the keys that sign tokens", description=_KEYS)
    actions = keys.add_subparsers(dest="action", metavar="action", required=True).add_parser
    add_command(actions, "status", "show how many keys there are, how old and how private")
    add_command(actions, "rotate", "sign with a new key; the one before goes on verifying until the next rotation")
    doctor = add_command(add_parser, "doctor", "look whether everything is as it should be", _DOCTOR)
    doctor.add_argument(
        "--deep", dest="is_deep", action="store_true", help="read every record and every file that one refers to"
    )
    doctor.add_argument("--client", choices=CLIENTS, help="print only how to register with this client")


def run_upkeep(chosen: argparse.Namespace) -> int:
    """Run one of the commands and return its exit code."""
    return run_in_group(chosen.command, lambda: _command(chosen), as_json=chosen.as_json)


def _command(chosen: argparse.Namespace) -> Command:
    """Import a command and return it with its arguments."""
    from interlock.cli.arguments import place_arguments

    arguments = place_arguments(chosen)
    match chosen.command:
        case "gc":
            from interlock.cli.upkeep.gc import run_gc

            return lambda: run_gc(os.environ, arguments, is_dry_run=chosen.is_dry_run, as_json=chosen.as_json)
        case "keys":
            from interlock.cli.upkeep.keys import run_rotate, run_status

            run = run_rotate if chosen.action == "rotate" else run_status
            return lambda: run(os.environ, arguments, as_json=chosen.as_json)
        case _:
            from interlock.cli.upkeep.doctor import run_client, run_doctor

            if chosen.client is not None:
                return lambda: run_client(os.environ, arguments, chosen.client, as_json=chosen.as_json)
            return lambda: run_doctor(os.environ, arguments, is_deep=chosen.is_deep, as_json=chosen.as_json)
