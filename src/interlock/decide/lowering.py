"""Lower conditions, and what is to be set where they hold, into a decision graph.

Ids follow from the names of conditions and from where a part stands in them, so the same input always gives the same
graph. What several parts read is one source.
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
"""The name of the condition that gates what is set in any case; no condition of a plan can have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A context key to be set where all the conditions named in `when` hold; with none named, in any case.

    The payload is what stands at `path`, or `value` where no path is given.
    """

    key: str
    value: Json = None
    path: str | None = None
    when: tuple[str, ...] = ()
    type: ValueType | None = None


def build_graph(conditions: Mapping[str, Condition], assignments: Iterable[Assignment] = ()) -> DecisionGraph:
    """Return the decision graph of conditions, by name, and assignments. It may have faults: `validate_graph` tells."""
    lowering = _Lowering()
    for name, condition in conditions.items():
        lowering.add_condition(name, condition)
    for assignment in assignments:
        lowering.add_assignment(assignment)
    return DecisionGraph(v=1, nodes=tuple(lowering.nodes.values()), edges=tuple(lowering.edges))


def trigger_id(name: str) -> str:
    """Return the id of the trigger that a condition of this name becomes."""
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

    def _find_unused_id(self, wished: str) -> str:
        """Return an id that no node has: a second action on a key is a fault, to be told as one of its own."""
        number = 1
        found = wished
        while found in self.nodes:
            number += 1
            found = f"{wished}/{number}"
        return found

    def _add_compute(self, condition: Condition, at: str, name: str) -> str:
        """Add what a condition becomes and return the id of the node that yields its truth."""
        operation, inputs = self._lower_operation(condition, at, name)
        self.nodes[at] = Compute(kind="compute", id=at, operation=operation, condition=name)
        for source, port in inputs:
            self._add_edge(source, at, port)
        return at

    def _lower_operation(self, condition: Condition, at: str, name: str) -> tuple[Operation, list[tuple[str, str]]]:
        """Return what a condition does, and which nodes lead into which of its ports."""
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
