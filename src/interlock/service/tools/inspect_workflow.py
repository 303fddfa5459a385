"""`inspect_workflow`: exactly what a run would execute, before it does. Writes nothing."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.define.parts import ContextInput
from interlock.define.workflow_ids import classify_id
from interlock.engine.answer.model import Answer
from interlock.kernel.budgets import INSPECT_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.kernel.text import utf8_bytes
from interlock.plan.compile.compiler import placement_diagnostics
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import input_lines, outline_lines, step_lines, step_summaries
from interlock.service.catalog import Catalog, Entry, Pinnable
from interlock.service.links import plan_link
from interlock.service.tools.start_workflow import compiled_of, found_entry

Detail = Literal["summary", "plan", "source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectCommand:
    """A parsed call."""

    workflow_id: str
    workspace: Path | None
    detail: Detail = "summary"


def inspect_workflow(catalog: Catalog, command: InspectCommand) -> Answer | Refusal:
    """Return a workflow as a summary, as the plan that will run, or as its source."""
    view = catalog.view(command.workspace)
    entry = found_entry(view, command.workflow_id)
    pinned = entry if isinstance(entry, Refusal) else compiled_of(entry)
    if isinstance(pinned, Refusal):
        return pinned
    assert isinstance(entry, Entry), "what compiled is an entry"
    others = frozenset(view.entries)
    placement = placement_diagnostics(entry.workflow_id, entry.source.kind, others)
    warnings = [one for one in pinned.warnings if one.code != "legacy_id"] + list(placement)
    structure = _summary(entry, pinned)
    if warnings:
        structure["warnings"] = [diagnostic.to_json() for diagnostic in warnings]
    suggested = view.suggested(entry)
    if suggested is not None:
        structure["suggestedId"] = suggested
    text = "\n".join([_summary_text(entry, pinned), *(f"> {diagnostic.render_line()}" for diagnostic in warnings)])
    match command.detail:
        case "plan":
            return _with_plan(structure, text, pinned.workflow)
        case "source":
            return _with_source(structure, text, entry)
        case "summary":
            return Answer(structure=structure, text=text)


def _with_plan(structure: dict[str, Json], text: str, workflow: CompiledWorkflow) -> Answer:
    """Add what will run, step by step; where that is too much for an answer, the outline and where the whole is."""
    plan = workflow.plan.to_json()
    whole = text + "".join(f"\n\n{lines}" for lines in step_lines(workflow))
    if utf8_bytes(whole) <= INSPECT_BYTES_MAX and len(json.dumps(plan, ensure_ascii=False)) <= INSPECT_BYTES_MAX:
        return Answer(structure=structure | {"plan": plan}, text=whole)
    link = plan_link(workflow.workflow_id)
    outline = "\n".join(outline_lines(workflow))
    note = f"The whole plan is too long for one answer: read the resource {link}."
    structure["outline"] = list(outline_lines(workflow))
    structure["planResource"] = link
    return Answer(
        structure=structure,
        text=f"{text}\n\n{note}\n\n{outline}",
        link=(link, f"Plan of {workflow.name}"),
    )


def plan_text(catalog: Catalog, workflow_id: str, workspace: Path | None) -> str | Refusal:
    """Return a workflow's whole plan as text: every step with its prompt and the evidence it asks for."""
    entry = found_entry(catalog.view(workspace), workflow_id)
    pinned = entry if isinstance(entry, Refusal) else compiled_of(entry)
    if isinstance(pinned, Refusal):
        return pinned
    assert isinstance(entry, Entry), "what compiled is an entry"
    return _summary_text(entry, pinned) + "".join(f"\n\n{lines}" for lines in step_lines(pinned.workflow))


def _with_source(structure: dict[str, Json], text: str, entry: Entry) -> Answer:
    source = json.dumps(entry.value, ensure_ascii=False, indent=2)
    return Answer(structure=structure | {"source": entry.value}, text=f"{text}\n\n```json\n{source}\n```")


def _summary(entry: Entry, pinned: Pinnable) -> dict[str, Json]:
    document, workflow = entry.document, pinned.workflow
    summary: dict[str, Json] = {
        "workflowId": document.id,
        "name": document.name,
        "description": document.description,
        "tags": list(document.tags),
        "workflowHash": pinned.workflow_hash,
        "sourceKind": entry.source.kind,
        "sourceRef": entry.source.ref,
        "idStatus": classify_id(document.id) or "legacy",
        "guidance": list(document.guidance),
        "references": [reference.model_dump(mode="json", by_alias=True) for reference in workflow.references],
        "steps": list(step_summaries(workflow)),
    }
    if document.examples:
        summary["examples"] = list(document.examples)
    if workflow.inputs:
        summary["inputs"] = [_input(workflow, one) for one in workflow.inputs]
    return summary


def _input(workflow: CompiledWorkflow, declared: ContextInput) -> dict[str, Json]:
    told: dict[str, Json] = declared.model_dump(mode="json", by_alias=True, exclude_unset=True)
    steps = workflow.set_by.get(declared.key, ())
    if steps:
        told["setBy"] = list(steps)
    return told


def _summary_text(entry: Entry, pinned: Pinnable) -> str:
    document, workflow = entry.document, pinned.workflow
    lines = [
        f"**{document.name}** (`{document.id}`), {entry.source.kind}, `{pinned.workflow_hash}`",
        document.description,
    ]
    lines += [f"- {rule}" for rule in document.guidance]
    lines += [f"- {reference.title}: {reference.source} — {reference.purpose}" for reference in workflow.references]
    lines += input_lines(workflow)
    lines += [f"- for example: {example}" for example in document.examples]
    lines += outline_lines(workflow)
    return "\n".join(line for line in lines if line)
