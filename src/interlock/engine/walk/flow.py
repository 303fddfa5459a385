"""How a run goes on from where it stands: through decisions, loops and barriers to the next step, or to the end.

Every decision is made once, here, with the context and the artifacts of the call that leads to it. What keeps a
decision from being made is a value: the call is refused and nothing moves, or, in a run that never stops, the cautious
way is taken and what was missing is told (MODE-2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from interlock.decide.condition import reads_loop_control
from interlock.decide.evaluate import ABSENT, ConditionInputs, LoopDecision, Undecided, Verdict, describe_kind, value_at
from interlock.decide.evaluation_pass import PassAborted, run_pass
from interlock.decide.lowering import trigger_id
from interlock.engine.template import with_loop_variables
from interlock.engine.walk.trace import GOES_ON, LEAVES, DecisionPoint, DecisionRecord, DecisionTrace
from interlock.kernel.budgets import WALK_NODES_MAX
from interlock.kernel.canonical import Json
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.records import Loop, PlanNode
from interlock.plan.walk import ExecutionState
from interlock.record.context import Context
from interlock.record.payloads import TraceEntry
from interlock.record.snapshot import Complete, LoopFrame, PendingNone, PendingSome, PendingStep, Running


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimit:
    """A loop was told to go on although its passes are used up (WALK-7)."""

    loop_id: str
    iteration: int
    max_iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndlessWalk:
    """So much was resolved without asking anybody that something is wrong with the workflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """Why the run cannot go on as it is written, at which node of the plan, and what is seen there."""

    reason: Undecided | PassAborted | LoopLimit | EndlessWalk
    node: PlanNode
    seen: Context = field(default_factory=dict[str, Json], compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkResult:
    """Where the run stands now, and why it went there.

    `decided` is every decision with what it read; where there was none, the trace is empty. `disclosed` is what kept a
    decision from being made where the run went on all the same.
    """

    state: Running | Complete
    trace: tuple[TraceEntry, ...]
    decided: tuple[DecisionRecord, ...] = ()
    disclosed: tuple[Suspended, ...] = ()


Walked: TypeAlias = WalkResult | Suspended
_Truth: TypeAlias = Verdict | PassAborted


def run_to_next_task(
    workflow: CompiledWorkflow,
    marks: ExecutionState,
    context: Context,
    loop_decisions: Iterable[tuple[str | None, LoopDecision]] = (),
    *,
    never_stops: bool = False,
) -> Walked:
    """Go on to the next step that somebody must perform, or to the end. Changes `marks`.

    A run that never stops is never stuck: an undecided choice goes the way that is taken otherwise, a loop that cannot
    be decided or is used up ends, and a step is handed out without what it needs.
    """
    walk = _Walk(
        graphs=workflow.graphs,
        marks=marks,
        context=context,
        decisions=list(loop_decisions),
        never_stops=never_stops,
    )
    return walk.run()


@dataclass(slots=True, kw_only=True)
class _Walk:
    graphs: Graphs
    marks: ExecutionState
    context: Context
    decisions: list[tuple[str | None, LoopDecision]]
    never_stops: bool
    journal: DecisionTrace = field(default_factory=DecisionTrace)
    disclosed: list[Suspended] = field(default_factory=list[Suspended])
    _asked_on: bool = False

    def run(self) -> Walked:
        while True:
            reached = self._resolve_many()
            if reached is not None:
                return reached
            stuck = self._lacks(EndlessWalk(), self.graphs.members[self.marks.scope][0])
            if stuck is not None:
                return stuck
            # Outside of all loops the plan has no cycle, so whatever is left ends.
            while self.marks.stack:
                self._leave(self.marks.stack[-1].iteration, "too many parts of the plan were skipped")

    def _resolve_many(self) -> Walked | None:
        """Resolve what can be resolved without asking anybody, as much as one call may."""
        for _ in range(WALK_NODES_MAX):
            found = self.marks.next_open()
            assert found is not None, "a terminal ends every graph"
            if found.is_dead:
                self.marks.skip(found.node.node_id)
                continue
            reached = self._resolve(found.node)
            if reached is not None:
                return reached
        return None

    def _lacks(self, reason: Undecided | PassAborted | LoopLimit | EndlessWalk, node: PlanNode) -> Suspended | None:
        """Stop at what is missing; in a run that never stops disclose it, and the caller goes the cautious way."""
        told = self._in_context(reason) if isinstance(reason, Undecided) else reason
        stuck = Suspended(reason=told, node=node, seen=self._seen())
        if not self.never_stops:
            return stuck
        self.disclosed.append(stuck)
        return None

    def _resolve(self, node: PlanNode) -> Walked | None:
        """Resolve a node that is ready; return where the run stands if it goes no further."""
        match node.kind:
            case "task":
                return self._reached(node)
            case "decision":
                return self._decide(node)
            case "loop":
                return self._enter(node)
            case "terminal" if self.marks.scope is None:
                return self._moved(self._complete())
            case "terminal":
                return self._next_pass()
            case "fan_out" | "fan_in":
                self.marks.complete(node.node_id)
                return None

    def _reached(self, node: PlanNode) -> Walked | None:
        """Hand out a step, unless a loop around it that is read before every step ends here."""
        for depth, frame in enumerate(self.marks.stack):
            loop = self.graphs.loops[frame.loop_id]
            if loop.checked != "before_step" or loop.condition_id is None:
                continue
            goes_on = self._holds(loop, self.marks.stack[: depth + 1])
            stuck = self._lacks(goes_on, node) if isinstance(goes_on, Undecided | PassAborted) else None
            if stuck is not None:
                return stuck
            if goes_on is not True:
                for inner in reversed(self.marks.stack[depth:]):
                    self._leave(inner.iteration, _why(goes_on))
                return None
        assert node.task is not None, "a task is handed out"
        seen = self._seen()
        for key in node.task.needs:
            if value_at(seen, key) is ABSENT:
                stuck = self._lacks(Undecided(path=key, found="not set", expected="a value"), node)
                if stuck is not None:
                    return stuck
                self.journal.lacked(node, key)
        return self._moved(self._running(node.node_id), node)

    def _seen(self, frames: list[LoopFrame] | None = None) -> Context:
        return with_loop_variables(self.graphs, self.context, self.marks.stack if frames is None else frames)

    def _in_context(self, found: Undecided) -> Undecided:
        """Return what could not be decided as what can be sent: a loop's item comes from its list."""
        key, _, member = (found.path or "").partition(".")
        for frame in reversed(self.marks.stack):
            loop = self.graphs.loops[frame.loop_id]
            if loop.items is not None and loop.item_var == key:
                where = f"a list whose item {frame.iteration + 1} is {'without ' if found.found == 'not set' else ''}"
                told = f"{where}{member!r}" if found.found == "not set" else f"{where}{found.found}"
                wanted = f"a list whose items all have {member!r}, {found.expected}" if member else found.expected
                return Undecided(path=loop.items, found=told, expected=wanted)
        return found

    def _decide(self, node: PlanNode) -> Suspended | None:
        given = ConditionInputs(context=self._seen(), loop_decisions=tuple(self.decisions))
        spot, edges = (
            DecisionPoint(node_id=node.node_id, frames=tuple(self.marks.stack)),
            self.graphs.out_edges[node.node_id],
        )
        taken = next((edge for edge in edges if edge.condition_id is None), None)
        for edge in edges:
            if edge.condition_id is None:
                continue
            verdict = self._evaluated(spot, edge.condition_id, given)
            if isinstance(verdict, Undecided | PassAborted):
                stuck = self._lacks(verdict, node)
                if stuck is not None:
                    return stuck
                break
            if verdict:
                taken = edge
                break
        assert taken is not None, "a decision has a way that is taken otherwise"
        if len(edges) > 1:
            self.journal.took(taken.edge_id)
        self.marks.take(taken)
        self.marks.complete(node.node_id)
        return None

    def _enter(self, node: PlanNode) -> Suspended | None:
        loop = self.graphs.loops[node.node_id]
        begins = self._wants_pass(loop, 0)
        stuck = self._lacks(begins, node) if isinstance(begins, Undecided | PassAborted) else None
        if stuck is not None:
            return stuck
        if begins is True:
            self.marks.enter(self._frame(loop, 0, self.marks.stack))
            self.journal.passed("entered_loop", loop.loop_id, 0, f"Pass 1 of `{loop.loop_id}` begins.")
        else:
            self.marks.complete(loop.loop_id)
            self.journal.passed("exited_loop", loop.loop_id, 0, f"`{loop.loop_id}` has no passes.")
        return None

    def _next_pass(self) -> Suspended | None:
        frame = self.marks.stack[-1]
        loop, following = self.graphs.loops[frame.loop_id], frame.iteration + 1
        node = self.graphs.nodes[frame.loop_id]
        goes_on = self._wants_pass(loop, following)
        stuck = self._lacks(goes_on, node) if isinstance(goes_on, Undecided | PassAborted) else None
        if stuck is not None:
            return stuck
        if goes_on is not True:
            self._leave(frame.iteration, _why(goes_on))
        elif following < loop.max_iterations:
            self.marks.begin_next_pass(self._frame(loop, following, self.marks.stack[:-1]))
            words = f"Pass {following + 1} of `{loop.loop_id}` begins."
            self.journal.passed("entered_loop", loop.loop_id, following, words)
        else:
            return self._used_up(loop, following, node)
        return None

    def _frame(self, loop: Loop, iteration: int, outer: list[LoopFrame]) -> LoopFrame:
        """Return the frame of a pass that begins. A list is read before each pass; within one its item stays."""
        if loop.items is None:
            return LoopFrame(loop_id=loop.loop_id, iteration=iteration)
        items = cast("list[Json]", value_at(self._seen(outer), loop.items))
        return LoopFrame(loop_id=loop.loop_id, iteration=iteration, item=items[iteration])

    def _used_up(self, loop: Loop, iteration: int, node: PlanNode) -> Suspended | None:
        """End a loop that wants more passes than it has; a loop that must not end so stops the run (WALK-3, WALK-7)."""
        if loop.on_limit == "block" and self._asked_on:
            reason = LoopLimit(loop_id=loop.loop_id, iteration=iteration, max_iterations=loop.max_iterations)
            stuck = self._lacks(reason, node)
            if stuck is not None:
                return stuck
        self.journal.took(LEAVES)
        self._leave(iteration, f"all {loop.max_iterations} passes are used up")
        return None

    def _leave(self, iteration: int, why: str) -> None:
        """End the innermost loop. `iteration` is its last pass, or the bound where that ended it (WALK-3)."""
        loop_id = self.marks.stack[-1].loop_id
        self.journal.passed("exited_loop", loop_id, iteration, f"`{loop_id}` ends: {why}.")
        self.marks.leave()

    def _wants_pass(self, loop: Loop, iteration: int) -> _Truth:
        """Say whether a loop wants one more pass, its bound aside."""
        outer = self.marks.stack if iteration == 0 else self.marks.stack[:-1]
        frames = [*outer, LoopFrame(loop_id=loop.loop_id, iteration=iteration)]
        spot = DecisionPoint(node_id=loop.loop_id, frames=tuple(frames))
        match loop.kind:
            case "for":
                count = loop.count if isinstance(loop.count, int) else value_at(self._seen(outer), str(loop.count))
                read = {} if isinstance(loop.count, int) else _read(str(loop.count), count)
                if isinstance(count, bool) or not isinstance(count, int | float) or count != int(count):
                    self.journal.counted(spot, read, passes=None)
                    return _unfit(str(loop.count), count, "a whole number")
                return self.journal.counted(spot, read, passes=count)
            case "for_each":
                assert loop.items is not None, "a loop over items names them"
                items = value_at(self._seen(outer), loop.items)
                if not isinstance(items, list):
                    self.journal.counted(spot, _read(loop.items, items), passes=None)
                    return _unfit(loop.items, items, "a list")
                length = len(cast("list[object]", items))
                return self.journal.counted(spot, {f"{loop.items}.length": length}, passes=length)
            case "while" | "until":
                if iteration == 0 and loop.checked == "after_pass":
                    self.journal.began(spot)
                    return True
                return self._holds(loop, frames)

    def _holds(self, loop: Loop, frames: list[LoopFrame]) -> _Truth:
        """Read a loop's condition once. A loop-control artifact decides once: what read it has used it up."""
        assert loop.condition_id is not None, "`while` and `until` turn on a condition"
        condition = self.graphs.conditions[loop.condition_id]
        given = ConditionInputs(context=self._seen(frames), loop_decisions=tuple(self.decisions))
        spot = DecisionPoint(node_id=loop.loop_id, frames=tuple(frames))
        verdict = self._evaluated(spot, loop.condition_id, given)
        if isinstance(verdict, Undecided | PassAborted):
            self.journal.took(LEAVES)
            return verdict
        if reads_loop_control(condition):
            self._asked_on = any(decision == "continue" for _, decision in self.decisions)
            self.decisions.clear()
        goes_on = verdict if loop.kind == "while" else not verdict
        self.journal.took(GOES_ON if goes_on else LEAVES)
        return goes_on

    def _evaluated(self, spot: DecisionPoint, condition_id: str, given: ConditionInputs) -> _Truth:
        """Decide a condition in one pass over its graph, and take it in."""
        outcome = run_pass(self.graphs.schedule(condition_id), given)
        verdict = outcome if isinstance(outcome, PassAborted) else outcome.triggers[trigger_id(condition_id)]
        told = verdict if not isinstance(verdict, PassAborted) else None
        self.journal.evaluated(spot, condition_id, self.graphs.conditions[condition_id], given, told)
        return verdict

    def _moved(self, state: Running | Complete, node: PlanNode | None = None) -> WalkResult:
        return WalkResult(
            state=state,
            trace=self.journal.kept_trace(node),
            decided=tuple(self.journal.decided),
            disclosed=tuple(self.disclosed),
        )

    def _running(self, step_id: str) -> Running:
        completed, skipped, taken = self.marks.sets()
        stack = tuple(self.marks.stack)
        pending = PendingSome(kind="some", step=PendingStep(step_id=step_id, loop_path=stack))
        return Running(
            kind="running",
            completed=completed,
            skipped=skipped,
            edges_taken=taken,
            loop_stack=stack,
            pending=pending,
        )

    def _complete(self) -> Complete:
        completed, skipped, taken = self.marks.sets()
        return Complete(
            kind="complete",
            completed=completed,
            skipped=skipped,
            edges_taken=taken,
            pending=PendingNone(kind="none"),
        )


def _read(path: str, found: object) -> dict[str, Json]:
    return {} if found is ABSENT else {path: cast("Json", found)}


def _why(verdict: _Truth) -> str:
    return (
        "its condition cannot be decided" if isinstance(verdict, Undecided | PassAborted) else "its condition says so"
    )


def _unfit(path: str, found: object, wanted: str) -> Undecided:
    return Undecided(path=path, found="not set" if found is ABSENT else describe_kind(found), expected=wanted)


def loop_decisions_of(artifacts: Iterable[Mapping[str, Json]]) -> tuple[tuple[str | None, LoopDecision], ...]:
    """Return what the loop-control artifacts of a call say, each with the loop it names, if it names one."""
    found: list[tuple[str | None, LoopDecision]] = []
    for artifact in artifacts:
        decision, loop = artifact.get("decision"), artifact.get("loopId")
        if artifact.get("kind") == "wr.loop_control" and decision in ("continue", "stop"):
            found.append((loop if isinstance(loop, str) else None, decision))
    return tuple(found)
