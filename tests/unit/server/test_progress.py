"""Progress of long calls, through the SDK's client in both protocol eras. Stores wait for the word, never a clock."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import Any

import anyio
import pytest
from mcp import Client, types
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from tests.support.contexts import call_context

from interlock.kernel.ids import SessionId
from interlock.server.app import build_server
from interlock.server.calls import Calls
from interlock.server.progress import report_progress_while
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.reader import LogVersion
from interlock.store.ports.writer import SessionLock
from interlock.testing.harness import ERAS, Era, FixedKeyRing, Harness, ToolResult, linear_workflow

WORKFLOW = linear_workflow("test.abc", "a", "b")
PATIENCE_S = 30


class SlowStore(MemoryStore):
    """A store that is slow where a test says: it waits there until the client has heard of it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = Event()
        self.slow_at: str | None = None
        self.read = 0

    def cached_summary_of(self, session: SessionId, version: LogVersion) -> bytes | None:
        self.read += 1
        if self.read == 3:
            self._wait("summary")
        return super().cached_summary_of(session, version)

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[SessionLock]:
        self._wait("lock")
        with super().hold(session, since_s=since_s) as lock:
            yield lock

    def _wait(self, where: str) -> None:
        if self.slow_at == where:
            assert self.heard.wait(PATIENCE_S), "no progress was reported"


class Listener:
    """Takes the progress of one call, and lets the store go on after so many words."""

    def __init__(self, store: SlowStore, words: int = 1) -> None:
        self.reported: list[tuple[float, str]] = []
        self._store, self._words = store, words

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        self.reported.append((progress, message or ""))
        if len(self.reported) >= self._words:
            self._store.heard.set()


def slow(*, sessions: int) -> tuple[SlowStore, Harness, list[ToolResult]]:
    store = SlowStore()
    harness = Harness.over(store, WORKFLOW, keys=FixedKeyRing())
    return store, harness, [harness.start("test.abc") for _ in range(sessions)]


async def called(client: Client, tool: str, arguments: Mapping[str, Any], listener: Listener) -> types.CallToolResult:
    result = await client.call_tool(tool, dict(arguments), progress_callback=listener)
    assert isinstance(result, types.CallToolResult)
    return result


@pytest.mark.inv("SRV-9")
@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_reading_many_sessions_tells_how_many_were_read(era: Era) -> None:
    store, harness, _ = slow(sessions=5)
    listener = Listener(store, words=2)
    store.slow_at = "summary"
    async with harness.client(era) as client:
        assert not (await called(client, "resume_session", {}, listener)).is_error
    assert [words.partition(" (")[0] for _, words in listener.reported[:2]] == ["reading sessions: 3 of 5"] * 2
    assert listener.reported[0][0] < listener.reported[1][0]


@pytest.mark.inv("SRV-9")
@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_waiting_for_a_lock_tells_that_the_call_still_works(era: Era) -> None:
    store, harness, (first,) = slow(sessions=1)
    listener = Listener(store)
    store.slow_at = "lock"
    arguments = {"ackToken": first.ack, "output": {"notesMarkdown": "Done."}}
    async with harness.client(era) as client:
        assert not (await called(client, "continue_workflow", arguments, listener)).is_error
    assert [words.partition(" (")[0] for _, words in listener.reported] == ["still working"] * len(listener.reported)


@pytest.mark.asyncio
async def test_a_look_that_nobody_waits_for_any_more_reads_no_further() -> None:
    """In the era with a handshake: in memory, the later one's client itself waits for a call that it gave up."""
    store, harness, _ = slow(sessions=50)
    store.slow_at = "summary"
    async with harness.client("legacy") as client:
        with anyio.move_on_after(PATIENCE_S) as scope:

            async def given_up(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
                scope.cancel()

            await client.call_tool("resume_session", {}, progress_callback=given_up)
        # Answered behind the word that the other call is given up; the server ends when its thread does.
        assert not (await client.call_tool("list_workflows", {})).is_error
        store.heard.set()
    assert store.read < 50


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_a_quick_call_tells_nothing(era: Era) -> None:
    store, harness, _ = slow(sessions=3)
    listener = Listener(store)
    async with harness.client(era) as client:
        for _ in range(3):
            assert not (await called(client, "resume_session", {}, listener)).is_error
    assert listener.reported == []


ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

NO_TOKEN_AND_ONE: tuple[dict[str, Any], ...] = ({}, {"progressToken": "mine"})


@pytest.mark.inv("SRV-9")
@pytest.mark.asyncio
async def test_progress_goes_to_the_token_that_was_sent_before_the_result_and_nowhere_without_one() -> None:
    """Beneath the SDK's client, which always sends a token: two calls last equally long, the second has one."""
    store, harness, started = slow(sessions=2)
    store.slow_at = "lock"
    into_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception](2)
    answers, from_server = anyio.create_memory_object_stream[SessionMessage](8)
    server = build_server(harness.ports, None)
    frames: list[JSONRPCMessage] = []
    async with into_server, requests, answers, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, requests, answers, server.create_initialization_options())
        for identity, (first, more) in enumerate(zip(started, NO_TOKEN_AND_ONE, strict=True)):
            arguments = {"ackToken": first.ack, "output": {"notesMarkdown": "Done."}}
            params: dict[str, Any] = {"name": "continue_workflow", "arguments": arguments, "_meta": ENVELOPE | more}
            call = JSONRPCRequest(jsonrpc="2.0", id=identity, method="tools/call", params=params)
            await into_server.send(SessionMessage(call))
        while sum(isinstance(frame, JSONRPCResponse) for frame in frames) < 2:
            frames.append((await from_server.receive()).message)
            if sum(isinstance(frame, JSONRPCNotification) for frame in frames) == 2:
                store.heard.set()
        tasks.cancel_scope.cancel()
    outcome = [frame for frame in frames if isinstance(frame, JSONRPCNotification)]
    assert {frame.method for frame in outcome} == {"notifications/progress"}
    assert {frame.params["progressToken"] for frame in outcome if frame.params} == {"mine"}
    at = next(at for at, frame in enumerate(frames) if isinstance(frame, JSONRPCResponse) and frame.id == 1)
    assert not any(isinstance(frame, JSONRPCNotification) for frame in frames[at:])


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7")
async def test_reading_many_sessions_stops_when_the_call_is_cancelled() -> None:
    store, harness, _ = slow(sessions=20)
    store.slow_at = "summary"
    calls, scope, seen = Calls(harness.ports, None), anyio.CancelScope(), list[bool]()

    async def resume() -> None:
        with scope:
            await calls.call(call_context(), types.CallToolRequestParams(name="resume_session", arguments={}))
        seen.append(scope.cancelled_caught)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resume)
        with anyio.fail_after(PATIENCE_S):
            while store.read < 3:  # noqa: ASYNC110 — another thread reads
                await anyio.sleep(0.001)
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        store.heard.set()
    assert seen == [True]
    assert store.read < 20


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7")
async def test_a_server_goes_on_after_a_search_that_its_client_cancelled() -> None:
    store, harness, _ = slow(sessions=20)
    store.slow_at = "summary"
    async with harness.client("legacy") as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "resume_session")
            with anyio.fail_after(PATIENCE_S):
                while store.read < 3:  # noqa: ASYNC110 — another thread reads
                    await anyio.sleep(0.001)
            tasks.cancel_scope.cancel()
        # In a process, a client of the newer era sends nothing: it cancels the handler.
        assert not (await client.call_tool("list_workflows", {})).is_error
        store.heard.set()
        assert not (await client.call_tool("resume_session", {})).is_error
    assert store.read < 20 + 20


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7")
async def test_a_call_that_is_cancelled_while_it_reports_keeps_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.server.progress.PROGRESS_SECONDS", 0.0)
    reported, results = anyio.Event(), list[str]()

    async def report(_progress: float, *, message: str) -> None:
        assert message
        reported.set()
        await anyio.sleep_forever()

    context = call_context()
    monkeypatch.setattr(context.session, "report_progress", report, raising=False)
    with anyio.CancelScope() as scope, anyio.fail_after(PATIENCE_S):
        async with report_progress_while(context):
            await reported.wait()
            scope.cancel()
        results.append("kept")
    assert results == ["kept"]
