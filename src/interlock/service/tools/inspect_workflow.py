"""`inspect_workflow`: exactly what a run would execute, before it does. Writes nothing."""

import json
from pathlib import Path
from typing import Literal, cast

from interlock.define.parts import ContextInput
from interlock.define.workflow_ids import classify_id
from interlock.engine.answer.links import plan_link
from interlock.engine.answer.model import Answer
from interlock.engine.answer.structure import ReferenceOut
from interlock.engine.published import Published
from interlock.kernel.budgets import INSPECT_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.text import flat, utf8_bytes
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import input_lines, outline_lines, step_lines
from interlock.plan.records import NOTES_CONTRACT, PlanNode
from interlock.service.tools.start_workflow import find_startable
from interlock.service.workflows.catalog import Catalog, Entry, Pinnable

Detail = Literal["summary", "plan", "source"]


@frozen
class InspectCommand:
    """A parsed call."""

    workflow_id: str
    workspace: Path | None
    is_workspace_sent: bool = False
    detail: Detail = "summary"


class InspectedStep(Published):
    """A step in short."""

    step_id: str
    title: str
    require_confirmation: bool
    notes_required: bool
    contract_ref: str | None = None
    loops: tuple[str, ...] | None = None


class InspectAnswer(Published):
    """Answer of `inspect_workflow`."""

    workflow_id: str
    name: str
    description: str
    tags: tuple[str, ...]
    workflow_hash: str
    source_kind: str
    source_ref: str
    id_status: Literal["namespaced", "legacy"]
    guidance: tuple[str, ...]
    references: tuple[ReferenceOut, ...]
    steps: tuple[InspectedStep, ...]
    examples: tuple[str, ...] | None = None
    inputs: tuple[dict[str, Json], ...] | None = None
    plan: dict[str, Json] | None = None
    outline: tuple[str, ...] | None = None
    plan_resource: str | None = None
    source: dict[str, Json] | None = None


def inspect_workflow(catalog: Catalog, command: InspectCommand) -> Answer | Refusal:
    """Return a workflow as a summary, as the plan that will run, or as its source.

    Warnings are for its author, not for an agent that runs it: `interlock workflow validate` reports them (SRC-7).
    """
    view, is_sent = catalog.view(command.workspace), command.is_workspace_sent
    found = find_startable(view, command.workflow_id, command.workspace, is_workspace_sent=is_sent)
    if isinstance(found, Refusal):
        return found
    entry, pinned = found
    data, text = _summary(entry, pinned), _summary_text(entry, pinned)
    match command.detail:
        case "plan":
            return _with_plan(data, text, pinned.workflow)
        case "source":
            return _with_source(data, text, entry)
        case "summary":
            return Answer(data=data, text=text)


def _with_plan(data: InspectAnswer, text: str, workflow: CompiledWorkflow) -> Answer:
    """Add the plan, step by step; if it is too long for an answer, the outline and a link to the whole plan."""
    plan = _without_prompt_parts(workflow.plan.to_json())
    whole = text + "".join(f"\n\n{lines}" for lines in step_lines(workflow))
    if utf8_bytes(whole) <= INSPECT_BYTES_MAX and len(json.dumps(plan, ensure_ascii=False)) <= INSPECT_BYTES_MAX:
        return Answer(data=data.changed(plan=plan), text=whole)
    link, outline = plan_link(workflow.workflow_id), tuple(outline_lines(workflow))
    note = f"The whole plan is too long for one answer: read the resource {link}."
    return Answer(
        data=data.changed(outline=outline, plan_resource=link),
        text="\n\n".join([text, note, "\n".join(outline)]),
        link=(link, f"Plan of {flat(workflow.name)}"),
    )


def _without_prompt_parts(plan: dict[str, Json]) -> dict[str, Json]:
    """Return a plan with each prompt once, as agents read it: joined, without the parts that it is made of (ANS-28)."""
    nodes = cast("list[dict[str, Json]]", plan["nodes"])
    tasks = (cast("dict[str, Json]", node["task"]) for node in nodes if "task" in node)
    for task in tasks:
        task.pop("promptBlocks", None)
    return plan


def plan_text(catalog: Catalog, workflow_id: str, workspace: Path | None) -> str | Refusal:
    """Return a workflow's whole plan as text: every step with its prompt and the evidence that it requires."""
    found = find_startable(catalog.view(workspace), workflow_id, workspace)
    if isinstance(found, Refusal):
        return found
    entry, pinned = found
    return _summary_text(entry, pinned) + "".join(f"\n\n{lines}" for lines in step_lines(pinned.workflow))


def _with_source(data: InspectAnswer, text: str, entry: Entry) -> Answer:
    source = json.dumps(entry.document.value, ensure_ascii=False, indent=2)
    return Answer(data=data.changed(source=entry.document.value), text=f"{text}\n\n```json\n{source}\n```")


def _summary(entry: Entry, pinned: Pinnable) -> InspectAnswer:
    workflow = pinned.workflow
    return InspectAnswer(
        workflow_id=workflow.workflow_id,
        name=workflow.name,
        description=workflow.description,
        tags=entry.listing.tags,
        workflow_hash=pinned.workflow_hash,
        source_kind=entry.source.kind,
        source_ref=entry.source.ref,
        id_status=classify_id(workflow.workflow_id) or "legacy",
        guidance=workflow.guidance,
        references=tuple(map(ReferenceOut.of, workflow.references)),
        steps=tuple(_step(workflow, node) for node in workflow.steps.values()),
        examples=entry.listing.examples or None,
        inputs=tuple(_input(workflow, one) for one in workflow.inputs) or None,
    )


def _step(workflow: CompiledWorkflow, node: PlanNode) -> InspectedStep:
    assert node.task is not None, "every step of a plan is a task"
    return InspectedStep(
        step_id=node.node_id,
        title=node.title,
        require_confirmation=node.task.confirmation is not None,
        notes_required=node.task.evidence.notes == "required",
        contract_ref=node.evidence_schema_ref if node.evidence_schema_ref != NOTES_CONTRACT else None,
        loops=workflow.graphs.loops_around(node.node_id) or None,
    )


def _input(workflow: CompiledWorkflow, declared: ContextInput) -> dict[str, Json]:
    described: dict[str, Json] = declared.to_json()
    steps = workflow.set_by.get(declared.key, ())
    if steps:
        described["setBy"] = list(steps)
    return described


def _summary_text(entry: Entry, pinned: Pinnable) -> str:
    workflow = pinned.workflow
    lines = [
        f"**{workflow.name}** (`{workflow.workflow_id}`), {entry.source.kind}, `{pinned.workflow_hash}`",
        workflow.description,
    ]
    lines += [f"- {rule}" for rule in workflow.guidance]
    lines += [f"- {reference.title}: {reference.source} — {reference.purpose}" for reference in workflow.references]
    lines += input_lines(workflow)
    lines += [f"- for example: {example}" for example in entry.listing.examples]
    lines = [flat(line) for line in lines] + outline_lines(workflow)
    return "\n".join(line for line in lines if line)
