"""A decision as a graph of four kinds of node: sources, computes, triggers, actions.

This is the compiled form of conditions and of `set` actions; nobody writes it by hand. A source reads one input. A
compute turns values into the truth of one condition, or into another value. A trigger turns a truth into an event. An
action takes effect when all events that gate it occur. Edges carry values and events. No edge leads out of an action or
into a source, so a pass never reads its own effects. A `DecisionGraph` may have faults: `validate_graph` finds them.
"""

from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from interlock.decide.condition import Condition, Term
from interlock.decide.evaluate import inputs_of
from interlock.decide.value import VALUE_TERMS, Value, inputs_of_value
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import Digest
from interlock.kernel.shape import limits

Id = Annotated[str, *limits(min_length=1)]
Count = Annotated[int, *limits(ge=1)]
NOTHING = "nothing"
"""The port of a compute that reads no input. A compute has at least one, because it is never the start of a graph."""
PortType = Literal["value", "truth", "event"]
"""What an edge carries. A truth is also a value; an event is neither a truth nor a value."""


ReadingKind = Literal["path", "key", "evidence", "loop_control"]


class Port(NamedTuple):
    """A named input of a node. Exactly one edge leads into it."""

    name: str
    type: PortType


class Reading(Term):
    """Reads one input of the snapshot.

    `path`: the context at a dotted path. `key`: under one key of the context, which may contain dots. `evidence`: the
    step's evidence at a dotted path. `loop_control`: the loop-control decisions of the call.
    """

    kind: ReadingKind
    path: str = ""

    @property
    def name(self) -> str:
        """The name of the input in a snapshot."""
        return f"{self.kind}:{self.path}" if self.path else self.kind


class Constant(Term):
    """A value that is part of the graph."""

    kind: Literal["constant"]
    value: Json


class Source(Term):
    """Reads one input. Yields its value, or ABSENT."""

    kind: Literal["source"]
    id: Id
    reads: Reading | Constant

    @property
    def ports(self) -> tuple[Port, ...]:
        """Empty: a source has no inputs."""
        return ()


class Compute(Term):
    """Computes the truth of a whole condition, or a whole value. Yields it, or an `Undecided`.

    `name` is the name of the condition, or the key that is set to the value.
    """

    kind: Literal["compute"]
    id: Id
    name: Id
    of: Condition | Value

    @property
    def ports(self) -> tuple[Port, ...]:
        """One for each input that is read, named like it. A compute that reads nothing has one for a constant."""
        read = inputs_of_value(self.of) if isinstance(self.of, VALUE_TERMS) else inputs_of(self.of)
        return tuple(Port(name, "value") for name in read or (NOTHING,))

    @property
    def is_value(self) -> bool:
        """Whether it yields a value. The truth of a condition is a truth, which is also a value."""
        return isinstance(self.of, VALUE_TERMS)


class Trigger(Term):
    """Emits an event if its truth is true and all events of its `after` ports occurred. Has no state."""

    kind: Literal["trigger"]
    id: Id
    condition: Id | None = None
    is_conditional: bool = True
    after: Annotated[int, *limits(ge=0)] = 0

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ports of the condition that must be true, if there is one, and of the events that must occur first."""
        when = (Port("when", "truth"),) if self.is_conditional else ()
        return (*when, *(Port(f"after.{number}", "event") for number in range(self.after)))


class SetKey(Term):
    """Set a context key to the payload. Null deletes the key."""

    kind: Literal["set"]
    key: Id

    @property
    def payload(self) -> tuple[str, ...]:
        """The ports that carry the payload."""
        return ("value",)

    @property
    def keys(self) -> tuple[str, ...]:
        """The context keys that it sets."""
        return (self.key,)


class EmitIntent(Term):
    """Send something outside the server: an intent of a kind, with one port for each field.

    `number` is its place among the intents of its step, counted from 0. `mirror` maps context keys to the fields that
    they are set to.
    """

    kind: Literal["emit"]
    number: Annotated[int, *limits(ge=0)]
    sends: Id
    fields: tuple[Id, ...] = ()
    mirror: dict[Id, Id] = msgspec.field(default_factory=dict)

    @property
    def payload(self) -> tuple[str, ...]:
        """The ports that carry the fields."""
        return tuple(f"field.{name}" for name in self.fields)

    @property
    def keys(self) -> tuple[str, ...]:
        """The context keys that it sets."""
        return tuple(sorted(self.mirror))


Effect: TypeAlias = SetKey | EmitIntent
"""The effect of an action: closed. One stays inside the server, the other is sent by a channel after the commit."""


class Action(Term):
    """Takes effect when all events that gate it occur. No edge leads out of it."""

    kind: Literal["action"]
    id: Id
    gates: Count = 1
    effect: Effect

    @property
    def ports(self) -> tuple[Port, ...]:
        """The events that gate it, then its payload."""
        payload = (Port(name, "value") for name in self.effect.payload)
        return (*(Port(f"gate.{number}", "event") for number in range(self.gates)), *payload)


Node: TypeAlias = Source | Compute | Trigger | Action


class Edge(Term):
    """Carries the result of a node to a port of another node."""

    source: Id
    target: Id
    port: Id


class DecisionGraph(Term):
    """Nodes and edges. Their order in the lists has no meaning."""

    v: Literal[1]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value that is stored: nodes ordered by id, edges by target, port and source."""
        ordered = DecisionGraph(
            v=1,
            nodes=tuple(sorted(self.nodes, key=lambda node: node.id)),
            edges=tuple(sorted(self.edges, key=lambda edge: (edge.target, edge.port, edge.source))),
        )
        return Term.to_json(ordered)

    def digest(self) -> Digest:
        """Return the digest of the graph. It does not depend on the order in which nodes and edges are listed."""
        return digest_of(self.to_json())
