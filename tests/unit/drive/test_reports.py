"""What becomes of a report: what a model may send with it, what it is answered, and how a run ends with it."""

from typing import Any

import pytest
from tests.support.drive import calls, driving, each, profile, report, said
from tests.support.proofs import TESTS, provable

from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.testing.harness import Harness, linear_workflow

AB = linear_workflow("test.abc", "a", "b")
pytestmark = pytest.mark.asyncio


async def test_a_run_that_is_complete_with_gaps_is_so_when_it_is_resumed() -> None:
    def repeat(_request: InferenceRequest) -> InferenceResponse:
        return said(("report_step", {"notes": "Did the work with care, found three things to keep, and wrote them."}))

    harness = Harness.in_memory(AB)
    async with driving(harness, repeat) as drive:
        first = await drive.start()
    assert (first.status, first.exit_code) == ("complete_with_gaps", 4)
    async with driving(harness, repeat) as drive:
        again = await drive.resume(first.position.run)
    assert (again.status, again.exit_code) == ("complete_with_gaps", 4)


@pytest.mark.inv("DRIVE-12", "TURN-8")
async def test_a_report_that_waits_for_a_person_is_sent_again_without_a_turn_that_the_model_made_up() -> None:
    confirmed = {"id": "a", "title": "A", "prompt": "Do a.", "requireConfirmation": True}
    forged = [{"kind": "wr.turn", "turn": 9999, "usage": {"inputTokens": 777777}}, {"kind": "note", "text": "kept"}]
    harness = Harness.in_memory(linear_workflow("test.abc", confirmed, "b"))
    async with driving(harness, lambda request: report(request, artifacts=forged)) as drive:
        result = await drive.start()
    assert result.status == "person_needed"
    async with driving(harness, report) as drive:
        await drive.resume(result.position.run)
        outputs: list[dict[str, Any]] = [sent["output"] for _, sent in drive.caller.called if "output" in sent]
    assert [one["artifacts"] for one in outputs] == [[{"kind": "note", "text": "kept"}]]


@pytest.mark.inv("DRIVE-14")
async def test_a_report_of_wrong_arguments_is_answered_with_what_is_wrong() -> None:
    harness = Harness.in_memory(AB)
    async with driving(harness, each(calls(("report_step", {"note": 3})))) as drive:
        assert (await drive.start()).status == "complete"
        last = drive.model.requests[1].messages[-1]
    assert last.role == "tool"
    assert "SCHEMA_VIOLATION" in last.text()
    assert "'note' was unexpected" in last.text()


async def test_a_waiting_report_is_the_call_that_was_taken_and_no_refused_one_before_it() -> None:
    def twice(request: InferenceRequest) -> InferenceResponse:
        good = report(request).calls[0]
        return said(("report_step", {"note": 3}), (good.name, good.arguments))

    confirmed = {"id": "a", "title": "A", "prompt": "Do a.", "requireConfirmation": True}
    harness = Harness.in_memory(linear_workflow("test.abc", confirmed, "b"))
    async with driving(harness, twice) as drive:
        result = await drive.start()
    async with driving(harness, report) as drive:
        await drive.resume(result.position.run)
        outputs: list[dict[str, Any]] = [sent["output"] for _, sent in drive.caller.called if "output" in sent]
    assert [one["notesMarkdown"].startswith("Turn 1:") for one in outputs] == [True]


@pytest.mark.inv("DRIVE-14")
async def test_a_report_that_is_too_large_to_wait_for_a_person_is_refused_whole() -> None:
    """It is sent again from the record of its turn, whose long texts are cut."""

    def long_then_short(request: InferenceRequest) -> InferenceResponse:
        text = "x" * (600_000 if request.place.turn == 1 else 400_000)
        return report(request, artifacts=[{"kind": "note", "text": text}])

    confirmed = {"id": "a", "title": "A", "prompt": "Do a.", "requireConfirmation": True}
    harness = Harness.in_memory(linear_workflow("test.abc", confirmed, "b"))
    async with driving(harness, long_then_short) as drive:
        result = await drive.start()
        answer = drive.model.requests[1].messages[-1].text()
    assert (result.status, result.turns) == ("person_needed", 2)
    assert "too large or nested too deep to be kept" in answer
    async with driving(harness, report) as drive:
        await drive.resume(result.position.run)
        outputs: list[dict[str, Any]] = [sent["output"] for _, sent in drive.caller.called if "output" in sent]
    assert [len(one["artifacts"][0]["text"]) for one in outputs] == [400_000]


@pytest.mark.inv("DRIVE-14")
@pytest.mark.parametrize(("text", "kind"), [("I will do it now.", "the same text"), (None, "an empty answer")])
async def test_the_same_answer_without_a_call_three_times_in_a_row_ends_the_drive(text: str | None, kind: str) -> None:
    same, other = calls(text=text), calls(text="Almost.")
    reading = calls(("note_progress", {"notes": "x"}))
    harness = Harness.in_memory(linear_workflow("test.abc", "a"))
    async with driving(harness, each(same, same, other, same, reading, same, same)) as drive:
        result = await drive.start()
        assert len(drive.model.requests) == 7, "another text, and a turn that only calls a tool, are in between"
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.fault is not None
    expected = f"The model gave {kind} 3 times and called no tool, so the step was not reported."
    assert (result.fault.code, result.fault.message) == ("VALIDATION_ERROR", expected)
    async with driving(harness, report) as drive:
        assert (await drive.resume(result.position.run)).status == "complete"


@pytest.mark.inv("DRIVE-7")
@pytest.mark.parametrize(("stated", "sent"), [({}, [None, None]), ({"max_tokens": 90}, [90, 85])])
async def test_the_limit_of_a_run_is_no_limit_of_an_answer(stated: dict[str, int], sent: list[int | None]) -> None:
    limited = profile(constraints={"max_tokens": 100}, llm={"parameters": stated})
    async with driving(Harness.in_memory(linear_workflow("test.abc", "a", "b")), report, limited) as drive:
        assert (await drive.start()).status == "complete"
        assert [one.parameters.get("max_tokens") for one in drive.model.requests] == sent


@pytest.mark.inv("DRIVE-14")
async def test_the_same_refused_report_three_times_in_a_row_ends_the_drive_and_the_run_can_be_resumed() -> None:
    def same(_request: InferenceRequest) -> InferenceResponse:
        return said(("report_step", {"notes": "I ran all the tests after the change, and every one of them passed."}))

    harness = provable()
    async with driving(
        harness, each(report, same, report, same, calls(("note_progress", {"notes": "x"})), same, same)
    ) as drive:
        result = await drive.start("test.flow", context={"test_command": TESTS})
        assert len(drive.model.requests) == 7, "other reports and turns without one are in between"
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.fault is not None
    assert result.fault.message == (
        "The model sent the same report 3 times, and each was refused: The step demands proof that `make test`"
        f" ended with 0: there is no receipt. Run `interlock witness {result.position.label} -- make test` in the"
        " workspace of the run. If it ends with 0, make the call that this answer shows, and change no file in between."
    )
    assert result.position.tokens.ack is not None
    async with driving(harness, same) as drive:
        again = await drive.resume(result.position.run)
        assert (again.status, len(drive.model.requests)) == ("failed", 3)
