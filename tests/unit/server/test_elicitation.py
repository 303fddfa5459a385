"""The SDK's own client is asked, in both eras and in memory."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, types
from mcp.client.session import ClientSession, ElicitationFnT
from tests.e2e.asking_server import APPROVAL, CHOICE, Gate

from interlock.engine.gates import Question, QuestionItem
from interlock.kernel.budgets import CLOCK_SKEW_MS_MAX, QUESTION_VALID_MS
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import ERAS, Era, Harness

NOW_MS = 1_700_000_000_000
CONFIRMED: dict[str, Any] = {"decision": "confirm"}
PEN = types.Implementation(name="pen", version="1")
both_eras = pytest.mark.parametrize("era", ERAS)


class SetClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def unix_ms(self) -> int:
        return self.now_ms

    def entropy(self) -> bytes:
        return bytes(10)


class Person:
    """Answers each form with the next of the given results, and keeps what was shown."""

    def __init__(self, *results: types.ElicitResult | types.ErrorData) -> None:
        self._results = list(results)
        self.shown: list[types.ElicitRequestFormParams] = []

    async def answer(
        self,
        context: Any,  # noqa: ARG002 — the SDK's callback has it
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.shown.append(params)
        return self._results.pop(0)


def accepting(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


class Server:
    """A server to ask through, its clock, and the keys that outlive it."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.store = MemoryStore()
        self.gate = Gate(self.store, self.clock)

    @asynccontextmanager
    async def client(self, era: Era, callback: ElicitationFnT | None) -> AsyncGenerator[Client]:
        async with Client(
            self.gate.server(), mode=era, elicitation_callback=callback, client_info=PEN, raise_exceptions=False
        ) as client:
            yield client


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def reply_of(result: types.CallToolResult) -> dict[str, Any]:
    return json.loads(text_of(result))


async def replied(era: Era, person: Person, question: Question = APPROVAL) -> dict[str, Any]:
    server = Server()
    server.gate.question = question
    async with server.client(era, person.answer) as client:
        return reply_of(await client.call_tool("ask"))


@pytest.mark.asyncio
@both_eras
@pytest.mark.parametrize(
    ("result", "action", "comment"),
    [
        (accepting(decision="confirm", comment="go"), "accept", "go"),
        (accepting(decision="decline", comment="not yet"), "decline", "not yet"),
        (types.ElicitResult(action="decline"), "decline", None),
        (types.ElicitResult(action="cancel"), "cancel", None),
    ],
)
async def test_a_person_confirms_declines_or_cancels(
    era: Era, result: types.ElicitResult, action: str, comment: str | None
) -> None:
    person = Person(result)
    reply = await replied(era, person)
    assert reply == {
        "action": action,
        "client": "pen",
        "answers": {},
        "comment": comment,
        "fault": None,
        "assurance": "observed",
    }
    (shown,) = person.shown
    assert shown.message.startswith("Release notes, step Publish\n\nPublish the release?")
    assert "default" not in shown.requested_schema["properties"]["decision"]


@pytest.mark.asyncio
@both_eras
async def test_a_choice_comes_back_with_its_answer(era: Era) -> None:
    reply = await replied(era, Person(accepting(decision="confirm", answer_1="eu-1")), CHOICE)
    assert (reply["action"], reply["answers"]) == ("accept", {"1": "eu-1"})


@pytest.mark.asyncio
@both_eras
@pytest.mark.parametrize("content", [{}, {"decision": "maybe"}, {"decision": 1, "answer_1": ["a"]}, CONFIRMED])
async def test_a_form_filled_in_with_garbage_counts_as_cancelled(era: Era, content: dict[str, Any]) -> None:
    reply = await replied(era, Person(accepting(**content)), CHOICE)
    assert (reply["action"], reply["answers"]) == ("cancel", {})
    assert reply["fault"]


@pytest.mark.asyncio
@both_eras
async def test_a_client_without_the_capability_is_not_asked(era: Era) -> None:
    async with Server().client(era, None) as client:
        assert text_of(await client.call_tool("ask")) == "nobody can be asked"


@pytest.mark.asyncio
@both_eras
@pytest.mark.parametrize(
    ("declared", "answer"),
    [
        (types.ElicitationCapability(), "{"),
        (types.ElicitationCapability(form=types.FormElicitationCapability()), "{"),
        (types.ElicitationCapability(url=types.UrlElicitationCapability()), "nobody can be asked"),
    ],
)
async def test_only_a_client_that_shows_forms_is_asked(
    era: Era, declared: types.ElicitationCapability, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def capabilities(*_: object, **__: object) -> types.ClientCapabilities:
        return types.ClientCapabilities(elicitation=declared)

    monkeypatch.setattr(ClientSession, "_build_capabilities", capabilities)
    person = Person(accepting(**CONFIRMED))
    async with Server().client(era, person.answer) as client:
        assert text_of(await client.call_tool("ask")).startswith(answer)
    assert len(person.shown) == (answer == "{")


@pytest.mark.asyncio
async def test_a_client_that_answers_with_an_error_counts_as_cancelled() -> None:
    refusing = Person(types.ErrorData(code=-1, message="no dialog " * 100))
    reply = await replied("legacy", refusing)
    assert reply["action"] == "cancel"
    assert reply["fault"].startswith("the client did not ask the user: no dialog")
    assert len(reply["fault"]) < 200


@pytest.mark.asyncio
async def test_a_client_whose_dialog_raises_counts_as_cancelled() -> None:
    async def raising(context: Any, params: Any) -> types.ElicitResult:  # noqa: ARG001 — the SDK's callback has them
        raise RuntimeError("no screen")

    async with Server().client("legacy", raising) as client:
        reply = reply_of(await client.call_tool("ask"))
    assert (reply["action"], reply["fault"]) == ("cancel", "the client did not ask the user: no screen")


@pytest.mark.asyncio
async def test_a_client_that_gives_up_in_the_later_era_sends_no_reply_and_can_call_again() -> None:
    person = Person(types.ErrorData(code=-1, message="no dialog"), accepting(**CONFIRMED))
    async with Server().client("auto", person.answer) as client:
        with pytest.raises(MCPError, match="no dialog"):
            await client.call_tool("ask")
        assert reply_of(await client.call_tool("ask"))["action"] == "accept"


@pytest.mark.asyncio
async def test_a_call_that_is_cancelled_while_a_person_thinks_ends_and_the_next_one_is_served() -> None:
    is_shown, is_withdrawn = anyio.Event(), anyio.Event()

    async def thinking(context: Any, params: Any) -> types.ElicitResult:  # noqa: ARG001 — the SDK's callback has them
        is_shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            is_withdrawn.set()
        raise AssertionError("nobody wakes it")

    server = Server()
    async with server.client("legacy", thinking) as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "ask")
            await is_shown.wait()
            calls.cancel_scope.cancel()
        await is_withdrawn.wait()
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]


class Answering:
    """The later era by hand: a first call, and repeated ones with what a test makes of the state."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def asked(self) -> types.InputRequiredResult:
        return await self._sent(None, None, types.InputRequiredResult)

    async def answered(self, state: str | None, **content: Any) -> dict[str, Any]:
        result = await self._sent(state, {"decision": accepting(**content)}, types.CallToolResult)
        return reply_of(result)

    async def asked_again(self, state: str | None, responses: dict[str, Any] | None) -> str:
        result: types.InputRequiredResult = await self._sent(state, responses, types.InputRequiredResult)
        (request,) = (result.input_requests or {}).values()
        assert isinstance(request, types.ElicitRequest)
        return request.params.message

    async def _sent(self, state: str | None, responses: dict[str, Any] | None, expected: type[Any]) -> Any:
        result = await self._client.session.call_tool(
            "ask", request_state=state, input_responses=responses, allow_input_required=True
        )
        assert isinstance(result, expected)
        return result


@asynccontextmanager
async def answering(server: Server) -> AsyncGenerator[Answering]:
    async with server.client("auto", Person().answer) as client:
        yield Answering(client)


GIVEN: types.InputResponses = {"decision": accepting(**CONFIRMED)}


@pytest.mark.asyncio
async def test_the_sdk_lets_our_state_pass_as_it_is_in_both_directions() -> None:
    """Its own seal would refuse after ten minutes and after a restart; a low-level server has none."""
    server = Server()
    async with answering(server) as client:
        asked = await client.asked()
    assert asked.request_state is not None
    assert asked.request_state.startswith("v1.")
    server.clock.now_ms += QUESTION_VALID_MS
    restarted = Gate(server.store, server.clock)
    server.gate = restarted
    async with answering(server) as client:
        assert (await client.answered(asked.request_state, **CONFIRMED))["action"] == "accept"


@pytest.mark.asyncio
async def test_the_real_server_takes_a_state_that_it_never_sealed_as_no_fault_of_protocol() -> None:
    async with Harness.in_memory().client() as client:
        result = await client.session.call_tool("list_workflows", request_state="hello", input_responses=GIVEN)
    assert not result.is_error


@pytest.mark.inv("GATE-8")
@pytest.mark.asyncio
@pytest.mark.parametrize("elapsed_ms", [QUESTION_VALID_MS + 1, -CLOCK_SKEW_MS_MAX - 1])
async def test_a_reply_to_an_old_question_is_asked_again(elapsed_ms: int) -> None:
    server = Server()
    async with answering(server) as client:
        asked = await client.asked()
        server.clock.now_ms += elapsed_ms
        message = await client.asked_again(asked.request_state, GIVEN)
    assert message.startswith("Please answer again: the earlier question is more than a day old.")
    assert "Publish the release?" in message


@pytest.mark.inv("GATE-8")
@pytest.mark.asyncio
@pytest.mark.parametrize("other", ["subject", "question"])
async def test_a_reply_opens_no_other_gate(other: str) -> None:
    server = Server()
    async with answering(server) as client:
        asked = await client.asked()
        setattr(server.gate, other, "att_2" if other == "subject" else CHOICE)
        message = await client.asked_again(asked.request_state, GIVEN | {"other": GIVEN["decision"]})
    assert message.startswith("Please answer again: the earlier reply answers another question.")


@pytest.mark.asyncio
@pytest.mark.parametrize("state", [None, "", "v1.", "hello", "v1." + "A" * 100, "\N{GRINNING FACE}"])
async def test_a_reply_without_our_state_is_asked_again(state: str | None) -> None:
    async with answering(Server()) as client:
        message = await client.asked_again(state, GIVEN)
    assert message.startswith("Please answer again: the earlier reply belongs to no question")


@pytest.mark.inv("GATE-8")
@pytest.mark.asyncio
async def test_an_altered_state_is_asked_again_and_the_new_one_holds() -> None:
    server = Server()
    async with answering(server) as client:
        asked = await client.asked()
        assert asked.request_state is not None
        assert "answer again" in await client.asked_again(asked.request_state[:-1], GIVEN)
        assert "answer again" in await client.asked_again(asked.request_state + "A", GIVEN)
        assert (await client.answered(asked.request_state, **CONFIRMED))["action"] == "accept"


@pytest.mark.asyncio
async def test_a_repeated_call_without_a_reply_is_asked_again_without_a_reproach() -> None:
    async with answering(Server()) as client:
        asked = await client.asked()
        assert "answer again" not in await client.asked_again(asked.request_state, None)
        assert "answer again" not in await client.asked_again(asked.request_state, {"other": GIVEN["decision"]})


@pytest.mark.asyncio
async def test_a_reply_that_is_no_form_counts_as_cancelled() -> None:
    async with answering(Server()) as client:
        asked = await client.asked()
        result = await client._sent(asked.request_state, {"decision": {"roots": []}}, types.CallToolResult)  # pyright: ignore[reportPrivateUsage]  # what no well-behaved client sends
    assert reply_of(result)["fault"] == "the client did not send a filled-in form"


@pytest.mark.asyncio
async def test_the_sdks_driver_answers_once_more_when_it_is_asked_again() -> None:
    """A person answers late; the client asks them again by itself, and that reply counts."""
    server = Server()
    person = Person(accepting(**CONFIRMED), accepting(decision="decline"))

    async def late(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        server.clock.now_ms += QUESTION_VALID_MS + 1 if not person.shown else 0
        return await person.answer(context, params)

    async with server.client("auto", late) as client:
        assert reply_of(await client.call_tool("ask"))["action"] == "decline"
    assert [form.message.startswith("Please answer again") for form in person.shown] == [False, True]


def test_an_ask_in_other_words_is_another_question() -> None:
    other = Question(title=APPROVAL.title, asks=(QuestionItem(reason="needs_user_approval", ask="Publish it?"),))
    assert other.digest() != APPROVAL.digest()
