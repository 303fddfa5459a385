"""Why a run went where it went: recorded within budgets, kept with what was read, and so open to a check."""

import json
from typing import Any

import pytest
from tests.support.flow import IS_FAST, Document, deciding, loop, step
from tests.support.modes import NEVER_STOPS, events_of, serving, session_of

from interlock.kernel.budgets.workflow import (
    CAPTURE_BYTES_MAX,
    CAPTURED_VALUE_BYTES_MAX,
    TRACE_BYTES_MAX,
    TRACE_ENTRIES_MAX,
    TRACE_EVENTS_MAX,
)
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.record.events import DecisionTraceAppendedEvent
from interlock.record.payloads import TraceEntry
from interlock.testing.harness import Harness, ToolResult

IS_SLOW: Document = {"var": "mode", "equals": "slow"}
LONG_NAMES = "x" * 90
SKIPPED = {"none": 0, "few": 5, "many": 40, "very many": 400}


def skipping(count: int) -> Harness:
    """Return a harness whose run decides so often in one go, and records long reasons for each."""
    long = {"var": "mode", "in": [f'"{number}"' * 40 for number in range(5)]}
    conditions = {f"{LONG_NAMES}{number:03}"[-100:]: long for number in range(count)}
    steps = [
        step(f"s{number:03}", when={"kind": "condition_ref", "conditionId": name})
        for number, name in enumerate(conditions)
    ]
    return serving(step("a"), *steps, step("z"), conditions=conditions)


def traces(harness: Harness, first: ToolResult) -> list[DecisionTraceAppendedEvent]:
    found = events_of(harness, first, "decision_trace_appended")
    return [event for event in found if isinstance(event, DecisionTraceAppendedEvent)]


def capture_of(harness: Harness, event: DecisionTraceAppendedEvent) -> Any:
    assert event.data.capture_ref is not None
    stored = harness.store.artifact(event.data.capture_ref)
    assert digest_of_bytes(stored) == event.data.capture_ref
    return json.loads(stored)


@pytest.mark.produces("event:decision_trace_appended")
@pytest.mark.inv("TRACE-1")
@pytest.mark.parametrize("name", SKIPPED)
def test_reasons_are_reported_in_events_within_their_budgets_and_the_last_counts_the_rest(name: str) -> None:
    count = SKIPPED[name]
    harness = skipping(count)
    first = harness.start("test.flow", context={"mode": "slow"})
    assert harness.advance(first)["pending"]["stepId"] == "z"
    found = traces(harness, first)
    entries = [entry for event in found for entry in event.data.entries]
    assert len(found) <= TRACE_EVENTS_MAX
    assert all(len(event.data.entries) <= TRACE_ENTRIES_MAX for event in found)
    assert all(len(event.to_bytes()) <= TRACE_BYTES_MAX for event in found)
    if not count:
        assert found == []
        return
    assert (len(found) > 1) == (count > TRACE_ENTRIES_MAX)
    assert entries[-1].summary == "Next: Step z"
    refs = [ref.to_json()["conditionId"] for entry in entries for ref in entry.refs or () if ref.kind == "condition_id"]
    assert refs == [f"{LONG_NAMES}{number:03}"[-100:] for number in range(len(refs))], "in order, none left out between"
    left_out = count + 1 - (len(refs) + 1)
    assert bool(left_out) == (count == 400)
    if left_out:
        assert entries[-2].summary == f"{left_out} further reasons are left out."
    assert len({event.data.trace_id for event in found}) == len(found)


@pytest.mark.inv("TRACE-1")
def test_the_events_of_one_trace_stand_in_one_segment() -> None:
    harness = skipping(400)
    first = harness.start("test.flow", context={"mode": "slow"})
    harness.advance(first)
    indexes = [event.event_index for event in traces(harness, first)]
    assert indexes == list(range(indexes[0], indexes[0] + len(indexes)))
    (child,) = [node for node in session_of(harness, first).nodes.values() if node.parent is not None]
    assert len(child.captures) == 1


@pytest.mark.inv("TRACE-2")
@pytest.mark.parametrize(
    ("more", "context"),
    [
        ({"for": {"countFrom": "level"}}, {"level": 0}),
        ({"forEach": {"items": "things"}}, {"things": []}),
        ({"while": IS_FAST}, {"mode": "slow"}),
        ({"until": IS_FAST}, {"mode": "fast"}),
    ],
)
def test_a_loop_without_a_pass_is_still_reported(more: Document, context: Document) -> None:
    harness = serving(step("a"), loop("l", step("b"), **more), step("z"))
    first = harness.start("test.flow", context=context)
    assert harness.advance(first)["pending"]["stepId"] == "z"
    kinds = [entry.kind for event in traces(harness, first) for entry in event.data.entries]
    assert kinds == ["evaluated_condition", "exited_loop", "selected_next_step"]


READINGS: dict[str, Document] = {
    "for": {"for": {"count": 2}},
    "forEach": {"forEach": {"items": "things"}},
    "while": {"while": {"var": "iteration", "lte": 2}},
    "until": {"until": {"var": "iteration", "gt": 2}},
}


def refs_of(entry: TraceEntry) -> Document:
    """Return what a reason refers to, by kind."""
    result = [ref.to_json() for ref in entry.refs or ()]
    return {str(ref.pop("kind")): next(iter(ref.values())) for ref in result}


@pytest.mark.inv("TRACE-2")
@pytest.mark.parametrize("kind", READINGS)
def test_every_reading_of_a_loop_is_reported_with_the_loop_and_its_pass(kind: str) -> None:
    harness = serving(loop("l", step("b"), **READINGS[kind]), step("z"))
    first = harness.start("test.flow", context={"things": [1, 2]})
    assert harness.advance(harness.advance(first))["pending"]["stepId"] == "z"
    result = [entry for event in traces(harness, first) for entry in event.data.entries]
    of_the_loop = [(entry.kind, refs_of(entry)) for entry in result if entry.kind != "selected_next_step"]
    assert {refs["loop_id"] for _, refs in of_the_loop} == {"l"}
    assert [refs["iteration"] for at, refs in of_the_loop if at == "evaluated_condition"] == [0, 1, 2]
    assert [refs["iteration"] for at, refs in of_the_loop if at == "entered_loop"] == [0, 1]
    assert [at for at, _ in of_the_loop].count("exited_loop") == 1
    named = {"condition_id" in refs for at, refs in of_the_loop if at == "evaluated_condition"}
    assert named == {kind in ("while", "until")}


@pytest.mark.inv("TRACE-2")
def test_loops_in_loops_are_each_reported_with_their_own_pass() -> None:
    inner = loop("inner", step("b"), **{"while": {"var": "iteration", "lte": 1}})
    harness = serving(loop("outer", inner, **{"while": {"var": "iteration", "lte": 2}}), step("z"))
    first = harness.start("test.flow")
    harness.advance(harness.advance(first))
    result = [
        refs_of(entry) for event in traces(harness, first) for entry in event.data.entries if "condition" in entry.kind
    ]
    assert [(refs["loop_id"], refs["iteration"]) for refs in result] == [
        ("outer", 0),
        ("inner", 0),
        ("inner", 1),
        ("outer", 1),
        ("inner", 0),
        ("inner", 1),
        ("outer", 2),
    ]


def test_a_choice_inside_a_loop_is_reported_as_no_reading_of_the_loop() -> None:
    harness = serving(loop("l", step("a"), step("b", when=IS_FAST), **{"for": {"count": 1}}))
    first = harness.start("test.flow", context={"mode": "fast"})
    harness.advance(first)
    (entry,) = [entry for entry in traces(harness, first)[-1].data.entries if "condition" in entry.kind]
    assert list(refs_of(entry)) == ["condition_id"]


@pytest.mark.inv("TRACE-2")
def test_a_step_that_is_handed_out_without_what_it_needs_is_reported() -> None:
    harness = serving(step("a"), step("b", needs=["box.size"]))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    gone_on = harness.advance(first)
    assert gone_on["pending"]["stepId"] == "b"
    assert gone_on.warnings == ["GAP_RECORDED"]
    (trace,) = traces(harness, first)
    assert [(entry.summary, refs_of(entry)) for entry in trace.data.entries] == [
        ("`b` needs `box.size`, which is not set; the step is given to the agent anyway.", {"step_id": "b"}),
        ("Next: Step b", {"step_id": "b"}),
    ]
    assert trace.data.capture_ref is None


# The captured record.


@pytest.mark.inv("TRACE-3")
def test_what_decisions_read_is_kept_by_digest_with_the_first_event_of_the_trace() -> None:
    harness = skipping(40)
    first = harness.start("test.flow", context={"mode": "slow"})
    harness.advance(first)
    refs = [event.data.capture_ref for event in traces(harness, first)]
    assert refs[1:] == [None] * (len(refs) - 1)
    kept = capture_of(harness, traces(harness, first)[0])
    assert (kept["kind"], kept["leftOut"], len(kept["decisions"])) == ("capture", 0, 40)
    one = kept["decisions"][0]
    assert one["read"] == [{"path": "mode", "value": "slow"}]
    assert (one["verdict"], one["conditionId"]) == (False, f"{LONG_NAMES}000"[-100:])


@pytest.mark.inv("TRACE-3")
def test_only_what_decisions_read_is_kept_and_what_the_step_set() -> None:
    harness = serving(step("a", set=[{"key": "things", "value": [1]}]), step("b", when=IS_FAST), step("c"))
    first = harness.start("test.flow", context={"mode": "fast", "level": 7})
    harness.advance(first)
    kept = capture_of(harness, traces(harness, first)[0])
    assert kept["effects"] == [{"key": "things", "value": [1]}]
    assert [one["read"] for one in kept["decisions"]] == [[{"path": "mode", "value": "fast"}]]
    assert '"level"' not in json.dumps(kept)


@pytest.mark.inv("TRACE-3")
@pytest.mark.parametrize("over", [0, 1])
def test_a_long_value_is_kept_by_its_digest(over: int) -> None:
    value = "x" * (CAPTURED_VALUE_BYTES_MAX - 2 + over)
    harness = serving(step("a"), step("b", when=IS_FAST), step("c"))
    first = harness.start("test.flow", context={"mode": value})
    harness.advance(first)
    (read,) = capture_of(harness, traces(harness, first)[0])["decisions"][0]["read"]
    data = canonical_bytes(value)
    result = {"digest": digest_of_bytes(data), "bytes": len(data)} if over else {"value": value}
    assert read == {"path": "mode"} | result


@pytest.mark.inv("TRACE-3")
def test_a_record_above_its_budget_counts_what_it_leaves_out() -> None:
    harness = skipping(400)
    first = harness.start("test.flow", context={"mode": "x" * (CAPTURED_VALUE_BYTES_MAX - 10)})
    harness.advance(first)
    event = traces(harness, first)[0]
    kept = capture_of(harness, event)
    assert event.data.capture_ref is not None
    assert len(harness.store.artifact(event.data.capture_ref)) <= CAPTURE_BYTES_MAX
    assert kept["leftOut"] > 0
    assert kept["leftOut"] + len(kept["decisions"]) == 400


@pytest.mark.inv("TRACE-3")
def test_equal_runs_keep_equal_records_and_tell_equal_reasons() -> None:
    steps = [loop("l", step("b"), deciding("c"), **{"while": {"kind": "loop_control"}}), step("z", when=IS_SLOW)]
    said: Document = {"artifacts": [{"kind": "wr.loop_control", "decision": "stop", "summary": "Done."}]}
    found: list[list[Document]] = []
    for _ in range(2):
        harness = serving(*steps, step("end"))
        first = harness.start("test.flow", context={"mode": "slow"})
        harness.advance(harness.advance(first), output=said)
        found.append([event.data.to_json() for event in traces(harness, first)])
    assert found[0] == found[1]
    assert len(found[0]) == 2
