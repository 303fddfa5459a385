"""A plan as a tree: a sequence of parts, with the paths of decisions and the bodies of loops inside them."""

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.decide.condition import Always, describe_condition
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.records import NOTES_CONTRACT, Plan, PlanEdge, PlanNode


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingPath:
    """One path out of a decision or into a branch, up to the node where all paths meet."""

    words: str
    parts: tuple["ShapeNode", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeNode:
    """A node with the parts inside it."""

    node: PlanNode
    ways: tuple[OutgoingPath, ...] = ()
    body: tuple["ShapeNode", ...] = ()


def shape_of(workflow: CompiledWorkflow) -> tuple[ShapeNode, ...]:
    """Return the parts of a valid plan."""
    return _Shaper(workflow.graphs, meetings(workflow.plan, workflow.graphs)).scope(None)


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


def meetings(plan: Plan, graphs: Graphs) -> Mapping[str, str]:
    """Return for each node the nearest node on every path from it; end nodes have none."""
    meets: dict[str, str] = {}
    depth: dict[str, int] = {}
    # Plans list nodes in topological order, so in reverse the targets of a node come before it.
    for node in reversed(plan.nodes):
        targets = [edge.target for edge in graphs.out_edges.get(node.node_id, ())]
        if not targets:
            depth[node.node_id] = 0
            continue
        common = targets[0]
        for other in targets[1:]:
            while common != other:
                deeper, common = (other, common) if depth[other] > depth[common] else (common, other)
                other = meets[deeper]  # noqa: PLW2901 — the node further from the end advances
        meets[node.node_id] = common
        depth[node.node_id] = depth[common] + 1
    return meets


@dataclass(frozen=True, slots=True)
class _Shaper:
    graphs: Graphs
    meets: Mapping[str, str]

    def scope(self, loop_id: str | None) -> tuple[ShapeNode, ...]:
        return self._parts(self.graphs.members[loop_id][0].node_id, None)

    def _parts(self, here: str | None, stop: str | None) -> tuple[ShapeNode, ...]:
        """Return the parts from a node up to another, or to the end of the graph."""
        parts: list[ShapeNode] = []
        while here is not None and here != stop:
            node = self.graphs.nodes[here]
            following = self.meets.get(here)
            # The end of a loop's body adds nothing to the loop.
            if node.kind != "terminal" or self.graphs.scope_of[here] is None:
                parts.append(ShapeNode(node=node, ways=self._ways(node, following), body=self._body(node)))
            here = following
        return tuple(parts)

    def _ways(self, node: PlanNode, stop: str | None) -> tuple[OutgoingPath, ...]:
        if node.kind not in {"decision", "fan_out"}:
            return ()
        edges = self.graphs.out_edges.get(node.node_id, ())
        return tuple(
            OutgoingPath(
                words=self._way_words(edge, number) + (": continue" if edge.target == stop else ""),
                parts=self._parts(edge.target, stop),
            )
            for number, edge in enumerate(edges, start=1)
        )

    def _way_words(self, edge: PlanEdge, number: int) -> str:
        return way_words(self.graphs, edge) or f"branch {number}"

    def _body(self, node: PlanNode) -> tuple[ShapeNode, ...]:
        return self.scope(node.node_id) if node.kind == "loop" else ()
