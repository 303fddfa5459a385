"""Declares the page in a chat to hosts that can show one; for every other client nothing changes (CHAT-1)."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext

from interlock.server.tools import page_tools

EXTENSION = "io.modelcontextprotocol/ui"
PAGE_LINK = "ui://interlock/run.html"
_MIME_TYPE = "text/html;profile=mcp-app"
_SHOWN_WITH = frozenset({"start_workflow", "continue_workflow"})
"""The tools whose answers the page accompanies: those of a run that continues."""
_DRAWN: dict[str, Any] = {"ui": {"resourceUri": PAGE_LINK}, "ui/resourceUri": PAGE_LINK}
"""What names the page of a tool. Some hosts read only the second form."""


def shows_pages(context: ServerRequestContext[Any, Any]) -> bool:
    """Say whether this client declares that it shows pages of this form."""
    capabilities = context.session.client_capabilities
    settings = (capabilities.extensions or {}).get(EXTENSION) if capabilities is not None else None
    return settings is not None and _MIME_TYPE in settings.get("mimeTypes", (_MIME_TYPE,))


def tools_with_page(tools: Sequence[types.Tool]) -> list[types.Tool]:
    """Return the tools as a host receives them that shows pages: with their page, and with the tools of the page."""
    return [_with_page(tool) for tool in tools] + list(_page_tools())


def _with_page(tool: types.Tool) -> types.Tool:
    return tool.model_copy(update={"meta": {**(tool.meta or {}), **_DRAWN}}) if tool.name in _SHOWN_WITH else tool


@cache
def _page_tools() -> tuple[types.Tool, ...]:
    return tuple(types.Tool.model_validate(tool.to_json()) for tool in page_tools())


def page_resource() -> types.Resource:
    """Return the page as an entry of `resources/list`."""
    return types.Resource(uri=PAGE_LINK, name="page of a run", title="Run of Interlock", mime_type=_MIME_TYPE)


def read_page() -> types.TextResourceContents:
    """Return the page. It asks for no network and no permission."""
    text = Path(__file__).with_name("run.html").read_text(encoding="utf-8")
    return types.TextResourceContents(
        uri=PAGE_LINK, mime_type=_MIME_TYPE, text=text, _meta={"ui": {"csp": {}, "prefersBorder": True}}
    )
