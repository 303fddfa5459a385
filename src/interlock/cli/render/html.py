"""Render a page as one HTML file: without scripts, with its style inside, with every text escaped."""

from html import escape
from typing import assert_never

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


def as_html(page: Page) -> str:
    """Return a page as one HTML document; its title is that of its first heading."""
    title = next((_plain(block.line) for block in page if isinstance(block, Heading)), "Interlock")
    body = "\n".join(_block(block) for block in page)
    return f"{_HEAD.format(title=escape(title), style=_STYLE)}{body}\n</body>\n</html>\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{_line(block.line)}</h{block.level}>"
        case Properties():
            rows = "\n".join(f"<dt>{escape(name)}</dt><dd>{_line(line)}</dd>" for name, line in block.rows)
            return f"<dl>\n{rows}\n</dl>"
        case Bullets():
            items = "\n".join(f"<li>{_line(line)}</li>" for line in block.items)
            return f"<ul>\n{items}\n</ul>"
        case Paragraph():
            return f"<p>{_line(block.line)}</p>"
        case Quote():
            # A newline that directly follows the tag would be dropped.
            return f'<pre class="said" dir="auto">\n{escape(printable(block.text))}</pre>'
        case Drawing():
            return f"<pre>\n{escape(printable(block.text))}</pre>"
        case _:
            assert_never(block)


def _line(line: Line) -> str:
    """Return a line; the direction of untrusted text cannot affect ours."""
    return "".join(
        f"<bdi>{escape(flat(part.text))}</bdi>" if isinstance(part, UntrustedText) else escape(part) for part in line
    )


def _plain(line: Line) -> str:
    return "".join(flat(part.text) if isinstance(part, UntrustedText) else part for part in line)
