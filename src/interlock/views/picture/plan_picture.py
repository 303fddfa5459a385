"""A plan as a picture: its steps in sequence, the ways of decisions side by side, loops in frames."""

from collections.abc import Mapping

from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import loop_words
from interlock.plan.records import NodeKind
from interlock.views.picture.chart import Box, BoxKind, Chart, ChartPart, Lane
from interlock.views.picture.plan_shape import ShapeNode, facts_of, shape_of

_KINDS: Mapping[NodeKind, BoxKind] = {
    "task": "step",
    "decision": "decision",
    "fan_out": "barrier",
    "fan_in": "barrier",
    "loop": "loop",
    "terminal": "end",
}


def plan_chart(workflow: CompiledWorkflow) -> Chart:
    """Return a plan as a chart."""
    parts = tuple(_part(part, workflow) for part in shape_of(workflow))
    return Chart(title=f"{workflow.name} ({workflow.workflow_id})", parts=parts)


def _part(part: ShapeNode, workflow: CompiledWorkflow) -> ChartPart:
    """Return a part with the parts inside it. The nesting of plans is limited, so recursion is safe."""
    kind = part.node.kind
    box = Box(kind=_KINDS[kind], lines=_lines(part, workflow), steps=1 if kind == "task" else 0)
    ways = tuple(Lane(label=way.words, parts=tuple(_part(inner, workflow) for inner in way.parts)) for way in part.ways)
    return ChartPart(box=box, ways=ways, body=tuple(_part(inner, workflow) for inner in part.body))


def _lines(part: ShapeNode, workflow: CompiledWorkflow) -> tuple[str, ...]:
    node = part.node
    number = workflow.numbers.get(node.node_id)
    match node.kind:
        case "task":
            return (
                f"{number}. {node.title}" if number else node.title,
                *(fact.replace("wr.contracts.", "") for fact in facts_of(node)),
            )
        case "loop":
            return (f"↻ {node.title}", loop_words(workflow, workflow.graphs.loops[node.node_id]))
        case "fan_in":
            return ("wait for all",)
        case "decision" | "fan_out" | "terminal":
            return (node.title,)
