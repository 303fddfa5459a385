"""A decision as a graph of four kinds of node: sources, computes, triggers, actions.

This is the compiled form of conditions and of `set` actions; nobody writes it by hand. A source reads one input. A
compute turns values into a truth. A trigger turns a truth into an event. An action takes effect when all events that
gate it occur. Edges carry values and events. No edge leads out of an action or into a source, so a pass never reads
its own effects. A `DecisionGraph` may have faults: `validate_graph` finds them.
"""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from interlock.decide.condition import LoopControl, Operator, Term
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import Digest

Id = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
ValueType = Literal["string", "number", "boolean", "list", "object"]
"""The type of a context key's value, as inputs declare it."""
PortType = Literal["value", "truth", "event"]
"""What an edge carries. A truth is also a value; an event is neither a truth nor a value."""


class Port(NamedTuple):
    """A named input of a node. Exactly one edge leads into it."""

    name: str
    type: PortType


class FromContext(Term):
    """Reads the context: at a dotted path (`path`), or under one key that may contain dots (`key`)."""

    kind: Literal["path", "key"]
    path: Id


class LoopDecisions(Term):
    """Reads the loop-control decisions of the call."""

    kind: Literal["loop_control"]


class Constant(Term):
    """A value that is part of the graph."""

    kind: Literal["constant"]
    value: Json


Reading = Annotated[FromContext | LoopDecisions | Constant, Field(discriminator="kind")]


class Source(Term):
    """Reads one input. Yields its value, or ABSENT."""

    kind: Literal["source"]
    id: Id
    reads: Reading

    @property
    def path(self) -> str | None:
        """The context path that is read, or None if the source does not read the context."""
        return self.reads.path if isinstance(self.reads, FromContext) else None

    @property
    def context_key(self) -> str | None:
        """The context key that is read, or None if the source does not read the context."""
        if not isinstance(self.reads, FromContext):
            return None
        return self.reads.path if self.reads.kind == "key" else self.reads.path.partition(".")[0]

    @property
    def ports(self) -> tuple[Port, ...]:
        """Empty: a source has no inputs."""
        return ()


class Comparison(Term):
    """Compare the input with a constant."""

    op: Operator
    value: Json = None


class Junction(Term):
    """Join truths by `and` or `or`. An undecided part does not matter if another part decides the result."""

    op: Literal["and", "or"]
    parts: Count


class Negation(Term):
    """Negate a truth."""

    op: Literal["not"]


Operation = Annotated[Comparison | Junction | Negation | LoopControl, Field(discriminator="op")]


class Compute(Term):
    """Computes a truth from a value or from other truths. Yields it, or an `Undecided`."""

    kind: Literal["compute"]
    id: Id
    operation: Operation
    condition: Id | None = None

    @property
    def ports(self) -> tuple[Port, ...]:
        """The value to judge, or the truths to join or negate."""
        match self.operation:
            case Comparison() | LoopControl():
                return (Port("found", "value"),)
            case Negation():
                return (Port("of", "truth"),)
            case Junction():
                return tuple(Port(f"of.{number}", "truth") for number in range(self.operation.parts))


class Trigger(Term):
    """Emits an event if its truth is true and all events of its `after` ports occurred. Has no state."""

    kind: Literal["trigger"]
    id: Id
    condition: Id | None = None
    is_conditional: bool = True
    after: Annotated[int, Field(ge=0)] = 0

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ports of the condition that must be true, if there is one, and of the events that must occur first."""
        when = (Port("when", "truth"),) if self.is_conditional else ()
        return (*when, *(Port(f"after.{number}", "event") for number in range(self.after)))


class SetKey(Term):
    """Set a context key to the payload. Null deletes the key."""

    kind: Literal["set"]
    key: Id
    type: ValueType | None = None


Effect: TypeAlias = SetKey
"""The effect of an action: a closed union with one member so far. Effects outside the server would be the second."""


class Action(Term):
    """Takes effect when all events that gate it occur. No edge leads out of it."""

    kind: Literal["action"]
    id: Id
    gates: Count = 1
    effect: Effect

    @property
    def ports(self) -> tuple[Port, ...]:
        """The events that gate it, then its payload."""
        return (*(Port(f"gate.{number}", "event") for number in range(self.gates)), Port("value", "value"))


Node = Annotated[Source | Compute | Trigger | Action, Field(discriminator="kind")]


class Edge(Term):
    """Carries the result of a node to a port of another node."""

    source: Id
    target: Id
    port: Id


class DecisionGraph(Term):
    """Nodes and edges. Their order in the lists has no meaning."""

    v: Literal[1]
    nodes: Annotated[tuple[Node, ...], Field(strict=False)]
    edges: Annotated[tuple[Edge, ...], Field(strict=False)]

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value that is stored: nodes ordered by id, edges by target, port and source."""
        ordered = DecisionGraph(
            v=1,
            nodes=tuple(sorted(self.nodes, key=lambda node: node.id)),
            edges=tuple(sorted(self.edges, key=lambda edge: (edge.target, edge.port, edge.source))),
        )
        return ordered.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def digest(self) -> Digest:
        """Return the digest of the graph. It does not depend on the order in which nodes and edges are listed."""
        return digest_of(self.to_json())
