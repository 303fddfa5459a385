"""`inspect_workflow`: exactly what a run would execute, before it does. Writes nothing."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.define.workflow_ids import id_status
from interlock.engine.answer import Answer
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.plan.compiled import PlanNode
from interlock.plan.compiler import placement_diagnostics
from interlock.service.catalog import Catalog, Entry
from interlock.service.start_workflow import found_entry

Detail = Literal["summary", "plan", "source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectCommand:
    """A parsed call."""

    workflow_id: str
    workspace: Path | None
    detail: Detail = "summary"


def inspect_workflow(catalog: Catalog, command: InspectCommand) -> Answer | Refusal:
    """Return a workflow as a summary, as the compiled plan, or as its source."""
    view = catalog.view(command.workspace)
    entry = found_entry(view, command.workflow_id)
    if isinstance(entry, Refusal):
        return entry
    warnings = placement_diagnostics(entry.workflow_id, entry.source_kind, frozenset(view.entries))
    structure = _summary(entry)
    if warnings:
        structure["warnings"] = [diagnostic.to_json() for diagnostic in warnings]
    suggested = view.suggested(entry)
    if suggested is not None:
        structure["suggestedId"] = suggested
    text = "\n".join([_summary_text(entry), *(f"> {diagnostic.line()}" for diagnostic in warnings)])
    if command.detail == "plan":
        structure["plan"] = entry.compiled.plan.to_json()
        text += "".join(_step_text(number, node) for number, node in enumerate(entry.compiled.plan.nodes, start=1))
    if command.detail == "source":
        structure["source"] = entry.source
        text += f"\n\n```json\n{json.dumps(entry.source, ensure_ascii=False, indent=2)}\n```"
    return Answer(structure=structure, text=text)


def _summary(entry: Entry) -> dict[str, Json]:
    document, compiled = entry.document, entry.compiled
    summary: dict[str, Json] = {
        "workflowId": document.id,
        "name": document.name,
        "description": document.description,
        "tags": list(document.tags),
        "workflowHash": entry.workflow_hash,
        "sourceKind": entry.source_kind,
        "sourceRef": entry.source_ref,
        "idStatus": id_status(document.id) or "legacy",
        "guidance": list(document.guidance),
        "references": [reference.to_json() for reference in compiled.references],
        "steps": [_step(node) for node in compiled.plan.nodes],
    }
    return summary


def _step(node: PlanNode) -> dict[str, Json]:
    return {
        "stepId": node.step_id,
        "title": node.title,
        "requireConfirmation": node.require_confirmation,
        "notesRequired": node.evidence.required,
    }


def _summary_text(entry: Entry) -> str:
    document = entry.document
    lines = [
        f"**{document.name}** (`{document.id}`), {entry.source_kind}, `{entry.workflow_hash}`",
        document.description,
    ]
    lines += [f"- {rule}" for rule in document.guidance]
    lines += [
        f"- {reference.title}: {reference.source} — {reference.purpose}" for reference in entry.compiled.references
    ]
    lines += [
        f"{number}. {node.title} (`{node.step_id}`{', needs confirmation' if node.require_confirmation else ''})"
        for number, node in enumerate(entry.compiled.plan.nodes, start=1)
    ]
    return "\n".join(line for line in lines if line)


def _step_text(number: int, node: PlanNode) -> str:
    role = f"*{node.agent_role}*\n\n" if node.agent_role else ""
    return f"\n\n## {number}. {node.title}\n\n{role}{node.prompt}"
