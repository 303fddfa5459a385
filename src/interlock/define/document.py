"""The document model of a workflow: the output of both front ends, and the input of the compiler.

`at` is a path in the author's own document, for diagnostics. Names of conditions are resolved. Nothing here depends on
the dialect in which the file was written.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from interlock.decide.condition import AnyOf, Condition
from interlock.decide.criteria import Criteria
from interlock.define.diagnostics import Diagnostics
from interlock.define.parts import (
    Assessment,
    AwaitEvent,
    CapabilityName,
    CapabilityNeed,
    ContextInput,
    EmitAction,
    ExtensionPoint,
    FunctionDefinition,
    ProducedKey,
    Proof,
    RecommendedPreferences,
    Reference,
    SetAction,
    UserNeed,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen


@frozen
class TextPart:
    """Plain text. It may contain placeholders such as `{{key.path}}`."""

    text: str


@frozen
class SnippetPart:
    """A built-in text by its id. The compiler inlines it."""

    ref_id: str
    at: str


@frozen
class BindingPart:
    """The text that a slot is bound to. The compiler inlines it."""

    slot_id: str
    at: str


Prose: TypeAlias = tuple[TextPart | SnippetPart | BindingPart, ...]
"""Parts of a text, in order."""


def to_prose(text: str) -> Prose:
    """Return a plain text as prose with one part."""
    return (TextPart(text=text),)


def approval_prompt(question: str) -> str:
    """Return the prompt of a step that a person decides, if its author wrote none."""
    return f"This step asks for no work. A person decides: {question}"


DELEGATE_TEXT = (
    "Hand the work below to subagents: use your client's own subagent tool, one subagent for each piece, all started"
    " in one message so that they run at the same time. Give each what it needs to know; it does not see this chat."
    " Do not call `start_workflow` for it. Then read what they bring back, reconcile it, and report one result."
)
"""The instruction of a step that delegates, in both dialects. It is compiled into plans, so a change changes hashes."""

WAITS_TEXT = "This step asks for no work. It waits for the event"
"""The prompt of a step that waits and has none of its own. It is compiled into plans too."""

CHECKS_TEXT = "This step asks for no work. Interlock runs the check"
"""The same for a step that waits for the result of a check."""


@frozen
class PromptBlocks:
    """A prompt in parts. Each part becomes a section. An item of `output_required` may have a name."""

    goal: Prose | None = None
    constraints: tuple[Prose, ...] = ()
    procedure: tuple[Prose, ...] = ()
    output_required: tuple[tuple[str | None, Prose], ...] = ()
    verify: tuple[Prose, ...] = ()


@frozen
class Guard:
    """A condition with its path in the document. `name` is set if it refers to a named condition."""

    condition: Condition
    at: str
    name: str | None = None


@frozen
class PromptFragment:
    """A part of a prompt that is shown only if its condition is true.

    One that asks the user is not shown in a run that never stops. `work` is the number of the delegated work that it
    describes.
    """

    fragment_id: str
    text: str
    when: Guard | None
    asks_user: bool = False
    work: int | None = None


def guard_of_any(fragments: Sequence[PromptFragment], at: str) -> Guard | None:
    """Return the condition under which at least one of these fragments is shown; None if one is always shown.

    A text that announces them has this condition, so that it is never shown with nothing below it (PLAN-28).
    """
    conditions = [one.when.condition for one in fragments if one.when is not None]
    return Guard(condition=AnyOf(op="or", of=tuple(conditions)), at=at) if len(conditions) == len(fragments) else None


@frozen
class Consequence:
    """A rated level that requires more work before the step is done.

    `assessment_id` names the assessment that it applies to. None: it applies to every assessment of the step.
    """

    level: str
    guidance: str
    assessment_id: str | None
    at: str


@frozen
class EvidenceRequirements:
    """The evidence that a step requires before it is done."""

    notes: Literal["required", "optional"] = "required"
    contract_ref: str | None = None
    contract_required: bool = True
    criteria: Criteria | None = None
    assessments: tuple[str, ...] = ()
    consequences: tuple[Consequence, ...] = ()


@frozen
class AgentStep:
    """One unit of work for an agent. `owner` is `verifier` if the step checks the result of another step.

    A step with `awaits` has the owner `plugin`: no agent works on it, it is done when its event is there.

    `declares` are the produced keys that the step declares itself.
    """

    at: str
    id: str
    title: str
    prompt: Prose | PromptBlocks
    owner: Literal["agent", "verifier", "plugin", "human_gate"] = "agent"
    when: Guard | None = None
    agent_role: str | None = None
    guidance: tuple[str, ...] = ()
    fragments: tuple[PromptFragment, ...] = ()
    confirmation: Guard | None = None
    evidence: EvidenceRequirements = field(default_factory=EvidenceRequirements)
    functions: tuple[str, ...] = ()
    own_functions: tuple[FunctionDefinition, ...] = ()
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    declares: tuple[ProducedKey, ...] = ()
    sets: tuple[SetAction, ...] = ()
    emits: tuple[EmitAction, ...] = ()
    awaits: AwaitEvent | None = None
    needs_user: tuple[UserNeed, ...] = ()
    capabilities: tuple[CapabilityName, ...] = ()
    hints: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    verifies: tuple[str, ...] = ()
    by: Literal["another"] | None = None
    proofs: tuple[Proof, ...] = ()


@frozen
class LoopStep:
    """A body of steps that is repeated. `id` is the loop's id. `plan.records.Loop` explains the other fields."""

    at: str
    id: str
    title: str
    kind: Literal["while", "until", "for", "for_each"]
    max_iterations: int
    body: tuple["Step", ...]
    when: Guard | None = None
    condition: Guard | None = None
    count: int | str | None = None
    items: str | None = None
    iteration_var: str = "iteration"
    index_var: str = "index"
    item_var: str | None = None
    on_limit: Literal["exit", "block"] = "exit"
    checked: Literal["before_pass", "after_pass", "before_step"] = "before_pass"
    own_functions: tuple[FunctionDefinition, ...] = ()


@frozen
class ParallelStep:
    """Branches that do not wait for each other, and a barrier that waits for all of them."""

    at: str
    id: str
    title: str
    branches: tuple[tuple["Step", ...], ...]
    when: Guard | None = None


@frozen
class Branch:
    """Steps that are performed if a condition is true."""

    guard: Guard
    steps: tuple["Step", ...]


@frozen
class ChoiceStep:
    """Performs exactly one branch: the first whose condition is true, else `otherwise`.

    `otherwise` is None if the author did not write it.
    """

    at: str
    id: str
    title: str
    branches: tuple[Branch, ...]
    otherwise: tuple["Step", ...] | None
    when: Guard | None = None


@frozen
class TemplateStep:
    """A routine that the compiler unfolds in place. `template` is its id, or a slot that is bound to one.

    The role applies to steps of the routine that have none. The guidance is added to the first step, and the
    confirmation to the last one.
    """

    at: str
    id: str
    title: str
    template: str | BindingPart
    args: Mapping[str, Json] = field(default_factory=dict[str, Json])
    when: Guard | None = None
    agent_role: str | None = None
    guidance: tuple[str, ...] = ()
    confirmation: Guard | None = None


Step: TypeAlias = AgentStep | LoopStep | ParallelStep | ChoiceStep | TemplateStep


def inner_steps(step: Step) -> tuple[Step, ...]:
    """Return the steps directly inside a step, in document order."""
    match step:
        case LoopStep():
            return step.body
        case ParallelStep():
            return tuple(inner for branch in step.branches for inner in branch)
        case ChoiceStep():
            return (*(inner for branch in step.branches for inner in branch.steps), *(step.otherwise or ()))
        case AgentStep() | TemplateStep():
            return ()


def count_steps(document: "WorkflowDocument") -> int:
    """Count the agent steps of a workflow. A routine that is not unfolded counts as one; a loop body counts once."""
    return sum(isinstance(step, AgentStep | TemplateStep) for step in walk_steps(document.steps))


def walk_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield all steps, nested ones included, in document order."""
    for step in steps:
        yield step
        yield from walk_steps(inner_steps(step))


@frozen
class FeatureUse:
    """A feature that a workflow uses, with its configuration as the author wrote it."""

    feature_id: str
    config: Mapping[str, Json]
    at: str


@frozen
class WorkflowDocument:
    """A whole workflow.

    `requires_declared_keys`: conditions may read only keys that the document declares. It is False for the WorkRail
    dialect, which has no declarations. `warnings` are the warnings of its parser.
    """

    id: str
    name: str
    steps: tuple[Step, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    agent_role: str | None = None
    guidance: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    inputs: tuple[ContextInput, ...] = ()
    capabilities: Mapping[CapabilityName, CapabilityNeed] = field(default_factory=dict[CapabilityName, CapabilityNeed])
    features: tuple[FeatureUse, ...] = ()
    functions: tuple[FunctionDefinition, ...] = ()
    assessments: tuple[Assessment, ...] = ()
    extension_points: tuple[ExtensionPoint, ...] = ()
    recommended: RecommendedPreferences | None = None
    requires_declared_keys: bool = True
    warnings: Diagnostics = ()
