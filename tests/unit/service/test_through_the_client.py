"""The SDK's client on the real MCP server, in memory: both eras agree, and the harness says what the wire does."""

import base64
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client, MCPError, types
from tests.support.contexts import call_context

from interlock.kernel.budgets import CLIENT_NAME_BYTES_MAX, CLIENT_VERSION_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId
from interlock.server.calls import Calls
from interlock.store.local.locks import OsLocks
from interlock.store.local.store import LocalStore
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.writer import SessionLock
from interlock.testing.harness import (
    ERAS,
    Era,
    FixedKeyRing,
    Harness,
    ToolResult,
    call_through,
    filled_in,
    linear_workflow,
)
from interlock.views.session import Session

FAULTY = linear_workflow("test.faulty", {"id": "A", "title": "A", "prompt": "p"})


def fresh() -> Harness:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b", "c", guidance=["Be kind."]))
    harness.workflows.put(FAULTY)
    return harness


@asynccontextmanager
async def connected(era: Era) -> AsyncGenerator[tuple[Harness, Client]]:
    harness = fresh()
    async with harness.client(era) as client:
        yield harness, client


SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("list_workflows", {}),
    ("inspect_workflow", {"workflowId": "test.abc", "detail": "plan"}),
    ("inspect_workflow", {"workflowId": "test.faulty"}),
    ("start_workflow", {"workflowId": "test.abd"}),
    ("start_workflow", {"workflowId": "test.abc", "goal": "G", "context": {"x": 1}}),
    ("continue_workflow", {"outputs": {}}),
    ("continue_workflow", {"ackToken": "hello"}),
]


def without_wire_additions(called: ToolResult) -> ToolResult:
    return ToolResult(
        structure=json.loads(json.dumps(dict(called.structure))), text=called.text, is_error=called.is_error
    )


@pytest.mark.asyncio
@pytest.mark.inv("SRV-4")
@pytest.mark.parametrize("era", ERAS)
async def test_each_era_gives_the_answers_that_the_harness_gives(era: Era) -> None:
    harness = fresh()
    async with connected(era) as (_, client):
        last: ToolResult | None = None
        for tool, arguments in SCRIPT:
            expected = harness.call(tool, arguments)
            found = await call_through(client, tool, arguments)
            assert without_wire_additions(found) == expected
            last = found if tool == "start_workflow" and not found.is_error else last
        assert last is not None
        for notes in ("", "Did a.", "Did b.", "Did c."):
            expected = harness.call("continue_workflow", filled_in(last, notes))
            last = await call_through(client, "continue_workflow", filled_in(last, notes))
            assert without_wire_additions(last) == expected
        assert last["isComplete"]


@pytest.mark.asyncio
@pytest.mark.inv("SRV-5")
@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_tool_is_invalid_params(era: Era) -> None:
    async with connected(era) as (_, client):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no_such_tool", {})
        assert caught.value.error.code == types.INVALID_PARAMS
        with pytest.raises(MCPError) as caught:
            await client.call_tool("\u202e\n" + "x" * 10_000, {})
        assert caught.value.error.message.isprintable()
        assert len(caught.value.error.message) < 200
        assert not (await call_through(client, "list_workflows")).is_error


@pytest.mark.asyncio
@pytest.mark.inv("ANS-9")
@pytest.mark.parametrize(
    "payload", [b"[" * 2_900, b"[]", b"1", b'"x"', b"{}", b'{"sessionId":1}', b"\xff", b""], ids=repr
)
async def test_a_payload_that_only_looks_like_a_tokens_is_a_bad_token_and_no_fault_of_ours(payload: bytes) -> None:
    """The session is read out of it before it is verified, to choose the queue."""
    text = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    async with connected("auto") as (_, client):
        refused = await call_through(client, "continue_workflow", {"ackToken": f"ack.v1.{text}.AAAA"})
        assert refused.code in (ErrorCode.TOKEN_BAD_SIGNATURE, ErrorCode.TOKEN_INVALID_FORMAT)


class FaultyStore(MemoryStore):
    """A store with a bug: it cannot read what it wrote."""

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> Session | None:  # noqa: ARG002
        raise RuntimeError(f"secret /srv/path of {session} {tag}")


@pytest.mark.produces("error:INTERNAL_ERROR")
@pytest.mark.asyncio
@pytest.mark.inv("ANS-9", "ANS-10")
async def test_a_fault_of_our_own_is_reported_without_its_words_and_the_server_goes_on() -> None:
    harness = Harness.over(FaultyStore(), linear_workflow("test.abc", "a"), keys=FixedKeyRing())
    first = harness.start("test.abc")
    async with harness.client() as client:
        refused = await call_through(client, "continue_workflow", {"stateToken": first.state})
        assert refused.code is ErrorCode.INTERNAL_ERROR
        assert "secret" not in refused.text + json.dumps(dict(refused.structure))
        assert refused["retry"]["kind"] == "not_retryable"
        assert not (await call_through(client, "list_workflows")).is_error


@pytest.mark.asyncio
@pytest.mark.inv("EVT-1", "SRV-13")
@pytest.mark.parametrize("era", ERAS)
async def test_the_record_says_which_client_called(era: Era) -> None:
    async with connected(era) as (harness, client):
        first = await call_through(client, "start_workflow", {"workflowId": "test.abc"})
        for event in harness.events(harness.session_of(first)):
            assert event.actor is not None
            assert (event.actor.type, event.actor.identifier) == ("agent", "mcp")
            assert set(event.actor.metadata or {}) == {"version"}


@pytest.mark.asyncio
@pytest.mark.inv("EVT-1")
async def test_a_client_that_names_itself_at_length_is_recorded_in_one_short_line() -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a"))
    client = SimpleNamespace(name="one\nline " * 100, version="7" * 1_000)
    params = types.CallToolRequestParams(name="start_workflow", arguments={"workflowId": "test.abc"})
    assert isinstance(await Calls(harness.ports, None).call(call_context(client), params), types.CallToolResult)
    (recorded,) = harness.store.sessions()
    for event in harness.events(recorded):
        assert event.actor is not None
        assert event.actor.identifier.startswith("one line one line")
        assert len(event.actor.identifier.encode()) <= CLIENT_NAME_BYTES_MAX
        assert len((event.actor.metadata or {})["version"].encode()) <= CLIENT_VERSION_BYTES_MAX


@pytest.mark.asyncio
@pytest.mark.inv("ADV-6", "LOCK-5")
async def test_many_identical_acks_at_once_are_one_advance() -> None:
    async with connected("auto") as (harness, client):
        first = await call_through(client, "start_workflow", {"workflowId": "test.abc"})
        answers: list[ToolResult] = []

        async def ack() -> None:
            answers.append(await call_through(client, "continue_workflow", filled_in(first, "Done.")))

        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(ack)
        assert all(answer == answers[0] for answer in answers)
        kinds = [event.kind for event in harness.events(harness.session_of(first))]
        assert kinds.count("advance_recorded") == 1


@pytest.mark.asyncio
@pytest.mark.inv("SRV-4")
async def test_both_eras_list_the_same_tools() -> None:
    listed: list[Any] = []
    for era in ERAS:
        async with connected(era) as (_, client):
            tools = (await client.list_tools()).tools
            listed.append([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
    assert listed[0] == listed[1]


class GatedStore(MemoryStore):
    """A store at whose lock every writer stops until the test lets it on."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived, self.gate = Event(), Event()
        self.gate.set()

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[SessionLock]:
        self.arrived.set()
        assert self.gate.wait(30)
        with super().hold(session, since_s=since_s) as lock:
            yield lock


@pytest.mark.asyncio
@pytest.mark.inv("SRV-7", "LOCK-5")
async def test_a_cancelled_call_finishes_in_its_thread_and_never_begins_in_the_queue() -> None:
    store = GatedStore()
    harness = Harness.over(store, linear_workflow("test.abc", "a", "b"), keys=FixedKeyRing())
    first = harness.start("test.abc")
    session = harness.session_of(first)
    calls = Calls(harness.ports, None)

    async def call(tool: str, scope: anyio.CancelScope, **arguments: object) -> types.CallToolResult | None:
        with scope:
            result = await calls.call(call_context(), types.CallToolRequestParams(name=tool, arguments=arguments))
            assert isinstance(result, types.CallToolResult)
            return result
        return None

    store.arrived.clear()
    store.gate.clear()
    begun, queued = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        ack = partial(call, ackToken=first.ack, output={"notesMarkdown": "Done."})
        tasks.start_soon(ack, "continue_workflow", begun)
        await to_thread.run_sync(store.arrived.wait, 30)
        tasks.start_soon(partial(call, workflowId="test.abc", sessionId=session), "start_workflow", queued)
        looked = await call("continue_workflow", anyio.CancelScope(), stateToken=first.state)
        assert looked is not None
        assert not looked.is_error
        queued.cancel()
        begun.cancel()
        store.gate.set()
    kinds = [event.kind for event in harness.events(session)]
    assert (kinds.count("advance_recorded"), kinds.count("run_started")) == (1, 1)
    assert harness.advance(first)["pending"]["stepId"] == "b"
    assert not harness.start("test.abc", sessionId=session).is_error


@pytest.mark.asyncio
@pytest.mark.inv("LOCK-6", "LOCK-3", "LOCK-9")
async def test_ten_calls_on_a_session_that_another_process_holds_are_all_answered_when_the_first_is(
    tmp_path: Path,
) -> None:
    """One after the other, each with a wait of its own, they would take ten waits."""
    wait_ms, calls = 600, 10
    store = LocalStore(tmp_path, locks=OsLocks(tmp_path, wait_ms_max=wait_ms))
    harness = Harness.over(store, linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    answers: list[ToolResult] = []
    async with harness.client() as client:

        async def ack() -> None:
            answers.append(await call_through(client, "continue_workflow", filled_in(first, "Done.")))

        with OsLocks(tmp_path).hold(harness.session_of(first)):
            began = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                for _ in range(calls):
                    tasks.start_soon(ack)
            took_ms = (anyio.current_time() - began) * 1_000
        assert [answer.code for answer in answers] == [ErrorCode.TOKEN_SESSION_LOCKED] * calls
        assert all(f"Run `{first['run']['label']}`: " in answer["message"] for answer in answers)
        assert all(answer["details"]["run"] == {"label": first["run"]["label"]} for answer in answers)
        assert took_ms < wait_ms * calls / 2
        assert not (await call_through(client, "continue_workflow", filled_in(first, "Done."))).is_error
