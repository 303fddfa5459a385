"""Checks whether a decision graph can be evaluated. Reports every fault at once, before evaluation."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from interlock.decide.graph import Action, Compute, DecisionGraph, Edge, Node, PortType, Source, Trigger
from interlock.kernel.frozen import frozen

GraphFaultCode = Literal[
    "duplicate_id",
    "unknown_node",
    "forbidden_wiring",
    "unknown_port",
    "port_type_mismatch",
    "port_taken",
    "missing_input",
    "action_not_gated",
    "cycle",
    "duplicate_write",
]


@frozen
class GraphFault:
    """A fault of a graph: what is wrong, at which nodes, ports or context key."""

    code: GraphFaultCode
    nodes: tuple[str, ...]
    ports: tuple[str, ...] = ()
    key: str = ""
    message: str


_WIRING = frozenset(
    {
        ("source", "compute"),
        ("source", "action"),
        ("compute", "compute"),
        ("compute", "trigger"),
        ("compute", "action"),
        ("trigger", "trigger"),
        ("trigger", "action"),
    }
)
"""The allowed edges, by kind of source and target node."""


def _yields(node: Node) -> PortType:
    if isinstance(node, Compute):
        return "value" if node.is_value else "truth"
    return "event" if isinstance(node, Trigger) else "value"


def validate_graph(graph: DecisionGraph) -> tuple[GraphFault, ...]:
    """Return every fault of a graph, ordered by code and node. Of several cycles, only one is reported."""
    nodes = {node.id: node for node in graph.nodes}
    faults = [*_check_ids(graph), *_check_edges(graph, nodes), *_check_inputs(graph, nodes)]
    faults += [*_check_cycles(graph, nodes), *_check_writes(graph)]
    return tuple(sorted(set(faults), key=lambda one: (one.code, one.nodes, one.ports, one.key, one.message)))


def _check_ids(graph: DecisionGraph) -> Iterator[GraphFault]:
    seen: set[str] = set()
    for node in graph.nodes:
        if node.id in seen:
            yield GraphFault(code="duplicate_id", nodes=(node.id,), message=f"Two nodes have the id {node.id!r}.")
        seen.add(node.id)


def _check_edges(graph: DecisionGraph, nodes: Mapping[str, Node]) -> Iterator[GraphFault]:
    for edge in graph.edges:
        missing = [end for end in (edge.source, edge.target) if end not in nodes]
        if missing:
            message = f"There is no node {missing[0]!r}, which an edge from {edge.source!r} to {edge.target!r} names."
            yield GraphFault(code="unknown_node", nodes=tuple(missing), message=message)
        elif (fault := _check_edge(edge, nodes[edge.source], nodes[edge.target])) is not None:
            yield fault


def _check_edge(edge: Edge, source: Node, target: Node) -> GraphFault | None:
    """Return what is wrong with an edge between two existing nodes."""
    ends = (source.id, target.id)
    if (source.kind, target.kind) not in _WIRING:
        message = f"The {source.kind} {source.id!r} must not lead to the {target.kind} {target.id!r}."
        return GraphFault(code="forbidden_wiring", nodes=ends, message=message)
    accepted: PortType | None = next((port.type for port in target.ports if port.name == edge.port), None)
    if accepted is None:
        message = f"{target.id!r} has no port {edge.port!r}."
        return GraphFault(code="unknown_port", nodes=ends, ports=(edge.port,), message=message)
    given = _yields(source)
    if accepted == given or (accepted == "value" and given == "truth"):
        return None
    needed = f"the port {edge.port!r} of {target.id!r} takes {_add_article(accepted)}"
    message = f"{source.id!r} yields {_add_article(given)}, and {needed}."
    return GraphFault(code="port_type_mismatch", nodes=ends, ports=(edge.port,), message=message)


def _add_article(kind: PortType) -> str:
    return f"{'an' if kind == 'event' else 'a'} {kind}"


def _check_inputs(graph: DecisionGraph, nodes: Mapping[str, Node]) -> Iterator[GraphFault]:
    """Check that exactly one edge leads into every port, and that a trigger gates every action."""
    into: dict[tuple[str, str], list[str]] = defaultdict(list)
    for edge in graph.edges:
        into[edge.target, edge.port].append(edge.source)
    for (target, port), sources in into.items():
        if len(sources) > 1:
            message = f"{len(sources)} edges lead into the port {port!r} of {target!r}."
            yield GraphFault(code="port_taken", nodes=(target, *sorted(sources)), ports=(port,), message=message)
    for node in graph.nodes:
        ports = node.ports
        empty = [port for port in ports if (node.id, port.name) not in into]
        events = {source for port in ports if port.type == "event" for source in into.get((node.id, port.name), ())}
        if isinstance(node, Action) and not any(one in nodes and nodes[one].kind == "trigger" for one in events):
            message = f"No trigger gates the action {node.id!r}."
            yield GraphFault(code="action_not_gated", nodes=(node.id,), message=message)
            empty = [port for port in empty if port.type != "event"]
        for port in empty:
            message = f"Nothing leads into the port {port.name!r} of {node.id!r}."
            yield GraphFault(code="missing_input", nodes=(node.id,), ports=(port.name,), message=message)
        if not ports and not isinstance(node, Source):
            message = f"Nothing leads into {node.id!r}: it has no ports."
            yield GraphFault(code="missing_input", nodes=(node.id,), message=message)


def _check_cycles(graph: DecisionGraph, nodes: Mapping[str, Node]) -> Iterator[GraphFault]:
    before: dict[str, list[str]] = {node_id: [] for node_id in sorted(nodes)}
    for edge in sorted(graph.edges, key=lambda edge: (edge.target, edge.source)):
        if edge.source in nodes and edge.target in nodes:
            before[edge.target].append(edge.source)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        around: list[str] = error.args[1]
        message = f"The graph has a cycle: {' -> '.join(around)}."
        yield GraphFault(code="cycle", nodes=tuple(around[:-1]), message=message)


def _check_writes(graph: DecisionGraph) -> Iterator[GraphFault]:
    """Check that only one action sets a key: no order would say which value counts."""
    writers: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for key in node.effect.keys if isinstance(node, Action) else ():
            writers[key].append(node.id)
    for key, actions in writers.items():
        if len(actions) > 1:
            message = f"{len(actions)} actions set the key {key!r}."
            yield GraphFault(code="duplicate_write", nodes=tuple(sorted(actions)), key=key, message=message)
