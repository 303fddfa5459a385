"""The decisions of a walk, kept twice: as text for people, and as the values read and their result (TRACE-1)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from interlock.decide.evaluate import Verdict
from interlock.decide.evaluation_pass import PassAborted
from interlock.kernel.budgets.workflow import (
    TRACE_SUMMARY_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable, replace
from interlock.kernel.text import one_line
from interlock.plan.records import PlanNode
from interlock.record.payloads import ConditionRef, IterationRef, LoopRef, StepRef, TraceEntry, TraceKind
from interlock.record.snapshot import LoopFrame

GOES_ON = "goes_on"
"""The result of a loop's decision: another pass, or another step of this pass."""
LEAVES = "leaves"


@frozen
class DecisionPoint:
    """The place of a decision: a node of the plan, in these loop passes."""

    node_id: str
    frames: tuple[LoopFrame, ...]


@frozen
class DecisionRecord:
    """One decision. `read` has the value at each path that it depends on, without paths that are not set.

    `verdict` is None if the condition could not be decided. `took` is the id of the edge that was taken, or what a loop
    did; None if a later decision of the same node chose the edge.
    """

    point: DecisionPoint
    condition_id: str | None
    read: Mapping[str, Json]
    verdict: bool | None
    took: str | None = None


@mutable
class DecisionTrace:
    """Collects the decisions of one walk."""

    trace: list[TraceEntry] = field(default_factory=list[TraceEntry])
    decided: list[DecisionRecord] = field(default_factory=list[DecisionRecord])

    def evaluated(
        self,
        point: DecisionPoint,
        condition_id: str,
        described: str,
        read: Mapping[str, Json],
        verdict: Verdict | PassAborted,
    ) -> None:
        """Add an evaluated condition with the values that its evaluation read."""
        known = verdict if isinstance(verdict, bool) else None
        words = {True: "holds", False: "does not hold", None: "cannot be decided"}[known]
        refs = (ConditionRef(condition_id=condition_id), *_loop_refs(point))
        self._add("evaluated_condition", f"{described}: {words}", *refs)
        self.decided.append(DecisionRecord(point=point, condition_id=condition_id, read=read, verdict=known))

    def began(self, point: DecisionPoint) -> None:
        """Add to the trace the start of a loop that decides after each pass."""
        self.decided.append(DecisionRecord(point=point, condition_id=None, read={}, verdict=True, took=GOES_ON))

    def counted(self, point: DecisionPoint, read: Mapping[str, Json], *, passes: float | None) -> bool:
        """Add the decision whether a counting loop has another pass, and return it.

        `passes` is the number of passes of the loop; None if the number cannot be decided.
        """
        frame = point.frames[-1]
        goes_on = None if passes is None else frame.iteration < passes
        count_words = "cannot be decided" if passes is None else f"{passes:g} in total, {frame.iteration} done"
        self._add("evaluated_condition", f"Passes of `{frame.loop_id}`: {count_words}", *_loop_refs(point))
        took = GOES_ON if goes_on else LEAVES
        self.decided.append(DecisionRecord(point=point, condition_id=None, read=read, verdict=goes_on, took=took))
        return bool(goes_on)

    def took(self, way: str) -> None:
        """Record on the last decision which edge or outcome it chose: `way`."""
        self.decided[-1] = replace(self.decided[-1], took=way)

    def passed(self, kind: Literal["entered_loop", "exited_loop"], loop_id: str, iteration: int, words: str) -> None:
        """Add to the trace that a loop began a pass, or ended."""
        self._add(kind, words, *_pass(loop_id, iteration))

    def lacked(self, node: PlanNode, key: str) -> None:
        """Add to the trace that an agent receives a step although a context key that it needs is not set."""
        words = f"`{node.node_id}` needs `{key}`, which is not set; the step is given to the agent anyway."
        self._add("selected_next_step", words, StepRef(step_id=node.node_id))

    def kept_trace(self, node: PlanNode | None, title: str) -> tuple[TraceEntry, ...]:
        """Return the trace to record, with an entry for the step that was reached; empty if nothing was decided."""
        if self.trace and node is not None:
            self._add("selected_next_step", f"Next: {title}", StepRef(step_id=node.node_id))
        return tuple(self.trace)

    def _add(self, kind: TraceKind, words: str, *refs: StepRef | LoopRef | ConditionRef | IterationRef) -> None:
        summary = one_line(words, TRACE_SUMMARY_BYTES_MAX)
        self.trace.append(TraceEntry(kind=kind, summary=summary, refs=refs))


def _loop_refs(point: DecisionPoint) -> tuple[LoopRef | IterationRef, ...]:
    """Return the loop and the pass of a decision; nothing if it is not the decision of a loop."""
    frame = point.frames[-1] if point.frames else None
    return _pass(frame.loop_id, frame.iteration) if frame is not None and frame.loop_id == point.node_id else ()


def _pass(loop_id: str, iteration: int) -> tuple[LoopRef | IterationRef, ...]:
    return LoopRef(loop_id=loop_id), IterationRef(value=iteration)
