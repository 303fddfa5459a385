"""The server on this process's stdin and stdout, with our own reader and writer around the SDK.

The event loop, which runs the SDK, reads stdin and judges lines. A second thread puts on stdout what cannot be written
at once, so a client that does not read never stalls the loop. Where the loop cannot watch stdin, a third one reads it.
The SDK's own transport is not used: it drops malformed lines without an answer, loses the answer of a call if stdin
ends first, and on SIGINT waits until stdin ends.
"""

import asyncio
import logging
import math
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic_core import to_json

from interlock.kernel.budgets import (
    DRAIN_SECONDS_MAX,
    DRAIN_TOTAL_SECONDS_MAX,
    UNANSWERED_MAX,
    UNTAKEN_MESSAGES_MAX,
)
from interlock.server.transport.descriptors import claim_descriptors
from interlock.server.transport.direct import DirectCalls
from interlock.server.transport.front import Front
from interlock.server.transport.input import open_input
from interlock.server.transport.lines import LineSplitter, Message, Reject, Skip, judge_line
from interlock.server.transport.output import Output

_ENDLESS_METHOD = "subscriptions/listen"
_ENDING = "the server is shutting down"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_log = logging.getLogger(__name__)


async def serve_stdio(
    server: Server[Any],  # the lifespan's type is no matter of the wire
    *,
    on_closing: Callable[[], None] | None = None,
    front: Front | None = None,
) -> int:
    """Serve one client over stdin and stdout until it leaves or a signal says so; return the exit code.

    The end of stdin, SIGTERM and SIGINT each close the intake: no further line is taken, `on_closing` is called once
    on the event loop to end the subscriptions, and what was taken is answered. What the client was asked and has not
    answered ends as an error, for its answer could not come any more. When no answer has come for
    `DRAIN_SECONDS_MAX`, or `DRAIN_TOTAL_SECONDS_MAX` after the end, whatever still waits is cancelled; a call in a
    worker thread is never abandoned, however long it takes, and its result is answered. A second signal ends the
    process at once.

    A `front` that has served the client until now hands over what it read and what it answered.

    From the start fd 0 is the null device and fd 1 is stderr, so stray output cannot reach the client. Neither
    they nor the signals' former handlers are put back: afterwards the process only ends. A late print or a
    buffer flushed at exit still misses the wire, and a late signal ends the process without a traceback.
    Needs asyncio's event loop; off the main thread the signals are left alone.

    Returns:
        0 when the client left or a signal ended the server, 1 when stdout failed in another way.
    """
    source, sink = (front.source, front.sink) if front is not None else claim_descriptors()
    output = Output(sink)
    connection = _Connection(server, source, output, on_closing, front.answered if front is not None else {})
    with _closing_on_signals(connection.close_soon, front):
        output.start(on_broken=connection.end_soon, on_drained=connection.read_on_soon)
        connection.start(front)
        try:
            await server.run(connection.messages, connection, server.create_initialization_options())
        finally:
            connection.end()
            await connection.direct.wait()
            output.finish()
    if output.failure is not None:
        _log.error("stdout cannot be written: %s", output.failure.strerror)
        return 1
    return 0


class _Connection(ObjectSendStream[SessionMessage]):
    """Passes messages between the wire and the SDK, and ends the connection. It is also the SDK's write stream.

    Only the event loop uses its state. Other threads and signal handlers call the `_soon` methods.
    """

    def __init__(
        self,
        server: Server[Any],
        source: int,
        output: Output,
        on_closing: Callable[[], None] | None,
        answered: Mapping[RequestId, bytes],
    ) -> None:
        self.direct = DirectCalls(server, self._send, self._settle_direct)
        self._answered = dict(answered)
        self._replayed = set(answered)
        self._loop = asyncio.get_running_loop()
        self._output = output
        self._on_closing = on_closing
        self._feed, received = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        self.messages = _Messages(received, self._read_on)
        self._unanswered: set[RequestId] = set()
        self._subscriptions: set[RequestId] = set()
        self._asked: set[RequestId] = set()
        self._is_closing = False
        self._patience: asyncio.TimerHandle | None = None
        self._drains_until_s = math.inf
        self._lines = LineSplitter()
        self._input = open_input(source, self._receive)
        self._is_input_waiting = True

    def start(self, front: Front | None) -> None:
        """Take what the front has read, and begin to read."""
        if front is not None:
            self._take(front.lines)
            self._lines.feed(front.rest)
        if front is not None and front.is_ended:
            self._receive(b"")
        else:
            self._read_on()

    def close_soon(self) -> None:
        """Close the intake. Safe from any thread and from a signal handler."""
        self._call_soon(self._close)

    def read_on_soon(self) -> None:
        """Read on, because the client has read its backlog. Safe from any thread."""
        self._call_soon(self._read_on)

    def end_soon(self) -> None:
        """End without a drain, because the client is gone. Safe from any thread."""
        self._call_soon(self.end)

    def end(self) -> None:
        """Close the intake and cancel what still waits. Does nothing the second time."""
        self._close()
        self._cut()

    def _cut(self) -> None:
        """End the SDK's reading, and cancel what still waits, there and here."""
        self._feed.close()
        self.direct.cancel_all()

    async def send(self, item: SessionMessage) -> None:
        """Queue a message of the SDK for writing.

        It never awaits, so the answer of a cancelled task in a worker thread is still written.
        """
        self._send(item.message)

    def _send(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._answered:
            self._compare(message, self._answered.pop(message.id))
            return
        if isinstance(message, JSONRPCRequest) and self._is_closing:
            self._fail(message.id, CONNECTION_CLOSED, _ENDING)
            return
        self._output.put(line_of(message))
        match message:
            case JSONRPCRequest():
                # Calls that wait for the client must not keep its response from being read.
                self._asked.add(message.id)
                self._read_on()
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": given_up}):
                self._asked.discard(given_up)
            case JSONRPCResponse() | JSONRPCError() if message.id is not None:
                self._settle(message.id)
            case _:
                pass

    async def aclose(self) -> None:
        """Do nothing: what is queued is written by `Output.finish`."""

    def _call_soon(self, callback: Callable[[], None]) -> None:
        # If the loop is closed, the server has ended and the call is not needed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _receive(self, chunk: bytes) -> None:
        """Take the lines that a chunk ends; an empty one is the end of the stream. Then read on, now or later."""
        try:
            self._take(self._lines.feed(chunk) if chunk else [self._lines.rest()])
        except BaseException:
            # A server that reads no more must end, whatever stopped it.
            self._close()
            raise
        if not chunk:
            self._close()
            return
        self._is_input_waiting = True
        self._read_on()

    def _take(self, lines: Iterable[bytes]) -> None:
        for outcome in map(judge_line, lines):
            match outcome:
                case Message():
                    self._pass_on(outcome.content)
                case Reject():
                    self._output.put(outcome.answer_line())
                    self._give_up_on(outcome)
                case Skip():
                    pass

    def _compare(self, message: JSONRPCResponse | JSONRPCError, sent: bytes) -> None:
        """Drop an answer that the front has sent (FRONT-2)."""
        if line_of(message) != sent:
            _log.error("the front answered request %r otherwise than the server; run `make generate`", message.id)

    def _pass_on(self, message: JSONRPCMessage) -> None:
        metadata = None
        if isinstance(message, JSONRPCRequest) and message.id in self._replayed:
            # The client has its answer: nothing waits for it, and only the first response of this id is dropped.
            self._replayed.discard(message.id)
            metadata = ServerMessageMetadata(on_request_unanswered=partial(self._forget_answered, message.id))
            self._feed.send_nowait(SessionMessage(message, metadata))
            return
        if isinstance(message, JSONRPCNotification) and self._takes_cancellation(message):
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._asked.discard(coerce_request_id(message.id))
        if isinstance(message, JSONRPCRequest) and message.method == _ENDLESS_METHOD:
            self._subscriptions.add(message.id)
            metadata = ServerMessageMetadata(on_request_unanswered=partial(self._settle_unanswered, message.id))
        elif isinstance(message, JSONRPCRequest):
            self._unanswered.add(message.id)
            if message.id not in self._answered and self.direct.begin(message):
                return
            metadata = ServerMessageMetadata(on_request_unanswered=partial(self._settle_unanswered, message.id))
        self._feed.send_nowait(SessionMessage(message, metadata))

    def _give_up_on(self, reject: Reject) -> None:
        """End our request that an unreadable line should answer. No other response will come."""
        request = coerce_request_id(reject.response_to) if reject.response_to is not None else None
        if request in self._asked:
            self._asked.discard(request)
            self._fail(request, INVALID_REQUEST, reject.message)

    def _fail(self, request: RequestId, code: int, message: str) -> None:
        """End our own request with an error instead of the client's response."""
        error = JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))
        # Once the SDK reads no more, it has ended its requests itself.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._feed.send_nowait(SessionMessage(error))

    def _takes_cancellation(self, message: JSONRPCNotification) -> bool:
        """Apply a cancellation of a request that the SDK does not answer; return whether it is one."""
        if message.method != "notifications/cancelled":
            return False
        request = cancelled_request_id_from_params(message.params)
        return request is not None and (request in self._answered or self.direct.cancel(request))

    async def _forget_answered(self, request: RequestId) -> None:
        self._answered.pop(request, None)

    async def _settle_unanswered(self, request: RequestId) -> None:
        self._settle(request)

    def _settle(self, request: RequestId) -> None:
        self._unanswered.discard(request)
        self._subscriptions.discard(request)
        self.direct.forget(request)
        if self._is_closing:
            self._drain()
        else:
            self._read_on()

    def _settle_direct(self, request: RequestId, result: Mapping[str, Any] | None) -> None:
        """Write the result of a call that the SDK did not see, unless it was cancelled. The request is settled."""
        if result is not None:
            self._output.put(result_line(request, result))
        self._settle(request)

    def _drain(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if self._unanswered:
            # Each answer extends the patience, but not the total: on a slow disk, a long queue is not worked off.
            until_s = min(self._loop.time() + DRAIN_SECONDS_MAX, self._drains_until_s)
            self._patience = self._loop.call_at(until_s, self._cut)
        else:
            self._cut()

    def _read_on(self) -> None:
        """Let the next chunk be read, unless too much waits for an answer or for the client to read it."""
        if not self._is_input_waiting or self._is_closing or self._output.is_congested():
            return
        if len(self._unanswered) - len(self._asked) < UNANSWERED_MAX and self.messages.waiting < UNTAKEN_MESSAGES_MAX:
            self._is_input_waiting = False
            self._input.next()

    def _close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._drains_until_s = self._loop.time() + DRAIN_TOTAL_SECONDS_MAX
        # A line that comes now must stay in the pipe.
        self._input.stop()
        for request in self._asked:
            self._fail(request, CONNECTION_CLOSED, _ENDING)
        self._asked.clear()
        if self._on_closing is not None:
            # It ends the subscriptions, which are answered then.
            self._on_closing()
            self._unanswered |= self._subscriptions
        self._drain()


class _Messages(ObjectReceiveStream[SessionMessage | Exception]):
    """The SDK's read stream. `on_taken` is called when the SDK takes a message: there may be room for more."""

    def __init__(
        self, received: MemoryObjectReceiveStream[SessionMessage | Exception], on_taken: Callable[[], None]
    ) -> None:
        self._received = received
        self._on_taken = on_taken

    @property
    def waiting(self) -> int:
        """The number of messages that the SDK has not taken."""
        return self._received.statistics().current_buffer_used

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        message = await self._received.receive()
        self._on_taken()
        return message

    async def aclose(self) -> None:
        """Take no more messages."""
        await self._received.aclose()


def line_of(message: JSONRPCMessage) -> bytes:
    """Render a message as one line. An answer that is no Unicode text becomes an error."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        if not isinstance(message, JSONRPCResponse):
            raise
        return _unwritable_line(message.id)
    return text.encode("utf-8") + b"\n"


def result_line(request: RequestId, result: Mapping[str, Any]) -> bytes:
    """Render the response of a request as `line_of` does."""
    try:
        return to_json({"jsonrpc": "2.0", "id": request, "result": result}) + b"\n"
    except ValueError:
        return _unwritable_line(request)


def _unwritable_line(request: RequestId) -> bytes:
    _log.exception("an answer cannot be written as JSON")
    refusal = "The answer contains text that is not Unicode, so it cannot be sent. The server's log has the details."
    return Reject(code=INTERNAL_ERROR, message=refusal, id=request).answer_line()


@contextmanager
def _closing_on_signals(close: Callable[[], None], front: Front | None) -> Generator[None, None, None]:
    is_second = False

    def on_signal(number: int, _frame: FrameType | None) -> None:
        nonlocal is_second
        if is_second or (front is not None and front.is_stopped):
            os._exit(128 + number)
        is_second = True
        close()

    # Only the main thread may set handlers; a server that was started elsewhere is stopped by its owner.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        # A signal that comes just before the loop falls asleep would be heard when it next wakes, perhaps never.
        # Registered with the loop, it wakes it. Windows has no such call; there the loop always wakes.
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, _wake)
        # The loop would run its handler in its turn; ours runs even while it is busy or being closed.
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in _SIGNALS:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)


def _wake() -> None:
    """Do nothing. Running it wakes the loop."""
