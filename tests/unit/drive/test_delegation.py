"""Several agents on one run: a handoff, parallel steps, and a run of its own that is watched."""

from typing import Any

import anyio
import pytest
from tests.support.drive import Answer, FakeModel, calls, each, profile, report, said, team, tool

from interlock.drive.agent.profile import Profile
from interlock.drive.client import StartOptions
from interlock.drive.effects import Effects
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.testing.harness import Harness, linear_workflow

ABC = linear_workflow("test.abc", "a", "b", "c")
BEGIN = StartOptions(workflow_id="test.abc")
pytestmark = pytest.mark.asyncio


def lead(**rule: Any) -> Profile:
    return profile(identity={"id": "lead"}, delegation=[{"target_agent": "other", **rule}])


def other(**members: Any) -> Profile:
    return profile(identity={"id": "other"}, role="You are the other one.", **members)


def steps_of(model: FakeModel) -> list[str]:
    return [request.place.step_id for request in model.requests]


@pytest.mark.inv("DELEG-1")
async def test_a_handoff_releases_the_step_and_the_other_agent_continues_the_same_run() -> None:
    harness = Harness.in_memory(ABC)
    members = {"other": (other(), report)}
    async with team(harness, (lead(type="handoff", steps=["b"]), report), members) as (crew, caller, models):
        result = await crew.start(BEGIN)
        assert (result.status, result.turns) == ("complete", 3)
        assert (steps_of(models["lead"]), steps_of(models["other"])) == (["a", "c"], ["b"])
        released = [
            one
            for name, arguments in caller.called
            if name == "checkpoint_workflow"
            for one in arguments["output"].get("artifacts", [])
        ]
    assert [one for one in released if one["kind"] == "wr.work_record"] == [
        {"kind": "wr.work_record", "work": "released", "reason": "handoff"}
    ]
    (session,) = harness.ports.read.reader.sessions()
    actors = [
        event.actor.identifier for event in harness.events(session) if event.kind == "advance_recorded" and event.actor
    ]
    assert actors == ["drive:lead", "drive:other", "drive:lead"]


@pytest.mark.inv("DELEG-2")
@pytest.mark.parametrize("include", [False, True])
async def test_history_state_and_own_context_are_passed_on_only_if_the_profile_says_so(*, include: bool) -> None:
    seen: list[Any] = []

    async def keep(_arguments: Any, context: Any) -> object:
        await context.state.set("key", 1)
        return {}

    async def look(_arguments: Any, context: Any) -> object:
        seen.append(await context.state.get("key"))
        return {}

    passed = {"include_history": include, "include_state": include, "custom_context": {"ticket": "T-1"}}
    led = lead(type="handoff", steps=["b"], context_propagation=passed)
    functions = {"keep": tool(keep), "look": tool(look)}
    named = [{"name": name, "type": "function"} for name in functions]
    led = led.model_copy(update={"tools": profile(tools=named).tools})
    members = {"other": (other(tools=named), each(calls(("look", {}))))}
    async with team(Harness.in_memory(ABC), (led, each(calls(("keep", {})))), members, functions=functions) as (
        crew,
        _,
        models,
    ):
        result = await crew.start(BEGIN)
        assert result.status == "complete"
        first = models["other"].requests[0]
    outcome = [message.text() for message in first.messages]
    assert ("# Step 1 of 3: Step a" in "\n".join(outcome)) == include
    assert seen == [1 if include else None]
    delegated = next(one for one in first.messages if one.origin.source == "delegation")
    assert result.position.run in delegated.text()
    assert "T-1" in delegated.text()


def parallel_workflow() -> dict[str, Any]:
    steps = [{"id": name, "title": f"Step {name}", "prompt": f"Do {name}."} for name in "xy"]
    branches = [{"steps": [one]} for one in steps]
    return linear_workflow("test.abc", {"id": "both", "title": "Both", "type": "parallel", "branches": branches}, "z")


@pytest.mark.inv("DELEG-1")
async def test_parallel_steps_are_worked_on_at_once_and_reported_in_the_order_of_the_plan() -> None:
    finished: list[str] = []
    second = anyio.Event()

    async def work(request: InferenceRequest) -> InferenceResponse:
        if request.place.step_id == "x":
            await second.wait()
        else:
            second.set()
        finished.append(request.place.step_id)
        text = f"The block {request.place.step_id} was built alone, beside the other one, with a result of its own."
        return said(("report_step", {"notes": text}))

    led = lead(type="parallel", steps=["x", "y"])
    harness = Harness.in_memory(parallel_workflow())
    async with team(harness, (led, report), {"other": (other(), work)}) as (crew, caller, models):
        result = await crew.start(BEGIN)
        assert (result.status, result.turns) == ("complete", 3)
        assert finished == ["y", "x"]
        records = [(one["turn"], one["stepId"], one["agent"]) for one in caller.records()]
        assert records == [(1, "x", "other"), (2, "y", "other"), (3, "z", "lead")]
        assert steps_of(models["lead"]) == ["z"]


@pytest.mark.inv("DELEG-1")
@pytest.mark.parametrize("delegated", [["x", "y", "after-x", "after-y"], ["x", "y"]])
async def test_a_parallel_step_is_worked_on_once_though_other_steps_are_reported_before_it(
    delegated: list[str],
) -> None:
    worked: list[str] = []

    async def work(request: InferenceRequest) -> InferenceResponse:
        worked.append(request.place.step_id)
        return said(("report_step", {"notes": f"{request.place.step_id} was done alone, with a result of its own."}))

    branches = [[{"id": one, "title": one, "prompt": f"Do {one}."} for one in (name, f"after-{name}")] for name in "xy"]
    both = {"id": "both", "title": "Both", "type": "parallel", "branches": [{"steps": steps} for steps in branches]}
    harness = Harness.in_memory(linear_workflow("test.abc", both, "z"))
    led = lead(type="parallel", steps=delegated)
    async with team(harness, (led, report), {"other": (other(), work)}) as (crew, caller, _):
        result = await crew.start(BEGIN)
        assert (result.status, result.turns) == ("complete", 5)
        records = [(one["turn"], one["stepId"]) for one in caller.records()]
        assert records == [(1, "x"), (2, "after-x"), (3, "y"), (4, "after-y"), (5, "z")]
        assert sorted(worked) == sorted(delegated)


@pytest.mark.inv("DELEG-3")
async def test_no_model_is_asked_to_work_on_a_parallel_step_that_waits_or_that_may_be_skipped() -> None:
    on_red = {"id": "repair", "title": "Repair", "prompt": "Repair it.", "when": {"var": "red", "equals": True}}
    branches = [
        {"steps": [{"id": "x", "title": "X", "prompt": "Do x.", "set": [{"key": "red", "value": False}]}]},
        {"steps": [on_red, {"id": "after", "title": "After", "prompt": "Do it after that."}]},
        {"steps": [{"id": "ask", "title": "Ask", "type": "approve", "question": "Ship it?"}]},
    ]
    both = {"id": "both", "title": "Both", "type": "parallel", "branches": branches}
    inputs = [{"key": "red", "type": "boolean", "description": "Whether it is red.", "required": False}]
    harness = Harness.in_memory(linear_workflow("test.abc", both, "z", inputs=inputs))
    led = lead(type="parallel", steps=["x", "repair", "after", "ask"])
    async with team(harness, (led, report), {"other": (other(), report)}) as (crew, _, models):
        result = await crew.start(BEGIN)
        assert (result.status, result.position.step and result.position.step.step_id) == ("person_needed", "ask")
        assert steps_of(models["other"]) == ["x", "after"]


@pytest.mark.inv("DELEG-3", "DRIVE-8")
async def test_a_parallel_report_that_needs_a_person_is_kept_in_the_log_with_what_it_used() -> None:
    steps = [{"id": name, "title": name, "prompt": f"Do {name}.", "requireConfirmation": name == "y"} for name in "xy"]
    both = {"id": "both", "title": "Both", "type": "parallel", "branches": [{"steps": [one]} for one in steps]}
    led = lead(type="parallel", steps=["x", "y"])
    harness = Harness.in_memory(linear_workflow("test.abc", both, "z"))
    async with team(harness, (led, report), {"other": (other(), report)}) as (crew, caller, models):
        result = await crew.start(BEGIN)
        assert (result.status, steps_of(models["other"])) == ("person_needed", ["x", "y"])
        assert result.usage.tokens == 30
        last = caller.records()[-1]
        assert (last["stepId"], last["status"], last["usage"]["inputTokens"]) == ("y", "waiting", 10)
        again = await crew.resume(result.position.run)
        assert (again.status, again.usage.tokens, models["other"].requests) == ("person_needed", 30, [])


@pytest.mark.inv("DRIVE-8")
async def test_agents_at_work_at_the_same_time_use_up_one_limit() -> None:
    led = lead(type="parallel", steps=["x", "y"]).model_copy(
        update={"constraints": profile(constraints={"max_tokens": 40}).constraints}
    )
    talking = calls(text="Not yet.")
    members: dict[str, tuple[Profile, Answer]] = {"other": (other(), talking)}
    async with team(Harness.in_memory(parallel_workflow()), (led, report), members) as (crew, _, models):
        result = await crew.start(BEGIN)
        assert len(models["other"].requests) == 3
    assert (result.status, result.usage.tokens) == ("budget_used_up", 45)


@pytest.mark.inv("DELEG-1")
async def test_a_supervised_agent_works_a_run_of_its_own_in_the_session_and_its_end_is_an_input_of_the_lead() -> None:
    child = linear_workflow("test.child", "one", "two")
    harness = Harness.in_memory(ABC, child)
    led = lead(type="supervisor", steps=["b"], workflow="test.child")
    async with team(harness, (led, report), {"other": (other(), report)}) as (crew, _, models):
        result = await crew.start(BEGIN)
        assert result.status == "complete"
        assert (steps_of(models["lead"]), steps_of(models["other"])) == (["a", "b", "c"], ["one", "two"])
        asked = models["lead"].requests[1].messages
    assert any("ended run" in one.text() and "complete" in one.text() for one in asked)
    assert len(list(harness.ports.read.reader.sessions())) == 1


@pytest.mark.inv("DELEG-1")
async def test_a_drive_whose_supervised_agent_stops_is_continued_by_the_run_of_the_lead() -> None:
    harness = Harness.in_memory(ABC, linear_workflow("test.child", "one", "two"))
    led = lead(type="supervisor", steps=["b"], workflow="test.child")
    async with team(harness, (led, report), {"other": (other(constraints={"max_turns": 2}), report)}) as (crew, _, _):
        result = await crew.start(BEGIN)
    assert (result.status, result.position.workflow_id, result.turns) == ("budget_used_up", "test.abc", 1)
    assert result.fault is not None
    assert result.fault.message.startswith("The agent 'other' stopped in run ")
    assert "of test.child: The run has had 2 turns; 2 are allowed." in result.fault.message
    async with team(harness, (led, report), {"other": (other(), report)}) as (crew, _, models):
        again = await crew.resume(result.position.run)
        assert (again.status, again.position.workflow_id) == ("complete", "test.abc")
        assert (steps_of(models["lead"]), steps_of(models["other"])) == (["b", "c"], ["two"])


@pytest.mark.inv("DELEG-1", "FAULT-3")
@pytest.mark.parametrize(
    ("on_failure", "status", "requests"),
    [("escalate", "person_needed", 1), ("retry", "person_needed", 2), ("fallback", "complete", 1)],
)
async def test_a_failed_delegation_is_escalated_tried_again_or_done_by_the_lead(
    on_failure: str, status: str, requests: int
) -> None:
    def down(_: InferenceRequest) -> InferenceResponse:
        raise TurnError(Fault(code="LLM_ERROR", message="The model is down."))

    led = lead(type="handoff", steps=["b"], on_failure=on_failure)
    async with team(Harness.in_memory(ABC), (led, report), {"other": (other(), down)}) as (crew, _, models):
        result = await crew.start(BEGIN)
        assert (result.status, len(models["other"].requests)) == (status, requests)
    if status == "person_needed":
        assert result.fault is not None
        assert result.fault.code == "DELEGATION_FAILED"
        assert "The model is down." in result.fault.message


@pytest.mark.inv("DELEG-1")
async def test_a_delegation_that_takes_too_long_is_cancelled_and_failed() -> None:
    async def hang() -> InferenceResponse:
        await anyio.sleep_forever()
        raise AssertionError

    led = lead(type="handoff", steps=["b"], timeout_ms=300)
    members: dict[str, tuple[Profile, Answer]] = {"other": (other(), lambda _: hang())}
    async with team(Harness.in_memory(ABC), (led, report), members) as (crew, _, _models):
        result = await crew.start(BEGIN)
    assert result.status == "person_needed"
    assert result.fault is not None
    assert "300 ms" in result.fault.message


LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"constraints": {"max_turns": 2}}, "MAX_TURNS_EXCEEDED"),
    ({"constraints": {"max_tokens": 20}}, "MAX_TOKENS_EXCEEDED"),
    ({"budget": {"max_cost": 0.00002, "input_price": 1, "output_price": 1}}, "QUOTA_EXCEEDED"),
]


@pytest.mark.inv("DRIVE-8")
@pytest.mark.parametrize("kind", ["handoff", "supervisor"])
@pytest.mark.parametrize(("limit", "code"), LIMITS)
async def test_the_limits_of_the_lead_hold_for_what_it_delegates(kind: str, limit: dict[str, Any], code: str) -> None:
    rule = {"target_agent": "other", "type": kind, "steps": ["b", "c"], "workflow": "test.child"}
    led = profile(identity={"id": "lead"}, delegation=[rule], **limit)
    prices = {"budget": {"input_price": 1, "output_price": 1}}
    harness = Harness.in_memory(ABC, linear_workflow("test.child", "one", "two", "three"))
    async with team(harness, (led, report), {"other": (other(**prices), report)}) as (crew, _, models):
        result = await crew.start(BEGIN)
        assert sum(len(one.requests) for one in models.values()) == 2
    assert (result.status, result.exit_code) == ("budget_used_up", 5)
    assert result.fault is not None
    assert result.fault.code == code


@pytest.mark.inv("DRIVE-8")
async def test_the_seconds_of_a_drive_are_counted_from_its_beginning_whoever_works() -> None:
    led = profile(
        identity={"id": "lead"},
        delegation=[{"target_agent": "other", "type": "handoff", "steps": ["b", "c"]}],
        budget={"max_seconds": 10},
    )
    clocks: list[Effects] = []

    async def slowly(request: InferenceRequest) -> InferenceResponse:
        await clocks[0].sleep(6)
        return report(request)

    members: dict[str, tuple[Profile, Answer]] = {"other": (other(), slowly)}
    async with team(Harness.in_memory(ABC), (led, slowly), members) as (crew, _, _models):
        clocks.append(crew.lead.effects)
        result = await crew.start(BEGIN)
    assert result.status == "budget_used_up"
    assert result.fault is not None
    assert "12.0 s" in result.fault.message
