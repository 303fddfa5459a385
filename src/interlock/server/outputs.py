"""What the tools answer, as published: the models behind every output schema (TOOLS)."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from interlock.views.resume import Why
from interlock.views.status import RunStatus


class Output(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, defer_build=True)


class StepPosition(Output):
    """Where in the workflow the step stands, counted from 1."""

    number: int
    total: int | None = None
    pass_: Annotated[int | None, Field(alias="pass", description="Pass of the innermost loop, from 1.")] = None


class RunIdentity(Output):
    """Which run the answer is about."""

    label: Annotated[str, Field(description="Short name of the run; send it as `run`.")]
    workflow_id: str
    goal: str | None = None
    step: StepPosition | None = None
    session_id: str | None = None
    run_id: str | None = None
    workflow_name: str | None = None


class NextCall(Output):
    """Exactly what to send next; fill in the notes."""

    tool: str
    arguments: dict[str, JsonValue]


class Fork(Output):
    """The one way to redo a step that is done, on a branch of its own."""

    ack_token: str
    note: str


class Warned(Output):
    """Something to know."""

    code: str
    message: str


class BlockerOut(Output):
    """What keeps the step from advancing, and what to send instead."""

    code: str
    pointer: dict[str, JsonValue]
    message: str
    suggested_fix: str | None = None
    details: dict[str, JsonValue] | None = None


class PreferencesOut(Output):
    """How much the run may do alone, and how cautious it is."""

    autonomy: str
    risk_policy: str


class LoopPass(Output):
    """The pass of the innermost loop that the step stands in, counted from 1."""

    loop_id: str
    pass_: Annotated[int, Field(alias="pass")]
    max_iterations: int


class Pending(Output):
    """The step to perform. `parallelWith` names steps that need not wait for it."""

    step_id: str
    title: str
    prompt: str
    agent_role: str | None = None
    require_confirmation: bool | None = None
    loop: LoopPass | None = None
    parallel_with: list[str] | None = None


class ReferenceOut(Output):
    """Material the workflow points at."""

    title: str
    source: str
    id: str | None = None
    purpose: str | None = None
    authoritative: bool | None = None


class AskOut(Output):
    """One question that a person was asked, with the answer where it wanted one."""

    reason: str
    ask: str
    answer: str | None = None


class Answered(Output):
    """What a person said who was asked, and the client that asked them."""

    kind: Literal["wr.confirmation"]
    client: str
    asks: list[AskOut]
    comment: str | None = None


class ExecutionAnswer(Output):
    """Answer of `start_workflow` and `continue_workflow`."""

    kind: Literal["ok", "blocked"]
    run: RunIdentity
    next_call: NextCall | None
    state_token: str
    ack_token: str | None = None
    checkpoint_token: str | None = None
    is_complete: bool
    next_intent: Literal["perform_pending_then_continue", "await_user_confirmation", "rehydrate_only", "complete"]
    fork: Fork | None = None
    blockers: list[BlockerOut] | None = None
    retryable: bool | None = None
    warnings: list[Warned] | None = None
    preferences: PreferencesOut | None = None
    guidance: list[str] | None = None
    answered: Answered | None = None
    recap: str | None = None
    references: list[ReferenceOut] | None = None
    pending: Pending | None


class CheckpointOut(Output):
    """The bookmark that was made."""

    node_id: str


class CheckpointAnswer(Output):
    """Answer of `checkpoint_workflow`. `stateToken` is the bookmark: any later chat may look at it."""

    kind: Literal["ok"]
    run: RunIdentity
    next_call: NextCall
    state_token: str
    checkpoint_token: str | None = None
    checkpoint: CheckpointOut
    warnings: list[Warned] | None = None


class Candidate(Output):
    """A run that may be the one that is looked for. `nextCall` can be sent as it stands."""

    run: RunIdentity
    title: str
    status: RunStatus
    pending_step: str | None = None
    last_activity: str | None = None
    snippet: str
    why_matched: list[Why]
    state_token: str
    next_call: NextCall


class ResumeAnswer(Output):
    """Answer of `resume_session`: best match first."""

    candidates: list[Candidate]
    reason: Annotated[str | None, Field(description="Why nothing matched, or what the matching left out.")] = None
    more: int | None = None


class DiagnosticOut(Output):
    """A fault of a workflow file, with its place and its fix."""

    path: str
    code: str
    severity: str
    message: str
    fix: str
    line: int | None = None
    column: int | None = None


class ListedWorkflow(Output):
    """A workflow that can be started."""

    workflow_id: str
    name: str
    description: str
    tags: list[str]
    steps: int
    source_kind: str
    id_status: Literal["namespaced", "legacy"]
    canonical_id: str | None = None
    suggested_id: str | None = None


class RefusedOut(Output):
    """A file that holds no workflow that can be started."""

    source: str
    source_kind: str
    diagnostic: DiagnosticOut
    workflow_id: str | None = None


class ListAnswer(Output):
    """Answer of `list_workflows`."""

    workflows: list[ListedWorkflow]
    more: int | None = None
    refused: list[RefusedOut] | None = None
    more_refused: int | None = None


class InspectedStep(Output):
    """A step in short."""

    step_id: str
    title: str
    require_confirmation: bool
    notes_required: bool
    contract_ref: str | None = None
    loops: list[str] | None = None


class InspectAnswer(Output):
    """Answer of `inspect_workflow`."""

    workflow_id: str
    name: str
    description: str
    tags: list[str]
    workflow_hash: str
    source_kind: str
    source_ref: str
    id_status: Literal["namespaced", "legacy"]
    guidance: list[str]
    references: list[ReferenceOut]
    steps: list[InspectedStep]
    warnings: list[DiagnosticOut] | None = None
    canonical_id: str | None = None
    suggested_id: str | None = None
    examples: list[str] | None = None
    inputs: list[dict[str, JsonValue]] | None = None
    plan: dict[str, JsonValue] | None = None
    outline: list[str] | None = None
    plan_resource: str | None = None
    source: dict[str, JsonValue] | None = None
