"""A driver works a run to its end, and every change goes through the tools of the server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import Client, types
from tests.support.drive import (
    EFFECTFUL,
    READ_ONLY,
    FakeEffects,
    calls,
    driving,
    each,
    phases_of,
    profile,
    report,
    said,
    tool,
)

from interlock.drive.client import Evidence
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.server.app import build_server
from interlock.service.run.turns import totals_of
from interlock.testing.harness import Harness, call_through, linear_workflow

ABC = linear_workflow("test.abc", "a", "b", "c")
RECORDED = ["init", "normalize", "resolve", "infer", "execute"]
TOOLS = {"start_workflow", "continue_workflow", "checkpoint_workflow", "resume_session"}
pytestmark = pytest.mark.asyncio


async def echo(arguments: Any, _context: Any) -> object:
    return dict(arguments)


@pytest.mark.inv("DRIVE-1", "DRIVE-11")
async def test_a_run_is_driven_to_its_end_by_tool_calls_alone() -> None:
    async with driving(Harness.in_memory(ABC), report) as drive:
        result = await drive.start(goal="Finish it.")
        assert (result.status, result.exit_code, result.turns) == ("complete", 0, 3)
        assert {name for name, _ in drive.caller.called} <= TOOLS
        # After each of two reports the driver reads the next step, for its checkpoint token.
        assert [name for name, _ in drive.caller.called] == ["start_workflow", *["continue_workflow"] * 5]
        assert sum("ackToken" in sent for _, sent in drive.caller.called) == 3
        assert [phases_of(one) for one in drive.caller.records()] == [RECORDED] * 3


@pytest.mark.inv("DRIVE-1")
async def test_the_phases_of_a_turn_are_in_order_and_the_last_two_are_in_the_record_of_the_next() -> None:
    async with driving(Harness.in_memory(ABC), each(calls(("note_progress", {"notes": "Half."})))) as drive:
        await drive.start()
        records = drive.caller.records()
    assert [one["previous"] and [p["name"] for p in one["previous"]["phases"]] for one in records] == [
        None,
        *[["persist", "emit"]] * 3,
    ]
    for record in records:
        assert all(one["start"] <= one["end"] and one["status"] == "ok" for one in record["phases"])


@pytest.mark.inv("DRIVE-2")
async def test_fifty_turns_have_fifty_interactions_one_session_and_one_instance() -> None:
    limits = profile(constraints={"max_turns": 200}, turn_chain={"max_tool_turns": 100})
    answers = [calls(("note_progress", {"notes": f"Part {number}."})) for number in range(49)]
    async with driving(Harness.in_memory(linear_workflow("test.abc", "a")), each(*answers), limits) as drive:
        result = await drive.start()
        ids = [one["ids"] for one in drive.caller.records()]
        numbers = [one["turn"] for one in drive.caller.records()]
    assert result.status == "complete"
    assert len({one["interactionId"] for one in ids}) == 50
    assert {one["sessionId"] for one in ids} == {result.position.run}
    assert len({one["instanceId"] for one in ids}) == 1
    assert numbers == list(range(1, 51))


@pytest.mark.inv("DRIVE-12")
async def test_a_model_never_sees_a_token_or_a_tool_of_the_server() -> None:
    async with driving(Harness.in_memory(ABC), report) as drive:
        await drive.start()
        shown = repr(drive.model.requests)
        sent = [arguments for _, arguments in drive.caller.called]
    tokens = [one.get("ackToken") or one.get("checkpointToken") for one in sent]
    assert all(token is None or token not in shown for token in tokens)
    assert not any(f"'{name}'" in shown for name in TOOLS)
    assert {one.name for request in drive.model.requests for one in request.tools} == {"report_step", "note_progress"}


@pytest.mark.inv("DRIVE-12")
async def test_what_only_a_person_may_say_is_dropped_from_a_report_and_the_run_says_so() -> None:
    human = [
        {"kind": "wr.confirmation", "confirmedBy": "Ada", "statement": "Yes."},
        {"kind": "wr.approval", "decision": "approve"},
        {"kind": "wr.work_record", "work": "cancelled", "reason": "gave_up"},
        {"kind": "wr.turn", "turn": 1},
        {"kind": "note", "text": "kept"},
    ]
    async with driving(Harness.in_memory(ABC), lambda request: report(request, artifacts=human)) as drive:
        result = await drive.start()
        sent = [one for _, arguments in drive.caller.called for one in arguments.get("output", {}).get("artifacts", [])]
    assert result.status == "complete"
    assert {one["kind"] for one in sent} == {"note", "wr.turn"}
    assert any("wr.confirmation" in warning for warning in result.warnings)


async def test_a_step_that_a_person_must_confirm_stops_the_drive_and_the_run_stays_resumable() -> None:
    confirmed = {"id": "a", "title": "A", "prompt": "Do a.", "requireConfirmation": True}
    harness = Harness.in_memory(linear_workflow("test.abc", confirmed, "b"))
    async with driving(harness, report) as drive:
        result = await drive.start()
        assert (result.status, result.exit_code) == ("person_needed", 3)
        assert result.fault is not None
        assert result.fault.code == "ESCALATION_REQUIRED"
        found = await call_through(drive.client, "resume_session", {"runId": result.position.run})
        assert [one["run"]["runId"] for one in found["candidates"]] == [result.position.run]
    async with driving(harness, report) as again:
        resumed = await again.resume(result.position.run)
        assert resumed.status == "person_needed"
        assert again.model.requests == [], "the report is sent again; no model is asked again"


@pytest.mark.inv("DRIVE-14")
async def test_a_refused_report_is_answered_with_its_blockers_and_the_next_turn_corrects_it() -> None:
    needs = {"id": "a", "title": "A", "prompt": "Do a.", "outputContract": {"contractRef": "wr.contracts.decision"}}
    decided = {"kind": "wr.decision", "conditionId": "one", "result": True}
    answers = each(report, lambda request: report(request, artifacts=[decided]))
    async with driving(Harness.in_memory(linear_workflow("test.abc", needs)), answers) as drive:
        result = await drive.start()
        assert result.status == "complete"
        second = drive.model.requests[1].messages
        assert second[-1].role == "tool"
        assert "MISSING_REQUIRED_OUTPUT" in second[-1].text()
        assert "`artifacts[0].conditionId`" in second[-1].text()


@pytest.mark.inv("DRIVE-14")
async def test_arguments_that_the_server_refuses_are_the_models_to_correct_three_times_at_most() -> None:
    def bad(request: InferenceRequest) -> InferenceResponse:
        return report(request, artifacts=[{"kind": "x", "text": 5}, {"no": "kind"}])

    async with driving(Harness.in_memory(ABC), each(bad)) as drive:
        assert (await drive.start()).status == "complete"
    async with driving(Harness.in_memory(ABC), bad) as drive:
        result = await drive.start()
        assert (result.status, result.turns) == ("failed", 3)
        assert result.fault is not None
        assert result.fault.code == "VALIDATION_ERROR"
        start = "All calls of the model were refused in 3 turns in a row. Last: VALIDATION_ERROR: "
        assert result.fault.message.startswith(start)
        assert "{" not in result.fault.message
        assert result.position.step is not None
        assert result.position.step.step_id == "a"


@pytest.mark.inv("DRIVE-8")
async def test_used_up_turns_end_the_drive_with_its_own_exit_code_and_a_higher_limit_continues_it() -> None:
    harness = Harness.in_memory(ABC)
    async with driving(harness, report, profile(constraints={"max_turns": 2})) as drive:
        result = await drive.start()
        assert (result.status, result.exit_code, result.turns) == ("budget_used_up", 5, 2)
        assert result.fault is not None
        assert result.fault.code == "MAX_TURNS_EXCEEDED"
    async with driving(harness, report) as drive:
        assert (await drive.resume(result.position.run)).status == "complete"


@pytest.mark.inv("DRIVE-8")
@pytest.mark.parametrize(
    ("stated", "code"),
    [
        ({"constraints": {"max_tokens": 30}}, "MAX_TOKENS_EXCEEDED"),
        ({"budget": {"max_cost": 0.00002, "input_price": 1, "output_price": 1}}, "QUOTA_EXCEEDED"),
    ],
)
async def test_tokens_and_money_are_counted_over_all_turns(stated: dict[str, Any], code: str) -> None:
    harness = Harness.in_memory(ABC)
    async with driving(harness, report, profile(**stated)) as drive:
        result = await drive.start()
        assert (result.status, result.turns) == ("budget_used_up", 2)
        assert result.fault is not None
        assert result.fault.code == code
    async with driving(harness, report, profile(**stated)) as drive:
        assert (await drive.resume(result.position.run)).status == "budget_used_up", "the log says what was used"
        assert drive.model.requests == []


@pytest.mark.inv("DRIVE-8")
async def test_used_up_seconds_end_the_drive() -> None:
    effects = FakeEffects()

    def slow(request: InferenceRequest) -> InferenceResponse:
        effects.time_ms += 6_000
        return report(request)

    async with driving(Harness.in_memory(ABC), slow, profile(budget={"max_seconds": 10}), effects=effects) as drive:
        result = await drive.start()
    assert (result.status, result.turns) == ("budget_used_up", 2)


@pytest.mark.inv("DRIVE-9")
async def test_a_model_that_calls_tools_for_ever_is_stopped_after_ten_turns_and_the_run_can_be_resumed() -> None:
    harness = Harness.in_memory(ABC)
    async with driving(harness, calls(("echo", {})), functions={"echo": tool(echo)}) as drive:
        result = await drive.start()
        assert (result.status, result.turns) == ("budget_used_up", 10)
        assert result.fault is not None
        assert result.fault.code == "MAX_TURNS_EXCEEDED"
        assert len({one["ids"]["chainId"] for one in drive.caller.records()}) == 1
    async with driving(harness, report, functions={"echo": tool(echo)}) as drive:
        assert (await drive.resume(result.position.run)).status == "complete"


@pytest.mark.inv("DRIVE-9")
async def test_a_chain_may_end_after_each_tool_turn_and_a_confirmation_between_turns_needs_a_person() -> None:
    once = profile(turn_chain={"continue_on_tool_use": False})
    async with driving(Harness.in_memory(ABC), calls(("echo", {})), once, {"echo": tool(echo)}) as drive:
        assert (await drive.start()).turns == 1
    asked: list[str] = []

    async def agree(question: str) -> bool:
        asked.append(question)
        return len(asked) < 2

    confirmed = profile(turn_chain={"confirm_between_turns": True})
    async with driving(Harness.in_memory(ABC), report, confirmed) as drive:
        assert (await drive.start()).status == "person_needed"
    async with driving(Harness.in_memory(ABC), report, confirmed, ask=agree) as drive:
        result = await drive.start()
    assert (result.status, result.turns) == ("person_needed", 2)


@pytest.mark.inv("TURN-2", "TURN-1")
async def test_an_error_that_is_not_handled_commits_nothing_and_the_last_phase_still_runs() -> None:
    async def keep(_arguments: Any, context: Any) -> object:
        await context.state.set("key", 1)
        return {}

    def fails(_: InferenceRequest) -> InferenceResponse:
        raise ZeroDivisionError

    harness = Harness.in_memory(ABC)
    handler = {"error_codes": ["TOOL_ERROR"], "strategy": "abort"}

    async def breaks(_arguments: Any, context: Any) -> object:
        await context.state.set("key", 2)
        raise RuntimeError

    stated = profile(reliability={"error_handlers": [handler]})
    both = {"keep": tool(keep), "breaks": tool(breaks)}
    async with driving(harness, each(calls(("keep", {}), ("breaks", {}))), stated, both) as drive:
        result = await drive.start()
        assert (result.status, result.turns) == ("failed", 0)
        assert drive.caller.records() == []
        assert [name for name, _ in drive.caller.called] == ["start_workflow"]
    async with driving(harness, fails) as drive:
        with pytest.raises(ZeroDivisionError):
            await drive.resume(result.position.run)
        assert drive.caller.records() == []


@pytest.mark.inv("TURN-2", "TURN-8")
@pytest.mark.parametrize("is_marked", [True, False])
async def test_what_a_failed_turn_used_is_in_the_result_and_in_the_log_if_it_was_marked(*, is_marked: bool) -> None:
    async def breaks(_arguments: Any, _context: Any) -> object:
        raise RuntimeError

    handler = {"error_codes": ["TOOL_ERROR"], "strategy": "abort"}
    allowed = {"name": "breaks", "type": "function", "permission": "allow"}
    stated = profile(reliability={"error_handlers": [handler]}, tools=[allowed])
    functions = {"breaks": tool(breaks, EFFECTFUL if is_marked else READ_ONLY)}
    async with driving(Harness.in_memory(ABC), each(calls(("breaks", {}))), stated, functions) as drive:
        result = await drive.start()
        records: list[Any] = drive.caller.records()
    assert (result.status, result.usage.input_tokens, result.usage.output_tokens) == ("failed", 10, 5)
    assert [one["status"] for one in records] == (["about_to_call"] if is_marked else [])
    assert totals_of(records)["inputTokens"] == (10 if is_marked else 0)


@pytest.mark.inv("TURN-1", "TURN-3")
async def test_the_state_changes_of_a_turn_are_one_record_and_a_resumed_run_folds_them() -> None:
    async def change(_arguments: Any, context: Any) -> object:
        await context.state.set("a", 1)
        await context.state.append("list", "x")
        await context.state.append("list", "y")
        await context.state.delete("a")
        return await context.state.get_many(["a", "list"])

    harness = Harness.in_memory(ABC)
    limited = profile(constraints={"max_turns": 1})
    async with driving(harness, each(calls(("change", {}))), limited, {"change": tool(change)}) as drive:
        result = await drive.start()
        (record,) = drive.caller.records()
    assert [(one["operation"], one["previousValue"], one["newValue"]) for one in record["changes"]] == [
        ("set", None, 1),
        ("append", None, ["x"]),
        ("append", ["x"], ["x", "y"]),
        ("delete", 1, None),
    ]
    seen: list[Any] = []

    async def look(_arguments: Any, context: Any) -> object:
        seen.append(await context.state.get_many(["a", "list"]))
        return {}

    async with driving(harness, each(calls(("look", {}))), functions={"look": tool(look)}) as drive:
        assert (await drive.resume(result.position.run)).status == "complete"
    assert seen == [{"list": ["x", "y"]}]


@pytest.mark.inv("DRIVE-13")
async def test_a_call_that_must_not_be_repeated_is_marked_before_it_is_made_and_never_made_twice() -> None:
    made: list[str] = []

    async def send(_arguments: Any, _context: Any) -> object:
        made.append("sent")
        raise KeyboardInterrupt

    harness = Harness.in_memory(ABC)
    functions = {"send": tool(send, EFFECTFUL)}
    run = ""
    async with driving(harness, calls(("send", {})), functions=functions) as drive:
        with pytest.raises(KeyboardInterrupt):
            await drive.start()
        run = drive.caller.records()[0]["ids"]["sessionId"]
        assert [one["status"] for one in drive.caller.records()] == ["about_to_call"]
    async with driving(harness, report, functions=functions) as drive:
        result = await drive.resume(run)
        assert (result.status, drive.model.requests) == ("person_needed", [])
        assert result.fault is not None
        assert "send" in result.fault.message
    async with driving(harness, report, functions=functions) as drive:
        result = await drive.resume(run, "happened")
        assert result.status == "complete"
        assert "took place" in drive.model.requests[0].messages[-1].text()
    assert made == ["sent"]


@pytest.mark.inv("DRIVE-13")
async def test_a_turn_that_was_not_kept_is_repeated_from_the_turn_before_it() -> None:
    harness, made = Harness.in_memory(ABC), list[str]()

    async def look(_arguments: Any, _context: Any) -> object:
        made.append("look")
        return {"found": len(made)}

    def stop_at_second(name: str, _: dict[str, Any]) -> None:
        if name == "checkpoint_workflow" and len(made) == 2:
            raise KeyboardInterrupt

    looks = each(*[calls(("look", {}))] * 2)
    async with driving(harness, looks, functions={"look": tool(look)}) as drive:
        drive.caller.before = stop_at_second
        with pytest.raises(KeyboardInterrupt):
            await drive.start()
        run = drive.caller.records()[0]["ids"]["sessionId"]
    async with driving(harness, each(calls(("look", {}))), functions={"look": tool(look)}) as drive:
        result = await drive.resume(run)
        first = drive.model.requests[0]
    assert result.status == "complete"
    assert [message.role for message in first.messages] == ["user", "assistant", "tool"]
    assert first.messages[-1].text() == '{"found":1}', "the lost turn is not in the conversation, the one before is"
    assert first.place.turn == 2


async def test_a_second_driver_on_one_run_is_noticed_before_it_loses_a_turn() -> None:
    harness = Harness.in_memory(ABC)
    async with driving(
        harness, calls(("note_progress", {"notes": "One."})), profile(constraints={"max_turns": 1})
    ) as one:
        run = (await one.start()).position.run

    def other_first(name: str, arguments: dict[str, Any]) -> None:
        if name == "checkpoint_workflow" and not waited:
            waited.append(arguments["checkpointToken"])

    waited: list[str] = []
    async with driving(harness, calls(("note_progress", {"notes": "Two."}))) as drive:
        drive.caller.before = other_first
        position = await drive.equipment.client.find(run)
        await drive.client.call_tool(
            "checkpoint_workflow",
            {"checkpointToken": position.tokens.checkpoint, "output": {"notesMarkdown": "Another driver."}},
        )
        result = await drive.resume(run)
        assert result.status in ("budget_used_up", "failed")
    stale = driving(harness, report)
    async with stale as drive:
        client = drive.equipment.client
        before = await client.find(run)
        await client.save(before, Evidence(notes="First."))
        with pytest.raises(TurnError, match="Another driver"):
            await client.save(before, Evidence(notes="Second."))


@pytest.mark.inv("FAULT-2")
async def test_a_rate_limit_is_waited_for_as_long_as_it_says_and_otherwise_ever_longer() -> None:
    def limited(after: int | None) -> Any:
        def answer(_: InferenceRequest) -> InferenceResponse:
            raise TurnError(Fault(code="RATE_LIMITED", message="Slow.", recoverable=True, retry_after_ms=after))

        return answer

    async with driving(Harness.in_memory(ABC), each(limited(7_000), limited(None), limited(None))) as drive:
        result = await drive.start()
        assert result.status == "complete"
        assert drive.effects.slept == [7.0, 1.0, 2.0]
        first = drive.caller.records()[0]
    assert [one["code"] for one in first["errors"]] == ["turn.RATE_LIMITED"] * 3


@pytest.mark.inv("DRIVE-8")
async def test_a_model_that_takes_too_long_is_asked_three_times_and_the_run_stays_at_its_step() -> None:
    async def hang() -> InferenceResponse:
        await anyio.sleep_forever()
        raise AssertionError

    stated = profile(constraints={"timeout_seconds": 0.01})
    async with driving(Harness.in_memory(ABC), lambda _: hang(), stated) as drive:
        result = await drive.start()
        assert len(drive.model.requests) == 3
    assert (result.status, result.turns) == ("failed", 0)
    assert result.fault is not None
    assert result.fault.code == "LLM_TIMEOUT"
    assert result.position.step is not None
    assert result.position.step.step_id == "a"


async def test_a_model_that_only_talks_is_reminded_to_report() -> None:
    async with driving(Harness.in_memory(ABC), each(lambda _: said(text="I think so."))) as drive:
        result = await drive.start()
        assert result.turns == 4
        assert "still pending" in drive.model.requests[1].messages[-1].text()


async def test_hostile_text_is_cut_or_replaced_before_it_reaches_the_server() -> None:
    def hostile(request: InferenceRequest) -> InferenceResponse:
        one = said(("report_step", {"notes": f"Half \ud800 of a pair, in turn {request.place.turn} of a test."}))
        return InferenceResponse(
            content="x" * 1_000_000, calls=one.calls, finish_reason="tool_use", usage=one.usage, model="m"
        )

    async with driving(Harness.in_memory(ABC), hostile) as drive:
        result = await drive.start()
    assert result.status == "complete"
    assert any("1000000 characters" in one for one in result.warnings)


async def test_a_workspace_is_needed_by_no_run_without_its_tools() -> None:
    async with driving(Harness.in_memory(ABC), report, workspace=Path("/nonexistent")) as drive:
        assert (await drive.start()).status == "complete"


@pytest.mark.inv("DRIVE-11")
async def test_an_agent_a_driver_and_another_agent_alternate_on_one_run_and_the_log_names_all_three() -> None:
    harness = Harness.in_memory(ABC)

    def named(name: str) -> Client:
        return Client(build_server(harness.ports, None), client_info=types.Implementation(name=name, version="1"))

    async def report_as(name: str, run: str | None, notes: str) -> str:
        async with named(name) as client:
            if run is None:
                at = await call_through(client, "start_workflow", {"workflowId": "test.abc"})
            else:
                found = await call_through(client, "resume_session", {"runId": run})
                at = await call_through(client, "continue_workflow", found["candidates"][0]["nextCall"]["arguments"])
            sent = {"ackToken": at.ack, "output": {"notesMarkdown": notes}}
            await call_through(client, "continue_workflow", sent)
            return run or at["run"]["runId"]

    run = await report_as("first agent", None, "The first agent read one file and decided what the others are to do.")
    async with driving(harness, report, profile(constraints={"max_turns": 1})) as drive:
        result = await drive.resume(run)
        assert (result.status, result.turns) == ("budget_used_up", 1)
        assert "The first agent read one file" in drive.model.requests[0].messages[0].text(), "the recap is an input"
    await report_as("second agent", run, "The second agent checked what was built, and found nothing that is open.")
    (session,) = harness.ports.read.reader.sessions()
    events = [event for event in harness.events(session) if event.kind == "advance_recorded"]
    actors = [event.actor.identifier for event in events if event.actor is not None]
    assert (len(actors), actors[0], actors[2]) == (3, "first agent", "second agent")
    assert actors[1] not in (actors[0], actors[2])


async def test_a_server_that_is_gone_fails_the_drive_and_leaves_the_run_where_it_was() -> None:
    def broken(name: str, _: dict[str, Any]) -> None:
        if name == "continue_workflow":
            raise BrokenPipeError

    harness = Harness.in_memory(ABC)
    async with driving(harness, report) as drive:
        drive.caller.client = cast("Client", Failing(drive.client, broken))
        result = await drive.start()
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.fault is not None
    assert result.fault.code == "STATE_ERROR"
    async with driving(harness, report) as drive:
        assert (await drive.resume(result.position.run)).status == "complete"


class Failing:
    """A client whose calls fail as a closed pipe does."""

    def __init__(self, client: Client, before: Callable[[str, dict[str, Any]], None]) -> None:
        self._client, self._before = client, before

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        self._before(name, arguments)
        return await self._client.call_tool(name, arguments)
