"""Each contradiction between lifecycle events and their plan is found: one changed line of a sound list for each."""

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from tests.support.flow import choose, document, loop, step
from tests.support.lifecycle import events_of, lifecycle_at, run_of

from interlock.plan.records import Plan
from interlock.testing.conformance import FaultCode, faults_of
from interlock.testing.harness import Harness

Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound() -> tuple[Events, Plan]:
    """A run with a choice, a loop, a refused attempt and a checkpoint, to its end."""
    either = choose("way", ({"var": "mode", "equals": "fast"}, [step("fast")]), otherwise=[step("slow")])
    harness = Harness.in_memory(
        document(step("a"), either, loop("again", step("b"), **{"for": {"count": 2}}), step("c"))
    )
    start = answer = harness.start("test.flow", context={"mode": "fast"})
    harness.checkpoint(start)
    answer = harness.advance(harness.advance(start, None))
    while not answer["isComplete"]:
        answer = harness.advance(answer)
    return events_of(lifecycle_at(harness, start)), run_of(harness, start).workflow.plan


def at(events: Events, kind: str, instance: str | None = None) -> int:
    """Return the place of the first such event."""
    return next(
        number
        for number, event in enumerate(events)
        if event["kind"] == f"workflow.{kind}" and instance in (None, event.get("instance"))
    )


def without(kind: str, instance: str | None = None) -> Callable[[Events], None]:
    def change(events: Events) -> None:
        del events[at(events, kind, instance)]

    return change


def with_member(kind: str, place: str | None = None, /, **members: Any) -> Callable[[Events], None]:
    def change(events: Events) -> None:
        event = events[at(events, kind, place)]
        for name, value in members.items():
            if value is None:
                del event[name]
            else:
                event[name] = value

    return change


def repeated(kind: str, instance: str | None = None, *, last: bool = False) -> Callable[[Events], None]:
    def change(events: Events) -> None:
        place = at(events, kind, instance)
        events.insert(len(events) if last else place + 1, events[place])

    return change


REF = {"kind": "event", "ref": "1"}
CHANGES: dict[str, Callable[[Events], None]] = {
    "unknown_node": with_member("node.scheduled", "a", node="nowhere", instance="nowhere"),
    "unknown_edge": with_member("edge.traversed", "a", edge="a>nowhere"),
    "before_run_created": without("run.created"),
    "created_twice": repeated("run.created"),
    "after_end": repeated("node.scheduled", "a", last=True),
    "ended_twice": repeated("run.completed"),
    "scheduled_too_early": without("edge.traversed", "a"),
    "started_without_schedule": without("node.scheduled", "a"),
    "completed_without_start": without("node.started", "fast"),
    "edge_not_open": without("node.completed", "a"),
    "attempt_out_of_order": with_member("node.retried", "a", attempt=3),
    "retried_without_failure": without("node.failed", "a"),
    "failure_without_reason": with_member("node.failed", "a", code=None),
    "ended_with_open_nodes": without("node.completed", "c"),
    "checkpoint_without_reference": with_member("checkpoint.saved", refs=[REF]),
    "over_budget": with_member("node.scheduled", "a", refs=[REF] * 17),
    "not_an_identifier": with_member("node.failed", "a", code="the password is hunter2"),
}


def test_a_sound_list_has_no_fault(sound: tuple[Events, Plan]) -> None:
    events, plan = sound
    assert faults_of(events, plan) == ()


@pytest.mark.inv("LIFE-9")
@pytest.mark.parametrize("code", CHANGES)
def test_one_changed_line_is_found_with_its_code_and_its_place(code: str, sound: tuple[Events, Plan]) -> None:
    events, plan = json.loads(json.dumps(sound[0])), sound[1]
    CHANGES[code](events)
    faults = faults_of(events, plan)
    assert code in {fault.code for fault in faults}
    assert all(fault.line is not None and fault.where for fault in faults)


@pytest.mark.inv("LIFE-9")
def test_a_broken_plan_is_the_only_fault(sound: tuple[Events, Plan]) -> None:
    events, plan = sound
    broken = plan.changed(edges=plan.edges[1:])
    assert {fault.code for fault in faults_of(events, broken)} == {"invalid_plan"}


@pytest.mark.inv("LIFE-9")
def test_all_faults_are_reported_at_once(sound: tuple[Events, Plan]) -> None:
    events, plan = json.loads(json.dumps(sound[0])), sound[1]
    CHANGES["failure_without_reason"](events)
    CHANGES["checkpoint_without_reference"](events)
    CHANGES["ended_twice"](events)
    found = {fault.code for fault in faults_of(events, plan)}
    assert found == {"failure_without_reason", "checkpoint_without_reference", "ended_twice"}


def test_a_pass_that_begins_before_the_one_before_has_ended_is_too_early(sound: tuple[Events, Plan]) -> None:
    events, plan = json.loads(json.dumps(sound[0])), sound[1]
    events[at(events, "node.scheduled", "again@0::b")]["instance"] = "again@1::b"
    assert "scheduled_too_early" in {fault.code for fault in faults_of(events, plan)}


def test_an_end_of_the_run_needs_a_reason(sound: tuple[Events, Plan]) -> None:
    events, plan = json.loads(json.dumps(sound[0])), sound[1]
    events[-1]["kind"] = "workflow.run.cancelled"
    assert [fault.code for fault in faults_of(events, plan)] == ["failure_without_reason"]
    events[-1]["code"] = "superseded"
    assert faults_of(events, plan) == ()


@pytest.mark.parametrize("line", [None, 7, "text", [], {}, {"v": 2}])
def test_what_is_no_event_is_reported_and_the_rest_is_still_checked(line: object, sound: tuple[Events, Plan]) -> None:
    events, plan = sound
    faults = faults_of([*events[:3], line, *events[3:]], plan)
    assert {(fault.code, fault.line) for fault in faults} == {("not_an_identifier", 3)}


def test_every_code_has_its_change() -> None:
    assert {*CHANGES, "invalid_plan"} == set(get_args(FaultCode))
