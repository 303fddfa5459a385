"""`interlock workflow adapter`: what a workflow declares of its context keys. Writes nothing."""

import argparse
import json

from interlock.cli.options import add_json
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.workflow.places import add_place_options, chosen_places, chosen_workflow
from interlock.plan.adapter import AdapterKey, UndeclaredKey


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow", metavar="ID|FILE")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the adapter manifest of an id or a file, with its digest. Return the exit code.

    Raises:
        StopError: There is no such workflow, or it has faults.
    """
    _, pinned = chosen_workflow(chosen_places(options), options.workflow)
    manifest = pinned.workflow.adapter
    if options.as_json:
        say_json(
            {
                "workflowId": pinned.workflow.workflow_id,
                "digest": pinned.workflow.adapter_digest,
                "manifest": manifest.to_json() if manifest is not None else None,
            }
        )
        return 0
    if manifest is None:
        say("The workflow declares no context keys: it has no manifest. Files of the WorkRail dialect declare none.")
        return 0
    say(f"{manifest.workflow_id}\n{pinned.workflow.adapter_digest}\n")
    say_table(("KEY", "TYPE", "REQUIRED", "CHOICES", "SET BY"), map(_row, manifest.keys), ids=("KEY",))
    return 0


def _row(one: AdapterKey | UndeclaredKey) -> tuple[str, ...]:
    set_by = ", ".join(one.set_by) or "-"
    if isinstance(one, UndeclaredKey):
        return one.key, "any", "no", "-", set_by
    choices = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in one.choices)
    required = "yes" if one.required else "no"
    return one.key, one.type, required, choices or "-", set_by
