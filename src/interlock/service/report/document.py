"""A page for people: a few kinds of block, drawn for a terminal, as Markdown or as HTML.

Our words and others' are told apart, so that each drawing has one place where others' words lose whatever they could
do there.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class UntrustedText:
    """Somebody else's words within a line: an agent's, an author's, a client's. They may hold anything."""

    text: str


Line: TypeAlias = tuple[str | UntrustedText, ...]
"""One line, of our words and others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading; level 1 is a run, 2 a part of what is told of it, 3 a step."""

    level: int
    line: Line


@dataclass(frozen=True, slots=True)
class Properties:
    """What is so, by name."""

    rows: tuple[tuple[str, Line], ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A line of text by itself."""

    line: Line


@dataclass(frozen=True, slots=True)
class Quote:
    """Others' words of many lines, shown as they were written."""

    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Text whose columns matter."""

    text: str


Block: TypeAlias = Heading | Properties | Bullets | Paragraph | Quote | Drawing
Page: TypeAlias = tuple[Block, ...]
