"""Fluent builders of blocks, flows and contracts; each `build` validates what it returns (OPS-14).

An id that is not given is derived: that of a definition from its kind and name, that of a slot or an outcome from the
definition and its alias or name. So the same calls build the same definition everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Self

from interlock.define.diagnostics import Diagnostic, fault, suggest_name
from interlock.define.operations.base import InvalidDefinitionError
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.contracts import Contract
from interlock.define.operations.definitions import Definition, DefinitionKind, Definitions
from interlock.define.operations.flows import Condition, Flow
from interlock.define.operations.validate_contract import validate_contract
from interlock.define.operations.validate_flow import validate_block, validate_flow, validate_port_mappings
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.uuids import Uuid, derived_uuid


class _Builder:
    """The fields that all definitions have."""

    def __init__(self, kind: DefinitionKind, name: str) -> None:
        self._fields: dict[str, Json] = {"id": derived_uuid(kind, name), "version": 1, "name": name}

    def id(self, definition_id: str) -> Self:
        """Set the id. Call it before any slot or outcome is added, because their ids depend on it."""
        self._fields["id"] = definition_id
        return self

    def version(self, version: int) -> Self:
        """Set the version; without a call it is 1."""
        self._fields["version"] = version
        return self

    def description(self, text: str) -> Self:
        """Set the description."""
        self._fields["description"] = text
        return self

    def metadata(self, values: Mapping[str, Json]) -> Self:
        """Set the metadata."""
        self._fields["metadata"] = dict(values)
        return self

    def _derive_id(self, part: str, name: str) -> Uuid:
        return derived_uuid(part, str(self._fields["id"]), name)


class WorkBlockBuilder(_Builder):
    """Builds a work block."""

    def __init__(self, name: str) -> None:
        super().__init__("block", name)
        self._ports: dict[str, list[Json]] = {"inputs": [], "outputs": []}
        self._hints: list[Json] = []

    def input(
        self, name: str, description: str = "", *, required: bool = True, schema: Mapping[str, Json] | None = None
    ) -> Self:
        """Add an input port."""
        return self._add_port("inputs", name, description, required=required, schema=schema)

    def output(
        self, name: str, description: str = "", *, required: bool = True, schema: Mapping[str, Json] | None = None
    ) -> Self:
        """Add an output port."""
        return self._add_port("outputs", name, description, required=required, schema=schema)

    def hint(self, capability: str) -> Self:
        """Add a capability that an executor needs, such as `sql-access`. Never the name of an executor."""
        self._hints.append(capability)
        return self

    def build(self) -> WorkBlock:
        """Return the block.

        Raises:
            InvalidDefinitionError: It has faults; the error lists all of them.
        """
        block = WorkBlock.from_json({**self._fields, **self._ports, "execution_hints": self._hints})
        validate_block(block).raise_faults()
        return block

    def _add_port(
        self, side: str, name: str, description: str, *, required: bool, schema: Mapping[str, Json] | None
    ) -> Self:
        port: dict[str, Json] = {"name": name, "description": description, "required": required}
        self._ports[side].append(port if schema is None else {**port, "schema": dict(schema)})
        return self


@frozen
class _Way:
    """An edge by the aliases of its ends."""

    source: str | None
    target: str
    condition: Condition | None
    mappings: Mapping[str, str]


class FlowBuilder(_Builder):
    """Builds a flow. Its slots are named by their aliases."""

    def __init__(self, name: str) -> None:
        super().__init__("flow", name)
        self._slots: list[tuple[str, WorkBlock]] = []
        self._ways: list[_Way] = []

    def add_block(self, block: WorkBlock, alias: str | None = None) -> Self:
        """Add a slot for a block. Without an alias, the block's name is the alias."""
        self._slots.append((alias if alias is not None else block.name, block))
        return self

    def edge(
        self,
        source: str,
        target: str,
        condition: Condition | None = None,
        mappings: Mapping[str, str] | None = None,
    ) -> Self:
        """Add an edge between two aliases. `mappings`: input ports of the target by output ports of the source."""
        self._ways.append(_Way(source=source, target=target, condition=condition, mappings=mappings or {}))
        return self

    def entry(self, alias: str, condition: Condition | None = None, mappings: Mapping[str, str] | None = None) -> Self:
        """Mark a slot as a beginning. `mappings`: input ports of the slot by the flow's external inputs."""
        self._ways.append(_Way(source=None, target=alias, condition=condition, mappings=mappings or {}))
        return self

    def expected_outcome(self, outcome: Json) -> Self:
        """Set the expected outcome, any JSON value."""
        self._fields["expected_outcome"] = outcome
        return self

    def build(self, *, assessment: bool = False) -> Flow:
        """Return the flow. `assessment`: it must have exactly one terminal slot.

        Raises:
            InvalidDefinitionError: It has faults; the error lists all of them.
        """
        ids = {alias: self._derive_id("slot", alias) for alias, _ in self._slots}
        unknown = [*self._find_unknown(ids)]
        if unknown:
            raise InvalidDefinitionError(tuple(unknown))
        nodes: list[Json] = [
            {"id": ids[alias], "alias": alias, "target_id": block.id, "target_version": block.version}
            for alias, block in self._slots
        ]
        flow = Flow.from_json({**self._fields, "nodes": nodes, "edges": [_edge_json(one, ids) for one in self._ways]})
        blocks = Definitions(block for _, block in self._slots)
        report = validate_flow(flow, blocks, assessment=assessment)
        faults = (*report.faults, *validate_port_mappings(flow, blocks).faults)
        if faults:
            raise InvalidDefinitionError(faults)
        return flow

    def _find_unknown(self, ids: Mapping[str, Uuid]) -> Sequence[Diagnostic]:
        found: list[Diagnostic] = []
        for at, way in enumerate(self._ways):
            for side, alias in (("source_id", way.source), ("target_id", way.target)):
                if alias is not None and alias not in ids:
                    guess = suggest_name(alias, ids)
                    fix = f"Did you mean {guess!r}?" if guess else "Add the block with this alias."
                    message = f"The flow has no slot with the alias {alias!r}."
                    found.append(fault(f"edges[{at}].{side}", "dangling_edge", message, fix))
        return found


def _edge_json(way: _Way, ids: Mapping[str, Uuid]) -> Json:
    return {
        "source_id": None if way.source is None else ids[way.source],
        "target_id": ids[way.target],
        "condition": None if way.condition is None else way.condition.to_json(),
        "port_mappings": [{"source_port": source, "target_port": target} for source, target in way.mappings.items()],
    }


@mutable
class _Parts:
    """The lists of a contract as JSON, and the definitions that they name."""

    work_flows: list[Json] = field(default_factory=list[Json])
    sub_contracts: list[Json] = field(default_factory=list[Json])
    required_outcomes: list[Json] = field(default_factory=list[Json])
    assessment_bindings: list[Json] = field(default_factory=list[Json])
    named: list[Definition] = field(default_factory=list[Definition])


class ContractBuilder(_Builder):
    """Builds a contract. Its outcomes are named by their names."""

    def __init__(self, name: str) -> None:
        super().__init__("contract", name)
        self._parts = _Parts()

    def work_flow(self, flow: Flow, alias: str | None = None) -> Self:
        """Add a flow to the work side."""
        self._parts.named.append(flow)
        self._parts.work_flows.append({**_flow_json(flow), "alias": alias})
        return self

    def sub_contract(self, contract: Contract, alias: str | None = None) -> Self:
        """Add a contract to the work side."""
        self._parts.named.append(contract)
        self._parts.sub_contracts.append(
            {"contract_id": contract.id, "contract_version": contract.version, "alias": alias}
        )
        return self

    def required_outcome(self, name: str, description: str = "") -> Self:
        """Add an outcome that the contract must have."""
        outcome_id = self._derive_id("outcome", name)
        self._parts.required_outcomes.append({"id": outcome_id, "name": name, "description": description})
        return self

    def assess(self, outcome: str, flow: Flow, test_flows: Sequence[Flow] = ()) -> Self:
        """Add an assessment of an outcome: a flow with one terminal slot, and flows whose outputs it judges."""
        self._parts.named += [flow, *test_flows]
        self._parts.assessment_bindings.append(
            {
                "required_outcome_id": self._derive_id("outcome", outcome),
                "assessment_flow_id": flow.id,
                "assessment_flow_version": flow.version,
                "test_flow_refs": [_flow_json(one) for one in test_flows],
            }
        )
        return self

    def build(self) -> Contract:
        """Return the contract. An outcome that nothing assesses is allowed.

        Raises:
            InvalidDefinitionError: It has faults; the error lists all of them.
        """
        parts = self._parts
        contract = Contract.from_json(
            {
                **self._fields,
                "work_flows": parts.work_flows,
                "sub_contracts": parts.sub_contracts,
                "required_outcomes": parts.required_outcomes,
                "assessment_bindings": parts.assessment_bindings,
            }
        )
        validate_contract(contract, Definitions(parts.named)).raise_faults()
        return contract


def _flow_json(flow: Flow) -> dict[str, Json]:
    return {"flow_id": flow.id, "flow_version": flow.version}
