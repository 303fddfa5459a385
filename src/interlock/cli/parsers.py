"""What the parsers of many commands have in common. It is on the way of every start, so it imports nothing else."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]
"""`add_parser` of what `add_subparsers` returns."""


def add_command(add_parser: AddParser, name: str, words: str, description: str = "") -> argparse.ArgumentParser:
    """Add a command over a data directory, which can print JSON, and return its parser."""
    parser = add_parser(name, help=words, description=description or described(words))
    # A default here would undo a value that was given before the command.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="where sessions are kept (INTERLOCK_DATA_DIR)")
    add_json(parser)
    return parser


def add_json(parser: argparse.ArgumentParser) -> None:
    """Let a command print JSON."""
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON value instead")


def described(words: str) -> str:
    """Return the short words of a command as a sentence."""
    return f"{words[0].upper()}{words[1:]}."
