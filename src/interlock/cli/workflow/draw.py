"""`interlock workflow graph`: a plan as a tree for a terminal, or as text that Mermaid and Graphviz draw."""

import sys
from typing import Literal, assert_never

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from interlock.cli.screen import flat, say
from interlock.cli.workflow.chart import Dot, Mermaid, charted
from interlock.cli.workflow.places import Places, chosen_workflow
from interlock.cli.workflow.shape import Part, facts_of, shape_of
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import loop_words
from interlock.plan.records import NodeKind

GraphForm = Literal["terminal", "mermaid", "dot"]

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
_WIDTH_MAX = 100_000
"""Where nobody looks, no line is folded."""


def run_graph(places: Places, workflow: str, form: GraphForm) -> int:
    """Print the drawing of an id or a file; return the exit code.

    Raises:
        StopError: There is no such workflow, or it has faults.
    """
    _, pinned = chosen_workflow(places, workflow)
    match form:
        case "mermaid":
            say(charted(pinned.workflow, Mermaid()))
        case "dot":
            say(charted(pinned.workflow, Dot()))
        case "terminal":
            width = None if sys.stdout.isatty() else _WIDTH_MAX
            Console(highlight=False, emoji=False, width=width).print(drawn(pinned.workflow))
        case _:
            assert_never(form)
    return 0


def drawn(workflow: CompiledWorkflow) -> Tree:
    """Return a plan as a tree: loops hold their steps, decisions their ways, and a barrier follows its branches."""
    tree = Tree(Text(flat(f"{workflow.name} ({workflow.workflow_id})"), style="bold"))
    for part in shape_of(workflow):
        _hang(tree, part, workflow)
    return tree


def _hang(tree: Tree, part: Part, workflow: CompiledWorkflow) -> None:
    """Hang a part below a branch. Plans nest little, so that recursion is bounded."""
    here = tree.add(_label(part, workflow))
    for way in part.ways:
        branch = here.add(Text(flat(way.words), style="italic"))
        for inner in way.parts:
            _hang(branch, inner, workflow)
    for inner in part.body:
        _hang(here, inner, workflow)


def _label(part: Part, workflow: CompiledWorkflow) -> Text:
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
