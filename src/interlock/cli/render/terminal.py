"""Render a page for a terminal: indented and folded to its width.

Each line that begins with text that Interlock did not write begins with `> `, as no line of Interlock does (EVD-4).
"""

import sys
import textwrap
from collections.abc import Iterator
from typing import assert_never

from interlock.kernel.budgets import TERMINAL_CHARS_MIN, WHOLE_WORD_CHARS_MAX
from interlock.kernel.text import flat, printable
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
    Picture,
    Properties,
    Quote,
    Table,
)


def terminal_columns() -> int | None:
    """Return the width of the terminal that is printed to; None if the output is no terminal."""
    if not sys.stdout.isatty():
        return None
    import shutil  # noqa: PLC0415 — it imports libraries for archives

    return shutil.get_terminal_size().columns


def as_text(page: Page, width: int | None) -> str:
    """Return a page as text, folded to a width; None folds nothing."""
    lines: list[str] = []
    level = 0
    for block in page:
        if isinstance(block, Heading):
            level = block.level
            lines += ["", *_heading(block, width)] if lines else _heading(block, width)
        else:
            lines += _block(block, " " * 2 * level, width)
    return "\n".join(lines)


def _heading(block: Heading, width: int | None) -> list[str]:
    return _folded(_line(block.line), " " * 2 * (block.level - 1), width)


def _block(block: Block, indent: str, width: int | None) -> list[str]:
    match block:
        case Properties():
            room = max(len(name) for name, _ in block.rows) + 2
            return [
                line for name, words in block.rows for line in _hanging(indent, f"{name:<{room}}", _line(words), width)
            ]
        case Bullets():
            return [line for item in block.items for line in _item(indent, "- ", item, width)]
        case Paragraph():
            return _folded(_line(block.line), indent + _mark(block.line), width)
        case Quote() | Notes():
            texts = printable(block.text).expandtabs().split("\n")
            return [line for text in texts for line in _folded(text, f"{indent}> ", width)]
        case Table():
            return [line for row in block.rows for line in _row(block.heads, row, indent, width)]
        case Fold():
            folded = [line for one in block.blocks for line in _block(one, f"{indent}  ", width)]
            return [f"{indent}{block.label}:", *folded]
        case Drawing() | Picture():
            return [f"{indent}{line}" for line in printable(block.text).split("\n")]
        case Heading():
            raise AssertionError("headings are placed by their level")
        case _:
            assert_never(block)


def _folded(text: str, indent: str, width: int | None) -> list[str]:
    return [f"{indent}{line}".rstrip() for line in _fold(text, len(indent), width)]


def _hanging(indent: str, lead: str, text: str, width: int | None) -> list[str]:
    first, *rest = _fold(text, len(indent) + len(lead), width)
    return [f"{indent}{lead}{first}".rstrip(), *(f"{indent}{' ' * len(lead)}{line}" for line in rest)]


def _item(indent: str, lead: str, line: Line, width: int | None) -> list[str]:
    """Return a line after a lead such as `- `; marked as a whole if others wrote its beginning."""
    return _hanging(indent + _mark(line), lead, _line(line), width)


def _mark(line: Line) -> str:
    return "> " if line and not isinstance(line[0], str) else ""


def _fold(text: str, taken: int, width: int | None) -> list[str]:
    if width is None:
        return [text]
    room = max(TERMINAL_CHARS_MIN, width - taken)
    # An id is copied, so it stays whole even if its line becomes too long.
    words = [part for word in text.split(" ") for part in _split(word, room)]
    return textwrap.wrap(" ".join(words), room, break_on_hyphens=False, break_long_words=False) or [""]


def _split(word: str, room: int) -> list[str]:
    """Return a word, in pieces that fit if it is longer than any id."""
    if len(word) <= max(room, WHOLE_WORD_CHARS_MAX):
        return [word]
    return [word[at : at + room] for at in range(0, len(word), room)]


def _row(heads: Line, row: tuple[Line, ...], indent: str, width: int | None) -> Iterator[str]:
    """Yield a row of two cells as `first: second`, a longer one as its first cell and a line for each other cell.

    A line that begins with a name or a value of others is marked.
    """
    first, *others = row
    if len(others) == 1:
        yield from _item(indent, "", (*(first or heads[1:]), ": ", *others[0]), width)
        return
    yield from _item(indent, "- ", first, width)
    for head, cell in zip(heads[1:], others, strict=True):
        if cell:
            yield from _item(indent, "  ", (head, ": ", *cell), width)


def _line(line: Line) -> str:
    return "".join(part if isinstance(part, str) else flat(part.text) for part in line)
