"""The events of a start and of an attempt, before they are stamped: what each records, in the locked order."""

from collections.abc import Iterable, Sequence
from typing import cast

from interlock.engine.gates import Answered
from interlock.engine.judge.attempt import Attempt
from interlock.engine.judge.violations import Violation
from interlock.engine.request import CONFIRMATION_KIND, REPLY_CONTENT_TYPE, PreferenceDelta, Request, StoredArtifact
from interlock.engine.template import ValueRoom, rendered_line
from interlock.engine.walk.capture import DecisionCapture, StepPass
from interlock.kernel.budgets import (
    RESOLVED_GAPS_MAX,
)
from interlock.kernel.budgets.workflow import (
    TRACE_BYTES_MAX,
    TRACE_ENTRIES_MAX,
    TRACE_ENVELOPE_BYTES_MAX,
    TRACE_EVENTS_MAX,
)
from interlock.kernel.canonical import digest_of, digest_of_bytes
from interlock.kernel.ids import (
    AttemptId,
    ChangeId,
    ContextId,
    Digest,
    EventId,
    GapId,
    IntentId,
    NodeId,
    OutputId,
    RunId,
    SnapshotRef,
    TraceId,
    derived_id,
)
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode
from interlock.record import payloads as data
from interlock.record.append_plan import EventDraft
from interlock.record.base import Record
from interlock.record.content import output_id
from interlock.record.context import Context
from interlock.record.outcome import AdvancedTo, Blocked
from interlock.record.payloads import TraceEntry
from interlock.record.snapshot import Complete, ExecutionSnapshot, Running
from interlock.record.world import NEEDS_PERSON, Fields, IntentRecorded

Origin = AttemptId | RunId
"""What a derived id belongs to: an attempt, or the run that a start begins."""


def outputs_stored(snapshot: ExecutionSnapshot) -> tuple[SnapshotRef, bytes]:
    """Return a snapshot's digest and bytes."""
    written = snapshot.to_bytes()
    return SnapshotRef(digest_of_bytes(written)), written


def advance_recorded_event(
    attempt: Attempt, outcome: AdvancedTo | Blocked, receipts: tuple[EventId, ...] = ()
) -> EventDraft:
    """`advance_recorded`: the key event of an attempt. An advance took its event, or the `receipts` that prove it."""
    events = (attempt.event.event_id,) if attempt.event is not None else receipts
    advance = data.AdvanceRecorded(
        attempt_id=attempt.attempt,
        intent="ack_pending",
        outcome=outcome,
        request_digest=attempt.request.digest(),
        took=events if events and isinstance(outcome, AdvancedTo) else None,
    )
    return EventDraft(data=advance, run=attempt.run, node=attempt.node)


def intent_id(run: RunId, attempt: AttemptId | None, step_id: str, number: int) -> IntentId:
    """Return the id of an intent of a step: of one attempt, or of the whole run if it is sent once in it."""
    origin = (run, step_id) if attempt is None else (attempt,)
    return IntentId(derived_id("intent", *origin, "emit", number))


def intent_events(attempt: Attempt, child: NodeId, node: PlanNode, step: StepPass) -> list[EventDraft]:
    """`intent_recorded` for each intent that the step sends (WORLD-5)."""
    assert node.task is not None, "only a task sends anything"
    drafts: list[Record] = []
    for _, one in sorted(step.intents.items()):
        once = node.task.emits[one.number].once is not None
        origin = None if once else attempt.attempt
        drafts.append(
            IntentRecorded(
                intent_id=intent_id(attempt.run, origin, node.node_id, one.number),
                sends=one.sends,
                number=one.number,
                fields=dict(cast("Fields", one.fields)),
            )
        )
    return on_node(attempt.run, child, drafts)


def needs_person_events(
    workflow: CompiledWorkflow, state: Running | Complete, here: tuple[RunId, NodeId, Origin], context: Context
) -> list[EventDraft]:
    """`intent_recorded` if a run comes to a step that waits for a person's answer (WORLD-12).

    `here` is the run, the node at which the step is pending, and what made that node; `context` is that of the node.
    """
    step = workflow.steps[state.pending.step.step_id] if isinstance(state, Running) else None
    awaits = step.task.awaits if step is not None and step.task is not None else None
    if step is None or step.task is None or awaits is None or awaits.approval is None:
        return []
    run, node, origin = here
    intent = IntentRecorded(
        intent_id=IntentId(derived_id("intent", origin, "needs_person")),
        sends=NEEDS_PERSON,
        number=len(step.task.emits),
        fields={
            "step": step.node_id,
            "title": rendered_line(step.title, context),
            "question": rendered_line(awaits.approval.question, context, ValueRoom()),
            "choices": ", ".join(awaits.approval.choices),
        },
    )
    return on_node(run, node, [intent])


def node_created_event(attempt: Attempt, child: NodeId, kind: data.NodeKind, ref: SnapshotRef) -> EventDraft:
    """`node_created`: the node that an attempt makes."""
    node = data.NodeCreated(
        node_kind=kind, parent_node_id=attempt.node, workflow_hash=attempt.snapshot.workflow_hash, snapshot_ref=ref
    )
    return EventDraft(data=node, run=attempt.run, node=child)


def attempt_output_events(
    attempt: Attempt, child: NodeId, outputs: Sequence[StoredArtifact], preferences: PreferenceDelta
) -> list[EventDraft]:
    """The outputs, context and preferences of an attempt, on the node that it creates."""
    request = attempt.evidence
    drafts = notes_draft(attempt.attempt, request, run=attempt.run, node=child)
    drafts += artifact_drafts(attempt.attempt, outputs, run=attempt.run, node=child)
    drafts += context_draft(request.context, attempt.run, child, derived_id("ctx", attempt.attempt, "context"))
    changes = preferences.changes()
    if changes:
        changed = data.PreferencesChanged(
            change_id=ChangeId(derived_id("prefchg", attempt.attempt, "preferences")),
            source="user",
            delta=tuple(data.PreferenceChange(key=key, value=value) for key, value in changes.items()),
            effective=preferences.over(attempt.preferences),
        )
        drafts.append(EventDraft(data=changed, run=attempt.run, node=child))
    return drafts


def outputs_of(attempt: Attempt, answered: Answered | None = None) -> tuple[StoredArtifact, ...]:
    """Return the artifacts that an attempt stores, ordered by digest, including the person's answer if there is one."""
    found = list(attempt.evidence.stored_artifacts())
    if answered is not None:
        written = answered.to_bytes()
        found.append(StoredArtifact(digest=digest_of_bytes(written), content_type=REPLY_CONTENT_TYPE, data=written))
    return tuple(sorted(found, key=lambda one: (one.digest, one.content_type)))


def context_draft(
    delta: Context, run: RunId, node: NodeId, context_id: str, source: data.ContextSource = "agent_delta"
) -> list[EventDraft]:
    """`context_set`, if there is something to set."""
    if not delta:
        return []
    context = data.ContextSet(context_id=ContextId(context_id), node_id=node, context=dict(delta), source=source)
    return [EventDraft(data=context, run=run)]


def on_node(run: RunId, node: NodeId, records: Iterable[Record]) -> list[EventDraft]:
    """Return records as events of one node."""
    return [EventDraft(data=record, run=run, node=node) for record in records]


def claim_gaps(attempt: Attempt, claims: Iterable[Violation]) -> list[data.GapRecorded]:
    """Return the gaps of approvals that rest on the agent's own word, each with the artifacts that claim it (GAP-4)."""
    claimed = [digest_of(dict(one)) for one in attempt.evidence.artifacts if one.get("kind") == CONFIRMATION_KIND]
    outputs = [output_id(attempt.attempt, digest) for digest in dict.fromkeys(claimed)]
    refs = tuple(data.OutputEvidence(output_id=one) for one in outputs)
    gaps = [claim.gap(attempt.attempt, "warning") for claim in claims]
    return [gap.changed(evidence_refs=refs) if refs else gap for gap in gaps]


def gap_resolved_events(attempt: Attempt, still_open: frozenset[GapId]) -> list[data.GapRecorded]:
    """Return the records that resolve gaps of earlier attempts on this step, except gaps that are still open.

    `still_open` holds the gaps that this attempt leaves, by the ids that earlier attempts gave them.
    """
    open_gaps = [gap for _, gap in attempt.open_gaps if gap.gap_id not in still_open]
    return [
        data.GapRecorded(
            gap_id=GapId(derived_id("gap", attempt.attempt, "resolves", gap.gap_id)),
            severity=gap.severity,
            reason=gap.reason,
            summary="The step was done again, and this is no longer missing.",
            resolution=data.Resolves(resolves_gap_id=gap.gap_id),
        )
        for gap in open_gaps[:RESOLVED_GAPS_MAX]
    ]


def trace_drafts(
    trace: Sequence[TraceEntry], run: RunId, node: NodeId, origin: Origin, captured: DecisionCapture
) -> tuple[list[EventDraft], tuple[tuple[Digest, bytes], ...]]:
    """`decision_trace_appended`: why the run went where it went, and the captured record that it refers to.

    If nothing was decided, the result is empty. Reasons that do not fit in one event become several events; the last
    one counts what is left out.
    """
    if not trace:
        return [], ()
    captured_at: Digest | None = None
    files: tuple[tuple[Digest, bytes], ...] = ()
    if not captured.is_empty():
        written = captured.to_bytes()
        captured_at = digest_of_bytes(written)
        files = ((captured_at, written),)
    drafts: list[EventDraft] = []
    for number, entries in enumerate(_events(trace)):
        trace_id = TraceId(derived_id("trace", origin, "decisions", number))
        payload = data.DecisionTraceAppended(
            trace_id=trace_id, entries=tuple(entries), capture_ref=captured_at if number == 0 else None
        )
        drafts.append(EventDraft(data=payload, run=run, node=node))
    return drafts, files


def _events(trace: Sequence[TraceEntry]) -> list[list[TraceEntry]]:
    """Split reasons into events, each within its budgets."""
    events: list[list[TraceEntry]] = [[]]
    for number, entry in enumerate(trace):
        if not _fits([*events[-1], entry]):
            if len(events) == TRACE_EVENTS_MAX:
                events[-1] = _counting(events[-1], trace[number:])
                break
            events.append([])
        events[-1].append(entry)
    return events


def _counting(entries: Sequence[TraceEntry], rest: Sequence[TraceEntry]) -> list[TraceEntry]:
    """Return the last event's reasons, with a count of those that are left out; the last reason stays."""
    for kept in range(len(entries) - 1, -1, -1):
        left_out = len(entries) - kept + len(rest) - 1
        counted = TraceEntry(kind="selected_next_step", summary=f"{left_out} further reasons are left out.", refs=())
        shown = [*entries[:kept], counted, rest[-1]]
        if _fits(shown):
            return shown
    raise AssertionError("a count and one reason fit in every event")


def _fits(entries: Sequence[TraceEntry]) -> bool:
    size = sum(len(entry.to_bytes()) + 1 for entry in entries)
    return len(entries) <= TRACE_ENTRIES_MAX and size <= TRACE_BYTES_MAX - TRACE_ENVELOPE_BYTES_MAX


def notes_draft(
    attempt: AttemptId, request: Request, *, run: RunId, node: NodeId, supersedes: OutputId | None = None
) -> list[EventDraft]:
    """`node_output_appended` of notes, if there are any."""
    if not request.has_notes():
        return []
    notes = data.NotesPayload(notes_markdown=request.stored_notes())
    appended = data.NodeOutputAppended(
        output_id=output_id(attempt, None),
        output_channel="recap",
        payload=notes,
        supersedes_output_id=supersedes,
    )
    return [EventDraft(data=appended, run=run, node=node)]


def artifact_drafts(
    attempt: AttemptId, outputs: Sequence[StoredArtifact], *, run: RunId, node: NodeId
) -> list[EventDraft]:
    """`node_output_appended` of artifacts, in the order they are given."""
    appended = (
        data.NodeOutputAppended(
            output_id=output_id(attempt, output.digest),
            output_channel="artifact",
            payload=data.ArtifactPayload(
                sha256=output.digest, content_type=output.content_type, byte_length=len(output.data)
            ),
        )
        for output in outputs
    )
    return [EventDraft(data=one, run=run, node=node) for one in appended]


def effects_draft(effects: Context, run: RunId, node: NodeId, origin: Origin) -> list[EventDraft]:
    """`context_set` of what a step sets when it is done: after the sent context, as an event of its own."""
    return context_draft(effects, run, node, derived_id("ctx", origin, "effects"), "merge")
