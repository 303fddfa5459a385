"""The lifecycle of a run: eleven kinds of events, derived from the log, bounded, and without any text that was sent."""

import json
from typing import Any

import pytest
from tests.support.flow import declared, document, loop, step
from tests.support.lifecycle import events_of, in_short, lifecycle_at, node_at, run_of

from interlock.kernel.budgets.workflow import (
    CAPTURE_BYTES_MAX,
)
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.shape.mirror import mirror_of
from interlock.service.run.evidence.sent import stored_object
from interlock.service.run.lifecycle import read_lifecycle
from interlock.testing.harness import Harness, linear_workflow
from interlock.views.lifecycle.events import LifecycleEvent
from interlock.views.lifecycle.projection import Sources, lifecycle_of
from interlock.views.lifecycle.state import instance_states, resume_point

LINEAR = linear_workflow("test.linear", "a", "b", "c")
SECRET = "password=hunter2"


@pytest.fixture
def harness() -> Harness:
    return Harness.in_memory(LINEAR)


@pytest.mark.inv("LIFE-1", "LIFE-8")
def test_a_run_begins_with_its_creation_and_the_schedule_of_its_first_step(harness: Harness) -> None:
    start = harness.start("test.linear")
    assert in_short(lifecycle_at(harness, start)) == ["run.created", "scheduled a", "started a 1"]


@pytest.mark.inv("LIFE-1", "LIFE-8")
def test_a_run_to_its_end_is_reported_step_by_step(harness: Harness) -> None:
    start = harness.start("test.linear")
    answer = harness.advance(harness.advance(harness.advance(start)))
    assert answer["isComplete"]
    assert in_short(lifecycle_at(harness, start)) == [
        "run.created",
        *("scheduled a", "started a 1", "completed a 1", "edge.traversed a a>b"),
        *("scheduled b", "started b 1", "completed b 1", "edge.traversed b b>c"),
        *("scheduled c", "started c 1", "completed c 1", "edge.traversed c c>--end"),
        *("scheduled --end", "completed --end", "run.completed"),
    ]


@pytest.mark.inv("LIFE-3", "LIFE-7")
def test_a_refused_report_stays_in_the_list_when_the_next_one_succeeds(harness: Harness) -> None:
    start = harness.start("test.linear")
    refused = harness.advance(start, None)
    assert in_short(lifecycle_at(harness, start))[-1] == "failed a 1 MISSING_REQUIRED_OUTPUT"
    again = harness.advance(refused, None)
    harness.advance(again)
    lifecycle = lifecycle_at(harness, start)
    assert in_short(lifecycle)[2:9] == [
        "started a 1",
        "failed a 1 MISSING_REQUIRED_OUTPUT",
        "retried a 2",
        "failed a 2 MISSING_REQUIRED_OUTPUT",
        "retried a 3",
        "completed a 3",
        "edge.traversed a a>b",
    ]
    states = {one.instance: one for one in instance_states(lifecycle, run_of(harness, start).workflow)}
    assert states["a"].state == "completed"
    assert states["a"].failed == ("MISSING_REQUIRED_OUTPUT", "MISSING_REQUIRED_OUTPUT")
    assert states["b"].state == "started"
    assert states["c"].state == "pending"


@pytest.mark.inv("LIFE-8")
def test_a_replayed_report_and_a_look_change_nothing(harness: Harness) -> None:
    start = harness.start("test.linear")
    harness.advance(start)
    before = events_of(lifecycle_at(harness, start))
    harness.advance(start)
    harness.rehydrate(start)
    assert events_of(lifecycle_at(harness, start)) == before


@pytest.mark.inv("LIFE-1", "LIFE-4")
def test_a_checkpoint_is_one_event_with_its_node_and_its_snapshot(harness: Harness) -> None:
    start = harness.start("test.linear")
    harness.checkpoint(start)
    (event,) = [one for one in lifecycle_at(harness, start).events if one.kind == "workflow.checkpoint.saved"]
    session = run_of(harness, start).session
    (node,) = [node for node in session.nodes.values() if node.kind == "checkpoint"]
    assert {ref.kind: ref.ref for ref in event.refs} == {
        "event": str(node.index),
        "log_node": node.node,
        "snapshot": node.snapshot,
    }


@pytest.mark.inv("LIFE-8")
def test_each_branch_shows_its_own_path_alone(harness: Harness) -> None:
    start = harness.start("test.linear")
    at_b = harness.advance(start)
    at_c = harness.advance(at_b)
    other = harness.advance(str(harness.rehydrate(start)["fork"]["ackToken"]), None)
    assert in_short(lifecycle_at(harness, start, node_at(harness, other)))[-1] == "failed a 1 MISSING_REQUIRED_OUTPUT"
    first = in_short(lifecycle_at(harness, start, node_at(harness, at_c)))
    assert "failed a 1 MISSING_REQUIRED_OUTPUT" not in first
    assert first[-1] == "started c 1"


@pytest.mark.inv("LIFE-2")
def test_no_text_that_was_sent_is_in_the_view_and_each_event_is_within_its_budget() -> None:
    harness = Harness.in_memory(
        document(step("a", prompt=f"Say {SECRET}."), step("b"), inputs=[declared("k", description=f"Not {SECRET}.")])
    )
    start = harness.start("test.flow", goal=SECRET, context={"k": SECRET})
    artifact = {"kind": "team.note", "text": SECRET}
    harness.checkpoint(start, SECRET)
    harness.advance(
        start, SECRET * 600, context={"k": SECRET + "!"}, output={"notesMarkdown": SECRET, "artifacts": [artifact] * 1}
    )
    lifecycle = lifecycle_at(harness, start)
    assert SECRET not in json.dumps(events_of(lifecycle))
    assert "hunter2" not in json.dumps(events_of(lifecycle))
    assert "completed a 1" in in_short(lifecycle)


@pytest.mark.inv("LIFE-2", "LIFE-4")
def test_more_references_than_an_event_holds_are_counted(harness: Harness) -> None:
    start = harness.start("test.linear")
    artifacts = [{"kind": "team.note", "number": number} for number in range(20)]
    harness.advance(start, None, output={"notesMarkdown": "Done.", "artifacts": artifacts})
    (event,) = [one for one in lifecycle_at(harness, start).events if one.kind == "workflow.node.completed"]
    assert len(event.refs) == 16
    assert event.refs_left_out == 2 + 1 + 2 * 20 - 16


def test_a_loop_whose_passes_are_all_skipped_in_one_report_is_shown_pass_by_pass() -> None:
    never = {"var": "mode", "equals": "never"}
    harness = Harness.in_memory(
        document(step("a"), loop("again", step("b", when=never), **{"for": {"count": 3}}), step("c"))
    )
    start = harness.start("test.flow", context={"mode": "slow"})
    harness.advance(start)
    lifecycle = lifecycle_at(harness, start)
    assert lifecycle.skipped == ("again@0::b", "again@1::b", "again@2::b")
    for number in range(3):
        reached = [one.instance for one in lifecycle.events if one.kind == "workflow.node.scheduled"]
        assert any(one is not None and one.startswith(f"again@{number}::") for one in reached)
    assert in_short(lifecycle)[-1] == "started c 1"


def test_a_view_says_where_decisions_were_left_out_and_goes_on_after_it() -> None:
    long = {"var": "text", "equals": "x"}
    steps = [step(f"s{number}", when=long) for number in range(CAPTURE_BYTES_MAX // 200)]
    harness = Harness.in_memory(document(step("a"), *steps, step("end"), inputs=[declared("text")]))
    start = harness.start("test.flow", context={"text": "y" * 200})
    at_end = harness.advance(start)
    lifecycle = lifecycle_at(harness, start)
    (partial,) = lifecycle.partial
    assert partial.reason == "decisions_left_out"
    assert partial.node == node_at(harness, at_end).node
    assert in_short(lifecycle)[-2:] == ["scheduled end", "started end 1"]
    harness.advance(at_end)
    assert in_short(lifecycle_at(harness, start))[-1] == "run.completed"


def test_a_missing_capture_makes_the_view_partial() -> None:
    harness = Harness.in_memory(document(step("a"), step("b", when={"var": "mode", "equals": "fast"}), step("c")))
    start = harness.start("test.flow", context={"mode": "slow"})
    at_c = harness.advance(start)
    run, node = run_of(harness, start), node_at(harness, at_c)
    sources = Sources(capture=lambda _: None, snapshot=run.snapshot)
    lifecycle = lifecycle_of(run.session, node, run.workflow, sources)
    assert [one.reason for one in lifecycle.partial] == ["capture_missing"]
    assert in_short(lifecycle)[-1] == "started c 1"
    assert not read_lifecycle(harness.store, run, node).partial


def test_another_decision_than_the_recorded_one_is_found_by_the_snapshot() -> None:
    harness = Harness.in_memory(document(step("a"), step("b", when={"var": "mode", "equals": "fast"}), step("c")))
    start = harness.start("test.flow", context={"mode": "slow"})
    node = node_at(harness, harness.advance(start))
    run = run_of(harness, start)

    def altered(digest: Any) -> dict[str, Any]:
        capture: dict[str, Any] = stored_object(harness.store, digest)
        return {**capture, "decisions": [{**one, "verdict": not one["verdict"]} for one in capture["decisions"]]}

    lifecycle = lifecycle_of(run.session, node, run.workflow, Sources(capture=altered, snapshot=run.snapshot))
    assert [one.reason for one in lifecycle.partial] == ["snapshot_differs"]


@pytest.mark.inv("LIFE-5", "LIFE-10")
def test_a_fresh_process_knows_the_last_and_the_next_step_and_writes_nothing(tmp_path: Any) -> None:
    documents = linear_workflow("test.linear", "a", "b", "c", "d")
    start = Harness.on_disk(tmp_path, documents).start("test.linear")
    harness = Harness.on_disk(tmp_path, documents)
    harness.advance(harness.advance(start))
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    fresh = Harness.on_disk(tmp_path, documents)
    run = run_of(fresh, start)
    assert run.run.tip is not None
    point = resume_point(run.session, run.session.nodes[run.run.tip], run.workflow, run.snapshot)
    assert (point.last_completed, point.next_runnable, point.obstacle) == ("b", "c", None)
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_continued_says_why(harness: Harness) -> None:
    start = harness.start("test.linear")
    at_b = harness.advance(start)
    run = run_of(harness, start)
    passed = resume_point(run.session, node_at(harness, start), run.workflow, run.snapshot)
    assert passed.obstacle == "step_done"
    harness.advance(harness.advance(at_b))
    run = run_of(harness, start)
    assert run.run.tip is not None
    end = resume_point(run.session, run.session.nodes[run.run.tip], run.workflow, run.snapshot)
    assert (end.obstacle, end.next_runnable, end.last_completed) == ("complete", None, "c")
    second = last = harness.start("test.linear")
    for _ in range(9):
        last = harness.advance(last, None)
    run = run_of(harness, second)
    used = resume_point(run.session, node_at(harness, last), run.workflow, run.snapshot)
    assert used.obstacle == "attempts_used_up"


@pytest.mark.inv("LIFE-1", "LIFE-2")
def test_an_event_takes_no_member_that_is_not_in_the_published_schema(harness: Harness) -> None:
    (event, *_) = events_of(lifecycle_at(harness, harness.start("test.linear")))
    assert LifecycleEvent.of_json(event).to_bytes() == canonical_bytes(event)
    schema = mirror_of(LifecycleEvent).model_json_schema(by_alias=True)
    assert schema["additionalProperties"] is False
    assert set(event) <= set(schema["properties"])
    with pytest.raises(ValueError, match="note"):
        LifecycleEvent.of_json({**event, "note": SECRET})
