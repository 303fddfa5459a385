"""Models of providers, against a scripted server on the loopback: answers, finish reasons, usage and typed failures."""

from collections.abc import Mapping
from typing import Any

import pytest

from interlock.drive.agent.profile import Llm
from interlock.drive.conversation.messages import Message, Origin, ToolCall
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse, Place, ToolSpec, Usage
from interlock.drive.models.vendor import vendor_model
from interlock.testing.chat_server import ChatAnswer, ChatServer, chat_server, scripted

ORIGIN = Origin(source="api", original_format="text", normalized_at="")
CALL = ToolCall(call_id="call_1", name="look", arguments={"path": "a"})
REQUEST = InferenceRequest(
    model="tester",
    system_prompt="You are a test.",
    messages=(
        Message(role="user", content="Look.", origin=ORIGIN),
        Message(role="assistant", content="", origin=ORIGIN, calls=(CALL,)),
        Message(role="tool", content="Seen.", origin=ORIGIN, call_id="call_1", tool_name="look"),
    ),
    tools=(ToolSpec(name="look", description="Look.", input_schema={"type": "object", "properties": {}}),),
    parameters={"max_tokens": 50},
    place=Place(step_id="a", turn=1, turn_of_step=1),
)
pytestmark = pytest.mark.asyncio


async def asked(provider: str, answer: ChatAnswer) -> tuple[InferenceResponse, ChatServer]:
    with chat_server(scripted([answer])) as server:
        address = server.address if provider == "openai" else server.address.removesuffix("/v1")
        async with vendor_model(f"{provider}:tester", Llm(base_url=address)) as model:
            return await model.infer(REQUEST), server


@pytest.mark.inv("DRIVE-7")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_an_answer_of_either_shape_has_its_calls_its_usage_and_its_finish_reason(provider: str) -> None:
    given = ChatAnswer(text="I look.", calls=[("look", {"path": "b"})], input_tokens=7, output_tokens=3)
    response, server = await asked(provider, given)
    assert [(one.name, one.arguments) for one in response.calls] == [("look", {"path": "b"})]
    assert (response.content, response.finish_reason, response.usage) == (
        "I look.",
        "tool_use",
        Usage(input_tokens=7, output_tokens=3),
    )
    assert response.model.startswith("tester")
    (body,) = server.requests
    shown = str(body)
    assert all(words in shown for words in ("You are a test.", "Look.", "Seen.", "call_1"))


@pytest.mark.parametrize(
    ("reason", "finish"), [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop")]
)
async def test_a_finish_reason_is_one_of_the_closed_set(reason: str, finish: str) -> None:
    response, _ = await asked("openai", ChatAnswer(text="Half", finish_reason=reason))
    assert response.finish_reason == finish


async def test_arguments_that_are_no_object_are_kept_as_they_are_for_the_schema_to_refuse() -> None:
    text: Any = "not an object"
    response, _ = await asked("openai", ChatAnswer(calls=[("look", text)]))
    assert response.calls[0].arguments == "not an object"


@pytest.mark.inv("FAULT-2")
@pytest.mark.parametrize(
    ("status", "headers", "code", "recoverable", "after"),
    [
        (429, {"retry-after": "2"}, "RATE_LIMITED", True, 2000),
        (429, {}, "RATE_LIMITED", True, None),
        (503, {}, "LLM_ERROR", True, None),
        (500, {}, "LLM_ERROR", True, None),
        (401, {}, "LLM_ERROR", False, None),
        (404, {}, "LLM_ERROR", False, None),
    ],
)
async def test_each_failure_says_whether_and_when_to_ask_again(
    status: int, headers: Mapping[str, str], code: str, after: int | None, *, recoverable: bool
) -> None:
    with pytest.raises(TurnError) as raised:
        await asked("openai", ChatAnswer(status=status, headers=headers))
    fault: Fault = raised.value.fault
    assert (fault.code, fault.recoverable, fault.retry_after_ms) == (code, recoverable, after)
    assert str(status) in fault.message


async def test_an_address_where_nothing_listens_is_an_error_that_may_pass() -> None:
    async with vendor_model("openai:tester", Llm(base_url="http://127.0.0.1:9/v1")) as model:
        with pytest.raises(TurnError) as raised:
            await model.infer(REQUEST)
    assert (raised.value.fault.code, raised.value.fault.recoverable) == ("LLM_ERROR", True)


@pytest.mark.parametrize("name", ["nobody:x", "x"])
async def test_a_provider_that_does_not_exist_is_refused_before_a_run_begins(name: str) -> None:
    with pytest.raises(TurnError, match="cannot be used"):
        vendor_model(name, Llm())
