"""People are asked through our own transport: by the SDK's client in both eras, and line by line."""

import json
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, types
from tests.e2e.test_stdio_transport import ENDS, ENVELOPE, HELLO, PATIENCE_S, Json, Served, serving, text_of
from tests.support.forkserver import forking_python

from interlock.kernel.budgets import UNANSWERED_MAX
from interlock.testing.harness import ERAS, Era

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="waits on pipes with select, sends signals")

SCRIPT = str(Path(__file__).with_name("asking_server.py"))
FORM: Json = {"elicitation": {"form": {}}}
CONFIRMED: dict[str, Any] = {"action": "accept", "content": {"decision": "confirm"}}


def parameters(data_dir: Path) -> StdioServerParameters:
    return StdioServerParameters(command=forking_python(), args=[SCRIPT, str(data_dir)])


def answering(**result: Any) -> Callable[..., Any]:
    async def answer(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult.model_validate(result)

    return answer


def reply_of(result: Any) -> dict[str, Any]:
    return json.loads(result.content[0].text)


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_person_is_asked_in_both_eras(era: Era, action: str, tmp_path: Path) -> None:
    result = CONFIRMED if action == "accept" else {"action": action}
    async with Client(parameters(tmp_path), mode=era, elicitation_callback=answering(**result)) as client:
        for _ in range(2):
            assert reply_of(await client.call_tool("ask"))["action"] == action
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]


@pytest.mark.asyncio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_without_the_capability_is_not_asked(era: Era, tmp_path: Path) -> None:
    async with Client(parameters(tmp_path), mode=era) as client:
        (block,) = (await client.call_tool("ask")).content
    assert isinstance(block, types.TextContent)
    assert block.text == "nobody can be asked"


@pytest.mark.asyncio
async def test_a_reply_may_come_to_another_process_than_the_question(tmp_path: Path) -> None:
    async with Client(parameters(tmp_path), elicitation_callback=answering()) as client:
        asked = await client.session.call_tool("ask", allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    given: types.InputResponses = {"decision": types.ElicitResult.model_validate(CONFIRMED)}
    async with Client(parameters(tmp_path), elicitation_callback=answering()) as client:
        result = await client.session.call_tool("ask", request_state=asked.request_state, input_responses=given)
    assert reply_of(result)["action"] == "accept"


@pytest.fixture(params=[0, 1], ids=["the first call", "a later call"])
def asking(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """Serve a client of the earlier era that has shaken hands and can be asked, and perhaps was asked before."""
    with serving(str(tmp_path), command=[forking_python(), SCRIPT]) as server:
        server.send({"jsonrpc": "2.0", "id": 90, "method": "initialize", "params": HELLO | {"capabilities": FORM}})
        assert server.answer()["id"] == 90
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for _ in range(request.param):
            server.send(call(91))
            server.send(response(asked(server), result=CONFIRMED))
            assert server.answer()["id"] == 91
        yield server


def call(identity: int) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": {"name": "ask"}}


def asked(server: Served) -> int:
    request = server.answer()
    assert request["method"] == "elicitation/create"
    return request["id"]


def response(identity: object, **members: object) -> Json:
    return {"jsonrpc": "2.0", "id": identity} | members


@pytest.mark.parametrize("spelled", [int, str])
def test_a_response_reaches_its_call_however_its_id_is_spelled(asking: Served, spelled: type) -> None:
    asking.send(call(1))
    asking.send(response(spelled(asked(asking)), result=CONFIRMED))
    answer = asking.answer()
    assert (answer["id"], json.loads(text_of(answer))["action"]) == (1, "accept")


UNUSABLE: list[Json] = [
    {"result": None},
    {"result": "yes"},
    {"result": [], "error": {"code": 1, "message": "both"}},
    {"error": "no"},
    {"result": {"action": "accept", "content": {"decision": "half \ud800 of a pair"}}},
]


@pytest.mark.parametrize("members", UNUSABLE)
def test_a_malformed_response_ends_the_question_as_cancelled(asking: Served, members: Json) -> None:
    asking.send(call(1))
    asking.send(response(asked(asking), **members))
    refusal, answer = asking.answer(), asking.answer()
    assert (refusal["id"], refusal["error"]["code"]) == (None, -32600)
    reply = json.loads(text_of(answer))
    assert (answer["id"], reply["action"]) == (1, "cancel")
    assert reply["fault"].startswith("the client did not ask the user: The ")


@pytest.mark.parametrize("result", [{}, {"action": "maybe"}, {"action": "accept", "content": {"decision": {}}}])
def test_a_result_that_is_no_form_counts_as_cancelled(asking: Served, result: Json) -> None:
    asking.send(call(1))
    asking.send(response(asked(asking), result=result))
    reply = json.loads(text_of(asking.answer()))
    assert (reply["action"], reply["fault"]) == ("cancel", "the client's response is not a filled-in form")


def test_a_malformed_response_to_nothing_we_asked_disturbs_no_question(asking: Served) -> None:
    asking.send(call(1))
    identity = asked(asking)
    asking.send(response(identity + 7, result="yes"), response(identity, result=CONFIRMED))
    refusal, answer = asking.answer(), asking.answer()
    assert refusal["error"]["code"] == -32600
    assert json.loads(text_of(answer))["action"] == "accept"


@pytest.mark.parametrize("end", ENDS)
def test_a_server_that_ends_while_a_person_thinks_answers_the_call_as_cancelled_and_leaves(
    asking: Served, end: str | signal.Signals
) -> None:
    """Patience for an answer of the client would end in an error: none could come any more."""
    asking.send(call(1), call(2))
    assert asked(asking) != asked(asking)
    asking.end(end)
    answers = [asking.answer(), asking.answer()]
    assert asking.exit_code() == 0
    assert {answer["id"] for answer in answers} == {1, 2}
    faults = {json.loads(text_of(answer))["fault"] for answer in answers}
    assert faults == {"the client did not ask the user: the server is shutting down"}
    assert asking.answers.rest() == b""


@pytest.mark.parametrize("end", ENDS)
def test_a_call_that_would_ask_when_the_server_already_ends_asks_nobody(
    asking: Served, end: str | signal.Signals
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        begun = call(1)
        begun["params"]["arguments"] = {"port": listener.getsockname()[1]}
        asking.send(begun, call(2))
        asked(asking)
        connection, _ = listener.accept()
        with connection:
            asking.end(end)
            assert asking.answer()["id"] == 2
    answer = asking.answer()
    assert (answer["id"], json.loads(text_of(answer))["fault"]) == (
        1,
        "the client did not ask the user: the server is shutting down",
    )
    assert (asking.exit_code(), asking.answers.rest()) == (0, b"")


def test_a_client_that_vanishes_while_a_person_thinks_is_no_error(asking: Served) -> None:
    asking.send(call(1))
    asked(asking)
    asking.stdout.close()
    asking.stdin.close()
    assert (asking.exit_code(), asking.errors.rest()) == (0, b"")


def test_a_call_cancelled_while_a_person_thinks_is_not_answered_and_its_question_is_withdrawn(asking: Served) -> None:
    for at in range(3):
        asking.send(call(at))
        identity = asked(asking)
        asking.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": at}})
        withdrawn = asking.answer()
        assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", identity)
        asking.send(response(identity, result=CONFIRMED))
    asking.send({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    assert asking.answer()["id"] == 9
    asking.end("end of input")
    assert (asking.exit_code(), asking.answers.rest()) == (0, b"")


@pytest.mark.inv("GATE-7")
def test_when_every_call_that_is_taken_waits_for_a_person_all_can_be_answered(asking: Served) -> None:
    """Else the reader would wait for answers, and the answers for responses that it does not read."""
    asking.send(*(call(at) for at in range(UNANSWERED_MAX)))
    identities = [asked(asking) for _ in range(UNANSWERED_MAX)]
    answers: list[Json] = []
    for identity in identities:
        asking.send(response(identity, result=CONFIRMED))
        answers.append(asking.answer())
    assert sorted(answer["id"] for answer in answers) == list(range(UNANSWERED_MAX))


@pytest.mark.inv("GATE-7")
def test_in_the_later_era_nothing_is_held_while_a_person_thinks(tmp_path: Path) -> None:
    envelope: Json = ENVELOPE | {"io.modelcontextprotocol/clientCapabilities": FORM}
    params: Json = {"name": "ask", "_meta": envelope}
    with serving(str(tmp_path), command=[forking_python(), SCRIPT]) as server:
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        first = server.answer()["result"]
        assert first["resultType"] == "input_required"
        repeated = params | {"inputResponses": {"decision": CONFIRMED}, "requestState": first["requestState"]}
        server.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": repeated})
        assert json.loads(text_of(server.answer()))["action"] == "accept"
        server.end("end of input")
        assert (server.exit_code(), server.answers.rest()) == (0, b"")
