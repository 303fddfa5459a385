"""The compiled workflow: what a run may execute, pinned by the digest of its bytes (locks 5, D21).

`workflowHash` is the digest of the canonical bytes of this record. It holds no time, no path and no id of a
session, so the same document compiles to the same hash everywhere.
"""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import WorkflowHash
from interlock.record.base import DelimiterSafe, IndexField, Record, reading_error

NOTES_CONTRACT = "wr.contracts.notes"
"""Evidence of a plain step: its notes (D20)."""

Owner = Literal["harness", "agent", "plugin", "human_gate", "verifier"]


class Provenance(Record):
    """Where a part of the plan comes from."""

    source: Literal["authored", "template_injected", "feature_injected"]
    origin_id: str | None = None


class Evidence(Record):
    """What must come back before a step is done."""

    contract_ref: str
    required: bool


class PlanNode(Record):
    """One step as it will be handed out. The prompt may hold `{{key}}`, rendered with the node's context (D35)."""

    step_id: DelimiterSafe
    kind: Literal["step"]
    owner: Owner
    title: str
    prompt: str
    agent_role: str | None = None
    require_confirmation: bool
    evidence: Evidence
    provenance: Provenance


class PlanEdge(Record):
    """After one step comes another."""

    kind: Literal["next"]
    from_step: DelimiterSafe
    to_step: DelimiterSafe


class Plan(Record):
    """The typed graph that the engine walks. Nodes stand in plan order; the first is the entry."""

    v: Literal[1]
    nodes: Annotated[tuple[PlanNode, ...], Field(min_length=1, strict=False)]
    edges: Annotated[tuple[PlanEdge, ...], Field(strict=False)]


class ContractPack(Record):
    """A contract that the plan refers to, at the version it was compiled with."""

    contract_ref: str
    version: IndexField


class CompiledReference(Record):
    """Material the workflow points at."""

    id: str
    title: str
    source: str
    purpose: str
    authoritative: bool


class CompiledWorkflow(Record):
    """Everything that rendering, judging and going on need; self-contained."""

    schema_version: Literal[1]
    workflow_id: str
    name: str
    description: str
    agent_role: str | None = None
    guidance: Annotated[tuple[str, ...], Field(strict=False)]
    references: Annotated[tuple[CompiledReference, ...], Field(strict=False)]
    contracts: Annotated[tuple[ContractPack, ...], Field(strict=False)]
    plan: Plan

    @cached_property
    def steps(self) -> dict[str, PlanNode]:
        """The plan's steps by id."""
        return {node.step_id: node for node in self.plan.nodes}

    @cached_property
    def followers(self) -> dict[str, str]:
        """The step that comes after each step that has one."""
        return {edge.from_step: edge.to_step for edge in self.plan.edges}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Each step's place in the plan, counted from 1."""
        return {node.step_id: at for at, node in enumerate(self.plan.nodes, start=1)}


def pinned_bytes(workflow: CompiledWorkflow) -> tuple[WorkflowHash, bytes]:
    """Return a compiled workflow's hash and the bytes it is the hash of."""
    data = workflow.to_bytes()
    return WorkflowHash(digest_of_bytes(data)), data


def parse_compiled(data: bytes) -> CompiledWorkflow:
    """Return the compiled workflow that pinned bytes hold.

    Raises:
        UnknownVersionError: A newer Interlock compiled it.
        MalformedRecordError: It is none.
    """
    try:
        return CompiledWorkflow.model_validate_json(data, by_name=False)
    except ValidationError as error:
        raise reading_error("compiled workflow", error) from None
