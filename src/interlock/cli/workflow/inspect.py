"""`interlock workflow inspect`: what an agent is shown of a workflow before it starts one."""

from interlock.cli.screen import StopError, say, say_json
from interlock.cli.workflow.places import Places, workflow_of
from interlock.kernel.errors import Refusal
from interlock.service.inspect_workflow import Detail, InspectCommand, inspect_workflow, plan_text


def run_inspect(places: Places, workflow_id: str, detail: Detail, *, as_json: bool) -> int:
    """Print a workflow as `inspect_workflow` tells it, the plan always whole; return the exit code.

    Raises:
        StopError: There is no such workflow, or it has faults.
    """
    _, pinned = workflow_of(places, workflow_id)
    # The service shortens a plan that is too long for an answer; a terminal takes all of it.
    asked = "summary" if detail == "plan" else detail
    command = InspectCommand(workflow_id=workflow_id, workspace=places.workspace, detail=asked)
    answer = inspect_workflow(places.catalog, command)
    whole = plan_text(places.catalog, workflow_id, places.workspace)
    if isinstance(answer, Refusal) or isinstance(whole, Refusal):
        raise StopError("The file was changed while it was read.", "Send the same command again.", exit_code=1)
    if as_json:
        plan = {"plan": pinned.workflow.plan.to_json()} if detail == "plan" else {}
        say_json({**answer.structure, **plan})
    else:
        say(whole if detail == "plan" else answer.text)
    return 0
