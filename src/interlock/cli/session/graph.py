"""`interlock session graph`: runs as they went, drawn for a terminal, or as text that Mermaid and Graphviz draw."""

import sys
from dataclasses import dataclass
from io import StringIO
from typing import Literal, assert_never

from rich.console import Console
from rich.tree import Tree

from interlock.cli.graph import LEGEND, draw_run
from interlock.cli.screen import say, say_json
from interlock.cli.session.cells import place_words
from interlock.cli.session.chart import charted_runs
from interlock.cli.session.chosen import chosen_session, read_history
from interlock.cli.session.store import answered_by_store
from interlock.cli.workflow.chart import Dot, Mermaid
from interlock.kernel.canonical import Json
from interlock.kernel.ids import SessionId
from interlock.service.plans import Plans
from interlock.service.words import Scene, scene_of
from interlock.store.ports import Store
from interlock.views.run_graph import GraphNode, parted, run_graph, walk
from interlock.views.session import Node

GraphForm = Literal["terminal", "mermaid", "dot"]
_WIDTH_MAX = 100_000
"""Where nobody looks, no line is folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A run to draw, with the title of each of its nodes."""

    name: str
    graph: GraphNode
    titles: dict[str, str]

    def title_of(self, node: Node) -> str:
        return self.titles[node.node]


def run_session_graph(store: Store, wanted: str | None, form: GraphForm, *, as_json: bool) -> int:
    """Print the graph of each run that is meant; return the exit code.

    Raises:
        StopError: No one session is meant, or the store cannot answer.
    """
    with answered_by_store():
        plans = Plans(store)
        chosen = chosen_session(store, plans, wanted)
        facts = read_history(store, chosen).facts
        drawn = [_drawn(scene_of(facts, facts.runs[run], plans)) for run in chosen.runs(facts)]
    if as_json:
        runs: list[Json] = [_json(one) for one in drawn]
        say_json({"session": facts.session, "runs": runs})
        return 0
    match form:
        case "mermaid" | "dot":
            say(_chart(facts.session, drawn, form))
        case "terminal":
            console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _WIDTH_MAX)
            for one in drawn:
                console.print(draw_run(one.graph, one.name, one.title_of))
            say(LEGEND)
        case _:
            assert_never(form)
    return 0


def drawn_text(scene: Scene) -> str:
    """Return a run's tree as plain text, as wide as it takes."""
    one = _drawn(scene)
    return _as_text(draw_run(one.graph, one.name, one.title_of))


def _drawn(scene: Scene) -> _Drawn:
    graph, words = run_graph(scene.session, scene.run.run), scene.words()
    goal = f" · {words.goal}" if words.goal is not None else ""
    return _Drawn(
        name=f"{words.workflow_name} · run {words.label}{goal}",
        graph=graph,
        titles={here.node.node: _title(scene, here.node) for here in walk(graph)},
    )


def _title(scene: Scene, node: Node) -> str:
    place = scene.place(node)
    return place_words(place) if place is not None else "complete"


def _as_text(tree: Tree) -> str:
    out = StringIO()
    Console(file=out, width=_WIDTH_MAX, color_system=None, highlight=False, emoji=False).print(tree)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _chart(session: SessionId, drawn: list[_Drawn], form: Literal["mermaid", "dot"]) -> str:
    titles = {node: title for one in drawn for node, title in one.titles.items()}
    pen = Mermaid() if form == "mermaid" else Dot()
    runs = [(one.name, one.graph) for one in drawn]
    return charted_runs(session, runs, lambda node: titles[node.node], pen)


def _json(one: _Drawn) -> dict[str, Json]:
    nodes: list[Json] = []
    for here in walk(one.graph):
        forks = {fork.node.node for fork in parted(here)[1]}
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
