"""Applies the events of a log to the state of a session, one by one (`views.session`).

This module does not judge decisions: an appended event is history. It raises for events that contradict each other,
such as a node whose parent is missing: the log is damaged.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import assert_never

from rpds import HashTrieMap, HashTrieSet

from interlock.kernel.frozen import replace
from interlock.kernel.ids import LABEL_CHARS, EventId, NodeId, RunId, SessionId, ack_attempt, fork_attempt, tag_of
from interlock.record import events as ev
from interlock.record import payloads as data
from interlock.record.context import merge_context
from interlock.record.outcome import AdvancedTo
from interlock.record.world import ASSURANCES
from interlock.views.outside import (
    BrokenOutsideError,
    event_received,
    events_taken,
    grounds_of,
    intent_recorded,
    intent_settled,
)
from interlock.views.session import (
    BASELINE,
    EMPTY_CONTEXT,
    NO_STEPS,
    NONE_SIGNED,
    NONE_TAKEN,
    Advance,
    BrokenHistoryError,
    Claim,
    Levels,
    Node,
    NodeOutput,
    Run,
    RunEnd,
    Session,
    SignedSteps,
    is_recorded,
)


def evolve(session: Session, *events: ev.Event) -> Session:
    """Apply the next events of the session's own log, and return the new state.

    Raises:
        BrokenHistoryError: An event cannot follow: wrong index, a repeated key, or an unknown run or node.
    """
    after, expected, keys, last = session, session.next_index, session.dedupe_keys, dict[RunId, ev.Event]()
    for event in events:
        if event.event_index != expected or event.session_id != session.session:
            raise BrokenHistoryError(f"event {event.event_index}, expected {expected}")
        if is_recorded(keys, event, after.imported):
            raise BrokenHistoryError(f"{event.kind} is recorded twice")
        if (expected == 0) != (event.kind == "session_created"):
            raise BrokenHistoryError(f"{event.kind} at {expected}; a session begins with session_created")
        try:
            after = _apply(after, event)
        except BrokenOutsideError as error:
            raise BrokenHistoryError(f"{event.kind}: {error}") from None
        except KeyError as missing:
            raise BrokenHistoryError(f"{event.kind} refers to {missing.args[0]}, which is not in the log") from None
        keys, expected = keys.insert(ev.recorded_key(event), expected), expected + 1
        if not isinstance(event, _FROM_OUTSIDE) and event.scope is not None:
            last[event.scope.run_id] = event
    return replace(after, next_index=expected, dedupe_keys=keys, runs=_note_last_events(after.runs, last))


_FROM_OUTSIDE = (
    ev.SessionCreatedEvent,
    ev.WorkRecordedEvent,
    ev.EventReceivedEvent,
    ev.IntentRecordedEvent,
    ev.IntentSettledEvent,
)
"""Events that say nothing of when, and by whom, a run was last worked on (END-2, WORLD-2)."""


def _note_last_events(runs: "HashTrieMap[RunId, Run]", last: Mapping[RunId, ev.Event]) -> "HashTrieMap[RunId, Run]":
    """Return the runs with the index, time and client of their last event."""
    for run, event in last.items():
        client = event.actor.identifier if event.actor is not None else None
        updated = replace(runs[run], last_index=event.event_index, last_at=event.recorded_at, client=client)
        runs = runs.insert(run, updated)
    return runs


def _check_scope(session: Session, event: ev.Event) -> None:
    """Check that the run and the node of an event are in this log and belong together, and that the run is open."""
    scope = None if isinstance(event, ev.SessionCreatedEvent | ev.RunStartedEvent) else event.scope
    if scope is None:
        return
    run, ended = session.runs[scope.run_id].run, session.runs[scope.run_id].ended
    if ended is not None and not isinstance(event, ev.IntentSettledEvent):
        raise BrokenHistoryError(f"{event.kind}: {run} ended at {ended.index}")
    node = event.data.node_id if isinstance(event, ev.ContextSetEvent) else None
    if isinstance(scope, ev.NodeScope) and not isinstance(event, ev.NodeCreatedEvent):
        node = scope.node_id
    if node is not None and session.nodes[node].run != run:
        raise BrokenHistoryError(f"{event.kind}: {node} is of another run")


def _apply(session: Session, event: ev.Event) -> Session:  # noqa: C901, PLR0911, PLR0912 — one for each kind
    _check_scope(session, event)
    match event:
        case ev.RunStartedEvent():
            return _run_started(session, event)
        case ev.NodeCreatedEvent():
            return _node_created(session, event)
        case ev.AdvanceRecordedEvent():
            return _advance_recorded(session, event)
        case ev.NodeOutputAppendedEvent():
            return _output_appended(session, event)
        case ev.ContextSetEvent():
            return _context_set(session, event)
        case ev.PreferencesChangedEvent():
            effective = event.data.effective
            return _with_node(session, event.scope.node_id, lambda node: replace(node, preferences=effective))
        case ev.EdgeCreatedEvent():
            return _edge_created(session, event)
        case ev.DecisionTraceAppendedEvent():
            return _trace_appended(session, event)
        case ev.GapRecordedEvent():
            return _gap_recorded(session, event)
        case ev.CapabilityObservedEvent():
            seen = event.data
            return _with_node(session, event.scope.node_id, lambda node: replace(node, observed=(*node.observed, seen)))
        case ev.ObservationRecordedEvent() if event.is_redaction:
            return replace(session, redacted_from=SessionId(event.data.value.value))
        case ev.ObservationRecordedEvent():
            owner = event.scope.run_id if event.scope is not None else ""
            return replace(
                session, observations=session.observations.insert(f"{owner}:{event.data.key}", event.data.value.value)
            )
        case ev.WorkRecordedEvent():
            return _work_recorded(session, event)
        case ev.EventReceivedEvent():
            return replace(session, outside=event_received(session.outside, event))
        case ev.IntentRecordedEvent():
            return replace(session, outside=intent_recorded(session.outside, event))
        case ev.IntentSettledEvent():
            return replace(session, outside=intent_settled(session.outside, event))
        case ev.ContractBoundEvent():
            _check_binding(session, event.data.parent)
            return replace(session, contracts=(*session.contracts, event.data))
        case ev.ExecutionClaimedEvent():
            _check_binding(session, event.data.binding)
            return replace(session, claims=(*session.claims, Claim(index=event.event_index, data=event.data)))
        case ev.SessionCreatedEvent():
            return replace(session, imported=event.data.imported or 0)
        case ev.DivergenceRecordedEvent():
            return session
        case _:
            assert_never(event)


def _with_node(session: Session, node: NodeId, change: Callable[[Node], Node]) -> Session:
    return replace(session, nodes=session.nodes.insert(node, change(session.nodes[node])))


def _check_binding(session: Session, binding: data.Binding | data.ParentBinding | None) -> None:
    if binding is not None and all(one.binding_id != binding.binding_id for one in session.contracts):
        raise BrokenHistoryError(f"no contract is bound as {binding.binding_id}")


def _run_started(session: Session, event: ev.RunStartedEvent) -> Session:
    _check_binding(session, event.data.binding)
    run = event.scope.run_id
    suffix = run[-LABEL_CHARS:]
    started = Run(
        run=run,
        index=event.event_index,
        workflow_id=event.data.workflow_id,
        workflow_hash=event.data.workflow_hash,
        source_kind=event.data.workflow_source_kind,
        source_ref=event.data.workflow_source_ref,
        recorded_at=event.recorded_at,
        binding=event.data.binding,
        checks=event.data.checks or (),
        proofs=event.data.proofs or "enforce",
        notifies=event.data.notifies is True,
    )
    return replace(
        session,
        runs=session.runs.insert(run, started),
        first_run=session.first_run or run,
        suffixes=session.suffixes if suffix in session.suffixes else session.suffixes.insert(suffix, run),
    )


def _node_created(session: Session, event: ev.NodeCreatedEvent) -> Session:
    node_id, payload = event.scope.node_id, event.data
    run = session.runs[event.scope.run_id]
    parent = session.nodes[payload.parent_node_id] if payload.parent_node_id is not None else None
    if node_id in session.nodes:
        raise BrokenHistoryError(f"{node_id} is created twice")
    if (parent.run if parent else run.run) != run.run or payload.workflow_hash != run.workflow_hash:
        raise BrokenHistoryError(f"{node_id} is not of its run")
    if (parent is None) != (run.root is None) or (parent is None and payload.node_kind != "step"):
        raise BrokenHistoryError(f"{node_id} is a second root, or a root that is no step")
    if parent is not None and payload.node_kind != "checkpoint":
        advance = session.newest
        if advance is None or (advance.node, advance.child) != (parent.node, node_id):
            raise BrokenHistoryError(f"{node_id} was made by no recorded attempt")
    levels, signed = _levels_at(session, parent, payload.node_kind)
    node = Node(
        node=node_id,
        run=run.run,
        kind=payload.node_kind,
        parent=payload.parent_node_id,
        snapshot=payload.snapshot_ref,
        index=event.event_index,
        depth=parent.depth + 1 if parent else 0,
        refusals=_refusals(parent, payload.node_kind),
        preferences=parent.preferences if parent else BASELINE,
        context_at=parent.context_at if parent else None,
        request_digest=payload.request_digest,
        # Nearly all nodes of a run are of one caller, and share what is known of it.
        actor=parent.actor if parent and parent.actor == event.actor else event.actor,
        at=event.recorded_at,
        taken=_taken_at(session, parent, node_id),
        levels=levels,
        signed=signed,
    )
    tag = tag_of(node_id)
    tags = session.tags if tag in session.tags else session.tags.insert(tag, node_id)
    if payload.node_kind == "checkpoint":
        assert parent is not None, "only a step is a root, as checked above"
        counted = replace(parent, checkpoints=parent.checkpoints + 1)
        return replace(session, tags=tags, nodes=session.nodes.insert(node_id, node).insert(parent.node, counted))
    nodes, contexts = session.nodes.insert(node_id, node), session.contexts
    if parent is None:
        contexts = contexts.insert(node_id, EMPTY_CONTEXT)
    else:
        nodes = nodes.insert(parent.node, replace(parent, children=(*parent.children, node_id)))
        contexts = contexts.insert(node_id, session.context(parent.node)).discard(parent.node)
    # The newest node is the preferred tip: every event of its plan touches its history and is the latest (READ-3).
    moved = replace(run, root=run.root or node_id, tip=node_id, nodes=run.nodes + 1)
    return replace(session, tags=tags, nodes=nodes, contexts=contexts, runs=session.runs.insert(run.run, moved))


def _taken_at(session: Session, parent: Node | None, made: NodeId) -> "HashTrieSet[EventId]":
    """Return the events taken on the way to a node: those of its parent, and those of the advance that makes it."""
    if parent is None:
        return NONE_TAKEN
    advance = session.newest
    took = advance.took if advance is not None and advance.child == made else ()
    return parent.taken.update(took) if took else parent.taken


def _levels_at(session: Session, parent: Node | None, kind: data.NodeKind) -> tuple[Levels, SignedSteps]:
    """Count the step that made a node with the weakest event that it took; a step that took none is a claim."""
    if parent is None:
        return NO_STEPS, NONE_SIGNED
    if kind != "step":
        return parent.levels, parent.signed
    took = session.newest.took if session.newest is not None else ()
    events = [session.outside.events[one] for one in took]
    levels = [ASSURANCES.index(grounds_of(one, session.trusted_from)) for one in events]
    level = min(levels, default=0)
    counted = tuple(count + (number == level) for number, count in enumerate(parent.levels))
    keys = frozenset((one.source, one.public_key) for event in events if (one := event.data.signed) is not None)
    if not keys or level == 0:
        return counted, parent.signed
    return counted, parent.signed.insert((level, keys), parent.signed.get((level, keys), 0) + 1)


def _edge_created(session: Session, event: ev.EdgeCreatedEvent) -> Session:
    """Check that an edge agrees with its nodes: it repeats them, and adds a cause (EVT-4)."""
    upper, lower = session.nodes[event.data.from_node_id], session.nodes[event.data.to_node_id]
    if lower.parent != upper.node or {upper.run, lower.run} != {event.scope.run_id}:
        raise BrokenHistoryError(f"an edge from {upper.node} to {lower.node}, which is not its child")
    if (event.data.edge_kind == "checkpoint") != (lower.kind == "checkpoint"):
        raise BrokenHistoryError(f"a {event.data.edge_kind} edge to a {lower.kind}")
    return session


def _refusals(parent: Node | None, kind: data.NodeKind) -> int:
    """Count the refused attempts in a row that end with a node of this kind below this parent."""
    return parent.refusals + 1 if parent is not None and kind == "blocked_attempt" else 0


def _advance_recorded(session: Session, event: ev.AdvanceRecordedEvent) -> Session:
    node_id, attempt = event.scope.node_id, event.data.attempt_id
    advance = Advance(
        node=node_id,
        attempt=attempt,
        outcome=event.data.outcome,
        request_digest=event.data.request_digest,
        index=event.event_index,
        took=event.data.took or (),
    )
    node, is_ordinary = session.nodes[node_id], attempt == ack_attempt(node_id)
    if not is_ordinary and attempt != fork_attempt(node_id, node.forks):
        raise BrokenHistoryError(f"{attempt} is not the next attempt on {node_id}")
    if isinstance(advance.outcome, AdvancedTo) and advance.outcome.to_node_id != advance.child:
        raise BrokenHistoryError(f"{attempt} leads to a node that it does not make")
    outside = events_taken(session.outside, event.scope.run_id, advance.took) if advance.took else session.outside
    advances = session.advances.insert(f"{node_id}:{attempt}", advance)
    after = replace(session, advances=advances, newest=advance, outside=outside)
    if is_ordinary:
        return after
    return _with_node(after, node_id, lambda node: replace(node, forks=node.forks + 1))


def _output_appended(session: Session, event: ev.NodeOutputAppendedEvent) -> Session:
    node = session.nodes[event.scope.node_id]
    output = NodeOutput(
        output_id=event.data.output_id,
        channel=event.data.output_channel,
        payload=event.data.payload,
        index=event.event_index,
        supersedes=event.data.supersedes_output_id,
        # A node's own outputs are appended with the node, so outputs after a checkpoint belong to a checkpoint.
        is_of_checkpoint=node.checkpoints > 0,
    )
    earlier = {one.output_id for one in node.outputs if one.channel == output.channel}
    if output.supersedes is not None and output.supersedes not in earlier:
        raise BrokenHistoryError(f"{output.output_id} supersedes no earlier output of its node and channel")
    after = _with_node(session, node.node, lambda node: replace(node, outputs=(*node.outputs, output)))
    if not isinstance(output.payload, data.ArtifactPayload):
        return after
    run = after.runs[node.run]
    return replace(after, runs=after.runs.insert(run.run, replace(run, artifacts=run.artifacts + 1)))


def _trace_appended(session: Session, event: ev.DecisionTraceAppendedEvent) -> Session:
    entries, capture = event.data.entries, event.data.capture_ref
    captures = (capture,) if capture is not None else ()
    return _with_node(
        session,
        event.scope.node_id,
        lambda node: replace(node, trace=(*node.trace, *entries), captures=(*node.captures, *captures)),
    )


def _gap_recorded(session: Session, event: ev.GapRecordedEvent) -> Session:
    """A gap is open until a later one resolves it; neither ever changes (GAP-2)."""
    gap, node, opened, change = event.data, event.scope.node_id, session.open_gaps, 0
    after = _with_node(session, node, lambda found: replace(found, gaps=(*found.gaps, gap)))
    if isinstance(gap.resolution, data.Unresolved):
        opened, change = opened.insert(gap.gap_id, node), 1
    elif gap.resolution.resolves_gap_id in opened:
        opened, change = opened.discard(gap.resolution.resolves_gap_id), -1
    run = after.runs[event.scope.run_id]
    counted = replace(
        run,
        critical=run.critical + (change if gap.severity == "critical" else 0),
        with_gaps=run.with_gaps if session.nodes[node].gaps else (*run.with_gaps, node),
    )
    return replace(after, open_gaps=opened, runs=after.runs.insert(run.run, counted))


def _context_set(session: Session, event: ev.ContextSetEvent) -> Session:
    """Merge what an event sets into the node's delta and into its cached context, in log order."""
    node, delta = event.data.node_id, MappingProxyType(event.data.context)
    after = _with_node(session, node, lambda found: replace(found, context_at=node))
    merged = merge_context(session.context(node), delta)
    whole = MappingProxyType({**session.deltas.get(node, EMPTY_CONTEXT), **delta})
    return replace(after, deltas=session.deltas.insert(node, whole), contexts=session.contexts.insert(node, merged))


def _work_recorded(session: Session, event: ev.WorkRecordedEvent) -> Session:
    """End the run, or note on the node of a checkpoint's step how the work on it was left."""
    if isinstance(event.scope, ev.NodeScope):
        made = session.nodes[event.scope.node_id]
        if made.kind != "checkpoint" or made.parent is None:
            raise BrokenHistoryError(f"{event.kind}: {made.node} is no checkpoint")
        kept = _with_node(session, made.node, lambda node: replace(node, left=(event.data,)))
        return _with_node(kept, made.parent, lambda node: replace(node, left=(*node.left, event.data)))
    run = session.runs[event.scope.run_id]
    if run.tip is None:
        raise BrokenHistoryError(f"{event.kind}: {run.run} has no node")
    ended = RunEnd(work=event.data, index=event.event_index, at=event.recorded_at, actor=event.actor)
    return replace(session, runs=session.runs.insert(run.run, replace(run, ended=ended)))
