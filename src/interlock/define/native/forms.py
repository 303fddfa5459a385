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

    var: ContextPath | None = Field(default=None, description="the context path that is compared")
    equals: Json = Field(default=None, description="is the same JSON value")
    not_equals: Json = Field(default=None, description="is another JSON value")
    gt: int | float | None = Field(default=None, description="is greater")
    gte: int | float | None = Field(default=None, description="is greater, or the same")
    lt: int | float | None = Field(default=None, description="is less")
    lte: int | float | None = Field(default=None, description="is less, or the same")
    in_: Annotated[tuple[Json, ...] | None, Field(alias="in", strict=False, description="is one of these")] = None
    contains: Json = Field(default=None, description="a list holds this item, or a text this text")
    starts_with: str | None = Field(default=None, description="begins with this text")
    ends_with: str | None = Field(default=None, description="ends with this text")
    exists: bool | None = Field(default=None, description="something stands there (`true`), or nothing (`false`)")
    and_: Annotated[
        tuple["ConditionForm", ...] | None,
        Field(alias="and", min_length=1, strict=False, description="all of these hold"),
    ] = None
    or_: Annotated[
        tuple["ConditionForm", ...] | None,
        Field(alias="or", min_length=1, strict=False, description="one of these holds"),
    ] = None
    not_: Annotated["ConditionForm | None", Field(alias="not", description="this does not hold")] = None
    kind: Literal["condition_ref", "loop_control"] | None = Field(
        default=None, description="a named condition; or, in `while` alone, what the agent decides"
    )
    condition_id: SafeId | None = Field(default=None, description="of `condition_ref`: a name of `conditions`")


class CriteriaForm(Part):
    """What the notes must hold: a rule by its `type`, or exactly one of `and`, `or`, `not`."""

    type: Literal["contains", "regex", "length"] | None = Field(default=None, description="what kind of rule it is")
    value: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="of `contains`: the text that must be there, letter for letter"
    )
    pattern: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="of `regex`: an RE2 pattern that must match somewhere"
    )
    flags: Annotated[str, Field(pattern=r"^[ims]*$")] | None = Field(
        default=None, description="of `regex`: any of `i`, `m`, `s`"
    )
    min: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="of `length`: so many characters at least"
    )
    max: Annotated[int, Field(ge=0)] | None = Field(default=None, description="of `length`: so many characters at most")
    message: str | None = Field(default=None, description="what the agent is told first where the rule is not met")
    when: ConditionForm | None = Field(default=None, description="where the rule asks at all")
    and_: Annotated[
        tuple["CriteriaForm", ...] | None,
        Field(alias="and", min_length=1, strict=False, description="all of these are met"),
    ] = None
    or_: Annotated[
        tuple["CriteriaForm", ...] | None,
        Field(alias="or", min_length=1, strict=False, description="one of these is met"),
    ] = None
    not_: Annotated["CriteriaForm | None", Field(alias="not", description="this is not met")] = None


class ProsePart(Part):
    """A part of a prompt: `text`, the text of a `wr.refs.*` reference, or what a slot is bound to."""

    kind: Literal["text", "ref", "binding"] = Field(description="which of the three it is")
    text: LongText | None = Field(default=None, description="of `text`: the text as it stands")
    ref_id: str | None = Field(default=None, description="of `ref`: a reference `wr.refs.*`, whose text is inlined")
    slot_id: str | None = Field(default=None, description="of `binding`: a slot; what it is bound to is inlined")


Value = Annotated[
    Annotated[LongText, Tag("<text>")]
    | Annotated[tuple[ProsePart, ...], Field(min_length=1, max_length=50, strict=False), Tag("<list>")],
    Discriminator(_text_or_list),
]
Values = Annotated[tuple[Value, ...], Field(max_length=100, strict=False)]


class PromptBlocksForm(Part):
    """A prompt in parts; each part becomes a section of the rendered prompt."""

    goal: Value | None = Field(default=None, description="what is to be reached")
    constraints: Values = Field(default=(), description="what holds while it is done")
    procedure: Values = Field(default=(), description="how, in numbered lines")
    output_required: Annotated[
        Annotated[Values, Tag("<list>")] | Annotated[dict[str, Value], Tag("<object>")],
        Discriminator(_object_or_list),
    ] = Field(default=(), description="what has to come out: a list, or texts by name")
    verify: Values = Field(default=(), description="what to check before it is reported")


class PromptFragmentForm(Part):
    """A text that joins the prompt only where its condition holds when the step is handed out."""

    id: SafeId = Field(description="its name")
    text: LongText = Field(description="what joins; may hold `{{key}}`")
    when: ConditionForm | None = Field(default=None, description="where it joins; without, always")


class OutputContractForm(Part):
    """The contract that the step's artifact must meet."""

    contract_ref: str = Field(description="a contract pack `wr.contracts.*`")
    required: bool = Field(default=True, description="whether the artifact must come; one that comes is judged anyhow")


class ConsequenceWhen(Part):
    """A level that some dimension was rated with."""

    any_equals_level: str = Field(description="a level that some dimension has")
    for_assessment: str | None = Field(
        default=None, description="the assessment that is meant; without, any of the step"
    )


class ConsequenceEffect(Part):
    """The step is not done before the guidance was followed and the rating is another."""

    kind: Literal["require_followup"] = Field(description="the only effect there is")
    guidance: Annotated[str, Field(min_length=1, max_length=512, description="what to do before rating again")]


class ConsequenceForm(Part):
    """What a rating brings."""

    when: ConsequenceWhen = Field(description="the rating that brings it")
    effect: ConsequenceEffect = Field(description="what it brings")


class DelegationForm(Part):
    """Work that the agent hands to a subagent of its own client."""

    title: Title = Field(description="what the piece is")
    goal: LongText = Field(description="what the subagent is to do; may hold `{{key}}`")
    workflow_id: str | None = Field(default=None, description="a workflow that says how")
    when: ConditionForm | None = Field(default=None, description="where the piece is handed out; without, always")


class StepForm(Part):
    """One unit of work for an agent: a prompt, and by default notes as its evidence."""

    type: Literal["step"] | None = Field(default=None, description="may be left out")
    id: SafeId = Field(description="its name in the plan, the log and diagnostics")
    title: Title = Field(description="what it is, in a line; may hold `{{key}}`")
    prompt: LongText | None = Field(default=None, description="what to do; may hold `{{key}}`; this or `promptBlocks`")
    prompt_blocks: PromptBlocksForm | None = Field(default=None, description="the same in parts")
    prompt_fragments: Annotated[
        tuple[PromptFragmentForm, ...],
        Field(max_length=50, strict=False, description="texts that join under a condition"),
    ] = ()
    agent_role: LongText | None = Field(default=None, description="who the agent is in this step")
    guidance: Lines = Field(default=(), description="rules for this step, shown below its prompt")
    when: ConditionForm | None = Field(default=None, description="without it holding, the step is skipped")
    require_confirmation: bool = Field(default=False, description="a person has to confirm the step")
    confirm_when: ConditionForm | None = Field(
        default=None, description="a person has to confirm it where this holds or cannot be decided"
    )
    notes: Literal["required", "optional"] | None = Field(
        default=None, description="whether notes must come; required, unless the step has an output contract"
    )
    output_contract: OutputContractForm | None = Field(default=None, description="the artifact that must come")
    validation_criteria: (
        Annotated[
            Annotated[CriteriaForm, Tag("<object>")]
            | Annotated[tuple[CriteriaForm, ...], Field(min_length=1, max_length=50, strict=False), Tag("<list>")],
            Discriminator(_object_or_list),
        ]
        | None
    ) = Field(default=None, description="what the notes must hold; a list is joined by `and`")
    assessment_refs: Annotated[
        tuple[str, ...], Field(max_length=10, strict=False, description="the ratings that must come, by id")
    ] = ()
    assessment_consequences: Annotated[
        tuple[ConsequenceForm, ...], Field(max_length=10, strict=False, description="what a rating brings")
    ] = ()
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        Field(max_length=50, strict=False, description="instructions for this step alone"),
    ] = ()
    function_references: Annotated[
        tuple[str, ...],
        Field(max_length=50, strict=False, description="functions whose definitions are shown, as `name()`"),
    ] = ()
    needs: Annotated[
        tuple[ContextPath, ...],
        Field(max_length=50, strict=False, description="context paths without which the step is not handed out"),
    ] = ()
    produces: Annotated[
        tuple[DeclaredKey, ...],
        Field(max_length=50, strict=False, description="context keys that must be set when it is reported"),
    ] = ()
    set: Annotated[
        tuple[SetAction, ...],
        Field(max_length=50, strict=False, description="context keys that are set once it is done, in order"),
    ] = ()
    needs_user: Annotated[
        tuple[UserNeed, ...], Field(max_length=10, strict=False, description="what the agent has to ask the user for")
    ] = ()
    delegate: Annotated[
        tuple[DelegationForm, ...],
        Field(max_length=20, strict=False, description="pieces for subagents of the agent's client"),
    ] = ()
    capabilities: Annotated[
        tuple[CapabilityName, ...],
        Field(max_length=5, strict=False, description="what it uses; a capability observation is about the first"),
    ] = ()


class ForForm(Part):
    """A number of passes: a number, or what a context key holds."""

    count: Annotated[int, Field(ge=0)] | None = Field(default=None, description="the number; this or `countFrom`")
    count_from: ContextPath | None = Field(default=None, description="the context path of a whole number")


class ForEachForm(Part):
    """One pass for each item of a list in the context."""

    items: ContextPath = Field(description="the context path of a list")
    item_var: Name = Field(default="item", description="what the body calls the item")


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

    type: Literal["loop"] = Field(default="loop", description="may be left out")
    loop_id: SafeId = Field(description="its name, which a loop-control artifact may give")
    title: Title = Field(description="what it is, in a line")
    when: ConditionForm | None = Field(default=None, description="without it holding, the loop is skipped")
    max_iterations: Annotated[int, Field(ge=1, le=LOOP_PASSES_MAX, description="passes at most")]
    while_: Annotated[ConditionForm | None, Field(alias="while", description="a pass begins while this holds")] = None
    until: ConditionForm | None = Field(default=None, description="a pass begins while this does not hold")
    for_: Annotated[ForForm | None, Field(alias="for", description="so many passes")] = None
    for_each: ForEachForm | None = Field(default=None, description="a pass for each item")
    iteration_var: Name = Field(default="iteration", description="what the body calls the pass, counted from 1")
    index_var: Name = Field(default="index", description="what the body calls the pass, counted from 0")
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        Field(max_length=50, strict=False, description="instructions that steps of the body may refer to"),
    ] = ()
    body: Annotated[
        tuple["StepUnion", ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of a pass"),
    ]


class BranchForm(Part):
    """Steps that one branch takes, one after the other."""

    steps: Annotated[
        tuple["StepUnion", ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of the branch, in order"),
    ]


class ParallelForm(Part):
    """Branches that do not wait for each other, and a barrier that waits for all."""

    type: Literal["parallel"] = Field(default="parallel", description="may be left out")
    id: SafeId = Field(description="its name; the barrier is `<id>--join`")
    title: Title = Field(description="what it is, in a line")
    when: ConditionForm | None = Field(default=None, description="without it holding, all branches are skipped")
    branches: Annotated[
        tuple[BranchForm, ...],
        Field(min_length=2, max_length=20, strict=False, description="what need not wait for each other"),
    ]


class ChoiceBranchForm(Part):
    """Steps that are taken where the condition holds and no earlier branch's did."""

    when: ConditionForm = Field(description="where this way is taken")
    steps: Annotated[
        tuple["StepUnion", ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of the way, in order"),
    ]


class ChooseForm(Part):
    """Exactly one way is taken: the first branch whose condition holds, else `otherwise`, which may be empty."""

    type: Literal["choose"] = Field(default="choose", description="may be left out")
    id: SafeId = Field(description="its name")
    title: Title = Field(description="what is chosen, in a line")
    when: ConditionForm | None = Field(default=None, description="without it holding, nothing is chosen")
    choose: Annotated[
        tuple[ChoiceBranchForm, ...],
        Field(min_length=1, max_length=50, strict=False, description="the ways, in the order in which they are tried"),
    ]
    otherwise: Annotated[
        tuple["StepUnion", ...] | None,
        Field(
            max_length=STEPS_MAX, strict=False, description="the steps where no way holds; must be there, `[]` for none"
        ),
    ] = None


class TemplateCallForm(Part):
    """The routine to unfold: by its id, or by the slot that a project may bind to another."""

    template_id: str | None = Field(default=None, description="a routine `wr.templates.routine.*`; this or `slotId`")
    slot_id: str | None = Field(default=None, description="a slot that is bound to one")
    args: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="what stands for `{name}` in the routine's texts"
    )


class TemplateForm(Part):
    """A routine, unfolded in place: its steps are called `<id>--<step>`."""

    type: Literal["template"] = Field(default="template", description="may be left out")
    id: SafeId = Field(description="what the ids of the unfolded steps begin with")
    title: Title | None = Field(default=None, description="what it is, in a line; the id, where it is left out")
    when: ConditionForm | None = Field(default=None, description="without it holding, all its steps are skipped")
    template_call: TemplateCallForm = Field(description="what to unfold")


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

    id: str = Field(description="a feature `wr.features.*`")
    config: dict[str, str | int | bool] = Field(default_factory=dict, description="its settings by name")


class WorkflowForm(Part):
    """A whole workflow."""

    id: Annotated[
        str, Field(min_length=1, max_length=128, description="`namespace.name`, lower case; how it is started")
    ]
    name: Title = Field(description="how people call it")
    description: Annotated[
        str, Field(max_length=DESCRIPTION_CHARS_MAX, description="when to take it and when not; agents choose by it")
    ] = ""
    tags: Annotated[
        tuple[SafeId, ...], Field(max_length=30, strict=False, description="by which lists are narrowed")
    ] = ()
    examples: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
        Field(max_length=10, strict=False, description="requests that fit it"),
    ] = ()
    agent_role: LongText | None = Field(default=None, description="the role of steps that have none")
    guidance: Lines = Field(default=(), description="rules for the whole run, told at its start and on resume")
    references: Annotated[
        tuple[Reference, ...], Field(max_length=50, strict=False, description="material that it points at")
    ] = ()
    inputs: Annotated[
        tuple[ContextInput, ...],
        Field(
            max_length=50, strict=False, description="context keys that a run is started with, or that its steps set"
        ),
    ] = ()
    capabilities: dict[CapabilityName, CapabilityNeed] = Field(
        default_factory=dict, description="how much each capability of the client is needed"
    )
    features: Annotated[
        tuple[
            Annotated[
                Annotated[str, Tag("<text>")] | Annotated[FeatureForm, Tag("<object>")],
                Discriminator(_text_or_object),
            ],
            ...,
        ],
        Field(
            max_length=20,
            strict=False,
            description="rule sets that join the steps written in blocks; an id, or an id with its configuration",
        ),
    ] = ()
    conditions: dict[SafeId, ConditionForm] = Field(
        default_factory=dict, description="conditions by name, for `condition_ref`"
    )
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        Field(max_length=100, strict=False, description="instructions that every step may refer to"),
    ] = ()
    assessments: Annotated[
        tuple[Assessment, ...], Field(max_length=50, strict=False, description="ratings that steps may ask for")
    ] = ()
    extension_points: Annotated[
        tuple[ExtensionPoint, ...], Field(max_length=20, strict=False, description="slots that a project may bind")
    ] = ()
    recommended_preferences: RecommendedPreferences | None = Field(
        default=None, description="how the author would run it"
    )
    steps: Annotated[
        tuple[StepUnion, ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="what is done, in this order"),
    ]
