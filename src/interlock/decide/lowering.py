"""Lowers conditions, and the assignments that they gate, into a decision graph.

Node ids are derived from names and from what is read, so the same input always gives the same graph. Parts that read
the same input share one source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import cast

from interlock.decide.condition import Always, Condition
from interlock.decide.evaluate import EVIDENCE_ROOTS
from interlock.decide.graph import (
    NOTHING,
    Action,
    Compute,
    Constant,
    DecisionGraph,
    Edge,
    EmitIntent,
    Node,
    Reading,
    ReadingKind,
    SetKey,
    Source,
    Trigger,
)
from interlock.decide.value import Given, Read, Value
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable

OWN = "*"
"""The name of the trigger that gates every assignment: that of the step itself. No condition can have this name."""


@frozen
class Assignment:
    """An effect that occurs if all conditions named in `when` are true; always, if `when` is empty.

    `payload` has what each port of the payload carries, in the order of the ports. `name` names the action.
    """

    name: str
    effect: SetKey | EmitIntent
    payload: tuple[Value, ...]
    when: tuple[str, ...] = ()


def build_graph(conditions: Mapping[str, Condition], assignments: Iterable[Assignment] = ()) -> DecisionGraph:
    """Build the decision graph of named conditions and assignments. It may have faults: see `validate_graph`.

    With assignments it is the graph of a step: a path that begins with `artifact` or `assessments` reads the evidence.
    """
    assigned = tuple(assignments)
    lowering = _Lowering(is_of_step=bool(assigned))
    for name, condition in conditions.items():
        lowering.add_condition(name, condition)
    if assigned:
        lowering.add_condition(OWN, Always(op="always"))
    for assignment in assigned:
        lowering.add_assignment(assignment)
    return DecisionGraph(v=1, nodes=tuple(lowering.nodes.values()), edges=tuple(lowering.edges))


def trigger_id(name: str) -> str:
    """Return the id of a condition's trigger."""
    return f"trigger:{name}"


def action_id(name: str) -> str:
    """Return the id of an action: its name is the key that it sets, or that of an intent (`emit_name`)."""
    return f"action:{name}"


def emit_name(number: int) -> str:
    """Return the name of the action that sends an intent of a step. No declared key has a dot."""
    return f"emit.{number}"


@mutable
class _Lowering:
    is_of_step: bool
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    edges: list[Edge] = field(default_factory=list[Edge])

    def add_condition(self, name: str, condition: Condition) -> None:
        trigger = Trigger(kind="trigger", id=trigger_id(name), condition=name)
        self.nodes[trigger.id] = trigger
        compute = Compute(kind="compute", id=f"compute:{name}", name=name, of=condition)
        self._add_edge(self._add_compute(compute), trigger.id, "when")

    def add_assignment(self, assignment: Assignment) -> None:
        gates = (OWN, *assignment.when)
        unused = self._find_unused_id(action_id(assignment.name))
        action = Action(kind="action", id=unused, gates=len(gates), effect=assignment.effect)
        self.nodes[action.id] = action
        for number, name in enumerate(gates):
            self._add_edge(trigger_id(name), action.id, f"gate.{number}")
        for port, value in zip(assignment.effect.payload, assignment.payload, strict=True):
            # A field has the name of its action and its own; the only payload of a `set` has the name of the key.
            part = "" if isinstance(assignment.effect, SetKey) else f".{port.removeprefix('field.')}"
            self._add_edge(self._add_payload(assignment.name + part, action.id + part, value), action.id, port)

    def _add_payload(self, name: str, constant: str, payload: Value) -> str:
        match payload:
            case Given(value=value):
                return self._add_constant(f"constant:{constant}", value)
            case Read(var=path):
                return self._add_reading(f"path:{path}")
            case computed:
                return self._add_compute(Compute(kind="compute", id=f"value:{name}", name=name, of=computed))

    def _find_unused_id(self, preferred: str) -> str:
        """Return an id that no node has, so that a second action on a key is reported as `duplicate_write`."""
        number = 1
        unused = preferred
        while unused in self.nodes:
            number += 1
            unused = f"{preferred}/{number}"
        return unused

    def _add_compute(self, compute: Compute) -> str:
        self.nodes[compute.id] = compute
        for port in compute.ports:
            source = self._add_constant("constant:true", value=True) if port.name == NOTHING else None
            self._add_edge(source or self._add_reading(port.name), compute.id, port.name)
        return compute.id

    def _add_reading(self, name: str) -> str:
        """Return the id of the source of an input. Evidence and context are never a fallback for each other."""
        kind, _, path = name.partition(":")
        if self.is_of_step and path.partition(".")[0] in EVIDENCE_ROOTS:
            kind = "evidence"
        reading = Reading(kind=cast("ReadingKind", kind), path=path)
        return self._add_source(Source(kind="source", id=reading.name, reads=reading))

    def _add_constant(self, node_id: str, value: Json) -> str:
        return self._add_source(Source(kind="source", id=node_id, reads=Constant(kind="constant", value=value)))

    def _add_source(self, source: Source) -> str:
        self.nodes.setdefault(source.id, source)
        return source.id

    def _add_edge(self, source: str, target: str, port: str) -> None:
        self.edges.append(Edge(source=source, target=target, port=port))
