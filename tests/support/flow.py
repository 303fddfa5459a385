"""Plans for tests, compiled from a few steps or made by hand, and a walk over them without a store."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from interlock.decide.evaluate import LoopDecision
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.engine.walk.capture import DecisionCapture
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import ContextAt, Suspended, Walked, WalkResult, run_to_next_task
from interlock.engine.walk.items import load_lists
from interlock.engine.walk.recorded import repeat_walk
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.ids import NodeId, WorkflowHash, derived_id
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import (
    NOTES_CONTRACT,
    STEP_INPUT,
    Evidence,
    Loop,
    NamedCondition,
    Plan,
    PlanEdge,
    PlanNode,
    Provenance,
    Task,
)
from interlock.plan.walk import ExecutionState
from interlock.record.context import merge_context
from interlock.record.payloads import TraceEntry
from interlock.record.snapshot import (
    Complete,
    PendingSome,
    PendingStep,
    Running,
    build_snapshot,
    loop_path_of,
    parse_snapshot,
    step_instance_key,
)

Document = dict[str, Any]
SOME_NODE = NodeId(derived_id("node", "some"))
_HASH = WorkflowHash(digest_of_bytes(b"a workflow"))
LOOP_CONTROL = "wr.contracts.loop_control"
INPUTS = [
    {"key": key, "description": f"The {key}.", "type": kind}
    for key, kind in {
        "mode": "string",
        "level": "number",
        "things": "list",
        "is_urgent": "boolean",
        "box": "object",
    }.items()
]
"""What every document of `compiled` declares, so that conditions may read it."""


def declared(key: str, kind: str = "string", **more: object) -> Document:
    """Return an entry of `inputs`."""
    return {"key": key, "description": f"The {key}.", "type": kind, **more}


DECLARED_KINDS = [
    declared("mode"),
    declared("level", "number"),
    declared("is_urgent", "boolean"),
    declared("things", "list"),
    declared("box", "object"),
    declared("speed", choices=["fast", "slow"]),
    declared("pace", choices=["fast", "slow", "still"]),
]
"""A declared key of each type, and two with choices."""
RATING: Document = {
    "id": "quality",
    "purpose": "How good it is.",
    "dimensions": [{"id": "clear", "purpose": "Is it clear?", "levels": ["low", "high"]}],
}
"""An assessment with one dimension."""


def step(name: str, **more: object) -> Document:
    return {"id": name, "title": f"Step {name}", "prompt": f"Do {name}.", **more}


def loop(name: str, *body: Document, **more: object) -> Document:
    """Return a loop of at most three passes over the steps; how it goes on is in `more`."""
    return {"loopId": name, "title": f"Loop {name}", "maxIterations": 3, "body": list(body), **more}


def deciding(name: str, **more: object) -> Document:
    """Return the step that says whether a loop goes on."""
    return step(name, outputContract={"contractRef": LOOP_CONTROL}, **more)


def parallel(name: str, *branches: Iterable[Document], **more: object) -> Document:
    steps = [{"steps": list(branch)} for branch in branches]
    return {"type": "parallel", "id": name, "title": f"Parallel {name}", "branches": steps, **more}


def choose(name: str, *branches: tuple[object, list[Document]], **more: object) -> Document:
    ways = [{"when": when, "steps": steps} for when, steps in branches]
    return {"type": "choose", "id": name, "title": f"Choice {name}", "choose": ways, "otherwise": [], **more}


IS_FAST: Document = {"var": "mode", "equals": "fast"}


def document(*steps: Document, **more: object) -> Document:
    return {"id": "test.flow", "name": "Flow", "inputs": INPUTS, "steps": list(steps), **more}


def compiled(*steps: Document, **more: object) -> CompiledWorkflow:
    return _compiled(document(*steps, **more))


def compiled_dialect(*steps: Document) -> CompiledWorkflow:
    """Compile a file in the WorkRail dialect."""
    return _compiled({"id": "old", "name": "Old", "description": "Old.", "version": "1.0.0", "steps": list(steps)})


def _compiled(value: Document) -> CompiledWorkflow:
    parsed = parse_workflow(value)
    assert isinstance(parsed, WorkflowDocument), parsed
    found = compile_workflow(parsed)
    assert isinstance(found, Compiled), found
    return found.workflow


# Plans by hand.


def a_node(name: str, kind: str = "task", **more: object) -> PlanNode:
    fields: dict[str, object] = {"owner": "harness"}
    if kind == "task":
        task = Task(prompt=f"Do {name}.", evidence=Evidence(artifact_required=False, notes="required"))
        refs = {"input_schema_ref": STEP_INPUT, "evidence_schema_ref": NOTES_CONTRACT}
        fields = {"owner": "agent", "task": task, **refs}
    provenance = Provenance(source="authored")
    fields |= {"node_id": name, "kind": kind, "title": name, "provenance": provenance}
    return PlanNode(**cast("dict[str, Any]", fields | more))


def an_edge(source: str, target: str, kind: str = "direct", **more: object) -> PlanEdge:
    fields = {"edge_id": f"{source}>{target}", "kind": kind, "source": source, "target": target}
    return PlanEdge(**cast("dict[str, Any]", fields | more))


def a_loop(name: str, *body: str, **more: object) -> Loop:
    fields: dict[str, object] = {
        "loop_id": name,
        "kind": "for",
        "count": 1,
        "max_iterations": 1,
        "on_limit": "exit",
        "body": body,
        "iteration_var": "iteration",
        "index_var": "index",
    }
    return Loop(**cast("dict[str, Any]", fields | more))


def a_plan(
    nodes: Iterable[PlanNode],
    edges: Iterable[PlanEdge],
    loops: Iterable[Loop] = (),
    conditions: Iterable[NamedCondition] = (),
) -> Plan:
    return Plan(v=1, nodes=tuple(nodes), edges=tuple(edges), loops=tuple(loops), conditions=tuple(conditions))


# A walk.


def at_some_node(context: Mapping[str, Json]) -> ContextAt:
    """Return the context of a node for a walk whose log does not matter."""
    return ContextAt(context, SOME_NODE)


def copied(marks: ExecutionState) -> ExecutionState:
    completed, skipped, taken = marks.sets()
    stack = tuple(marks.stack)
    # No step can be pending that is not yet known.
    pending = PendingSome(kind="some", step=PendingStep(step_id="-", loop_path=loop_path_of(stack)))
    state = Running(completed=completed, skipped=skipped, edges_taken=taken, loop_stack=stack, pending=pending)
    return ExecutionState(marks.graphs, state)


def repeat_and_compare(workflow: CompiledWorkflow, marks: ExecutionState, at: ContextAt, walked: WalkResult) -> None:
    """Repeat a walk by its captured decisions, and compare the moves and the end (WALK-9)."""
    captured = json.loads(DecisionCapture(decided=walked.decided).to_bytes())
    repeated = repeat_walk(workflow, marks, at, captured)
    if captured["leftOut"]:
        assert repeated.is_left_out
        assert repeated.moves == walked.moves[: len(repeated.moves)]
        return
    assert repeated.moves == walked.moves
    assert repeated.result is not None
    assert repeated.result.state == walked.state


class Walker:
    """Stands in a plan as a run does, with its context, and goes on step by step. What is stuck stays where it was."""

    def __init__(self, workflow: CompiledWorkflow, **context: Json) -> None:
        self.workflow = workflow
        self.context: dict[str, Json] = dict(context)
        self.trace: tuple[TraceEntry, ...] = ()
        self.found: Walked | None = None
        self._state: Running | Complete | None = None
        self._nodes: dict[NodeId, Mapping[str, Json]] = {}
        self._go(ExecutionState(workflow.graphs))

    def done(self, *decisions: str | tuple[str | None, str], **context: Json) -> "Walker":
        """Complete the pending step; what a call says of loop control may name its loop."""
        self.context = dict(merge_context(self.context, context))
        marks = ExecutionState(self.workflow.graphs, self._state)
        assert isinstance(self._state, Running), "nothing is pending"
        marks.complete(self._state.pending.step.step_id)
        said = [one if isinstance(one, tuple) else (None, one) for one in decisions]
        self._go(marks, cast("list[tuple[str | None, LoopDecision]]", said))
        return self

    def _go(self, marks: ExecutionState, decisions: Iterable[tuple[str | None, LoopDecision]] = ()) -> None:
        before = copied(marks)
        at = NodeId(derived_id("node", len(self._nodes)))
        decider = Evaluating(self.workflow.graphs, decisions)
        self.found = run_to_next_task(self.workflow, marks, ContextAt(self.context, at), decider)
        if isinstance(self.found, WalkResult):
            repeat_and_compare(self.workflow, before, ContextAt(self.context, at), self.found)
            self._nodes[at] = dict(self.context)
            self._state, self.trace = self._stored(self.found.state), self.found.trace

    def _stored(self, state: Running | Complete) -> Running | Complete:
        """Return a state as it is read back from its bytes, with the lists of its loops."""
        read = parse_snapshot(build_snapshot(_HASH, state).to_bytes()).state
        if not isinstance(read, Running):
            return read
        stack = load_lists(self.workflow.graphs, read.loop_stack, lambda node, key: self._nodes[node].get(key))
        return read.changed(loop_stack=stack)

    @property
    def stuck(self) -> Suspended:
        """Why the last move was refused."""
        assert isinstance(self.found, Suspended), f"it went on, to {self.at}"
        return self.found

    @property
    def at(self) -> str | None:
        """The key of the pending step; None where the run is complete."""
        assert isinstance(self.found, WalkResult), f"it is stuck: {self.found}"
        state = self.found.state
        if isinstance(state, Complete):
            return None
        return step_instance_key(state.pending.step.step_id, state.loop_stack)

    @property
    def state(self) -> Running | Complete:
        assert self._state is not None, "it never began"
        return self._state

    def ways(self, limit: int = 100) -> list[str]:
        """Return the keys of all steps from here to the end, each done with nothing but its own notes."""
        found: list[str] = []
        while self.at is not None:
            found.append(self.at)
            assert len(found) <= limit, found
            self.done()
        return found
