"""The syntax of WorkRail files (version 3.x): one closed model per part, with that project's keys.

`document` and `steps` turn these models into the document model. Text lengths are limited by Interlock's own limits,
not by those of WorkRail.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import Discriminator, Field, Tag

from interlock.define.parts import (
    Assessment,
    ContextKey,
    ExtensionPoint,
    FunctionDefinition,
    LongText,
    Name,
    RecommendedPreferences,
    Reference,
    SafeId,
    Title,
)
from interlock.kernel.budgets.workflow import (
    LOOP_PASSES_MAX,
    PROMPT_BYTES_MAX,
    STEPS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.shape.mirror import Form

Text = Annotated[str, Field(max_length=PROMPT_BYTES_MAX)]
TextLines = Annotated[tuple[Text, ...], Field(max_length=500, strict=False)]
ModelTier = Literal["lightweight", "mid", "heavy"]


def _members(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _text_or_list(value: object) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<text>"


def _number_or_text(value: object) -> str:
    return "<text>" if isinstance(value, str) else "<number>"


def _confirmation_tag(value: object) -> str:
    if not isinstance(value, dict):
        return "<flag>"
    return "<gate>" if "kind" in value else "<condition>"


def _criterion_tag(value: object) -> str:
    members = _members(value)
    is_joined = "type" not in members and any(key in members for key in ("and", "or", "not"))
    return "<composition>" if is_joined else "<rule>"


def _criteria_tag(value: object) -> str:
    return "<list>" if isinstance(value, list | tuple) else _criterion_tag(value)


def step_tag(value: object) -> str:
    """Return the tag of a step's kind: by its `type`, else by a key that only this kind has."""
    members = _members(value)
    kinds = {"loop": "<loop>", "parallel": "<parallel>"}
    if isinstance(kind := members.get("type"), str) and kind in kinds:
        return kinds[kind]
    if "parallelDelegations" in members:
        return "<parallel>"
    return "<loop>" if "loop" in members else "<step>"


class ConditionForm(Form):
    """A condition. It may have several of these keys; the lowering decides which one counts."""

    var: ContextKey | None = None
    equals: Json = None
    not_equals: Annotated[Json, Field(alias="not_equals")] = None
    gt: int | float | None = None
    gte: int | float | None = None
    lt: int | float | None = None
    lte: int | float | None = None
    in_: Annotated[tuple[Json, ...] | None, Field(alias="in", strict=False)] = None
    contains: str | None = None
    and_: Annotated[tuple["ConditionForm", ...] | None, Field(alias="and", strict=False)] = None
    or_: Annotated[tuple["ConditionForm", ...] | None, Field(alias="or", strict=False)] = None
    not_: Annotated["ConditionForm | None", Field(alias="not")] = None


class RuleForm(Form):
    """One rule on the notes."""

    type: Literal["contains", "regex", "length", "schema"]
    message: Text
    value: Annotated[str, Field(min_length=1)] | None = None
    pattern: Annotated[str, Field(min_length=1)] | None = None
    flags: str | None = None
    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None
    schema_: Annotated[Json, Field(alias="schema")] = None
    condition: ConditionForm | None = None


class CompositionForm(Form):
    """Rules that are joined: exactly one of `and`, `or`, `not`."""

    and_: Annotated[tuple["CriterionForm", ...] | None, Field(alias="and", strict=False)] = None
    or_: Annotated[tuple["CriterionForm", ...] | None, Field(alias="or", strict=False)] = None
    not_: Annotated["CriterionForm | None", Field(alias="not")] = None


CriterionForm = Annotated[
    Annotated[RuleForm, Tag("<rule>")] | Annotated[CompositionForm, Tag("<composition>")],
    Discriminator(_criterion_tag),
]
CriteriaForm = Annotated[
    Annotated[RuleForm, Tag("<rule>")]
    | Annotated[CompositionForm, Tag("<composition>")]
    | Annotated[tuple[CriterionForm, ...], Field(max_length=50, strict=False), Tag("<list>")],
    Discriminator(_criteria_tag),
]


class ProsePart(Form):
    """A part of a prompt: a text, or the text of a reference."""

    kind: Literal["text", "ref"]
    text: Text | None = None
    ref_id: str | None = None


Value = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[tuple[ProsePart, ...], Field(max_length=50, strict=False), Tag("<list>")],
    Discriminator(_text_or_list),
]
Values = Annotated[tuple[Value, ...], Field(max_length=100, strict=False)]


class PromptBlocksForm(Form):
    """A prompt in parts."""

    goal: Value | None = None
    constraints: Values = ()
    procedure: Values = ()
    output_required: dict[str, Value] = Field(default_factory=dict)
    verify: Values = ()


class PromptFragmentForm(Form):
    """A text that is added to the prompt if its condition is true."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    text: LongText
    when: ConditionForm | None = None


class TemplateCallForm(Form):
    """A routine to unfold in place."""

    template_id: Annotated[str, Field(min_length=1, max_length=128)]
    args: dict[str, Json] = Field(default_factory=dict)


class GateForm(Form):
    """Who must confirm the step, and when."""

    kind: Literal["coordinator_eval", "human_approval"]
    condition: ConditionForm | None = None


ConfirmationForm = Annotated[
    Annotated[bool, Tag("<flag>")] | Annotated[GateForm, Tag("<gate>")] | Annotated[ConditionForm, Tag("<condition>")],
    Discriminator(_confirmation_tag),
]


class OutputContractForm(Form):
    """The contract that the step's artifact must meet."""

    contract_ref: Annotated[str, Field(min_length=1, max_length=128)]
    required: bool = True


class ConsequenceWhen(Form):
    """A level that at least one dimension was rated with."""

    any_equals_level: Annotated[str, Field(min_length=1, max_length=64)]
    for_assessment: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class ConsequenceEffect(Form):
    """What the agent must do because of the rating."""

    kind: Literal["require_followup"]
    guidance: LongText


class ConsequenceForm(Form):
    """The consequence of a rating."""

    when: ConsequenceWhen
    effect: ConsequenceEffect


class FunctionCallForm(Form):
    """A function that the step must use, with its arguments."""

    name: Name
    args: dict[str, Json] = Field(default_factory=dict)


class VerificationForm(Form):
    """A check of the step's result by a verifier."""

    command: LongText | None = None
    prompt: LongText | None = None


class AuditForm(Form):
    """A review of the step against a rubric."""

    prompt: LongText | None = None
    rubric: TextLines = ()


class _AnyStep(Form):
    """What every kind of step may have."""

    id: SafeId
    title: Title
    run_condition: ConditionForm | None = None
    require_confirmation: ConfirmationForm | None = None
    notes_optional: bool = False


_Functions = Annotated[tuple[FunctionDefinition, ...], Field(max_length=50, strict=False)]
_FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\(\)$", max_length=66)]


class StepForm(_AnyStep):
    """One unit of work: exactly one of `prompt`, `prompt_blocks`, `template_call`."""

    prompt: LongText | None = None
    prompt_blocks: PromptBlocksForm | None = None
    template_call: TemplateCallForm | None = None
    prompt_fragments: Annotated[tuple[PromptFragmentForm, ...], Field(max_length=50, strict=False)] = ()
    agent_role: LongText | None = None
    model_tier: ModelTier | None = None
    guidance: TextLines = ()
    ask_for_files: bool = False
    has_validation: bool = False
    validation_criteria: CriteriaForm | None = None
    output_contract: OutputContractForm | None = None
    assessment_refs: Annotated[tuple[str, ...], Field(max_length=20, strict=False)] = ()
    assessment_consequences: Annotated[tuple[ConsequenceForm, ...], Field(max_length=10, strict=False)] = ()
    function_definitions: _Functions = ()
    function_references: Annotated[tuple[_FunctionName, ...], Field(max_length=50, strict=False)] = ()
    function_calls: Annotated[tuple[FunctionCallForm, ...], Field(max_length=50, strict=False)] = ()
    verification: VerificationForm | None = None
    audit: AuditForm | None = None


class DelegationForm(Form):
    """Work for a subagent, with the workflow that describes the method."""

    workflow_id: Annotated[str, Field(min_length=1, max_length=128)]
    goal: LongText | None = None
    run_condition: ConditionForm | None = None
    context_mapping: dict[ContextKey, Text] = Field(default_factory=dict)
    args: dict[str, Text] = Field(default_factory=dict)
    model_tier: ModelTier | None = None
    allowed_tools: Annotated[tuple[Text, ...] | None, Field(min_length=1, max_length=100, strict=False)] = None


class SynthesisForm(Form):
    """The step that combines the results of subagents."""

    prompt: LongText | None = None
    output_contract: OutputContractForm | None = None


class ParallelForm(_AnyStep):
    """Work that is delegated to subagents."""

    type: Literal["parallel"]
    parallel_delegations: Annotated[tuple[DelegationForm, ...], Field(max_length=100, strict=False)]
    synthesis: SynthesisForm | None = None


class ArtifactSource(Form):
    """The loop continues while the loop-control artifact of a call says so."""

    kind: Literal["artifact_contract"]
    contract_ref: Literal["wr.contracts.loop_control"]
    loop_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class ContextSource(Form):
    """The loop depends on a condition on the context."""

    kind: Literal["context_variable"]
    condition: ConditionForm


class LoopSpecForm(Form):
    """How often the body is repeated."""

    type: Literal["while", "until", "for", "forEach"]
    max_iterations: Annotated[int, Field(ge=1, le=LOOP_PASSES_MAX)]
    condition: ConditionForm | None = None
    condition_source: Annotated[ArtifactSource | ContextSource, Field(discriminator="kind")] | None = None
    count: (
        Annotated[
            Annotated[int, Field(ge=0, le=LOOP_PASSES_MAX), Tag("<number>")] | Annotated[ContextKey, Tag("<text>")],
            Discriminator(_number_or_text),
        ]
        | None
    ) = None
    items: ContextKey | None = None
    iteration_var: Name = "currentIteration"
    item_var: Name = "currentItem"
    index_var: Name = "currentIndex"


class LoopForm(_AnyStep):
    """A body that is repeated: a list of steps, or the id of another step."""

    type: Literal["loop"]
    loop: LoopSpecForm
    body: Annotated[
        Annotated[Annotated[str, Field(min_length=1, max_length=128)], Tag("<text>")]
        | Annotated[tuple["AnyStepForm", ...], Field(min_length=1, max_length=STEPS_MAX, strict=False), Tag("<list>")],
        Discriminator(_text_or_list),
    ]
    function_definitions: _Functions = ()


AnyStepForm = Annotated[
    Annotated[StepForm, Tag("<step>")]
    | Annotated[LoopForm, Tag("<loop>")]
    | Annotated[ParallelForm, Tag("<parallel>")],
    Discriminator(step_tag),
]


class ReferenceForm(Reference):
    """Material that the workflow refers to. `resolveFrom` is accepted, but not used."""

    resolve_from: Literal["workspace", "package"] | None = None


class WorkflowForm(Form):
    """A whole file."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    name: Title
    description: LongText
    version: Annotated[str, Field(min_length=1, max_length=128)]
    steps: Annotated[tuple[AnyStepForm, ...], Field(min_length=1, max_length=STEPS_MAX, strict=False)]
    model_tier: ModelTier | None = None
    preconditions: TextLines = ()
    clarification_prompts: TextLines = ()
    meta_guidance: TextLines = ()
    function_definitions: Annotated[tuple[FunctionDefinition, ...], Field(max_length=100, strict=False)] = ()
    recommended_preferences: RecommendedPreferences | None = None
    features: Annotated[tuple[str, ...], Field(max_length=20, strict=False)] = ()
    assessments: Annotated[tuple[Assessment, ...], Field(max_length=50, strict=False)] = ()
    extension_points: Annotated[tuple[ExtensionPoint, ...], Field(max_length=20, strict=False)] = ()
    references: Annotated[tuple[ReferenceForm, ...], Field(max_length=50, strict=False)] = ()
    validated_against_spec_version: Annotated[int, Field(ge=1)] | None = None
    about: Text | None = None
    examples: Annotated[tuple[Text, ...], Field(max_length=20, strict=False)] = ()
    metrics_profile: Literal["coding", "review", "research", "design", "ticket", "none"] | None = None
