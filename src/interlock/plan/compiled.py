"""The compiled workflow: what a run may execute, pinned by the digest of its bytes (PLAN-1, EVID-1).

`workflowHash` is the digest of the canonical bytes of this record. It holds no time, no path and no id of a
session, so the same document compiles to the same hash everywhere.
"""

from functools import cached_property
from typing import Literal

import msgspec

from interlock.define.parts import (
    Assessment,
    ContextInput,
    FunctionDefinition,
    ProducedKey,
    RecommendedPreferences,
    Reference,
)
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.ids import Digest, WorkflowHash
from interlock.kernel.shape import EMPTY, Reader, Written
from interlock.plan.adapter import AdapterEvent, AdapterIntent, AdapterManifest, adapter_key
from interlock.plan.graph import Graphs
from interlock.plan.records import Plan, PlanNode
from interlock.record.base import IndexField, Record, UuidField, read_record
from interlock.record.outcome import Capability


class ContractPack(Record):
    """A contract that the plan refers to, pinned when the plan was compiled (EVID-1)."""

    contract_ref: str
    version: IndexField
    artifact_kind: str | None = None
    artifact_schema: dict[str, Json] | None = None


class ScopedFunction(Record):
    """Instructions with a name. `owner` is the step or loop they are visible in; absent: everywhere."""

    function: FunctionDefinition
    owner: str | None = None


class CapabilityDemand(Record):
    """How much a workflow needs a capability of the client."""

    capability: Capability
    need: Literal["required", "preferred", "disabled"]


class AppliedFeature(Record):
    """A feature with its configuration, defaults filled in."""

    feature_id: str
    config: dict[str, Json]


class CompiledWarning(Record):
    """A warning of the compiler; the workflow can still run."""

    code: str
    message: str


class FlowSlot(Record):
    """A step that is a slot of a flow: the slot, and the version of the block in it."""

    node_id: str
    slot: UuidField
    block: UuidField
    block_version: IndexField


class FlowOrigin(Record):
    """The flow that a plan was lowered from, with its slots in plan order."""

    flow_id: UuidField
    flow_version: IndexField
    slots: tuple[FlowSlot, ...]


class CompiledWorkflow(Record, dict=True):
    """Everything that a run needs to render, check and continue; self-contained.

    A member that has a `Written` default may be left out of a plan file, and is in the bytes of every plan (IR-18).
    """

    schema_version: Literal[1]
    workflow_id: str
    name: str
    description: str = msgspec.field(default_factory=Written(""))
    agent_role: str | None = None
    guidance: tuple[str, ...] = msgspec.field(default_factory=EMPTY)
    references: tuple[Reference, ...] = msgspec.field(default_factory=EMPTY)
    capabilities: tuple[CapabilityDemand, ...] = msgspec.field(default_factory=EMPTY)
    features: tuple[AppliedFeature, ...] = msgspec.field(default_factory=EMPTY)
    inputs: tuple[ContextInput, ...] = msgspec.field(default_factory=EMPTY)
    produced: tuple[ProducedKey, ...] = ()
    functions: tuple[ScopedFunction, ...] = msgspec.field(default_factory=EMPTY)
    assessments: tuple[Assessment, ...] = msgspec.field(default_factory=EMPTY)
    contracts: tuple[ContractPack, ...] = msgspec.field(default_factory=EMPTY)
    recommended: RecommendedPreferences | None = None
    plan: Plan
    compiled_warnings: tuple[CompiledWarning, ...] = msgspec.field(default_factory=EMPTY)
    flow: FlowOrigin | None = None

    @cached_property
    def graphs(self) -> Graphs:
        """The plan's graphs, indexed for walking."""
        return Graphs.of(self.plan)

    @cached_property
    def steps(self) -> dict[str, PlanNode]:
        """The plan's tasks by id, in plan order."""
        return {node.node_id: node for node in self.plan.nodes if node.task is not None}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Each task's number, counted from 1."""
        return {step_id: at for at, step_id in enumerate(self.steps, start=1)}

    @cached_property
    def packs(self) -> dict[str, ContractPack]:
        """The pinned contract packs by reference."""
        return {pack.contract_ref: pack for pack in self.contracts}

    @cached_property
    def declared(self) -> dict[str, ProducedKey]:
        """The declarations of context keys by key: the inputs, and what steps declare that they produce (CTX-12)."""
        return {one.key: one for one in (*self.inputs, *self.produced)}

    @cached_property
    def set_by(self) -> dict[str, tuple[str, ...]]:
        """The steps that set a context key, by key, in plan order."""
        found: dict[str, list[str]] = {}
        for step_id, node in self.steps.items():
            assert node.task is not None, "a step is a task"
            mirrored = (key for action in node.task.emits for key in sorted(action.mirror))
            for key in dict.fromkeys([*(action.key for action in node.task.sets), *mirrored]):
                found.setdefault(key, []).append(step_id)
        return {key: tuple(step_ids) for key, step_ids in found.items()}

    @cached_property
    def adapter(self) -> AdapterManifest | None:
        """What is declared of context keys, events and intents; None if nothing is."""
        names = sorted({*self.declared, *self.set_by})
        keys = tuple(adapter_key(name, self.declared.get(name), self.set_by.get(name, ())) for name in names)
        events, intents = self._adapter_events(), self._adapter_intents()
        if not (keys or events or intents):
            return None
        return AdapterManifest(workflow_id=self.workflow_id, keys=keys, events=events, intents=intents)

    def _adapter_events(self) -> tuple[AdapterEvent, ...]:
        awaited = ((step_id, node.task.awaits) for step_id, node in self.steps.items() if node.task is not None)
        return tuple(
            AdapterEvent(step=step_id, event=one.event, fields=dict(one.fields), assurance=one.assurance)
            for step_id, one in awaited
            if one is not None
        )

    def _adapter_intents(self) -> tuple[AdapterIntent, ...]:
        return tuple(
            AdapterIntent(step=step_id, sends=one.kind, fields=tuple(sorted(one.fields)), mirror=dict(one.mirror))
            for step_id, node in self.steps.items()
            for one in (node.task.emits if node.task is not None else ())
        )

    @cached_property
    def asks_people(self) -> bool:
        """Whether a step waits for a person's answer."""
        tasks = (one.task for one in self.steps.values())
        return any(one is not None and one.awaits is not None and one.awaits.approval is not None for one in tasks)

    @cached_property
    def sends(self) -> tuple[str, ...]:
        """The kinds of the intents that its steps may send, ordered."""
        return tuple(sorted({one.sends for one in self._adapter_intents()}))

    @cached_property
    def checks(self) -> tuple[str, ...]:
        """The names of the checks that its steps wait for, ordered."""
        awaited = (node.task.awaits for node in self.steps.values() if node.task is not None)
        return tuple(sorted({one.check for one in awaited if one is not None and one.check is not None}))

    @cached_property
    def adapter_digest(self) -> Digest | None:
        """The digest of the adapter manifest."""
        return self.adapter.digest() if self.adapter is not None else None

    @cached_property
    def loose_functions(self) -> tuple[FunctionDefinition, ...]:
        """The workflow's functions that no step refers to."""
        referred = {name for node in self.steps.values() if node.task for name in node.task.functions}
        return tuple(one.function for one in self.functions if one.owner is None and one.function.name not in referred)

    @cached_property
    def slots(self) -> dict[str, FlowSlot]:
        """The slots of the flow by step; empty if the plan is that of a workflow."""
        return {slot.node_id: slot for slot in self.flow.slots} if self.flow is not None else {}

    @cached_property
    def output_keys(self) -> frozenset[str]:
        """The context keys that hold the outputs of slots."""
        return frozenset(map(output_key, self.slots))

    @cached_property
    def ratings(self) -> dict[str, Assessment]:
        """The assessments by id."""
        return {assessment.id: assessment for assessment in self.assessments}


def output_key(node_id: str) -> str:
    """Return the context key with the outputs of a slot, by port. A key begins with a letter, which ids need not."""
    return node_id if node_id[0].isalpha() else f"slot-{node_id}"


def pinned_bytes(workflow: CompiledWorkflow) -> tuple[WorkflowHash, bytes]:
    """Return a compiled workflow's hash and its canonical bytes."""
    data = workflow.to_bytes()
    return WorkflowHash(digest_of_bytes(data)), data


_WORKFLOW: Reader[CompiledWorkflow] = Reader(CompiledWorkflow)


def parse_compiled(data: bytes) -> CompiledWorkflow:
    """Return the compiled workflow that pinned bytes hold.

    Raises:
        UnknownVersionError: A newer Interlock compiled it.
        MalformedRecordError: The bytes are no compiled workflow.
    """
    return read_record("compiled workflow", _WORKFLOW, data)
