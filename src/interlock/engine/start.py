"""Plans the start of a run: it pins the workflow and makes the root node at the first step. Pure."""

from interlock.engine.advance import finding_of
from interlock.engine.event_drafts import context_draft, needs_person_events, on_node, outputs_stored, trace_drafts
from interlock.engine.judge.declared_context import hold_context
from interlock.engine.judge.recommended import recommendation_trace
from interlock.engine.judge.violations import Violation, gaps_of
from interlock.engine.request import Request
from interlock.engine.walk.capture import DecisionCapture
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import ContextAt, Suspended, run_to_next_task
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import ChangeId, Digest, NodeId, RunId, SessionId, SourceKind, WorkflowHash, derived_id
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.walk import ExecutionState
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft
from interlock.record.base import Preferences
from interlock.record.context import merge_context
from interlock.record.snapshot import build_snapshot
from interlock.record.world import PinnedCheck, ProofMode


@frozen
class Start:
    """A run that is to begin. `is_new_session` says whether its session begins with it (ADV-2).

    `observed` is the state of its workspace: recorded for a new session, or only for the run if it joins one (OBS-5).
    `binding` says which part of a contract it is for.
    """

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
    observed: tuple[data.ObservationRecorded, ...] = ()
    config_hash: Digest | None = None
    binding: data.Binding | None = None
    checks: tuple[PinnedCheck, ...] = ()
    proofs: ProofMode = "enforce"
    notifies: bool = False


def root_node(run: RunId) -> NodeId:
    """Return the root of a run: derived, so that a run has exactly one."""
    return NodeId(derived_id("node", run, "root"))


def plan_start(start: Start) -> AppendPlan | Violation:
    """Return the plan that begins a run: pinned workflow, root node, baseline preferences, initial context.

    The initial context must contain what decides the first step. Without it nothing begins, unless the run never stops:
    then the missing values are disclosed on the root (MODE-2).
    """
    effective = start.request.preferences.over(start.baseline)
    # The initial context is recorded as it is declared; one that does not fit was refused before.
    initial = {**start.request.context, **hold_context(start.workflow, {}, start.request.context).corrections}
    context = merge_context({}, initial)
    marks = ExecutionState(start.workflow.graphs)
    decider = Evaluating(start.workflow.graphs)
    root = root_node(start.run)
    walk = run_to_next_task(start.workflow, marks, ContextAt(context, root), decider, never_stops=effective.never_stops)
    if isinstance(walk, Suspended):
        return finding_of(walk)
    notifies = start.notifies and not effective.never_stops
    ref, snapshot = outputs_stored(build_snapshot(start.workflow_hash, walk.state))
    entries = (*recommendation_trace(start.workflow, effective), *walk.trace)
    captured = DecisionCapture(decided=walk.decided, adapter=start.workflow.adapter_digest)
    trace, captures = trace_drafts(entries, start.run, root, start.run, captured)
    drafts = [
        *([EventDraft(data=data.SessionCreated())] if start.is_new_session else []),
        *([EventDraft(data=one) for one in start.observed] if start.is_new_session else []),
        *_first_events(
            start,
            root,
            data.NodeCreated(
                node_kind="step", parent_node_id=None, workflow_hash=start.workflow_hash, snapshot_ref=ref
            ),
        ),
        *([] if start.is_new_session else [EventDraft(data=one, run=start.run) for one in start.observed]),
        *on_node(start.run, root, [_baseline_event(start, effective)]),
        *context_draft(initial, start.run, root, derived_id("ctx", start.run, "initial"), "initial"),
        *(needs_person_events(start.workflow, walk.state, (start.run, root, start.run), context) if notifies else ()),
        *on_node(start.run, root, gaps_of(map(finding_of, walk.disclosed), start.run)),
        *trace,
    ]
    return AppendPlan(
        session=start.session,
        drafts=tuple(drafts),
        snapshots=((ref, snapshot),),
        artifacts=captures,
        workflow=(start.workflow_hash, start.workflow_bytes),
    )


def _first_events(start: Start, root: NodeId, node: data.NodeCreated) -> list[EventDraft]:
    run_started = data.RunStarted(
        workflow_id=start.workflow.workflow_id,
        workflow_hash=start.workflow_hash,
        workflow_source_kind=start.source_kind,
        workflow_source_ref=start.source_ref,
        applied_config_hash=start.config_hash,
        binding=start.binding,
        checks=start.checks or None,
        proofs=start.proofs if start.proofs != "enforce" else None,
        notifies=True if start.notifies else None,
    )
    return [EventDraft(data=run_started, run=start.run), EventDraft(data=node, run=start.run, node=root)]


def _baseline_event(start: Start, effective: Preferences) -> data.PreferencesChanged:
    return data.PreferencesChanged(
        change_id=ChangeId(derived_id("prefchg", start.run, "baseline")),
        source="user" if start.request.preferences.changes() else "system",
        delta=(
            data.PreferenceChange(key="autonomy", value=effective.autonomy),
            data.PreferenceChange(key="riskPolicy", value=effective.risk_policy),
        ),
        effective=effective,
    )
