"""Render a page as HTML, with every text escaped: as one file with its style inside, or as a part of another page."""

from collections.abc import Callable, Iterable
from html import escape
from typing import assert_never

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
    Part,
    Picture,
    Properties,
    Prose,
    Quote,
    Table,
    UntrustedText,
)
from interlock.service.report.notes import CodePart, ItemPart, NotePart, Span, TextPart, parse_notes, spans_of

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { border-bottom: 1px solid #8888; padding-bottom: .3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; }
pre { background: #8881; padding: .7rem; overflow-x: auto; }
pre.said { white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid #8888; padding: .2rem .5rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
details { margin: .5rem 0; }
summary { cursor: pointer; }
blockquote { border-left: 3px solid #8888; margin: .5rem 0; padding: 0 1rem; }
svg { max-width: 100%; height: auto; }
"""
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""


RenderNotes = Callable[[str], str]
"""Returns untrusted Markdown as HTML in which nothing acts, without leaving out a word."""


def as_html(page: Page) -> str:
    """Return a page as one HTML document; its title is that of its first heading."""
    title = next((_plain(block.line) for block in page if isinstance(block, Heading)), "Interlock")
    return f"{_HEAD.format(title=escape(title), style=_STYLE)}{blocks_html(page)}\n</body>\n</html>\n"


def render_notes(text: str) -> str:
    """Return notes as the few kinds of part that a file without scripts shows: every word of them."""
    return _notes(parse_notes(text))


def blocks_html(blocks: Iterable[Block], notes: RenderNotes = render_notes) -> str:
    """Return blocks as HTML in which no text of others acts; `notes` renders the notes of agents."""
    return "\n".join(_block(block, notes) for block in blocks)


def line_html(line: Line) -> str:
    """Return a line as HTML; the direction of untrusted text cannot affect ours."""
    return "".join(map(_part, line))


def _block(block: Block, notes: RenderNotes) -> str:  # noqa: C901, PLR0911 — one for each kind
    match block:
        case Heading():
            return f"<h{block.level}>{line_html(block.line)}</h{block.level}>"
        case Properties():
            rows = "\n".join(f"<dt>{escape(name)}</dt><dd>{line_html(line)}</dd>" for name, line in block.rows)
            return f"<dl>\n{rows}\n</dl>"
        case Bullets():
            items = "\n".join(f"<li>{line_html(line)}</li>" for line in block.items)
            return f"<ul>\n{items}\n</ul>"
        case Paragraph():
            return f"<p>{line_html(block.line)}</p>"
        case Quote():
            # A newline that directly follows the tag would be dropped.
            return f'<pre class="said" dir="auto">\n{escape(printable(block.text))}</pre>'
        case Drawing():
            return f"<pre>\n{escape(printable(block.text))}</pre>"
        case Notes():
            return f'<blockquote dir="auto">{notes(block.text)}</blockquote>'
        case Table():
            heads = "".join(f"<th>{_part(head)}</th>" for head in block.heads)
            rows = "\n".join(f"<tr>{''.join(f'<td>{line_html(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
            return f"<table>\n<tr>{heads}</tr>\n{rows}\n</table>"
        case Picture():
            return f"<figure>{block.svg}</figure>"
        case Fold():
            return f"<details><summary>{escape(block.label)}</summary>\n{blocks_html(block.blocks, notes)}\n</details>"
        case _:
            assert_never(block)


def _part(part: Part) -> str:
    """Return a part of a line; the direction of untrusted text cannot affect ours."""
    match part:
        case str():
            return escape(part)
        case UntrustedText():
            return f"<bdi>{escape(flat(part.text))}</bdi>"
        case Prose():
            return f"<bdi>{_spans(spans_of(flat(part.text)))}</bdi>"
        case _:
            assert_never(part)


def _plain(line: Line) -> str:
    return "".join(part if isinstance(part, str) else flat(part.text) for part in line)


def _notes(parts: Iterable[NotePart]) -> str:
    return "\n".join(map(_note, parts))


def _note(part: NotePart) -> str:
    match part:
        case TextPart():
            words = _spans(part.spans)
            return f"<p><strong>{words}</strong></p>" if part.is_heading else f"<p>{words}</p>"
        case ItemPart():
            mark = f"{part.number} " if part.number is not None else ""
            return f"{'<ul>' * (part.depth + 1)}<li>{mark}{_spans(part.spans)}</li>{'</ul>' * (part.depth + 1)}"
        case CodePart():
            return f'<pre class="said">\n{escape(part.text)}</pre>'
        case _:
            assert_never(part)


def _spans(spans: Iterable[Span]) -> str:
    return "".join(map(_span, spans))


def _span(span: Span) -> str:
    text = escape(span.text)
    return text if span.kind == "text" else f"<{span.kind}>{text}</{span.kind}>"
