"""The Markdown of notes, read as a few kinds of part. What is not one of them is text: no link, no picture, no HTML."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from interlock.kernel.frozen import positional
from interlock.kernel.text import printable

_FENCE = re.compile(r"\s{0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,4}[.)])\s+(.*)$")
_SPAN = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*"
)
_INDENT = 2
"""Blanks by which a list is indented in another one, at least."""


@positional
class Span:
    """A piece of a line. `kind` says how it is shown."""

    kind: Literal["text", "code", "strong"]
    text: str


@positional
class TextPart:
    """A paragraph, or a heading, which is shown as a bold paragraph: the headings of a page are Interlock's."""

    spans: tuple[Span, ...]
    is_heading: bool = False


@positional
class ItemPart:
    """An item of a list that is in `depth` others. `number` is as written, `2.`; None in a list without numbers."""

    depth: int
    number: str | None
    spans: tuple[Span, ...]


@positional
class CodePart:
    """Preformatted text: a block of code, a table, a quote or an indented line."""

    text: str


NotePart: TypeAlias = TextPart | ItemPart | CodePart


def parse_notes(text: str) -> tuple[NotePart, ...]:
    """Return the parts of notes in order. Total: every text has parts, and no word of it is lost (EVD-4)."""
    return tuple(_nested(_parts(printable(text).split("\n"))))


def _nested(parts: Iterable[NotePart]) -> Iterator[NotePart]:
    """Yield parts, each item at most one list deeper than the item before it: further in, Markdown would read code."""
    around = list[int]()
    for part in parts:
        if not isinstance(part, ItemPart):
            around.clear()
            yield part
            continue
        while around and around[-1] >= part.depth:
            around.pop()
        yield replace(part, depth=len(around))
        around.append(part.depth)


def _parts(lines: list[str]) -> Iterator[NotePart]:
    open_text, open_code = list[str](), list[str]()
    at = 0
    while at < len(lines):
        line = lines[at]
        heading, item, fence = _HEADING.match(line), _ITEM.match(line), _FENCE.match(line)
        is_code = line.lstrip().startswith(("|", ">")) or (line.startswith("    ") and item is None and not open_text)
        if not is_code:
            yield from _code(open_code)
        if fence is not None or heading is not None or item is not None or is_code or not line.strip():
            yield from _text(open_text)
        if fence is not None:
            # The words after an opening fence, mostly a language, are a line of text above the code.
            yield from _text([fence[2].strip()] if fence[2].strip() else [])
            end = _end_of_fence(lines, at, fence[1])
            yield CodePart("\n".join(lines[at + 1 : end]))
            at = end
        elif heading is not None:
            yield TextPart(spans_of(heading[1]), is_heading=True)
        elif item is not None:
            yield ItemPart(len(item[1].expandtabs(4)) // _INDENT, _number(item[2]), spans_of(item[3]))
        elif is_code:
            open_code.append(line)
        elif line.strip():
            open_text.append(line.strip())
        at += 1
    yield from _code(open_code)
    yield from _text(open_text)


def _end_of_fence(lines: list[str], begin: int, fence: str) -> int:
    ends = (at for at in range(begin + 1, len(lines)) if lines[at].strip() == fence[0] * max(3, len(lines[at].strip())))
    return next((at for at in ends if len(lines[at].strip()) >= len(fence)), len(lines))


def _number(marker: str) -> str | None:
    return marker if len(marker) > 1 else None


def _text(lines: list[str]) -> Iterator[NotePart]:
    if lines:
        yield TextPart(spans_of(" ".join(lines)))
        lines.clear()


def _code(lines: list[str]) -> Iterator[NotePart]:
    if lines:
        yield CodePart("\n".join(lines))
        lines.clear()


def spans_of(line: str) -> tuple[Span, ...]:
    """Return a line as spans: code in backticks, bold text between double asterisks, and text."""
    spans: list[Span] = []
    last = 0
    for found in _SPAN.finditer(line):
        if found.start() > last:
            spans.append(Span("text", line[last : found.start()]))
        strong = found["strong"]
        spans.append(Span("strong", strong) if strong is not None else Span("code", found["code"].strip()))
        last = found.end()
    if last < len(line):
        spans.append(Span("text", line[last:]))
    return tuple(spans)
