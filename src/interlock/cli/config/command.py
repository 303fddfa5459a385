"""`interlock config …`: see, check and describe the configuration file. Nothing here writes."""

# ruff: noqa: PLC0415 — each command is imported when it is chosen
import argparse
import os
from collections.abc import Collection

from interlock.cli.group import Command, run_in_group
from interlock.cli.parsers import AddParser, add_command

_DESCRIPTION = """See and check config.toml of the data directory. Nothing writes it but you.
Exit codes: 0 fine, 1 faults were found, 2 the command line is wrong."""


def add_config_commands(add_parser: AddParser, said: Collection[str]) -> None:
    """Add the command group to a parser's commands; filled in where it is among the words of the command line."""
    group = add_parser("config", help="see and check the configuration", description=_DESCRIPTION)
    if "config" not in said:
        return
    actions = group.add_subparsers(dest="action", metavar="action", required=True).add_parser
    show = add_command(actions, "show", "show what is in effect, where it comes from, and its hash")
    # A default here would undo a value that was given before the command.
    show.add_argument("--workflows-dir", default=argparse.SUPPRESS, help="your own workflow files")
    check = add_command(actions, "check", "check a configuration file and name every fault")
    check.add_argument("file", metavar="FILE", nargs="?", help="a file anywhere; without, that of the data directory")
    actions("schema", help="print the JSON Schema of config.toml, for editors")


def run_config(chosen: argparse.Namespace) -> int:
    """Run one command of the group and return its exit code."""
    return run_in_group("config", lambda: _command(chosen), as_json=getattr(chosen, "as_json", False))


def _command(chosen: argparse.Namespace) -> Command:
    """Import a command and return it with its arguments."""
    from interlock.cli.arguments import place_arguments
    from interlock.cli.config.check import run_check, run_schema
    from interlock.cli.config.show import run_show

    arguments = place_arguments(chosen)
    match chosen.action:
        case "show":
            return lambda: run_show(os.environ, arguments, as_json=chosen.as_json)
        case "check":
            return lambda: run_check(os.environ, arguments, chosen.file, as_json=chosen.as_json)
        case _:
            return run_schema
