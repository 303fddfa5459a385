"""Prompts: slash commands by which a person starts or resumes a run. Rendering a prompt writes nothing.

Some clients split the text after the command at every space and ignore quotes. So the first argument is one id, and
the prompt warns that a goal of one word may be cut.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from interlock.kernel.budgets import ECHO_BYTES_MAX, GOAL_BYTES_MAX, HEADER_GOAL_BYTES_MAX, QUERY_BYTES_MAX
from interlock.kernel.errors import Refusal
from interlock.kernel.text import in_code, json_in_code, one_line, utf8_bytes
from interlock.plan.outline import input_lines
from interlock.server.threads import run_read
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.service.ports import Ports
from interlock.service.tools.list_workflows import ListCommand, list_workflows
from interlock.service.tools.resume_session import ResumeCommand, resume_session
from interlock.service.tools.start_workflow import find_startable

PROMPTS: tuple[types.Prompt, ...] = (
    types.Prompt(
        name="start",
        title="Start a workflow",
        description="Starts a workflow by its id, with a goal; without an id, lists the workflows.",
        arguments=[
            types.PromptArgument(
                name="workflowId",
                title="Workflow",
                description="Id of a workflow, for example wr.code_review.",
                required=False,
            ),
            types.PromptArgument(
                name="goal", title="Goal", description="What the work is about, in one sentence.", required=False
            ),
        ],
    ),
    types.Prompt(
        name="resume",
        title="Continue earlier work",
        description="Finds runs to continue: by a few words, or the latest runs of the project.",
        arguments=[
            types.PromptArgument(
                name="words",
                title="Words",
                description="A few words of the goal, the notes or the workflow.",
                required=False,
            )
        ],
    ),
)


class Prompts:
    """Serves the prompts of one server."""

    def __init__(self, ports: Ports, workspace: Path | None) -> None:
        self._ports = ports
        self._workspace = workspace

    async def list_prompts(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Answer `prompts/list`."""
        return types.ListPromptsResult(prompts=list(PROMPTS))

    async def get_prompt(
        self, _context: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Answer `prompts/get`.

        Raises:
            MCPError: There is no such prompt, no workflow with this id, or a text is too long for the tool's call.
        """
        sent = {name: text.strip() for name, text in (params.arguments or {}).items()}
        match params.name:
            case "start":
                text = await run_read(partial(self._start, sent.get("workflowId", ""), sent.get("goal", "")))
            case "resume":
                text = await run_read(partial(self._resume, sent.get("words", "")))
            case _:
                found = one_line(params.name, ECHO_BYTES_MAX)
                names = " or ".join(f"`{prompt.name}`" for prompt in PROMPTS)
                raise MCPError(
                    types.INVALID_PARAMS,
                    f"There is no prompt {found!r}. Use {names}.",
                )
        description = next(prompt.title for prompt in PROMPTS if prompt.name == params.name)
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=description, messages=[message])

    def _start(self, workflow_id: str, goal: str) -> str:
        _refuse_above(GOAL_BYTES_MAX, goal, "goal", "State it in a sentence.")
        if not workflow_id:
            return self._startable(goal)
        found = find_startable(self._ports.catalog.view(self._workspace), workflow_id, self._workspace)
        if isinstance(found, Refusal):
            raise MCPError(types.INVALID_PARAMS, f"{found.message} {found.suggestion}")
        entry, pinned = found
        inputs = input_lines(pinned.workflow)
        called = f"**{entry.listing.name}** (`{workflow_id}`, {entry.listing.step_count} steps)"
        toward = f' with the goal "{one_line(goal, HEADER_GOAL_BYTES_MAX)}"' if goal else ""
        call = {"workflowId": workflow_id} | ({"goal": goal} if goal else {})
        parts = [
            f"Start the workflow {called}{toward}: call `start_workflow` with",
            json_in_code(call),
            _about_goal(goal),
        ]
        if inputs:
            parts.append("\n".join(("It also takes these inputs:", *inputs)))
        parts.append("Each answer contains one step and the call that reports it as done.")
        return "\n\n".join(part for part in parts if part)

    def _startable(self, goal: str) -> str:
        listed = list_workflows(self._ports.catalog, ListCommand(workspace=self._workspace)).text
        toward = ["Add the goal to its call:", json_in_code({"goal": goal}), _about_goal(goal)] if goal else []
        parts = [
            "Start a workflow. None was named: find out which one the user wants.",
            *toward,
            f"Available workflows:\n\n{listed}",
        ]
        return "\n\n".join(part for part in parts if part)

    def _resume(self, words: str) -> str:
        _refuse_above(QUERY_BYTES_MAX, words, "words", "Send a few words.")
        call = {"query": words} if words else {}
        asked = f"Continue earlier work. `resume_session` with {in_code(json.dumps(call, ensure_ascii=False))} finds it"
        try:
            found = resume_session(self._ports.read, ResumeCommand(query=words or None, workspace=self._workspace))
        except EXPECTED_ERRORS as error:
            return f"{asked}. It failed just now: {refusal_of(error).message}"
        return (
            f"{asked}. Its current answer follows. If more than one run fits, ask the user which one to continue."
            f" Then send the call of that run.\n\n{found.text}"
        )


def _refuse_above(bytes_max: int, text: str, name: str, fix: str) -> None:
    """Refuse a text above the limit of the tool whose call would hold it."""
    if (size := utf8_bytes(text)) > bytes_max:
        raise MCPError(types.INVALID_PARAMS, f"`{name}` has {size} UTF-8 bytes; the limit is {bytes_max}. {fix}")


def _about_goal(goal: str) -> str:
    if not goal:
        return "No goal was given. If this chat says what the work is about, add it as `goal`, in one sentence."
    if " " not in goal:
        return "Some clients pass only one word: if the user wrote more than this goal, send all of it as `goal`."
    return ""
