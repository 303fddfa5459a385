"""The payload of every event kind (EVT-1)."""

from typing import Annotated, Literal

from interlock.kernel.budgets import (
    PATH_CHARS_MAX,
    SHORT_STRING_CHARS_MAX,
    WORK_REF_BYTES_MAX,
    WORK_REFS_MAX,
)
from interlock.kernel.budgets.operations import BOUND_DEFINITIONS_MAX
from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.ids import SourceKind
from interlock.kernel.shape import Rule, limits
from interlock.record.base import (
    AttemptIdField,
    CapObsIdField,
    ChangeIdField,
    ContextIdField,
    DelimiterSafe,
    DigestField,
    DivergenceIdField,
    EventIdField,
    GapIdField,
    IndexField,
    NodeIdField,
    OfKind,
    OutputIdField,
    PreferenceKey,
    Preferences,
    Record,
    RunIdField,
    SessionIdField,
    SnapshotRefField,
    TraceIdField,
    UuidField,
    WorkflowHashField,
    WorkNote,
    at_most_bytes,
    check_work_note,
)
from interlock.record.outcome import AdvanceOutcome, Capability
from interlock.record.world import PinnedCheck, PinnedProofs

NodeKind = Literal["step", "checkpoint", "blocked_attempt"]
EdgeKind = Literal["acked_step", "checkpoint"]
EdgeCauseKind = Literal["tip_advance", "intentional_fork", "checkpoint_created", "non_tip_advance", "idempotent_replay"]
"""Interlock writes the first three (ADV-3). It still reads the last two."""


class SessionCreated(Record):
    """A session exists. `imported`: an import made it; its value counts the events of the bundle (WORLD-11)."""

    imported: Annotated[int, *limits(ge=1)] | None = None


BindingRole = Literal["work", "test", "assessment"]


class Binding(Record):
    """What an execution of a flow is for: a part of a contract that is bound in this session (GOAL-8).

    `position` counts the work flows of the contract, or its assessments; `test` the test flows of that assessment.
    """

    binding_id: UuidField
    role: BindingRole
    position: IndexField
    test: IndexField | None = None

    def __post_init__(self) -> None:
        """Check that exactly a test flow has its number."""
        if (self.role == "test") != (self.test is not None):
            raise ValueError("only a test flow has the number of a test flow")


class RunStarted(Record):
    """A run exists, of this workflow and configuration (CFG-2). It may run `checks`; it `notifies` people or not."""

    workflow_id: str
    workflow_hash: WorkflowHashField
    workflow_source_kind: SourceKind
    workflow_source_ref: str
    applied_config_hash: DigestField | None = None
    binding: Binding | None = None
    checks: tuple[PinnedCheck, ...] | None = None
    proofs: PinnedProofs | None = None
    notifies: Literal[True] | None = None


class ParentBinding(Record):
    """The contract that a bound contract is a part of, and its position among the sub-contracts."""

    binding_id: UuidField
    position: IndexField


class ContractBound(Record):
    """This session executes a contract; or a part of it, if it has a parent (GOAL-8).

    `definition` is the digest of the contract as it was published; `definitions`, only without a parent, are those of
    everything that the contract refers to.
    """

    binding_id: UuidField
    contract_id: UuidField
    contract_version: Annotated[int, *limits(ge=1)]
    definition: DigestField
    definitions: Annotated[tuple[DigestField, ...], *limits(max_length=BOUND_DEFINITIONS_MAX)] | None = None
    parent: ParentBinding | None = None


ClaimedState = Literal["completed", "skipped", "failed", "cancelled"]


class ExecutionClaimed(Record):
    """An execution of a run of this or another session counts for a contract of this session too (GOAL-9).

    The claimed run is not changed. Its state is recorded here, and its outputs as an artifact with the digest
    `outputs`, so that the record is complete without it.
    """

    binding: Binding
    source_session_id: SessionIdField
    source_run_id: RunIdField
    source_node_id: NodeIdField
    flow_id: UuidField
    flow_version: Annotated[int, *limits(ge=1)]
    flow_execution_id: UuidField
    state: ClaimedState
    outputs: DigestField


class NodeCreated(Record):
    """A node of the run's graph; only a root has no parent. Its snapshot was stored before the event."""

    node_kind: NodeKind
    parent_node_id: NodeIdField | None
    workflow_hash: WorkflowHashField
    snapshot_ref: SnapshotRefField
    request_digest: DigestField | None = None


class EdgeCause(Record):
    """Why an edge exists, and the event of this session that caused it (ADV-3, ADV-10)."""

    kind: EdgeCauseKind
    event_id: EventIdField


class EdgeCreated(Record):
    """An advance, a fork or a checkpoint created a child node."""

    edge_kind: EdgeKind
    from_node_id: NodeIdField
    to_node_id: NodeIdField
    cause: EdgeCause


class AdvanceRecorded(Record):
    """The durable outcome of one attempt. `requestDigest` is the digest of the request (ADV-7).

    `took` names the events that the step waited for, which no later step of the branch takes again (WORLD-4).
    """

    attempt_id: AttemptIdField
    intent: Literal["ack_pending"]
    outcome: AdvanceOutcome
    request_digest: DigestField
    took: Annotated[tuple[EventIdField, ...], *limits(min_length=1)] | None = None


class _Payload(Record, tag_field="payloadKind"):
    """What an output holds."""


class NotesPayload(_Payload, tag="notes"):
    """The agent's notes on what it did in the step."""

    notes_markdown: str


class ArtifactPayload(_Payload, tag="artifact_ref"):
    """Structured evidence, stored by digest."""

    sha256: DigestField
    content_type: str
    byte_length: Annotated[int, *limits(ge=0)]


class NodeOutputAppended(Record):
    """One output of a node. A correction names the output that it replaces on the same node and channel."""

    output_id: OutputIdField
    output_channel: Literal["recap", "artifact"]
    payload: NotesPayload | ArtifactPayload
    supersedes_output_id: OutputIdField | None = None


ContextSource = Literal["initial", "agent_delta", "merge"]


class ContextSet(Record):
    """A context delta. It belongs to the node that the advance created (CTX-1)."""

    context_id: ContextIdField
    node_id: NodeIdField
    context: dict[str, Json]
    source: ContextSource


class PreferenceChange(Record):
    """One changed preference."""

    key: PreferenceKey
    value: str


class PreferencesChanged(Record):
    """Preferences from this node on: the change, and all preferences after it."""

    change_id: ChangeIdField
    source: Literal["user", "workflow_recommendation", "system"]
    delta: Annotated[tuple[PreferenceChange, ...], *limits(min_length=1)]
    effective: Preferences

    def __post_init__(self) -> None:
        """Check that the preferences after the change are those that it names."""
        effective = self.effective.to_json()
        if len({change.key for change in self.delta}) != len(self.delta):
            raise ValueError("a preference is changed twice")
        if any(effective[change.key] != change.value for change in self.delta):
            raise ValueError("the effective preferences disagree with the change")


class ProbeStepDetail(Record):
    """The result of a probe step that the compiler added."""

    probe_template_id: str
    probe_step_id: str
    result: Literal["success", "failure"]


class AttemptedUseDetail(Record):
    """The result of using a capability. A failure has a `failureCode`; a success has none."""

    attempt_context: Literal["workflow_step", "system_probe"]
    result: Literal["success", "failure"]
    failure_code: Literal["tool_missing", "tool_error", "policy_blocked", "unknown"] | None = None

    def __post_init__(self) -> None:
        """Check that exactly a failure has a code."""
        if (self.result == "failure") != (self.failure_code is not None):
            raise ValueError("only a failure has a failure code, and every failure has one")


class ManualClaimDetail(Record):
    """What the agent or the user claims about a capability."""

    claimed_by: Literal["agent", "user"]
    claim: Literal["available", "unavailable"]


class ProbeStep(OfKind, tag="probe_step"):
    """The status comes from a probe step: strong enough to enforce requirements."""

    enforcement_grade: Literal["strong"]
    detail: ProbeStepDetail


class AttemptedUse(OfKind, tag="attempted_use"):
    """The status comes from using the capability: strong enough to enforce requirements."""

    enforcement_grade: Literal["strong"]
    detail: AttemptedUseDetail


class ManualClaim(OfKind, tag="manual_claim"):
    """The status is only claimed: for information, it satisfies no requirement."""

    enforcement_grade: Literal["weak"]
    detail: ManualClaimDetail


class CapabilityObserved(Record):
    """The observed status of a capability, and how it was observed."""

    cap_obs_id: CapObsIdField
    capability: Capability
    status: Literal["unknown", "available", "unavailable"]
    provenance: ProbeStep | AttemptedUse | ManualClaim


GapSeverity = Literal["info", "warning", "critical"]

UserReason = Literal[
    "needs_user_secret_or_token",
    "needs_user_account_access",
    "needs_user_artifact",
    "needs_user_choice",
    "needs_user_approval",
    "needs_user_environment_action",
]
"""Why only a person can continue the step (MODE-1)."""
GapCategory = Literal["user_only_dependency", "contract_violation", "capability_missing", "unexpected"]
GapDetail = Literal[
    UserReason,
    "missing_required_output",
    "invalid_required_output",
    "required_capability_unavailable",
    "required_capability_unknown",
    "invariant_violation",
    "storage_corruption_detected",
]


class GapReason(Record):
    """The category and detail of a gap (MODE-1)."""

    category: GapCategory
    detail: GapDetail


class Unresolved(OfKind, tag="unresolved"):
    """The gap is open."""


class Resolves(OfKind, tag="resolves"):
    """This record resolves an earlier gap."""

    resolves_gap_id: GapIdField


class EventEvidence(OfKind, tag="event"):
    """An event that supports a gap."""

    event_id: EventIdField


class OutputEvidence(OfKind, tag="output"):
    """An output that supports a gap."""

    output_id: OutputIdField


class GapRecorded(Record):
    """Discloses missing or weak evidence. The record never changes; a later record may resolve it (GAP-2).

    `details` are the facts of its summary as data, such as the limit of a loop (WALK-6).
    """

    gap_id: GapIdField
    severity: GapSeverity
    reason: GapReason
    summary: str
    resolution: Unresolved | Resolves
    evidence_refs: tuple[EventEvidence | OutputEvidence, ...] | None = None
    details: dict[str, JsonScalar] | None = None


DivergenceReason = Literal[
    "missing_user_context",
    "capability_unavailable",
    "efficiency_skip",
    "safety_stop",
    "policy_constraint",
]


class DivergenceRecorded(Record):
    """The agent deviated from the step on purpose, and says why."""

    divergence_id: DivergenceIdField
    reason: DivergenceReason
    summary: Annotated[str, *limits(min_length=1)]
    related_step_id: DelimiterSafe | None = None


class StepRef(OfKind, tag="step_id"):
    """Refers to a step."""

    step_id: DelimiterSafe


class LoopRef(OfKind, tag="loop_id"):
    """Refers to a loop."""

    loop_id: DelimiterSafe


class ConditionRef(OfKind, tag="condition_id"):
    """Refers to a condition."""

    condition_id: DelimiterSafe


class IterationRef(OfKind, tag="iteration"):
    """Refers to a loop pass, counted from 0."""

    value: Annotated[int, *limits(ge=0)]


TraceKind = Literal[
    "selected_next_step", "evaluated_condition", "entered_loop", "exited_loop", "detected_non_tip_advance"
]


class TraceEntry(Record):
    """One decision: a summary, and references to what it is about."""

    kind: TraceKind
    summary: str
    refs: (
        Annotated[
            tuple[StepRef | LoopRef | ConditionRef | IterationRef, ...],
            *limits(max_length=10),
        ]
        | None
    ) = None


class DecisionTraceAppended(Record):
    """Explains the decisions of an advance. No result depends on it (TRACE-1).

    `captureRef` is the digest of the inputs that the decisions read.
    """

    trace_id: TraceIdField
    entries: Annotated[tuple[TraceEntry, ...], *limits(min_length=1, max_length=25)]
    capture_ref: DigestField | None = None


ObservationKey = Literal["git_branch", "git_head_sha", "repo_root_hash", "repo_root", "workspace_hash", "redacted_from"]
"""`workspace_hash` is recorded only without a repository.

`redacted_from` is about a session: the session that it is a redacted copy of."""


class ObservationValue(Record):
    """A text with its type. The type limits its length."""

    type: Literal["short_string", "git_sha1", "sha256", "path"]
    value: Annotated[str, *limits(max_length=PATH_CHARS_MAX)]

    def __post_init__(self) -> None:
        """Check the length of a short string."""
        if self.type == "short_string" and len(self.value) > SHORT_STRING_CHARS_MAX:
            raise ValueError(f"a short string of more than {SHORT_STRING_CHARS_MAX} characters")


class ObservationRecorded(Record):
    """One fact about the workspace or the session. Sessions can be found by it."""

    key: ObservationKey
    value: ObservationValue
    confidence: Literal["low", "med", "high"]


Work = Literal["failed", "cancelled", "released"]
"""How work ends otherwise than by its last step: a run fails or is cancelled, a node fails or is released."""
RunEndKind = Literal["failed", "cancelled"]
WorkReason = Literal[
    "user_request",
    "superseded",
    "duplicate",
    "out_of_scope",
    "gave_up",
    "handoff",
    "crashed",
    "timeout",
    "budget",
    "policy",
    "external",
]


_check_work_ref = at_most_bytes(WORK_REF_BYTES_MAX)
_WorkRef = Annotated[str, *limits(min_length=1), Rule(check=_check_work_ref)]
_WorkRefs = Annotated[tuple[_WorkRef, ...], *limits(min_length=1, max_length=WORK_REFS_MAX)]


class WorkRecorded(Record):
    """Work ended otherwise than by its last step (END-1).

    `answerRef` is the digest of a person's answer, if an agent asked for the end of the run (END-5).
    """

    work: Work
    reason: WorkReason
    note: WorkNote | None = None
    refs: _WorkRefs | None = None
    answer_ref: DigestField | None = None

    def __post_init__(self) -> None:
        """Check the size of the note and of the references."""
        if self.note is not None:
            check_work_note(self.note)
        for one in self.refs or ():
            _check_work_ref(one)
