"""`interlock contract schema`: the JSON Schema of files of blocks, flows and contracts, for editors."""

import argparse

from interlock.cli.screen import say_json
from interlock.define.operations.schema import definitions_schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no argument: the command has none."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Print the schema and return the exit code."""
    del options
    say_json(definitions_schema())
    return 0
