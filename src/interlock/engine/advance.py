"""Decides an attempt against the pinned plan. Pure: same inputs, same plan of events.

The order: check the evidence, apply what the step sets, run on to the next task, and check approvals last. The attempt
succeeds as a whole or not at all. In a run that never stops, everything that is missing is disclosed instead (MODE-2,
BLK-2).
"""

from collections.abc import Mapping
from dataclasses import field

from interlock.decide.evaluate import EVENT, Undecided
from interlock.decide.evaluation_pass import PassAborted
from interlock.decide.value import iter_reads
from interlock.define.parts import AwaitEvent
from interlock.engine.event_drafts import (
    advance_recorded_event,
    attempt_output_events,
    claim_gaps,
    effects_draft,
    gap_resolved_events,
    intent_events,
    needs_person_events,
    node_created_event,
    on_node,
    outputs_of,
    outputs_stored,
    trace_drafts,
)
from interlock.engine.gates import Answered
from interlock.engine.judge import reasons
from interlock.engine.judge.attempt import (
    Advanced,
    ApprovalMissing,
    Attempt,
    AttemptLimitReached,
    Decision,
    Refused,
    Waiting,
)
from interlock.engine.judge.confirmation import Approved, NotApproved, approved_without_asking, check_approval
from interlock.engine.judge.declared_context import HeldContext, hold_context
from interlock.engine.judge.evidence import judge
from interlock.engine.judge.observed import failed_probes, observed_in
from interlock.engine.judge.own_words import is_sent_again
from interlock.engine.judge.proof import ProofJudgement, judge_proofs, verdict_in
from interlock.engine.judge.recommended import recommendation_trace
from interlock.engine.judge.separation import check_separation
from interlock.engine.judge.violations import Violation, blockers_of, gaps_of
from interlock.engine.request import PreferenceDelta
from interlock.engine.step_pass import EvaluatedStep, StepInputs, emitted_before, run_step_pass
from interlock.engine.template import ValueRoom, rendered_line, with_loop_variables
from interlock.engine.walk.capture import DecisionCapture, Gate, StepPass
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import (
    ContextAt,
    EndlessWalk,
    LoopLimit,
    Suspended,
    Walked,
    WalkResult,
    loop_decisions_of,
    run_to_next_task,
)
from interlock.engine.walk.items import name_list, read_lists_again
from interlock.kernel.budgets import (
    ATTEMPTS_PER_STEP_MAX,
)
from interlock.kernel.budgets.workflow import (
    TRACE_SUMMARY_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable, replace
from interlock.kernel.ids import EventId, NodeId, node_of_attempt
from interlock.kernel.text import one_line
from interlock.plan.records import PlanNode
from interlock.plan.walk import ExecutionState
from interlock.record.append_plan import AppendPlan, EventDraft, PlannedEdge
from interlock.record.base import Record
from interlock.record.context import Context, merge_context
from interlock.record.outcome import AdvancedTo, Blocked, BlockerReport
from interlock.record.payloads import StepRef, TraceEntry
from interlock.record.snapshot import Complete, Running, build_snapshot


def decide_advance(attempt: Attempt) -> Decision:
    """Decide an attempt. The same evidence in the same state always gives the same decision."""
    state = attempt.snapshot.state
    assert isinstance(state, Running), "a complete node has no attempts"
    if _awaits(attempt) is not None and not _has_event(attempt):
        return Waiting()
    held = hold_context(attempt.workflow, attempt.context, attempt.request.context)
    outcome = _outcome(attempt, state, held)
    if isinstance(outcome, ApprovalMissing):
        return outcome
    if isinstance(outcome, _Transition):
        return _advanced(attempt, outcome, held)
    blockers = blockers_of(outcome)
    if attempt.refusals + 1 >= ATTEMPTS_PER_STEP_MAX:
        return AttemptLimitReached(blockers=blockers)
    blocked = Blocked(blockers=BlockerReport(blockers=blockers))
    return Refused(plan=_refusal_plan(attempt, blocked, held))


def _pending(attempt: Attempt) -> PlanNode:
    """Return the step that the attempt is on."""
    state = attempt.snapshot.state
    assert isinstance(state, Running), "a complete node has no attempts"
    return attempt.workflow.steps[state.pending.step.step_id]


def _awaits(attempt: Attempt) -> AwaitEvent | None:
    """Return the event that the pending step waits for, if it waits for one."""
    task = _pending(attempt).task
    assert task is not None, "a pending step is a task"
    return task.awaits


def _has_event(attempt: Attempt) -> bool:
    """Say whether the step can take its event: a run that never stops takes one that is not as it should be, too."""
    return attempt.event is not None and (attempt.event.is_met or attempt.never_stops)


@frozen
class _Transition:
    """A successful attempt: the walk to the next task, what the step set, and what stays open."""

    walk: WalkResult
    trace: tuple[TraceEntry, ...]
    step: StepPass
    observed: tuple[Record, ...]
    findings: tuple[Violation, ...]
    claims: tuple[Violation, ...] = ()
    gate: Gate | None = None
    answered: Answered | None = None
    receipts: tuple[EventId, ...] = ()


@mutable
class _Violations:
    """The violations of one attempt. In a run that never stops they do not refuse it."""

    never_stops: bool
    findings: list[Violation] = field(default_factory=list[Violation])

    def is_refused(self) -> bool:
        """Say whether the attempt is refused."""
        return bool(self.findings) and not self.never_stops


def _outcome(attempt: Attempt, state: Running, held: HeldContext) -> "_Transition | list[Violation] | ApprovalMissing":
    """Check the evidence, then run to the next task; nothing changes unless both succeed."""
    workflow, pending = attempt.workflow, state.pending.step
    node = workflow.steps[pending.step_id]
    context = merge_context(merge_context(attempt.context, attempt.request.context), held.corrections)
    seen = with_loop_variables(workflow.graphs, context, state.loop_stack)
    violations = _Violations(attempt.never_stops)
    judgement = judge(workflow, node, attempt.evidence, seen, held.mismatches)
    observed = observed_in(workflow, node, attempt.evidence.artifacts, attempt.attempt)
    violations.findings += [*judgement.findings, *observed.findings]
    proved = judge_proofs(node, attempt.proof, verdict_in(judgement.values))
    repeated, kept = _notes_sent_again(attempt, node, rendered_line(node.title, seen))
    violations.findings += [*check_separation(attempt, node), *repeated]
    violations.findings += proved.findings
    if violations.is_refused():
        return violations.findings
    evidence = {**judgement.values, **_outside_values(attempt, node)}
    done = _decided(attempt, state, StepInputs(context=context, stack=state.loop_stack, evidence=evidence))
    step, walk = done.step.captured, done.walk
    violations.findings += done.step.findings
    if walk is None:
        return violations.findings
    if isinstance(walk, Suspended):
        return [_finding_after(walk, attempt, done)]
    violations.findings += [_finding_after(one, attempt, done) for one in walk.disclosed]
    gate = check_approval(attempt, node, seen)
    match gate:
        case ApprovalMissing():
            return gate
        case NotApproved() if not attempt.never_stops:
            return list(gate.findings)
        case NotApproved():
            violations.findings += gate.findings
        case Approved() | None:
            pass
    return _Transition(
        walk=walk,
        trace=(*judgement.trace, *_fork_trace(attempt, node), *_own_reasons(node, step, gate, proved), *walk.trace),
        step=step,
        observed=observed.records,
        findings=(*violations.findings, *kept, *_expired(attempt, node, seen), *_overruled(attempt, node, walk, gate)),
        claims=gate.claims if isinstance(gate, Approved) else (),
        gate=Gate(step_id=node.node_id, opened_by=gate.by) if isinstance(gate, Approved) else None,
        answered=gate.record if isinstance(gate, Approved) else None,
        receipts=proved.took,
    )


@frozen
class _Decided:
    """What a step sets, and where the run goes from there. `walk` is None if the step refuses the report."""

    step: EvaluatedStep
    walk: Walked | None

    def is_undecided(self) -> bool:
        """Say whether a value or a decision lacks something that it reads."""
        reasons_left = (self.walk,) if isinstance(self.walk, Suspended) else self.walk.disclosed if self.walk else ()
        return bool(self.step.findings) or any(isinstance(one.reason, Undecided | PassAborted) for one in reasons_left)


def _decided(attempt: Attempt, state: Running, given: StepInputs) -> _Decided:
    """Evaluate what the step sets, and run to the next task. A pass keeps its item unless something is undecided.

    Then the lists of the running passes are read again: the item is corrected by sending its list (WALK-10).
    """
    done = _decided_with(attempt, state, given)
    if not done.is_undecided():
        return done
    again = read_lists_again(attempt.workflow.graphs, state.loop_stack, given.context, _child(attempt))
    return done if again == state.loop_stack else _decided_with(attempt, state, replace(given, stack=again))


def _decided_with(attempt: Attempt, state: Running, given: StepInputs) -> _Decided:
    workflow, node = attempt.workflow, _pending(attempt)
    is_expired = attempt.event is not None and attempt.event.is_expired
    step = run_step_pass(workflow, node, given, is_expired=is_expired)
    if step.findings and not attempt.never_stops:
        return _Decided(step=step, walk=None)
    state_after = ExecutionState(workflow.graphs, state)
    state_after.complete(node.node_id)
    at = ContextAt(merge_context(given.context, step.captured.effects), _child(attempt))
    if given.stack != state.loop_stack:
        # What the step set may have changed the lists, and the frames refer to the context after it.
        state_after.stack = [*read_lists_again(workflow.graphs, state.loop_stack, at.context, at.node)]
    decider = Evaluating(workflow.graphs, loop_decisions_of(attempt.evidence.artifacts))
    walk = run_to_next_task(workflow, state_after, at, decider, never_stops=attempt.never_stops)
    return _Decided(step=step, walk=walk)


def _child(attempt: Attempt) -> NodeId:
    return node_of_attempt(attempt.attempt)


def _finding_after(suspended: Suspended, attempt: Attempt, done: _Decided) -> Violation:
    """Return the violation for what stopped a walk. If the step itself set the value, it names the source (WALK-4)."""
    node, state, reason = _pending(attempt), attempt.snapshot.state, suspended.reason
    assert node.task is not None, "a pending step is a task"
    assert isinstance(state, Running), "a complete node has no attempts"
    key, _, member = (reason.path or "").partition(".") if isinstance(reason, Undecided) else ("", "", "")
    action = next((one for one in node.task.sets if one.key == key), None)
    if not isinstance(reason, Undecided) or action is None or key not in done.step.captured.effects:
        return finding_of(suspended)
    source = None
    if action.source is not None:
        path = f"{action.source}.{member}" if member else action.source
        source = name_list(attempt.workflow.graphs, state.loop_stack, replace(reason, path=path))
    title = rendered_line(suspended.node.title, suspended.seen)
    return reasons.undecided_set(reason, title, node.node_id, source)


def _outside_values(attempt: Attempt, node: PlanNode) -> dict[str, Json]:
    """Return what the step reads of the world outside: its event, and which of its intents were sent before."""
    values = emitted_before(node, attempt.emitted)
    return {**values, EVENT: attempt.event.values()} if attempt.event is not None else values


def _expired(attempt: Attempt, node: PlanNode, seen: Context) -> tuple[Violation, ...]:
    """Return the violation of an event that is not as the step needs it, or that did not come in time.

    A late event is none if the step itself says what follows then.
    """
    assert node.task is not None, "a pending step is a task"
    if node.task.awaits is None or attempt.event is None:
        return ()
    if not attempt.event.is_met:
        return (_unmet(node.node_id, node.task.awaits, attempt.event.fields, seen),)
    if not attempt.event.is_expired:
        return ()
    if any(path == f"{EVENT}.expired" for action in node.task.sets for path in iter_reads(action.payload)):
        return ()
    return (reasons.expired(node.node_id, node.task.awaits.event),)


def _unmet(step_id: str, awaits: AwaitEvent, fields: Mapping[str, Json], seen: Context) -> Violation:
    """Return the violation of an event that is not as its step needs it."""
    if awaits.approval is not None:
        return reasons.not_approved(step_id, rendered_line(awaits.approval.question, seen, ValueRoom()), fields)
    return reasons.check_failed(step_id, str(awaits.check), fields)


def _overruled(
    attempt: Attempt, node: PlanNode, walk: WalkResult, gate: Approved | NotApproved | None
) -> list[Violation]:
    """Return the violation of a run that completes over a failed verdict by a claim: it is disclosed (MODE-13)."""
    if not isinstance(walk.state, Complete):
        return []
    failed = attempt.failed_verdict(attempt.evidence.artifacts)
    if failed is None:
        return []
    is_claim = isinstance(gate, Approved) and gate.by == "claim"
    return [reasons.overruled(node.node_id, failed.kind, failed.word)] if failed.is_overruled or is_claim else []


def _notes_sent_again(attempt: Attempt, node: PlanNode, title: str) -> tuple[list[Violation], list[Violation]]:
    """Return the violation of notes that the step before was reported with: what refuses, what is only disclosed.

    Two steps may have the same result, and only the agent knows that. So it is asked once (EVID-11). Notes that a step
    does not require are no evidence of it.
    """
    assert node.task is not None, "a pending step is a task"
    notes = attempt.evidence.stored_notes()
    if node.task.evidence.notes != "required" or not is_sent_again(notes, attempt.earlier_notes or ""):
        return [], []
    found = [reasons.notes_sent_again(title)]
    was_asked = attempt.earlier is not None and is_sent_again(notes, attempt.earlier.stored_notes())
    return ([], found) if was_asked else (found, [])


def finding_of(suspended: Suspended) -> Violation:
    """Return the violation for what stopped a walk."""
    match suspended.reason:
        case Undecided():
            return reasons.undecided(suspended.reason, rendered_line(suspended.node.title, suspended.seen))
        case PassAborted():
            return reasons.aborted(suspended.node.node_id, suspended.reason)
        case LoopLimit(loop_id=loop_id, iteration=iteration, max_iterations=maximum):
            return reasons.loop_limit(loop_id, iteration, maximum)
        case EndlessWalk():
            return reasons.endless(suspended.node.node_id)


def _fork_trace(attempt: Attempt, node: PlanNode) -> tuple[TraceEntry, ...]:
    """Return the trace of an advance from a node that was passed already: it begins another branch (TRACE-4)."""
    if not attempt.is_fork:
        return ()
    summary = "The step was done before. It was redone on a new branch, and the earlier branch stays."
    refs = (StepRef(step_id=node.node_id),)
    return (TraceEntry(kind="detected_non_tip_advance", summary=summary, refs=refs),)


def _own_reasons(
    node: PlanNode, step: StepPass, gate: Approved | NotApproved | None, proved: ProofJudgement
) -> tuple[TraceEntry, ...]:
    """Return the trace of the step itself: who approved it, what it set, and which missing proof is only recorded."""
    words: list[str] = []
    if isinstance(gate, Approved):
        client = f" through {gate.record.client}" if gate.record is not None else ""
        words.append(f"The step was approved by a {gate.by}{client}.")
    if step.effects:
        words.append(f"Set {', '.join(f'`{key}`' for key in sorted(step.effects))}.")
    if step.intents:
        words.append(f"Sends {', '.join(f'`{one.sends}`' for _, one in sorted(step.intents.items()))}.")
    done = ("completed", "attempted")
    idle = [f"`{name}` ({one.kind})" for name, one in sorted(step.outcomes.items()) if one.kind not in done]
    if idle:
        words.append(f"Without effect: {', '.join(idle)}.")
    words += [f"It would have been refused: {one.message}" for one in proved.disclosed]
    refs = (StepRef(step_id=node.node_id),)
    return tuple(
        TraceEntry(kind="selected_next_step", summary=one_line(one, TRACE_SUMMARY_BYTES_MAX), refs=refs)
        for one in words
    )


def _advanced(attempt: Attempt, transition: _Transition, held: HeldContext) -> Advanced:
    child, run = node_of_attempt(attempt.attempt), attempt.run
    snapshot = build_snapshot(attempt.snapshot.workflow_hash, transition.walk.state)
    ref, written = outputs_stored(snapshot)
    edge = PlannedEdge(
        edge_kind="acked_step",
        from_node=attempt.node,
        to_node=child,
        cause="intentional_fork" if attempt.is_fork else "tip_advance",
        cause_position=0,
    )
    outputs = outputs_of(attempt, transition.answered)
    left = (*transition.findings, *transition.claims)
    still_open = frozenset(one.gap_id(origin) for origin, _ in attempt.open_gaps for one in left)
    captured = DecisionCapture(
        decided=transition.walk.decided,
        step=transition.step,
        gate=transition.gate,
        adapter=attempt.workflow.adapter_digest,
    )
    entries = (*_preferences_trace(attempt, attempt.request.preferences), *transition.trace)
    trace, captures = trace_drafts(entries, run, child, attempt.attempt, captured)
    drafts = [
        advance_recorded_event(attempt, AdvancedTo(to_node_id=child), transition.receipts),
        node_created_event(attempt, child, "step", ref),
        EventDraft(data=edge, run=run),
        *attempt_output_events(attempt, child, outputs, attempt.request.preferences),
        *effects_draft({**held.corrections, **transition.step.effects}, run, child, attempt.attempt),
        *intent_events(attempt, child, _pending(attempt), transition.step),
        *_notifications(attempt, transition, held),
        *on_node(run, child, transition.observed),
        *on_node(run, child, gaps_of(transition.findings, attempt.attempt)),
        *on_node(run, child, claim_gaps(attempt, transition.claims)),
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


def _notifications(attempt: Attempt, transition: _Transition, held: HeldContext) -> list[EventDraft]:
    """Return the intent that tells people of the question to which the run comes. One that never stops asks nobody."""
    if not attempt.notifies or attempt.request.preferences.over(attempt.preferences).never_stops:
        return []
    context = merge_context(attempt.context, attempt.request.context)
    context = merge_context(context, {**held.corrections, **transition.step.effects})
    here = (attempt.run, node_of_attempt(attempt.attempt), attempt.attempt)
    return needs_person_events(attempt.workflow, transition.walk.state, here, context)


def _refusal_plan(attempt: Attempt, outcome: Blocked, held: HeldContext) -> AppendPlan:
    """Plan a refused attempt: a child node with its parent's snapshot, no edge, and the sent outputs (BLK-2).

    A raised autonomy that a person must approve is not recorded. What the attempt found missing is (EVID-9). A context
    value that does not fit is recorded as sent and taken back (CTX-12).
    """
    state = attempt.snapshot.state
    assert isinstance(state, Running), "a complete node has no attempts"
    node = attempt.workflow.steps[state.pending.step.step_id]
    child = node_of_attempt(attempt.attempt)
    ref, _ = outputs_stored(attempt.snapshot)
    outputs = outputs_of(attempt)
    preferences = approved_without_asking(attempt)
    entries = _preferences_trace(attempt, preferences)
    trace, _ = trace_drafts(entries, attempt.run, child, attempt.attempt, DecisionCapture())
    drafts = [
        advance_recorded_event(attempt, outcome),
        node_created_event(attempt, child, "blocked_attempt", ref),
        *attempt_output_events(attempt, child, outputs, preferences),
        *effects_draft(held.corrections, attempt.run, child, attempt.attempt),
        *on_node(attempt.run, child, failed_probes(node, attempt.evidence.artifacts, attempt.attempt)),
        *trace,
    ]
    files = tuple((one.digest, one.data) for one in outputs)
    return AppendPlan(session=attempt.session, drafts=tuple(drafts), artifacts=files)


def _preferences_trace(attempt: Attempt, change: PreferenceDelta) -> tuple[TraceEntry, ...]:
    before = attempt.preferences
    return recommendation_trace(attempt.workflow, change.over(before), before)
