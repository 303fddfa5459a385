"""What happens next: a start, or an attempt judged against the pinned plan. Pure: same inputs, same plan."""

from dataclasses import dataclass
from typing import TypeAlias, cast

from interlock.decide.evaluate import NOTHING, Undecided, value_at
from interlock.engine import reasons
from interlock.engine.declared import unfit_set
from interlock.engine.evidence import evidence_values, judge
from interlock.engine.flow import EndlessWalk, LoopLimit, Moved, Stuck, go_on, loop_decisions_of, with_loop_variables
from interlock.engine.request import Request
from interlock.engine.template import rendered
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, BLOCKERS_MAX, CONTEXT_BYTES_MAX, TRACE_ENTRIES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.ids import (
    AttemptId,
    ChangeId,
    ContextId,
    Digest,
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
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode
from interlock.plan.walk import Marks
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, Draft, PlannedEdge
from interlock.record.base import Preferences
from interlock.record.context import Context, merged_context
from interlock.record.outcome import AdvancedTo, Blocked, Blocker, report
from interlock.record.payloads import TraceEntry
from interlock.record.snapshot import ExecutionSnapshot, Running, snapshot_of


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
    """One attempt to advance a node, with the facts it is judged by.

    `context` is the node's own; `earlier` is what the refused attempt brought that made the node, if one did.
    """

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
    context: Context
    earlier: Request | None = None

    @property
    def evidence(self) -> Request:
        """What there is to judge: what came now, with what came before."""
        return self.request if self.earlier is None else self.request.over(self.earlier)


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


def plan_start(start: Start) -> AppendPlan | Stuck:
    """Return the plan that begins a run: pinned workflow, root node, baseline preferences, initial context.

    What the first step turns on must be in the initial context: without it nothing begins.
    """
    context = merged_context({}, start.request.context)
    moved = go_on(start.workflow, Marks(start.workflow.graphs), context)
    if isinstance(moved, Stuck):
        return moved
    ref, snapshot = _stored(snapshot_of(start.workflow_hash, moved.state))
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
    drafts += _context_draft(start.request.context, start.run, root, derived_id("ctx", start.run, "initial"), "initial")
    drafts += _trace_draft(moved.trace, start.run, root, derived_id("trace", start.run, "start"))
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
    outcome = _moved(attempt, state)
    if isinstance(outcome, _Went):
        return _advanced(attempt, outcome)
    blockers = sorted(outcome, key=Blocker.sort_key)[:BLOCKERS_MAX]
    if attempt.refusals + 1 >= ATTEMPTS_PER_STEP_MAX:
        return LimitReached(blockers=tuple(blockers))
    return Refused(plan=_refusal_plan(attempt, blockers))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Went:
    """Where an attempt leads, what it sets on the way, and why it went there."""

    moved: Moved
    sets: Context
    trace: tuple[TraceEntry, ...]


def _moved(attempt: Attempt, state: Running) -> "_Went | list[Blocker]":
    """Judge the evidence, then go on through the plan; nothing moves unless both succeed."""
    workflow, pending = attempt.workflow, state.pending.step
    node = workflow.steps[pending.step_id]
    context = merged_context(attempt.context, attempt.request.context)
    seen = with_loop_variables(workflow.graphs, context, pending.loop_path)
    judged = judge(workflow, node, attempt.evidence, seen)
    if judged.blockers:
        return list(judged.blockers)
    sets = _set_values(workflow, node, {**seen, **evidence_values(workflow, node, attempt.evidence)})
    if isinstance(sets, Blocker):
        return [sets]
    context = merged_context(context, sets)
    if sets and (measured := len(canonical_bytes(dict(context)))) > CONTEXT_BYTES_MAX:
        return [reasons.context_too_large(measured, CONTEXT_BYTES_MAX)]
    marks = Marks(workflow.graphs, state)
    marks.complete(node.node_id)
    moved = go_on(workflow, marks, context, loop_decisions_of(attempt.evidence.artifacts))
    if isinstance(moved, Stuck):
        return [stuck_blocker(moved, with_loop_variables(workflow.graphs, context, marks.stack))]
    return _Went(moved=moved, sets=sets, trace=(*judged.trace, *moved.trace))


def stuck_blocker(stuck: Stuck, context: Context) -> Blocker:
    """Return why a run cannot go on, as a blocker."""
    match stuck.reason:
        case Undecided():
            return reasons.undecided(stuck.reason, rendered(stuck.node.title, context))
        case LoopLimit(loop_id=loop_id, iteration=iteration, max_iterations=maximum):
            return reasons.loop_limit(loop_id, iteration, maximum)
        case EndlessWalk():
            return reasons.endless(stuck.node.node_id)


def _set_values(workflow: CompiledWorkflow, node: PlanNode, seen: Context) -> dict[str, Json] | Blocker:
    """Return what a step sets when it is done."""
    assert node.task is not None, "only a task sets anything"
    values: dict[str, Json] = {}
    for action in node.task.sets:
        found = value_at(seen, action.source) if action.source is not None else action.value
        if found is NOTHING:
            assert action.source is not None, "a value is always there"
            return reasons.missing_key(rendered(node.title, seen), action.source)
        unfit = unfit_set(workflow, rendered(node.title, seen), action, found)
        if unfit is not None:
            return unfit
        values[action.key] = cast("Json", found)
        seen = merged_context(seen, {action.key: values[action.key]})
    return values


def _advanced(attempt: Attempt, went: _Went) -> Advanced:
    child = node_of_attempt(attempt.attempt)
    snapshot = snapshot_of(attempt.snapshot.workflow_hash, went.moved.state)
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
        *_brought(attempt, child, went.sets),
        *_trace_draft(went.trace, attempt.run, child, derived_id("trace", attempt.attempt, "decisions")),
    ]
    plan = AppendPlan(
        session=attempt.session,
        drafts=tuple(drafts),
        snapshots=((ref, stored),),
        artifacts=_files(attempt),
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
    return AppendPlan(session=attempt.session, drafts=tuple(drafts), artifacts=_files(attempt))


def _files(attempt: Attempt) -> tuple[tuple[Digest, bytes], ...]:
    return tuple((stored.digest, stored.data) for stored in attempt.evidence.stored_artifacts())


def _recorded(attempt: Attempt, outcome: AdvancedTo | Blocked) -> data.AdvanceRecorded:
    return data.AdvanceRecorded(
        attempt_id=attempt.attempt, intent="ack_pending", outcome=outcome, request_digest=attempt.request.digest()
    )


def _node(attempt: Attempt, kind: data.NodeKind, ref: SnapshotRef) -> data.NodeCreated:
    return data.NodeCreated(
        node_kind=kind, parent_node_id=attempt.node, workflow_hash=attempt.snapshot.workflow_hash, snapshot_ref=ref
    )


def _brought(attempt: Attempt, child: NodeId, sets: Context | None = None) -> list[Draft]:
    """What came with an attempt, attached to the node it creates: outputs, then context, then preferences.

    What the step sets is part of the one context delta, on top of what was sent.
    """
    request, drafts = attempt.evidence, list[Draft]()
    if request.has_notes():
        notes = data.NotesPayload(payload_kind="notes", notes_markdown=request.stored_notes())
        drafts.append(_output(attempt, child, "recap", notes, "notes"))
    for stored in request.stored_artifacts():
        payload = data.ArtifactPayload(
            payload_kind="artifact_ref",
            sha256=stored.digest,
            content_type=stored.content_type,
            byte_length=len(stored.data),
        )
        drafts.append(_output(attempt, child, "artifact", payload, stored.digest))
    delta, source = {**request.context, **(sets or {})}, "merge" if sets else "agent_delta"
    drafts += _context_draft(delta, attempt.run, child, derived_id("ctx", attempt.attempt, "context"), source)
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


def _context_draft(delta: Context, run: RunId, node: NodeId, context_id: str, source: str) -> list[Draft]:
    if not delta:
        return []
    context = data.ContextSet.model_validate(
        {"context_id": ContextId(context_id), "node_id": node, "context": dict(delta), "source": source}
    )
    return [Draft(data=context, run=run)]


def _trace_draft(trace: tuple[TraceEntry, ...], run: RunId, node: NodeId, trace_id: str) -> list[Draft]:
    """Record why a run went where it went; where nothing was decided there is nothing to record."""
    if not trace:
        return []
    appended = data.DecisionTraceAppended(trace_id=trace_id, entries=trace[-TRACE_ENTRIES_MAX:])
    return [Draft(data=appended, run=run, node=node)]


def _stored(snapshot: ExecutionSnapshot) -> tuple[SnapshotRef, bytes]:
    stored = snapshot.to_bytes()
    return SnapshotRef(digest_of_bytes(stored)), stored
