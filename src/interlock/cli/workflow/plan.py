"""`interlock workflow plan`: the compiled plan that a run would follow. Writes nothing."""

import argparse
from collections.abc import Iterator

from interlock.cli.options import add_json
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.workflow.places import add_place_options, chosen_places, chosen_workflow
from interlock.decide.condition import describe_condition
from interlock.kernel.ids import WorkflowHash
from interlock.plan.check.plan_file import plan_document
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import constraints_of, gate_after, input_lines, loop_words, outline_lines, profile_lines
from interlock.plan.provenance import hash_parts, text_origins
from interlock.plan.records import PlanNode, Task

_HEADS = ("NODE", "KIND", "OWNER", "INPUT", "EVIDENCE", "IN LOOP", "FROM", "NEXT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow", metavar="ID|FILE", help="the id of a workflow, or the path of a workflow file")
    add_plan_options(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the plan of an id or a file: as data, or its outline, its nodes and its loops. Return the exit code.

    Raises:
        StopError: There is no such workflow, or it has faults.
    """
    _, pinned = chosen_workflow(chosen_places(options), options.workflow)
    if options.as_json:
        say_json(plan_document(pinned.workflow))
    else:
        say_plan(pinned.workflow, pinned.workflow_hash, options)
    return 0


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that print more of a plan."""
    parser.add_argument(
        "--prompts", dest="shows_prompts", action="store_true", help="also the prompt of each step, part by part"
    )
    parser.add_argument(
        "--origins",
        dest="shows_origins",
        action="store_true",
        help="also the built-in texts in the prompts, and the parts of the workflow that its hash covers",
    )


def say_plan(compiled: CompiledWorkflow, workflow_hash: WorkflowHash, options: argparse.Namespace) -> None:
    """Print a plan: its outline, its nodes and its loops; origins and prompts only if the options ask for them."""
    say(f"{compiled.name} ({compiled.workflow_id})\n{workflow_hash}, plan version {compiled.plan.v}\n")
    say("\n".join([*profile_lines(compiled), *input_lines(compiled), *outline_lines(compiled)]) + "\n")
    rows = (row for node in compiled.plan.nodes for row in _rows(compiled, node))
    say_table(_HEADS, rows, ids=("NODE", "IN LOOP"))
    constrained = [(node.node_id, "; ".join(constraints_of(compiled, node))) for node in compiled.plan.nodes]
    if any(facts for _, facts in constrained):
        say("")
        say_table(("NODE", "CONSTRAINTS"), (row for row in constrained if row[1]), ids=("NODE",))
    if compiled.plan.loops:
        say("")
        rows = ((loop.loop_id, loop_words(compiled, loop), loop.on_limit) for loop in compiled.plan.loops)
        say_table(("LOOP", "PASSES", "AT ITS LIMIT"), rows, ids=("LOOP",))
    if options.shows_origins:
        _say_origins(compiled)
    if options.shows_prompts:
        for node in compiled.plan.nodes:
            if node.task is not None:
                say("\n".join(_prompt_lines(node.node_id, node.task)))


def _say_origins(compiled: CompiledWorkflow) -> None:
    texts = [
        (origin.step_id, text.ref_id, str(text.byte_length), text.ref_content_hash)
        for origin in text_origins(compiled)
        for text in origin.built_in
    ]
    if texts:
        say("")
        say_table(("NODE", "BUILT-IN TEXT", "BYTES", "DIGEST"), texts, ids=("NODE", "BUILT-IN TEXT", "DIGEST"))
    say("")
    parts = ((one.name, str(one.bytes), one.digest) for one in hash_parts(compiled))
    say_table(("PART OF THE HASH", "BYTES", "DIGEST"), parts, ids=("DIGEST",))


def _prompt_lines(node_id: str, task: Task) -> Iterator[str]:
    """Yield the prompt of a step: its parts if it was written in parts, each under its name in the workflow file."""
    yield f"\nPrompt of {node_id}"
    if task.prompt_blocks is None:
        yield from (f"  {line}" for line in task.prompt.splitlines())
        return
    for name, value in task.prompt_blocks.to_json().items():
        yield f"  {name}"
        for text in value if isinstance(value, list) else [value]:
            first, *rest = str(text).splitlines() or [""]
            yield f"    - {first}"
            yield from (f"      {line}" for line in rest)


def _rows(workflow: CompiledWorkflow, node: PlanNode) -> Iterator[tuple[str, ...]]:
    """Yield the row of a node, and that of the gate after it."""
    origin = node.provenance.origin_id or node.provenance.source
    scope, ways = workflow.graphs.scope_of[node.node_id] or "-", "; ".join(_ways(workflow, node)) or "-"
    refs = (node.input_schema_ref or "-", node.evidence_schema_ref or "-")
    gate = gate_after(node)
    if gate is None:
        yield (node.node_id, node.kind, node.owner, *refs, scope, origin, ways)
        return
    onward = gate.node_id if gate.when == "always" else f"{gate.node_id} if {gate.when}; otherwise {ways}"
    yield (node.node_id, node.kind, node.owner, *refs, scope, origin, onward)
    yield (gate.node_id, "gate", "human_gate", "-", gate.evidence_schema_ref, scope, origin, ways)


def _ways(workflow: CompiledWorkflow, node: PlanNode) -> Iterator[str]:
    for edge in workflow.graphs.out_edges.get(node.node_id, ()):
        if edge.condition_id is not None:
            yield f"{edge.target} if {describe_condition(workflow.graphs.conditions[edge.condition_id])}"
        else:
            yield f"{edge.target} otherwise" if node.kind == "decision" else edge.target
