"""The pages of the bundled workflows: purpose, inputs, graph, evidence, and what happens on failure."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import interlock
from interlock.cli.render.chart import Mermaid
from interlock.cli.workflow.graph import charted
from interlock.decide.condition import Always, describe_condition
from interlock.decide.criteria import describe_criteria
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.define.parts import ContextInput
from interlock.kernel.canonical import digest_of_bytes
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import loop_words
from interlock.plan.records import ASSESSMENT_CONTRACT, NOTES_CONTRACT, PlanNode, Task
from interlock.service.workflows.listing import Listing
from interlock.views.picture.plan_picture import plan_chart
from interlock.views.picture.svg import render_svg

DIRECTORY = "docs/workflows"
"""Where the pages are."""
_SOURCES = Path(interlock.__file__).parent / "workflows"
_INDEX_HEAD = """# Bundled workflows

Each page is generated from the workflow itself. `interlock workflow inspect <id> --detail source` shows its prompts.

The same rules apply to all of them. After a failed verdict the work is repeated, and a loop limits how often. If it
still fails, the user is asked, and the answer is recorded. A run that never stops ends with open gaps instead and
lists them. `depth: quick` skips the parts that a small task does not need.

"""


def workflow_pages() -> dict[str, str]:
    """Return the page of each bundled workflow and their index, by path in the checkout, without the head line."""
    bundled = [_read(path) for path in sorted(_SOURCES.glob("*.json"))]
    pages = {f"{DIRECTORY}/{_stem(workflow)}.md": _page(document, workflow) for document, workflow in bundled}
    rows = [
        (f"[`{workflow.workflow_id}`]({_stem(workflow)}.md)", re.split(r"[.:] ", document.description or "")[0] + ".")
        for document, workflow in bundled
    ]
    return pages | {f"{DIRECTORY}/README.md": _INDEX_HEAD + _table(("workflow", "for"), rows)}


def listings_file() -> str:
    """Return what lists show of the bundled workflows, by the digest of the file of each."""
    listings = {
        digest_of_bytes(path.read_bytes()): asdict(Listing.of(_read(path)[0]))
        for path in sorted(_SOURCES.glob("*.json"))
    }
    return json.dumps(listings, indent=1, ensure_ascii=False) + "\n"


def workflow_picture(name: str) -> str:
    """Return the picture of a bundled workflow, as `interlock workflow graph --svg` prints it."""
    return render_svg(plan_chart(_read(_SOURCES / f"{name}.json")[1])) + "\n"


def _read(path: Path) -> tuple[WorkflowDocument, CompiledWorkflow]:
    document = parse_workflow(json.loads(path.read_text(encoding="utf-8")))
    assert isinstance(document, WorkflowDocument), f"{path.name} parses"
    outcome = compile_workflow(document)
    assert isinstance(outcome, Compiled), f"{path.name} compiles"
    return document, outcome.workflow


def _stem(workflow: CompiledWorkflow) -> str:
    return workflow.workflow_id.removeprefix("wr.")


def _page(document: WorkflowDocument, workflow: CompiledWorkflow) -> str:
    produced = {key for _, task in _tasks(workflow) for key in task.produces}
    given = [one for one in workflow.inputs if one.key not in workflow.set_by]
    found = [one for one in workflow.inputs if one.key in workflow.set_by]
    inputs = [_input(one, "yes" if one.required else "") for one in given]
    inputs += [_input(one, "") for one in found if one.key in produced]
    evidence = [(_name(node), _evidence(workflow, node, task)) for node, task in _tasks(workflow)]
    examples = "\n".join(f"- {example}" for example in document.examples)
    parts = [
        f"# {workflow.name}\n\n`{workflow.workflow_id}`. {document.description}",
        f"Example requests:\n\n{examples}",
        "## Inputs\n\n" + (_table(("key", "type", "required", "meaning"), inputs) if inputs else "None.\n"),
        f"## Graph\n\n```mermaid\n{charted(workflow, Mermaid()).rstrip()}\n```\n",
        "## Evidence\n\n" + _table(("step", "evidence"), evidence),
        "## What happens on failure\n\n" + "\n".join(f"- {line}" for line in _failures(workflow)) + "\n",
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _tasks(workflow: CompiledWorkflow) -> Iterator[tuple[PlanNode, Task]]:
    for node in workflow.steps.values():
        assert node.task is not None, "a step is a task"
        yield node, node.task


def _name(node: PlanNode) -> str:
    return f"`{node.node_id}`"


def _input(one: ContextInput, required: str) -> tuple[str, ...]:
    kind = ", ".join(f"`{choice}`" for choice in one.choices) if one.choices else one.type
    return f"`{one.key}`", kind, required, one.description


def _evidence(workflow: CompiledWorkflow, node: PlanNode, task: Task) -> str:
    """Return what a step asks for, in the words of the plan."""
    wanted: list[str] = []
    if node.evidence_schema_ref not in (None, NOTES_CONTRACT, ASSESSMENT_CONTRACT):
        wanted.append(f"`{node.evidence_schema_ref}`")
    for name in task.evidence.assessments:
        rated = ", ".join(f"{one.id} ({', '.join(one.levels)})" for one in workflow.ratings[name].dimensions)
        wanted.append(f"rating `{name}`: {rated}")
    if task.evidence.criteria is not None:
        wanted.append(f"notes that {describe_criteria(task.evidence.criteria)}")
    elif task.evidence.notes == "required":
        wanted.append("notes")
    if task.produces:
        wanted.append("context " + ", ".join(f"`{key}`" for key in task.produces))
    if task.needs_user or task.confirmation is not None:
        wanted.append("a person's answer")
    return "; ".join(wanted)


def _failures(workflow: CompiledWorkflow) -> Iterator[str]:
    """Yield a line for each rating that refuses, each loop with a condition, and each question to a person."""
    for node, task in _tasks(workflow):
        for one in task.evidence.consequences:
            yield f"{_name(node)} rated `{one.level}` is refused: {one.guidance}"
    for loop_id, loop in workflow.graphs.loops.items():
        if loop.kind in ("while", "until"):
            yield f"The loop `{loop_id}` runs {loop_words(workflow, loop)}."
    for node, task in _tasks(workflow):
        ways = [f", {when}," for when in _conditions(workflow, node)] or [""]
        asks = [need.ask for need in task.needs_user]
        if isinstance(task.confirmation, Always):
            asks.append("the user confirms the step.")
        for way in ways if asks else ():
            yield f"{_name(node)}{way} asks the user: {' '.join(asks)}"


def _conditions(workflow: CompiledWorkflow, node: PlanNode) -> Iterator[str]:
    for edges in workflow.graphs.out_edges.values():
        for edge in edges:
            if edge.target == node.node_id and edge.condition_id is not None:
                yield f"if {describe_condition(workflow.graphs.conditions[edge.condition_id])}"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines) + "\n"
