"""What happens next: a start, or an attempt judged against the pinned plan. Pure: same inputs, same plan."""

from dataclasses import dataclass
from typing import TypeAlias

from interlock.engine.reasons import missing_notes
from interlock.engine.request import ARTIFACT_CONTENT_TYPE, Request
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import (
    AttemptId,
    ChangeId,
    ContextId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    SourceKind,
    WorkflowHash,
    derived_id,
    node_of_attempt,
)
from interlock.plan.compiled import CompiledWorkflow, PlanNode
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, Draft, PlannedEdge
from interlock.record.base import Preferences
from interlock.record.outcome import AdvancedTo, Blocked, Blocker, report
from interlock.record.snapshot import (
    Complete,
    ExecutionSnapshot,
    KeySet,
    PendingNone,
    PendingSome,
    PendingStep,
    Running,
    snapshot_of,
    step_instance_key,
)

_EMPTY_SET = KeySet(kind="set", values=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A run that is to begin. `is_new_session` says whether its session begins with it (D27)."""

    session: SessionId
    is_new_session: bool
    run: RunId
    workflow: CompiledWorkflow
    workflow_hash: WorkflowHash
    workflow_bytes: bytes
    source_kind: SourceKind
    source_ref: str
    request: Request
    baseline: Preferences


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to advance a node, with the facts it is judged by."""

    session: SessionId
    run: RunId
    node: NodeId
    attempt: AttemptId
    is_fork: bool
    refusals: int
    snapshot: ExecutionSnapshot
    preferences: Preferences
    workflow: CompiledWorkflow
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The evidence holds; the plan makes the next node, with this snapshot."""

    plan: AppendPlan
    snapshot: ExecutionSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The evidence does not hold; the plan makes a node for the refused attempt (D8)."""

    plan: AppendPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """The tenth refusal in a row: nothing more is recorded (D8)."""

    blockers: tuple[Blocker, ...]


Decision: TypeAlias = Advanced | Refused | LimitReached


def root_node(run: RunId) -> NodeId:
    """Return the root of a run: derived, so that a run has exactly one."""
    return NodeId(derived_id("node", run, "root"))


def plan_start(start: Start) -> AppendPlan:
    """Return the plan that begins a run: pinned workflow, root node, baseline preferences, initial context."""
    first = start.workflow.plan.nodes[0].step_id
    state = _running(_EMPTY_SET, first)
    ref, snapshot = _stored(snapshot_of(start.workflow_hash, state))
    root = root_node(start.run)
    run_started = data.RunStarted(
        workflow_id=start.workflow.workflow_id,
        workflow_hash=start.workflow_hash,
        workflow_source_kind=start.source_kind,
        workflow_source_ref=start.source_ref,
    )
    node_created = data.NodeCreated(
        node_kind="step", parent_node_id=None, workflow_hash=start.workflow_hash, snapshot_ref=ref
    )
    drafts = [Draft(data=data.SessionCreated())] if start.is_new_session else []
    drafts += [Draft(data=run_started, run=start.run), Draft(data=node_created, run=start.run, node=root)]
    effective = start.request.preferences.over(start.baseline)
    baseline = data.PreferencesChanged(
        change_id=ChangeId(derived_id("prefchg", start.run, "baseline")),
        source="user" if start.request.preferences.changes() else "system",
        delta=(
            data.PreferenceChange(key="autonomy", value=effective.autonomy),
            data.PreferenceChange(key="riskPolicy", value=effective.risk_policy),
        ),
        effective=effective,
    )
    drafts.append(Draft(data=baseline, run=start.run, node=root))
    drafts += _context_draft(start.request, start.run, root, derived_id("ctx", start.run, "initial"), "initial")
    return AppendPlan(
        session=start.session,
        drafts=tuple(drafts),
        snapshots=((ref, snapshot),),
        workflow=(start.workflow_hash, start.workflow_bytes),
    )


def decide_advance(attempt: Attempt) -> Decision:
    """Judge an attempt. The same evidence on the same facts always comes to the same decision."""
    state = attempt.snapshot.state
    assert isinstance(state, Running), "a complete node has no attempts"
    step = attempt.workflow.steps[state.pending.step.step_id]
    blockers = _judge(step, attempt.request)
    if not blockers:
        return _advanced(attempt, state, step)
    if attempt.refusals + 1 >= ATTEMPTS_PER_STEP_MAX:
        return LimitReached(blockers=tuple(report(blockers).blockers))
    return Refused(plan=_refusal_plan(attempt, blockers))


def _judge(step: PlanNode, request: Request) -> list[Blocker]:
    if step.evidence.required and not request.has_notes():
        return [missing_notes(step.title, step.evidence.contract_ref)]
    return []


def _advanced(attempt: Attempt, state: Running, step: PlanNode) -> Advanced:
    child = node_of_attempt(attempt.attempt)
    completed = state.completed.with_key(step_instance_key(step.step_id, state.pending.step.loop_path))
    following = attempt.workflow.followers.get(step.step_id)
    after = (
        _running(completed, following, state.skipped)
        if following is not None
        else Complete(kind="complete", completed=completed, skipped=state.skipped, pending=PendingNone(kind="none"))
    )
    snapshot = snapshot_of(attempt.snapshot.workflow_hash, after)
    ref, stored = _stored(snapshot)
    outcome = AdvancedTo(kind="advanced", to_node_id=child)
    edge = PlannedEdge(
        edge_kind="acked_step",
        from_node=attempt.node,
        to_node=child,
        cause="intentional_fork" if attempt.is_fork else "tip_advance",
        cause_position=0,
    )
    drafts = [
        Draft(data=_recorded(attempt, outcome), run=attempt.run, node=attempt.node),
        Draft(data=_node(attempt, "step", ref), run=attempt.run, node=child),
        Draft(data=edge, run=attempt.run),
        *_brought(attempt, child),
    ]
    plan = AppendPlan(
        session=attempt.session,
        drafts=tuple(drafts),
        snapshots=((ref, stored),),
        artifacts=attempt.request.stored_artifacts(),
    )
    return Advanced(plan=plan, snapshot=snapshot)


def _refusal_plan(attempt: Attempt, blockers: list[Blocker]) -> AppendPlan:
    """A refused attempt is a child with its parent's snapshot and no edge; what came with it hangs on it (D8)."""
    child = node_of_attempt(attempt.attempt)
    ref, _ = _stored(attempt.snapshot)
    outcome = Blocked(kind="blocked", blockers=report(blockers))
    drafts = [
        Draft(data=_recorded(attempt, outcome), run=attempt.run, node=attempt.node),
        Draft(data=_node(attempt, "blocked_attempt", ref), run=attempt.run, node=child),
        *_brought(attempt, child),
    ]
    return AppendPlan(session=attempt.session, drafts=tuple(drafts), artifacts=attempt.request.stored_artifacts())


def _recorded(attempt: Attempt, outcome: AdvancedTo | Blocked) -> data.AdvanceRecorded:
    return data.AdvanceRecorded(
        attempt_id=attempt.attempt, intent="ack_pending", outcome=outcome, request_digest=attempt.request.digest()
    )


def _node(attempt: Attempt, kind: data.NodeKind, ref: SnapshotRef) -> data.NodeCreated:
    return data.NodeCreated(
        node_kind=kind, parent_node_id=attempt.node, workflow_hash=attempt.snapshot.workflow_hash, snapshot_ref=ref
    )


def _brought(attempt: Attempt, child: NodeId) -> list[Draft]:
    """What came with an attempt, attached to the node it creates: outputs, then context, then preferences."""
    request, drafts = attempt.request, list[Draft]()
    if request.has_notes():
        notes = data.NotesPayload(payload_kind="notes", notes_markdown=request.stored_notes())
        drafts.append(_output(attempt, child, "recap", notes, "notes"))
    for digest, stored in request.stored_artifacts():
        payload = data.ArtifactPayload(
            payload_kind="artifact_ref", sha256=digest, content_type=ARTIFACT_CONTENT_TYPE, byte_length=len(stored)
        )
        drafts.append(_output(attempt, child, "artifact", payload, digest))
    drafts += _context_draft(request, attempt.run, child, derived_id("ctx", attempt.attempt, "context"), "agent_delta")
    changes = request.preferences.changes()
    if changes:
        changed = data.PreferencesChanged(
            change_id=ChangeId(derived_id("prefchg", attempt.attempt, "preferences")),
            source="user",
            delta=tuple(
                data.PreferenceChange.model_validate({"key": key, "value": value}) for key, value in changes.items()
            ),
            effective=request.preferences.over(attempt.preferences),
        )
        drafts.append(Draft(data=changed, run=attempt.run, node=child))
    return drafts


def _output(
    attempt: Attempt, child: NodeId, channel: str, payload: data.NotesPayload | data.ArtifactPayload, discriminator: str
) -> Draft:
    output = data.NodeOutputAppended.model_validate(
        {
            "output_id": OutputId(derived_id("out", attempt.attempt, discriminator)),
            "output_channel": channel,
            "payload": payload,
        }
    )
    return Draft(data=output, run=attempt.run, node=child)


def _context_draft(request: Request, run: RunId, node: NodeId, context_id: str, source: str) -> list[Draft]:
    if not request.context:
        return []
    context = data.ContextSet.model_validate(
        {"context_id": ContextId(context_id), "node_id": node, "context": dict(request.context), "source": source}
    )
    return [Draft(data=context, run=run)]


def _running(completed: KeySet, step_id: str, skipped: KeySet = _EMPTY_SET) -> Running:
    step = PendingStep(step_id=step_id, loop_path=())
    return Running(
        kind="running", completed=completed, skipped=skipped, loop_stack=(), pending=PendingSome(kind="some", step=step)
    )


def _stored(snapshot: ExecutionSnapshot) -> tuple[SnapshotRef, bytes]:
    stored = snapshot.to_bytes()
    return SnapshotRef(digest_of_bytes(stored)), stored
