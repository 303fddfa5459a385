"""The tool `list_workflows`."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from interlock.server.tools.contract import READS, Arguments, Call, Caller, Fault, Tool
from interlock.server.tools.workspace import WorkspacePath, workspace_faults, workspace_of
from interlock.service.tools.list_workflows import ListAnswer, ListCommand, list_workflows


class ListArguments(Arguments):
    """Arguments of `list_workflows`."""

    query: Annotated[str | None, Field(description="Words that must all occur in id, name, description or tags.")] = (
        None
    )
    tag: Annotated[str | None, Field(description="Only workflows with this tag.")] = None
    workspace_path: WorkspacePath = None

    def faults(self, caller: Caller) -> Iterator[Fault]:  # noqa: ARG002 — the faults do not depend on the caller
        """See `Arguments.faults`."""
        return workspace_faults(self, self.workspace_path)

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        command = ListCommand(
            workspace=workspace_of(self.workspace_path, caller),
            is_workspace_sent=self.workspace_path is not None,
            query=self.query,
            tag=self.tag,
        )
        return Call(run=lambda ports: list_workflows(ports.catalog, command))


LIST_WORKFLOWS = Tool(
    name="list_workflows",
    title="List workflows",
    description="When the user asks for a guided or repeatable way of working (bug hunt, review, coding task), or"
    " names a workflow whose id you do not know. Not for runs that exist: use resume_session. Lists the workflows that"
    " can be started, with id, purpose and step count, and files that cannot run with their first fault. Changes"
    " nothing.",
    arguments=ListArguments,
    output=ListAnswer,
    hints=READS,
    is_always_loaded=True,
)
