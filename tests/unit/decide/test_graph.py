"""A decision graph as it is stored, and every fault that prevents its evaluation."""

from typing import Any

import pytest

from interlock.decide.graph import DecisionGraph, Edge, Node
from interlock.decide.schedule import Schedule, build_schedule
from interlock.decide.validate import validate_graph
from interlock.kernel.shape import ShapeError

PATH: dict[str, Any] = {"kind": "source", "id": "s", "reads": {"kind": "path", "path": "a.b"}}
COMPARE: dict[str, Any] = {"kind": "compute", "id": "c", "name": "n", "of": {"op": "equals", "var": "a.b", "value": 1}}
TRIGGER: dict[str, Any] = {"kind": "trigger", "id": "t"}
SET: dict[str, Any] = {"kind": "action", "id": "x", "effect": {"kind": "set", "key": "k"}}
WHOLE = [PATH, COMPARE, TRIGGER, SET]
WIRES = ["s c path:a.b", "c t when", "t x gate.0", "s x value"]


def graph(nodes: list[dict[str, Any]], wires: list[str]) -> DecisionGraph:
    edges = [dict(zip(("source", "target", "port"), wire.split(), strict=True)) for wire in wires]
    return DecisionGraph.of_json({"v": 1, "nodes": nodes, "edges": edges})


def faults(nodes: list[dict[str, Any]], wires: list[str]) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(fault.code, fault.nodes, fault.ports) for fault in validate_graph(graph(nodes, wires))]


def both(name: str, *paths: str) -> dict[str, Any]:
    of = [{"op": "exists", "var": path, "value": True} for path in paths]
    return {"kind": "compute", "id": name, "name": name, "of": {"op": "and", "of": of}}


def setting(name: str, key: str) -> dict[str, Any]:
    return {"kind": "action", "id": name, "effect": {"kind": "set", "key": key}}


def test_a_whole_graph_has_no_fault() -> None:
    assert faults(WHOLE, WIRES) == []
    assert isinstance(build_schedule(graph(WHOLE, WIRES)), Schedule)


def test_a_graph_read_and_written_again_is_the_same() -> None:
    held = graph(WHOLE, WIRES)
    assert DecisionGraph.of_json(held.to_json()).to_json() == held.to_json()
    assert held.to_json()["nodes"] == sorted(WHOLE, key=lambda node: node["id"])


def test_the_order_in_which_parts_are_listed_does_not_change_the_digest() -> None:
    held = graph(WHOLE, WIRES)
    assert graph(WHOLE[::-1], WIRES[::-1]).digest() == held.digest()
    assert graph([{**PATH, "id": "s2"}, *WHOLE[1:]], WIRES).digest() != held.digest()


@pytest.mark.parametrize(
    "wrong",
    [
        {**SET, "effect": {"kind": "intent", "key": "k"}},
        {**SET, "gates": 0},
        {**COMPARE, "of": {"op": "power"}},
        {**COMPARE, "of": {"op": "and", "of": []}},
        {**PATH, "kind": "effect"},
        {**PATH, "state": 1},
    ],
    ids=repr,
)
def test_what_is_not_in_the_closed_sets_is_no_node(wrong: dict[str, Any]) -> None:
    with pytest.raises(ShapeError):
        graph([wrong], [])


@pytest.mark.inv("DEC-3")
def test_a_cycle_is_refused_with_the_nodes_on_it_and_no_schedule() -> None:
    nodes = [both("a", "b"), both("b", "a"), both("below", "b")]
    wires = ["a b path:a", "b a path:b", "b below path:b"]
    (found,) = validate_graph(graph(nodes, wires))
    assert (found.code, set(found.nodes)) == ("cycle", {"a", "b"})
    assert "a" in found.message
    assert build_schedule(graph(nodes, wires)) == (found,)
    assert validate_graph(graph(nodes[::-1], wires[::-1])) == (found,)


def test_of_several_cycles_the_same_one_is_reported_in_any_listing_order() -> None:
    nodes = [both("a", "b", "d"), both("b", "c"), both("c", "b"), both("d", "e"), both("e", "d")]
    wires = ["b a path:b", "d a path:d", "b c path:b", "c b path:c", "d e path:d", "e d path:e"]
    fault_sets = {validate_graph(graph(nodes, [*wires[at:], *wires[:at]])) for at in range(len(wires))}
    fault_sets |= {validate_graph(graph(nodes[::-1], wires[::-1]))}
    assert [[fault.code for fault in faults] for faults in fault_sets] == [["cycle"]]


@pytest.mark.inv("DEC-7")
def test_a_cycle_of_triggers_is_refused() -> None:
    nodes = [{"kind": "trigger", "id": name, "isConditional": False, "after": 1} for name in "ab"]
    assert [code for code, _, _ in faults(nodes, ["a b after.0", "b a after.0"])] == ["cycle"]


@pytest.mark.inv("DEC-3")
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("s", "t"),
        ("s", "s2"),
        ("c", "s"),
        ("t", "s"),
        ("t", "c2"),
        ("x", "s"),
        ("x", "c2"),
        ("x", "t2"),
        ("x", "x2"),
    ],
)
def test_forbidden_wiring_is_refused_with_both_ids(source: str, target: str) -> None:
    more = [{**node, "id": f"{node['id']}2"} for node in WHOLE]
    wires = [*WIRES, f"{source} {target} found"]
    assert ("forbidden_wiring", (source, target), ()) in faults([*WHOLE, *more], wires)


@pytest.mark.inv("DEC-3")
@pytest.mark.parametrize(
    ("nodes", "wire", "port"),
    [
        (WHOLE, "s x gate.0", "gate.0"),
        (WHOLE, "c x gate.0", "gate.0"),
        (WHOLE, "t x value", "value"),
        ([*WHOLE, {**TRIGGER, "id": "t2", "after": 1}], "t t2 when", "when"),
        ([*WHOLE, {**TRIGGER, "id": "t2", "after": 1}], "c t2 after.0", "after.0"),
    ],
)
def test_an_event_and_a_value_do_not_fit_into_each_others_ports(
    nodes: list[dict[str, Any]], wire: str, port: str
) -> None:
    source, target, _ = wire.split()
    assert ("port_type_mismatch", (source, target), (port,)) in faults(nodes, [*WIRES, wire])


def test_a_truth_may_be_compared_and_set() -> None:
    nodes = [*WHOLE, both("again", "c")]
    assert faults(nodes, [*WIRES[:3], "c again path:c", "c x value"]) == []


def test_a_port_that_a_node_does_not_have_is_refused() -> None:
    assert ("unknown_port", ("s", "c"), ("of",)) in faults(WHOLE, [*WIRES, "s c of"])


@pytest.mark.inv("DEC-3")
def test_an_action_with_values_alone_is_not_gated() -> None:
    assert faults(WHOLE, ["s c path:a.b", "c t when", "s x value"]) == [("action_not_gated", ("x",), ())]
    scalar = faults(WHOLE, ["s c path:a.b", "c t when", "s x value", "c x gate.0"])
    assert [code for code, _, _ in scalar] == ["action_not_gated", "port_type_mismatch"]


@pytest.mark.inv("DEC-3")
def test_two_edges_into_one_port_are_refused() -> None:
    nodes = [*WHOLE, {**PATH, "id": "s2"}]
    assert faults(nodes, [*WIRES, "s2 c path:a.b"]) == [("port_taken", ("c", "s", "s2"), ("path:a.b",))]


@pytest.mark.inv("DEC-3")
@pytest.mark.parametrize(
    ("without", "node", "port"),
    [("s c path:a.b", "c", "path:a.b"), ("c t when", "t", "when"), ("s x value", "x", "value")],
)
def test_a_missing_input_is_refused(without: str, node: str, port: str) -> None:
    assert faults(WHOLE, [wire for wire in WIRES if wire != without]) == [("missing_input", (node,), (port,))]


def test_one_part_of_several_and_one_gate_of_several_may_not_be_missing() -> None:
    nodes = [*WHOLE[:3], {**SET, "gates": 2}, both("and", "a", "b")]
    assert faults(nodes, [*WIRES, "c and path:b"]) == [
        ("missing_input", ("and",), ("path:a",)),
        ("missing_input", ("x",), ("gate.1",)),
    ]


def test_a_trigger_turns_on_something() -> None:
    assert faults([{**TRIGGER, "isConditional": False}], []) == [("missing_input", ("t",), ())]


def test_an_edge_from_or_to_no_node_is_refused() -> None:
    found = faults(WHOLE, [*WIRES, "gone t when", "t nowhere when"])
    assert {nodes for code, nodes, _ in found if code == "unknown_node"} == {("gone",), ("nowhere",)}


def test_two_nodes_with_one_id_are_refused() -> None:
    assert faults([*WHOLE, PATH], WIRES) == [("duplicate_id", ("s",), ())]


@pytest.mark.inv("DEC-3")
def test_two_actions_on_one_key_are_refused() -> None:
    nodes = [*WHOLE, setting("y", "k")]
    (found,) = validate_graph(graph(nodes, [*WIRES, "t y gate.0", "s y value"]))
    assert (found.code, found.nodes, found.key) == ("duplicate_write", ("x", "y"), "k")


def test_every_fault_is_reported_at_once_in_one_order() -> None:
    nodes = [*WHOLE, PATH, {**TRIGGER, "id": "alone"}]
    wires = [*WIRES, "s t when", "c x gate.0"]
    found = validate_graph(graph(nodes, wires))
    assert found == validate_graph(graph(nodes[::-1], wires[::-1]))
    codes = ["duplicate_id", "forbidden_wiring", "missing_input", "port_taken", "port_taken", "port_type_mismatch"]
    assert [one.code for one in found] == codes


def test_nodes_and_edges_cannot_be_changed() -> None:
    held = graph(WHOLE, WIRES)
    parts: list[Node | Edge] = [held.nodes[0], held.edges[0]]
    for part in parts:
        with pytest.raises(AttributeError, match="immutable"):
            part.id = "other"  # type: ignore[union-attr,misc]  # pyright: ignore[reportAttributeAccessIssue]
