"""Renders the Markdown of agents as HTML in which nothing acts (CON-5).

Two independent steps: the parser escapes HTML, and the sanitizer removes whatever it does not know. Pictures become
links, which do nothing until a person follows them.
"""

from collections.abc import MutableMapping, Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from interlock.kernel.text import printable

_TAGS = {
    *("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "h4", "h5", "h6"),
}
_HEADINGS = {"h1": "h4", "h2": "h5"}
"""The headings of a page are Interlock's, so those of notes are below them."""
_SCHEMES = {"http", "https"}


class _Renderer(RendererHTML):
    """Renders a picture as a link to it, so that a browser loads nothing."""

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
    """Return untrusted Markdown as HTML. Total: a text that nothing can be made of is shown as it is."""
    tokens = _PARSER.parse(printable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _HEADINGS.get(token.tag, "h6")
    rendered = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return nh3.clean(
        rendered,
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        attribute_filter=_absolute_links,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
