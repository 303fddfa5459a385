"""The tool `inspect_workflow`."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from interlock.server.tools.contract import READS, Arguments, Call, Caller, Fault, Tool
from interlock.server.tools.workspace import WorkspacePath, workspace_faults, workspace_of
from interlock.service.tools.inspect_workflow import InspectAnswer, InspectCommand, inspect_workflow


class InspectArguments(Arguments):
    """Arguments of `inspect_workflow`."""

    workflow_id: Annotated[str, Field(description="An id that list_workflows returned.")]
    detail: Annotated[
        Literal["summary", "plan", "source"] | None,
        Field(description="summary (default): the steps; plan: with every prompt; source: the file as written."),
    ] = None
    workspace_path: WorkspacePath = None

    def faults(self, caller: Caller) -> Iterator[Fault]:  # noqa: ARG002 — the faults do not depend on the caller
        """See `Arguments.faults`."""
        return workspace_faults(self, self.workspace_path)

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        command = InspectCommand(
            workflow_id=self.workflow_id,
            workspace=workspace_of(self.workspace_path, caller),
            is_workspace_sent=self.workspace_path is not None,
            detail=self.detail or "summary",
        )
        return Call(run=lambda ports: inspect_workflow(ports.catalog, command))


INSPECT_WORKFLOW = Tool(
    name="inspect_workflow",
    title="Inspect a workflow",
    description="If the user wants to see what a workflow does before it is started. Never needed while a run is open,"
    " nor before start_workflow. Shows the steps; with detail=plan every prompt, with detail=source the file as"
    " written. Changes nothing.",
    arguments=InspectArguments,
    output=InspectAnswer,
    hints=READS,
)
