"""Conditions and the assignments that they gate, as nodes and edges."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from interlock.decide.condition import Condition
from interlock.decide.graph import DecisionGraph
from interlock.decide.lowering import Assignment, build_graph, trigger_id
from interlock.decide.validate import validate_graph

CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
SMALL: dict[str, Any] = {"op": "equals", "var": "size", "value": "small"}
CALM: dict[str, Any] = {"op": "not", "of": {"op": "gt", "var": "risk.level", "value": 2}}
GO_ON: dict[str, Any] = {"op": "loop_control", "loopId": "l", "whenAbsent": "missing"}


def lowered(*assignments: Assignment, **conditions: dict[str, Any]) -> DecisionGraph:
    read = {name: CONDITION.validate_python(condition) for name, condition in conditions.items()}
    return build_graph(read, assignments)


def ids(graph: DecisionGraph) -> list[str]:
    return sorted(node.id for node in graph.nodes)


def wires(graph: DecisionGraph) -> set[str]:
    return {f"{edge.source} -> {edge.target} {edge.port}" for edge in graph.edges}


def test_a_condition_becomes_sources_computes_and_one_trigger() -> None:
    graph = lowered(ready={"op": "and", "of": [SMALL, CALM]})
    assert wires(graph) == {
        "path:size -> compute:ready/0 found",
        "path:risk.level -> compute:ready/1/0 found",
        "compute:ready/1/0 -> compute:ready/1 of",
        "compute:ready/0 -> compute:ready of.0",
        "compute:ready/1 -> compute:ready of.1",
        "compute:ready -> trigger:ready when",
    }
    assert validate_graph(graph) == ()


def test_parts_that_read_the_same_input_share_one_source() -> None:
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
    assert {"loop_control -> compute:on found", "constant:true -> compute:any found"} <= wires(graph)
    assert validate_graph(graph) == ()


def test_an_assignment_becomes_an_action_with_a_gate_for_each_condition() -> None:
    graph = lowered(Assignment(key="mode", path="wish", when=("one", "two")), one=SMALL, two=CALM)
    assert {
        f"{trigger_id('one')} -> action:mode gate.0",
        f"{trigger_id('two')} -> action:mode gate.1",
        "path:wish -> action:mode value",
    } <= wires(graph)
    assert validate_graph(graph) == ()


def test_an_unconditional_assignment_is_gated_by_a_trigger_that_always_emits() -> None:
    graph = lowered(Assignment(key="a", value=1), Assignment(key="b", value=2))
    assert [name for name in ids(graph) if name.startswith("trigger")] == ["trigger:*"]
    assert validate_graph(graph) == ()


def test_the_same_input_in_another_order_gives_the_same_graph() -> None:
    one = lowered(Assignment(key="a", value=1), Assignment(key="b", value=2), one=SMALL, two=CALM)
    other = lowered(Assignment(key="b", value=2), Assignment(key="a", value=1), two=CALM, one=SMALL)
    assert one.digest() == other.digest()


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ((Assignment(key="a", value=1), Assignment(key="a", value=2)), "duplicate_write"),
        ((Assignment(key="a", value=1), Assignment(key="b", path="a.part")), "same_pass_read_after_write"),
        ((Assignment(key="size", value="large"),), "same_pass_read_after_write"),
        ((Assignment(key="a", value=1, when=("nobody",)),), "unknown_node"),
    ],
)
def test_a_key_that_cannot_be_set_in_one_pass_is_a_fault_of_the_graph(
    assignments: tuple[Assignment, ...], code: str
) -> None:
    assert code in [fault.code for fault in validate_graph(lowered(*assignments, one=SMALL))]


def test_a_key_may_be_set_where_a_condition_on_it_holds() -> None:
    assert validate_graph(lowered(Assignment(key="size", value="large", when=("one",)), one=SMALL)) == ()
