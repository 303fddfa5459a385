"""A step that waits for something: the driver asks again with a growing pause, and ends resumable at its deadline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from tests.support.approvals import asking
from tests.support.drive import FakeEffects, FakeModel, driving, profile, report
from tests.support.outside import PERSON

from interlock.drive.client import StartOptions
from interlock.drive.run.driver import Driver
from interlock.drive.run.setup import Surroundings, equip
from interlock.engine.outside import SentEvent
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import SessionId
from interlock.service.outside.receive import Arrival
from interlock.service.tools.send_event import send_event
from interlock.service.trust.approve import GivenAnswer, answer_approval
from interlock.testing.harness import Harness, linear_workflow

WAITING = {
    "for": "event",
    "event": "deploy.finished",
    "since": "2026-01-01T00:00:00.000Z",
    "how": "interlock event send",
}
RUN = {"label": "ab12", "workflowId": "test.waits", "sessionId": "sess_x", "runId": "run_x"}


class WaitingServer:
    """Answers as a server whose first step waits for an event that is there at the asked-for call."""

    def __init__(self, arrives_at: int, waiting: dict[str, str] = WAITING) -> None:
        self.arrives_at, self.waiting, self.calls = arrives_at, waiting, list[dict[str, Any]]()

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        self.calls.append({"tool": name, **(arguments or {})})
        acks = [one for one in self.calls if one["tool"] == "continue_workflow"]
        answer: dict[str, Any] = {"kind": "ok", "run": RUN, "nextCall": None, "stateToken": "st_x", "isComplete": False}
        if name == "resume_session":
            found = {"run": RUN, "stateToken": "st_x", "status": "in_progress"}
            return types.CallToolResult(content=[], structured_content={"candidates": [found]})
        if len(acks) >= self.arrives_at:
            answer |= {"isComplete": True, "pending": None}
        else:
            pending = {"stepId": "wait", "title": "Wait", "prompt": "Wait for it."}
            answer |= {"ackToken": "ack_x", "checkpointToken": "chk_x", "pending": pending, "waiting": self.waiting}
        return types.CallToolResult(content=[], structured_content=answer)

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        raise AssertionError(uri)


async def drive(server: WaitingServer, seconds: float) -> tuple[Any, FakeEffects, FakeModel]:
    effects, model = FakeEffects(), FakeModel(answer=report)
    around = Surroundings(workspace=Path("/nonexistent"), effects=effects)
    equipment = equip(profile(max_wait_seconds=seconds), model, server, around)
    async with equipment.toolbox:
        return await Driver(equipment).start(StartOptions(workflow_id="test.waits")), effects, model


@pytest.mark.inv("DRIVE-15")
@pytest.mark.asyncio
async def test_what_a_step_waits_for_is_asked_for_again_with_a_growing_pause_and_no_model_is_asked() -> None:
    server = WaitingServer(arrives_at=5)
    result, effects, model = await drive(server, seconds=60)
    assert result.status == "complete"
    assert effects.slept == [0.5, 1.0, 2.0, 4.0]
    assert model.requests == []
    assert all("output" not in one for one in server.calls), "nothing is sent as evidence"


@pytest.mark.inv("DRIVE-15")
@pytest.mark.asyncio
async def test_at_the_deadline_the_drive_ends_with_6_and_says_what_it_waits_for() -> None:
    result, effects, _ = await drive(WaitingServer(arrives_at=1_000), seconds=20)
    assert (result.status, result.exit_code) == ("waiting", 6)
    assert result.to_json()["waiting"] == WAITING
    assert result.fault is not None
    assert result.fault.message == "The step waits for deploy.finished, which did not come."
    assert sum(effects.slept) == 20
    assert max(effects.slept) <= 10


@pytest.mark.inv("DRIVE-15")
@pytest.mark.asyncio
async def test_a_check_that_runs_longer_than_the_drive_waits_ends_it_with_6_and_says_that_it_runs() -> None:
    how = "Interlock runs the check `tests`. The step asks for no work; the call returns the result."
    result, _, model = await drive(WaitingServer(1_000, {"for": "check", "event": "tests", "how": how}), seconds=20)
    assert (result.status, result.exit_code, model.requests) == ("waiting", 6, [])
    assert result.fault is not None
    assert result.fault.message == "The check `tests` runs, and gave no result within 20 seconds."


@pytest.mark.inv("DRIVE-15")
@pytest.mark.asyncio
@pytest.mark.parametrize("arrives", [True, False])
async def test_a_real_step_that_waits_is_passed_when_its_event_arrives_and_left_resumable_if_it_does_not(
    *, arrives: bool
) -> None:
    waits = {
        "type": "await",
        "id": "ci",
        "title": "Wait for CI",
        "event": "ci.finished",
        "fields": {"status": "string"},
    }
    harness = Harness.in_memory(linear_workflow("test.abc", "a", waits, "b"))
    effects = ArrivingEffects(harness=harness) if arrives else FakeEffects()
    async with driving(harness, report, profile(max_wait_seconds=30), effects=effects) as drive:
        result = await drive.start()
        assert [request.place.step_id for request in drive.model.requests] == (["a", "b"] if arrives else ["a"])
    if arrives:
        assert result.status == "complete"
        return
    assert (result.status, result.exit_code) == ("waiting", 6)
    assert result.to_json()["waiting"]
    (session,) = harness.ports.read.reader.sessions()
    arrive(harness, session)
    async with driving(harness, report) as drive:
        assert (await drive.resume(result.position.run)).status == "complete"


@pytest.mark.inv("DRIVE-17")
@pytest.mark.asyncio
async def test_a_question_to_a_person_ends_the_drive_at_once_with_3_and_the_commands_that_answer_it() -> None:
    harness = Harness.in_memory(asking(note="required"))
    async with driving(harness, report) as drive:
        result = await drive.start("test.flow")
        assert drive.effects.slept == []
    label = result.position.label
    assert (result.status, result.exit_code) == ("person_needed", 3)
    assert result.fault is not None
    assert result.fault.message == (
        "The step 'Agree the plan' asks a person: Do it this way? `interlock inbox` shows the question. Answer with"
        f" `interlock approve {label}` or `interlock reject {label} --note TEXT` in a terminal of your own, then"
        " continue the run."
    )
    assert result.to_json()["waiting"] == result.position.waiting
    (session,) = harness.ports.read.reader.sessions()
    answer(harness, session, "reject")
    async with driving(harness, report) as drive:
        result = await drive.resume(label)
        assert (result.status, drive.model.requests) == ("person_needed", [])
        assert result.fault is not None
        assert "Do it this way? So far the answer is 'reject' (observed)." in result.fault.message
    answer(harness, session, "approve")
    async with driving(harness, report) as drive:
        assert (await drive.resume(label)).status == "complete"


def answer(harness: Harness, session: SessionId, choice: str) -> None:
    """Answer the question of a step as a command does."""
    loaded = harness.ports.read.reader.load(session)
    assert loaded is not None
    (run,) = loaded.runs
    given = GivenAnswer(is_approved=choice == "approve", note="Seen.")
    done = answer_approval(harness.ports, (session, run), given, Arrival(via="command", assurance="observed"), PERSON)
    assert not isinstance(done, Refusal), done


@dataclass(kw_only=True)
class ArrivingEffects(FakeEffects):
    """Sends the event while the driver pauses for the second time."""

    harness: Harness

    async def sleep(self, seconds: float) -> None:
        await FakeEffects.sleep(self, seconds)
        if len(self.slept) == 2:
            (session,) = self.harness.ports.read.reader.sessions()
            arrive(self.harness, session)


def arrive(harness: Harness, session: SessionId) -> None:
    """Send the event as a command does."""
    loaded = harness.ports.read.reader.load(session)
    assert loaded is not None
    (run,) = loaded.runs
    event = SentEvent.of_json({"event": "ci.finished", "id": "1", "fields": {"status": "green"}})
    sent = send_event(harness.ports, (session, run), event, Arrival(via="command", assurance="observed"), PERSON)
    assert not isinstance(sent, Refusal), sent
