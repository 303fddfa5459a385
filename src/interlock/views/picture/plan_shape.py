"""A plan as a tree: a sequence of parts, with the paths of decisions and the bodies of loops inside them."""

from collections.abc import Mapping
from dataclasses import field

from interlock.decide.condition import Always, describe_condition
from interlock.kernel.frozen import frozen, positional
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs, find_meetings
from interlock.plan.records import NOTES_CONTRACT, PlanEdge, PlanNode


@frozen
class OutgoingPath:
    """One path out of a node that begins branches, up to the node where all paths meet."""

    words: str
    parts: tuple["ShapeNode", ...]


@frozen
class ShapeNode:
    """A node with the parts inside it."""

    node: PlanNode
    ways: tuple[OutgoingPath, ...] = ()
    body: tuple["ShapeNode", ...] = ()


def shape_of(workflow: CompiledWorkflow) -> tuple[ShapeNode, ...]:
    """Return the parts of a valid plan."""
    return _Shaper(workflow.graphs, find_meetings(workflow.plan, workflow.graphs)).scope(None)


def facts_of(node: PlanNode) -> list[str]:
    """Return short phrases for each difference of a node from an ordinary step of an agent."""
    facts: list[str] = []
    if node.owner not in {"agent", "harness"}:
        facts.append(node.owner)
    if node.evidence_schema_ref not in {None, NOTES_CONTRACT}:
        facts.append(f"gives {node.evidence_schema_ref}")
    confirmation = node.task.confirmation if node.task is not None else None
    if confirmation is not None:
        when = "" if isinstance(confirmation, Always) else f" when {describe_condition(confirmation)}"
        facts.append(f"needs confirmation{when}")
    if node.provenance.source != "authored":
        facts.append(f"from {node.provenance.origin_id}")
    return facts


def way_words(graphs: Graphs, edge: PlanEdge) -> str:
    """Render the condition of an edge; empty if the edge is always taken."""
    if edge.condition_id is not None:
        return f"if {describe_condition(graphs.conditions[edge.condition_id])}"
    return "otherwise" if graphs.nodes[edge.source].kind == "decision" else ""


@positional
class _Shaper:
    graphs: Graphs
    meets: Mapping[str, str]
    drawn: set[str] = field(default_factory=set[str])

    def scope(self, loop_id: str | None) -> tuple[ShapeNode, ...]:
        return self._parts(self.graphs.members[loop_id][0].node_id, None)

    def _parts(self, here: str | None, stop: str | None) -> tuple[ShapeNode, ...]:
        """Return the parts from a node up to another, or to the end of the graph."""
        parts: list[ShapeNode] = []
        # Branches of a plan from outside may share nodes before they meet: each is drawn once, where it is first met.
        while here is not None and here != stop and here not in self.drawn:
            self.drawn.add(here)
            node = self.graphs.nodes[here]
            following = self.meets.get(here)
            # The end of a loop's body adds nothing to the loop.
            if node.kind != "terminal" or self.graphs.scope_of[here] is None:
                parts.append(ShapeNode(node=node, ways=self._ways(node, following), body=self._body(node)))
            here = following
        return tuple(parts)

    def _ways(self, node: PlanNode, stop: str | None) -> tuple[OutgoingPath, ...]:
        if not self.graphs.branches_at(node.node_id):
            return ()
        edges = self.graphs.out_edges.get(node.node_id, ())
        return tuple(
            OutgoingPath(
                words=self._way_words(edge, number) + self._onward(edge, stop),
                parts=self._parts(edge.target, stop),
            )
            for number, edge in enumerate(edges, start=1)
        )

    def _way_words(self, edge: PlanEdge, number: int) -> str:
        return way_words(self.graphs, edge) or f"branch {number}"

    def _onward(self, edge: PlanEdge, stop: str | None) -> str:
        if edge.target == stop:
            return ": continue"
        return f": continue with {edge.target}" if edge.target in self.drawn else ""

    def _body(self, node: PlanNode) -> tuple[ShapeNode, ...]:
        return self.scope(node.node_id) if node.kind == "loop" else ()
