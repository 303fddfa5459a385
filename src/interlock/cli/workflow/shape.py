"""A plan as it reads: parts one after the other, with the ways of decisions and the bodies of loops inside them."""

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.decide.condition import Always, describe_condition
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.graph import Graphs
from interlock.plan.records import NOTES_CONTRACT, Plan, PlanEdge, PlanNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way out of a decision or into a branch, up to where all of them meet."""

    words: str
    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A node with what stands inside it."""

    node: PlanNode
    ways: tuple[Way, ...] = ()
    body: tuple["Part", ...] = ()


def shape_of(workflow: CompiledWorkflow) -> tuple[Part, ...]:
    """Return the parts of a plan that was found fit to run."""
    return _Shaper(workflow.graphs, meetings(workflow.plan, workflow.graphs)).scope(None)


def facts_of(node: PlanNode) -> list[str]:
    """Return what sets a node apart from a plain step of an agent, in a few words each."""
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
    """Return when an edge is taken; nothing where it always is."""
    if edge.condition_id is not None:
        return f"if {describe_condition(graphs.conditions[edge.condition_id])}"
    return "otherwise" if graphs.nodes[edge.source].kind == "decision" else ""


def meetings(plan: Plan, graphs: Graphs) -> Mapping[str, str]:
    """Return for each node the nearest one that every way from it comes by; none for the ends."""
    meets: dict[str, str] = {}
    depth: dict[str, int] = {}
    # Nodes stand in an order of their edges, so that what a node leads to is known before it.
    for node in reversed(plan.nodes):
        targets = [edge.target for edge in graphs.out_edges.get(node.node_id, ())]
        if not targets:
            depth[node.node_id] = 0
            continue
        common = targets[0]
        for other in targets[1:]:
            while common != other:
                deeper, common = (other, common) if depth[other] > depth[common] else (common, other)
                other = meets[deeper]  # noqa: PLW2901 — the one that lies further from the end moves on
        meets[node.node_id] = common
        depth[node.node_id] = depth[common] + 1
    return meets


@dataclass(frozen=True, slots=True)
class _Shaper:
    graphs: Graphs
    meets: Mapping[str, str]

    def scope(self, loop_id: str | None) -> tuple[Part, ...]:
        return self._parts(self.graphs.members[loop_id][0].node_id, None)

    def _parts(self, here: str | None, stop: str | None) -> tuple[Part, ...]:
        """Return the parts from a node up to another, or to the end of the graph."""
        parts: list[Part] = []
        while here is not None and here != stop:
            node = self.graphs.nodes[here]
            following = self.meets.get(here)
            # The end of a loop's body says nothing that the loop does not.
            if node.kind != "terminal" or self.graphs.scope_of[here] is None:
                parts.append(Part(node=node, ways=self._ways(node, following), body=self._body(node)))
            here = following
        return tuple(parts)

    def _ways(self, node: PlanNode, stop: str | None) -> tuple[Way, ...]:
        if node.kind not in {"decision", "fan_out"}:
            return ()
        edges = self.graphs.out_edges.get(node.node_id, ())
        return tuple(
            Way(
                words=self._way_words(edge, number) + (": go on" if edge.target == stop else ""),
                parts=self._parts(edge.target, stop),
            )
            for number, edge in enumerate(edges, start=1)
        )

    def _way_words(self, edge: PlanEdge, number: int) -> str:
        return way_words(self.graphs, edge) or f"branch {number}"

    def _body(self, node: PlanNode) -> tuple[Part, ...]:
        return self.scope(node.node_id) if node.kind == "loop" else ()
