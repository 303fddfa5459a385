"""The compiler: a document becomes the typed plan that runs exactly as inspected. Pure and deterministic."""

import itertools
from collections.abc import Sequence

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault
from interlock.define.document import PromptBlocks, Step, WorkflowDocument
from interlock.define.workflow_ids import id_status, is_reserved, suggested_id
from interlock.kernel.budgets import PROMPT_BYTES_MAX
from interlock.kernel.ids import SourceKind
from interlock.kernel.text import utf8_bytes
from interlock.plan.compiled import (
    NOTES_CONTRACT,
    CompiledReference,
    CompiledWorkflow,
    ContractPack,
    Evidence,
    Plan,
    PlanEdge,
    PlanNode,
    Provenance,
)

_NOTES_CONTRACT_VERSION = 1


def compile_workflow(document: WorkflowDocument) -> CompiledWorkflow | Diagnostics:
    """Return the compiled workflow of a document, or every fault that only compiling shows."""
    nodes = tuple(_node(step, document) for step in document.steps)
    faults = tuple(
        fault(
            f"steps[{at}]",
            "too_long",
            f"The rendered prompt has {utf8_bytes(node.prompt)} bytes.",
            f"Keep it within {PROMPT_BYTES_MAX}; point at long texts with `references`.",
        )
        for at, node in enumerate(nodes)
        if utf8_bytes(node.prompt) > PROMPT_BYTES_MAX
    )
    if faults:
        return faults
    edges = tuple(
        PlanEdge(kind="next", from_step=earlier.step_id, to_step=later.step_id)
        for earlier, later in itertools.pairwise(nodes)
    )
    fields: dict[str, object] = {
        "schema_version": 1,
        "workflow_id": document.id,
        "name": document.name,
        "description": document.description,
        "guidance": document.guidance,
        "references": tuple(
            CompiledReference(
                id=reference.id,
                title=reference.title,
                source=reference.source,
                purpose=reference.purpose,
                authoritative=reference.authoritative,
            )
            for reference in document.references
        ),
        "contracts": (ContractPack(contract_ref=NOTES_CONTRACT, version=_NOTES_CONTRACT_VERSION),),
        "plan": Plan(v=1, nodes=nodes, edges=edges),
    }
    if document.agent_role is not None:
        fields["agent_role"] = document.agent_role
    return CompiledWorkflow.model_validate(fields)


def placement_diagnostics(
    workflow_id: str, source_kind: SourceKind, taken: frozenset[str] = frozenset()
) -> Diagnostics:
    """Return what an id means in a source: the reserved namespace refuses, an undotted id warns (locks 7)."""
    suggestion = suggested_id(workflow_id, source_kind, taken)
    if source_kind != "bundled" and is_reserved(workflow_id):
        return (
            fault(
                "id",
                "reserved_namespace",
                f"{workflow_id!r} lies in `wr.*`, which is reserved for what ships with Interlock.",
                f"Rename it, for example to `{suggestion}`.",
            ),
        )
    if id_status(workflow_id) == "legacy":
        return (
            Diagnostic(
                path="id",
                code="legacy_id",
                severity="warning",
                message=f"{workflow_id!r} has no namespace.",
                fix=f"Rename it to `{suggestion}`.",
            ),
        )
    return ()


def _node(step: Step, document: WorkflowDocument) -> PlanNode:
    fields: dict[str, object] = {
        "step_id": step.id,
        "kind": "step",
        "owner": "agent",
        "title": step.title,
        "prompt": _prompt(step),
        "require_confirmation": step.require_confirmation,
        "evidence": Evidence(contract_ref=NOTES_CONTRACT, required=step.notes == "required"),
        "provenance": Provenance(source="authored"),
    }
    role = step.agent_role or document.agent_role
    if role is not None:
        fields["agent_role"] = role
    return PlanNode.model_validate(fields)


def _prompt(step: Step) -> str:
    """Render a step's prompt: the text as it stands, or the blocks as sections; guidance comes last."""
    blocks = step.prompt_blocks
    parts = [step.prompt or ""] if blocks is None else _sections(blocks)
    if step.guidance:
        parts.append(_section("Guidance", _bullets(step.guidance)))
    return "\n\n".join(parts)


def _sections(blocks: PromptBlocks) -> list[str]:
    sections = [blocks.goal]
    if blocks.constraints:
        sections.append(_section("Constraints", _bullets(blocks.constraints)))
    if blocks.procedure:
        numbered = "\n".join(f"{number}. {line}" for number, line in enumerate(blocks.procedure, start=1))
        sections.append(_section("Procedure", numbered))
    if blocks.output_required:
        sections.append(_section("Your notes must hold", _bullets(blocks.output_required)))
    if blocks.verify:
        sections.append(_section("Check before you send", _bullets(blocks.verify)))
    return sections


def _section(title: str, body: str) -> str:
    return f"**{title}**\n{body}"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
