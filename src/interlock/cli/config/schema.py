"""`interlock config schema`: the JSON Schema of `config.toml`, for editors."""

import argparse

from interlock.cli.screen import say_json
from interlock.config.form import config_schema


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(_: argparse.Namespace) -> int:
    """Print the schema; return the exit code."""
    say_json(config_schema())
    return 0
