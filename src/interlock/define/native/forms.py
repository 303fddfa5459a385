"""The syntax of native workflow files: one closed model per part, published as a JSON Schema.

All keys are camelCase. `lowering` turns these models into the document model. Field descriptions are shown on the
reference page of the language.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from interlock.define.native.condition_forms import ConditionForm, CriteriaForm, SetActionForm
from interlock.define.native.outside_forms import ApproveForm, AwaitForm, CheckForm, EmitForm
from interlock.define.native.prompt_forms import PromptBlocksForm, PromptFragmentForm, object_or_list
from interlock.define.parts import (
    Assessment,
    CapabilityName,
    CapabilityNeed,
    ContextInput,
    ContextPath,
    DeclaredKey,
    ExtensionPoint,
    FunctionDefinition,
    Hints,
    Lines,
    LongText,
    Metadata,
    Name,
    ProducedKey,
    Proof,
    RecommendedPreferences,
    Reference,
    SafeId,
    Title,
    UserNeed,
)
from interlock.kernel.budgets.workflow import (
    DESCRIPTION_CHARS_MAX,
    EMITS_PER_STEP_MAX,
    LOOP_PASSES_MAX,
    PROOFS_PER_STEP_MAX,
    STEPS_MAX,
)
from interlock.kernel.shape.mirror import Form


def _text_or_object(value: object) -> str:
    return "<text>" if isinstance(value, str) else "<object>"


class OutputContractForm(Form):
    """The contract that the step's artifact must meet."""

    contract_ref: str = Field(description="a contract pack `wr.contracts.*`")
    required: bool = Field(
        default=True, description="whether the artifact is required; an optional one is validated too"
    )


class ConsequenceWhen(Form):
    """A level that at least one dimension was rated with."""

    any_equals_level: str = Field(description="the level that at least one dimension has")
    for_assessment: str | None = Field(
        default=None, description="the assessment to check; if omitted, every assessment of the step"
    )


class ConsequenceEffect(Form):
    """The step is not done until the agent has followed the guidance and rated differently."""

    kind: Literal["require_followup"] = Field(description="the only effect")
    guidance: Annotated[str, Field(min_length=1, max_length=512, description="what to do before rating again")]


class ConsequenceForm(Form):
    """The consequence of a rating."""

    when: ConsequenceWhen = Field(description="the rating that has the consequence")
    effect: ConsequenceEffect = Field(description="the consequence")


class DelegationForm(Form):
    """Work that the agent delegates to a subagent of its own client."""

    title: Title = Field(description="its title")
    goal: LongText = Field(description="what the subagent must do; may contain `{{key}}`")
    workflow_id: str | None = Field(default=None, description="a workflow that describes the method")
    when: ConditionForm | None = Field(default=None, description="delegate only if this is true; if omitted, always")


class StepForm(Form):
    """One unit of work for an agent: a prompt, and by default notes as its evidence."""

    type: Literal["step"] | None = Field(default=None, description="may be omitted")
    id: SafeId = Field(description="its id in the plan, the log and diagnostics")
    title: Title = Field(description="its title, in one line; may contain `{{key}}`")
    prompt: LongText | None = Field(
        default=None, description="what to do; may contain `{{key}}`; write this or `promptBlocks`"
    )
    prompt_blocks: PromptBlocksForm | None = Field(default=None, description="what to do, in parts")
    prompt_fragments: Annotated[
        tuple[PromptFragmentForm, ...],
        Field(max_length=50, strict=False, description="texts that are added under a condition"),
    ] = ()
    agent_role: LongText | None = Field(default=None, description="the agent's role in this step")
    guidance: Lines = Field(default=(), description="rules for this step, shown below its prompt")
    when: ConditionForm | None = Field(default=None, description="the step is skipped unless this is true")
    require_confirmation: bool = Field(default=False, description="a person must confirm the step")
    confirm_when: ConditionForm | None = Field(
        default=None, description="a person must confirm the step if this is true or undecided"
    )
    notes: Literal["required", "optional"] | None = Field(
        default=None, description="whether notes are required; the default is yes, unless there is an output contract"
    )
    output_contract: OutputContractForm | None = Field(default=None, description="the artifact to send")
    validation_criteria: (
        Annotated[
            Annotated[CriteriaForm, Tag("<object>")]
            | Annotated[tuple[CriteriaForm, ...], Field(min_length=1, max_length=50, strict=False), Tag("<list>")],
            Discriminator(object_or_list),
        ]
        | None
    ) = Field(default=None, description="criteria that the notes must meet; a list is joined by `and`")
    assessment_refs: Annotated[
        tuple[str, ...], Field(max_length=10, strict=False, description="the required ratings, by id")
    ] = ()
    assessment_consequences: Annotated[
        tuple[ConsequenceForm, ...], Field(max_length=10, strict=False, description="consequences of ratings")
    ] = ()
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...], Field(max_length=50, strict=False, description="instructions for this step")
    ] = ()
    function_references: Annotated[
        tuple[str, ...], Field(max_length=50, strict=False, description="functions to show in the step, as `name()`")
    ] = ()
    needs: Annotated[
        tuple[ContextPath, ...],
        Field(max_length=50, strict=False, description="context paths that must have a value before the step is given"),
    ] = ()
    produces: Annotated[
        tuple[
            Annotated[
                Annotated[DeclaredKey, Tag("<text>")] | Annotated[ProducedKey, Tag("<object>")],
                Discriminator(_text_or_object),
            ],
            ...,
        ],
        Field(
            max_length=50,
            strict=False,
            description="context keys that must have a value when it is reported, by name or with a declaration",
        ),
    ] = ()
    set: Annotated[
        tuple[SetActionForm, ...],
        Field(max_length=50, strict=False, description="context keys that are set when the step is done"),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        Field(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside when the step is done"),
    ] = ()
    needs_user: Annotated[
        tuple[UserNeed, ...], Field(max_length=10, strict=False, description="what only the user can provide")
    ] = ()
    delegate: Annotated[
        tuple[DelegationForm, ...],
        Field(max_length=20, strict=False, description="work for subagents of the agent's client"),
    ] = ()
    capabilities: Annotated[
        tuple[CapabilityName, ...],
        Field(
            max_length=5,
            strict=False,
            description="client capabilities that it uses; a capability observation is about the first",
        ),
    ] = ()
    hints: Hints = Field(default=(), description="free tags for readers; never enforced")
    metadata: Metadata = Field(default_factory=dict, description="free texts by name, for readers; never enforced")
    verifies: Annotated[
        tuple[SafeId, ...],
        Field(max_length=20, strict=False, description="earlier steps whose results this step checks, by id"),
    ] = ()
    by: Literal["another"] | None = Field(
        default=None, description="`another`: who reported a step of `verifies` cannot report this step"
    )
    proof: Annotated[
        tuple[Proof, ...],
        Field(
            max_length=PROOFS_PER_STEP_MAX,
            strict=False,
            description="commands that must have run, as `interlock witness` saw them, before the step can be reported",
        ),
    ] = ()


class ForForm(Form):
    """A fixed number of passes: a constant, or a number from the context."""

    count: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="the number of passes; write this or `countFrom`"
    )
    count_from: ContextPath | None = Field(default=None, description="the context path of the number of passes")


class ForEachForm(Form):
    """One pass for each item of a list in the context."""

    items: ContextPath = Field(description="the context path of a list")
    item_var: Name = Field(default="item", description="the name of the current item in the body")


_STEP_TAGS = {kind: f"<{kind}>" for kind in ("loop", "parallel", "choose", "template", "await", "check", "approve")}


def step_tag(value: Any) -> str:  # noqa: ANN401 — untrusted, or a form
    """Return the tag of a step's kind: by its `type`, else by its keys."""
    if not isinstance(value, dict):
        return "<step>"
    kind: object = value.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(kind, str) and kind in _STEP_TAGS:
        return _STEP_TAGS[kind]
    for key, tag in (("choose", "<choose>"), ("templateCall", "<template>"), ("body", "<loop>")):
        if key in value:
            return tag
    return "<parallel>" if "branches" in value else "<step>"


class LoopForm(Form):
    """A body of steps that is repeated, by exactly one of `while`, `until`, `for`, `forEach`."""

    type: Literal["loop"] = Field(default="loop", description="may be omitted")
    loop_id: SafeId = Field(description="its id; a loop-control artifact may name it")
    title: Title = Field(description="its title, in one line")
    when: ConditionForm | None = Field(default=None, description="the loop is skipped unless this is true")
    max_iterations: Annotated[int, Field(ge=1, le=LOOP_PASSES_MAX, description="the maximum number of passes")]
    while_: Annotated[ConditionForm | None, Field(alias="while", description="repeat while this is true")] = None
    until: ConditionForm | None = Field(default=None, description="repeat until this is true, checked before each pass")
    for_: Annotated[ForForm | None, Field(alias="for", description="repeat a fixed number of times")] = None
    for_each: ForEachForm | None = Field(default=None, description="repeat for each item of a list")
    iteration_var: Name = Field(default="iteration", description="the name of the pass number in the body, from 1")
    index_var: Name = Field(default="index", description="the name of the pass number in the body, from 0")
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        Field(max_length=50, strict=False, description="instructions that steps of the body may refer to"),
    ] = ()
    body: Annotated[
        tuple["StepUnion", ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps to repeat"),
    ]


class BranchForm(Form):
    """The steps of one branch, in order."""

    steps: Annotated[
        tuple["StepUnion", ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of the branch, in order"),
    ]


class ParallelForm(Form):
    """Branches that do not wait for each other, and a barrier that waits for all of them."""

    type: Literal["parallel"] = Field(default="parallel", description="may be omitted")
    id: SafeId = Field(description="its id; the barrier is `<id>--join`")
    title: Title = Field(description="its title, in one line")
    when: ConditionForm | None = Field(default=None, description="all branches are skipped unless this is true")
    branches: Annotated[
        tuple[BranchForm, ...],
        Field(min_length=2, max_length=20, strict=False, description="the branches; they do not wait for each other"),
    ]


class ChoiceBranchForm(Form):
    """Steps that are performed if this is the first branch whose condition is true."""

    when: ConditionForm = Field(description="the condition of the branch")
    steps: Annotated[
        tuple["StepUnion", ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of the choice branch, in order"),
    ]


class ChooseForm(Form):
    """Performs exactly one branch: the first whose condition is true, else `otherwise`, which may be empty."""

    type: Literal["choose"] = Field(default="choose", description="may be omitted")
    id: SafeId = Field(description="its id")
    title: Title = Field(description="its title, in one line")
    when: ConditionForm | None = Field(default=None, description="all branches are skipped unless this is true")
    choose: Annotated[
        tuple[ChoiceBranchForm, ...],
        Field(min_length=1, max_length=50, strict=False, description="the branches, in the order of evaluation"),
    ]
    otherwise: Annotated[
        tuple["StepUnion", ...] | None,
        Field(
            max_length=STEPS_MAX,
            strict=False,
            description="the steps if no branch is chosen; required, `[]` for none",
        ),
    ] = None


class TemplateCallForm(Form):
    """The routine to unfold: by its id, or by a slot that a project may bind to another routine."""

    template_id: str | None = Field(
        default=None, description="a routine `wr.templates.routine.*`; write this or `slotId`"
    )
    slot_id: str | None = Field(default=None, description="a slot that is bound to a routine")
    args: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="the values for `{name}` in the routine's texts"
    )


class TemplateForm(Form):
    """A routine that is unfolded in place. Its steps get the ids `<id>--<step>`."""

    type: Literal["template"] = Field(default="template", description="may be omitted")
    id: SafeId = Field(description="the prefix of the ids of the unfolded steps")
    title: Title | None = Field(default=None, description="its title, in one line; if omitted, the id")
    when: ConditionForm | None = Field(default=None, description="all its steps are skipped unless this is true")
    template_call: TemplateCallForm = Field(description="the routine to unfold")


StepUnion = Annotated[
    Annotated[StepForm, Tag("<step>")]
    | Annotated[LoopForm, Tag("<loop>")]
    | Annotated[ParallelForm, Tag("<parallel>")]
    | Annotated[ChooseForm, Tag("<choose>")]
    | Annotated[TemplateForm, Tag("<template>")]
    | Annotated[AwaitForm, Tag("<await>")]
    | Annotated[CheckForm, Tag("<check>")]
    | Annotated[ApproveForm, Tag("<approve>")],
    Discriminator(step_tag),
]


class FeatureForm(Form):
    """A feature with its configuration."""

    id: str = Field(description="a feature `wr.features.*`")
    config: dict[str, str | int | bool] = Field(default_factory=dict, description="its settings by name")


class WorkflowForm(Form):
    """A whole workflow."""

    id: Annotated[
        str, Field(min_length=1, max_length=128, description="`namespace.name`, lower case; runs are started by it")
    ]
    name: Title = Field(description="its name for people")
    description: Annotated[
        str, Field(max_length=DESCRIPTION_CHARS_MAX, description="when to use it and when not; agents choose by it")
    ] = ""
    tags: Annotated[
        tuple[SafeId, ...], Field(max_length=30, strict=False, description="tags to filter lists of workflows")
    ] = ()
    keywords: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=60)], ...],
        Field(max_length=40, strict=False, description="what people say who want it; only searches read them"),
    ] = ()
    examples: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
        Field(max_length=10, strict=False, description="requests that fit it"),
    ] = ()
    agent_role: LongText | None = Field(default=None, description="the role for steps that have none")
    guidance: Lines = Field(default=(), description="rules for the whole run, shown at its start and on resume")
    references: Annotated[
        tuple[Reference, ...], Field(max_length=50, strict=False, description="material that it refers to")
    ] = ()
    inputs: Annotated[
        tuple[ContextInput, ...],
        Field(
            max_length=50, strict=False, description="context keys that the caller sends at the start or that steps set"
        ),
    ] = ()
    capabilities: dict[CapabilityName, CapabilityNeed] = Field(
        default_factory=dict, description="client capabilities, each required, preferred or disabled"
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
            description="rule sets that are added to steps with `promptBlocks`; an id, or an id with its configuration",
        ),
    ] = ()
    conditions: dict[SafeId, ConditionForm] = Field(
        default_factory=dict, description="conditions by name, for `condition_ref`"
    )
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        Field(max_length=100, strict=False, description="instructions that any step may refer to"),
    ] = ()
    assessments: Annotated[
        tuple[Assessment, ...], Field(max_length=50, strict=False, description="ratings that steps may require")
    ] = ()
    extension_points: Annotated[
        tuple[ExtensionPoint, ...], Field(max_length=20, strict=False, description="slots that a project may bind")
    ] = ()
    recommended_preferences: RecommendedPreferences | None = Field(
        default=None, description="what the author recommends"
    )
    steps: Annotated[
        tuple[StepUnion, ...],
        Field(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps, in order"),
    ]
