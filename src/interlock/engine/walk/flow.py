"""Runs on from the current position through decisions, loops and barriers to the next task, or to the end.

A decider makes the decisions: one evaluates them, another repeats the recorded ones (WALK-9). The walk is the same, so
the same decisions give the same moves. If a decision cannot be made, the reason is a value: the call is refused and
nothing changes. A run that never stops takes the cautious way instead and discloses what is missing (MODE-2).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, NamedTuple, Protocol, TypeAlias, cast

from interlock.decide.evaluate import NOT_SET, LoopDecision, Undecided, value_at
from interlock.decide.evaluation_pass import PassAborted
from interlock.engine.template import with_loop_variables
from interlock.engine.walk.items import is_same_list, name_list
from interlock.engine.walk.trace import GOES_ON, LEAVES, DecisionPoint, DecisionRecord
from interlock.kernel.budgets.workflow import (
    WALK_NODES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import NodeId
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.records import Loop, PlanNode
from interlock.plan.walk import ExecutionState
from interlock.record.context import Context
from interlock.record.payloads import TraceEntry
from interlock.record.snapshot import (
    Complete,
    ListFrame,
    LoopFrame,
    PendingNone,
    PendingSome,
    PendingStep,
    Running,
    loop_path_of,
)


@frozen
class LoopLimit:
    """An artifact asks for another pass of a loop whose passes are used up (WALK-7)."""

    loop_id: str
    iteration: int
    max_iterations: int


@frozen
class EndlessWalk:
    """The walk resolved `WALK_NODES_MAX` nodes without reaching a task: the workflow is wrong."""


@frozen
class Suspended:
    """The walk cannot continue: the reason, the node of the plan, and the context there."""

    reason: Undecided | PassAborted | LoopLimit | EndlessWalk
    node: PlanNode
    seen: Context = field(default_factory=dict[str, Json], compare=False, repr=False)


class Move(NamedTuple):
    """One move of a walk. `prefix` names the loop passes around the node, as in the keys of a snapshot.

    A node is reached when it becomes the current node of the walk; a skipped node is not reached. `edge` is the edge
    that a decision chose.
    """

    kind: Literal["reached", "completed", "skipped"]
    node_id: str
    prefix: str
    edge: str | None = None


@frozen
class WalkResult:
    """The new position of the run, the moves that led to it, and the decisions that chose them.

    `decided` holds every decision with the values that it read. `trace` is empty if nothing was decided. `disclosed`
    holds the reasons that would have suspended the walk of a run that stops.
    """

    state: Running | Complete
    trace: tuple[TraceEntry, ...]
    moves: tuple[Move, ...]
    decided: tuple[DecisionRecord, ...] = ()
    disclosed: tuple[Suspended, ...] = ()


class ContextAt(NamedTuple):
    """The context of the log node that a walk leads to."""

    context: Context
    node: NodeId


Walked: TypeAlias = WalkResult | Suspended
Truth: TypeAlias = bool | Undecided | PassAborted


class Decider(Protocol):
    """Makes the decisions of a walk. The methods that have a default keep nothing and report nothing."""

    is_continue_asked: bool = False
    """Whether an artifact of this call asked for another pass of the last loop that read one."""

    @abstractmethod
    def holds(self, point: DecisionPoint, condition_id: str, seen: Context) -> Truth:
        """Decide a condition."""
        ...

    @abstractmethod
    def has_pass(self, point: DecisionPoint, loop: Loop, outer: Context) -> Truth:
        """Decide whether a counting loop has the pass of the innermost frame. `outer` is the context around it."""
        ...

    def has_first_pass(self, point: DecisionPoint) -> None:
        """Note that a loop begins its first pass without a decision: it decides after each pass."""

    def missing_needs(self, node: PlanNode, seen: Context) -> Iterable[str]:
        """Return the keys that a step needs and that are not set."""
        del node, seen
        return ()

    def took(self, way: str) -> None:
        """Note what the last decision chose: an edge, or what a loop does."""

    def noted(self, kind: Literal["entered_loop", "exited_loop"], loop_id: str, iteration: int, words: str) -> None:
        """Note that a loop began a pass, or ended."""

    def lacked(self, node: PlanNode, key: str) -> None:
        """Note that an agent receives a step without a key that it needs."""

    def records(self) -> tuple[DecisionRecord, ...]:
        """Return the decisions made so far."""
        return ()

    def explained(self, node: PlanNode | None, seen: Context) -> tuple[TraceEntry, ...]:
        """Return the reasons, with the step that they led to."""
        del node, seen
        return ()


def run_to_next_task(
    workflow: CompiledWorkflow,
    marks: ExecutionState,
    at: ContextAt,
    decider: Decider,
    *,
    never_stops: bool = False,
) -> Walked:
    """Run to the next step that an agent or a person must perform, or to the end. Changes `marks`.

    A run that never stops is never suspended: an undecided choice takes its default branch, a loop that cannot be
    decided or is used up ends, and an agent receives a step without what it needs.
    """
    return Walk(graphs=workflow.graphs, marks=marks, at=at, decider=decider, never_stops=never_stops).run()


@mutable
class Walk:
    """A walk in progress. `moves` are those made so far."""

    graphs: Graphs
    marks: ExecutionState
    at: ContextAt
    decider: Decider
    never_stops: bool
    moves: list[Move] = field(default_factory=list[Move])
    disclosed: list[Suspended] = field(default_factory=list[Suspended])

    def run(self) -> Walked:
        """Walk on to the next task, to the end, or to a decision that cannot be made."""
        while True:
            reached = self._resolve_many()
            if reached is not None:
                return reached
            suspended = self._suspend(EndlessWalk(), self.graphs.members[self.marks.scope][0])
            if suspended is not None:
                return suspended
            # Outside of all loops the plan has no cycle, so whatever is left ends.
            while self.marks.stack:
                self._leave(self.marks.stack[-1].iteration, "too many parts of the plan were skipped")

    def _resolve_many(self) -> Walked | None:
        """Resolve nodes up to the next task, as many as one call may."""
        for _ in range(WALK_NODES_MAX):
            found = self.marks.next_open()
            assert found is not None, "a terminal ends every graph"
            if found.is_dead:
                self.marks.skip(found.node.node_id)
                self._moved("skipped", found.node.node_id)
                continue
            reached = self._resolve(found.node)
            if reached is not None:
                return reached
        return None

    def _suspend(self, reason: Undecided | PassAborted | LoopLimit | EndlessWalk, node: PlanNode) -> Suspended | None:
        """Suspend the walk; in a run that never stops disclose the reason, and the caller takes the cautious way."""
        named = name_list(self.graphs, self.marks.stack, reason) if isinstance(reason, Undecided) else reason
        suspended = Suspended(reason=named, node=node, seen=self._seen())
        if not self.never_stops:
            return suspended
        self.disclosed.append(suspended)
        return None

    def _resolve(self, node: PlanNode) -> Walked | None:
        """Resolve a node that is ready; return the result if the walk ends here."""
        match node.kind:
            case "task":
                return self._enter_task(node)
            case "decision":
                return self._decide(node)
            case "loop":
                return self._enter(node)
            case "terminal" if self.marks.scope is None:
                self._passed_through(node)
                return self._result(self._complete())
            case "terminal":
                self._passed_through(node)
                return self._next_pass()
            case "fan_out" | "fan_in":
                self.marks.complete(node.node_id)
                self._passed_through(node)
                return None

    def _moved(self, kind: Literal["reached", "completed", "skipped"], node_id: str, edge: str | None = None) -> None:
        self.moves.append(Move(kind, node_id, self.marks.prefix, edge))

    def _passed_through(self, node: PlanNode, edge: str | None = None) -> None:
        """Add the moves of a node that the walk completes as soon as it reaches it."""
        self._moved("reached", node.node_id)
        self._moved("completed", node.node_id, edge)

    def _enter_task(self, node: PlanNode) -> Walked | None:
        """End the walk at a task, unless a loop that is checked before every step ends here."""
        for depth, frame in enumerate(self.marks.stack):
            loop = self.graphs.loops[frame.loop_id]
            if loop.checked != "before_step" or loop.condition_id is None:
                continue
            goes_on = self._holds(loop, self.marks.stack[: depth + 1])
            suspended = self._suspend(goes_on, node) if isinstance(goes_on, Undecided | PassAborted) else None
            if suspended is not None:
                return suspended
            if goes_on is not True:
                for inner in reversed(self.marks.stack[depth:]):
                    self._leave(inner.iteration, _why(goes_on))
                return None
        assert node.task is not None, "a task has a prompt"
        if node.task.needs:
            for key in self.decider.missing_needs(node, self._seen()):
                suspended = self._suspend(Undecided(path=key, found=NOT_SET, expected="a value"), node)
                if suspended is not None:
                    return suspended
                self.decider.lacked(node, key)
        self._moved("reached", node.node_id)
        return self._result(self._running(node.node_id), node)

    def _seen(self, frames: list[LoopFrame] | None = None) -> Context:
        return with_loop_variables(self.graphs, self.at.context, self.marks.stack if frames is None else frames)

    def _decide(self, node: PlanNode) -> Suspended | None:
        point, edges = self._point(node.node_id, self.marks.stack), self.graphs.out_edges[node.node_id]
        seen = self._seen()
        taken = next((edge for edge in edges if edge.condition_id is None), None)
        for edge in edges:
            if edge.condition_id is None:
                continue
            verdict = self.decider.holds(point, edge.condition_id, seen)
            if isinstance(verdict, Undecided | PassAborted):
                suspended = self._suspend(verdict, node)
                if suspended is not None:
                    return suspended
                break
            if verdict:
                taken = edge
                break
        assert taken is not None, "a decision has a default branch"
        if len(edges) > 1:
            self.decider.took(taken.edge_id)
        self.marks.take(taken)
        self.marks.complete(node.node_id)
        self._passed_through(node, taken.edge_id)
        return None

    @staticmethod
    def _point(node_id: str, frames: Iterable[LoopFrame]) -> DecisionPoint:
        return DecisionPoint(node_id=node_id, frames=tuple(frames))

    def _enter(self, node: PlanNode) -> Suspended | None:
        loop = self.graphs.loops[node.node_id]
        begins = self._wants_pass(loop, 0)
        suspended = self._suspend(begins, node) if isinstance(begins, Undecided | PassAborted) else None
        if suspended is not None:
            return suspended
        self._moved("reached", node.node_id)
        if begins is True:
            self.marks.enter(self._frame(loop, 0, self.marks.stack, None))
            self.decider.noted("entered_loop", loop.loop_id, 0, f"Pass 1 of `{loop.loop_id}` begins.")
        else:
            self.marks.complete(loop.loop_id)
            self._moved("completed", loop.loop_id)
            self.decider.noted("exited_loop", loop.loop_id, 0, f"`{loop.loop_id}` has no passes.")
        return None

    def _next_pass(self) -> Suspended | None:
        frame = self.marks.stack[-1]
        loop, following = self.graphs.loops[frame.loop_id], frame.iteration + 1
        node = self.graphs.nodes[frame.loop_id]
        goes_on = self._wants_pass(loop, following)
        suspended = self._suspend(goes_on, node) if isinstance(goes_on, Undecided | PassAborted) else None
        if suspended is not None:
            return suspended
        if goes_on is not True:
            self._leave(frame.iteration, _why(goes_on))
        elif following < loop.max_iterations:
            self.marks.begin_next_pass(self._frame(loop, following, self.marks.stack[:-1], frame))
            words = f"Pass {following + 1} of `{loop.loop_id}` begins."
            self.decider.noted("entered_loop", loop.loop_id, following, words)
        else:
            return self._used_up(loop, following, node)
        return None

    def _frame(self, loop: Loop, iteration: int, outer: list[LoopFrame], before: LoopFrame | None) -> LoopFrame:
        """Return the frame of a pass that begins. A list is read before each pass; within one its item stays.

        While the list does not change, the frames refer to the same node, so to find it costs the same in each pass.
        """
        if loop.items is None:
            return LoopFrame(loop_id=loop.loop_id, iteration=iteration)
        items = cast("list[Json]", value_at(self._seen(outer), loop.items))
        is_same = isinstance(before, ListFrame) and is_same_list(before.items, items)
        items_at = before.items_at if is_same and before is not None else self.at.node
        return ListFrame(loop_id=loop.loop_id, iteration=iteration, items_at=items_at, items=items)

    def _used_up(self, loop: Loop, iteration: int, node: PlanNode) -> Suspended | None:
        """End a loop at its limit, or suspend the walk if the loop must not end there (WALK-3, WALK-7)."""
        if loop.on_limit == "block" and self.decider.is_continue_asked:
            reason = LoopLimit(loop_id=loop.loop_id, iteration=iteration, max_iterations=loop.max_iterations)
            suspended = self._suspend(reason, node)
            if suspended is not None:
                return suspended
        self.decider.took(LEAVES)
        self._leave(iteration, f"all {loop.max_iterations} passes are used up")
        return None

    def _leave(self, iteration: int, why: str) -> None:
        """End the innermost loop. `iteration` is its last pass, or the bound if that ended it (WALK-3)."""
        loop_id = self.marks.stack[-1].loop_id
        self.decider.noted("exited_loop", loop_id, iteration, f"`{loop_id}` ends: {why}.")
        self.marks.leave()
        self._moved("completed", loop_id)

    def _wants_pass(self, loop: Loop, iteration: int) -> Truth:
        """Decide whether a loop needs another pass; its bound is checked elsewhere."""
        outer = self.marks.stack if iteration == 0 else self.marks.stack[:-1]
        frames = [*outer, LoopFrame(loop_id=loop.loop_id, iteration=iteration)]
        point = self._point(loop.loop_id, frames)
        match loop.kind:
            case "for" | "for_each":
                return self.decider.has_pass(point, loop, self._seen(outer))
            case "while" | "until":
                if iteration == 0 and loop.checked == "after_pass":
                    self.decider.has_first_pass(point)
                    return True
                return self._holds(loop, frames)

    def _holds(self, loop: Loop, frames: list[LoopFrame]) -> Truth:
        """Decide by a loop's condition whether it continues."""
        assert loop.condition_id is not None, "`while` and `until` have a condition"
        verdict = self.decider.holds(self._point(loop.loop_id, frames), loop.condition_id, self._seen(frames))
        if isinstance(verdict, Undecided | PassAborted):
            self.decider.took(LEAVES)
            return verdict
        goes_on = verdict if loop.kind == "while" else not verdict
        self.decider.took(GOES_ON if goes_on else LEAVES)
        return goes_on

    def _result(self, state: Running | Complete, node: PlanNode | None = None) -> WalkResult:
        return WalkResult(
            state=state,
            trace=self.decider.explained(node, self._seen()),
            moves=tuple(self.moves),
            decided=self.decider.records(),
            disclosed=tuple(self.disclosed),
        )

    def _running(self, step_id: str) -> Running:
        completed, skipped, taken = self.marks.sets()
        stack = tuple(self.marks.stack)
        pending = PendingSome(kind="some", step=PendingStep(step_id=step_id, loop_path=loop_path_of(stack)))
        return Running(
            completed=completed,
            skipped=skipped,
            edges_taken=taken,
            loop_stack=stack,
            pending=pending,
        )

    def _complete(self) -> Complete:
        completed, skipped, taken = self.marks.sets()
        return Complete(
            completed=completed,
            skipped=skipped,
            edges_taken=taken,
            pending=PendingNone(kind="none"),
        )


def _why(verdict: Truth) -> str:
    return (
        "its condition cannot be decided" if isinstance(verdict, Undecided | PassAborted) else "its condition says so"
    )


def loop_decisions_of(artifacts: Iterable[Mapping[str, Json]]) -> tuple[tuple[str | None, LoopDecision], ...]:
    """Return the decision of each loop-control artifact, with the loop that it names; None if it names no loop."""
    found: list[tuple[str | None, LoopDecision]] = []
    for artifact in artifacts:
        decision, loop = artifact.get("decision"), artifact.get("loopId")
        if artifact.get("kind") == "wr.loop_control" and decision in ("continue", "stop"):
            found.append((loop if isinstance(loop, str) else None, decision))
    return tuple(found)
