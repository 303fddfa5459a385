"""The answers that a server can send before anything is imported, as the server itself gives them."""

import json
import math
from typing import Any, cast

import anyio
from mcp import types
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from interlock.kernel.canonical import Json
from interlock.server.app import build_server
from interlock.server.tools import TOOLS
from interlock.server.transport.stdio import line_of
from interlock.testing.harness import Harness

METHODS = ("ping", "server/discover", "tools/list", "prompts/list", "resources/templates/list")
"""Requests whose answer depends on the protocol version alone."""
_CLIENT: dict[str, Json] = {"name": "generator", "version": "1"}


def front_file() -> str:
    """Return the prepared results of all versions as JSON: each different result once."""
    results: dict[str, int] = {}
    versions: dict[str, dict[str, int]] = {}
    for version in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS):
        found = anyio.run(_answers, version)
        versions[version] = {method: results.setdefault(text, len(results)) for method, text in found.items()}
    return json.dumps({"versions": versions, "results": list(results)}, ensure_ascii=False) + "\n"


async def _answers(version: str) -> dict[str, str]:
    """Return the text of each result that a connection of this version gets."""
    is_handshake = version in HANDSHAKE_PROTOCOL_VERSIONS
    tools = [types.Tool.model_validate(tool.to_json()) for tool in TOOLS]
    server = build_server(Harness.in_memory().ports, None, tools)
    found: dict[str, str] = {}
    to_server, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    outbox, from_server = anyio.create_memory_object_stream[SessionMessage](math.inf)
    async with to_server, inbox, outbox, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, inbox, outbox, server.create_initialization_options())
        for method in ("initialize", *METHODS) if is_handshake else METHODS:
            params = _params(method, version, is_handshake=is_handshake)
            request = JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=cast("dict[str, Any]", params))
            await to_server.send(SessionMessage(request))
            answer = (await from_server.receive()).message
            if isinstance(answer, JSONRPCResponse):
                line = line_of(answer).decode()
                found[method] = line.removeprefix('{"jsonrpc":"2.0","id":1,"result":').removesuffix("}\n")
            if method == "initialize":
                note = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
                await to_server.send(SessionMessage(note))
        tasks.cancel_scope.cancel()
    return found


def _params(method: str, version: str, *, is_handshake: bool) -> dict[str, Json]:
    if method == "initialize":
        return {"protocolVersion": version, "capabilities": {}, "clientInfo": _CLIENT}
    if is_handshake:
        return {}
    prefix = "io.modelcontextprotocol"
    envelope: dict[str, Json] = {f"{prefix}/protocolVersion": version, f"{prefix}/clientInfo": _CLIENT}
    return {"_meta": {**envelope, f"{prefix}/clientCapabilities": {}}}
