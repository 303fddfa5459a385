"""The context that the SDK passes to a handler, for tests that call the handler themselves."""

from types import SimpleNamespace
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp_types.version import LATEST_HANDSHAKE_VERSION


def call_context(client_info: SimpleNamespace | None = None) -> "ServerRequestContext[Any, Any]":
    """Return the context of a request without a progress token, from a client with the given name and version."""
    params = None if client_info is None else SimpleNamespace(client_info=client_info)
    session = SimpleNamespace(client_params=params, client_capabilities=None, can_send_request=False)
    context = SimpleNamespace(meta=None, session=session, protocol_version=LATEST_HANDSHAKE_VERSION)
    return cast("ServerRequestContext[Any, Any]", context)
