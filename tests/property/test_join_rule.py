"""The one rule that joins everything, on random graphs, against a model of a few lines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.support.flow import at_some_node, copied, repeat_and_compare
from tests.support.shares import examples

from interlock.decide.condition import Compare
from interlock.define.diagnostics import has_errors
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import WalkResult, run_to_next_task
from interlock.plan import records
from interlock.plan.check.validate import validate_plan
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import Complete, Running

pytestmark = pytest.mark.exhaustive

NODES_MAX = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A random graph: nodes by number in an order of their edges, the last one the end, and what is decided."""

    kinds: tuple[str, ...]
    ways: tuple[tuple[int, int, bool], ...]
    """Source, target, and whether a condition stands on it."""
    holds: Mapping[tuple[int, int], bool]

    def ways_out(self, source: int) -> list[tuple[int, int, bool]]:
        return [way for way in self.ways if way[0] == source]


@st.composite
def graphs(draw: Any) -> Graph:
    """Return a graph in which every node is reached from the first and leads to the last."""
    end = draw(st.integers(1, NODES_MAX))
    pairs: set[tuple[int, int]] = set()
    for node in range(1, end):
        pairs |= {(source, node) for source in draw(st.sets(st.integers(0, node - 1), min_size=1, max_size=3))}
    sources = {source for source, _ in pairs}
    pairs |= {(node, end) for node in range(end) if node not in sources}
    kinds: list[str] = []
    ways: list[tuple[int, int, bool]] = []
    for node in range(end):
        targets = sorted(target for source, target in pairs if source == node)
        kinds.append(draw(st.sampled_from(["task", "decision", "fan_out", "fan_in"])))
        otherwise = draw(st.sampled_from(targets))
        ways += [(node, target, kinds[node] == "decision" and target != otherwise) for target in targets]
    holds = {(source, target): draw(st.booleans()) for source, target, _ in ways}
    return Graph(kinds=(*kinds, "terminal"), ways=tuple(ways), holds=holds)


def resolved_by_model(graph: Graph) -> tuple[set[int], set[int]]:
    """Return which nodes come alive and which are passed over: a node lives if some way into it was taken."""
    alive: set[int] = set()
    taken: set[tuple[int, int]] = set()
    for node, kind in enumerate(graph.kinds):
        if node == 0 or any(way[1] == node for way in taken):
            alive.add(node)
            out = graph.ways_out(node)
            if kind == "decision":
                chosen = [way for way in out if way[2] and graph.holds[way[0], way[1]]]
                out = (chosen or [way for way in out if not way[2]])[:1]
            taken |= {(source, target) for source, target, _ in out}
    return alive, set(range(len(graph.kinds))) - alive


def plan_of(graph: Graph) -> records.Plan:
    nodes = [
        {"nodeId": f"n{number}", "kind": kind, "title": f"N{number}", "provenance": {"source": "authored"}}
        | (_TASK if kind == "task" else {"owner": "harness"})
        for number, kind in enumerate(graph.kinds)
    ]
    edges: list[dict[str, Any]] = []
    conditions: list[records.NamedCondition] = []
    for source, target, is_conditional in graph.ways:
        edge_id = f"n{source}-n{target}"
        edge = {"edgeId": edge_id, "source": f"n{source}", "target": f"n{target}", "kind": "direct"}
        if is_conditional:
            edge |= {"kind": "conditional", "conditionId": edge_id}
            holds = Compare(op="equals", var=edge_id, value=True)
            conditions.append(records.NamedCondition(condition_id=edge_id, condition=holds))
        edges.append(edge)
    return records.Plan.of_json({"v": 1, "nodes": nodes, "edges": edges, "loops": (), "conditions": tuple(conditions)})


_TASK: dict[str, Any] = {
    "owner": "agent",
    "inputSchemaRef": records.STEP_INPUT,
    "evidenceSchemaRef": records.NOTES_CONTRACT,
    "task": {"prompt": "Do it.", "evidence": {"artifactRequired": False, "notes": "optional"}},
}


def workflow_of(plan: records.Plan) -> CompiledWorkflow:
    empty = dict.fromkeys(
        ("guidance", "references", "capabilities", "features", "inputs", "functions", "assessments", "contracts"), ()
    )
    return CompiledWorkflow.of_json(
        {"schemaVersion": 1, "workflowId": "test.graph", "name": "Graph", "description": "", "compiledWarnings": ()}
        | empty
        | {"plan": plan}
    )


@settings(
    deadline=None, max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(graphs())
@pytest.mark.inv("WALK-1", "WALK-9")
def test_every_graph_ends_with_each_node_completed_or_skipped_as_the_model_says(graph: Graph) -> None:
    plan = plan_of(graph)
    faults = validate_plan(plan)
    # A decision with nothing to decide is refused (IR-15).
    assume(all(one.code != "missing_condition" for one in faults))
    assert not has_errors(faults)
    workflow = workflow_of(plan)
    context = {f"n{source}-n{target}": holds for (source, target), holds in graph.holds.items()}
    handed: list[str] = []
    state: Running | Complete | None = None
    while not isinstance(state, Complete):
        marks = ExecutionState(workflow.graphs, state)
        if isinstance(state, Running):
            handed.append(state.pending.step.step_id)
            marks.complete(handed[-1])
        before = copied(marks)
        moved = run_to_next_task(workflow, marks, at_some_node(context), Evaluating(workflow.graphs))
        assert isinstance(moved, WalkResult)
        repeat_and_compare(workflow, before, at_some_node(context), moved)
        state = moved.state
    alive, dead = resolved_by_model(graph)
    end = len(graph.kinds) - 1
    assert end in alive
    assert handed == [f"n{node}" for node in sorted(alive) if graph.kinds[node] == "task"], "in plan order"
    assert set(state.completed.values) == {f"n{node}" for node in alive - {end}}
    assert set(state.skipped.values) == {f"n{node}" for node in dead}
