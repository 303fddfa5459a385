"""The state of a session: its log folded, event by event, into an immutable value.

Every map shares structure with its predecessor, so applying an event costs the same at any length of history.
This module does not judge decisions: an appended event is history. It raises for events that contradict each other,
such as a node whose parent is missing: the log is damaged.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import assert_never

from rpds import HashTrieMap

from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import (
    AttemptId,
    Digest,
    GapId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    SourceKind,
    WorkflowHash,
    ack_attempt,
    node_of_attempt,
    tag_of,
)
from interlock.record import events as ev
from interlock.record import payloads as data
from interlock.record.base import Preferences
from interlock.record.context import Context, merge_context
from interlock.record.outcome import AdvanceOutcome

LABEL_CHARS = 4
LABEL_CHARS_ON_CLASH = 6

BASELINE = Preferences(autonomy="guided", risk_policy="conservative")
"""The preferences if nobody set any (CTX-7)."""

_EMPTY: Context = MappingProxyType({})


class BrokenHistoryError(InterlockError):
    """The events are readable but contradict each other: Interlock never writes such a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutput:
    """One output of a node: its notes, or the digest of an artifact.

    The outputs of a checkpoint belong to the node of its step, together with the outputs of the attempt that made it.
    """

    output_id: OutputId
    channel: str
    payload: data.NotesPayload | data.ArtifactPayload
    index: int
    supersedes: OutputId | None
    is_of_checkpoint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node and everything recorded on it. `children` omits checkpoints, which are never tips (CHK-1).

    `trace` says why the run came here; `captures` holds what its decisions read. `gaps` are the gaps recorded here,
    `observed` the observed capabilities of the client. `left` says how work on its step was left before it was done,
    or how this checkpoint left it (END-7). `context_at` is the nearest node at or above that set context. `actor` made
    the node, by its own account.
    """

    node: NodeId
    run: RunId
    kind: data.NodeKind
    parent: NodeId | None
    snapshot: SnapshotRef
    index: int
    depth: int
    refusals: int
    preferences: Preferences
    context_at: NodeId | None
    children: tuple[NodeId, ...] = ()
    outputs: tuple[NodeOutput, ...] = ()
    trace: tuple[data.TraceEntry, ...] = ()
    captures: tuple[Digest, ...] = ()
    gaps: tuple[data.GapRecorded, ...] = ()
    observed: tuple[data.CapabilityObserved, ...] = ()
    left: tuple[data.WorkRecorded, ...] = ()
    forks: int = 0
    checkpoints: int = 0
    request_digest: Digest | None = None
    actor: ev.Actor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run that is not its last step: what happened and why, and where the log records it (END-1)."""

    work: data.WorkRecorded
    index: int
    at: str | None
    actor: ev.Actor | None

    @property
    def kind(self) -> data.RunEndKind:
        """Whether the run failed or was cancelled."""
        assert self.work.work != "released", "only the work on a step is released"
        return self.work.work


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: its workflow, its root and its preferred tip. `critical` counts its open critical gaps.

    `last_index`, `last_at` and `client` (the name that the client gave) are those of its last event; a record of how
    work ended does not count. `ended` is None unless the run failed or was cancelled.
    """

    run: RunId
    index: int
    workflow_id: str
    workflow_hash: WorkflowHash
    source_kind: SourceKind
    source_ref: str
    root: NodeId | None = None
    tip: NodeId | None = None
    recorded_at: str | None = None
    critical: int = 0
    last_index: int = 0
    last_at: str | None = None
    client: str | None = None
    nodes: int = 0
    ended: RunEnd | None = None
    binding: data.Binding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """The recorded outcome of an attempt."""

    node: NodeId
    attempt: AttemptId
    outcome: AdvanceOutcome
    request_digest: Digest
    index: int

    @property
    def child(self) -> NodeId:
        """The node that the attempt made, whether it advanced or was refused (ID-2)."""
        return node_of_attempt(self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claimed execution, and where the log records it."""

    index: int
    data: data.ExecutionClaimed


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The state of a session: all that later calls need from its log."""

    session: SessionId
    next_index: int
    runs: "HashTrieMap[RunId, Run]"
    nodes: "HashTrieMap[NodeId, Node]"
    advances: "HashTrieMap[str, Advance]"
    deltas: "HashTrieMap[NodeId, Context]"
    contexts: "HashTrieMap[NodeId, Context]"
    suffixes: "HashTrieMap[str, RunId]"
    open_gaps: "HashTrieMap[GapId, NodeId]"
    observations: "HashTrieMap[str, str]"
    tags: "HashTrieMap[str, NodeId]"
    dedupe_keys: "HashTrieMap[str, int]"
    contracts: tuple[data.ContractBound, ...] = ()
    claims: tuple[Claim, ...] = ()

    def advance(self, node: NodeId, attempt: AttemptId) -> Advance | None:
        """Return the recorded outcome of an attempt on a node, if there is one."""
        return self.advances.get(f"{node}:{attempt}")

    def context(self, node: NodeId) -> Context:
        """Return a node's context: the fold of the deltas over its own ancestry, itself included (CTX-2).

        Merged values are cached for tips; for an older node the deltas are folded again.
        """
        kept = self.contexts.get(node)
        return kept if kept is not None else self._fold(self.nodes[node].context_at)

    def _fold(self, at: NodeId | None) -> Context:
        deltas: list[Context] = []
        while at is not None:
            deltas.append(self.deltas[at])
            parent = self.nodes[at].parent
            at = self.nodes[parent].context_at if parent is not None else None
        merged: Context = _EMPTY
        for delta in reversed(deltas):
            merged = merge_context(merged, delta)
        return merged

    def has_tag(self, node: NodeId) -> bool:
        """Return whether the tag of a node refers to it: it is the first node of the session with this tag (TOK-8)."""
        return self.tags.get(tag_of(node)) == node

    def observed(self, run: RunId, key: data.ObservationKey) -> str | None:
        """Return the last observed value of the workspace in which a run began; None if there is none (OBS-1)."""
        return self.observations.get(f"{run}:{key}", self.observations.get(f":{key}"))

    @property
    def baseline(self) -> Preferences | None:
        """The initial preferences of a run that joins: those of the first run (CTX-7). None if there is no run."""
        first = min(self.runs.values(), key=lambda run: run.index, default=None)
        return None if first is None or first.root is None else self.nodes[first.root].preferences

    def label(self, run: RunId) -> str:
        """Return the run's label: the last four characters of its id, six if an earlier run has the same four (ANS-2).

        The earlier run keeps its label, so labels in earlier answers still name one run.
        """
        is_first = self.suffixes.get(run[-LABEL_CHARS:], run) == run
        return run[-(LABEL_CHARS if is_first else LABEL_CHARS_ON_CLASH) :]


def new_session(session: SessionId) -> Session:
    """Return a session before its first event."""
    return Session(
        session=session,
        next_index=0,
        runs=HashTrieMap(),
        nodes=HashTrieMap(),
        advances=HashTrieMap(),
        deltas=HashTrieMap(),
        contexts=HashTrieMap(),
        suffixes=HashTrieMap(),
        open_gaps=HashTrieMap(),
        observations=HashTrieMap(),
        tags=HashTrieMap(),
        dedupe_keys=HashTrieMap(),
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
        if event.dedupe_key in keys:
            raise BrokenHistoryError(f"{event.kind} is recorded twice")
        if (expected == 0) != (event.kind == "session_created"):
            raise BrokenHistoryError(f"{event.kind} at {expected}; a session begins with session_created")
        try:
            after = _apply(after, event)
        except KeyError as missing:
            raise BrokenHistoryError(f"{event.kind} refers to {missing.args[0]}, which is not in the log") from None
        keys, expected = keys.insert(event.dedupe_key, expected), expected + 1
        if not isinstance(event, ev.SessionCreatedEvent | ev.WorkRecordedEvent) and event.scope is not None:
            last[event.scope.run_id] = event
    return replace(after, next_index=expected, dedupe_keys=keys, runs=_note_last_events(after.runs, last))


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
    if ended is not None:
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
        case ev.ObservationRecordedEvent():
            owner = event.scope.run_id if event.scope is not None else ""
            return replace(
                session, observations=session.observations.insert(f"{owner}:{event.data.key}", event.data.value.value)
            )
        case ev.WorkRecordedEvent():
            return _work_recorded(session, event)
        case ev.ContractBoundEvent():
            _check_binding(session, event.data.parent)
            return replace(session, contracts=(*session.contracts, event.data))
        case ev.ExecutionClaimedEvent():
            _check_binding(session, event.data.binding)
            return replace(session, claims=(*session.claims, Claim(index=event.event_index, data=event.data)))
        case ev.SessionCreatedEvent() | ev.DivergenceRecordedEvent():
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
    )
    return replace(
        session,
        runs=session.runs.insert(run, started),
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
        actor=event.actor,
    )
    tag = tag_of(node_id)
    tags = session.tags if tag in session.tags else session.tags.insert(tag, node_id)
    if payload.node_kind == "checkpoint":
        assert parent is not None, "only a step is a root, as checked above"
        counted = replace(parent, checkpoints=parent.checkpoints + 1)
        return replace(session, tags=tags, nodes=session.nodes.insert(node_id, node).insert(parent.node, counted))
    nodes, contexts = session.nodes.insert(node_id, node), session.contexts
    if parent is None:
        contexts = contexts.insert(node_id, _EMPTY)
    else:
        nodes = nodes.insert(parent.node, replace(parent, children=(*parent.children, node_id)))
        contexts = contexts.insert(node_id, session.context(parent.node)).discard(parent.node)
    # The newest node is the preferred tip: every event of its plan touches its history and is the latest (READ-3).
    moved = replace(run, root=run.root or node_id, tip=node_id, nodes=run.nodes + 1)
    return replace(session, tags=tags, nodes=nodes, contexts=contexts, runs=session.runs.insert(run.run, moved))


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
    )
    after = replace(session, advances=session.advances.insert(f"{node_id}:{attempt}", advance))
    if attempt == ack_attempt(node_id):
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
    return _with_node(session, node.node, lambda node: replace(node, outputs=(*node.outputs, output)))


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
    gap, node = event.data, event.scope.node_id
    after = _with_node(session, node, lambda found: replace(found, gaps=(*found.gaps, gap)))
    if isinstance(gap.resolution, data.Unresolved):
        opened, change = session.open_gaps.insert(gap.gap_id, node), 1
    elif gap.resolution.resolves_gap_id in session.open_gaps:
        opened, change = session.open_gaps.discard(gap.resolution.resolves_gap_id), -1
    else:
        return after
    run = after.runs[event.scope.run_id]
    counted = replace(run, critical=run.critical + (change if gap.severity == "critical" else 0))
    return replace(after, open_gaps=opened, runs=after.runs.insert(run.run, counted))


def _context_set(session: Session, event: ev.ContextSetEvent) -> Session:
    """Merge what an event sets into the node's delta and into its cached context, in log order."""
    node, delta = event.data.node_id, MappingProxyType(event.data.context)
    after = _with_node(session, node, lambda found: replace(found, context_at=node))
    merged = merge_context(session.context(node), delta)
    whole = MappingProxyType({**session.deltas.get(node, _EMPTY), **delta})
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
