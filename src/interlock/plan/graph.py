"""A plan indexed for walking: the graph of every scope, the edges of every node, the loops around it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.decide.condition import Compare, Condition
from interlock.decide.evaluate import EMITTED
from interlock.decide.graph import DecisionGraph, EmitIntent, SetKey
from interlock.decide.lowering import Assignment, build_graph, emit_name
from interlock.decide.schedule import Schedule, build_schedule
from interlock.plan.records import Loop, Plan, PlanEdge, PlanNode, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """The graphs of a plan. A scope is the body of a loop, named by it, or None: the graph around everything."""

    nodes: Mapping[str, PlanNode]
    loops: Mapping[str, Loop]
    conditions: Mapping[str, Condition]
    members: Mapping[str | None, tuple[PlanNode, ...]]
    scope_of: Mapping[str, str | None]
    out_edges: Mapping[str, tuple[PlanEdge, ...]]
    in_edges: Mapping[str, tuple[PlanEdge, ...]]
    schedules: dict[str, Schedule] = field(default_factory=dict[str, Schedule], compare=False, repr=False)
    step_schedules: dict[str, Schedule] = field(default_factory=dict[str, Schedule], compare=False, repr=False)
    forks: dict[str, tuple[PlanEdge, ...]] = field(
        default_factory=dict[str, tuple[PlanEdge, ...]], compare=False, repr=False
    )

    def schedule(self, condition_id: str) -> Schedule:
        """Return the decision graph of a condition, scheduled once and then kept (decision 18)."""
        if condition_id not in self.schedules:
            graph = build_graph({condition_id: self.conditions[condition_id]})
            self.schedules[condition_id] = _schedule(graph)
        return self.schedules[condition_id]

    def actions(self, node_id: str) -> Schedule:
        """Return the decision graph of what a step sets, scheduled once and then kept (decision 18)."""
        if node_id not in self.step_schedules:
            task = self.nodes[node_id].task
            assert task is not None, "only a task sets anything"
            self.step_schedules[node_id] = _schedule(_step_graph(task))
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
            scope_of=scope_of,
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
        """Return the other steps that need not wait for a step: those of the other branches up to the same barrier."""
        found: list[str] = []
        for edge in self._forks_above(node_id):
            for sibling in self.out_edges.get(edge.source, ()):
                if sibling.target != edge.target:
                    found += self._branch(sibling.target)
        if not found:
            return ()
        order = {node.node_id: at for at, node in enumerate(self.members[self.scope_of[node_id]])}
        return tuple(sorted(set(found), key=order.__getitem__))

    def _forks_above(self, node_id: str) -> tuple[PlanEdge, ...]:
        """Return the edges out of fan-outs by which a node's branch was entered and whose barrier is still below it.

        The innermost edge comes first. Each node is walked once and then kept.
        """
        path = [node_id]
        while path[-1] not in self.forks and (edges := self.in_edges.get(path[-1], ())):
            path.append(edges[0].source)
        above = self.forks.get(path[-1], ())
        self.forks[path.pop()] = above
        for here in reversed(path):
            edge = self.in_edges[here][0]
            kind = self.nodes[edge.source].kind
            above = above[1:] if kind == "fan_in" else (edge, *above) if kind == "fan_out" else above
            self.forks[here] = above
        return above

    def _branch(self, entry: str) -> list[str]:
        """Return the steps from a branch's entry up to its barrier."""
        found: list[str] = []
        seen: set[tuple[str, int]] = set()
        frontier = [(entry, 0)]
        while frontier:
            here, depth = frontier.pop()
            if (here, depth) in seen:
                continue
            seen.add((here, depth))
            kind = self.nodes[here].kind
            depth += (kind == "fan_out") - (kind == "fan_in")
            if depth < 0:
                continue
            if self.nodes[here].task is not None:
                found.append(here)
            frontier += [(edge.target, depth) for edge in self.out_edges.get(here, ())]
        return found


def _step_graph(task: Task) -> DecisionGraph:
    """Return the decision graph of what a step sets and sends."""
    conditions: dict[str, Condition] = {}
    assignments: list[Assignment] = []
    for action in task.sets:
        gates = _gates(conditions, action.key, action.when)
        effect = SetKey(kind="set", key=action.key)
        assignments.append(Assignment(name=action.key, effect=effect, payload=(action.payload,), when=gates))
    for number, action in enumerate(task.emits):
        name = emit_name(number)
        gates = _gates(conditions, name, action.when)
        if action.once is not None:
            # Whether it was sent before is an input like any other, so that no trigger needs a memory (DEC-8).
            conditions[f"{name}.once"] = Compare(op="equals", var=f"{EMITTED}.{number}", value=False)
            gates = (*gates, f"{name}.once")
        fields = sorted(action.fields)
        effect = EmitIntent(
            kind="emit", number=number, sends=action.kind, fields=tuple(fields), mirror=dict(action.mirror)
        )
        payload = tuple(action.fields[one].payload for one in fields)
        assignments.append(Assignment(name=name, effect=effect, payload=payload, when=gates))
    return build_graph(conditions, assignments)


def _gates(conditions: dict[str, Condition], name: str, when: Condition | None) -> tuple[str, ...]:
    """Name the condition of an action, and return the names of its gates."""
    if when is None:
        return ()
    conditions[f"{name}.when"] = when
    return (f"{name}.when",)


def _schedule(graph: DecisionGraph) -> Schedule:
    schedule = build_schedule(graph)
    assert isinstance(schedule, Schedule), f"a plan has sound graphs: {schedule}"
    return schedule


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
