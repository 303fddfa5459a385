"""A page for people: a few kinds of block, rendered for a terminal, as Markdown or as HTML.

Untrusted text has its own type, so each renderer has one place that escapes it.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class UntrustedText:
    """Text from an agent, an author or a client, shown within a line. It may contain any characters."""

    text: str


Line: TypeAlias = tuple[str | UntrustedText, ...]
"""One line: Interlock's own text (`str`) and untrusted text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading; level 1 is a run, 2 a section of its report, 3 a step."""

    level: int
    line: Line


@dataclass(frozen=True, slots=True)
class Properties:
    """Named properties, one row each."""

    rows: tuple[tuple[str, Line], ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A single line of text."""

    line: Line


@dataclass(frozen=True, slots=True)
class Quote:
    """Untrusted text of many lines, shown unchanged apart from escaping."""

    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Preformatted text, shown in a fixed-width font."""

    text: str


Block: TypeAlias = Heading | Properties | Bullets | Paragraph | Quote | Drawing
Page: TypeAlias = tuple[Block, ...]
