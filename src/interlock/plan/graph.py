"""A plan indexed for walking: the graph of every scope, the edges of every node, the loops around it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from interlock.decide.condition import Condition
from interlock.kernel.frozen import frozen
from interlock.plan.records import Loop, NodeKind, Plan, PlanEdge, PlanNode

if TYPE_CHECKING:
    from interlock.decide.schedule import Schedule


BARRIERS: frozenset[NodeKind] = frozenset({"fan_out", "fan_in"})
"""Nodes at which nobody works and nothing is decided: they are completed as soon as they are ready."""


@frozen
class Graphs:
    """The graphs of a plan. A scope is the body of a loop, named by it, or None: the graph around everything.

    `position_of` is the place of a node in its scope, in plan order.
    """

    nodes: Mapping[str, PlanNode]
    loops: Mapping[str, Loop]
    conditions: Mapping[str, Condition]
    members: Mapping[str | None, tuple[PlanNode, ...]]
    names: Mapping[str | None, tuple[str, ...]]
    scope_of: Mapping[str, str | None]
    position_of: Mapping[str, int]
    out_edges: Mapping[str, tuple[PlanEdge, ...]]
    in_edges: Mapping[str, tuple[PlanEdge, ...]]
    schedules: "dict[str, Schedule]" = field(default_factory=dict, compare=False, repr=False)
    step_schedules: "dict[str, Schedule]" = field(default_factory=dict, compare=False, repr=False)
    parallels: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False, repr=False)
    reaches: dict[str | None, dict[str, int]] = field(
        default_factory=dict[str | None, dict[str, int]], compare=False, repr=False
    )

    forks: dict[str | None, tuple[str, ...]] = field(
        default_factory=dict[str | None, tuple[str, ...]], compare=False, repr=False
    )

    def schedule(self, condition_id: str) -> "Schedule":
        """Return the decision graph of a condition, scheduled once and then kept (decision 18)."""
        if condition_id not in self.schedules:
            from interlock.plan.step_graph import schedule_condition  # noqa: PLC0415 — a report decides nothing

            self.schedules[condition_id] = schedule_condition(condition_id, self.conditions[condition_id])
        return self.schedules[condition_id]

    def actions(self, node_id: str) -> "Schedule":
        """Return the decision graph of what a step sets, scheduled once and then kept (decision 18)."""
        if node_id not in self.step_schedules:
            task = self.nodes[node_id].task
            assert task is not None, "only a task sets anything"
            from interlock.plan.step_graph import schedule_actions  # noqa: PLC0415 — see above

            self.step_schedules[node_id] = schedule_actions(task)
        return self.step_schedules[node_id]

    @classmethod
    def of(cls, plan: Plan) -> "Graphs":
        """Index a plan. Of duplicate ids the last one counts; validation reports them."""
        scope_of: dict[str, str | None] = {node.node_id: None for node in plan.nodes}
        scope_of |= {node_id: loop.loop_id for loop in plan.loops for node_id in loop.body}
        members: dict[str | None, list[PlanNode]] = defaultdict(list)
        for node in plan.nodes:
            members[scope_of[node.node_id]].append(node)
        out_edges: dict[str, list[PlanEdge]] = defaultdict(list)
        in_edges: dict[str, list[PlanEdge]] = defaultdict(list)
        for edge in plan.edges:
            out_edges[edge.source].append(edge)
            in_edges[edge.target].append(edge)
        return cls(
            nodes={node.node_id: node for node in plan.nodes},
            loops={loop.loop_id: loop for loop in plan.loops},
            conditions={named.condition_id: named.condition for named in plan.conditions},
            members={scope: tuple(nodes) for scope, nodes in members.items()},
            names={scope: tuple(node.node_id for node in nodes) for scope, nodes in members.items()},
            scope_of=scope_of,
            position_of={node.node_id: at for nodes in members.values() for at, node in enumerate(nodes)},
            out_edges={node: tuple(edges) for node, edges in out_edges.items()},
            in_edges={node: tuple(edges) for node, edges in in_edges.items()},
        )

    def loops_around(self, node_id: str) -> tuple[str, ...]:
        """Return the loops around a node, outermost first."""
        around: list[str] = []
        scope = self.scope_of[node_id]
        while scope is not None and scope not in around:
            around.append(scope)
            scope = self.scope_of[scope]
        return tuple(reversed(around))

    def parallel_to(self, node_id: str) -> tuple[str, ...]:
        """Return the other steps that need not wait for a step, in plan order.

        No path leads from one of the two steps to the other, and a node that takes all its edges leads to each of them
        by another edge. The branches of a choice are not parallel. A step in a loop is parallel to what its loop is
        parallel to.
        """
        if node_id not in self.parallels:
            self.parallels[node_id] = self._find_parallel(node_id)
        return self.parallels[node_id]

    def branches_at(self, node_id: str) -> bool:
        """Say whether a node begins branches: it is a decision or a split, or has several edges out of it."""
        return self.nodes[node_id].kind in {"decision", "fan_out"} or len(self.out_edges.get(node_id, ())) > 1

    def before(self, node_id: str) -> tuple[str, ...]:
        """Return the nodes of the same scope from which a path leads to a node, without splits and barriers."""
        scope = self.scope_of[node_id]
        reach, here = self._reach_in(scope), 1 << self.position_of[node_id]
        return tuple(
            node.node_id
            for node in self.members[scope]
            if node.node_id != node_id and node.kind not in BARRIERS and reach[node.node_id] & here
        )

    def _find_parallel(self, node_id: str) -> tuple[str, ...]:
        beside = {other for one in (*self.loops_around(node_id), node_id) for other in self._beside(one)}
        if not beside:
            return ()
        return tuple(
            other
            for other, node in self.nodes.items()
            if node.task is not None and not beside.isdisjoint((*self.loops_around(other), other))
        )

    def _beside(self, node_id: str) -> Iterator[str]:
        """Yield the nodes of the same scope that need not wait for a node."""
        scope = self.scope_of[node_id]
        forks = self._forks_in(scope)
        if not forks:
            return
        members, reach = self.members[scope], self._reach_in(scope)
        here = 1 << self.position_of[node_id]
        beside = 0
        for fork in forks:
            ways = [reach[edge.target] for edge in self.out_edges[fork]]
            toward = sum(1 for way in ways if way & here)
            if toward:
                for way in ways:
                    beside |= way if toward > 1 or not way & here else 0
        beside &= ~reach[node_id]
        for at, node in enumerate(members):
            if beside >> at & 1 and not reach[node.node_id] & here:
                yield node.node_id

    def _forks_in(self, scope: str | None) -> tuple[str, ...]:
        """Return the nodes of a scope that take more than one edge: without one, no two steps are parallel."""
        if scope not in self.forks:
            self.forks[scope] = tuple(
                node.node_id
                for node in self.members[scope]
                if node.kind != "decision" and len(self.out_edges.get(node.node_id, ())) > 1
            )
        return self.forks[scope]

    def _reach_in(self, scope: str | None) -> dict[str, int]:
        """Return for each node of a scope the nodes that a path leads to, itself included, as bits in plan order."""
        if scope not in self.reaches:
            reach: dict[str, int] = {}
            # Plans list nodes in topological order, so in reverse the targets of a node come before it.
            for at, node in reversed([*enumerate(self.members[scope])]):
                reached = 1 << at
                for edge in self.out_edges.get(node.node_id, ()):
                    reached |= reach[edge.target]
                reach[node.node_id] = reached
            self.reaches[scope] = reach
        return self.reaches[scope]


def find_meetings(plan: Plan, graphs: Graphs) -> Mapping[str, str]:
    """Return for each node the nearest node on every path from it. The end of a graph has none."""
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
