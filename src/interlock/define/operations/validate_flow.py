"""Checks blocks and flows: unique names, edges, the terminal slot of an assessment, port mappings (OPS-10, OPS-11)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from interlock.define.diagnostics import Diagnostic, fault, suggest_name
from interlock.define.operations.blocks import PortDescriptor, WorkBlock
from interlock.define.operations.definitions import Resolver
from interlock.define.operations.flows import Edge, Flow, PortMapping
from interlock.define.operations.report import Reference, Report, resolve
from interlock.kernel.uuids import Uuid


def validate_block(block: WorkBlock) -> Report:
    """Check that the names of a block's ports are unique among its inputs and among its outputs."""
    repeated = (*_find_repeated_ports(block.inputs, "inputs"), *_find_repeated_ports(block.outputs, "outputs"))
    return Report(faults=repeated)


def validate_flow(flow: Flow, resolver: Resolver | None = None, *, assessment: bool = False) -> Report:
    """Check a flow: its slots, its edges, what it refers to. `assessment`: it must have exactly one terminal slot.

    Without a resolver, references are reported as not judged. Port mappings are checked by `validate_port_mappings`.
    """
    faults = [*_find_repeated_slots(flow), *_find_loose_edges(flow), *_check_terminals(flow, assessment=assessment)]
    references = [
        Reference(path=f"nodes[{at}].target_id", target_id=slot.target_id, version=slot.target_version, kind="block")
        for at, slot in enumerate(flow.nodes)
    ]
    if resolver is None:
        return Report(faults=tuple(faults), not_judged=tuple(one.path for one in references))
    found = (resolve(one, resolver) for one in references)
    return Report(faults=(*faults, *(one for one in found if isinstance(one, Diagnostic))))


def validate_port_mappings(flow: Flow, resolver: Resolver | None = None) -> Report:
    """Check that the port mappings of a flow name ports of the blocks at both ends of their edge.

    An entry has no source, so only its target is checked. An end whose block is unknown is not judged.
    """
    faults: list[Diagnostic] = []
    not_judged: list[str] = []
    blocks = _find_blocks(flow, resolver)
    for at, edge in enumerate(flow.edges):
        for number, mapping in enumerate(edge.port_mappings):
            for side, name, block, ports in _list_ends(edge, mapping, blocks):
                path = f"edges[{at}].port_mappings[{number}].{side}"
                if ports is None:
                    not_judged.append(path)
                elif name not in ports:
                    faults.append(_report_port(path, name, block, ports))
    return Report(faults=tuple(faults), not_judged=tuple(not_judged))


def check_terminal_of_assessment(flow: Flow, path: str) -> Diagnostic | None:
    """Return a fault if a flow does not have exactly one terminal slot, as an assessment needs (GOAL-2)."""
    terminals = flow.terminal_slots
    if len(terminals) == 1:
        return None
    names = ", ".join(flow.slots[one].label for one in terminals) or "none"
    message = f"{flow.name!r} has {len(terminals)} terminal slots: {names}. An assessment needs exactly one."
    fix = "Connect the slots so that one comes last: its output is the verdict."
    return fault(path, "assessment_terminal", message, fix)


def _find_repeated_ports(ports: Iterable[PortDescriptor], side: str) -> Iterator[Diagnostic]:
    first_at: dict[str, int] = {}
    for at, port in enumerate(ports):
        first = first_at.setdefault(port.name, at)
        if first != at:
            message = f"{port.name!r} is also the name of {side}[{first}]."
            yield fault(f"{side}[{at}].name", "duplicate_id", message, "Give one of the two another name.")


def _find_repeated_slots(flow: Flow) -> Iterator[Diagnostic]:
    first_at: dict[Uuid, int] = {}
    for at, slot in enumerate(flow.nodes):
        first = first_at.setdefault(slot.id, at)
        if first != at:
            message = f"nodes[{at}] has the id of nodes[{first}], {slot.id}."
            yield fault(f"nodes[{at}].id", "duplicate_id", message, "Give one of the two slots another id.")


def _find_loose_edges(flow: Flow) -> Iterator[Diagnostic]:
    slots = flow.slots
    for at, edge in enumerate(flow.edges):
        for side, end in (("source_id", edge.source_id), ("target_id", edge.target_id)):
            if end is not None and end not in slots:
                guess = suggest_name(end, slots)
                fix = f"Did you mean {guess}?" if guess else "Name the id of one of the flow's `nodes`."
                yield fault(f"edges[{at}].{side}", "dangling_edge", f"The flow has no slot {end}.", fix)


def _check_terminals(flow: Flow, *, assessment: bool) -> Iterator[Diagnostic]:
    if assessment:
        found = check_terminal_of_assessment(flow, "nodes")
        if found is not None:
            yield found
    elif not flow.terminal_slots:
        message = "The flow has no terminal slot, so it never completes."
        yield fault("nodes", "no_terminal_node", message, "Add a slot without an outgoing edge.")


def _find_blocks(flow: Flow, resolver: Resolver | None) -> Mapping[Uuid, WorkBlock]:
    if resolver is None:
        return {}
    found = {slot_id: resolver.find(slot.target_id, slot.target_version) for slot_id, slot in flow.slots.items()}
    return {slot_id: block for slot_id, block in found.items() if isinstance(block, WorkBlock)}


_End: TypeAlias = tuple[str, str, str, list[str] | None]
"""A field of a mapping, its value, the name of the block at that end, and the block's ports; None if it is unknown."""


def _list_ends(edge: Edge, mapping: PortMapping, blocks: Mapping[Uuid, WorkBlock]) -> Iterator[_End]:
    """Yield both ends of a mapping. An entry has no source."""
    if edge.source_id is not None:
        source = blocks.get(edge.source_id)
        ports = None if source is None else [port.name for port in source.outputs]
        yield "source_port", mapping.source_port, _name(source), ports
    target = blocks.get(edge.target_id)
    ports = None if target is None else [port.name for port in target.inputs]
    yield "target_port", mapping.target_port, _name(target), ports


def _name(block: WorkBlock | None) -> str:
    return "" if block is None else block.name


def _report_port(path: str, name: str, block: str, ports: list[str]) -> Diagnostic:
    side = "output" if path.endswith("source_port") else "input"
    guess = suggest_name(name, ports)
    known = f"Did you mean `{guess}`?" if guess else f"Name one of its {side}s: {', '.join(ports) or 'it has none'}."
    return fault(path, "invalid_port_mapping", f"The block {block!r} has no {side} port {name!r}.", known)
