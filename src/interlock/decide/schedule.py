"""The order in which the nodes of a graph are evaluated: along its edges, and among what is ready by id."""

from dataclasses import dataclass
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush

from interlock.decide.graph import DecisionGraph, Node, Source
from interlock.decide.validate import Declared, GraphFault, validate_graph


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledNode:
    """A node, the nodes that lead into its ports in the ports' order, and the path its last input is read at."""

    node: Node
    inputs: tuple[str, ...]
    path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A graph without faults, in the order of its evaluation. Holds nothing of any pass; keep it beside the graph."""

    nodes: tuple[ScheduledNode, ...]


def build_schedule(graph: DecisionGraph, declared: Declared | None = None) -> Schedule | tuple[GraphFault, ...]:
    """Return the order of a graph's nodes, or why the graph cannot be evaluated.

    Among nodes whose inputs all come before, the one with the least id comes first; ids are compared by code point.
    """
    faults = validate_graph(graph, declared)
    if faults:
        return faults
    nodes = {node.id: node for node in graph.nodes}
    leading = {(edge.target, edge.port): edge.source for edge in graph.edges}
    inputs = {node.id: tuple(leading[node.id, port.name] for port in node.ports) for node in graph.nodes}
    return Schedule(
        nodes=tuple(
            ScheduledNode(node=nodes[one], inputs=inputs[one], path=_find_read_path(nodes, inputs[one]))
            for one in _order_nodes(inputs)
        )
    )


def _find_read_path(nodes: dict[str, Node], inputs: tuple[str, ...]) -> str | None:
    """Return the path of the last input, which is the value of an action and the only one of a comparison."""
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
