"""`interlock help`: the same text as `--help` after a command."""

import argparse

from interlock.cli.commands import command_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="a command, such as `session list`")


def run(options: argparse.Namespace) -> int:
    """Print the help of the named command, or of Interlock without one; return the exit code."""
    words: list[str] = options.words
    try:
        command_line(words).parse_args([*words, "--help"])
    except SystemExit as end:  # argparse ends the process after it printed
        return int(end.code or 0)
    raise AssertionError("argparse ends after --help")
