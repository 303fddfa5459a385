"""A run's graph as a chart, in the words of Mermaid or of Graphviz."""

from collections.abc import Callable, Sequence

from interlock.cli.workflow.chart import Pen
from interlock.kernel.ids import NodeId
from interlock.kernel.text import one_line
from interlock.plan.records import NodeKind as Shape
from interlock.record.payloads import NodeKind
from interlock.views.run_graph import GraphNode, parted, walk
from interlock.views.session import Node

_SHAPES: dict[NodeKind, Shape] = {"step": "task", "blocked_attempt": "decision", "checkpoint": "terminal"}
_LABEL_BYTES_MAX = 160


def charted_runs(title: str, runs: Sequence[tuple[str, GraphNode]], title_of: Callable[[Node], str], pen: Pen) -> str:
    """Return runs as the text of a chart, each in a frame that bears its name. The same runs give the same text."""
    nodes = [here for _, graph in runs for here in walk(graph)]
    names = {here.node.node: f"n{number}" for number, here in enumerate(nodes, start=1)}
    lines = [pen.begin(one_line(title, _LABEL_BYTES_MAX))]
    for number, (name, graph) in enumerate(runs, start=1):
        lines.append(f"  {pen.frame(f'run{number}', one_line(name, _LABEL_BYTES_MAX))}")
        for here in walk(graph):
            drawn = pen.node(names[here.node.node], _SHAPES[here.node.kind], _label(here, title_of))
            lines.append(f"    {drawn}")
            lines += [f"    {_checkpoint(names[here.node.node], at, pen)}" for at in range(len(here.checkpoints))]
        lines.append(f"  {pen.frame_end()}")
    lines += [f"  {edge}" for here in nodes for edge in _edges(here, names, pen)]
    end = pen.end()
    return "\n".join([*lines, end] if end else lines)


def _label(here: GraphNode, title_of: Callable[[Node], str]) -> list[str]:
    label = [one_line(title_of(here.node), _LABEL_BYTES_MAX)]
    if here.node.kind == "blocked_attempt":
        label.append("refused")
    return [*label, "preferred tip"] if here.is_tip else label


def _checkpoint(name: str, number: int, pen: Pen) -> str:
    return pen.node(f"{name}c{number}", _SHAPES["checkpoint"], ["checkpoint"])


def _edges(here: GraphNode, names: dict[NodeId, str], pen: Pen) -> list[str]:
    own = names[here.node.node]
    ordinary, forks = parted(here)
    edges = [pen.edge(own, f"{own}c{number}", "", is_dotted=True) for number in range(len(here.checkpoints))]
    if ordinary is not None:
        edges.append(pen.edge(own, names[ordinary.node.node], ""))
    return edges + [pen.edge(own, names[fork.node.node], "fork") for fork in forks]
