"""The tool `start_workflow`."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, JsonValue

from interlock.engine.answer.structure import ExecutionAnswer
from interlock.engine.request import Request, is_sample, repeat_blank
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction
from interlock.kernel.ids import ID_BODY_PATTERN, SessionId
from interlock.kernel.text import one_line
from interlock.server.tools.contract import Arguments, Call, Caller, Fault, Hints, Tool
from interlock.server.tools.evidence import PreferencesArgument, preference_delta
from interlock.server.tools.workspace import WorkspacePath, workspace_faults, workspace_of
from interlock.service.tools.start_workflow import StartCommand, start_workflow

_SESSION_ID = rf"sess_{ID_BODY_PATTERN}"


class StartArguments(Arguments):
    """Arguments of `start_workflow`."""

    workflow_id: Annotated[str, Field(description="An id that list_workflows returned.")]
    goal: Annotated[str | None, Field(description="What the user wants, in a sentence; every answer shows it.")] = None
    context: Annotated[
        dict[str, JsonValue] | None,
        Field(description="External inputs by name (ticket ids, paths, parameters); references, never documents."),
    ] = None
    workspace_path: WorkspacePath = None
    preferences: Annotated[
        PreferencesArgument | None,
        Field(
            description="Only what the user asked for. autonomy: guided (default: the user follows each step),"
            " full_auto_stop_on_user_deps (work alone; the run stops if evidence or the user's answer is missing),"
            " full_auto_never_stop (nothing stops the run; what is missing is recorded as a gap). riskPolicy: when to"
            " warn about facts that only you claim: conservative (default) always, balanced only if the claim opened a"
            " gate, aggressive never."
        ),
    ] = None
    session_id: Annotated[
        str | None, Field(description="Start the run in this existing session. Default: a new session.")
    ] = None

    def faults(self, caller: Caller) -> Iterator[Fault]:  # noqa: ARG002 — the faults do not depend on the caller
        """See `Arguments.faults`."""
        yield from workspace_faults(self, self.workspace_path)
        if self.goal is not None and (self.context or {}).get("goal", self.goal) != self.goal:
            without_goal = {key: value for key, value in self.sent().items() if key != "goal"}
            yield Fault(
                "goal",
                "`goal` and `context.goal` differ, but both set the same context key.",
                "Send the goal once, as `goal` or in `context`.",
                correction=Correction(understood=without_goal),
            )
        if self.session_id is not None and re.fullmatch(_SESSION_ID, self.session_id) is None:
            yield Fault(
                "sessionId",
                f"Found {one_line(self.session_id, ECHO_BYTES_MAX)!r}, which is not a session id.",
                "Copy `sessionId` from an answer of that session, or leave it out to start a new one.",
                correction=Correction(instead={"sessionId": None}, understood=self.sent()),
            )
        if is_sample(self.goal, repeat_blank("goal")):
            yield Fault("goal", "This is sample text, not a goal.", "Send what the user wants, or leave it out.")

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        goal: dict[str, Json] = {} if self.goal is None else {"goal": self.goal}
        session = None if self.session_id is None else SessionId(self.session_id)
        command = StartCommand(
            workflow_id=self.workflow_id,
            workspace=workspace_of(self.workspace_path, caller),
            is_workspace_sent=self.workspace_path is not None,
            request=Request(
                context=dict(self.context or {}) | goal,
                preferences=preference_delta(self.preferences),
                asking=caller.asking,
            ),
            session=session,
            actor=caller.actor,
        )
        return Call(run=lambda ports: start_workflow(ports, command), session=session, begins_run=True)


START_WORKFLOW = Tool(
    name="start_workflow",
    title="Start a workflow",
    description="Once, to begin a run of a workflow: returns the first step and the call that reports it as done."
    " Never while a run is open: continue that run with continue_workflow, or find it with resume_session. Each"
    " call starts another run. A run is stored: it survives a crash, a new chat and a change of agent.",
    arguments=StartArguments,
    output=ExecutionAnswer,
    hints=Hints(is_read_only=False, is_idempotent=False),
)
