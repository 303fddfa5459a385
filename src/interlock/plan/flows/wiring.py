"""A flow with its blocks found and its slots named: what reads from where, in an order in which it can run (OPS-17)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from interlock.define.diagnostics import Diagnostic, fault
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.definitions import Resolver
from interlock.define.operations.flows import Edge, Flow, NodeReference
from interlock.kernel.budgets.workflow import (
    STEP_ID_CHARS_MAX,
)
from interlock.kernel.frozen import frozen
from interlock.kernel.uuids import Uuid
from interlock.plan.compiled import output_key
from interlock.record.context import RESERVED_KEYS

_NO_OUTPUT_KEYS = RESERVED_KEYS | {"goal"}
"""Context keys that no slot may set: `goal` is that of the run."""
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


@frozen
class Source:
    """Where an input may come from: a context path, and the slot that sets it; None if the caller of the flow does."""

    path: str
    slot: str | None


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """A flow and the blocks of its slots. Its references and edges were checked before."""

    flow: Flow
    blocks: Mapping[Uuid, WorkBlock]

    @classmethod
    def of(cls, flow: Flow, resolver: Resolver) -> "Wiring":
        """Find the blocks of a flow."""
        blocks: dict[Uuid, WorkBlock] = {}
        for slot_id, slot in flow.slots.items():
            found = resolver.find(slot.target_id, slot.target_version)
            assert isinstance(found, WorkBlock), "as checked before"
            blocks[slot_id] = found
        return cls(flow=flow, blocks=blocks)

    @cached_property
    def node_ids(self) -> Mapping[Uuid, str]:
        """The plan's id of each slot: its alias if that is unique and safe, else the id of the slot."""
        times = Counter(slot.alias for slot in self.flow.nodes)
        return {
            slot_id: slot.alias
            if slot.alias is not None and _is_safe(slot.alias) and times[slot.alias] == 1
            else slot_id
            for slot_id, slot in self.flow.slots.items()
        }

    @cached_property
    def edges_into(self) -> Mapping[Uuid, tuple[tuple[int, Edge], ...]]:
        """The edges into each slot, with their positions in the flow."""
        found: dict[Uuid, list[tuple[int, Edge]]] = {slot_id: [] for slot_id in self.flow.slots}
        for at, edge in enumerate(self.flow.edges):
            found[edge.target_id].append((at, edge))
        return {slot_id: tuple(edges) for slot_id, edges in found.items()}

    def sources_of(self, slot_id: Uuid, port: str) -> tuple[Source, ...]:
        """Return where an input may come from, in the order of the edges, each once.

        An edge without mappings connects equal names.
        """
        found: list[Source] = []
        for _, edge in self.edges_into[slot_id]:
            if edge.port_mappings:
                names = [one.source_port for one in edge.port_mappings if one.target_port == port]
            else:
                names = [port] if edge.source_id is None or self.has_output(edge.source_id, port) else []
            found += [self._source(edge.source_id, name) for name in names]
        return tuple(dict.fromkeys(found))

    def has_output(self, slot_id: Uuid, port: str) -> bool:
        """Return whether the block of a slot has an output port of this name."""
        return any(one.name == port for one in self.blocks[slot_id].outputs)

    def rename_path(self, source_id: Uuid | None, path: str) -> str:
        """Return the context path of a path in the condition of an edge.

        It may begin with the alias of a slot, or with an output port of the edge's source. Any other path is that of
        the context.
        """
        first, dot, rest = path.partition(".")
        if dot and first in self._key_by_alias:
            return f"{self._key_by_alias[first]}.{rest}"
        if source_id is not None and self.has_output(source_id, first):
            return f"{output_key(self.node_ids[source_id])}.{path}"
        return path

    @cached_property
    def _key_by_alias(self) -> Mapping[str | None, str]:
        return {slot.alias: output_key(self.node_ids[slot_id]) for slot_id, slot in self.flow.slots.items()}

    def _source(self, source_id: Uuid | None, name: str) -> Source:
        if source_id is None:
            return Source(path=name, slot=None)
        node_id = self.node_ids[source_id]
        return Source(path=f"{output_key(node_id)}.{name}", slot=node_id)

    def find_faults(self) -> Iterator[Diagnostic]:
        """Yield why the flow cannot run: a reserved alias, no entry, a slot that no entry reaches, a way back."""
        for at, slot in enumerate(self.flow.nodes):
            if slot.alias in _NO_OUTPUT_KEYS:
                message = (
                    f"The outputs of a slot are set under its alias, and the context key {slot.alias!r} is reserved."
                )
                yield fault(f"nodes[{at}].alias", "wrong_value", message, "Give the slot another alias.")
        if not any(edge.source_id is None for edge in self.flow.edges):
            fix = 'Add an edge with `"source_id": null` to the slot where the flow begins.'
            yield fault("edges", "missing_entry", "No edge is an entry, so the flow never begins.", fix)
            return
        reached = self._find_reached()
        for at, slot in enumerate(self.flow.nodes):
            if slot.id not in reached:
                message = f"No way leads from an entry to {slot.label!r}."
                fix = "Add an edge to it; without a source, the flow begins there."
                yield fault(f"nodes[{at}]", "unreachable_node", message, fix)
        cycle = self._find_cycle()
        if cycle is not None:
            at, names = cycle
            message = f"The flow leads back to an earlier slot: {' → '.join(names)}."
            fix = "Remove the edge. To repeat work, run the flow again."
            yield fault(f"edges[{at}]", "unbounded_loop", message, fix)

    @cached_property
    def order(self) -> tuple[NodeReference, ...]:
        """The slots in an order in which each comes after its sources; slots of a cycle are left out."""
        waiting = {
            slot_id: {edge.source_id for _, edge in edges if edge.source_id is not None}
            for slot_id, edges in self.edges_into.items()
        }
        followers: dict[Uuid, list[Uuid]] = {}
        for slot_id, sources in waiting.items():
            for source in sources:
                followers.setdefault(source, []).append(slot_id)
        ready = [slot_id for slot_id, sources in waiting.items() if not sources]
        ordered: list[NodeReference] = []
        for slot_id in ready:
            ordered.append(self.flow.slots[slot_id])
            for follower in followers.get(slot_id, ()):
                waiting[follower].discard(slot_id)
                if not waiting[follower]:
                    ready.append(follower)
        return tuple(ordered)

    def _find_reached(self) -> set[Uuid]:
        targets: dict[Uuid | None, list[Uuid]] = {}
        for edge in self.flow.edges:
            targets.setdefault(edge.source_id, []).append(edge.target_id)
        reached: set[Uuid] = set()
        frontier = [*targets.get(None, ())]
        while frontier:
            here = frontier.pop()
            if here not in reached:
                reached.add(here)
                frontier += targets.get(here, ())
        return reached

    def _find_cycle(self) -> tuple[int, list[str]] | None:
        """Return an edge that closes a cycle, and the labels of the cycle; None if there is no cycle."""
        ordered = {slot.id for slot in self.order}
        slots = self.flow.slots
        here = next((slot_id for slot_id in slots if slot_id not in ordered), None)
        if here is None:
            return None
        # Each slot that is left has a source that is left, so going back ends in a cycle.
        way: list[Uuid] = []
        while here not in way:
            way.append(here)
            here = next(
                edge.source_id
                for _, edge in self.edges_into[here]
                if edge.source_id is not None and edge.source_id not in ordered
            )
        ring = [*reversed(way[way.index(here) :])]
        begin = ring.index(min(ring, key=[*slots].index))
        cycle = ring[begin:] + ring[:begin]
        ends = (cycle[-1], cycle[0])
        at = next(at for at, edge in enumerate(self.flow.edges) if (edge.source_id, edge.target_id) == ends)
        return at, [slots[one].label for one in (*cycle, cycle[0])]


def _is_safe(alias: str) -> bool:
    """Return whether an alias can be the id of a step. Two hyphens mark the steps that are added."""
    return 0 < len(alias) <= STEP_ID_CHARS_MAX and _SAFE.issuperset(alias) and "--" not in alias
