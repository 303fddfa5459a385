"""Answers tool calls without the SDK's dispatcher, once the SDK has accepted a call of the same client (SRV-19).

Who the client is, which protocol it speaks and what it may send is decided by the SDK alone, for the first call. The
following ones, if they declare the same, run the same handler with a context of the same types. They save the SDK's
queues and its repeated validation of parameters and results: a quarter of the time of a call that reads.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar, cast

import anyio
from mcp import types
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import CallOptions, ProgressFnT, coerce_request_id
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    SERVER_INFO_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

_METHOD = "tools/call"
_PLAIN = frozenset({"name", "arguments", "_meta"})
"""The parameters of a call that repeats no question."""
_ENVELOPE = "io.modelcontextprotocol/"
"""The prefix of the members of `_meta` by which a request declares its protocol and its client."""
_Context = ServerRequestContext[Any, Any]
_ResultT = TypeVar("_ResultT", bound=BaseModel)
_log = logging.getLogger(__name__)


class DirectCalls:
    """The tool calls of one connection that the SDK's dispatcher does not see. Used by the event loop only."""

    def __init__(
        self,
        server: Server[Any],
        send: Callable[[JSONRPCMessage], None],
        settle: Callable[[RequestId, Mapping[str, Any] | None], None],
    ) -> None:
        """Answer calls of `server`.

        `send` writes a message. `settle` writes the result of a request; without one, the client has cancelled it.
        Neither waits.
        """
        self._server = server
        self._server_info = server.server_info_stamp
        self._send = send
        self._settle = settle
        self._accepted: _Accepted | None = None
        self._is_renewed = False
        self._has_call = False
        self._unbegun = set[RequestId]()
        self._running = dict[_Running, asyncio.Task[None]]()
        self._cancellable = dict[RequestId, _Running]()
        server.middleware.append(self._observe)

    def begin(self, request: JSONRPCRequest) -> bool:
        """Begin to answer a request, and return True. After False, the SDK has to be given it."""
        key = coerce_request_id(request.id)
        # A cancellation is of the newest request with its id, as in the SDK.
        self._cancellable.pop(key, None)
        if request.method != _METHOD:
            # After a second handshake, what a call was accepted with may no longer be what the client declares.
            self._is_renewed = self._is_renewed or (request.method == "initialize" and self._has_call)
            return False
        self._has_call = True
        # Calls of one session begin in the order in which they come, so none may overtake one that the SDK holds.
        accepted = None if self._unbegun or self._is_renewed else self._accepted
        call = _plain_call(request, accepted) if accepted is not None else None
        if accepted is None or call is None:
            self._unbegun.add(request.id)
            return False
        running = self._cancellable[key] = _Running(request=request, call=call, accepted=accepted)
        self._running[running] = asyncio.create_task(self._answer(running))
        return True

    def cancel(self, request: RequestId) -> bool:
        """Cancel the call that the client names, if it is one of these; return whether it is."""
        running = self._cancellable.get(coerce_request_id(request))
        if running is None:
            return False
        running.cancel_requested.set()
        running.cancel()
        return True

    def forget(self, request: RequestId) -> None:
        """Note that the SDK has settled a request, so that it will not begin it."""
        self._unbegun.discard(request)

    def cancel_all(self) -> None:
        """Cancel the calls that still wait."""
        for one in self._running:
            one.cancel()

    async def wait(self) -> None:
        """Wait for the calls in a worker thread: they are never abandoned (SRV-7)."""
        if self._running:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(self._running.values())

    async def _observe(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """See each call that the SDK is given; this is a middleware of the server."""
        if ctx.method != _METHOD or ctx.request_id is None:
            return await call_next(ctx)
        self._unbegun.discard(ctx.request_id)
        result = await call_next(ctx)
        envelope = _envelope(ctx.params)
        if self._accepted is None or self._accepted.envelope != envelope:
            self._accepted = _Accepted.from_context(ctx, envelope)
        return result

    async def _answer(self, running: "_Running") -> None:
        response: Mapping[str, Any] | JSONRPCError | None = None
        try:
            with running.cancellable():
                response = await self._response(running)
        finally:
            self._end(running, response)

    def _end(self, running: "_Running", response: Mapping[str, Any] | JSONRPCError | None) -> None:
        """Send the result or the error of a call; without one, it was cancelled because the connection ends."""
        request = running.request
        running.is_done = True
        del self._running[running]
        key = coerce_request_id(request.id)
        if self._cancellable.get(key) is running:
            del self._cancellable[key]
        if running.cancel_requested.is_set():
            self._settle(request.id, None)
        elif response is None:
            closed = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
            self._send(JSONRPCError(jsonrpc="2.0", id=request.id, error=closed))
        elif isinstance(response, JSONRPCError):
            self._send(response)
        else:
            self._settle(request.id, response)

    async def _response(self, running: "_Running") -> Mapping[str, Any] | JSONRPCError:
        """Return the result of a call as the SDK would write it, or its error."""
        identity, accepted = running.request.id, running.accepted
        entry = self._server.get_request_handler(_METHOD)
        assert entry is not None, "it has answered a call"
        context = running.context(self._send)
        try:
            result = await entry.handler(context, running.call)
            return self._members(result, accepted.context.protocol_version)
        except Exception as error:  # noqa: BLE001 — every call gets a response
            found = handler_exception_to_error_data(error)
            if found is None:
                _log.exception("a tool call failed")
                found = ErrorData(code=INTERNAL_ERROR, message="Internal server error")
            return JSONRPCError(jsonrpc="2.0", id=identity, error=found)

    def _members(self, result: HandlerResult, version: str) -> dict[str, Any]:
        """Return the members of a result in a version of the protocol."""
        if isinstance(result, types.CallToolResult) and result.meta is None:
            # As the SDK makes it, but the structure, which is JSON already, is not copied.
            blocks = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content]
            members: dict[str, Any] = {"content": blocks, "isError": result.is_error or False}
            if result.structured_content is not None:
                members["structuredContent"] = result.structured_content
            if version in MODERN_PROTOCOL_VERSIONS:
                members["resultType"] = result.result_type
        else:
            assert isinstance(result, BaseModel), "a handler of calls returns a model"
            dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            members = serialize_server_result(_METHOD, version, dumped)
        if version in MODERN_PROTOCOL_VERSIONS:
            members["_meta"] = {SERVER_INFO_META_KEY: self._server_info} | members.get("_meta", {})
        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accepted:
    """A call that the SDK has accepted: what calls with the same envelope need of it."""

    envelope: Mapping[str, Any]
    context: _Context
    connection: Connection
    transport: TransportContext

    @classmethod
    def from_context(cls, context: _Context, envelope: Mapping[str, Any]) -> Self:
        """Return what later calls need of an accepted one."""
        session = context.session
        connection = Connection.from_envelope(context.protocol_version, None, None)
        connection.client_params = session.client_params
        connection.client_capabilities = session.client_capabilities
        can_send_request = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
        return cls(
            envelope=envelope,
            context=replace(context, params=None, meta=None),
            connection=connection,
            transport=TransportContext(kind="jsonrpc", can_send_request=can_send_request),
        )


@dataclass(slots=True, kw_only=True, eq=False)
class _Running:
    """A call that is being answered."""

    request: JSONRPCRequest
    call: types.CallToolRequestParams
    accepted: _Accepted
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    """Set if the client has cancelled it: then it gets no response."""
    is_done: bool = False
    _is_cancelled: bool = False
    _scope: anyio.CancelScope | None = None

    def context(self, send: Callable[[JSONRPCMessage], None]) -> _Context:
        """Return the context for the handler; `send` writes a message."""
        accepted, channel = self.accepted, _Channel(self, send)
        session = _Session(channel, accepted.connection, accepted.context.session)
        return replace(
            accepted.context,
            session=session,
            params=self.request.params,
            request_id=self.request.id,
            meta=self.call.meta,
        )

    def cancel(self) -> None:
        """Cancel it where it waits next. A call that has not begun waits first of all."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    @contextmanager
    def cancellable(self) -> Generator[None]:
        """Let `cancel` end the block, also before it begins."""
        with anyio.CancelScope() as self._scope:
            if self._is_cancelled:
                self._scope.cancel()
            yield


class _Channel:
    """What a handler needs of the SDK's dispatcher for one call: its progress, and whether the client can be asked."""

    def __init__(self, running: _Running, send: Callable[[JSONRPCMessage], None]) -> None:
        self.transport = running.accepted.transport
        self.message_metadata: MessageMetadata = None
        self.request_id: RequestId | None = running.request.id
        self.cancel_requested = running.cancel_requested
        self._running = running
        self._send = send

    @property
    def can_send_request(self) -> bool:
        """Whether the client can be sent a request for this call."""
        return self.transport.can_send_request and not self._running.is_done

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002 — the SDK's signature
        opts: CallOptions | None = None,  # noqa: ARG002 — the SDK's signature
    ) -> dict[str, Any]:
        """Refuse: `_Session` sends requests through the SDK.

        Raises:
            MCPError: Always.
        """
        raise NoBackChannelError(method)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 — the SDK's signature
    ) -> None:
        """Send a notification, unless the call is done."""
        if not self._running.is_done:
            self._send(JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params or {})))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress if the client has asked for it."""
        token = progress_token_from_params(self._running.request.params)
        if token is None:
            return
        optional = {"total": total, "message": message}
        given = {name: value for name, value in optional.items() if value is not None}
        await self.notify("notifications/progress", {"progressToken": token, "progress": progress, **given})


class _Session(ServerSession):
    """The session of one call. Requests and notifications go through the session that the SDK has made."""

    def __init__(self, channel: _Channel, connection: Connection, accepted: ServerSession) -> None:
        super().__init__(channel, connection)
        self._accepted = accepted

    async def send_request(
        self,
        request: types.ServerRequest,
        result_type: type[_ResultT],
        request_read_timeout_seconds: float | None = None,
        metadata: ServerMessageMetadata | None = None,  # noqa: ARG002 — says for which call, which only HTTP needs
        progress_callback: ProgressFnT | None = None,
    ) -> _ResultT:
        """Send a request on the connection, and wait for its result. See `ServerSession`.

        Raises:
            MCPError: The client responded with an error, or cannot be sent requests.
        """
        timeout_s = request_read_timeout_seconds
        return await self._accepted.send_request(request, result_type, timeout_s, None, progress_callback)

    async def send_notification(
        self,
        notification: types.ServerNotification,
        related_request_id: RequestId | None = None,  # noqa: ARG002 — as above
    ) -> None:
        """Send a notification on the connection. See `ServerSession`."""
        await self._accepted.send_notification(notification)


def _plain_call(request: JSONRPCRequest, accepted: _Accepted) -> types.CallToolRequestParams | None:
    """Return the parameters of a call like an accepted one; None for others, and for those that are not valid."""
    params = request.params
    if params is None or not params.keys() <= _PLAIN or _envelope(params) != accepted.envelope:
        return None
    try:
        return types.CallToolRequestParams.model_validate(params, by_name=False)
    except ValidationError:
        return None


def _envelope(params: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what a request declares of its protocol and its client: nothing, after a handshake."""
    found = (params or {}).get("_meta")
    meta = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {name: value for name, value in meta.items() if name.startswith(_ENVELOPE)}
