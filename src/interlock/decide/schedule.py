"""The evaluation order of a graph's nodes: along the edges, and by id among nodes that are ready."""

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush

from interlock.decide.graph import DecisionGraph, Node
from interlock.decide.validate import GraphFault, validate_graph
from interlock.kernel.frozen import frozen


@frozen
class ScheduledNode:
    """A node, and the id of the node that leads into each of its ports, in the order of the ports."""

    node: Node
    inputs: Mapping[str, str]


@frozen
class Schedule:
    """A graph without faults, in evaluation order. It holds no state of a pass, so it can be cached with the graph."""

    nodes: tuple[ScheduledNode, ...]


def build_schedule(graph: DecisionGraph) -> Schedule | tuple[GraphFault, ...]:
    """Order a graph's nodes for evaluation, or return its faults.

    Among nodes whose inputs are all ordered already, the smallest id is next. Ids are compared by code point.
    """
    faults = validate_graph(graph)
    if faults:
        return faults
    nodes = {node.id: node for node in graph.nodes}
    sources = {(edge.target, edge.port): edge.source for edge in graph.edges}
    inputs = {node.id: {port.name: sources[node.id, port.name] for port in node.ports} for node in graph.nodes}
    ordered = _order_nodes({node: tuple(into.values()) for node, into in inputs.items()})
    return Schedule(nodes=tuple(ScheduledNode(node=nodes[one], inputs=inputs[one]) for one in ordered))


def _order_nodes(before: Mapping[str, Iterable[str]]) -> list[str]:
    sorter = TopologicalSorter(before)
    sorter.prepare()
    ready = list(sorter.get_ready())
    heapify(ready)
    order: list[str] = []
    while ready:
        order.append(heappop(ready))
        sorter.done(order[-1])
        for node_id in sorter.get_ready():
            heappush(ready, node_id)
    return order
