"""Lowers conditions, and the assignments that they gate, into a decision graph.

Node ids are derived from condition names and from positions inside conditions, so the same input always gives the
same graph. Parts that read the same input share one source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from interlock.decide.condition import AllOf, Always, AnyOf, Compare, Condition, LoopControl, Not
from interlock.decide.graph import (
    Action,
    Comparison,
    Compute,
    Constant,
    DecisionGraph,
    Edge,
    FromContext,
    Junction,
    LoopDecisions,
    Negation,
    Node,
    Operation,
    Reading,
    SetKey,
    Source,
    Trigger,
    ValueType,
)
from interlock.kernel.canonical import Json

UNCONDITIONAL = "*"
"""The condition name that gates unconditional assignments. No condition of a plan can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A context key to set if all conditions named in `when` are true; always, if `when` is empty.

    The payload is the value at `path`, or `value` if there is no path.
    """

    key: str
    value: Json = None
    path: str | None = None
    when: tuple[str, ...] = ()
    type: ValueType | None = None


def build_graph(conditions: Mapping[str, Condition], assignments: Iterable[Assignment] = ()) -> DecisionGraph:
    """Build the decision graph of named conditions and assignments. It may have faults: see `validate_graph`."""
    lowering = _Lowering()
    for name, condition in conditions.items():
        lowering.add_condition(name, condition)
    for assignment in assignments:
        lowering.add_assignment(assignment)
    return DecisionGraph(v=1, nodes=tuple(lowering.nodes.values()), edges=tuple(lowering.edges))


def trigger_id(name: str) -> str:
    """Return the id of a condition's trigger."""
    return f"trigger:{name}"


@dataclass(slots=True, kw_only=True)
class _Lowering:
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    edges: list[Edge] = field(default_factory=list[Edge])

    def add_condition(self, name: str, condition: Condition) -> None:
        trigger = Trigger(kind="trigger", id=trigger_id(name), condition=name)
        self.nodes[trigger.id] = trigger
        self._add_edge(self._add_compute(condition, f"compute:{name}", name), trigger.id, "when")

    def add_assignment(self, assignment: Assignment) -> None:
        gates = assignment.when or (UNCONDITIONAL,)
        if UNCONDITIONAL in gates and trigger_id(UNCONDITIONAL) not in self.nodes:
            self.add_condition(UNCONDITIONAL, Always(op="always"))
        effect = SetKey(kind="set", key=assignment.key, type=assignment.type)
        action = Action(
            kind="action", id=self._find_unused_id(f"action:{assignment.key}"), gates=len(gates), effect=effect
        )
        self.nodes[action.id] = action
        for number, name in enumerate(gates):
            self._add_edge(trigger_id(name), action.id, f"gate.{number}")
        self._add_edge(self._add_payload(assignment, action.id), action.id, "value")

    def _add_payload(self, assignment: Assignment, action: str) -> str:
        if assignment.path is None:
            return self._add_source(f"constant:{action}", Constant(kind="constant", value=assignment.value))
        return self._add_context_source("path", assignment.path)

    def _find_unused_id(self, preferred: str) -> str:
        """Return an id that no node has, so that a second action on a key is reported as `duplicate_write`."""
        number = 1
        unused = preferred
        while unused in self.nodes:
            number += 1
            unused = f"{preferred}/{number}"
        return unused

    def _add_compute(self, condition: Condition, at: str, name: str) -> str:
        """Add the nodes of a condition. Return the id of the node that yields its truth."""
        operation, inputs = self._lower_operation(condition, at, name)
        self.nodes[at] = Compute(kind="compute", id=at, operation=operation, condition=name)
        for source, port in inputs:
            self._add_edge(source, at, port)
        return at

    def _lower_operation(self, condition: Condition, at: str, name: str) -> tuple[Operation, list[tuple[str, str]]]:
        """Return the operation of a condition, and its inputs as pairs of node id and port."""
        match condition:
            case Compare():
                is_flat = condition.op.startswith("lenient_") and "." in condition.var
                source = self._add_context_source("key" if is_flat else "path", condition.var)
                return Comparison(op=condition.op, value=condition.value), [(source, "found")]
            case Always():
                source = self._add_source("constant:true", Constant(kind="constant", value=True))
                return Comparison(op="equals", value=True), [(source, "found")]
            case AllOf() | AnyOf():
                parts = [
                    (self._add_compute(part, f"{at}/{number}", name), f"of.{number}")
                    for number, part in enumerate(condition.of)
                ]
                return Junction(op=condition.op, parts=len(parts)), parts
            case Not():
                return Negation(op="not"), [(self._add_compute(condition.of, f"{at}/0", name), "of")]
            case LoopControl():
                return condition, [(self._add_source("loop_control", LoopDecisions(kind="loop_control")), "found")]
            case _:
                assert_never(condition)

    def _add_context_source(self, kind: str, path: str) -> str:
        reads = FromContext(kind="key" if kind == "key" else "path", path=path)
        return self._add_source(f"{kind}:{path}", reads)

    def _add_source(self, source_id: str, reads: Reading) -> str:
        if source_id not in self.nodes:
            self.nodes[source_id] = Source(kind="source", id=source_id, reads=reads)
        return source_id

    def _add_edge(self, source: str, target: str, port: str) -> None:
        self.edges.append(Edge(source=source, target=target, port=port))
