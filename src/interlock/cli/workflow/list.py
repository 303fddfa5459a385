"""`interlock workflow list`: workflows that can be started, and files that cannot, with their first fault."""

import argparse

from interlock.cli.options import add_json
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.workflow.places import add_place_options, chosen_places
from interlock.define.workflow_ids import classify_id
from interlock.kernel.budgets import CELL_DESCRIPTION_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.service.tools.list_workflows import (
    ListCommand,
    matching_entries,
)
from interlock.service.workflows.catalog import CatalogView, Entry, RefusedFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("--tag", help="only workflows with this tag")
    parser.add_argument("--query", help="only workflows with all these words in id, name, description or tags")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the workflows that match, and every file that cannot be started; return the exit code."""
    places = chosen_places(options)
    view = places.catalog.view(places.workspace)
    wanted = ListCommand(workspace=places.workspace, is_workspace_sent=True, query=options.query, tag=options.tag)
    startable, _ = matching_entries([entry for _, entry in sorted(view.entries.items())], wanted)
    refused = view.refused
    if options.as_json:
        workflows = [_workflow_json(view, one) for one in startable]
        say_json({"workflows": workflows, "refused": [_refused_json(one) for one in refused]})
        return 0
    if startable:
        say_table(("ID", "STEPS", "SOURCE", "TAGS", "WHAT IT IS"), map(_row, startable), ids=("ID",))
        for entry in startable:
            replaced = view.replaced_by(entry)
            if replaced is not None:
                words = f"{entry.source.ref} ({entry.source.kind}) is used in place of {replaced.ref} ({replaced.kind})"
                say(f"\n{entry.workflow_id}: {words}, which has the same id.")
    else:
        say("No workflow that can be started matches. Leave out --tag and --query to see all.")
    if refused:
        say("\nFiles with faults; no run can start from them:")
        say_table(("FILE", "SOURCE", "FIRST FAULT"), map(_refused_row, refused))
        say(
            "\n`interlock workflow validate` reports every fault of the project's workflows, and `interlock contract"
            " validate` those of its blocks, flows and contracts."
        )
    return 0


def _row(entry: Entry) -> tuple[str, ...]:
    words = one_line(f"{entry.listing.name}: {entry.listing.description}", CELL_DESCRIPTION_BYTES_MAX)
    return entry.workflow_id, str(entry.listing.step_count), entry.source.kind, " ".join(entry.listing.tags), words


def _workflow_json(view: CatalogView, entry: Entry) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "workflowId": entry.workflow_id,
        "name": entry.listing.name,
        "description": entry.listing.description,
        "tags": list(entry.listing.tags),
        "steps": entry.listing.step_count,
        "sourceKind": entry.source.kind,
        "source": entry.source.ref,
        "idStatus": classify_id(entry.workflow_id) or "legacy",
    }
    replaced = view.replaced_by(entry)
    if replaced is not None:
        fields["replaces"] = {"source": replaced.ref, "sourceKind": replaced.kind}
    suggested = view.suggested(entry)
    return fields | ({"suggestedId": suggested} if suggested else {})


def _refused_row(file: RefusedFile) -> tuple[str, ...]:
    return file.source.ref, file.source.kind, file.faults[0].render_line()


def _refused_json(file: RefusedFile) -> dict[str, Json]:
    fields: dict[str, Json] = {"source": file.source.ref, "sourceKind": file.source.kind}
    if file.workflow_id is not None:
        fields["workflowId"] = file.workflow_id
    fields["diagnostic"] = file.faults[0].to_json()
    return fields
