"""Decides a step without a session: what it would set, and the decisions after it. Pure: it records no event.

The run is placed at the step by a walk that takes the way there, whatever its conditions say. From there on the rules
are those of a report: `run_step_pass`, then `run_to_next_task`.
"""

from collections.abc import Mapping

from interlock.decide.evaluate import ABSENT, NOT_SET, Undecided, describe_kind, value_at
from interlock.decide.evaluation_pass import PassAborted, PassResult
from interlock.engine.advance import finding_of
from interlock.engine.judge.declared_context import hold_context
from interlock.engine.judge.evidence import judge
from interlock.engine.judge.violations import Violation
from interlock.engine.request import Request
from interlock.engine.step_pass import StepInputs, emitted_before, run_step_pass
from interlock.engine.template import with_loop_variables
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import (
    ContextAt,
    Decider,
    Suspended,
    Truth,
    WalkResult,
    loop_decisions_of,
    run_to_next_task,
)
from interlock.engine.walk.trace import DecisionPoint, DecisionRecord
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId, derived_id
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.records import Loop
from interlock.plan.walk import ExecutionState
from interlock.record.context import Context, merge_context
from interlock.record.snapshot import Complete, Running

_NO_NODE = NodeId(derived_id("node", "decide_step"))
"""The node to which a walk without a log leads."""


@frozen
class EvaluatedCondition:
    """A condition that a decision after the step evaluated, with the results of every node of its graph."""

    point: DecisionPoint
    condition_id: str
    evaluated: PassResult | PassAborted


@frozen
class DecidedStep:
    """The decisions of one step. `evaluated` is the pass over what it sets; None if it sets nothing.

    `findings` say why a report would be refused. `state` is the position after the step; None if it was not reached.
    """

    evaluated: PassResult | PassAborted | None = None
    conditions: tuple[EvaluatedCondition, ...] = ()
    decided: tuple[DecisionRecord, ...] = ()
    findings: tuple[Violation, ...] = ()
    state: Running | Complete | None = None


def decide_step(
    workflow: CompiledWorkflow, step_id: str, sent: Context, artifacts: tuple[Mapping[str, Json], ...] = ()
) -> DecidedStep:
    """Decide a step of a plan with a context and artifacts, in a run that has sent nothing yet.

    What a report needs besides them is not asked for.
    """
    context = merge_context({}, sent)
    position = _position(workflow, step_id, context)
    if isinstance(position, Suspended):
        return DecidedStep(findings=(finding_of(position),))
    held = hold_context(workflow, {}, context)
    context = merge_context(context, held.corrections)
    seen = with_loop_variables(workflow.graphs, context, position.loop_stack)
    node = workflow.steps[step_id]
    judgement = judge(workflow, node, Request(artifacts=artifacts, context=sent), seen, held.mismatches)
    # What is missing may be left out here; what was given must be valid.
    invalid = tuple(one for one in judgement.findings if one.detail == "invalid_required_output")
    if invalid:
        return DecidedStep(findings=invalid)
    evidence = {**judgement.values, **emitted_before(node)}
    step = run_step_pass(workflow, node, StepInputs(context=context, stack=position.loop_stack, evidence=evidence))
    if step.findings:
        return DecidedStep(evaluated=step.evaluated, findings=step.findings)
    conditions: list[EvaluatedCondition] = []

    def observe(point: DecisionPoint, condition_id: str, evaluated: PassResult | PassAborted) -> None:
        conditions.append(EvaluatedCondition(point=point, condition_id=condition_id, evaluated=evaluated))

    marks = ExecutionState(workflow.graphs, position)
    marks.complete(step_id)
    decider = Evaluating(workflow.graphs, loop_decisions_of(artifacts), observe)
    after = merge_context(context, step.captured.effects)
    walk = run_to_next_task(workflow, marks, ContextAt(after, _NO_NODE), decider)
    return DecidedStep(
        evaluated=step.evaluated,
        conditions=tuple(conditions),
        decided=decider.records(),
        findings=(finding_of(walk),) if isinstance(walk, Suspended) else (),
        state=walk.state if isinstance(walk, WalkResult) else None,
    )


def _position(workflow: CompiledWorkflow, step_id: str, context: Context) -> Running | Suspended:
    """Return the position of a run at a step, in the first pass of the loops around it."""
    marks = ExecutionState(workflow.graphs)
    towards = _Towards(workflow.graphs, step_id)
    while True:
        walk = run_to_next_task(workflow, marks, ContextAt(context, _NO_NODE), towards)
        if isinstance(walk, Suspended):
            return walk
        assert isinstance(walk.state, Running), "every step can be reached"
        if walk.state.pending.step.step_id == step_id:
            return walk.state
        marks.complete(walk.state.pending.step.step_id)


class _Towards(Decider):
    """The decider of a walk to a step: it takes every way that leads there, and enters no other loop."""

    def __init__(self, graphs: Graphs, step_id: str) -> None:
        self._around = frozenset(graphs.loops_around(step_id))
        self._leading = {step_id, *self._around}
        frontier = list(self._leading)
        while frontier:
            before = {edge.source for edge in graphs.in_edges.get(frontier.pop(), ())} - self._leading
            self._leading |= before
            frontier += before
        self._graphs = graphs

    def holds(self, point: DecisionPoint, condition_id: str, seen: Context) -> Truth:
        del seen
        loop = self._graphs.loops.get(point.node_id)
        if loop is not None:
            return (loop.loop_id in self._around) == (loop.kind == "while")
        edges = self._graphs.out_edges[point.node_id]
        return any(edge.condition_id == condition_id and edge.target in self._leading for edge in edges)

    def has_pass(self, point: DecisionPoint, loop: Loop, outer: Context) -> Truth:
        if loop.loop_id not in self._around:
            return False
        items = value_at(outer, loop.items) if loop.items is not None else [None]
        if isinstance(items, list) and items:
            return True
        found = "an empty list" if isinstance(items, list) else NOT_SET if items is ABSENT else describe_kind(items)
        return Undecided(path=loop.items, found=found, expected=f"a list with an item for a pass of {point.node_id!r}")
