"""Render a page for a terminal: indented and folded to its width."""

import textwrap
from typing import assert_never

from interlock.kernel.budgets import TERMINAL_CHARS_MIN
from interlock.kernel.text import flat, printable
from interlock.service.report.document import (
    Block,
    Bullets,
    Drawing,
    Heading,
    Line,
    Page,
    Paragraph,
    Properties,
    Quote,
    UntrustedText,
)


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
                line for name, words in block.rows for line in _hanging(f"{indent}{name:<{room}}", _line(words), width)
            ]
        case Bullets():
            return [line for item in block.items for line in _hanging(f"{indent}- ", _line(item), width)]
        case Paragraph():
            return _folded(_line(block.line), indent, width)
        case Quote():
            return [
                line for each in printable(block.text).expandtabs().split("\n") for line in _folded(each, indent, width)
            ]
        case Drawing():
            return [f"{indent}{line}" for line in printable(block.text).split("\n")]
        case Heading():
            raise AssertionError("headings are placed by their level")
        case _:
            assert_never(block)


def _folded(text: str, indent: str, width: int | None) -> list[str]:
    return [f"{indent}{line}".rstrip() for line in _fold(text, len(indent), width)]


def _hanging(head: str, text: str, width: int | None) -> list[str]:
    first, *rest = _fold(text, len(head), width)
    return [f"{head}{first}".rstrip(), *(f"{' ' * len(head)}{line}" for line in rest)]


def _fold(text: str, taken: int, width: int | None) -> list[str]:
    if width is None:
        return [text]
    return textwrap.wrap(text, max(TERMINAL_CHARS_MIN, width - taken), break_on_hyphens=False) or [""]


def _line(line: Line) -> str:
    return "".join(flat(part.text) if isinstance(part, UntrustedText) else part for part in line)
