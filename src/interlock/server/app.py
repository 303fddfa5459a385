"""Builds the MCP server: one low-level server for both protocol eras (SRV-4)."""

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mcp import types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from interlock.kernel.budgets import CACHE_HINT_MS
from interlock.server.apps.extension import EXTENSION, shows_pages, tools_with_page
from interlock.server.calls import Calls
from interlock.server.subscriptions import Subscriptions
from interlock.server.tools import INSTRUCTIONS
from interlock.service.ports import Ports
from interlock.version import VERSION

if TYPE_CHECKING:
    from interlock.server.completions import Completions
    from interlock.server.prompts import Prompts
    from interlock.server.resources import Resources

_P = ParamSpec("_P")
_R = TypeVar("_R")

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


_INVALID = "Invalid request parameters"
"""What the SDK says of a request before the handshake."""
_HANDSHAKE_PARAMETERS = ("protocolVersion", "capabilities", "clientInfo")
_HANDSHAKE = (
    'First send `initialize` with the params {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":'
    '{"name":"NAME","version":"VERSION"}} and then the notification `notifications/initialized`.'
)


@cache
def _published_tools() -> list[types.Tool]:
    """Return the tools for `tools/list`, as the wheel publishes them. Their schemas are not generated again (SRV-3)."""
    return [types.Tool.model_validate(tool) for tool in json.loads(_TOOLS.read_bytes())]


def build_server(ports: Ports, workspace: Path | None, tools: Sequence[types.Tool] | None = None) -> Server[Any]:
    """Return the MCP server over these ports. `tools` replaces the published list of tools, to publish a new one."""
    subscriptions = Subscriptions()
    calls = Calls(ports, workspace, on_changed=subscriptions.notify)
    resources, prompts, completions = _for_people(ports, workspace)

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
        on_list_resources=_deferred(lambda: resources().list_resources),
        on_list_resource_templates=_deferred(lambda: resources().list_templates),
        on_read_resource=_deferred(lambda: resources().read_resource),
        on_subscribe_resource=subscriptions.subscribe,
        on_unsubscribe_resource=subscriptions.unsubscribe,
        on_subscriptions_listen=subscriptions.listen,
        on_list_prompts=_deferred(lambda: prompts().list_prompts),
        on_get_prompt=_deferred(lambda: prompts().get_prompt),
        on_completion=_deferred(lambda: completions().complete),
    )
    server.extensions = {EXTENSION: {}}
    server.middleware.append(_explain_handshake)
    return server


async def _explain_handshake(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Say what is missing in a request before the handshake, and in a faulty handshake (SRV-21).

    Of both, the SDK says only that parameters are invalid. A request of the later era needs no handshake, and the SDK
    names what is missing in it.
    """
    try:
        return await call_next(ctx)
    except MCPError as error:
        if (error.code, error.message) != (types.INVALID_PARAMS, _INVALID):
            raise
        message = f"`{ctx.method}` came before `initialize`, so nothing is known of the client. {_HANDSHAKE}"
        raise MCPError(types.INVALID_PARAMS, message) from None
    except ValidationError:
        if ctx.method != "initialize":
            raise
        absent = [name for name in _HANDSHAKE_PARAMETERS if name not in (ctx.params or {})]
        found = f"`initialize` lacks {', '.join(absent)}" if absent else "A parameter of `initialize` has a wrong form"
        raise MCPError(types.INVALID_PARAMS, f"{found}. {_HANDSHAKE}") from None


def close_subscriptions(server: Server[Any]) -> None:
    """End the subscriptions of the later protocol era: each is answered with its result."""
    entry = server.get_request_handler("subscriptions/listen")
    assert entry is not None, "`build_server` registers it"
    assert isinstance(entry.handler, ListenHandler), "as `build_server` registers it"
    entry.handler.close()


def _for_people(
    ports: Ports, workspace: Path | None
) -> "tuple[Callable[[], Resources], Callable[[], Prompts], Callable[[], Completions]]":
    """Return what makes the features for people. Each is imported when it is first used: the first call waits less."""

    @cache
    def resources() -> "Resources":
        from interlock.server.resources import Resources  # noqa: PLC0415 — see above

        return Resources(ports, workspace)

    @cache
    def prompts() -> "Prompts":
        from interlock.server.prompts import Prompts  # noqa: PLC0415 — see above

        return Prompts(ports, workspace)

    @cache
    def completions() -> "Completions":
        from interlock.server.completions import Completions  # noqa: PLC0415 — see above

        return Completions(ports, workspace)

    return resources, prompts, completions


def _deferred(find: Callable[[], Callable[_P, Awaitable[_R]]]) -> Callable[_P, Awaitable[_R]]:
    """Return a handler that is found when it is first called."""

    async def handle(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await find()(*args, **kwargs)

    return handle
