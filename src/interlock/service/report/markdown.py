"""Renders a page as Markdown. The Markdown, HTML, mentions and links of untrusted text are inert.

Untrusted text is put in code; prose and notes are escaped, and only their words that a host could act on are code. Text
of many lines is a block quote, so that none of its lines is one of Interlock's (EVD-4).
"""

import re
import textwrap
from collections.abc import Iterable
from typing import assert_never

from interlock.kernel.budgets import FOLDED_CHARS_MAX
from interlock.kernel.text import fence_around, flat, in_code, printable, quoted
from interlock.service.report.document import (
    Block,
    Bullets,
    Drawing,
    Fold,
    Heading,
    Line,
    Notes,
    Page,
    Paragraph,
    Part,
    Picture,
    Properties,
    Prose,
    Quote,
    Table,
    UntrustedText,
)
from interlock.service.report.notes import CodePart, ItemPart, NotePart, Span, TextPart, parse_notes, spans_of

_FENCE_MIN = 3
_SPECIAL = re.compile(r"([\\`*\[\]<>~&!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_ACTIVE = re.compile(r"[@#$]|://|www\.|:\w+:|\bGH-\d|^[(]?[0-9a-f]{7,64}[).,;:]*$", re.IGNORECASE)
"""Words that a host such as GitHub turns into a link, a mention, a formula or an emoji, even if they are escaped."""
_BLOCK_START = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+=]))")
"""What would begin a list, an underline or a rule; a backslash goes after it."""


def as_markdown(page: Page) -> str:
    """Return a page as one Markdown document."""
    return "\n\n".join(_block(block) for block in page) + "\n"


def _block(block: Block) -> str:  # noqa: C901, PLR0911 — one for each kind
    match block:
        case Heading():
            return f"{'#' * block.level} {_line(block.line)}"
        case Properties():
            return "\n".join(f"- **{name}:** {_line(line)}" for name, line in block.rows)
        case Bullets():
            return "\n".join(f"- {_line(line)}" for line in block.items)
        case Paragraph():
            return _line(block.line)
        case Quote():
            return quoted(_fenced(line for each in _lines(block.text) for line in _folded(each)))
        case Drawing():
            return _fenced(_lines(block.text))
        case Notes():
            return quoted(_notes(parse_notes(block.text)))
        case Table():
            return _table(block)
        case Picture():
            return _fenced(_lines(block.text))
        case Fold():
            inner = "\n\n".join(_block(one) for one in block.blocks)
            return f"<details><summary>{block.label}</summary>\n\n{inner}\n\n</details>"
        case _:
            assert_never(block)


def _line(line: Line) -> str:
    return _joined(_part(part) for part in line)


def _part(part: Part) -> str:
    match part:
        case UntrustedText():
            return in_code(part.text)
        case Prose():
            return _spans(spans_of(flat(part.text))) or "(empty)"
        case str():
            return part
        case _:
            assert_never(part)


def _escaped(text: str) -> str:
    """Return untrusted text on one line as Markdown that shows it and does nothing else."""
    words = [_word(word) for word in flat(text).split(" ")]
    return _BLOCK_START.sub(r"\1\\", " ".join(words))


def _word(word: str) -> str:
    if not _ACTIVE.search(word):
        return _SPECIAL.sub(r"\\\1", word)
    body = word.rstrip(".,;:!?") or word
    return in_code(body) + word[len(body) :]


def _table(table: Table) -> str:
    def cell(text: str) -> str:
        # In a table, `|` ends a cell even in code.
        return text.replace("|", r"\|")

    heads = " | ".join(cell(_part(head)) for head in table.heads)
    rows = [" | ".join(cell(_line(line)) for line in row) for row in table.rows]
    return "\n".join([f"| {heads} |", f"|{' --- |' * len(table.heads)}", *(f"| {row} |" for row in rows)])


def _notes(parts: Iterable[NotePart]) -> str:
    """Return notes as Markdown: a blank line between two parts, but not between two items of a list."""
    text, was_item = "", False
    for part in parts:
        is_item = isinstance(part, ItemPart)
        text += ("\n" if was_item and is_item else "\n\n" if text else "") + _note(part)
        was_item = is_item
    return text or "(empty)"


def _note(part: NotePart) -> str:
    match part:
        case TextPart():
            return f"**{_spans(part.spans)}**" if part.is_heading and part.spans else _spans(part.spans)
        case ItemPart():
            # The numbers of an agent's list are words: a list of our own would count from 1.
            number = f"{part.number[:-1]}\\{part.number[-1]} " if part.number is not None else ""
            # An item without text below a text would be its underline, and make it a heading.
            return f"{' ' * 2 * part.depth}- {number + _spans(part.spans) or '(empty)'}"
        case CodePart():
            return _fenced(_lines(part.text))
        case _:
            assert_never(part)


def _spans(spans: Iterable[Span]) -> str:
    return _joined(_span(span) for span in spans).strip()


def _joined(pieces: Iterable[str]) -> str:
    """Join pieces of a line. Backticks of two pieces never become one delimiter, as the text would not be code."""
    line = ""
    for piece in pieces:
        line += f" {piece}" if line.endswith("`") and piece.startswith("`") else piece
    return line


def _span(span: Span) -> str:
    match span.kind:
        case "text":
            before, after = (" " if span.text[at].isspace() else "" for at in (0, -1))
            return f"{before}{_escaped(span.text)}{after}" if span.text.strip() else " "
        case "code":
            return in_code(span.text)
        case "strong":
            return f"**{_escaped(span.text)}**"
        case _:
            assert_never(span.kind)


def _lines(text: str) -> list[str]:
    return printable(text).split("\n")


def _folded(line: str) -> list[str]:
    return textwrap.wrap(
        line, FOLDED_CHARS_MAX - len("> "), replace_whitespace=False, drop_whitespace=False, expand_tabs=False
    ) or [""]


def _fenced(lines: Iterable[str]) -> str:
    body = "\n".join(line.rstrip() for line in lines)
    fence = fence_around(body, _FENCE_MIN)
    return f"{fence}text\n{body}\n{fence}"
