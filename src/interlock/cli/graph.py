"""A run's graph, drawn for a terminal."""

from collections.abc import Callable

from rich.text import Text
from rich.tree import Tree

from interlock.views.run_graph import GraphNode
from interlock.views.session import Node

_STYLES = {"step": "green", "blocked_attempt": "yellow", "checkpoint": "cyan"}
_MARKS = {"step": "●", "blocked_attempt": "✗ refused at", "checkpoint": "◇"}


def draw_run(graph: GraphNode, title: str, title_of: Callable[[Node], str]) -> Tree:
    """Return a run as a tree. A line of nodes stays flat; where it branches, each branch is indented below."""
    tree = Tree(Text(title, style="bold"))
    waiting = [(tree, (graph,))]
    while waiting:
        parent, children = waiting.pop()
        last = parent
        while len(children) == 1:
            last = parent.add(_label(children[0], title_of))
            children = children[0].children
        waiting += [(last.add(_label(child, title_of)), child.children) for child in children]
    return tree


def _label(here: GraphNode, title_of: Callable[[Node], str]) -> Text:
    kind = here.node.kind
    label = Text(f"{_MARKS[kind]} {title_of(here.node)}", style=_STYLES[kind])
    if here.is_tip:
        label.append("  ◀ the run stands here", style="bold magenta")
    return label
