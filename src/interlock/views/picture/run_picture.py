"""A run as a picture: its steps in sequence, refused attempts, and branches beside the step that was redone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId
from interlock.views.picture.chart import Box, BoxKind, Chart, ChartPart, Lane
from interlock.views.run_graph import GraphNode, split_children
from interlock.views.session import Node


@frozen
class NodeText:
    """What a box of a run says: the title of the pending step, and its loop; `is_end` if nothing is pending."""

    title: str
    loop: str | None = None
    is_end: bool = False


TextOf = Callable[[Node], NodeText]


def run_chart(graph: GraphNode, title: str, text_of: TextOf) -> Chart:
    """Return a run as a chart. Consecutive steps of a loop are in a frame."""
    # The parts of a branch are complete before those of the step at which it began, so no recursion is needed.
    built: dict[NodeId, tuple[ChartPart, ...]] = {}
    for line in reversed(_lines(graph)):
        parts = [(text_of(here.node).loop, _part(here, text_of, built)) for here in line]
        built[line[0].node.node] = tuple(_framed(parts))
    return Chart(title=title, parts=built[graph.node.node])


def _framed(parts: Iterable[tuple[str | None, ChartPart]]) -> Iterator[ChartPart]:
    for loop, group in groupby(parts, key=lambda pair: pair[0]):
        inner = tuple(part for _, part in group)
        if loop is None:
            yield from inner
        else:
            yield ChartPart(box=Box(kind="loop", lines=(f"↻ {loop}",), steps=0), body=inner)


def _lines(graph: GraphNode) -> list[list[GraphNode]]:
    """Return the sequences of ordinary attempts of a run: first the one from its root, then those of its forks."""
    lines, begins = list[list[GraphNode]](), [graph]
    while begins:
        line, here = list[GraphNode](), begins.pop(0)
        following: GraphNode | None = here
        while following is not None:
            line.append(following)
            following, forks = split_children(following)
            begins += forks
        lines.append(line)
    return lines


def _part(here: GraphNode, text_of: TextOf, built: Mapping[NodeId, tuple[ChartPart, ...]]) -> ChartPart:
    _, forks = split_children(here)
    text, is_refused = text_of(here.node), here.node.kind == "blocked_attempt"
    lines = [f"✗ {text.title} (refused)" if is_refused else text.title]
    if here.checkpoints:
        count = len(here.checkpoints)
        lines.append("1 checkpoint" if count == 1 else f"{count} checkpoints")
    kind: BoxKind = "current" if here.is_tip else "refused" if is_refused else "step"
    if text.is_end:
        kind = "end"
    branches = tuple(Lane(label="redone", parts=built[fork.node.node]) for fork in forks)
    box = Box(kind=kind, lines=tuple(lines), steps=0 if text.is_end else 1, node=here.node.node)
    return ChartPart(box=box, branches=branches)
