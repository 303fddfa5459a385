"""Which calls the SDK is spared, in which order calls begin, and what becomes of those that fail or are cancelled."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from mcp import types
from mcp.server.connection import Connection
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from interlock.server.transport.direct import DirectCalls

pytestmark = [pytest.mark.asyncio, pytest.mark.inv("SRV-19")]
VERSION = "2025-11-25"
Context = ServerRequestContext[Any, Any]


class Served:
    """The direct calls of a server, what they have sent, and the cancelled ones that they have settled."""

    def __init__(self) -> None:
        self.sent = list[Any]()
        self.settled = list[int | str]()
        self.begun = list[str]()
        self.gate = asyncio.Event()
        self.server: Server[Any] = Server("test", on_call_tool=self._call)
        self.direct = DirectCalls(self.server, self.sent.append, self._settle)

    def _settle(self, request: int | str, result: Mapping[str, Any] | None) -> None:
        if result is None:
            self.settled.append(request)
        else:
            self.sent.append(JSONRPCResponse(jsonrpc="2.0", id=request, result=dict(result)))

    async def _call(self, _context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.begun.append(params.name)
        match params.name:
            case "wait":
                await self.gate.wait()
            case "unknown":
                raise MCPError(types.INVALID_PARAMS, "Unknown tool: unknown")
            case "stop":
                await self.gate.wait()
                raise asyncio.CancelledError
            case "fail":
                raise KeyError("a secret of the handler")
            case _:
                pass
        return types.CallToolResult(content=[types.TextContent(text=params.name)])

    async def through_the_sdk(self, sent: JSONRPCRequest, then: Callable[[], Awaitable[None]] | None = None) -> None:
        """Answer a request as the SDK does: through the middleware of the server."""
        connection = Connection.from_envelope(VERSION, {"name": "test", "version": "1"}, {})
        context = Context(
            session=ServerSession(_Unused(), connection),  # pyright: ignore[reportArgumentType]
            lifespan_context={},
            protocol_version=VERSION,
            method=sent.method,
            params=sent.params,
            request_id=sent.id,
        )

        async def handle(_context: Context) -> HandlerResult:
            await (then or _nothing)()
            return {}

        await self.server.middleware[-1](context, handle)

    async def accept(self) -> None:
        """Let the SDK answer the first call of the client."""
        first = request(0)
        assert not self.direct.begin(first)
        await self.through_the_sdk(first)
        self.direct.forget(0)


class _Unused:
    """The channel of a call that sends nothing."""


async def _nothing() -> None: ...


@pytest.fixture
def served() -> Served:
    return Served()


def request(identity: int, name: str = "do", **more: Any) -> JSONRPCRequest:
    params: dict[str, Any] = {"name": name, "arguments": {}, **more}
    return JSONRPCRequest(jsonrpc="2.0", id=identity, method="tools/call", params=params)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_call_is_direct_once_the_sdk_has_accepted_one(served: Served) -> None:
    assert not served.direct.begin(request(1))
    served.direct.forget(1)
    await served.accept()
    assert served.direct.begin(request(2))
    await settle()
    block = {"type": "text", "text": "do"}
    assert served.sent == [
        JSONRPCResponse(jsonrpc="2.0", id=2, result={"content": [block], "isError": False}),
    ]


@pytest.mark.inv("LOCK-5")
async def test_no_call_overtakes_one_that_the_sdk_was_given_and_has_not_begun(served: Served) -> None:
    await served.accept()
    repeated = request(1, requestState="sealed")
    assert not served.direct.begin(repeated)
    assert not served.direct.begin(request(2))

    async def while_both_run() -> None:
        assert served.direct.begin(request(3))

    async def while_one_runs() -> None:
        assert not served.direct.begin(request(4))
        served.direct.forget(4)
        await served.through_the_sdk(request(2), while_both_run)

    await served.through_the_sdk(repeated, while_one_runs)


@pytest.mark.parametrize(
    "other",
    [
        request(1, inputResponses={}),
        request(1, _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}),
        request(1, _meta={"progressToken": []}),
        JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call"),
        JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list", params={}),
    ],
    ids=["a repeated question", "another envelope", "parameters that are not valid", "no parameters", "another method"],
)
async def test_what_is_no_plain_call_is_for_the_sdk(served: Served, other: JSONRPCRequest) -> None:
    await served.accept()
    assert not served.direct.begin(other)


async def test_after_a_second_handshake_the_sdk_answers_every_call(served: Served) -> None:
    hello = JSONRPCRequest(jsonrpc="2.0", id=9, method="initialize", params={})
    assert not served.direct.begin(hello)
    await served.accept()
    assert served.direct.begin(request(1))
    assert not served.direct.begin(hello)
    assert not served.direct.begin(request(2))


@pytest.mark.parametrize(("name", "code", "words"), [("unknown", -32602, "Unknown tool"), ("fail", -32603, "Internal")])
async def test_a_failure_is_answered_with_its_code(served: Served, name: str, code: int, words: str) -> None:
    await served.accept()
    assert served.direct.begin(request(1, name))
    await settle()
    (answer,) = served.sent
    assert isinstance(answer, JSONRPCError)
    assert (answer.id, answer.error.code) == (1, code)
    assert words in answer.error.message
    assert "secret" not in answer.error.message


@pytest.mark.inv("SRV-7")
@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_cancelled_call_gets_no_answer(served: Served, *, has_begun: bool) -> None:
    await served.accept()
    assert served.direct.begin(request(1, "wait"))
    if has_begun:
        await settle()
    assert served.direct.cancel("1")
    assert not served.direct.cancel(2)
    await settle()
    assert (served.sent, served.settled) == ([], [1])
    assert not served.direct.cancel(1)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_call_that_stops_by_an_error_of_its_own_is_settled(served: Served, *, is_cancelled: bool) -> None:
    await served.accept()
    served.direct.begin(request(1, "stop"))
    await settle()
    if is_cancelled:
        served.direct.cancel(1)
    served.gate.set()
    await settle()
    assert (served.settled, [one.id for one in served.sent]) == (([1], []) if is_cancelled else ([], [1]))
    assert not served.direct.cancel(1)


async def test_what_still_waits_at_the_end_is_answered_with_an_error(served: Served) -> None:
    await served.accept()
    assert served.direct.begin(request(1, "wait"))
    assert served.direct.begin(request(2, "wait"))
    await settle()
    served.direct.cancel_all()
    await served.direct.wait()
    assert [(one.id, one.error.code) for one in served.sent] == [(1, -32000), (2, -32000)]


async def test_a_cancellation_is_of_the_newest_request_with_its_id(served: Served) -> None:
    await served.accept()
    assert served.direct.begin(request(1, "wait"))
    assert served.direct.begin(request(1, "wait"))
    await settle()
    assert served.direct.cancel(1)
    await settle()
    assert (served.sent, served.settled) == ([], [1])
    listing = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list", params={})
    assert not served.direct.begin(listing)
    assert not served.direct.cancel(1), "it is of the request that the SDK was given"
    served.gate.set()
    await settle()
    assert [one.id for one in served.sent] == [1]


async def test_a_handshake_while_the_first_call_runs_is_a_second_one(served: Served) -> None:
    hello = JSONRPCRequest(jsonrpc="2.0", id=9, method="initialize", params={})
    first = request(0)
    assert not served.direct.begin(first)

    async def while_it_runs() -> None:
        assert not served.direct.begin(hello)

    await served.through_the_sdk(first, while_it_runs)
    assert not served.direct.begin(request(1))


@pytest.mark.parametrize("meta", [3, [], "x", None])
async def test_metadata_that_is_no_object_is_judged_by_the_sdk(served: Served, meta: object) -> None:
    await served.accept()
    sent = request(1, _meta=meta)
    assert served.direct.begin(sent) is (meta is None)
