"""A decision as a graph of four causal roles: sources, computes, triggers, actions.

This is the compiled form of conditions and of what steps set; nobody writes it by hand. A source reads the snapshot of
inputs, a compute turns values into a truth, a trigger turns a truth into an event, an action takes effect when the
events that gate it occur. Values and events are what edges carry; no edge leads out of an action or into a source, so
what a pass brings about cannot be seen in it. A graph as such may be broken: `validate_graph` judges it.
"""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from interlock.decide.condition import LoopControl, Operator, Term
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import Digest

Id = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
ValueType = Literal["string", "number", "boolean", "list", "object"]
"""What kind of value a context key holds, in the words that inputs are declared with."""
PortType = Literal["value", "truth", "event"]
"""What an edge carries. A truth is a value; an event is neither, and nothing but an event is one."""


class Port(NamedTuple):
    """A place where exactly one edge comes into a node."""

    name: str
    type: PortType


class FromContext(Term):
    """What stands in the context at a dotted path, or under one flat key, dots included."""

    kind: Literal["path", "key"]
    path: Id


class LoopDecisions(Term):
    """What the loop-control artifacts of the call say."""

    kind: Literal["loop_control"]


class Constant(Term):
    """A value that is part of the graph."""

    kind: Literal["constant"]
    value: Json


Reading = Annotated[FromContext | LoopDecisions | Constant, Field(discriminator="kind")]


class Source(Term):
    """Reads one thing from the snapshot of inputs. Yields a value, or that nothing is there."""

    kind: Literal["source"]
    id: Id
    reads: Reading

    @property
    def path(self) -> str | None:
        """The path that is read, where the context is read."""
        return self.reads.path if isinstance(self.reads, FromContext) else None

    @property
    def context_key(self) -> str | None:
        """The context key that is read, where the context is read."""
        if not isinstance(self.reads, FromContext):
            return None
        return self.reads.path if self.reads.kind == "key" else self.reads.path.partition(".")[0]

    @property
    def ports(self) -> tuple[Port, ...]:
        """No inputs: a source is where values begin."""
        return ()


class Comparison(Term):
    """Compare what comes in with a value."""

    op: Operator
    value: Json = None


class Junction(Term):
    """Settle truths by each other: `and`, `or`. A part that is undecided does not matter where another settles."""

    op: Literal["and", "or"]
    parts: Count


class Negation(Term):
    """Turn a truth."""

    op: Literal["not"]


Operation = Annotated[Comparison | Junction | Negation | LoopControl, Field(discriminator="op")]


class Compute(Term):
    """Makes a truth of values or truths. Yields it, or what keeps it from being decided."""

    kind: Literal["compute"]
    id: Id
    operation: Operation
    condition: Id | None = None

    @property
    def ports(self) -> tuple[Port, ...]:
        """The one value that is judged, or the truths that are put together."""
        match self.operation:
            case Comparison() | LoopControl():
                return (Port("found", "value"),)
            case Negation():
                return (Port("of", "truth"),)
            case Junction():
                return tuple(Port(f"of.{number}", "truth") for number in range(self.operation.parts))


class Trigger(Term):
    """Emits when its truth holds and every event that it comes after occurred. Remembers nothing."""

    kind: Literal["trigger"]
    id: Id
    condition: Id | None = None
    is_conditional: bool = True
    after: Annotated[int, Field(ge=0)] = 0

    @property
    def ports(self) -> tuple[Port, ...]:
        """The truth it turns on, unless it turns on events alone, and those events."""
        when = (Port("when", "truth"),) if self.is_conditional else ()
        return (*when, *(Port(f"after.{number}", "event") for number in range(self.after)))


class SetKey(Term):
    """Set a context key to the payload; null deletes it."""

    kind: Literal["set"]
    key: Id
    type: ValueType | None = None


Effect: TypeAlias = SetKey
"""What an action brings about: a closed union, so far of one. An intent for the world outside is to be the second."""


class Action(Term):
    """Takes effect when all events that gate it occur. Nothing comes out of it."""

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
    """Carries what a node yields to a port of another."""

    source: Id
    target: Id
    port: Id


class DecisionGraph(Term):
    """Nodes and edges. The order in which they are listed means nothing."""

    v: Literal[1]
    nodes: Annotated[tuple[Node, ...], Field(strict=False)]
    edges: Annotated[tuple[Edge, ...], Field(strict=False)]

    def to_json(self) -> dict[str, Json]:
        """Return the graph as the JSON value that is stored: nodes by id, edges by where they lead."""
        ordered = DecisionGraph(
            v=1,
            nodes=tuple(sorted(self.nodes, key=lambda node: node.id)),
            edges=tuple(sorted(self.edges, key=lambda edge: (edge.target, edge.port, edge.source))),
        )
        return ordered.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def digest(self) -> Digest:
        """Return the digest of the graph's canonical bytes, the same however its parts are listed."""
        return digest_of(self.to_json())
