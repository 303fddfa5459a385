"""A page for people: a few kinds of block, rendered for a terminal, as Markdown or as HTML.

Untrusted text has its own type, so each renderer has one place that escapes it.
"""

from typing import TypeAlias

from interlock.kernel.frozen import frozen, positional


@positional
class UntrustedText:
    """Text from an agent, an author or a client, shown within a line. It may contain any characters."""

    text: str


@positional
class Prose:
    """Untrusted text of one line that people read as prose: in Markdown it is escaped text, not code."""

    text: str


Part: TypeAlias = str | UntrustedText | Prose
Line: TypeAlias = tuple[Part, ...]
"""One line: Interlock's own text (`str`) and untrusted text."""


@frozen
class Heading:
    """A heading; level 1 is a run, 2 a section of its report, 3 a step."""

    level: int
    line: Line


@positional
class Properties:
    """Named properties, one row each."""

    rows: tuple[tuple[str, Line], ...]


@positional
class Bullets:
    """A list."""

    items: tuple[Line, ...]


@positional
class Paragraph:
    """A single line of text."""

    line: Line


@positional
class Quote:
    """Untrusted text of many lines, shown unchanged apart from escaping."""

    text: str


@positional
class Drawing:
    """Preformatted text, shown in a fixed-width font."""

    text: str


@positional
class Notes:
    """Untrusted Markdown of an agent: paragraphs, lists and code are rendered, everything else is text."""

    text: str


@frozen
class Table:
    """A table; every row has a cell for each of the heads."""

    heads: Line
    rows: tuple[tuple[Line, ...], ...]


@frozen
class Picture:
    """A drawing as SVG of our own, and as the text that replaces it where no picture can be shown."""

    svg: str
    text: str


@frozen
class Fold:
    """Blocks that are folded away under a line of Interlock's own text until a reader opens them."""

    label: str
    blocks: tuple["Block", ...]


Block: TypeAlias = Heading | Properties | Bullets | Paragraph | Quote | Drawing | Notes | Table | Picture | Fold
Page: TypeAlias = tuple[Block, ...]
