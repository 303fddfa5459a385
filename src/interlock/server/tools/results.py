"""What several tools answer, as published, and the answer of those that hand a step to the agent (SRV-4)."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from interlock.server.tools.contract import Output


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


class DiagnosticOut(Output):
    """A fault of a workflow file, with its place and its fix."""

    path: str
    code: str
    severity: str
    message: str
    fix: str
    line: int | None = None
    column: int | None = None
