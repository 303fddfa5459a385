"""A start that a person grants in a later protocol version: the client may send its call and the reply again."""

from typing import Any

import anyio
import pytest
from mcp import Client, types
from tests.support.flow import step
from tests.support.modes import NEVER_STOPS, serving

from interlock.server.app import build_server
from interlock.testing.harness import Harness

GRANTED: types.InputResponses = {
    "decision": types.ElicitResult(action="accept", content={"decision": "confirm"}),
}


async def never_called(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 — the SDK's
    raise AssertionError("the test answers by itself")


def client_of(harness: Harness) -> Client:
    return Client(build_server(harness.ports, None), mode="auto", elicitation_callback=never_called)


async def started(client: Client, state: str | None, **more: Any) -> Any:
    """Send the start, with the reply if there is a state, and return its result."""
    arguments = {"workflowId": "test.flow", "goal": "Ship", "preferences": NEVER_STOPS, **more}
    replies = GRANTED if state is not None else None
    return await client.session.call_tool(
        "start_workflow", arguments, request_state=state, input_responses=replies, allow_input_required=True
    )


async def asked(client: Client, **more: Any) -> str:
    result = await started(client, None, **more)
    assert isinstance(result, types.InputRequiredResult)
    assert result.request_state is not None
    return result.request_state


@pytest.mark.asyncio
@pytest.mark.inv("GATE-10")
async def test_a_granted_start_that_is_sent_again_begins_one_run_and_has_one_answer() -> None:
    harness = serving(step("a"), step("b"))
    async with client_of(harness) as client:
        state = await asked(client)
        first = await started(client, state)
        assert (await started(client, state)).structured_content == first.structured_content
        harness.advance(first.structured_content["nextCall"]["arguments"]["ackToken"])
        assert (await started(client, state)).structured_content == first.structured_content
    async with client_of(harness) as client:
        assert (await started(client, state)).structured_content == first.structured_content
        other = await started(client, await asked(client))
    assert other.structured_content["run"]["runId"] != first.structured_content["run"]["runId"]
    assert len(harness.store.sessions()) == 2


@pytest.mark.asyncio
@pytest.mark.inv("GATE-10")
async def test_two_equal_granted_starts_at_once_begin_one_run() -> None:
    harness, results = serving(step("a"), step("b")), list[Any]()

    async def start(client: Client, state: str) -> None:
        results.append((await started(client, state)).structured_content)

    async with client_of(harness) as client:
        state = await asked(client)
        async with anyio.create_task_group() as both:
            both.start_soon(start, client, state)
            both.start_soon(start, client, state)
    assert results[0] == results[1]
    assert len(harness.store.sessions()) == 1


@pytest.mark.asyncio
@pytest.mark.inv("GATE-10")
async def test_a_grant_counts_for_no_start_in_another_session() -> None:
    harness = serving(step("a"), step("b"))
    session = harness.session_of(harness.start("test.flow"))
    async with client_of(harness) as client:
        state = await asked(client)
        assert isinstance(await started(client, state, sessionId=session), types.InputRequiredResult)
        joined = await asked(client, sessionId=session)
        first = await started(client, joined, sessionId=session)
        assert (await started(client, joined, sessionId=session)).structured_content == first.structured_content
    loaded = harness.store.load(session)
    assert loaded is not None
    assert (len(loaded.runs), len(harness.store.sessions())) == (2, 1)
