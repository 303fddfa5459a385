"""The lifecycle of one branch of a run: a pure function of the log, the pinned plan and the captures (LIFE-8).

Nothing of it is stored, so it cannot disagree with the log. The plan is walked again with the recorded decisions, and
after every report the position is compared with the stored snapshot by digest. Where decisions are missing, the view is
partial and says so; it never guesses.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from operator import itemgetter
from typing import Literal, cast

from interlock.engine.request import REPLY_CONTENT_TYPE
from interlock.engine.walk.flow import ContextAt, Move
from interlock.engine.walk.items import read_lists_again
from interlock.engine.walk.recorded import Repeated, repeat_walk
from interlock.kernel.budgets.operations import LIFECYCLE_REFS_MAX
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import Digest, NodeId
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.walk import ExecutionState
from interlock.record.context import Context, merge_context
from interlock.record.outcome import Blocked
from interlock.record.payloads import ArtifactPayload, RunEndKind
from interlock.record.snapshot import Complete, ExecutionSnapshot, Running, build_snapshot
from interlock.record.world import EXPIRED
from interlock.views.lifecycle.events import LifecycleEvent, LifecycleKind, Ref, RefKind
from interlock.views.node_position import advance_to, path_to, walk_up
from interlock.views.session import Advance, Node, Run, Session

_END_KINDS: Mapping[RunEndKind, LifecycleKind] = {
    "failed": "workflow.run.failed",
    "cancelled": "workflow.run.cancelled",
}
_EXPIRED = "expired"
"""The code of a step that is done because its time was over."""
PartialReason = Literal["decisions_left_out", "capture_missing", "snapshot_differs"]


@frozen
class PartialAt:
    """A place from which the view does not show everything: the log node to which the report led, and why."""

    node: NodeId
    event_index: int
    reason: PartialReason


@frozen
class Sources:
    """Where the view reads content: a capture by digest, None if it is missing or damaged; the snapshot of a node."""

    capture: Callable[[Digest], Mapping[str, Json] | None]
    snapshot: Callable[[Node], ExecutionSnapshot]


@frozen
class Lifecycle:
    """The events of one branch in the order of the log, the skipped node instances, and where the view is partial.

    `skipped_at` has the event and the log node by which each instance was skipped.
    """

    events: tuple[LifecycleEvent, ...]
    skipped_at: Mapping[str, tuple[int, NodeId]]
    partial: tuple[PartialAt, ...]

    @property
    def skipped(self) -> tuple[str, ...]:
        """The skipped node instances, in the order in which they were skipped."""
        return tuple(self.skipped_at)

    def to_json(self) -> dict[str, Json]:
        """Return it as commands and resources show it."""
        return {
            "events": [event.to_json() for event in self.events],
            "skipped": list(self.skipped),
            "partial": [{"node": one.node, "event": one.event_index, "reason": one.reason} for one in self.partial],
        }


def lifecycle_of(session: Session, tip: Node, workflow: CompiledWorkflow, sources: Sources) -> Lifecycle:
    """Return the lifecycle from the root of a run to a node of it.

    Raises:
        ContentDamagedError: A snapshot is needed that is missing or damaged.
    """
    projection = _Projection(
        session=session,
        run=session.runs[tip.run],
        workflow=workflow,
        sources=sources,
        marks=ExecutionState(workflow.graphs),
    )
    projection.add_branch(tip)
    return projection.finish()


@mutable
class _Projection:
    session: Session
    run: Run
    workflow: CompiledWorkflow
    sources: Sources
    marks: ExecutionState
    context: Context = field(default_factory=dict[str, Json])
    facts: list[tuple[int, dict[str, object]]] = field(default_factory=list[tuple[int, dict[str, object]]])
    skipped: dict[str, tuple[int, NodeId]] = field(default_factory=dict[str, tuple[int, NodeId]])
    partial: list[PartialAt] = field(default_factory=list[PartialAt])
    _pending: str | None = None

    def add_branch(self, tip: Node) -> None:
        """Add the events from the root to a node."""
        created = [_event(self.run.index)]
        self._add(self.run.index, "workflow.run.created", created, workflow_hash=self.run.workflow_hash)
        for step in path_to(self.session, tip):
            if step.at.parent is None:
                self._walk_to(step.at, step.at.index)
            for attempt, refused in enumerate(step.refused, start=1):
                self._read_context(refused)
                self._add_refused(advance_to(self.session, refused), attempt, refused)
            if step.passed_to is not None:
                advance = advance_to(self.session, step.passed_to)
                self._add_done(advance, len(step.refused) + 1, step.passed_to)
                self._walk_to(step.passed_to, advance.index)
        self._add_checkpoints(tip)
        ended = self.run.ended
        if ended is not None and self._pending is not None:
            refs = [_event(ended.index)]
            if ended.work.answer_ref is not None:
                refs.append(_ref("gate_answer", ended.work.answer_ref))
            self._add(ended.index, _END_KINDS[ended.kind], refs, code=ended.work.reason)

    def finish(self) -> Lifecycle:
        """Return what was added, in the order of the log."""
        ordered = sorted(self.facts, key=itemgetter(0))
        make = cast("Callable[..., LifecycleEvent]", LifecycleEvent)
        events = tuple(make(**fact, seq=seq) for seq, (_, fact) in enumerate(ordered))
        return Lifecycle(events=events, skipped_at=self.skipped, partial=tuple(self.partial))

    def _add(self, index: int, kind: LifecycleKind, refs: Sequence[Ref] = (), **fields: object) -> None:
        fact: dict[str, object] = {"v": 1, "kind": kind, "session": self.session.session, "run": self.run.run}
        fact |= fields
        if refs:
            fact["refs"] = tuple(refs[:LIFECYCLE_REFS_MAX])
        if len(refs) > LIFECYCLE_REFS_MAX:
            fact["refs_left_out"] = len(refs) - LIFECYCLE_REFS_MAX
        self.facts.append((index, fact))

    def _add_refused(self, advance: Advance, attempt: int, node: Node) -> None:
        """Add a refused report: a failed attempt. The run stays open (LIFE-3)."""
        assert isinstance(advance.outcome, Blocked), "a refused node comes from a refused attempt"
        self._add_retried(advance, attempt)
        code = advance.outcome.blockers.blockers[0].code
        refs = [_event(advance.index), _log_node(node), *_outputs(node)]
        self._add(advance.index, "workflow.node.failed", refs, **self._step(attempt), code=code)

    def _add_retried(self, advance: Advance, attempt: int) -> None:
        if attempt > 1:
            self._add(advance.index, "workflow.node.retried", [_event(advance.index)], **self._step(attempt))

    def _add_done(self, advance: Advance, attempt: int, child: Node) -> None:
        """Add an accepted report: the step is completed, and the edges out of it are traversed."""
        self._add_retried(advance, attempt)
        taken = [self.session.outside.events[one] for one in advance.took]
        refs = [_event(advance.index), *(_event(one.index) for one in taken), _log_node(child), *_outputs(child)]
        late: dict[str, object] = {"code": _EXPIRED} if any(one.data.event == EXPIRED for one in taken) else {}
        self._add(advance.index, "workflow.node.completed", refs, **self._step(attempt), **late)
        node_id, prefix = self._pending_id(), self.marks.prefix
        self.marks.complete(node_id)
        self._add_edges(advance.index, node_id, prefix, None)

    def _step(self, attempt: int) -> dict[str, object]:
        node_id = self._pending_id()
        return {"node": node_id, "instance": self.marks.prefix + node_id, "attempt": attempt}

    def _pending_id(self) -> str:
        assert self._pending is not None, "an attempt is on a pending step"
        return self._pending

    def _read_context(self, node: Node) -> None:
        delta = self.session.deltas.get(node.node)
        if delta:
            self.context = merge_context(self.context, delta)

    def _walk_to(self, node: Node, index: int) -> None:
        """Walk on by the recorded decisions to a node, add the moves, and compare the position with its snapshot."""
        self._read_context(node)
        capture, capture_missing = self._capture(node)
        self._read_lists_again(node)
        walked = repeat_walk(self.workflow, self.marks, ContextAt(self.context, node.node), capture)
        for move in walked.moves:
            self._add_move(index, move, node)
        reason = capture_missing or self._difference(walked, node)
        if reason is None:
            assert walked.result is not None, "a walk that agrees with the snapshot has an end"
            state = walked.result.state
        else:
            self.partial.append(PartialAt(node=node.node, event_index=index, reason=reason))
            state = self.sources.snapshot(node).state
            self.marks = ExecutionState(self.workflow.graphs, state)
            self._add_pending_of(index, state, walked.moves, node)
        self._pending = state.pending.step.step_id if isinstance(state, Running) else None
        if isinstance(state, Complete):
            refs = [_event(node.index), _log_node(node), _snapshot(node)]
            self._add(index, "workflow.run.completed", refs)

    def _read_lists_again(self, node: Node) -> None:
        """Read the lists of running passes again if the report that led to a node did so (WALK-10)."""
        again = read_lists_again(self.workflow.graphs, self.marks.stack, self.context, node.node)
        changed = [frame for frame in again if frame.items_at == node.node]
        if not changed:
            return
        state = self.sources.snapshot(node).state
        stored = state.loop_stack if isinstance(state, Running) else ()
        references = {(frame.loop_id, frame.iteration, frame.items_at) for frame in stored}
        if any((frame.loop_id, frame.iteration, frame.items_at) in references for frame in changed):
            self.marks.stack = [*again]

    def _difference(self, walked: Repeated, node: Node) -> PartialReason | None:
        """Return why a repeated walk does not lead to the snapshot of a node; None if it does."""
        if walked.result is None:
            return "decisions_left_out" if walked.is_left_out else "snapshot_differs"
        snapshot = build_snapshot(self.run.workflow_hash, walked.result.state)
        return None if digest_of_bytes(snapshot.to_bytes()) == node.snapshot else "snapshot_differs"

    def _capture(self, node: Node) -> tuple[Mapping[str, Json] | None, PartialReason | None]:
        if not node.captures:
            return None, None
        found = self.sources.capture(node.captures[0])
        return found, None if found is not None else "capture_missing"

    def _add_pending_of(self, index: int, state: Running | Complete, moves: Iterable[Move], node: Node) -> None:
        """Add that the step of a snapshot is pending, unless the moves before the gap contain it."""
        if isinstance(state, Running):
            move = Move("reached", state.pending.step.step_id, self.marks.prefix)
            if move not in moves:
                self._add_move(index, move, node)

    def _add_move(self, index: int, move: Move, node: Node) -> None:
        instance = move.prefix + move.node_id
        fields: dict[str, object] = {"node": move.node_id, "instance": instance}
        match move.kind:
            case "skipped":
                self.skipped.setdefault(instance, (index, node.node))
            case "reached":
                is_task = self.workflow.graphs.nodes[move.node_id].kind == "task"
                refs = [_event(node.index), _log_node(node), _snapshot(node)] if is_task else [_event(index)]
                self._add(index, "workflow.node.scheduled", refs, **fields)
                if is_task:
                    self._add(index, "workflow.node.started", [_log_node(node)], **fields, attempt=1)
            case "completed":
                is_choice = move.edge is not None and node.captures
                refs = [_ref("capture", node.captures[0])] if is_choice else []
                self._add(index, "workflow.node.completed", [_event(index), *refs], **fields)
                self._add_edges(index, move.node_id, move.prefix, move.edge)

    def _add_edges(self, index: int, node_id: str, prefix: str, chosen: str | None) -> None:
        """Add the edges that a completed node takes: all of them, or the chosen edge of a decision."""
        for edge in self.workflow.graphs.out_edges.get(node_id, ()):
            if chosen is None or edge.edge_id == chosen:
                fields = {"node": node_id, "instance": prefix + node_id, "edge": edge.edge_id}
                self._add(index, "workflow.edge.traversed", [_event(index)], **fields)

    def _add_checkpoints(self, tip: Node) -> None:
        on_branch = {node.node for node in walk_up(self.session, tip)}
        for node in self.session.nodes.values():
            if node.kind == "checkpoint" and node.parent in on_branch:
                refs = [_event(node.index), _log_node(node), _snapshot(node)]
                self._add(node.index, "workflow.checkpoint.saved", refs)


def _ref(kind: RefKind, ref: str) -> Ref:
    return Ref(kind=kind, ref=ref)


def _event(index: int) -> Ref:
    return _ref("event", str(index))


def _log_node(node: Node) -> Ref:
    return _ref("log_node", node.node)


def _snapshot(node: Node) -> Ref:
    return _ref("snapshot", node.snapshot)


def _outputs(node: Node) -> list[Ref]:
    """Refer to the content of a report: its outputs by id, its artifacts by digest."""
    refs: list[Ref] = []
    for output in node.outputs:
        if output.is_of_checkpoint:
            continue
        refs.append(_ref("output", output.output_id))
        if isinstance(output.payload, ArtifactPayload):
            is_answer = output.payload.content_type == REPLY_CONTENT_TYPE
            refs.append(_ref("gate_answer" if is_answer else "artifact", output.payload.sha256))
    return refs
