"""`interlock workflow inspect`: show a workflow as an agent sees it before a start."""

import argparse

from interlock.cli.options import add_json
from interlock.cli.screen import StopError, say, say_json
from interlock.cli.workflow.places import add_place_options, chosen_places, workflow_of
from interlock.kernel.errors import Refusal
from interlock.service.tools.inspect_workflow import Detail, InspectCommand, inspect_workflow, plan_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow_id", metavar="ID", help="the id of a workflow")
    parser.add_argument(
        "--detail",
        choices=["summary", "plan", "source"],
        default="summary",
        help="a summary (default), the plan with all prompts, or the workflow file",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print a workflow as the tool `inspect_workflow` returns it, but the plan complete; return the exit code.

    Raises:
        StopError: There is no such workflow, or it has faults.
    """
    places, workflow_id = chosen_places(options), str(options.workflow_id)
    detail: Detail = options.detail
    _, pinned = workflow_of(places, workflow_id)
    # The service shortens a plan that is too long for an answer; a terminal shows all of it.
    asked = "summary" if detail == "plan" else detail
    command = InspectCommand(workflow_id=workflow_id, workspace=places.workspace, is_workspace_sent=True, detail=asked)
    answer = inspect_workflow(places.catalog, command)
    whole = plan_text(places.catalog, workflow_id, places.workspace)
    if isinstance(answer, Refusal) or isinstance(whole, Refusal):
        raise StopError("The file was changed while it was read.", "Run the command again.", exit_code=1)
    if options.as_json:
        plan = {"plan": pinned.workflow.plan.to_json()} if detail == "plan" else {}
        say_json({**answer.structure, **plan})
    else:
        say(whole if detail == "plan" else answer.text)
    return 0
