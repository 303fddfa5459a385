"""Renders the Markdown of agents as HTML in which nothing acts (CON-5).

Two independent steps: the parser escapes HTML, and the sanitizer removes whatever it does not know. Pictures become
links, which do nothing until a person follows them.

CommonMark leaves some text out: definitions of links, titles, what follows a table's last column. Notes of which a word
would be missing are shown as reports show them.
"""

import re
from collections import Counter
from collections.abc import MutableMapping, Sequence
from html import escape, unescape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from interlock.kernel.text import printable
from interlock.service.report.html import render_notes

_TAGS = {
    *("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6"),
}
_HEADINGS = {"h1": "h4", "h2": "h5"}
"""The headings of a page are Interlock's, so those of notes are below them."""
_SCHEMES = {"http", "https"}


_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"^\s*(?:>\s*)*\d+(?=[.)]\s)", re.MULTILINE)
"""The number of an item of a list, which a browser writes."""
_TAG, _ADDRESS = re.compile(r"<[^>]*>"), re.compile(r'href="([^"]*)"')


class _Renderer(RendererHTML):
    """Renders a picture as a link to it, so that a browser loads nothing, and the words after a fence as code."""

    def fence(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: Any,  # noqa: ANN401 — the signature of the parser's package
        env: MutableMapping[str, Any],
    ) -> str:
        """Return a block of code, below what follows its fence."""
        info = unescape(tokens[idx].info.strip())
        named = f"<p><code>{escape(info)}</code></p>\n" if info else ""
        return f"{named}{super().code_block(tokens, idx, options, env)}"

    def image(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: Any,  # noqa: ANN401 — the signature of the parser's package
        env: MutableMapping[str, Any],
    ) -> str:
        """Return the link of a picture."""
        token = tokens[idx]
        words = self.renderInlineAsText(token.children, options, env) or "picture"
        link = Token("link_open", "a", 1, attrs={"href": str(token.attrs.get("src", ""))})
        text = Token("text", "", 0, content=words)
        return f"{self.renderToken([link], 0, options, env)}{self.text([text], 0, options, env)}</a>"


def _absolute_links(_tag: str, name: str, value: str) -> str | None:
    """Keep an address only if it is whole: a relative one would be of this console."""
    return value if name != "href" or value.lower().startswith(("http://", "https://")) else None


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer)
    return parser.enable(["table", "strikethrough"])


_PARSER = _parser()


def notes_html(text: str) -> str:
    """Return untrusted Markdown as HTML in which every word of it is shown."""
    shown = printable(text)
    tokens = _PARSER.parse(shown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _HEADINGS.get(token.tag, "h6")
    rendered = nh3.clean(
        _PARSER.renderer.render(tokens, _PARSER.options, {}),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        attribute_filter=_absolute_links,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
    return rendered if _words_of(_NUMBER.sub("", shown)) <= _words_in(rendered) else render_notes(text)


def _words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))


def _words_in(html: str) -> Counter[str]:
    """Return the words of a part of a page, and those of the addresses that its links show."""
    return _words_of(unescape(" ".join([_TAG.sub("", html), *_ADDRESS.findall(html)])))
