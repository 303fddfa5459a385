"""The state of a session: its log folded, event by event, into an immutable value.

Every map shares structure with its predecessor, so applying an event costs the same at any length of history.
This module does not judge decisions: an appended event is history. It raises for events that contradict each other,
such as a node whose parent is missing: the log is damaged.
"""

from dataclasses import field
from types import MappingProxyType
from typing import TypeAlias

from rpds import HashTrieMap, HashTrieSet

from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import (
    LABEL_CHARS,
    LABEL_CHARS_ON_CLASH,
    AttemptId,
    Digest,
    EventId,
    GapId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    SourceKind,
    WorkflowHash,
    node_of_attempt,
    tag_of,
)
from interlock.record import events as ev
from interlock.record import payloads as data
from interlock.record.base import Preferences
from interlock.record.context import Context, merge_context
from interlock.record.outcome import AdvanceOutcome
from interlock.record.world import EventReceived, PinnedCheck, ProofMode
from interlock.views.outside import (
    NOTHING_OUTSIDE,
    Outside,
    SigningKeys,
    has_unknown_key,
)

BASELINE = Preferences(autonomy="guided", risk_policy="conservative")
"""The preferences if nobody set any (CTX-7)."""

EMPTY_CONTEXT: Context = MappingProxyType({})
Levels = tuple[int, ...]
"""Numbers of steps, in the order of `ASSURANCES`: what a branch rests on (PROOF-7)."""
NO_STEPS: Levels = (0, 0, 0, 0)
SignedSteps: TypeAlias = "HashTrieMap[tuple[int, SigningKeys], int]"
"""Numbers of steps that took signed events, by their level in `Levels` and the keys that it depends on."""
NONE_SIGNED: SignedSteps = HashTrieMap()
NONE_TAKEN: "HashTrieSet[EventId]" = HashTrieSet()


class BrokenHistoryError(InterlockError):
    """The events are readable but contradict each other: Interlock never writes such a log."""


@frozen
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


@frozen
class Node:
    """A node and everything recorded on it. `children` omits checkpoints, which are never tips (CHK-1).

    `trace` says why the run came here; `captures` holds what its decisions read. `gaps` are the gaps recorded here,
    `observed` the observed capabilities of the client. `left` says how work on its step was left before it was done,
    or how this checkpoint left it (END-7). `context_at` is the nearest node at or above that set context. `taken` are
    the events that steps took on the way here, and `levels` how well the steps on that way are known, if each key that
    the log names counts; `signed` are those of them whose level depends on a key. `actor` made the node, by its own
    account; `at` is when.
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
    at: str | None = field(default=None, compare=False)
    taken: "HashTrieSet[EventId]" = NONE_TAKEN
    levels: Levels = NO_STEPS
    signed: SignedSteps = NONE_SIGNED

    def levels_by(self, keys: SigningKeys) -> Levels:
        """Return `levels` as they are known here: a step that rests on a signature of no other key is a claim."""
        levels = [*self.levels]
        for (level, needed), count in self.signed.items():
            if not needed <= keys:
                levels[level], levels[0] = levels[level] - count, levels[0] + count
        return tuple(levels)


@frozen
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


@frozen
class Run:
    """A run: its workflow, its root and its preferred tip. `critical` counts its open critical gaps.

    `artifacts` counts the artifacts of all its nodes, so a search for them knows when it has found all. `with_gaps`
    names the nodes that have gaps, in the order of their first gaps.

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
    artifacts: int = 0
    with_gaps: tuple[NodeId, ...] = ()
    ended: RunEnd | None = None
    binding: data.Binding | None = None
    checks: tuple[PinnedCheck, ...] = ()
    proofs: ProofMode = "enforce"
    notifies: bool = False


@frozen
class Advance:
    """The recorded outcome of an attempt."""

    node: NodeId
    attempt: AttemptId
    outcome: AdvanceOutcome
    request_digest: Digest
    index: int
    took: tuple[EventId, ...] = ()

    @property
    def child(self) -> NodeId:
        """The node that the attempt made, whether it advanced or was refused (ID-2)."""
        return node_of_attempt(self.attempt)


@frozen
class Claim:
    """A claimed execution, and where the log records it."""

    index: int
    data: data.ExecutionClaimed


def is_recorded(keys: "HashTrieMap[str, int]", event: ev.Event, imported: int) -> bool:
    """Say whether an event is among those of a log, whose indexes are given by `recorded_key` (EVT-5, WORLD-2).

    Anybody can write a bundle: of its events from outside, which are the first `imported` ones of the log, those that
    nobody signed keep no later event out.
    """
    at = keys.get(ev.recorded_key(event))
    is_unsigned = isinstance(event, ev.EventReceivedEvent) and event.data.signed is None
    return at is not None and not (is_unsigned and at < imported)


@frozen
class Session:
    """The state of a session: all that later calls need from its log. `imported` counts the events of its bundle.

    `redacted_from` is the session that it is a redacted copy of.
    """

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
    outside: Outside = NOTHING_OUTSIDE
    imported: int = 0
    redacted_from: SessionId | None = None
    first_run: RunId | None = None
    newest: Advance | None = None
    contracts: tuple[data.ContractBound, ...] = ()
    claims: tuple[Claim, ...] = ()

    def holds(self, event: ev.Event) -> bool:
        """Say whether the log has this event already."""
        return is_recorded(self.dedupe_keys, event, self.imported)

    @property
    def is_imported(self) -> bool:
        """Whether it was made from a bundle."""
        return self.imported > 0

    @property
    def trusted_from(self) -> int:
        """The index of the first event that this data directory recorded itself (WORLD-11).

        Zero while the log ends within the bundle: what was decided there was decided by the exporter.
        """
        return self.imported if self.next_index >= self.imported else 0

    def describe_level(self, index: int, event: EventReceived, keys: SigningKeys | None) -> str:
        """Return the level of the event at an index as texts show it: of an imported one, only its bundle says so.

        A signature with a key that is none of `keys` is a claim; with None, the keys are not known.
        """
        level = "claimed" if has_unknown_key(event, keys) else event.assurance
        return f"{level}, imported" if index < self.imported else level

    def advance(self, node: NodeId, attempt: AttemptId) -> Advance | None:
        """Return the recorded outcome of an attempt on a node, if there is one."""
        return self.advances.get(f"{node}:{attempt}")

    def context(self, node: NodeId) -> Context:
        """Return a node's context: the fold of the deltas over its own ancestry, itself included (CTX-2).

        Merged values are cached for tips; for an older node the deltas are folded again.
        """
        kept = self.contexts.get(node)
        return kept if kept is not None else self._fold(self.nodes[node].context_at)

    def value(self, node: NodeId, key: str) -> Json:
        """Return a key of a node's context, None if it is not set. Only deltas since its last change are read."""
        kept = self.contexts.get(node)
        if kept is not None:
            return kept.get(key)
        at = self.nodes[node].context_at if node in self.nodes else None
        while at is not None:
            if key in self.deltas[at]:
                return self.deltas[at][key]
            parent = self.nodes[at].parent
            at = self.nodes[parent].context_at if parent is not None else None
        return None

    def _fold(self, at: NodeId | None) -> Context:
        deltas: list[Context] = []
        while at is not None:
            deltas.append(self.deltas[at])
            parent = self.nodes[at].parent
            at = self.nodes[parent].context_at if parent is not None else None
        merged: Context = EMPTY_CONTEXT
        for delta in reversed(deltas):
            merged = merge_context(merged, delta)
        return merged

    def has_tag(self, node: NodeId) -> bool:
        """Return whether the tag of a node refers to it: it is the first node of the session with this tag (TOK-8)."""
        return self.tags.get(tag_of(node)) == node

    def observed(self, run: RunId, key: data.ObservationKey) -> str | None:
        """Return the last observed value of the workspace of a run; None if there is none (OBS-1, OBS-6)."""
        return self.observations.get(f"{run}:{key}", self.observations.get(f":{key}"))

    @property
    def baseline(self) -> Preferences | None:
        """The initial preferences of a run that joins: those of the first run (CTX-7). None if there is no run."""
        root = self.runs[self.first_run].root if self.first_run is not None else None
        return self.nodes[root].preferences if root is not None else None

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
