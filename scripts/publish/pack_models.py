"""The artifacts of the contract packs, as models: the one place where their fields are written down.

At run time only the schemas count that were generated from here (`pack_schemas`), and of those what a plan pins.
"""

from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from interlock.kernel.canonical import Json

_Text = Annotated[str, Field(min_length=1)]
_SafeId = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=300)]
_Confidence = Literal["high", "medium", "low"]


class Artifact(BaseModel):
    """Structured evidence. Closed: a misspelt field is told instead of lost."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, validate_by_alias=True, defer_build=True)


class OpenArtifact(BaseModel):
    """Structured evidence that may hold more than its contract asks for."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, validate_by_alias=True, defer_build=True)


class LoopControlMetadata(Artifact):
    """What led to the decision."""

    reason: Annotated[str | None, Field(max_length=1024)] = None
    issues_found: int | None = None
    iteration_index: int | None = None
    confidence: Annotated[float | None, Field(ge=0, le=100)] = None


class LoopControl(Artifact):
    """Whether a loop goes on."""

    kind: Literal["wr.loop_control"]
    decision: Literal["continue", "stop"]
    loop_id: _SafeId | None = None
    summary: Annotated[str | None, Field(max_length=1024)] = None
    metadata: LoopControlMetadata | None = None


class CapabilityObservation(Artifact):
    """Whether the client can do something, as tried."""

    kind: Literal["wr.capability_observation"]
    capability: Literal["delegation", "web_browsing"]
    status: Literal["available", "unavailable", "unknown"]
    detail: Annotated[str | None, Field(max_length=1024)] = None


class WorkflowDivergence(Artifact):
    """The script was left on purpose, and why."""

    kind: Literal["wr.workflow_divergence"]
    reason: Literal[
        "missing_user_context", "capability_unavailable", "efficiency_skip", "safety_stop", "policy_constraint"
    ]
    summary: Annotated[str, Field(min_length=1, max_length=1024)]
    step_id: _SafeId | None = None


class Check(Artifact):
    """One thing that was checked, with what shows it."""

    name: _Text
    result: Literal["passed", "failed", "skipped"]
    evidence: _Text


class VerificationReport(Artifact):
    """What was checked, what came of it, and what shows it."""

    kind: Literal["wr.verification_report"]
    verdict: Literal["passed", "failed", "partial"]
    checks: Annotated[list[Check], Field(min_length=1, max_length=50)]
    summary: _Text


class RatedLevel(Artifact):
    """A level with its reason."""

    level: _Text
    rationale: Annotated[str | None, Field(max_length=512)] = None


class Assessment(Artifact):
    """A rating: one level for each dimension."""

    kind: Literal["wr.assessment"]
    assessment_id: _Text | None = None
    # May be empty: where every dimension is optional, rating none is an answer.
    dimensions: dict[str, _Text | RatedLevel]
    summary: Annotated[str | None, Field(max_length=1024)] = None


class Decision(Artifact):
    """A question that was decided."""

    kind: Literal["wr.decision"]
    condition_id: _Text
    result: bool
    rationale: Annotated[str | None, Field(max_length=2048)] = None


class Confirmation(Artifact):
    """Who confirmed what."""

    kind: Literal["wr.confirmation"]
    confirmed_by: _Text
    statement: _Text


class CoordinatorSignal(Artifact):
    """A message to whoever coordinates the run."""

    kind: Literal["wr.coordinator_signal"]
    signal_kind: Literal["progress", "finding", "data_needed", "approval_needed", "blocked"]
    payload: dict[str, Any]
    session_id: _Text | None = None


class ReviewFinding(OpenArtifact):
    """One finding of a review."""

    severity: Literal["critical", "major", "minor", "nit"]
    summary: _Text
    finding_category: (
        Literal["correctness", "security", "architecture", "ux", "performance", "testing", "style"] | None
    ) = None


class ReviewVerdict(Artifact):
    """What a review comes to."""

    kind: Literal["wr.review_verdict"]
    verdict: Literal["clean", "minor", "blocking"]
    confidence: _Confidence
    findings: list[ReviewFinding]
    summary: _Text


class RejectedDirection(OpenArtifact):
    """A way that was not taken."""

    direction: _Text
    reason: _Text


class CodeLocation(OpenArtifact):
    """A place in the code, and why it matters."""

    path: _Text
    relevance: _Text


class DiscoveryHandoff(OpenArtifact):
    """The direction that was found, for whoever designs it."""

    kind: Literal["wr.discovery_handoff"]
    version: Literal[1]
    selected_direction: _Text
    design_doc_path: str
    confidence_band: _Confidence
    key_invariants: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=12)]
    rejected_directions: Annotated[list[RejectedDirection] | None, Field(max_length=5)] = None
    implementation_constraints: Annotated[list[str] | None, Field(max_length=8)] = None
    key_codebase_locations: Annotated[list[CodeLocation] | None, Field(max_length=10)] = None
    selection_tier: Literal["strong_recommendation", "provisional_recommendation", "insufficient_signal"] | None = None


class ShapingHandoff(OpenArtifact):
    """The shape of the work, for whoever builds it."""

    kind: Literal["wr.shaping_handoff"]
    version: Literal[1]
    pitch_path: _Text
    selected_shape: Annotated[str, Field(min_length=1, max_length=200)]
    appetite: Annotated[str, Field(min_length=1, max_length=100)]
    key_constraints: Annotated[list[str], Field(max_length=8)]
    rabbit_holes: Annotated[list[str], Field(max_length=6)]
    out_of_scope: Annotated[list[str], Field(max_length=6)]
    validation_checklist: Annotated[list[str], Field(max_length=10)]


class CorrectedAssumption(OpenArtifact):
    """What was thought, and what is so."""

    assumed: _Text
    actual: _Text


class CodingHandoff(OpenArtifact):
    """What was built, for whoever reviews it."""

    kind: Literal["wr.coding_handoff"]
    version: Literal[1]
    branch_name: str | None = None
    key_decisions: Annotated[list[str], Field(max_length=8)]
    known_limitations: Annotated[list[str], Field(max_length=6)]
    tests_added: Annotated[list[str], Field(max_length=10)]
    files_changed: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=20)]
    corrected_assumptions: Annotated[list[CorrectedAssumption] | None, Field(max_length=6)] = None


class GateVerdict(OpenArtifact):
    """Whether a gate opens, and why."""

    kind: Literal["wr.gate_verdict"]
    version: Literal[1]
    verdict: Literal["approved", "rejected", "uncertain"]
    confidence: _Confidence
    rationale: Annotated[str, Field(min_length=20)]


class ConsideredAlternative(OpenArtifact):
    """What somebody would use instead, and what sets this apart from it."""

    name: _Text
    difference: _Text


class SupportedClaim(OpenArtifact):
    """Something that is claimed, and where it shows."""

    claim: _Text
    source: _Text


class DifferentiationHandoff(OpenArtifact):
    """How something stands apart, for whoever builds or sells it."""

    kind: Literal["wr.differentiation_handoff"]
    version: Literal[1]
    positioning: _Text
    key_differentiators: Annotated[list[_Text], Field(max_length=8)]
    target_segment: _Text | None = None
    alternatives: Annotated[list[ConsideredAlternative] | None, Field(max_length=10)] = None
    evidence: Annotated[list[SupportedClaim] | None, Field(max_length=10)] = None
    risks: Annotated[list[_Text] | None, Field(max_length=8)] = None


class BlockOutputs(OpenArtifact):
    """The outputs of a block, by port."""

    kind: Literal["wr.block_outputs"]
    outputs: dict[str, Any]


class StepInput(OpenArtifact):
    """What a step takes in: the prompt and whatever the context holds."""


MODELS: dict[str, type[BaseModel]] = {
    "wr.contracts.assessment": Assessment,
    "wr.contracts.block_outputs": BlockOutputs,
    "wr.contracts.capability_observation": CapabilityObservation,
    "wr.contracts.coding_handoff": CodingHandoff,
    "wr.contracts.confirmation": Confirmation,
    "wr.contracts.coordinator_signal": CoordinatorSignal,
    "wr.contracts.decision": Decision,
    "wr.contracts.differentiation_handoff": DifferentiationHandoff,
    "wr.contracts.discovery_handoff": DiscoveryHandoff,
    "wr.contracts.gate_verdict": GateVerdict,
    "wr.contracts.loop_control": LoopControl,
    "wr.contracts.review_verdict": ReviewVerdict,
    "wr.contracts.shaping_handoff": ShapingHandoff,
    "wr.contracts.step_input": StepInput,
    "wr.contracts.verification_report": VerificationReport,
    "wr.contracts.workflow_divergence": WorkflowDivergence,
}


def normalised_schemas() -> dict[str, dict[str, Json]]:
    """Return the schema of every pack: definitions inlined, nothing that only a library's release decides."""
    return {ref: _schema(model) for ref, model in MODELS.items()}


def _schema(model: type[BaseModel]) -> dict[str, Json]:
    raw = cast("dict[str, Json]", model.model_json_schema(by_alias=True, mode="validation"))
    definitions = cast("dict[str, Json]", raw.pop("$defs", {}))
    return cast("dict[str, Json]", _normal(raw, definitions))


_DROPPED = frozenset({"title", "default", "description"})


def _normal(node: Json, definitions: dict[str, Json]) -> Json:
    if isinstance(node, list):
        return [_normal(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _normal(definitions[str(node["$ref"]).rpartition("/")[2]], definitions)
    options = node.get("anyOf")
    if isinstance(options, list):
        others = [option for option in options if option != {"type": "null"}]
        rest: dict[str, Json] = {key: value for key, value in node.items() if key != "anyOf"}
        if len(others) == 1 and isinstance(others[0], dict):
            return _normal({**others[0], **rest}, definitions)
    if "const" in node and node.get("type") == "string":
        node = {key: value for key, value in node.items() if key != "type"}
    normal: dict[str, Json] = {}
    for key, value in sorted(node.items()):
        if key == "properties" and isinstance(value, dict) and value:
            normal[key] = {name: _normal(member, definitions) for name, member in sorted(value.items())}
        elif not _says_nothing(key, value):
            normal[key] = (
                sorted(value, key=str) if key == "required" and isinstance(value, list) else _normal(value, definitions)
            )
    return normal


def _says_nothing(key: str, value: Json) -> bool:
    """Say whether a keyword refuses no value: a description, or the spelling of a default."""
    return key in _DROPPED or (key == "additionalProperties" and value is True) or (key == "properties" and not value)
