"""How a run goes on from where it stands: through decisions, loops and barriers to the next step, or to the end.

Every decision is made once, here, with the context and the artifacts of the call that leads to it. What keeps a
decision from being made is a value: the call is refused and nothing moves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from interlock.decide.condition import Condition, in_words, reads_loop_control
from interlock.decide.evaluate import NOTHING, Given, LoopDecision, Undecided, Verdict, evaluate, kind_of, value_at
from interlock.kernel.budgets import TRACE_ENTRIES_MAX, TRACE_SUMMARY_BYTES_MAX, WALK_NODES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.records import Loop, PlanNode
from interlock.plan.walk import Marks
from interlock.record.context import Context
from interlock.record.payloads import ConditionRef, IterationRef, LoopRef, StepRef, TraceEntry
from interlock.record.snapshot import Complete, LoopFrame, PendingNone, PendingSome, PendingStep, Running


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimit:
    """A loop was told to go on although its passes are used up (D23)."""

    loop_id: str
    iteration: int
    max_iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndlessWalk:
    """So much was resolved without asking anybody that something is wrong with the workflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Why the run cannot go on, and at which node of the plan."""

    reason: Undecided | LoopLimit | EndlessWalk
    node: PlanNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Where the run stands now, and why it went there. A trace with nothing to decide is empty."""

    state: Running | Complete
    trace: tuple[TraceEntry, ...]


Walked: TypeAlias = Moved | Stuck


def go_on(
    workflow: CompiledWorkflow,
    marks: Marks,
    context: Context,
    loop_decisions: Iterable[tuple[str | None, LoopDecision]] = (),
) -> Walked:
    """Go on to the next step that somebody must perform, or to the end. Changes `marks`."""
    return _Walk(graphs=workflow.graphs, marks=marks, context=context, decisions=list(loop_decisions)).run()


def with_loop_variables(graphs: Graphs, context: Context, frames: Iterable[LoopFrame]) -> Context:
    """Return the context with what the loops around a step add: passes from 1, indexes from 0, items."""
    seen: dict[str, Json] | None = None
    for frame in frames:
        loop = graphs.loops[frame.loop_id]
        seen = dict(context) if seen is None else seen
        items = value_at(seen, loop.items) if loop.items is not None else NOTHING
        seen[loop.iteration_var] = frame.iteration + 1
        seen[loop.index_var] = frame.iteration
        if loop.item_var is not None and isinstance(items, list):
            listed = cast("list[Json]", items)
            if frame.iteration < len(listed):
                seen[loop.item_var] = listed[frame.iteration]
    return context if seen is None else seen


@dataclass(slots=True, kw_only=True)
class _Walk:
    graphs: Graphs
    marks: Marks
    context: Context
    decisions: list[tuple[str | None, LoopDecision]]
    trace: list[TraceEntry] = field(default_factory=list[TraceEntry])

    def run(self) -> Walked:
        for _ in range(WALK_NODES_MAX):
            found = self.marks.next_open()
            assert found is not None, "a terminal ends every graph"
            if found.is_dead:
                self.marks.skip(found.node.node_id)
                continue
            reached = self._resolve(found.node)
            if reached is not None:
                return reached
        return Stuck(reason=EndlessWalk(), node=self.graphs.members[self.marks.scope][0])

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
                return Moved(state=self._complete(), trace=self._kept_trace())
            case "terminal":
                return self._next_pass(node)
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
            if isinstance(goes_on, Undecided):
                return Stuck(reason=goes_on, node=node)
            if not goes_on:
                for inner in reversed(self.marks.stack[depth:]):
                    self._leave(inner.iteration)
                return None
        assert node.task is not None, "a task is handed out"
        seen = self._seen()
        for key in node.task.needs:
            if value_at(seen, key) is NOTHING:
                missing = Undecided(path=key, found="not set", wanted="a value")
                return Stuck(reason=self._in_context(missing), node=node)
        return Moved(state=self._running(node.node_id), trace=self._kept_trace(node))

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
                wanted = f"a list whose items all have {member!r}, {found.wanted}" if member else found.wanted
                return Undecided(path=loop.items, found=told, wanted=wanted)
        return found

    def _decide(self, node: PlanNode) -> Stuck | None:
        given = Given(context=self._seen(), loop_decisions=tuple(self.decisions))
        otherwise = None
        for edge in self.graphs.out_edges[node.node_id]:
            if edge.condition_id is None:
                otherwise = otherwise or edge
                continue
            condition = self.graphs.conditions[edge.condition_id]
            verdict = evaluate(condition, given)
            if isinstance(verdict, Undecided):
                return Stuck(reason=self._in_context(verdict), node=node)
            self._evaluated(edge.condition_id, condition, holds=verdict)
            if verdict:
                otherwise = edge
                break
        assert otherwise is not None, "a decision has a way that is taken otherwise"
        self.marks.take(otherwise)
        self.marks.complete(node.node_id)
        return None

    def _enter(self, node: PlanNode) -> Stuck | None:
        loop = self.graphs.loops[node.node_id]
        begins = self._wants_pass(loop, 0)
        if isinstance(begins, Undecided):
            return Stuck(reason=begins, node=node)
        if begins:
            self.marks.enter(loop.loop_id)
            self._passed("entered_loop", loop.loop_id, 0, f"Pass 1 of `{loop.loop_id}` begins.")
        else:
            self.marks.complete(loop.loop_id)
            self._passed("exited_loop", loop.loop_id, 0, f"`{loop.loop_id}` has no pass.")
        return None

    def _next_pass(self, node: PlanNode) -> Stuck | None:
        frame = self.marks.stack[-1]
        loop, following = self.graphs.loops[frame.loop_id], frame.iteration + 1
        goes_on = self._wants_pass(loop, following)
        if isinstance(goes_on, Undecided):
            return Stuck(reason=goes_on, node=node)
        if not goes_on:
            self._leave(frame.iteration)
        elif following < loop.max_iterations:
            self.marks.begin_next_pass()
            words = f"Pass {following + 1} of `{loop.loop_id}` begins."
            self._passed("entered_loop", loop.loop_id, following, words)
        elif loop.on_limit == "block":
            reason = LoopLimit(loop_id=loop.loop_id, iteration=following, max_iterations=loop.max_iterations)
            return Stuck(reason=reason, node=node)
        else:
            self._leave(following)
        return None

    def _leave(self, iteration: int) -> None:
        """End the innermost loop. `iteration` is its last pass, or the bound where that ended it (D23)."""
        loop = self.graphs.loops[self.marks.stack[-1].loop_id]
        is_used_up = iteration == loop.max_iterations
        words = f"all {loop.max_iterations} passes are used up" if is_used_up else "its condition says so"
        self._passed("exited_loop", loop.loop_id, iteration, f"`{loop.loop_id}` ends: {words}.")
        self.marks.leave()

    def _wants_pass(self, loop: Loop, iteration: int) -> Verdict:
        """Say whether a loop wants one more pass, its bound aside."""
        outer = self.marks.stack if iteration == 0 else self.marks.stack[:-1]
        match loop.kind:
            case "for":
                count = loop.count if isinstance(loop.count, int) else value_at(self._seen(outer), str(loop.count))
                if isinstance(count, bool) or not isinstance(count, int | float) or count != int(count):
                    return _unfit(str(loop.count), count, "a whole number")
                return iteration < count
            case "for_each":
                assert loop.items is not None, "a loop over items names them"
                items = value_at(self._seen(outer), loop.items)
                if not isinstance(items, list):
                    return _unfit(loop.items, items, "a list")
                return iteration < len(cast("list[object]", items))
            case "while" | "until":
                if iteration == 0 and loop.checked == "after_pass":
                    return True
                return self._holds(loop, [*outer, LoopFrame(loop_id=loop.loop_id, iteration=iteration)])

    def _holds(self, loop: Loop, frames: list[LoopFrame]) -> Verdict:
        """Read a loop's condition once. A loop-control artifact decides once: what read it has used it up."""
        assert loop.condition_id is not None, "`while` and `until` turn on a condition"
        condition = self.graphs.conditions[loop.condition_id]
        given = Given(context=self._seen(frames), loop_decisions=tuple(self.decisions))
        verdict = evaluate(condition, given)
        if isinstance(verdict, Undecided):
            return verdict
        if reads_loop_control(condition):
            self.decisions.clear()
        self._evaluated(loop.condition_id, condition, holds=verdict)
        return verdict if loop.kind == "while" else not verdict

    def _evaluated(self, condition_id: str, condition: Condition, *, holds: bool) -> None:
        words = f"{in_words(condition)}: {'holds' if holds else 'does not hold'}"
        self._add("evaluated_condition", words, ConditionRef(kind="condition_id", condition_id=condition_id))

    def _passed(self, kind: str, loop_id: str, iteration: int, words: str) -> None:
        refs = (LoopRef(kind="loop_id", loop_id=loop_id), IterationRef(kind="iteration", value=iteration))
        self._add(kind, words, *refs)

    def _add(self, kind: str, words: str, *refs: StepRef | LoopRef | ConditionRef | IterationRef) -> None:
        summary = one_line(words, TRACE_SUMMARY_BYTES_MAX)
        self.trace.append(TraceEntry.model_validate({"kind": kind, "summary": summary, "refs": refs}))

    def _kept_trace(self, node: PlanNode | None = None) -> tuple[TraceEntry, ...]:
        """Return the reasons within their budget, the last ones kept; none where nothing was decided."""
        if not self.trace:
            return ()
        if node is not None:
            self._add("selected_next_step", f"Next: {node.title}", StepRef(kind="step_id", step_id=node.node_id))
        return tuple(self.trace[-TRACE_ENTRIES_MAX:])

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


def _unfit(path: str, found: object, wanted: str) -> Undecided:
    return Undecided(path=path, found="not set" if found is NOTHING else kind_of(found), wanted=wanted)


def loop_decisions_of(artifacts: Iterable[Mapping[str, Json]]) -> tuple[tuple[str | None, LoopDecision], ...]:
    """Return what the loop-control artifacts of a call say, each with the loop it names, if it names one."""
    found: list[tuple[str | None, LoopDecision]] = []
    for artifact in artifacts:
        decision, loop = artifact.get("decision"), artifact.get("loopId")
        if artifact.get("kind") == "wr.loop_control" and decision in ("continue", "stop"):
            found.append((loop if isinstance(loop, str) else None, decision))
    return tuple(found)
