"""A call that waits for a person, from the client's call to its answer: asked once, and answered with its result."""

from typing import Any

import pytest
from mcp import Client, types
from mcp.client.session import ElicitationFnT
from tests.support.approvals import asking
from tests.support.ends import work_record
from tests.support.flow import Document, step
from tests.support.modes import NEVER_STOPS, codes, events_of, serving

from interlock.kernel.errors import ErrorCode
from interlock.server.app import build_server
from interlock.testing.harness import ERAS, Era, Harness, ToolResult, call_through

PEN = types.Implementation(name="pen", version="1")
GATED = step("a", requireConfirmation=True)
both_eras = pytest.mark.parametrize("era", ERAS)
UNHEARD = {
    "put away": (
        types.ElicitResult(action="cancel"),
        "The user was asked (through pen) and closed the question without an answer.",
    ),
    "no form": (
        types.ElicitResult(action="accept", content={"decision": "maybe"}),
        "No answer of the user arrived (through pen): `decision` is 'maybe', not `confirm` or `decline`.",
    ),
}


def person(result: types.ElicitResult) -> ElicitationFnT:
    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 — the SDK's
        return result

    return answer


async def advanced(
    harness: Harness, era: Era, result: types.ElicitResult, **more: Any
) -> tuple[ToolResult, ToolResult]:
    """Return the start of a run, and what reporting its first step comes to where the user answers so."""
    first = harness.start("test.flow")
    sent: Document = {"ackToken": first.ack, "output": {"notesMarkdown": "Done."}, **more}
    server = build_server(harness.ports, None)
    async with Client(server, mode=era, elicitation_callback=person(result), client_info=PEN) as client:
        return first, await call_through(client, "continue_workflow", sent)


@pytest.mark.asyncio
@both_eras
@pytest.mark.inv("GATE-3")
async def test_a_yes_opens_the_gate_and_is_shown_first(era: Era) -> None:
    harness = serving(GATED, step("b"))
    result = types.ElicitResult(action="accept", content={"decision": "confirm", "comment": "Go."})
    _, answer = await advanced(harness, era, result)
    assert answer["pending"]["stepId"] == "b"
    assert (answer["answered"]["client"], answer["answered"]["comment"]) == ("pen", "Go.")


@pytest.mark.asyncio
@both_eras
@pytest.mark.inv("GATE-4")
async def test_a_no_is_recorded_with_its_words(era: Era) -> None:
    harness = serving(GATED, step("b"))
    _, answer = await advanced(harness, era, types.ElicitResult(action="accept", content=NO))
    assert codes(answer) == ["USER_ONLY_DEPENDENCY"]
    assert "They said: Later." in answer["blockers"][0]["message"]


NO: dict[str, Any] = {"decision": "decline", "comment": "Later."}


@pytest.mark.asyncio
@both_eras
@pytest.mark.inv("GATE-1")
@pytest.mark.parametrize("how", UNHEARD)
async def test_where_no_answer_came_the_answer_says_why_and_nothing_is_recorded(era: Era, how: str) -> None:
    result, words = UNHEARD[how]
    harness = serving(GATED, step("b"))
    first, answer = await advanced(harness, era, result)
    assert (answer["kind"], answer["nextIntent"]) == ("blocked", "await_user_confirmation")
    assert answer.ack == first.ack
    for outcome in (answer["blockers"][0]["message"], answer.text):
        assert words in outcome
    assert events_of(harness, first, "advance_recorded") == []


@pytest.mark.asyncio
@both_eras
@pytest.mark.inv("GATE-5")
@pytest.mark.parametrize("how", UNHEARD)
async def test_a_start_that_nobody_answered_says_why_and_begins_nothing(era: Era, how: str) -> None:
    result, words = UNHEARD[how]
    harness = serving(step("a"))
    server = build_server(harness.ports, None)
    async with Client(server, mode=era, elicitation_callback=person(result), client_info=PEN) as client:
        refused = await call_through(client, "start_workflow", {"workflowId": "test.flow", "preferences": NEVER_STOPS})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert words in refused["message"]
    assert harness.store.sessions() == ()


@pytest.mark.asyncio
@both_eras
@pytest.mark.inv("END-5")
async def test_a_person_is_asked_before_a_run_ends_and_only_a_yes_ends_it(era: Era) -> None:
    harness = serving(step("a"), step("b"))
    for content, has_ended in (
        ({"decision": "decline", "comment": "Not yet."}, False),
        ({"decision": "confirm"}, True),
    ):
        result = types.ElicitResult(action="accept", content=dict(content))
        first, answer = await advanced(harness, era, result, output=work_record(note="Plans changed."))
        assert [event.kind for event in events_of(harness, first, "work_recorded")] == ["work_recorded"] * has_ended
        assert ("ended" in answer.structure) is has_ended
        if has_ended:
            assert answer["ended"]["note"] == "Plans changed."
        else:
            assert codes(answer) == ["USER_ONLY_DEPENDENCY"]
            assert "They said: 'Not yet.'" in answer.text


@pytest.mark.asyncio
@both_eras
@pytest.mark.inv("APPR-10")
async def test_a_rejection_without_the_note_that_it_needs_says_so_and_is_taken_with_it(era: Era) -> None:
    harness = Harness.in_memory(asking(note="required", set=[{"key": "choice", "from": "event.choice"}]))
    first = harness.start("test.flow", goal="Ship")
    waiting = harness.advance(first, "The plan.")
    server, forms = build_server(harness.ports, None), list[str]()
    given = [
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="accept", content={"decision": "decline"}),
        types.ElicitResult(action="accept", content=NO),
    ]

    async def person_with(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 — the SDK's
        forms.append(params.message)
        return given[len(forms) - 1]

    async with Client(server, mode=era, elicitation_callback=person_with, client_info=PEN) as client:
        for _ in range(2):
            held = await call_through(client, "continue_workflow", {"ackToken": waiting.ack})
            for text in (held.text, held["waiting"]["how"]):
                assert "The user answered 'reject' (through pen), but without the note" in text
                assert f"`interlock reject {waiting['run']['label']} --note TEXT`" in text
            assert events_of(harness, first, "event_received") == []
        done = await call_through(client, "continue_workflow", {"ackToken": waiting.ack})
    assert done["pending"]["stepId"] == "b"
    assert all("Without a reason nothing is decided, nor with a decline button" in one for one in forms)
    recorded: list[Any] = [one.to_json()["data"] for one in events_of(harness, first, "event_received")]
    [answer] = recorded
    assert (answer["fields"]["choice"], answer["fields"]["note"]) == ("reject", "Later.")
