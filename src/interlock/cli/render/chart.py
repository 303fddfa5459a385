"""Charts as text in the languages of Mermaid and Graphviz: nodes, edges and frames."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from interlock.kernel.text import flat
from interlock.plan.records import NodeKind


class Mermaid:
    """A Mermaid flowchart. Labels are quoted; characters with a meaning in Mermaid are written as character codes."""

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
        """Return the line that opens the chart, with the title in a comment: not every viewer supports a header."""
        return f"flowchart TD\n  %% {flat(self._UNSAFE.sub(' ', title))}"

    def end(self) -> str:
        """Return the line that closes the chart: empty for a flowchart."""
        return ""

    def frame(self, name: str, label: str) -> str:
        """Return the line that opens a frame; `frame_end` closes it."""
        return f"subgraph {name}[{self._quoted(label)}]"

    def frame_end(self) -> str:
        """Return the line that closes the innermost frame."""
        return "end"

    def node(self, name: str, kind: NodeKind, label: Sequence[str]) -> str:
        """Return the line of a node; its label may have several lines."""
        begin, end = self._SHAPES[kind]
        return f"{name}{begin}{self._quoted(*label)}{end}"

    def edge(self, source: str, target: str, label: str, *, is_dotted: bool = False) -> str:
        """Return the line of an edge."""
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
        """See `Mermaid.begin`."""
        return f'digraph workflow {{\n  label={self._quoted(title)}; labelloc=t;\n  node [fontname="sans-serif"];'

    def end(self) -> str:
        """See `Mermaid.end`."""
        return "}"

    def frame(self, name: str, label: str) -> str:
        """See `Mermaid.frame`."""
        return f"subgraph cluster_{name} {{ label={self._quoted(label)};"

    def frame_end(self) -> str:
        """See `Mermaid.frame_end`."""
        return "}"

    def node(self, name: str, kind: NodeKind, label: Sequence[str]) -> str:
        """See `Mermaid.node`."""
        return f"{name} [shape={self._SHAPES[kind]}, label={self._quoted(*label)}];"

    def edge(self, source: str, target: str, label: str, *, is_dotted: bool = False) -> str:
        """See `Mermaid.edge`."""
        said = [f"label={self._quoted(label)}"] if label else []
        said += ["style=dotted"] if is_dotted else []
        return f"{source} -> {target} [{', '.join(said)}];" if said else f"{source} -> {target};"

    def _quoted(self, *lines: str) -> str:
        safe = [flat(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines]
        return '"' + "\\n".join(safe) + '"'


Pen: TypeAlias = Mermaid | Dot
"""Renders the lines of a chart. Names consist of ASCII letters, digits and `_`; labels may contain any text."""
