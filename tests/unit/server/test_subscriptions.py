"""Who subscribed to a session's record hears that it changed, in both protocol eras."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import Client, MCPError, types
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from interlock.kernel.budgets import PATH_BYTES_MAX, SUBSCRIPTIONS_MAX
from interlock.server.app import build_server
from interlock.testing.harness import ERAS, Era, Harness, ToolResult, call_through, filled_in, linear_workflow

WORKFLOW = linear_workflow("test.abc", "a", "b", "c")


NEVER_SERVED = ["interlock://x", "", "http://x", f"interlock://workflows/{'x' * PATH_BYTES_MAX}/plan"]


def plan(name: object) -> str:
    return f"interlock://workflows/{name}/plan"


def record(harness: Harness, answer: ToolResult) -> str:
    return f"interlock://sessions/{harness.session_of(answer)}"


@asynccontextmanager
async def connected(harness: Harness, era: Era) -> AsyncGenerator[tuple[Client, "asyncio.Queue[object]"]]:
    heard: asyncio.Queue[object] = asyncio.Queue()

    async def take(message: object) -> None:
        heard.put_nowait(message)

    async with Client(build_server(harness.ports, None), mode=era, message_handler=take) as client:
        yield client, heard


@pytest.mark.inv("SRV-10")
@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_subscriber_of_the_earlier_era_hears_of_its_session_and_of_no_other() -> None:
    harness = Harness.in_memory(WORKFLOW)
    mine, other = harness.start("test.abc"), harness.start("test.abc")
    async with connected(harness, "legacy") as (client, heard):
        await client.subscribe_resource(record(harness, mine))  # pyright: ignore[reportDeprecated] — its way
        await call_through(client, "continue_workflow", filled_in(other, "Done."))
        second = await call_through(client, "continue_workflow", filled_in(mine, "Done."))
        result = await asyncio.wait_for(heard.get(), 30)
        assert isinstance(result, types.ResourceUpdatedNotification)
        assert result.params.uri == record(harness, mine)
        await call_through(client, "continue_workflow", {"stateToken": second.state})
        await call_through(client, "continue_workflow", {"ackToken": "ack_none"})
        await client.unsubscribe_resource(record(harness, mine))  # pyright: ignore[reportDeprecated] — its way
        await call_through(client, "continue_workflow", filled_in(second, "Done."))
        assert heard.empty()


@pytest.mark.inv("SRV-10")
@pytest.mark.asyncio
async def test_a_listener_of_the_later_era_hears_of_its_session_and_of_new_ones() -> None:
    harness = Harness.in_memory(WORKFLOW)
    mine, other = harness.start("test.abc"), harness.start("test.abc")
    async with connected(harness, "auto") as (client, _):
        wanted = [record(harness, mine)]
        async with client.listen(resource_subscriptions=wanted, resources_list_changed=True) as events:
            await call_through(client, "continue_workflow", filled_in(other, "Done."))
            await call_through(client, "continue_workflow", filled_in(mine, "Done."))
            await call_through(client, "start_workflow", {"workflowId": "test.abc"})
            with anyio.fail_after(30):
                result = [await anext(events), await anext(events)]
    assert result == [ResourceUpdated(uri=record(harness, mine)), ResourcesListChanged()]


def parts(harness: Harness, answer: ToolResult) -> list[str]:
    run = f"{record(harness, answer)}/runs/{answer['run']['label']}"
    return [f"{run}/context", f"{run}/lifecycle", f"{run}/steps/a"]


@pytest.mark.inv("SRV-10")
@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_subscriber_of_the_earlier_era_hears_of_parts_of_its_session() -> None:
    harness = Harness.in_memory(WORKFLOW)
    mine, other = harness.start("test.abc"), harness.start("test.abc")
    async with connected(harness, "legacy") as (client, heard):
        for uri in parts(harness, mine):
            await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated] — its way
        await call_through(client, "continue_workflow", filled_in(other, "Done."))
        await call_through(client, "continue_workflow", filled_in(mine, "Done."))
        found: list[object] = []
        for _ in parts(harness, mine):
            result = await asyncio.wait_for(heard.get(), 30)
            assert isinstance(result, types.ResourceUpdatedNotification)
            found.append(result.params.uri)
        assert (found, heard.empty()) == (parts(harness, mine), True)


@pytest.mark.inv("SRV-10")
@pytest.mark.asyncio
async def test_a_listener_of_the_later_era_hears_of_parts_of_its_session_until_it_leaves() -> None:
    harness = Harness.in_memory(WORKFLOW)
    mine, other = harness.start("test.abc"), harness.start("test.abc")
    wanted = parts(harness, mine)
    async with connected(harness, "auto") as (client, _):
        async with client.listen(resource_subscriptions=wanted[:1]) as left:
            await call_through(client, "continue_workflow", {"ackToken": "ack_none"})
        async with client.listen(resource_subscriptions=wanted) as events:
            await call_through(client, "continue_workflow", filled_in(other, "Done."))
            await call_through(client, "continue_workflow", filled_in(mine, "Done."))
            with anyio.fail_after(30):
                result = [await anext(events) for _ in wanted]
        assert [one async for one in left] == []
    assert result == [ResourceUpdated(uri=uri) for uri in wanted]


@pytest.mark.inv("SRV-10")
@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_subscription_that_is_not_served_is_refused() -> None:
    async with connected(Harness.in_memory(WORKFLOW), "legacy") as (client, _):
        for number in range(SUBSCRIPTIONS_MAX):
            await client.subscribe_resource(plan(number))  # pyright: ignore[reportDeprecated] — its way
        await client.subscribe_resource(plan(0))  # pyright: ignore[reportDeprecated] — its way
        for uri, words in ((plan("x"), "the limit"), *((uri, "There is no resource") for uri in NEVER_SERVED)):
            with pytest.raises(MCPError, match=words):
                await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated] — its way
        await client.unsubscribe_resource(plan(0))  # pyright: ignore[reportDeprecated] — its way
        await client.subscribe_resource(plan("x"))  # pyright: ignore[reportDeprecated] — its way


@pytest.mark.inv("SRV-10")
@pytest.mark.asyncio
async def test_only_addresses_that_can_be_served_are_acknowledged_to_a_listener() -> None:
    harness = Harness.in_memory(WORKFLOW)
    mine = harness.start("test.abc")
    async with connected(harness, "auto") as (client, _):
        wanted = [*NEVER_SERVED, f"{record(harness, mine)}/nothing", record(harness, mine)]
        async with client.listen(resource_subscriptions=wanted) as events:
            assert events.honored.resource_subscriptions == [record(harness, mine)]
            await call_through(client, "continue_workflow", filled_in(mine, "Done."))
            with anyio.fail_after(30):
                assert await anext(events) == ResourceUpdated(uri=record(harness, mine))
        async with client.listen(resource_subscriptions=NEVER_SERVED, resources_list_changed=True) as events:
            assert events.honored.resource_subscriptions is None


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_what_never_changes_may_be_subscribed_to(era: Era) -> None:
    async with connected(Harness.in_memory(WORKFLOW), era) as (client, _):
        capabilities = client.server_capabilities
        assert capabilities.resources is not None
        assert capabilities.resources.subscribe
        # The earlier era has no way to ask for news of lists, so none is promised.
        assert capabilities.resources.list_changed == (era == "auto")
