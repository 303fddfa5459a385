"""The decider of a live walk: evaluates each decision once, with the context and the artifacts of the call (WALK-9)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, cast

from interlock.decide.condition import describe_condition, reads_loop_control
from interlock.decide.evaluate import ABSENT, NOT_SET, ConditionInputs, LoopDecision, Undecided, describe_kind, value_at
from interlock.decide.evaluation_pass import PassAborted, PassResult, run_pass
from interlock.decide.lowering import trigger_id
from interlock.engine.template import rendered_line
from interlock.engine.walk.flow import Decider, Truth
from interlock.engine.walk.trace import DecisionPoint, DecisionRecord, DecisionTrace
from interlock.kernel.canonical import Json
from interlock.plan.graph import Graphs
from interlock.plan.records import Loop, PlanNode
from interlock.record.context import Context
from interlock.record.payloads import TraceEntry

Observer: TypeAlias = Callable[[DecisionPoint, str, PassResult | PassAborted], None]
"""Receives each pass over the graph of a condition: its place, the condition, and the results of all nodes."""


class Evaluating(Decider):
    """Evaluates decisions, and collects their trace."""

    def __init__(
        self,
        graphs: Graphs,
        loop_decisions: Iterable[tuple[str | None, LoopDecision]] = (),
        observe: Observer | None = None,
    ) -> None:
        self._graphs = graphs
        self._observe = observe
        self._decisions = tuple(loop_decisions)
        self._trace = DecisionTrace()

    def holds(self, point: DecisionPoint, condition_id: str, seen: Context) -> Truth:
        """Evaluate a condition in one pass over its graph.

        A loop-control artifact decides once: the loop that read it has used it up.
        """
        condition = self._graphs.conditions[condition_id]
        given = ConditionInputs(context=seen, loop_decisions=self._decisions)
        outcome = run_pass(self._graphs.schedule(condition_id), given)
        if self._observe is not None:
            self._observe(point, condition_id, outcome)
        verdict = outcome if isinstance(outcome, PassAborted) else outcome.triggers[trigger_id(condition_id)]
        self._trace.evaluated(point, condition_id, describe_condition(condition), outcome.read, verdict)
        is_of_loop = point.node_id in self._graphs.loops
        if is_of_loop and isinstance(verdict, bool) and reads_loop_control(condition):
            self.is_continue_asked = any(decision == "continue" for _, decision in self._decisions)
            self._decisions = ()
        return verdict

    def has_pass(self, point: DecisionPoint, loop: Loop, outer: Context) -> Truth:
        """Say whether a counting loop has the pass of the innermost frame."""
        if loop.kind == "for":
            count = loop.count if isinstance(loop.count, int) else value_at(outer, str(loop.count))
            read = {} if isinstance(loop.count, int) else _read(str(loop.count), count)
            if isinstance(count, bool) or not isinstance(count, int | float) or count != int(count):
                self._trace.counted(point, read, passes=None)
                return _mismatch(str(loop.count), count, "a whole number")
            return self._trace.counted(point, read, passes=count)
        assert loop.items is not None, "a loop over items names them"
        items = value_at(outer, loop.items)
        if not isinstance(items, list):
            self._trace.counted(point, _read(loop.items, items), passes=None)
            return _mismatch(loop.items, items, "a list")
        length = len(cast("list[object]", items))
        return self._trace.counted(point, {f"{loop.items}.length": length}, passes=length)

    def has_first_pass(self, point: DecisionPoint) -> None:
        """Add to the trace that a loop begins its first pass without a decision: it decides after each pass."""
        self._trace.began(point)

    def missing_needs(self, node: PlanNode, seen: Context) -> Iterator[str]:
        """Yield the keys that a step needs and that are not set."""
        assert node.task is not None, "only a task needs keys"
        return (key for key in node.task.needs if value_at(seen, key) is ABSENT)

    def took(self, way: str) -> None:
        """Add what the last decision chose."""
        self._trace.took(way)

    def noted(self, kind: Literal["entered_loop", "exited_loop"], loop_id: str, iteration: int, words: str) -> None:
        """Add that a loop began a pass, or ended."""
        self._trace.passed(kind, loop_id, iteration, words)

    def lacked(self, node: PlanNode, key: str) -> None:
        """Add that an agent receives a step without a key that it needs."""
        self._trace.lacked(node, key)

    def records(self) -> tuple[DecisionRecord, ...]:
        """Return the decisions made so far."""
        return tuple(self._trace.decided)

    def explained(self, node: PlanNode | None, seen: Context) -> tuple[TraceEntry, ...]:
        """Return the reasons, with the step that they led to; none if nothing was decided."""
        return self._trace.kept_trace(node, rendered_line(node.title, seen) if node is not None else "")


def _read(path: str, found: object) -> dict[str, Json]:
    return {} if found is ABSENT else {path: cast("Json", found)}


def _mismatch(path: str, found: object, wanted: str) -> Undecided:
    return Undecided(path=path, found=NOT_SET if found is ABSENT else describe_kind(found), expected=wanted)
