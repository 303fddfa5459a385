"""What a turn runtime must do, by the specification's own list: one test for each, with the real server."""

from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.drive import calls, driving, each, profile, report, tool

from interlock.drive.models.protocol import InferenceResponse
from interlock.drive.telemetry.emission import Telemetry
from interlock.drive.telemetry.spans import SpanEmitter
from interlock.testing.harness import Harness, linear_workflow

ABC = linear_workflow("test.abc", "a", "b", "c")
pytestmark = pytest.mark.asyncio


@pytest.mark.inv("DRIVE-2")
async def test_must_1_each_turn_has_an_interaction_id_of_its_own() -> None:
    harness, ids = Harness.in_memory(ABC), list[str]()
    for _ in range(3):
        async with driving(harness, report) as drive:
            drive.effects.ids = type(drive.effects.ids)(1 + 100 * len(ids))
            await drive.start()
            ids += [one["ids"]["interactionId"] for one in drive.caller.records()]
    assert len(set(ids)) == len(ids) == 9


@pytest.mark.inv("DRIVE-8")
@pytest.mark.parametrize("limit", [1, 2])
async def test_must_2_no_more_turns_are_made_than_the_constraint_allows(limit: int) -> None:
    async with driving(Harness.in_memory(ABC), report, profile(constraints={"max_turns": limit})) as drive:
        result = await drive.start()
        assert (len(drive.model.requests), result.exit_code) == (limit, 5)


@pytest.mark.inv("DRIVE-8")
async def test_must_3_a_request_that_exceeds_its_time_is_cancelled() -> None:
    cancelled: list[str] = []

    async def hang() -> InferenceResponse:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append("yes")
        raise AssertionError

    stated = profile(constraints={"timeout_seconds": 0.01}, reliability={"retry": {"max_retries": 0}})
    async with driving(Harness.in_memory(ABC), lambda _: hang(), stated) as drive:
        result = await drive.start()
    assert cancelled == ["yes"]
    assert result.fault is not None
    assert result.fault.code == "LLM_TIMEOUT"


@pytest.mark.inv("TEL-1")
async def test_must_4_each_turn_is_a_span_with_the_attributes_of_the_conventions() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    emitter = SpanEmitter(provider.get_tracer("test"), profile(identity={"id": "tester", "version": "1"}))
    async with driving(Harness.in_memory(ABC), report, telemetry=Telemetry([emitter])) as drive:
        await drive.start()
    turns = [span for span in exporter.get_finished_spans() if span.name == "ossa.agent.turn"]
    assert len(turns) == 3
    for span in turns:
        assert {"ossa.agent.id", "ossa.session.id", "ossa.interaction.id", "ossa.turn.number"} <= set(
            span.attributes or {}
        )


@pytest.mark.inv("TURN-2")
async def test_must_5_state_is_rolled_back_on_an_error_that_is_not_handled() -> None:
    async def keep(_arguments: Any, context: Any) -> object:
        await context.state.set("key", 1)
        raise SystemError

    handler = {"error_codes": ["TOOL_ERROR"], "strategy": "abort"}
    stated = profile(reliability={"error_handlers": [handler]})
    functions = {"keep": tool(keep)}
    async with driving(Harness.in_memory(ABC), each(calls(("keep", {}))), stated, functions) as drive:
        await drive.start()
        assert drive.equipment.store.values() == {}
        assert drive.caller.records() == []


@pytest.mark.inv("TOOL-3")
async def test_must_6_the_input_of_a_tool_is_validated_before_the_call() -> None:
    called: list[object] = []

    async def invoke(arguments: Any, _context: Any) -> object:
        called.append(arguments)
        return {}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wrong = each(calls(("one", {"n": "1"}), ("one", {}), ("one", {"n": 1})))
    async with driving(Harness.in_memory(ABC), wrong, functions={"one": tool(invoke, schema=schema)}) as drive:
        await drive.start()
    assert called == [{"n": 1}]
