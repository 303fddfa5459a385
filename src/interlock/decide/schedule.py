"""The evaluation order of a graph's nodes: along the edges, and by id among nodes that are ready."""

from dataclasses import dataclass
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush

from interlock.decide.graph import DecisionGraph, Node, Source
from interlock.decide.validate import Declared, GraphFault, validate_graph


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledNode:
    """A node, the ids of its inputs in the order of its ports, and the context path of its last input."""

    node: Node
    inputs: tuple[str, ...]
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A graph without faults, in evaluation order. It holds no state of a pass, so it can be cached with the graph."""

    nodes: tuple[ScheduledNode, ...]


def build_schedule(graph: DecisionGraph, declared: Declared | None = None) -> Schedule | tuple[GraphFault, ...]:
    """Order a graph's nodes for evaluation, or return its faults.

    Among nodes whose inputs are all ordered already, the smallest id is next. Ids are compared by code point.
    """
    faults = validate_graph(graph, declared)
    if faults:
        return faults
    nodes = {node.id: node for node in graph.nodes}
    sources = {(edge.target, edge.port): edge.source for edge in graph.edges}
    inputs = {node.id: tuple(sources[node.id, port.name] for port in node.ports) for node in graph.nodes}
    return Schedule(
        nodes=tuple(
            ScheduledNode(node=nodes[one], inputs=inputs[one], path=_find_read_path(nodes, inputs[one]))
            for one in _order_nodes(inputs)
        )
    )


def _find_read_path(nodes: dict[str, Node], inputs: tuple[str, ...]) -> str | None:
    """Return the context path of the last input: the payload of an action, or the only input of a comparison."""
    last = nodes[inputs[-1]] if inputs else None
    return last.path if isinstance(last, Source) else None


def _order_nodes(inputs: dict[str, tuple[str, ...]]) -> list[str]:
    sorter = TopologicalSorter(inputs)
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
