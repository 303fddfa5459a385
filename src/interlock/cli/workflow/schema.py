"""`interlock workflow schema`: the JSON Schema of workflow files in the native form, or of plan files, for editors."""

import argparse

from interlock.cli.screen import say_json
from interlock.define.native.forms import WorkflowForm
from interlock.kernel.shape.mirror import mirror_of
from interlock.plan.check.plan_file import plan_file_schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--plan",
        dest="is_of_plans",
        action="store_true",
        help="the schema of plan files, as `workflow plan --json` prints",
    )


def run(options: argparse.Namespace) -> int:
    """Print the schema; return the exit code."""
    say_json(plan_file_schema() if options.is_of_plans else mirror_of(WorkflowForm).model_json_schema(by_alias=True))
    return 0
