"""Draw the graph of a run for a terminal."""

from collections.abc import Callable

from rich.text import Text
from rich.tree import Tree

from interlock.kernel.text import flat
from interlock.views.run_graph import GraphNode, split_children
from interlock.views.session import Node

LEGEND = "● a step   ✗ a refused attempt   ⑂ a fork   ◇ a checkpoint   ◀ where the run continues"

_STYLES = {"step": "green", "blocked_attempt": "yellow", "checkpoint": "cyan"}
_MARKS = {"step": "●", "blocked_attempt": "✗", "checkpoint": "◇"}


def draw_run(graph: GraphNode, title: str, title_of: Callable[[Node], str]) -> Tree:
    """Return a run as a tree: ordinary attempts follow each other at one level, forks are below the node they began at.

    Args:
        graph: The run's root.
        title: The title of the tree.
        title_of: The title of the step that is pending at a node.
    """
    tree = Tree(Text(flat(title), style="bold"))
    lines: list[tuple[Tree, GraphNode | None]] = [(tree, graph)]
    while lines:
        line, here = lines.pop()
        while here is not None:
            drawn = line.add(_label(here, title_of))
            for _ in here.checkpoints:
                drawn.add(Text(f"{_MARKS['checkpoint']} checkpoint", style=_STYLES["checkpoint"]))
            following, forks = split_children(here)
            lines += [(drawn.add(Text("⑂ redone on a branch", style="cyan")), fork) for fork in forks]
            here = following
    return tree


def _label(here: GraphNode, title_of: Callable[[Node], str]) -> Text:
    kind = here.node.kind
    label = Text(f"{_MARKS[kind]} {flat(title_of(here.node))}", style=_STYLES[kind])
    if kind == "blocked_attempt":
        label.append(" (refused)")
    if here.is_tip:
        label.append("  ◀ preferred tip", style="bold magenta")
    return label
