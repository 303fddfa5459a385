"""The templates of all pages: every value is escaped, unless a renderer of Interlock made it safe."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from interlock.console.rendering.markdown import notes_html
from interlock.console.rendering.static_files import address_of
from interlock.kernel.text import flat, printable
from interlock.service.report.document import Block, Line
from interlock.service.report.html import blocks_html, line_html
from interlock.version import VERSION

_DIRECTORY = Path(__file__).parents[1] / "templates"


class Templates:
    """Renders pages with the nonce of their request and the token of their browser."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_DIRECTORY), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._environment.filters |= {
            "blocks": _blocks,
            "line": _line,
            "notes": _notes,
            "flat": _flat,
            "printable": printable,
            "address": address_of,
            "coded": _coded,
            "spelled": _spelled,
        }

    def page(self, request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
        """Return a page. `values` is what its template needs, besides what every page has."""
        shared = {
            "nonce": request.state.nonce,
            "token": getattr(request.state, "token", None),
            "live": "",
            "path": request.url.path,
            "version": VERSION,
        }
        body = self._environment.get_template(template).render({**shared, **values})
        # A lone surrogate is a character that no encoding has.
        return HTMLResponse(body.encode("utf-8", "backslashreplace"), status)

    def reading(self, request: Request, title: str, reading: object, live: str = "") -> Response:
        """Return a page that says how far a view is, and asks for it until it is made.

        `live` is the session of which the view then shows changes.
        """
        return self.page(request, "reading.html", {"title": title, "reading": reading, "live": live})

    def message(self, request: Request, status: int, found: str, fix: str) -> Response:
        """Return a page that says what was found and what to do."""
        return self.page(request, "message.html", {"found": found, "fix": fix, "title": "Not shown"}, status)


def safe(html: str) -> Markup:
    """Mark HTML as safe that a renderer of Interlock made of escaped text."""
    return Markup(html)  # noqa: S704 — the one place: renderers escape what they render


def _blocks(blocks: tuple[Block, ...]) -> Markup:
    return safe(blocks_html(blocks, notes_html))


def _line(line: Line) -> Markup:
    return safe(line_html(line))


def _notes(text: str) -> Markup:
    return safe(notes_html(text))


def _flat(text: str | None) -> str:
    return flat(text) if text is not None else ""


def _coded(text: str) -> Markup:
    """Return a sentence of Interlock with its commands as code. Text of others never comes here."""
    parts = str(escape(flat(text))).split("`")
    return safe("".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)))


def _spelled(name: str) -> str:
    """Return the name of a field in words: `ageDays` is "Age days"."""
    words = re.sub(r"(?<=[a-z])([A-Z])", lambda found: f" {found[1].lower()}", name).replace("_", " ")
    return words[:1].upper() + words[1:]
