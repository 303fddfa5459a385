"""The timeline of a session for people: one entry for each event from outside, and for what else a call recorded."""

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from interlock.kernel.budgets import TIMELINE_NOTES_BYTES_MAX, UTF8_CHAR_BYTES_MAX
from interlock.kernel.budgets.workflow import TRACE_SUMMARY_BYTES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId, RunId, ack_attempt
from interlock.kernel.text import one_line, utf8_bytes
from interlock.record import events as ev
from interlock.record import payloads as data
from interlock.record.outcome import Blocked
from interlock.record.world import APPROVAL, CHECK, EXPIRED, RECEIPT, EventReceived, exit_words
from interlock.views.appends import split_received
from interlock.views.outside import NOT_CONFIGURED, SigningKeys, has_unknown_key
from interlock.views.session import Node, Session

TitleOf = Callable[[Node], str | None]
"""Returns the title of the step that is pending at a node; None if the run is complete."""


@frozen
class Entry:
    """What happened at once: the events `first` to `last`, when, by which client (`who`), and for which run and node.

    `what` says what happened; `more` are further lines.
    """

    first: int
    last: int
    at: str | None
    who: str | None
    run: RunId | None
    node: NodeId | None
    what: str
    more: tuple[str, ...]
    events: tuple[ev.Event, ...]


def parts_of(plan: tuple[ev.Event, ...]) -> Iterator[tuple[ev.Event, ...]]:
    """Yield what an appended plan holds as an entry each: every event from outside, then what followed it (APP-9)."""
    received, rest = split_received(plan)
    yield from ((event,) for event in received)
    if rest:
        yield rest


def entry_of(session: Session, events: Sequence[ev.Event], title_of: TitleOf, keys: SigningKeys | None = None) -> Entry:
    """Build the entry of a part of a plan (`parts_of`).

    `keys` are the signing keys that are configured, if they are known.
    """
    key = next((event for event in events if ev.is_key_event(event)), events[-1])
    scope = None if isinstance(key, ev.SessionCreatedEvent) else key.scope
    return Entry(
        first=events[0].event_index,
        last=events[-1].event_index,
        at=key.recorded_at,
        who=key.actor.identifier if key.actor is not None else None,
        run=scope.run_id if scope is not None else None,
        node=scope.node_id if isinstance(scope, ev.NodeScope) else None,
        what=_describe(session, key, title_of, keys),
        more=tuple(line for event in events for line in (*_details(event), *_unknown_key(event, keys))),
        events=tuple(events),
    )


def _describe(session: Session, key: ev.Event, title_of: TitleOf, keys: SigningKeys | None) -> str:
    match key:
        case ev.RunStartedEvent():
            root = session.runs[key.scope.run_id].root
            assert root is not None, "a run has a root"
            return f"started {key.data.workflow_id}; {_describe_next(title_of(session.nodes[root]))}"
        case ev.AdvanceRecordedEvent():
            return _describe_attempt(session, key, title_of)
        case ev.NodeCreatedEvent(data=created) if created.parent_node_id is not None:
            return f"saved a checkpoint in {title_of(session.nodes[created.parent_node_id]) or 'its end'}"
        case ev.WorkRecordedEvent():
            return f"ended the run: {key.data.work}, {key.data.reason}"
        case ev.EventReceivedEvent() if key.data.event == EXPIRED:
            return "noticed that the time of a step that waits was over"
        case ev.EventReceivedEvent():
            level = session.describe_level(key.event_index, key.data, keys)
            return f"received the event {key.data.event} ({level}, via {key.data.via}){_describe_result(key.data)}"
        case ev.IntentSettledEvent():
            return f"recorded of an intent: {key.data.state}"
        case _:
            is_copy = isinstance(key, ev.ObservationRecordedEvent) and key.is_redaction
            return "recorded that this session is a redacted copy" if is_copy else f"recorded {key.kind}"


def _describe_result(received: EventReceived) -> str:
    """Return what an event of Interlock's own says in short: the choice of a person, or how a command ended."""
    fields = received.fields
    if received.event == APPROVAL:
        return f": {one_line(str(fields.get('choice')), TIMELINE_NOTES_BYTES_MAX)}"
    ended = one_line(exit_words(fields), TIMELINE_NOTES_BYTES_MAX)
    if received.event == CHECK:
        return f": {'passed' if fields.get('passed') else 'did not pass'}, {ended}"
    return f": {ended}" if received.event == RECEIPT else ""


def _describe_attempt(session: Session, key: ev.AdvanceRecordedEvent, title_of: TitleOf) -> str:
    outcome, node = key.data.outcome, session.nodes[key.scope.node_id]
    step = title_of(node)
    if isinstance(outcome, Blocked):
        return f"was refused in {step}"
    following = _describe_next(title_of(session.nodes[outcome.to_node_id]))
    if key.data.attempt_id == ack_attempt(node.node):
        return f"completed {step}; {following}"
    return f"redid {step} on a new branch; {following}"


def _describe_next(title: str | None) -> str:
    return "the run is complete" if title is None else f"next is {title}"


def _details(event: ev.Event) -> Iterator[str]:  # noqa: C901, PLR0912 — one for each kind
    match event:
        case ev.AdvanceRecordedEvent():
            if isinstance(event.data.outcome, Blocked):
                for blocker in event.data.outcome.blockers.blockers:
                    yield f"{blocker.code}: {blocker.message}"
        case ev.NodeOutputAppendedEvent():
            yield _describe_output(event.data.payload)
        case ev.ContextSetEvent():
            keys = (f"-{key}" if value is None else key for key, value in event.data.context.items())
            yield f"context: {', '.join(keys)}"
        case ev.PreferencesChangedEvent():
            changes = ", ".join(f"{change.key} = {change.value}" for change in event.data.delta)
            # Whoever calls is recorded as the user, also an agent.
            source = "call" if event.data.source == "user" else event.data.source.replace("_", " ")
            yield f"preferences of the {source}: {changes}"
        case ev.GapRecordedEvent():
            yield _describe_gap(event.data)
        case ev.CapabilityObservedEvent():
            seen = event.data
            yield f"capability {seen.capability}: {seen.status}, by {seen.provenance.kind}"
        case ev.ObservationRecordedEvent():
            yield f"{event.data.key}: {event.data.value.value}"
        case ev.DivergenceRecordedEvent():
            yield f"diverged, {event.data.reason}: {event.data.summary}"
        case ev.WorkRecordedEvent():
            yield from _describe_work(event)
        case ev.EventReceivedEvent() | ev.IntentRecordedEvent():
            yield from _describe_fields(event)
        case ev.IntentSettledEvent():
            yield from _describe_settled(event)
        case ev.DecisionTraceAppendedEvent():
            yield from (f"because: {_describe_decision(entry, event.scope.node_id)}" for entry in event.data.entries)
        case ev.ContractBoundEvent():
            yield f"contract {event.data.contract_id}, version {event.data.contract_version}: {event.data.definition}"
        case ev.ExecutionClaimedEvent():
            claimed = event.data
            yield f"claimed {claimed.source_run_id} of {claimed.source_session_id}: {claimed.state}"
        case ev.SessionCreatedEvent() | ev.RunStartedEvent() | ev.NodeCreatedEvent() | ev.EdgeCreatedEvent():
            return
        case _:
            assert_never(event)


def _describe_decision(entry: data.TraceEntry, node: NodeId) -> str:
    """Return the recorded text of a decision; if it was cut, with the command that shows all of it."""
    if not is_cut(entry):
        return entry.summary
    return f"{entry.summary} (cut; `interlock session explain {node}` shows all of it)"


def is_cut(entry: data.TraceEntry) -> bool:
    """Say whether the text of a decision was longer than a trace holds."""
    longest = TRACE_SUMMARY_BYTES_MAX - UTF8_CHAR_BYTES_MAX
    return entry.summary.endswith("…") and utf8_bytes(entry.summary) > longest


def _unknown_key(event: ev.Event, keys: SigningKeys | None) -> Iterator[str]:
    if isinstance(event, ev.EventReceivedEvent) and has_unknown_key(event.data, keys):
        yield f"the key of the signature {NOT_CONFIGURED}"


def _describe_fields(event: ev.EventReceivedEvent | ev.IntentRecordedEvent) -> Iterator[str]:
    """Yield what came in or is to be sent, with the names of its fields: values may be long."""
    if isinstance(event, ev.EventReceivedEvent) and event.data.event == EXPIRED:
        return
    if isinstance(event, ev.EventReceivedEvent):
        signed = f", signed by {event.data.signed.source}" if event.data.signed is not None else ""
        yield f"id {one_line(event.data.sent_id, TIMELINE_NOTES_BYTES_MAX)}{signed}"
        if event.data.event == APPROVAL and event.data.fields.get("note"):
            yield f"note: {one_line(str(event.data.fields['note']), TIMELINE_NOTES_BYTES_MAX)}"
    else:
        yield f"sends {event.data.sends}: {event.data.intent_id}"
    if event.data.fields:
        yield f"fields: {', '.join(sorted(event.data.fields))}"


def _describe_settled(event: ev.IntentSettledEvent) -> Iterator[str]:
    through = f" through {event.data.channel}" if event.data.channel is not None else ""
    note = f": {one_line(event.data.note, TIMELINE_NOTES_BYTES_MAX)}" if event.data.note is not None else ""
    yield f"{event.data.intent_id}, try {event.data.attempt}{through}{note}"


def _describe_output(payload: data.NotesPayload | data.ArtifactPayload) -> str:
    if isinstance(payload, data.NotesPayload):
        return f"notes: {one_line(payload.notes_markdown, TIMELINE_NOTES_BYTES_MAX)}"
    return f"artifact: {payload.content_type}, {payload.byte_length} bytes, {payload.sha256}"


def _describe_gap(gap: data.GapRecorded) -> str:
    if isinstance(gap.resolution, data.Resolves):
        return f"resolved the gap {gap.resolution.resolves_gap_id}"
    return f"gap, {gap.severity}, {gap.reason.detail}: {gap.summary}"


def _describe_work(event: ev.WorkRecordedEvent) -> Iterator[str]:
    if not event.is_end:
        yield f"the work on the step was left: {event.data.work}, {event.data.reason}"
    if event.data.note is not None:
        yield f"note: {one_line(event.data.note, TIMELINE_NOTES_BYTES_MAX)}"
    for ref in event.data.refs or ():
        yield f"reference: {one_line(ref, TIMELINE_NOTES_BYTES_MAX)}"
    if event.data.answer_ref is not None:
        yield f"a person agreed: {event.data.answer_ref}"
