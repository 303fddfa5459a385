"""A run as a graph, with its preferred tip (READ-3)."""

from collections.abc import Iterator

from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import NodeId, RunId, fork_attempt, node_of_attempt
from interlock.views.session import Node, Session


@frozen
class GraphNode:
    """A node of a run, its children and its checkpoints, and whether the run prefers it."""

    node: Node
    children: tuple["GraphNode", ...]
    is_tip: bool
    checkpoints: tuple[Node, ...] = ()


def run_graph(session: Session, run: RunId) -> GraphNode:
    """Build the graph of a run from its root; children are in log order. Without recursion, as runs can be deep."""
    run_state = session.runs[run]
    assert run_state.root is not None, "a run has a root"
    order = list(_below(session, run_state.root))
    kept = _checkpoints(session, run)
    built: dict[NodeId, GraphNode] = {}
    for node in reversed(order):
        children = tuple(built[child] for child in node.children)
        built[node.node] = GraphNode(
            node=node,
            children=children,
            is_tip=node.node == run_state.tip,
            checkpoints=tuple(kept.get(node.node, ())),
        )
    return built[run_state.root]


def leaves(graph: GraphNode) -> Iterator[GraphNode]:
    """Yield the nodes without children."""
    return (here for here in walk(graph) if not here.children)


def walk(graph: GraphNode) -> Iterator[GraphNode]:
    """Yield every node, parents before their children."""
    stack = [graph]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(reversed(here.children))


def newest_part(graph: GraphNode, nodes_max: int) -> GraphNode:
    """Return the largest part of a run with at most so many nodes that ends at its preferred tip and begins at a node.

    A tip with more nodes below it is returned as it is.
    """
    order = list(walk(graph))
    sizes, parents = dict[NodeId, int](), dict[NodeId, GraphNode]()
    for here in reversed(order):
        sizes[here.node.node] = 1 + sum(sizes[child.node.node] for child in here.children)
        parents.update((child.node.node, here) for child in here.children)
    found = next((here for here in order if here.is_tip), graph)
    while (above := parents.get(found.node.node)) is not None and sizes[above.node.node] <= nodes_max:
        found = above
    return found


def preferred_branch(graph: GraphNode) -> GraphNode:
    """Return the nodes from a node to the preferred tip, without other branches; the graph itself has no such tip."""
    order, path = list(walk(graph)), list[GraphNode]()
    parents = {child.node.node: here for here in order for child in here.children}
    here = next((one for one in order if one.is_tip), None)
    if here is None:
        return graph
    while here is not None:
        path.append(here)
        here = parents.get(here.node.node)
    branch = replace(path[0], children=())
    for above in path[1:]:
        branch = replace(above, children=(branch,))
    return branch


def split_children(here: GraphNode) -> tuple[GraphNode | None, list[GraphNode]]:
    """Split the children of a node: the child of the ordinary attempt, and the children of forks (ID-2)."""
    made_by_forks = {node_of_attempt(fork_attempt(here.node.node, number)) for number in range(here.node.forks)}
    forks = [child for child in here.children if child.node.node in made_by_forks]
    ordinary = [child for child in here.children if child.node.node not in made_by_forks]
    return (ordinary[0] if ordinary else None), forks


def _checkpoints(session: Session, run: RunId) -> dict[NodeId, list[Node]]:
    """Return a run's checkpoints by their parent node, in log order; nodes do not list them as children (CHK-1)."""
    found: dict[NodeId, list[Node]] = {}
    checkpoints = (node for node in session.nodes.values() if node.kind == "checkpoint" and node.run == run)
    for node in sorted(checkpoints, key=lambda node: node.index):
        if node.parent is not None:
            found.setdefault(node.parent, []).append(node)
    return found


def _below(session: Session, root: NodeId) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = session.nodes[stack.pop()]
        yield node
        stack.extend(reversed(node.children))
