"""Flows: graphs of slots that refer to blocks, with conditions and port mappings on their edges (OPS-6 to OPS-9)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

from pydantic import Field

from interlock.define.operations.base import Entity, Metadata, Name, PortName, Text, UuidField, Value, Version
from interlock.kernel.budgets.operations import FLOW_EDGES_MAX, MAPPINGS_MAX, SLOTS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.uuids import Uuid


class Condition(Value):
    """When an edge is taken. The model stores a condition and never evaluates it (OPS-8).

    `description` is for a person or an agent; `predicate`, if there is one, for a program.
    """

    description: Annotated[Text, Field(min_length=1)]
    predicate: dict[str, Json] | None = None
    metadata: Metadata = Field(default_factory=dict[str, Json])


class PortMapping(Value):
    """An output port of an edge's source that supplies an input port of its target."""

    source_port: PortName
    target_port: PortName


class NodeReference(Value):
    """A slot of a flow: one place in its graph, where one version of one block is to be done."""

    id: UuidField
    target_id: UuidField
    target_version: Version
    alias: Name | None = None
    metadata: Metadata = Field(default_factory=dict[str, Json])

    @property
    def label(self) -> str:
        """The name for people: the alias, or the id."""
        return self.alias if self.alias is not None else self.id


class Edge(Value):
    """A way from one slot to another. Without a source it is an entry: the target is where the flow begins."""

    source_id: UuidField | None
    target_id: UuidField
    condition: Condition | None = None
    port_mappings: Annotated[tuple[PortMapping, ...], Field(max_length=MAPPINGS_MAX, strict=False)] = ()


class Flow(Entity):
    """A directed graph of slots. Its parts may be unconnected, and one block may be in several slots.

    `expected_outcome` is any value; nothing reads it. `metadata.workflow_id`, if it is a text of the form
    `namespace.name`, is the id by which agents start the flow.
    """

    nodes: Annotated[tuple[NodeReference, ...], Field(max_length=SLOTS_MAX, strict=False)] = ()
    edges: Annotated[tuple[Edge, ...], Field(max_length=FLOW_EDGES_MAX, strict=False)] = ()
    expected_outcome: Json = None
    metadata: Metadata = Field(default_factory=dict[str, Json])

    @cached_property
    def slots(self) -> Mapping[Uuid, NodeReference]:
        """The slots by id; of slots with the same id, the first."""
        found: dict[Uuid, NodeReference] = {}
        for slot in self.nodes:
            found.setdefault(slot.id, slot)
        return found

    @cached_property
    def terminal_slots(self) -> tuple[Uuid, ...]:
        """The ids of the slots without an outgoing edge, in the order of the flow."""
        sources = {edge.source_id for edge in self.edges}
        return tuple(slot_id for slot_id in self.slots if slot_id not in sources)
