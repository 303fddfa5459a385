"""What happens next: an attempt judged against the pinned plan. Pure: same inputs, same plan.

One pass: the evidence is judged, what the step sets is put on top of what came in, the run goes on through the plan,
and last, where a person has to say yes, it is seen whether one did. Nothing of it holds unless all of it does; in a run
that never stops everything that is missing is disclosed instead (MODE-2, BLK-2).
"""

from dataclasses import dataclass, field
from typing import cast

from interlock.decide.evaluate import ABSENT, Undecided, value_at
from interlock.decide.evaluation_pass import PassAborted
from interlock.define.declared import type_mismatch
from interlock.define.parts import EVIDENCE_ROOTS, SetAction
from interlock.engine.event_drafts import (
    advance_recorded_event,
    attempt_output_events,
    effects_draft,
    gap_resolved_events,
    node_created_event,
    on_node,
    outputs_of,
    outputs_stored,
    trace_drafts,
)
from interlock.engine.gates import Answered
from interlock.engine.judge import reasons
from interlock.engine.judge.attempt import Advanced, ApprovalMissing, Attempt, AttemptLimitReached, Decision, Refused
from interlock.engine.judge.confirmation import Approved, NotApproved, approved_without_asking, check_approval
from interlock.engine.judge.evidence import judge
from interlock.engine.judge.observed import observed_in
from interlock.engine.judge.violations import Violation, blockers_of, gaps_of
from interlock.engine.template import rendered_line, with_loop_variables
from interlock.engine.walk.capture import DecisionCapture, Gate
from interlock.engine.walk.flow import (
    EndlessWalk,
    LoopLimit,
    Suspended,
    WalkResult,
    loop_decisions_of,
    run_to_next_task,
)
from interlock.kernel.budgets import ATTEMPTS_PER_STEP_MAX, CONTEXT_BYTES_MAX, TRACE_SUMMARY_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.ids import node_of_attempt
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode
from interlock.plan.walk import ExecutionState
from interlock.record.append_plan import AppendPlan, EventDraft, PlannedEdge
from interlock.record.base import Record
from interlock.record.context import Context, merge_context
from interlock.record.outcome import AdvancedTo, Blocked, BlockerReport
from interlock.record.payloads import StepRef, TraceEntry
from interlock.record.snapshot import Running, build_snapshot


def decide_advance(attempt: Attempt) -> Decision:
    """Judge an attempt. The same evidence on the same facts always comes to the same decision."""
    state = attempt.snapshot.state
    assert isinstance(state, Running), "a complete node has no attempts"
    outcome = _outcome(attempt, state)
    if isinstance(outcome, ApprovalMissing):
        return outcome
    if isinstance(outcome, _Went):
        return _advanced(attempt, outcome)
    blockers = blockers_of(outcome)
    if attempt.refusals + 1 >= ATTEMPTS_PER_STEP_MAX:
        return AttemptLimitReached(blockers=blockers)
    return Refused(plan=_refusal_plan(attempt, Blocked(kind="blocked", blockers=BlockerReport(blockers=blockers))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Went:
    """Where an attempt leads: what it sets on the way, why it went there, what it observed and left open."""

    moved: WalkResult
    trace: tuple[TraceEntry, ...]
    effects: Context
    observed: tuple[Record, ...]
    findings: tuple[Violation, ...]
    claims: tuple[Violation, ...] = ()
    gate: Gate | None = None
    answered: Answered | None = None


@dataclass(slots=True)
class _Pass:
    """What one attempt still owes. In a run that never stops owing stops nothing."""

    never_stops: bool
    findings: list[Violation] = field(default_factory=list[Violation])

    def is_refused(self) -> bool:
        """Say whether the attempt ends here."""
        return bool(self.findings) and not self.never_stops


def _outcome(attempt: Attempt, state: Running) -> "_Went | list[Violation] | ApprovalMissing":
    """Judge the evidence, then go on through the plan; nothing moves unless both succeed."""
    workflow, pending = attempt.workflow, state.pending.step
    node = workflow.steps[pending.step_id]
    context = merge_context(attempt.context, attempt.request.context)
    seen = with_loop_variables(workflow.graphs, context, pending.loop_path)
    owed = _Pass(attempt.never_stops)
    judged = judge(workflow, node, attempt.evidence, seen)
    observed = observed_in(node, attempt.evidence.artifacts, attempt.attempt)
    owed.findings += [*judged.findings, *observed.findings]
    if owed.is_refused():
        return owed.findings
    effects = _effects(workflow, node, Sources(context=seen, evidence=judged.values), owed)
    effects = _fitting(effects, context, owed)
    if owed.is_refused():
        return owed.findings
    marks = ExecutionState(workflow.graphs, state)
    marks.complete(node.node_id)
    decisions = loop_decisions_of(attempt.evidence.artifacts)
    moved = run_to_next_task(
        workflow, marks, merge_context(context, effects), decisions, never_stops=attempt.never_stops
    )
    if isinstance(moved, Suspended):
        return [finding_of(moved)]
    owed.findings += map(finding_of, moved.disclosed)
    gate = check_approval(attempt, node, seen)
    match gate:
        case ApprovalMissing():
            return gate
        case NotApproved() if not attempt.never_stops:
            return list(gate.findings)
        case NotApproved():
            owed.findings += gate.findings
        case Approved() | None:
            pass
    return _Went(
        moved=moved,
        trace=(*judged.trace, *_own_reasons(node, effects, gate), *moved.trace),
        effects=effects,
        observed=observed.records,
        findings=tuple(owed.findings),
        claims=gate.claims if isinstance(gate, Approved) else (),
        gate=Gate(step_id=node.node_id, opened_by=gate.by) if isinstance(gate, Approved) else None,
        answered=gate.record if isinstance(gate, Approved) else None,
    )


def finding_of(stuck: Suspended) -> Violation:
    """Return what keeps a run from going on as it is written, as a finding."""
    match stuck.reason:
        case Undecided():
            return reasons.undecided(stuck.reason, rendered_line(stuck.node.title, stuck.seen))
        case PassAborted():
            return reasons.aborted(stuck.node.node_id, stuck.reason)
        case LoopLimit(loop_id=loop_id, iteration=iteration, max_iterations=maximum):
            return reasons.loop_limit(loop_id, iteration, maximum)
        case EndlessWalk():
            return reasons.endless(stuck.node.node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a `set` may copy: the context, and what the evidence says. The one never stands in for the other."""

    context: Context
    evidence: Context

    def at(self, path: str) -> object:
        """Return what stands at a path, or ABSENT."""
        is_evidence = path.partition(".")[0] in EVIDENCE_ROOTS
        return value_at(self.evidence if is_evidence else self.context, path)


def _effects(workflow: CompiledWorkflow, node: PlanNode, sources: Sources, owed: _Pass) -> Context:
    """Return what a step sets when it is done. All actions read the same facts; none sees what another sets (EFF-2).

    What evidence may leave out sets nothing where it was left out.
    """
    assert node.task is not None, "only a task sets anything"
    effects: dict[str, Json] = {}
    for action in node.task.sets:
        found = sources.at(action.source) if action.source is not None else action.value
        title = rendered_line(node.title, sources.context)
        unfit = unfit_set(workflow, title, action, found) if found is not ABSENT else None
        if unfit is not None:
            owed.findings.append(unfit)
        elif found is not ABSENT:
            effects[action.key] = cast("Json", found)
        elif action.source is not None and action.source.partition(".")[0] not in EVIDENCE_ROOTS:
            owed.findings.append(reasons.missing_key(title, action.source))
    return effects


def _fitting(effects: Context, context: Context, owed: _Pass) -> Context:
    """Return what a step sets, or nothing where the context would grow beyond its budget."""
    if effects and (measured := len(canonical_bytes(dict(merge_context(context, effects))))) > CONTEXT_BYTES_MAX:
        owed.findings.append(reasons.context_too_large(measured, CONTEXT_BYTES_MAX))
        return {}
    return effects


def _own_reasons(node: PlanNode, effects: Context, gate: Approved | NotApproved | None) -> tuple[TraceEntry, ...]:
    """Return what was decided at the step itself: who opened its gate, and what it set."""
    words: list[str] = []
    if isinstance(gate, Approved):
        client = f" through {gate.record.client}" if gate.record is not None else ""
        words.append(f"The step was approved by a {gate.by}{client}.")
    if effects:
        words.append(f"Set {', '.join(f'`{key}`' for key in sorted(effects))}.")
    refs = (StepRef(kind="step_id", step_id=node.node_id),)
    return tuple(
        TraceEntry(kind="selected_next_step", summary=one_line(one, TRACE_SUMMARY_BYTES_MAX), refs=refs)
        for one in words
    )


def _advanced(attempt: Attempt, went: _Went) -> Advanced:
    child, run = node_of_attempt(attempt.attempt), attempt.run
    snapshot = build_snapshot(attempt.snapshot.workflow_hash, went.moved.state)
    ref, written = outputs_stored(snapshot)
    edge = PlannedEdge(
        edge_kind="acked_step",
        from_node=attempt.node,
        to_node=child,
        cause="intentional_fork" if attempt.is_fork else "tip_advance",
        cause_position=0,
    )
    outputs = outputs_of(attempt, went.answered)
    left = (*went.findings, *went.claims)
    still_open = frozenset(one.gap_id(origin) for origin, _ in attempt.open_gaps for one in left)
    captured = DecisionCapture(decided=went.moved.decided, effects=went.effects, gate=went.gate)
    trace, captures = trace_drafts(went.trace, run, child, attempt.attempt, captured)
    drafts = [
        advance_recorded_event(attempt, AdvancedTo(kind="advanced", to_node_id=child)),
        node_created_event(attempt, child, "step", ref),
        EventDraft(data=edge, run=run),
        *attempt_output_events(attempt, child, outputs, attempt.request.preferences),
        *effects_draft(went.effects, run, child, attempt.attempt),
        *on_node(run, child, went.observed),
        *on_node(run, child, gaps_of(went.findings, attempt.attempt)),
        *on_node(run, child, [claim.gap(attempt.attempt, "warning") for claim in went.claims]),
        *on_node(run, child, gap_resolved_events(attempt, still_open)),
        *trace,
    ]
    plan = AppendPlan(
        session=attempt.session,
        drafts=tuple(drafts),
        snapshots=((ref, written),),
        artifacts=(*((one.digest, one.data) for one in outputs), *captures),
    )
    return Advanced(plan=plan, snapshot=snapshot)


def _refusal_plan(attempt: Attempt, outcome: Blocked) -> AppendPlan:
    """A refused attempt is a child with its parent's snapshot and no edge; what came with it hangs on it (BLK-2).

    More autonomy does not, where a person is to be asked for it: nobody has said yes.
    """
    child = node_of_attempt(attempt.attempt)
    ref, _ = outputs_stored(attempt.snapshot)
    outputs = outputs_of(attempt)
    drafts = [
        advance_recorded_event(attempt, outcome),
        node_created_event(attempt, child, "blocked_attempt", ref),
        *attempt_output_events(attempt, child, outputs, approved_without_asking(attempt)),
    ]
    files = tuple((one.digest, one.data) for one in outputs)
    return AppendPlan(session=attempt.session, drafts=tuple(drafts), artifacts=files)


def unfit_set(workflow: CompiledWorkflow, step_title: str, action: SetAction, value: object) -> Violation | None:
    """Return why a value may not be set, or None where it may.

    A key that nobody declares takes anything: routines that a workflow unfolds set keys of their own.
    """
    declared = next((one for one in workflow.inputs if one.key == action.key), None)
    unfit = type_mismatch(declared, value) if declared is not None else None
    if unfit is None:
        return None
    return reasons.unfit_key(step_title, action.key, action.source or action.key, unfit)
