"""A plan as a chart: nodes, edges and a frame around each loop, in the words of Mermaid or of Graphviz."""

import re
from collections.abc import Sequence
from typing import Protocol

from interlock.cli.screen import flat
from interlock.cli.workflow.shape import facts_of, way_words
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.outline import loop_words
from interlock.plan.records import NodeKind, PlanNode

_LABEL_BYTES_MAX = 160
"""A condition may be long; beside an arrow only its beginning helps."""
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_]")


class Pen(Protocol):
    """Writes a chart, line by line. Names are made of ASCII letters, digits and `_`; labels may hold anything."""

    def begin(self, title: str) -> str:
        """Return the line that opens the chart."""
        ...

    def end(self) -> str:
        """Return the line that closes the chart."""
        ...

    def frame(self, name: str, label: str) -> str:
        """Return the line that opens a frame; `frame_end` closes it."""
        ...

    def frame_end(self) -> str:
        """Return the line that closes the innermost frame."""
        ...

    def node(self, name: str, kind: NodeKind, label: Sequence[str]) -> str:
        """Return the line of a node; its label may have several lines."""
        ...

    def edge(self, source: str, target: str, label: str, *, is_dotted: bool = False) -> str:
        """Return the line of an edge."""
        ...


def charted(workflow: CompiledWorkflow, pen: Pen) -> str:
    """Return a plan as the text of a chart. The same plan gives the same text."""
    return _Chart(workflow, pen).text()


class _Chart:
    def __init__(self, workflow: CompiledWorkflow, pen: Pen) -> None:
        self._workflow = workflow
        self._graphs = workflow.graphs
        self._pen = pen
        # Numbered, because two ids may differ only in what a name cannot hold, and begun with a letter, because
        # some names mean something to Mermaid (`end`).
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
        """Return the nodes of a graph, and in a frame those of each loop in it."""
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
                one_line(way_words(self._graphs, edge), _LABEL_BYTES_MAX),
            )
            for edge in self._workflow.plan.edges
        ]
        for loop in self._workflow.plan.loops:
            here, body = self._names[loop.loop_id], self._graphs.members[loop.loop_id]
            edges.append(self._pen.edge(here, self._names[body[0].node_id], "each pass"))
            edges.append(self._pen.edge(self._names[body[-1].node_id], here, "", is_dotted=True))
        return edges


class Mermaid:
    """A Mermaid flowchart. Labels are quoted, and what means something inside them is written by its number."""

    _SHAPES: dict[NodeKind, tuple[str, str]] = {  # noqa: RUF012 — never changed
        "task": ("[", "]"),
        "decision": ("{", "}"),
        "fan_out": ("[[", "]]"),
        "fan_in": ("[[", "]]"),
        "loop": ("{{", "}}"),
        "terminal": ("([", "])"),
    }
    _UNSAFE = re.compile(r'["#%&;<>\[\]{}()|`\\]')

    def begin(self, title: str) -> str:
        """See `Pen.begin`. The title is a comment: titles proper need a header that not every viewer reads."""
        return f"flowchart TD\n  %% {flat(self._UNSAFE.sub(' ', title))}"

    def end(self) -> str:
        """See `Pen.end`: nothing closes a flowchart."""
        return ""

    def frame(self, name: str, label: str) -> str:
        """See `Pen.frame`."""
        return f"subgraph {name}[{self._quoted(label)}]"

    def frame_end(self) -> str:
        """See `Pen.frame_end`."""
        return "end"

    def node(self, name: str, kind: NodeKind, label: Sequence[str]) -> str:
        """See `Pen.node`."""
        begin, end = self._SHAPES[kind]
        return f"{name}{begin}{self._quoted(*label)}{end}"

    def edge(self, source: str, target: str, label: str, *, is_dotted: bool = False) -> str:
        """See `Pen.edge`."""
        arrow = "-.->" if is_dotted else "-->"
        said = f"|{self._quoted(label)}|" if label else ""
        return f"{source} {arrow}{said} {target}"

    def _quoted(self, *lines: str) -> str:
        safe = [self._UNSAFE.sub(lambda found: f"#{ord(found.group())};", flat(line)) for line in lines]
        return '"' + "<br/>".join(safe) + '"'


class Dot:
    """A Graphviz digraph with a cluster for each loop."""

    _SHAPES: dict[NodeKind, str] = {  # noqa: RUF012 — never changed
        "task": "box",
        "decision": "diamond",
        "fan_out": "trapezium",
        "fan_in": "invtrapezium",
        "loop": "hexagon",
        "terminal": "oval",
    }

    def begin(self, title: str) -> str:
        """See `Pen.begin`."""
        return f'digraph workflow {{\n  label={self._quoted(title)}; labelloc=t;\n  node [fontname="sans-serif"];'

    def end(self) -> str:
        """See `Pen.end`."""
        return "}"

    def frame(self, name: str, label: str) -> str:
        """See `Pen.frame`."""
        return f"subgraph cluster_{name} {{ label={self._quoted(label)};"

    def frame_end(self) -> str:
        """See `Pen.frame_end`."""
        return "}"

    def node(self, name: str, kind: NodeKind, label: Sequence[str]) -> str:
        """See `Pen.node`."""
        return f"{name} [shape={self._SHAPES[kind]}, label={self._quoted(*label)}];"

    def edge(self, source: str, target: str, label: str, *, is_dotted: bool = False) -> str:
        """See `Pen.edge`."""
        said = [f"label={self._quoted(label)}"] if label else []
        said += ["style=dotted"] if is_dotted else []
        return f"{source} -> {target} [{', '.join(said)}];" if said else f"{source} -> {target};"

    def _quoted(self, *lines: str) -> str:
        safe = [flat(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines]
        return '"' + "\\n".join(safe) + '"'
