"""The tool contracts: the single source of names, schemas, descriptions and hints (locks 8, TOOLS).

Everything published, `tool-schemas/` and the reference tables included, is generated from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from interlock.define.schemas import flat_schema
from interlock.kernel.canonical import Json
from interlock.server.outputs import (
    CheckpointAnswer,
    ExecutionAnswer,
    InspectAnswer,
    ListAnswer,
    Output,
    ResumeAnswer,
)

_WorkspacePath = Annotated[
    str | None,
    Field(description="Absolute path of the project; its `.interlock/workflows` are read too. Default: the server's."),
]
_Tag = Annotated[str | None, Field(description="Only workflows with this tag.")]


class Arguments(BaseModel):
    """Arguments of a tool. Flat, for the sake of real clients (D18)."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        defer_build=True,
    )


class PreferencesArgument(Arguments):
    """How much the run may do alone, and how cautious it is."""

    autonomy: Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"] | None = None
    risk_policy: Literal["conservative", "balanced", "aggressive"] | None = None


class OutputArgument(Arguments):
    """The evidence of this step."""

    notes_markdown: Annotated[
        str | None,
        Field(
            description="Markdown, this step only, 10 to 30 lines: what you did and decided; what you produced (files,"
            " paths, numbers); anything notable (risks, open questions, what you left out). Never repeat earlier steps."
        ),
    ] = None
    artifacts: Annotated[
        list[dict[str, JsonValue]] | None,
        Field(
            description="Structured evidence, if the step asks for it: objects, each with a `kind`. Unasked, too:"
            " `wr.workflow_divergence` (`reason`, `summary`) where you left the script on purpose, and"
            " `wr.confirmation` (`confirmedBy`, `statement`) where an answer shows it and a person did confirm."
        ),
    ] = None


class ListArguments(Arguments):
    """Arguments of `list_workflows`."""

    query: Annotated[str | None, Field(description="Words that all occur in id, name, description or tags.")] = None
    tag: _Tag = None
    workspace_path: _WorkspacePath = None


class InspectArguments(Arguments):
    """Arguments of `inspect_workflow`."""

    workflow_id: Annotated[str, Field(description="Id from list_workflows, for example wr.code_review.")]
    detail: Annotated[
        Literal["summary", "plan", "source"] | None,
        Field(description="summary (default): steps in short; plan: with every prompt; source: the file as written."),
    ] = None
    workspace_path: _WorkspacePath = None


class StartArguments(Arguments):
    """Arguments of `start_workflow`."""

    workflow_id: Annotated[str, Field(description="Id from list_workflows, for example wr.code_review.")]
    goal: Annotated[str | None, Field(description="What the user wants, in a sentence; every answer shows it.")] = None
    context: Annotated[
        dict[str, JsonValue] | None,
        Field(description="External inputs by name (ticket ids, paths, parameters); references, never documents."),
    ] = None
    workspace_path: _WorkspacePath = None
    preferences: Annotated[
        PreferencesArgument | None,
        Field(
            description="Only what the user asked for. autonomy: guided (default, the user follows each step),"
            " full_auto_stop_on_user_deps (work on alone; the run stops where evidence or the user's word is missing),"
            " full_auto_never_stop (nothing stops the run; what is missing is recorded as a gap and told). riskPolicy:"
            " which facts that only you claim are warned of: conservative (default) all, balanced those that opened a"
            " gate, aggressive none."
        ),
    ] = None
    session_id: Annotated[
        str | None, Field(description="Begin the run in this session, beside its other runs. Default: a new session.")
    ] = None


class ContinueArguments(Arguments):
    """Arguments of `continue_workflow`."""

    ack_token: Annotated[
        str | None,
        Field(description="The last answer's `ackToken`: reports the step as done. Works once; repeating it is safe."),
    ] = None
    state_token: Annotated[
        str | None,
        Field(description="A `stateToken`; alone it only shows the step again, and then nothing else may be sent."),
    ] = None
    run: Annotated[str | None, Field(description="The run's label: a check that the token is the run you mean.")] = None
    output: Annotated[OutputArgument | None, Field(description="The step's evidence, with `ackToken` only.")] = None
    context: Annotated[
        dict[str, JsonValue] | None,
        Field(description="Context keys to set or change; null removes a key. What is stored need not be sent again."),
    ] = None
    preferences: Annotated[
        PreferencesArgument | None,
        Field(description="Only a change the user asked for; holds from the next step."),
    ] = None


class CheckpointArguments(Arguments):
    """Arguments of `checkpoint_workflow`."""

    checkpoint_token: Annotated[str, Field(description="The last answer's `checkpointToken`. Repeating it is safe.")]
    state_token: Annotated[str | None, Field(description="Optional check: a `stateToken` of the same step.")] = None
    output: Annotated[
        OutputArgument | None, Field(description="What to keep of the step so far; a later checkpoint replaces it.")
    ] = None


class ResumeArguments(Arguments):
    """Arguments of `resume_session`."""

    query: Annotated[
        str | None, Field(description="A few words of the goal, the notes or the workflow; all must occur.")
    ] = None
    workspace_path: Annotated[
        str | None, Field(description="Absolute path of the project; its runs come first. Default: the server's.")
    ] = None
    git_branch: Annotated[str | None, Field(description="The branch the run began on, or how its name begins.")] = None
    git_head_sha: Annotated[str | None, Field(description="The commit the run began on.")] = None
    session_id: Annotated[str | None, Field(description="Exactly this session.")] = None
    run_id: Annotated[str | None, Field(description="Exactly this run.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What clients may assume of a tool. None reaches outside, none destroys."""

    is_read_only: bool
    is_idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool's contract."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: type[Output]
    hints: Hints
    is_always_loaded: bool = False
    """Whether a client that loads tools on demand has this one from the start: for the two that work begins with."""

    def to_json(self) -> dict[str, Json]:
        """Return the tool as `tools/list` and `tool-schemas/` publish it."""
        told: dict[str, Json] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": flat_schema(self.arguments, "validation"),
            "outputSchema": flat_schema(self.output, "serialization"),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.hints.is_read_only,
                "destructiveHint": False,
                "idempotentHint": self.hints.is_idempotent,
                "openWorldHint": False,
            },
        }
        if self.is_always_loaded:
            told["_meta"] = {"anthropic/alwaysLoad": True}
        return told


_READS = Hints(is_read_only=True, is_idempotent=True)

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="list_workflows",
        title="List workflows",
        description="Lists the workflows that can be started, with id, purpose and step count. Use it when the user"
        " asks for a guided or repeatable way of working (bug hunt, review, coding task), or names a workflow whose id"
        " is not known. Files that cannot run are listed with their first fault. Changes nothing.",
        arguments=ListArguments,
        output=ListAnswer,
        hints=_READS,
        is_always_loaded=True,
    ),
    Tool(
        name="inspect_workflow",
        title="Inspect a workflow",
        description="Shows what a workflow would do before it is started: its steps, and with detail=plan every prompt,"
        " with detail=source the file as written. Not needed before start_workflow. Changes nothing.",
        arguments=InspectArguments,
        output=InspectAnswer,
        hints=_READS,
    ),
    Tool(
        name="start_workflow",
        title="Start a workflow",
        description="Starts a run of a workflow and returns its first step and the call that reports it done. Each call"
        " starts another run, so start once and go on with continue_workflow. A run is stored: it survives a crash, a"
        ' new chat and a change of agent. Example: {"workflowId": "wr.code_review", "goal": "Review the login'
        ' change"}.',
        arguments=StartArguments,
        output=ExecutionAnswer,
        hints=Hints(is_read_only=False, is_idempotent=False),
    ),
    Tool(
        name="continue_workflow",
        title="Continue a workflow",
        description="With ackToken: reports the pending step as done, with its notes, and returns the next step; if the"
        " evidence is not enough, the answer says what is missing and gives fresh tokens. Repeating a call is safe: it"
        " returns what was recorded. With stateToken alone: shows where the run stands, for example after a lost"
        " answer, and records nothing. Every answer holds the next call ready to fill in as nextCall. Where you did"
        " otherwise than the step says, add the artifact wr.workflow_divergence; where a person confirmed, the"
        " wr.confirmation that the answer shows."
        ' Example: {"ackToken": "ack_ab12…", "run": "ab12", "output": {"notesMarkdown": "…"}}.',
        arguments=ContinueArguments,
        output=ExecutionAnswer,
        hints=Hints(is_read_only=False, is_idempotent=True),
    ),
    Tool(
        name="checkpoint_workflow",
        title="Keep notes of an unfinished step",
        description="Keeps notes and artifacts of a step that is not done yet, and returns a stateToken as a bookmark"
        " that any later chat can look at. The step stays pending and every token stays good. Use it before a long or"
        " risky part, or when the chat may end. Repeating a call is safe."
        ' Example: {"checkpointToken": "chk_ab12…", "output": {"notesMarkdown": "Half of the tests pass…"}}.',
        arguments=CheckpointArguments,
        output=CheckpointAnswer,
        hints=Hints(is_read_only=False, is_idempotent=True),
    ),
    Tool(
        name="resume_session",
        title="Find work to go on with",
        description="Finds runs when no token is at hand: in a new chat, after lost memory, or on another machine."
        " Returns up to five runs, the best match first, each with a nextCall that can be sent as it stands and shows"
        " the pending step with what was done. A few words of the goal or the notes find that run; without them, the"
        ' latest of this project come. Changes nothing. Example: {"query": "login"}.',
        arguments=ResumeArguments,
        output=ResumeAnswer,
        hints=_READS,
        is_always_loaded=True,
    ),
)

INSTRUCTIONS = (
    "Interlock runs workflows step by step and records each one, so that work survives a crash, a new chat or a change"
    " of agent. When the user wants a workflow (a bug investigation, a review, a coding task, or one of the project's"
    " own): list_workflows, then start_workflow once. Each answer gives one step; perform it, then send the answer's"
    " nextCall with your notes of that step. Tokens are opaque: copy them whole, from the last answer of the same run."
    " Several runs may be open in one chat; each answer names its run first, and `run` is its label. If an answer was"
    " lost, repeat the same call, or send the stateToken alone. Without any token, as in a new chat, resume_session"
    " finds the run again. Before a long or risky part, checkpoint_workflow keeps notes. If an answer is blocked, do"
    " what its blockers say, with the tokens in it. What was done in a session can be read as the resource"
    " `interlock://sessions/{sessionId}`, what there is to start as `interlock://workflows`."
)


def tool_named(name: str) -> Tool | None:
    """Return the tool of a name."""
    return next((tool for tool in TOOLS if tool.name == name), None)


def argument_names(tool: Tool) -> Mapping[str, str]:
    """Return a tool's argument names as sent, with the field each fills."""
    return {field.alias or name: name for name, field in tool.arguments.model_fields.items()}
