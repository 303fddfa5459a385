"""Builds the MCP server: one low-level server for both protocol eras (SRV-4)."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from interlock.kernel.budgets import CACHE_HINT_MS
from interlock.server.apps.extension import EXTENSION, shows_pages, tools_with_page
from interlock.server.calls import Calls
from interlock.server.completions import Completions
from interlock.server.prompts import Prompts
from interlock.server.resources import Resources
from interlock.server.subscriptions import Subscriptions
from interlock.server.tools import INSTRUCTIONS
from interlock.service.ports import Ports
from interlock.version import VERSION

_CACHED = CacheHint(CACHE_HINT_MS, "public")
"""The cache hint for lists that do not change while a server runs."""
_CACHED_FOR_CLIENT = CacheHint(CACHE_HINT_MS, "private")
"""The cache hint for the tools: a host that shows pages receives more of them (CHAT-1)."""

_TOOLS = Path(__file__).parent / "published" / "tools.json"

_CONSTANT: tuple[CacheableMethod, ...] = (
    "tools/list",
    "prompts/list",
    "resources/templates/list",
    "server/discover",
)

_HINTS: dict[CacheableMethod, CacheHint] = {**dict.fromkeys(_CONSTANT, _CACHED), "tools/list": _CACHED_FOR_CLIENT}


@cache
def _published_tools() -> list[types.Tool]:
    """Return the tools for `tools/list`, as the wheel publishes them. Their schemas are not generated again (SRV-3)."""
    return [types.Tool.model_validate(tool) for tool in json.loads(_TOOLS.read_bytes())]


def build_server(ports: Ports, workspace: Path | None, tools: Sequence[types.Tool] | None = None) -> Server[Any]:
    """Return the MCP server over these ports. `tools` replaces the published list of tools, to publish a new one."""
    subscriptions = Subscriptions()
    calls = Calls(ports, workspace, on_changed=subscriptions.notify)
    resources, prompts = Resources(ports, workspace), Prompts(ports, workspace)

    async def list_tools(
        context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = list(tools) if tools is not None else _published_tools()
        return types.ListToolsResult(tools=tools_with_page(listed) if shows_pages(context) else listed)

    server = Server[Any](
        "interlock",
        version=VERSION,
        title="Interlock",
        instructions=INSTRUCTIONS,
        cache_hints=_HINTS,
        on_list_tools=list_tools,
        on_call_tool=calls.call,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read_resource,
        on_subscribe_resource=subscriptions.subscribe,
        on_unsubscribe_resource=subscriptions.unsubscribe,
        on_subscriptions_listen=subscriptions.listen,
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=prompts.get_prompt,
        on_completion=Completions(ports, workspace).complete,
    )
    server.extensions = {EXTENSION: {}}
    return server
