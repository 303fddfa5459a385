"""Conditions and the assignments that they gate, as nodes and edges."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from interlock.decide.condition import Condition
from interlock.decide.graph import DecisionGraph, SetKey
from interlock.decide.lowering import OWN, Assignment, build_graph, trigger_id
from interlock.decide.validate import validate_graph
from interlock.decide.value import Given, Read

CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
SMALL: dict[str, Any] = {"op": "equals", "var": "size", "value": "small"}
CALM: dict[str, Any] = {"op": "not", "of": {"op": "gt", "var": "risk.level", "value": 2}}
GO_ON: dict[str, Any] = {"op": "loop_control", "loopId": "l", "whenAbsent": "missing"}


def assignment(key: str, *, value: Any = None, path: str | None = None, when: tuple[str, ...] = ()) -> Assignment:
    payload = Given(op="constant", value=value) if path is None else Read(op="read", var=path)
    return Assignment(name=key, effect=SetKey(kind="set", key=key), payload=(payload,), when=when)


def lowered(*assignments: Assignment, **conditions: dict[str, Any]) -> DecisionGraph:
    read = {name: CONDITION.validate_python(condition) for name, condition in conditions.items()}
    return build_graph(read, assignments)


def ids(graph: DecisionGraph) -> list[str]:
    return sorted(node.id for node in graph.nodes)


def wires(graph: DecisionGraph) -> set[str]:
    return {f"{edge.source} -> {edge.target} {edge.port}" for edge in graph.edges}


def test_a_condition_becomes_its_sources_one_compute_and_one_trigger() -> None:
    graph = lowered(ready={"op": "and", "of": [SMALL, CALM, SMALL]})
    assert wires(graph) == {
        "path:size -> compute:ready path:size",
        "path:risk.level -> compute:ready path:risk.level",
        "compute:ready -> trigger:ready when",
    }
    assert validate_graph(graph) == ()


def test_conditions_that_read_the_same_input_share_one_source() -> None:
    larger = {"op": "or", "of": [{**SMALL, "op": "not_equals"}, {"op": "lenient_truthy", "var": "size"}]}
    graph = lowered(one=SMALL, two=larger)
    assert [name for name in ids(graph) if not name.startswith(("compute", "trigger"))] == ["path:size"]


def test_a_lenient_comparison_reads_a_flat_key_whose_name_has_a_dot() -> None:
    graph = lowered(
        one={"op": "lenient_equals", "var": "a.b", "value": 1}, two={"op": "exists", "var": "a.b", "value": True}
    )
    assert {"key:a.b", "path:a.b"} <= set(ids(graph))


def test_loop_control_and_always_have_their_sources() -> None:
    graph = lowered(on=GO_ON, any={"op": "always"})
    assert {"loop_control -> compute:on loop_control", "constant:true -> compute:any nothing"} <= wires(graph)
    assert validate_graph(graph) == ()


def test_an_assignment_becomes_an_action_gated_by_its_step_and_by_each_condition() -> None:
    graph = lowered(assignment("mode", path="wish", when=("one", "two")), one=SMALL, two=CALM)
    assert {
        f"{trigger_id(OWN)} -> action:mode gate.0",
        f"{trigger_id('one')} -> action:mode gate.1",
        f"{trigger_id('two')} -> action:mode gate.2",
        "path:wish -> action:mode value",
    } <= wires(graph)
    assert validate_graph(graph) == ()


@pytest.mark.inv("EFF-2")
def test_in_the_graph_of_a_step_the_names_of_evidence_never_read_the_context() -> None:
    found = lowered(assignment("a", path="artifact.n"), one={**SMALL, "var": "assessments.x.y"})
    assert {
        "evidence:artifact.n -> action:a value",
        "evidence:assessments.x.y -> compute:one path:assessments.x.y",
    } <= (wires(found))
    assert "path:assessments.x.y" in ids(lowered(one={**SMALL, "var": "assessments.x.y"})), "a condition of the plan"


def test_all_actions_of_a_step_share_its_trigger() -> None:
    graph = lowered(assignment("a", value=1), assignment("b", value=2))
    assert [name for name in ids(graph) if name.startswith("trigger")] == ["trigger:*"]
    assert validate_graph(graph) == ()


def test_the_same_input_in_another_order_gives_the_same_graph() -> None:
    one = lowered(assignment("a", value=1), assignment("b", value=2), one=SMALL, two=CALM)
    other = lowered(assignment("b", value=2), assignment("a", value=1), two=CALM, one=SMALL)
    assert one.digest() == other.digest()


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ((assignment("a", value=1), assignment("a", value=2)), "duplicate_write"),
        ((assignment("a", value=1, when=("nobody",)),), "unknown_node"),
    ],
)
def test_a_key_that_cannot_be_set_in_one_pass_is_a_fault_of_the_graph(
    assignments: tuple[Assignment, ...], code: str
) -> None:
    assert code in [fault.code for fault in validate_graph(lowered(*assignments, one=SMALL))]


@pytest.mark.inv("EFF-2")
def test_a_key_may_be_set_in_the_pass_that_reads_it() -> None:
    assignments = (assignment("size", value="large", when=("one",)), assignment("before", path="size"))
    assert validate_graph(lowered(*assignments, one=SMALL)) == ()
