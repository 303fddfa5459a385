"""The document model: what a workflow says, whichever form it was written in.

Every front end ends here and the compiler begins here. `at` is the place in the author's own document, for
diagnostics. Conditions have their names resolved; nothing here depends on how it was spelled.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from interlock.decide.condition import Condition
from interlock.decide.criteria import Criteria
from interlock.define.diagnostics import Diagnostics
from interlock.define.parts import (
    Assessment,
    CapabilityName,
    CapabilityNeed,
    ContextInput,
    ExtensionPoint,
    FunctionDefinition,
    RecommendedPreferences,
    Reference,
    SetAction,
    UserNeed,
)
from interlock.kernel.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text as it stands; it may hold `{{key.path}}`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetPart:
    """A text of ours by its id, inlined when the document is compiled."""

    ref_id: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingPart:
    """What a slot is bound to, inlined when the document is compiled."""

    slot_id: str
    at: str


Prose: TypeAlias = tuple[TextPart | SnippetPart | BindingPart, ...]
"""Text in parts, one after the other."""


def to_prose(text: str) -> Prose:
    """Return plain text as prose."""
    return (TextPart(text=text),)


DELEGATE_TEXT = (
    "Hand the work below to subagents: use your client's own subagent tool, one subagent for each piece, all started"
    " in one message so that they run at the same time. Give each what it needs to know; it does not see this chat."
    " Do not call `start_workflow` for it. Then read what they bring back, reconcile it, and report one result."
)
"""What a step that delegates says, whichever form it was written in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlocks:
    """A prompt in parts; each part becomes a section. An item of `output_required` may have a name."""

    goal: Prose | None = None
    constraints: tuple[Prose, ...] = ()
    procedure: tuple[Prose, ...] = ()
    output_required: tuple[tuple[str | None, Prose], ...] = ()
    verify: tuple[Prose, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition where it stands. `name` is that of a condition defined by name, if it is one."""

    condition: Condition
    at: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFragment:
    """A part of a prompt that is shown only where its condition holds."""

    fragment_id: str
    text: str
    when: Guard | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """An assessed level that calls for more work before the step is done. None: of any assessment of the step."""

    level: str
    guidance: str
    assessment_id: str | None
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRequirements:
    """What must come back before a step is done."""

    notes: Literal["required", "optional"] = "required"
    contract_ref: str | None = None
    contract_required: bool = True
    criteria: Criteria | None = None
    assessments: tuple[str, ...] = ()
    consequences: tuple[Consequence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep:
    """One unit of work for an agent; `owner` is `verifier` where it checks what another step made."""

    at: str
    id: str
    title: str
    prompt: Prose | PromptBlocks
    owner: Literal["agent", "verifier"] = "agent"
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
    sets: tuple[SetAction, ...] = ()
    needs_user: tuple[UserNeed, ...] = ()
    capabilities: tuple[CapabilityName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStep:
    """A body that is passed through again and again; `id` is the loop's id. See `plan.records.Loop` for the rest."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelStep:
    """Branches that do not wait for each other, and a barrier that waits for all."""

    at: str
    id: str
    title: str
    branches: tuple[tuple["Step", ...], ...]
    when: Guard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Steps that are taken where a condition holds."""

    guard: Guard
    steps: tuple["Step", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceStep:
    """Exactly one way is taken: the first branch that holds, else `otherwise`. None: the author gave none."""

    at: str
    id: str
    title: str
    branches: tuple[Branch, ...]
    otherwise: tuple["Step", ...] | None
    when: Guard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStep:
    """A routine that is unfolded in place when the document is compiled. A slot stands for what it is bound to.

    The role holds for steps of the routine that have none; guidance is said with the first step, and the last one is
    what a person confirms.
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
    """Return how many steps a workflow hands out at most once each; a routine that is not unfolded counts as one."""
    return sum(isinstance(step, AgentStep | TemplateStep) for step in walk_steps(document.steps))


def walk_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps and everything nested in them, in document order."""
    for step in steps:
        yield step
        yield from walk_steps(inner_steps(step))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUse:
    """A feature that a workflow uses, with its configuration as written."""

    feature_id: str
    config: Mapping[str, Json]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDocument:
    """A whole workflow.

    `is_checked_for_keys` says whether conditions may read only keys that the document declares; files of a dialect
    that has no declarations are not held to that. `warnings` are those found while its form was read.
    """

    id: str
    name: str
    steps: tuple[Step, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
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
