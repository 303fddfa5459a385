"""`interlock session graph`: draw runs for a terminal, or as text for Mermaid and Graphviz."""

import argparse
import sys
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Literal, assert_never

from rich.console import Console
from rich.tree import Tree

from interlock.cli.options import add_store_options
from interlock.cli.render.chart import Dot, Mermaid, Pen
from interlock.cli.render.phrases import place_words
from interlock.cli.render.run_tree import LEGEND, draw_run
from interlock.cli.render.terminal import as_text
from interlock.cli.screen import StopError, say, say_json
from interlock.cli.session.chosen import add_session_argument, chosen_session
from interlock.cli.session.evidence.damage import view_session
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import GRAPH_LABEL_BYTES_MAX, UNFOLDED_CHARS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId, SessionId
from interlock.kernel.text import one_line
from interlock.plan.records import NodeKind as Shape
from interlock.record.payloads import NodeKind
from interlock.service.report.document import Picture
from interlock.service.report.session_report import draw_chart
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.views.picture.chart import Chart
from interlock.views.picture.svg import render_svg
from interlock.views.run_graph import GraphNode, run_graph, split_children, walk
from interlock.views.session import Node

GraphForm = Literal["terminal", "mermaid", "dot", "svg"]
_SHAPES: dict[NodeKind, Shape] = {"step": "task", "blocked_attempt": "decision", "checkpoint": "terminal"}


@frozen
class _Drawing:
    """A run to draw, with the title of each of its nodes."""

    name: str
    graph: GraphNode
    titles: dict[str, str]
    chart: Chart

    def title_of(self, node: Node) -> str:
        return self.titles[node.node]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)
    parser.add_argument(
        "--format", choices=["terminal", "mermaid", "dot", "svg"], default="terminal", help="the form of the drawing"
    )


def run(options: argparse.Namespace) -> int:
    """Print the graph of each selected run; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    form: GraphForm = options.format
    with answered_by_store():
        plans = Plans(store)
        chosen = chosen_session(store, plans, options.session)

        def draw(history: History) -> list[_Drawing]:
            session = history.session
            return [_load_drawing(load_run_context(session, session.runs[run], plans)) for run in chosen.runs(session)]

        viewed = view_session(store, plans, chosen, draw)
    drawn = viewed.view
    if options.as_json:
        runs: list[Json] = [_json(one) for one in drawn]
        say_json(viewed.with_damage({"session": chosen.session, "runs": runs}))
        return viewed.exit_code
    if viewed.damage is not None and form == "terminal":
        say(as_text(viewed.banner, None))
    elif viewed.damage is not None:
        # A chart is read by programs, which take no other text.
        print(as_text(viewed.banner, None), file=sys.stderr)
    match form:
        case "mermaid" | "dot":
            say(_chart(chosen.session, drawn, form))
        case "svg":
            say_picture([one.chart for one in drawn])
        case "terminal":
            console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else UNFOLDED_CHARS_MAX)
            for one in drawn:
                console.print(draw_run(one.graph, one.name, one.title_of))
            say(LEGEND)
        case _:
            assert_never(form)
    return viewed.exit_code


def drawn_text(run_context: RunContext) -> str:
    """Return a run's tree as plain text, as wide as it takes."""
    one = _load_drawing(run_context)
    return _render_tree(draw_run(one.graph, one.name, one.title_of))


def _load_drawing(run_context: RunContext, graph: GraphNode | None = None) -> _Drawing:
    graph = graph or run_graph(run_context.session, run_context.run.run)
    chart = draw_chart(run_context, graph)
    titles: dict[str, str] = {here.node.node: _title(run_context, here.node) for here in walk(graph)}
    return _Drawing(name=chart.title, graph=graph, titles=titles, chart=chart)


def picture_of(run_context: RunContext, graph: GraphNode) -> Picture:
    """Return a run as a picture, with its tree for a reader who cannot see one."""
    one = _load_drawing(run_context, graph)
    tree = _render_tree(draw_run(one.graph, one.name, one.title_of))
    return Picture(svg=render_svg(one.chart, is_embedded=True), text=tree)


def _title(run_context: RunContext, node: Node) -> str:
    place = run_context.place(node)
    return place_words(place) if place is not None else "complete"


def _render_tree(tree: Tree) -> str:
    out = StringIO()
    Console(file=out, width=UNFOLDED_CHARS_MAX, color_system=None, highlight=False, emoji=False).print(tree)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def say_picture(charts: Sequence[Chart]) -> None:
    """Print a chart as SVG.

    Raises:
        StopError: There are several: a file holds one picture.
    """
    if len(charts) > 1:
        raise StopError("A picture is of one run.", "Name a run by its label or id.", exit_code=2)
    # It is escaped already; a line of it is not one of a terminal.
    print(render_svg(charts[0]))


def _chart(session: SessionId, drawn: list[_Drawing], form: Literal["mermaid", "dot"]) -> str:
    titles = {node: title for one in drawn for node, title in one.titles.items()}
    pen = Mermaid() if form == "mermaid" else Dot()
    runs = [(one.name, one.graph) for one in drawn]
    return _chart_runs(session, runs, lambda node: titles[node.node], pen)


def _chart_runs(title: str, runs: Sequence[tuple[str, GraphNode]], title_of: Callable[[Node], str], pen: Pen) -> str:
    """Return runs as the text of a chart, each in a frame with its name. The same runs give the same text."""
    nodes = [here for _, graph in runs for here in walk(graph)]
    names = {here.node.node: f"n{number}" for number, here in enumerate(nodes, start=1)}
    lines = [pen.begin(one_line(title, GRAPH_LABEL_BYTES_MAX))]
    for number, (name, graph) in enumerate(runs, start=1):
        lines.append(f"  {pen.frame(f'run{number}', one_line(name, GRAPH_LABEL_BYTES_MAX))}")
        for here in walk(graph):
            drawn = pen.node(names[here.node.node], _SHAPES[here.node.kind], _chart_label(here, title_of))
            lines.append(f"    {drawn}")
            lines += [f"    {_chart_checkpoint(names[here.node.node], at, pen)}" for at in range(len(here.checkpoints))]
        lines.append(f"  {pen.frame_end()}")
    lines += [f"  {edge}" for here in nodes for edge in _chart_edges(here, names, pen)]
    end = pen.end()
    return "\n".join([*lines, end] if end else lines)


def _chart_label(here: GraphNode, title_of: Callable[[Node], str]) -> list[str]:
    label = [one_line(title_of(here.node), GRAPH_LABEL_BYTES_MAX)]
    if here.node.kind == "blocked_attempt":
        label.append("refused")
    return [*label, "preferred tip"] if here.is_tip else label


def _chart_checkpoint(name: str, number: int, pen: Pen) -> str:
    return pen.node(f"{name}c{number}", _SHAPES["checkpoint"], ["checkpoint"])


def _chart_edges(here: GraphNode, names: dict[NodeId, str], pen: Pen) -> list[str]:
    own = names[here.node.node]
    ordinary, forks = split_children(here)
    edges = [pen.edge(own, f"{own}c{number}", "", is_dotted=True) for number in range(len(here.checkpoints))]
    if ordinary is not None:
        edges.append(pen.edge(own, names[ordinary.node.node], ""))
    return edges + [pen.edge(own, names[fork.node.node], "fork") for fork in forks]


def _json(one: _Drawing) -> dict[str, Json]:
    nodes: list[Json] = []
    for here in walk(one.graph):
        forks = {fork.node.node for fork in split_children(here)[1]}
        nodes.append(
            {
                "node": here.node.node,
                "kind": here.node.kind,
                "parent": here.node.parent,
                "title": one.title_of(here.node),
                "isPreferredTip": here.is_tip,
                "children": [child.node.node for child in here.children],
                "forks": [child.node.node for child in here.children if child.node.node in forks],
                "checkpoints": [checkpoint.node for checkpoint in here.checkpoints],
            }
        )
    return {"run": one.graph.node.run, "nodes": nodes}
