"""`interlock workflow graph`: draw a plan as a tree for a terminal, or as text for Mermaid and Graphviz."""

import argparse
import re
import sys
from typing import Literal, assert_never

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from interlock.cli.render.chart import Dot, Mermaid, Pen
from interlock.cli.screen import flat, say
from interlock.cli.workflow.places import add_place_options, chosen_places, chosen_workflow
from interlock.kernel.budgets import GRAPH_LABEL_BYTES_MAX, UNFOLDED_CHARS_MAX
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import loop_words
from interlock.plan.records import NodeKind, PlanNode
from interlock.views.picture.plan_picture import plan_chart
from interlock.views.picture.plan_shape import ShapeNode, facts_of, shape_of, way_words
from interlock.views.picture.svg import render_svg

GraphForm = Literal["terminal", "mermaid", "dot", "svg"]

_MARKS: dict[NodeKind, str] = {
    "task": "●",
    "decision": "◆",
    "fan_out": "∥",
    "fan_in": "⊥",
    "loop": "↻",
    "terminal": "■",
}
_STYLES: dict[NodeKind, str] = {
    "task": "green",
    "decision": "yellow",
    "fan_out": "cyan",
    "fan_in": "cyan",
    "loop": "magenta",
    "terminal": "dim",
}
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow", metavar="ID|FILE", help="the id of a workflow, or the path of a workflow file")
    parser.add_argument(
        "--format",
        dest="form",
        choices=["terminal", "mermaid", "dot", "svg"],
        default="terminal",
        help="the form of the drawing (default: terminal)",
    )
    parser.add_argument(
        "--svg", dest="form", action="store_const", const="svg", help="a picture, as `--format svg` prints it"
    )


def run(options: argparse.Namespace) -> int:
    """Print the drawing of an id or a file; return the exit code.

    Raises:
        StopError: There is no such workflow, or it has faults.
    """
    form: GraphForm = options.form
    _, pinned = chosen_workflow(chosen_places(options), options.workflow)
    match form:
        case "mermaid":
            say(charted(pinned.workflow, Mermaid()))
        case "dot":
            say(charted(pinned.workflow, Dot()))
        case "svg":
            print(render_svg(plan_chart(pinned.workflow)))
        case "terminal":
            width = None if sys.stdout.isatty() else UNFOLDED_CHARS_MAX
            Console(highlight=False, emoji=False, width=width).print(drawn(pinned.workflow))
        case _:
            assert_never(form)
    return 0


def drawn(workflow: CompiledWorkflow) -> Tree:
    """Return a plan as a tree: loops contain their steps, decisions their paths; a barrier follows its branches."""
    tree = Tree(Text(flat(f"{workflow.name} ({workflow.workflow_id})"), style="bold"))
    for part in shape_of(workflow):
        _add_part(tree, part, workflow)
    return tree


def _add_part(tree: Tree, part: ShapeNode, workflow: CompiledWorkflow) -> None:
    """Add a part below a branch. The nesting of plans is limited, so recursion is safe."""
    here = tree.add(_label(part, workflow))
    for way in part.ways:
        branch = here.add(Text(flat(way.words), style="italic"))
        for inner in way.parts:
            _add_part(branch, inner, workflow)
    for inner in part.body:
        _add_part(here, inner, workflow)


def _label(part: ShapeNode, workflow: CompiledWorkflow) -> Text:
    node = part.node
    label = Text(f"{_MARKS[node.kind]} ", style=_STYLES[node.kind])
    number = workflow.numbers.get(node.node_id)
    label.append(flat(f"{number}. {node.title}" if number else node.title))
    if node.kind == "loop":
        label.append(": " + flat(loop_words(workflow, workflow.graphs.loops[node.node_id])))
    if node.kind == "fan_in":
        label.append(" (waits for all)")
    facts = facts_of(node)
    if node.kind in {"task", "loop"}:
        facts = [node.node_id, *facts]
    if facts:
        label.append("  " + flat(", ".join(facts)), style="dim")
    return label


def charted(workflow: CompiledWorkflow, pen: Pen) -> str:
    """Return a plan as the text of a chart. The same plan gives the same text."""
    return _Chart(workflow, pen).text()


class _Chart:
    def __init__(self, workflow: CompiledWorkflow, pen: Pen) -> None:
        self._workflow = workflow
        self._graphs = workflow.graphs
        self._pen = pen
        # With a number, because two ids may differ only in characters that a name cannot contain; with a letter first,
        # because Mermaid reserves some names (`end`).
        self._names = {
            node.node_id: f"n{number}_{_UNSAFE_IN_NAME.sub('_', node.node_id)}"
            for number, node in enumerate(workflow.plan.nodes, start=1)
        }

    def text(self) -> str:
        lines = [self._pen.begin(f"{self._workflow.name} ({self._workflow.workflow_id})")]
        lines += self._scope(None, 1)
        lines += [f"  {edge}" for edge in self._edges()]
        end = self._pen.end()
        return "\n".join([*lines, end] if end else lines)

    def _scope(self, loop_id: str | None, level: int) -> list[str]:
        """Return the lines for the nodes of a graph, with the nodes of each loop in a frame."""
        indent = "  " * level
        lines: list[str] = []
        for node in self._graphs.members[loop_id]:
            name = self._names[node.node_id]
            drawn = self._pen.node(name, node.kind, self._label(node))
            if node.kind != "loop":
                lines.append(f"{indent}{drawn}")
                continue
            lines.append(f"{indent}{self._pen.frame(f'loop_{name}', node.title)}")
            lines.append(f"{indent}  {drawn}")
            lines += self._scope(node.node_id, level + 1)
            lines.append(f"{indent}{self._pen.frame_end()}")
        return lines

    def _label(self, node: PlanNode) -> list[str]:
        if node.kind == "loop":
            return ["↻ " + loop_words(self._workflow, self._graphs.loops[node.node_id])]
        if node.kind == "terminal":
            return ["end of the pass" if self._graphs.scope_of[node.node_id] is not None else "end"]
        number = self._workflow.numbers.get(node.node_id)
        return [f"{number}. {node.title}" if number else node.title, *facts_of(node)]

    def _edges(self) -> list[str]:
        edges = [
            self._pen.edge(
                self._names[edge.source],
                self._names[edge.target],
                one_line(way_words(self._graphs, edge), GRAPH_LABEL_BYTES_MAX),
            )
            for edge in self._workflow.plan.edges
        ]
        for loop in self._workflow.plan.loops:
            here, body = self._names[loop.loop_id], self._graphs.members[loop.loop_id]
            edges.append(self._pen.edge(here, self._names[body[0].node_id], "each pass"))
            edges.append(self._pen.edge(self._names[body[-1].node_id], here, "", is_dotted=True))
        return edges
