"""Renders a page as Markdown. Untrusted text is put in code, where its Markdown, HTML, mentions and links are inert."""

import textwrap
from collections.abc import Iterable
from typing import assert_never

from interlock.kernel.budgets import FOLDED_CHARS_MAX
from interlock.kernel.text import fence_around, in_code, printable
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

_FENCE_MIN = 3


def as_markdown(page: Page) -> str:
    """Return a page as one Markdown document."""
    return "\n\n".join(_block(block) for block in page) + "\n"


def _block(block: Block) -> str:
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
            return _fenced(line for each in _lines(block.text) for line in _folded(each))
        case Drawing():
            return _fenced(_lines(block.text))
        case _:
            assert_never(block)


def _line(line: Line) -> str:
    return "".join(in_code(part.text) if isinstance(part, UntrustedText) else part for part in line)


def _lines(text: str) -> list[str]:
    return printable(text).split("\n")


def _folded(line: str) -> list[str]:
    return textwrap.wrap(
        line, FOLDED_CHARS_MAX, replace_whitespace=False, drop_whitespace=False, expand_tabs=False
    ) or [""]


def _fenced(lines: Iterable[str]) -> str:
    body = "\n".join(line.rstrip() for line in lines)
    fence = fence_around(body, _FENCE_MIN)
    return f"{fence}text\n{body}\n{fence}"
