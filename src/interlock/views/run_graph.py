"""A run as a graph, and its preferred tip by the locked definition (locks 1.1, 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.kernel.ids import NodeId, RunId
from interlock.views.session import Node, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of a run, its children, and whether the run prefers it."""

    node: Node
    children: tuple["GraphNode", ...]
    is_tip: bool


def run_graph(session: Session, run: RunId) -> GraphNode:
    """Return a run's graph from its root, children in the order they came. Built without recursion."""
    facts = session.runs[run]
    assert facts.root is not None, "a run has a root"
    order = list(_below(session, facts.root))
    built: dict[NodeId, GraphNode] = {}
    for node in reversed(order):
        children = tuple(built[child] for child in node.children)
        built[node.node] = GraphNode(node=node, children=children, is_tip=node.node == facts.tip)
    return built[facts.root]


def leaves(graph: GraphNode) -> Iterator[GraphNode]:
    """Yield the nodes without children."""
    stack = [graph]
    while stack:
        here = stack.pop()
        if not here.children:
            yield here
        stack.extend(reversed(here.children))


def _below(session: Session, root: NodeId) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = session.nodes[stack.pop()]
        yield node
        stack.extend(reversed(node.children))
