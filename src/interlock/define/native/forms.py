"""The native language as it is written: one closed form per part, published as a JSON Schema.

All keys are camelCase. What a form says is lowered into the document model in `lowering`.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from interlock.define.parts import (
    Assessment,
    CapabilityName,
    CapabilityNeed,
    ContextInput,
    ContextPath,
    DeclaredKey,
    ExtensionPoint,
    FunctionDefinition,
    Lines,
    LongText,
    Name,
    Part,
    RecommendedPreferences,
    Reference,
    SafeId,
    SetAction,
    Title,
    UserNeed,
)
from interlock.kernel.budgets import DESCRIPTION_CHARS_MAX, LOOP_PASSES_MAX, STEPS_MAX
from interlock.kernel.canonical import Json


def _text_or_list(value: object) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<text>"


def _object_or_list(value: object) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<object>"


def _text_or_object(value: object) -> str:
    return "<text>" if isinstance(value, str) else "<object>"


class ConditionForm(Part):
    """A condition: `var` with exactly one operator, or exactly one of `and`, `or`, `not`, or a `kind`.

    `condition_ref` stands for a condition of the workflow's `conditions`; `loop_control` holds while the
    loop-control artifact says `continue`.
    """

    var: ContextPath | None = None
    equals: Json = None
    not_equals: Json = None
    gt: int | float | None = None
    gte: int | float | None = None
    lt: int | float | None = None
    lte: int | float | None = None
    in_: Annotated[tuple[Json, ...] | None, Field(alias="in", strict=False)] = None
    contains: Json = None
    starts_with: str | None = None
    ends_with: str | None = None
    exists: bool | None = None
    and_: Annotated[tuple["ConditionForm", ...] | None, Field(alias="and", min_length=1, strict=False)] = None
    or_: Annotated[tuple["ConditionForm", ...] | None, Field(alias="or", min_length=1, strict=False)] = None
    not_: Annotated["ConditionForm | None", Field(alias="not")] = None
    kind: Literal["condition_ref", "loop_control"] | None = None
    condition_id: SafeId | None = None


class CriteriaForm(Part):
    """What the notes must hold: a rule by its `type`, or exactly one of `and`, `or`, `not`."""

    type: Literal["contains", "regex", "length"] | None = None
    value: Annotated[str, Field(min_length=1)] | None = None
    pattern: Annotated[str, Field(min_length=1)] | None = None
    flags: Annotated[str, Field(pattern=r"^[ims]*$")] | None = None
    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None
    message: str | None = None
    when: ConditionForm | None = None
    and_: Annotated[tuple["CriteriaForm", ...] | None, Field(alias="and", min_length=1, strict=False)] = None
    or_: Annotated[tuple["CriteriaForm", ...] | None, Field(alias="or", min_length=1, strict=False)] = None
    not_: Annotated["CriteriaForm | None", Field(alias="not")] = None


class ProsePart(Part):
    """A part of a prompt: `text`, the text of a `wr.refs.*` reference, or what a slot is bound to."""

    kind: Literal["text", "ref", "binding"]
    text: LongText | None = None
    ref_id: str | None = None
    slot_id: str | None = None


Value = Annotated[
    Annotated[LongText, Tag("<text>")]
    | Annotated[tuple[ProsePart, ...], Field(min_length=1, max_length=50, strict=False), Tag("<list>")],
    Discriminator(_text_or_list),
]
Values = Annotated[tuple[Value, ...], Field(max_length=100, strict=False)]


class PromptBlocksForm(Part):
    """A prompt in parts; each part becomes a section of the rendered prompt."""

    goal: Value | None = None
    constraints: Values = ()
    procedure: Values = ()
    output_required: Annotated[
        Annotated[Values, Tag("<list>")] | Annotated[dict[str, Value], Tag("<object>")],
        Discriminator(_object_or_list),
    ] = ()
    verify: Values = ()


class PromptFragmentForm(Part):
    """A text that joins the prompt only where its condition holds when the step is handed out."""

    id: SafeId
    text: LongText
    when: ConditionForm | None = None


class OutputContractForm(Part):
    """The contract that the step's artifact must meet."""

    contract_ref: str
    required: bool = True


class ConsequenceWhen(Part):
    """A level that some dimension was rated with."""

    any_equals_level: str
    for_assessment: str | None = None


class ConsequenceEffect(Part):
    """The step is not done before the guidance was followed and the rating is another."""

    kind: Literal["require_followup"]
    guidance: Annotated[str, Field(min_length=1, max_length=512)]


class ConsequenceForm(Part):
    """What a rating brings."""

    when: ConsequenceWhen
    effect: ConsequenceEffect


class DelegationForm(Part):
    """Work that the agent hands to a subagent of its own client."""

    title: Title
    goal: LongText
    workflow_id: str | None = None
    when: ConditionForm | None = None


class StepForm(Part):
    """One unit of work for an agent: a prompt, and by default notes as its evidence."""

    type: Literal["step"] | None = None
    id: SafeId
    title: Title
    prompt: LongText | None = None
    prompt_blocks: PromptBlocksForm | None = None
    prompt_fragments: Annotated[tuple[PromptFragmentForm, ...], Field(max_length=50, strict=False)] = ()
    agent_role: LongText | None = None
    guidance: Lines = ()
    when: ConditionForm | None = None
    require_confirmation: bool = False
    confirm_when: ConditionForm | None = None
    notes: Literal["required", "optional"] | None = None
    output_contract: OutputContractForm | None = None
    validation_criteria: (
        Annotated[
            Annotated[CriteriaForm, Tag("<object>")]
            | Annotated[tuple[CriteriaForm, ...], Field(min_length=1, max_length=50, strict=False), Tag("<list>")],
            Discriminator(_object_or_list),
        ]
        | None
    ) = None
    assessment_refs: Annotated[tuple[str, ...], Field(max_length=10, strict=False)] = ()
    assessment_consequences: Annotated[tuple[ConsequenceForm, ...], Field(max_length=10, strict=False)] = ()
    function_definitions: Annotated[tuple[FunctionDefinition, ...], Field(max_length=50, strict=False)] = ()
    function_references: Annotated[tuple[str, ...], Field(max_length=50, strict=False)] = ()
    needs: Annotated[tuple[ContextPath, ...], Field(max_length=50, strict=False)] = ()
    produces: Annotated[tuple[DeclaredKey, ...], Field(max_length=50, strict=False)] = ()
    set: Annotated[tuple[SetAction, ...], Field(max_length=50, strict=False)] = ()
    needs_user: Annotated[tuple[UserNeed, ...], Field(max_length=10, strict=False)] = ()
    delegate: Annotated[tuple[DelegationForm, ...], Field(max_length=20, strict=False)] = ()
    capabilities: Annotated[tuple[CapabilityName, ...], Field(max_length=5, strict=False)] = ()


class ForForm(Part):
    """A number of passes: a number, or what a context key holds."""

    count: Annotated[int, Field(ge=0)] | None = None
    count_from: ContextPath | None = None


class ForEachForm(Part):
    """One pass for each item of a list in the context."""

    items: ContextPath
    item_var: Name = "item"


_STEP_TAGS = {"loop": "<loop>", "parallel": "<parallel>", "choose": "<choose>", "template": "<template>"}


def step_tag(value: Any) -> str:  # noqa: ANN401 — untrusted, or a form
    """Say of which kind a step is that was written so: by its `type`, else by what it holds."""
    if not isinstance(value, dict):
        return "<step>"
    kind: object = value.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(kind, str) and kind in _STEP_TAGS:
        return _STEP_TAGS[kind]
    for key, tag in (("choose", "<choose>"), ("templateCall", "<template>"), ("body", "<loop>")):
        if key in value:
            return tag
    return "<parallel>" if "branches" in value else "<step>"


class LoopForm(Part):
    """A body that is passed through again and again: exactly one of `while`, `until`, `for`, `forEach`."""

    type: Literal["loop"] = "loop"
    loop_id: SafeId
    title: Title
    when: ConditionForm | None = None
    max_iterations: Annotated[int, Field(ge=1, le=LOOP_PASSES_MAX)]
    while_: Annotated[ConditionForm | None, Field(alias="while")] = None
    until: ConditionForm | None = None
    for_: Annotated[ForForm | None, Field(alias="for")] = None
    for_each: ForEachForm | None = None
    iteration_var: Name = "iteration"
    index_var: Name = "index"
    function_definitions: Annotated[tuple[FunctionDefinition, ...], Field(max_length=50, strict=False)] = ()
    body: Annotated[tuple["StepUnion", ...], Field(min_length=1, max_length=STEPS_MAX, strict=False)]


class BranchForm(Part):
    """Steps that one branch takes, one after the other."""

    steps: Annotated[tuple["StepUnion", ...], Field(min_length=1, max_length=STEPS_MAX, strict=False)]


class ParallelForm(Part):
    """Branches that do not wait for each other, and a barrier that waits for all."""

    type: Literal["parallel"] = "parallel"
    id: SafeId
    title: Title
    when: ConditionForm | None = None
    branches: Annotated[tuple[BranchForm, ...], Field(min_length=2, max_length=20, strict=False)]


class ChoiceBranchForm(Part):
    """Steps that are taken where the condition holds and no earlier branch's did."""

    when: ConditionForm
    steps: Annotated[tuple["StepUnion", ...], Field(min_length=1, max_length=STEPS_MAX, strict=False)]


class ChooseForm(Part):
    """Exactly one way is taken: the first branch whose condition holds, else `otherwise`, which may be empty."""

    type: Literal["choose"] = "choose"
    id: SafeId
    title: Title
    when: ConditionForm | None = None
    choose: Annotated[tuple[ChoiceBranchForm, ...], Field(min_length=1, max_length=50, strict=False)]
    otherwise: Annotated[tuple["StepUnion", ...] | None, Field(max_length=STEPS_MAX, strict=False)] = None


class TemplateCallForm(Part):
    """The routine to unfold: by its id, or by the slot that a project may bind to another."""

    template_id: str | None = None
    slot_id: str | None = None
    args: dict[str, str | int | float | bool] = Field(default_factory=dict)


class TemplateForm(Part):
    """A routine, unfolded in place: its steps are called `<id>--<step>`."""

    type: Literal["template"] = "template"
    id: SafeId
    title: Title | None = None
    when: ConditionForm | None = None
    template_call: TemplateCallForm


StepUnion = Annotated[
    Annotated[StepForm, Tag("<step>")]
    | Annotated[LoopForm, Tag("<loop>")]
    | Annotated[ParallelForm, Tag("<parallel>")]
    | Annotated[ChooseForm, Tag("<choose>")]
    | Annotated[TemplateForm, Tag("<template>")],
    Discriminator(step_tag),
]


class FeatureForm(Part):
    """A feature with its configuration."""

    id: str
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class WorkflowForm(Part):
    """A whole workflow."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    name: Title
    description: Annotated[str, Field(max_length=DESCRIPTION_CHARS_MAX)] = ""
    tags: Annotated[tuple[SafeId, ...], Field(max_length=30, strict=False)] = ()
    examples: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=10, strict=False)
    ] = ()
    agent_role: LongText | None = None
    guidance: Lines = ()
    references: Annotated[tuple[Reference, ...], Field(max_length=50, strict=False)] = ()
    inputs: Annotated[tuple[ContextInput, ...], Field(max_length=50, strict=False)] = ()
    capabilities: dict[CapabilityName, CapabilityNeed] = Field(default_factory=dict)
    features: Annotated[
        tuple[
            Annotated[
                Annotated[str, Tag("<text>")] | Annotated[FeatureForm, Tag("<object>")],
                Discriminator(_text_or_object),
            ],
            ...,
        ],
        Field(max_length=20, strict=False),
    ] = ()
    conditions: dict[SafeId, ConditionForm] = Field(default_factory=dict)
    function_definitions: Annotated[tuple[FunctionDefinition, ...], Field(max_length=100, strict=False)] = ()
    assessments: Annotated[tuple[Assessment, ...], Field(max_length=50, strict=False)] = ()
    extension_points: Annotated[tuple[ExtensionPoint, ...], Field(max_length=20, strict=False)] = ()
    recommended_preferences: RecommendedPreferences | None = None
    steps: Annotated[tuple[StepUnion, ...], Field(min_length=1, max_length=STEPS_MAX, strict=False)]
