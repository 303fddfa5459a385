"""What was decided on the way, told twice: in words for people, and as what was read and what came of it (TRACE-1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from interlock.decide.condition import Condition, describe_condition, iter_comparisons, reads_loop_control
from interlock.decide.evaluate import ABSENT, ConditionInputs, Undecided, Verdict, value_at
from interlock.kernel.budgets import TRACE_SUMMARY_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.plan.records import PlanNode
from interlock.record.payloads import ConditionRef, IterationRef, LoopRef, StepRef, TraceEntry
from interlock.record.snapshot import LoopFrame

GOES_ON = "goes_on"
"""What a loop's decision came to: one more pass, or a step more of this one."""
LEAVES = "leaves"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPoint:
    """Where something is decided: a node of the plan, in these loop passes."""

    node_id: str
    frames: tuple[LoopFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision. `read` is what stood at each path it turns on, without what was not there.

    `verdict` is None where it could not be decided. `took` is the id of the edge taken, or what a loop did; None where
    a later decision of the same node chose.
    """

    spot: DecisionPoint
    condition_id: str | None
    read: Mapping[str, Json]
    verdict: bool | None
    took: str | None = None


@dataclass(slots=True)
class DecisionTrace:
    """Collects the decisions of one walk."""

    trace: list[TraceEntry] = field(default_factory=list[TraceEntry])
    decided: list[DecisionRecord] = field(default_factory=list[DecisionRecord])

    def evaluated(
        self,
        spot: DecisionPoint,
        condition_id: str,
        condition: Condition,
        given: ConditionInputs,
        verdict: Verdict | None,
    ) -> None:
        """Take in that a condition was evaluated; None where its computation failed."""
        words = (
            "cannot be decided"
            if verdict is None or isinstance(verdict, Undecided)
            else "holds"
            if verdict
            else "does not hold"
        )
        refs = (ConditionRef(kind="condition_id", condition_id=condition_id), *_asked_of(spot))
        self._add("evaluated_condition", f"{describe_condition(condition)}: {words}", *refs)
        held = None if isinstance(verdict, Undecided) else verdict
        self.decided.append(
            DecisionRecord(spot=spot, condition_id=condition_id, read=read_by(condition, given), verdict=held)
        )

    def began(self, spot: DecisionPoint) -> None:
        """Take in that a loop which is read after its passes began without a decision."""
        self.decided.append(DecisionRecord(spot=spot, condition_id=None, read={}, verdict=True, took=GOES_ON))

    def counted(self, spot: DecisionPoint, read: Mapping[str, Json], *, passes: float | None) -> bool:
        """Take in that a loop which counts was asked for one more pass; return whether it has one.

        `passes` is how many it has, None where that cannot be decided.
        """
        frame = spot.frames[-1]
        goes_on = None if passes is None else frame.iteration < passes
        told = "cannot be decided" if passes is None else f"{passes:g} in total, {frame.iteration} done"
        self._add("evaluated_condition", f"Passes of `{frame.loop_id}`: {told}", *_asked_of(spot))
        took = GOES_ON if goes_on else LEAVES
        self.decided.append(DecisionRecord(spot=spot, condition_id=None, read=read, verdict=goes_on, took=took))
        return bool(goes_on)

    def took(self, way: str) -> None:
        """Take in which way the last decision chose."""
        self.decided[-1] = replace(self.decided[-1], took=way)

    def passed(self, kind: Literal["entered_loop", "exited_loop"], loop_id: str, iteration: int, words: str) -> None:
        """Take in that a loop began a pass, or ended."""
        self._add(kind, words, *_pass(loop_id, iteration))

    def lacked(self, node: PlanNode, key: str) -> None:
        """Take in that a step is handed out although what it needs is not there."""
        words = f"`{node.node_id}` needs `{key}`, which is not set; the step is given to the agent anyway."
        self._add("selected_next_step", words, StepRef(kind="step_id", step_id=node.node_id))

    def kept_trace(self, node: PlanNode | None) -> tuple[TraceEntry, ...]:
        """Return the reasons, with the step they led to; none where nothing was decided."""
        if self.trace and node is not None:
            self._add("selected_next_step", f"Next: {node.title}", StepRef(kind="step_id", step_id=node.node_id))
        return tuple(self.trace)

    def _add(self, kind: str, words: str, *refs: StepRef | LoopRef | ConditionRef | IterationRef) -> None:
        summary = one_line(words, TRACE_SUMMARY_BYTES_MAX)
        self.trace.append(TraceEntry.model_validate({"kind": kind, "summary": summary, "refs": refs}))


def _asked_of(spot: DecisionPoint) -> tuple[LoopRef | IterationRef, ...]:
    """Return the loop and the pass that a decision is about; nothing where it is about no loop."""
    frame = spot.frames[-1] if spot.frames else None
    return _pass(frame.loop_id, frame.iteration) if frame is not None and frame.loop_id == spot.node_id else ()


def _pass(loop_id: str, iteration: int) -> tuple[LoopRef | IterationRef, ...]:
    return LoopRef(kind="loop_id", loop_id=loop_id), IterationRef(kind="iteration", value=iteration)


def read_by(condition: Condition, given: ConditionInputs) -> dict[str, Json]:
    """Return what stands at each path that a condition turns on; what is not there is left out."""
    found: dict[str, Json] = {}
    for term in iter_comparisons(condition):
        is_flat = term.op.startswith("lenient_")
        value = given.context.get(term.var, ABSENT) if is_flat else value_at(given.context, term.var)
        if value is not ABSENT:
            found[term.var] = cast("Json", value)
    if reads_loop_control(condition):
        said = [f"{loop or '*'}:{decision}" for loop, decision in given.loop_decisions]
        found["wr.loop_control"] = cast("Json", said)
    return found
