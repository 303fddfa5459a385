"""`interlock workflow schema`: the JSON Schema of the native form of workflow files, for editors."""

import argparse

from interlock.cli.screen import say_json
from interlock.define.native.forms import WorkflowForm
from interlock.kernel.shape.mirror import mirror_of


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(_: argparse.Namespace) -> int:
    """Print the schema; return the exit code."""
    say_json(mirror_of(WorkflowForm).model_json_schema(by_alias=True))
    return 0
