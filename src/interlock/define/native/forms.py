"""The syntax of native workflow files: one closed model per part, published as a JSON Schema.

All keys are camelCase. `lowering` turns these models into the document model. Field descriptions are shown on the
reference page of the language.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import msgspec

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
    Part,
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
from interlock.kernel.shape import Alternative, AlternativeBy, Choice, Shape, described, limits


def _text_or_object(value: object) -> str:
    return "<text>" if isinstance(value, str) else "<object>"


class OutputContractForm(Part):
    """The contract that the step's artifact must meet."""

    contract_ref: Annotated[str, described("a contract pack `wr.contracts.*`")]
    required: Annotated[bool, described("whether the artifact is required; an optional one is validated too")] = True


class ConsequenceWhen(Part):
    """A level that at least one dimension was rated with."""

    any_equals_level: Annotated[str, described("the level that at least one dimension has")]
    for_assessment: Annotated[
        str | None, described("the assessment to check; if omitted, every assessment of the step")
    ] = None


class ConsequenceEffect(Part):
    """The step is not done until the agent has followed the guidance and rated differently."""

    kind: Annotated[Literal["require_followup"], described("the only effect")]
    guidance: Annotated[str, *limits(min_length=1, max_length=512, description="what to do before rating again")]


class ConsequenceForm(Part):
    """The consequence of a rating."""

    when: Annotated[ConsequenceWhen, described("the rating that has the consequence")]
    effect: Annotated[ConsequenceEffect, described("the consequence")]


class DelegationForm(Part):
    """Work that the agent delegates to a subagent of its own client."""

    title: Annotated[Title, described("its title")]
    goal: Annotated[LongText, described("what the subagent must do; may contain `{{key}}`")]
    workflow_id: Annotated[str | None, described("a workflow that describes the method")] = None
    when: Annotated[ConditionForm | None, described("delegate only if this is true; if omitted, always")] = None


class StepForm(Part):
    """One unit of work for an agent: a prompt, and by default notes as its evidence."""

    type: Annotated[Literal["step"] | None, described("may be omitted")] = None
    id: Annotated[SafeId, described("its id in the plan, the log and diagnostics")]
    title: Annotated[Title, described("its title, in one line; may contain `{{key}}`")]
    prompt: Annotated[LongText | None, described("what to do; may contain `{{key}}`; write this or `promptBlocks`")] = (
        None
    )
    prompt_blocks: Annotated[PromptBlocksForm | None, described("what to do, in parts")] = None
    prompt_fragments: Annotated[
        tuple[PromptFragmentForm, ...],
        *limits(max_length=50, strict=False, description="texts that are added under a condition"),
    ] = ()
    agent_role: Annotated[LongText | None, described("the agent's role in this step")] = None
    guidance: Annotated[Lines, described("rules for this step, shown below its prompt")] = ()
    when: Annotated[ConditionForm | None, described("the step is skipped unless this is true")] = None
    require_confirmation: Annotated[bool, described("a person must confirm the step")] = False
    confirm_when: Annotated[
        ConditionForm | None, described("a person must confirm the step if this is true or undecided")
    ] = None
    notes: Annotated[
        Literal["required", "optional"] | None,
        described("whether notes are required; the default is yes, unless there is an output contract"),
    ] = None
    output_contract: Annotated[OutputContractForm | None, described("the artifact to send")] = None
    validation_criteria: Annotated[
        Annotated[
            Annotated[CriteriaForm, Alternative("<object>")]
            | Annotated[
                tuple[CriteriaForm, ...], *limits(min_length=1, max_length=50, strict=False), Alternative("<list>")
            ],
            AlternativeBy(object_or_list),
        ]
        | None,
        described("criteria that the notes must meet; a list is joined by `and`"),
    ] = None
    assessment_refs: Annotated[
        tuple[str, ...], *limits(max_length=10, strict=False, description="the required ratings, by id")
    ] = ()
    assessment_consequences: Annotated[
        tuple[ConsequenceForm, ...], *limits(max_length=10, strict=False, description="consequences of ratings")
    ] = ()
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...], *limits(max_length=50, strict=False, description="instructions for this step")
    ] = ()
    function_references: Annotated[
        tuple[str, ...], *limits(max_length=50, strict=False, description="functions to show in the step, as `name()`")
    ] = ()
    needs: Annotated[
        tuple[ContextPath, ...],
        *limits(
            max_length=50, strict=False, description="context paths that must have a value before the step is given"
        ),
    ] = ()
    produces: Annotated[
        tuple[
            Annotated[
                Annotated[DeclaredKey, Alternative("<text>")] | Annotated[ProducedKey, Alternative("<object>")],
                AlternativeBy(_text_or_object),
            ],
            ...,
        ],
        *limits(
            max_length=50,
            strict=False,
            description="context keys that must have a value when it is reported, by name or with a declaration",
        ),
    ] = ()
    set: Annotated[
        tuple[SetActionForm, ...],
        *limits(max_length=50, strict=False, description="context keys that are set when the step is done"),
    ] = ()
    emit: Annotated[
        tuple[EmitForm, ...],
        *limits(max_length=EMITS_PER_STEP_MAX, strict=False, description="what is sent outside when the step is done"),
    ] = ()
    needs_user: Annotated[
        tuple[UserNeed, ...], *limits(max_length=10, strict=False, description="what only the user can provide")
    ] = ()
    delegate: Annotated[
        tuple[DelegationForm, ...],
        *limits(max_length=20, strict=False, description="work for subagents of the agent's client"),
    ] = ()
    capabilities: Annotated[
        tuple[CapabilityName, ...],
        *limits(
            max_length=5,
            strict=False,
            description="client capabilities that it uses; a capability observation is about the first",
        ),
    ] = ()
    hints: Annotated[Hints, described("free tags for readers; never enforced")] = ()
    metadata: Annotated[Metadata, described("free texts by name, for readers; never enforced")] = msgspec.field(
        default_factory=dict
    )
    verifies: Annotated[
        tuple[SafeId, ...],
        *limits(max_length=20, strict=False, description="earlier steps whose results this step checks, by id"),
    ] = ()
    by: Annotated[
        Literal["another"] | None, described("`another`: who reported a step of `verifies` cannot report this step")
    ] = None
    proof: Annotated[
        tuple[Proof, ...],
        *limits(
            max_length=PROOFS_PER_STEP_MAX,
            strict=False,
            description="commands that must have run, as `interlock witness` saw them, before the step can be reported",
        ),
    ] = ()


class ForForm(Part):
    """A fixed number of passes: a constant, or a number from the context."""

    count: Annotated[
        Annotated[int, *limits(ge=0)] | None, described("the number of passes; write this or `countFrom`")
    ] = None
    count_from: Annotated[ContextPath | None, described("the context path of the number of passes")] = None


class ForEachForm(Part):
    """One pass for each item of a list in the context."""

    items: Annotated[ContextPath, described("the context path of a list")]
    item_var: Annotated[Name, described("the name of the current item in the body")] = "item"


_STEP_TAGS = {kind: f"<{kind}>" for kind in ("loop", "parallel", "choose", "template", "await", "check", "approve")}
_TAGS_BY_KEY = (
    ("choose", "<choose>"),
    ("templateCall", "<template>"),
    ("body", "<loop>"),
    ("branches", "<parallel>"),
    ("loopId", "<loop>"),
    ("maxIterations", "<loop>"),
    ("otherwise", "<choose>"),
    ("question", "<approve>"),
    ("event", "<await>"),
    ("run", "<check>"),
)
"""The keys that only one kind of step has, in order of precedence."""
_TURNS = frozenset({"while", "until", "for", "forEach"})
_PROMPTS = frozenset({"prompt", "promptBlocks"})


def step_tag(value: Any) -> str:  # noqa: ANN401 — untrusted, or a form
    """Return the tag of a step's kind: by its `type`, else by its keys. A loop without `body` is a loop (PLAN-25)."""
    if not isinstance(value, dict):
        return "<step>"
    kind: object = value.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(kind, str) and kind in _STEP_TAGS:
        return _STEP_TAGS[kind]
    if kind == "step":
        return "<step>"
    for key, tag in _TAGS_BY_KEY:
        if key in value:
            return tag
    keys = cast("dict[str, object]", value).keys()
    return "<step>" if keys.isdisjoint(_TURNS) or not keys.isdisjoint(_PROMPTS) else "<loop>"


class LoopForm(Part):
    """A body of steps that is repeated, by exactly one of `while`, `until`, `for`, `forEach`."""

    type: Annotated[Literal["loop"], described("may be omitted")] = "loop"
    loop_id: Annotated[SafeId, described("its id; a loop-control artifact may name it")]
    title: Annotated[Title, described("its title, in one line")]
    when: Annotated[ConditionForm | None, described("the loop is skipped unless this is true")] = None
    max_iterations: Annotated[int, *limits(ge=1, le=LOOP_PASSES_MAX, description="the maximum number of passes")]
    while_: Annotated[ConditionForm | None, described("repeat while this is true")] = msgspec.field(
        default=None, name="while"
    )
    until: Annotated[ConditionForm | None, described("repeat until this is true, checked before each pass")] = None
    for_: Annotated[ForForm | None, described("repeat a fixed number of times")] = msgspec.field(
        default=None, name="for"
    )
    for_each: Annotated[ForEachForm | None, described("repeat for each item of a list")] = None
    iteration_var: Annotated[Name, described("the name of the pass number in the body, from 1")] = "iteration"
    index_var: Annotated[Name, described("the name of the pass number in the body, from 0")] = "index"
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        *limits(max_length=50, strict=False, description="instructions that steps of the body may refer to"),
    ] = ()
    body: Annotated[
        tuple["StepUnion", ...],
        *limits(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps to repeat"),
    ]


class BranchForm(Part):
    """The steps of one branch, in order."""

    steps: Annotated[
        tuple["StepUnion", ...],
        *limits(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of the branch, in order"),
    ]


class ParallelForm(Part):
    """Branches that do not wait for each other, and a barrier that waits for all of them."""

    type: Annotated[Literal["parallel"], described("may be omitted")] = "parallel"
    id: Annotated[SafeId, described("its id; the barrier is `<id>--join`")]
    title: Annotated[Title, described("its title, in one line")]
    when: Annotated[ConditionForm | None, described("all branches are skipped unless this is true")] = None
    branches: Annotated[
        tuple[BranchForm, ...],
        *limits(min_length=2, max_length=20, strict=False, description="the branches; they do not wait for each other"),
    ]


class ChoiceBranchForm(Part):
    """Steps that are performed if this is the first branch whose condition is true."""

    when: Annotated[ConditionForm, described("the condition of the branch")]
    steps: Annotated[
        tuple["StepUnion", ...],
        *limits(
            min_length=1, max_length=STEPS_MAX, strict=False, description="the steps of the choice branch, in order"
        ),
    ]


class ChooseForm(Part):
    """Performs exactly one branch: the first whose condition is true, else `otherwise`, which may be empty."""

    type: Annotated[Literal["choose"], described("may be omitted")] = "choose"
    id: Annotated[SafeId, described("its id")]
    title: Annotated[Title, described("its title, in one line")]
    when: Annotated[ConditionForm | None, described("all branches are skipped unless this is true")] = None
    choose: Annotated[
        tuple[ChoiceBranchForm, ...],
        *limits(min_length=1, max_length=50, strict=False, description="the branches, in the order of evaluation"),
    ]
    otherwise: Annotated[
        Annotated[tuple["StepUnion", ...], *limits(max_length=STEPS_MAX, strict=False)] | None,
        described("the steps if no branch is chosen; required, `[]` for none"),
    ] = None


class TemplateCallForm(Part):
    """The routine to unfold: by its id, or by a slot that a project may bind to another routine."""

    template_id: Annotated[str | None, described("a routine `wr.templates.routine.*`; write this or `slotId`")] = None
    slot_id: Annotated[str | None, described("a slot that is bound to a routine")] = None
    args: Annotated[
        dict[str, str | int | float | bool], described("the values for `{name}` in the routine's texts")
    ] = msgspec.field(default_factory=dict)


class TemplateForm(Part):
    """A routine that is unfolded in place. Its steps get the ids `<id>--<step>`."""

    type: Annotated[Literal["template"], described("may be omitted")] = "template"
    id: Annotated[SafeId, described("the prefix of the ids of the unfolded steps")]
    title: Annotated[Title | None, described("its title, in one line; if omitted, the id")] = None
    when: Annotated[ConditionForm | None, described("all its steps are skipped unless this is true")] = None
    template_call: Annotated[TemplateCallForm, described("the routine to unfold")]


if TYPE_CHECKING:
    StepUnion: TypeAlias = (
        "StepForm | LoopForm | ParallelForm | ChooseForm | TemplateForm | AwaitForm | CheckForm | ApproveForm"
    )
else:

    class StepUnion(Choice):
        """A step of any kind."""

        @classmethod
        def members(cls) -> tuple[type[Shape], ...]:
            """Return the classes of the union."""
            return tuple(_FORMS_BY_TAG.values())

        @classmethod
        def pick(cls, members: Mapping[str, object]) -> type[Shape]:
            """Return the class of a step."""
            return _FORMS_BY_TAG[step_tag(members)]

        @classmethod
        def union(cls) -> object:
            """Return the union in pydantic's terms."""
            from interlock.kernel.shape.mirror import alternatives  # noqa: PLC0415 — only pydantic asks

            return alternatives(_FORMS_BY_TAG, step_tag)


_FORMS_BY_TAG: Mapping[str, type[Shape]] = {
    "<step>": StepForm,
    "<loop>": LoopForm,
    "<parallel>": ParallelForm,
    "<choose>": ChooseForm,
    "<template>": TemplateForm,
    "<await>": AwaitForm,
    "<check>": CheckForm,
    "<approve>": ApproveForm,
}


class FeatureForm(Part):
    """A feature with its configuration."""

    id: Annotated[str, described("a feature `wr.features.*`")]
    config: Annotated[dict[str, str | int | bool], described("its settings by name")] = msgspec.field(
        default_factory=dict
    )


class WorkflowForm(Part):
    """A whole workflow."""

    id: Annotated[
        str, *limits(min_length=1, max_length=128, description="`namespace.name`, lower case; runs are started by it")
    ]
    name: Annotated[Title, described("its name for people")]
    description: Annotated[
        str, *limits(max_length=DESCRIPTION_CHARS_MAX, description="when to use it and when not; agents choose by it")
    ] = ""
    tags: Annotated[
        tuple[SafeId, ...], *limits(max_length=30, strict=False, description="tags to filter lists of workflows")
    ] = ()
    keywords: Annotated[
        tuple[Annotated[str, *limits(min_length=1, max_length=60)], ...],
        *limits(max_length=40, strict=False, description="what people say who want it; only searches read them"),
    ] = ()
    examples: Annotated[
        tuple[Annotated[str, *limits(min_length=1, max_length=200)], ...],
        *limits(max_length=10, strict=False, description="requests that fit it"),
    ] = ()
    agent_role: Annotated[LongText | None, described("the role for steps that have none")] = None
    guidance: Annotated[Lines, described("rules for the whole run, shown at its start and on resume")] = ()
    references: Annotated[
        tuple[Reference, ...], *limits(max_length=50, strict=False, description="material that it refers to")
    ] = ()
    inputs: Annotated[
        tuple[ContextInput, ...],
        *limits(
            max_length=50, strict=False, description="context keys that the caller sends at the start or that steps set"
        ),
    ] = ()
    capabilities: Annotated[
        dict[CapabilityName, CapabilityNeed], described("client capabilities, each required, preferred or disabled")
    ] = msgspec.field(default_factory=dict)
    features: Annotated[
        tuple[
            Annotated[
                Annotated[str, Alternative("<text>")] | Annotated[FeatureForm, Alternative("<object>")],
                AlternativeBy(_text_or_object),
            ],
            ...,
        ],
        *limits(
            max_length=20,
            strict=False,
            description="rule sets that are added to steps with `promptBlocks`; an id, or an id with its configuration",
        ),
    ] = ()
    conditions: Annotated[dict[SafeId, ConditionForm], described("conditions by name, for `condition_ref`")] = (
        msgspec.field(default_factory=dict)
    )
    function_definitions: Annotated[
        tuple[FunctionDefinition, ...],
        *limits(max_length=100, strict=False, description="instructions that any step may refer to"),
    ] = ()
    assessments: Annotated[
        tuple[Assessment, ...], *limits(max_length=50, strict=False, description="ratings that steps may require")
    ] = ()
    extension_points: Annotated[
        tuple[ExtensionPoint, ...], *limits(max_length=20, strict=False, description="slots that a project may bind")
    ] = ()
    recommended_preferences: Annotated[RecommendedPreferences | None, described("what the author recommends")] = None
    steps: Annotated[
        tuple[StepUnion, ...],
        *limits(min_length=1, max_length=STEPS_MAX, strict=False, description="the steps, in order"),
    ]
