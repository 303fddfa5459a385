"""What a step sets in a run: each outcome of its actions, the capture of their pass, and passes that are aborted."""

import json
from typing import Any

import pytest
from tests.support.flow import Document, declared, document, step
from tests.support.modes import NEVER_STOPS

from interlock.decide.evaluation_pass import OutcomeKind
from interlock.record.events import DecisionTraceAppendedEvent
from interlock.testing.harness import Harness, ToolResult

INPUTS = [declared("n", "number"), declared("out", "number"), declared("flag", "boolean")]
HALF = {"divide": [6, {"var": "n"}]}
FLAG: Document = {"key": "flag", "value": True}


def serving(*sets: Document, **more: object) -> Harness:
    return Harness.in_memory(document(step("a", set=list(sets), produces=["sent"], **more), step("b"), inputs=INPUTS))


def captured(harness: Harness, first: ToolResult) -> dict[str, Any]:
    """Return the capture of the last advance of a session."""
    events = harness.events(harness.session_of(first))
    (*_, ref) = [
        event.data.capture_ref
        for event in events
        if isinstance(event, DecisionTraceAppendedEvent) and event.data.capture_ref is not None
    ]
    return dict(json.loads(harness.store.artifact(ref)))


def outcomes(capture: dict[str, Any]) -> dict[str, OutcomeKind]:
    return {one["key"]: one["kind"] for one in capture["outcomes"]}


CASES: dict[str, tuple[Document, Document, OutcomeKind, list[Any]]] = {
    "the value fits": ({"compute": HALF}, {"n": 2}, "completed", [3]),
    "its gate is closed": ({"compute": HALF, "when": {"var": "n", "gt": 5}}, {"n": 2}, "skipped", []),
    "its gate cannot be decided": ({"value": 1, "when": {"var": "n", "gt": 5}}, {}, "skipped", []),
    "the value has another type": ({"compute": {"var": "sent"}}, {"sent": "x"}, "rejected", []),
    "an input is missing": ({"compute": HALF}, {}, "failed", []),
    "its pass is aborted": ({"compute": HALF}, {"n": 0}, "cancelled", []),
}


@pytest.mark.inv("DEC-9")
@pytest.mark.parametrize("case", CASES)
def test_each_outcome_of_an_action_is_captured_in_a_run_that_never_stops(case: str) -> None:
    action, context, outcome, values = CASES[case]
    harness = serving({"key": "out", **action}, FLAG)
    first = harness.start("test.flow", context={"sent": 1, **context}, preferences=NEVER_STOPS)
    answer = harness.advance(first)
    assert answer["pending"]["stepId"] == "b"
    capture = captured(harness, first)
    flag: OutcomeKind = "cancelled" if outcome == "cancelled" else "completed"
    assert outcomes(capture) == {"out": outcome, "flag": flag}
    effects = {one["key"]: one["value"] for one in capture["effects"]}
    assert [effects[key] for key in effects if key == "out"] == values
    assert ("flag" in effects) == (flag == "completed")
    is_fault = outcome not in ("completed", "skipped") or case.startswith("its gate cannot")
    assert ("GAP_RECORDED" in answer.warnings) == is_fault


@pytest.mark.inv("DEC-5", "DEC-9")
@pytest.mark.parametrize(
    ("case", "code", "pointer"),
    [
        ("its gate cannot be decided", "MISSING_REQUIRED_OUTPUT", {"kind": "context_key", "key": "n"}),
        ("the value has another type", "INVALID_REQUIRED_OUTPUT", {"kind": "workflow_step", "stepId": "a"}),
        ("an input is missing", "MISSING_REQUIRED_OUTPUT", {"kind": "context_key", "key": "n"}),
        ("its pass is aborted", "INVARIANT_VIOLATION", {"kind": "workflow_step", "stepId": "a"}),
    ],
)
def test_in_a_run_that_stops_a_fault_refuses_the_report_and_the_step_stays_pending(
    case: str, code: str, pointer: Document
) -> None:
    action, context, _, _ = CASES[case]
    harness = serving({"key": "out", **action}, FLAG)
    first = harness.start("test.flow", context={"sent": 1, **context})
    refused = harness.advance(first)
    (blocker,) = refused["blockers"]
    assert (blocker["code"], blocker["pointer"]) == (code, pointer)
    gone_on = harness.advance(refused, None, context={"n": 6, "sent": 1})
    assert gone_on["pending"]["stepId"] == "b"
    assert captured(harness, first)["effects"] == [{"key": "flag", "value": True}, {"key": "out", "value": 1}]


def test_evidence_that_may_be_left_out_skips_what_reads_it() -> None:
    action = {"key": "out", "compute": {"length": {"var": "artifact.findings"}}, "when": {"var": "n", "gt": 0}}
    contract = {"contractRef": "wr.contracts.review_verdict", "required": False}
    harness = serving(action, outputContract=contract)
    first = harness.start("test.flow", context={"n": 1, "sent": 1})
    answer = harness.advance(first)
    assert answer["pending"]["stepId"] == "b"
    assert outcomes(captured(harness, first)) == {"out": "skipped"}


@pytest.mark.inv("TRACE-3")
def test_the_capture_holds_what_the_step_read_and_which_triggers_emitted() -> None:
    gate = {"and": [{"var": "n", "gt": 0}, {"var": "flag", "exists": False}]}
    harness = serving({"key": "out", "compute": HALF, "when": gate}, FLAG)
    first = harness.start("test.flow", context={"n": 3, "sent": 1})
    harness.advance(first)
    capture = captured(harness, first)
    assert capture["v"] == 2
    assert capture["read"] == [{"path": "n", "value": 3}]
    assert capture["triggers"] == [
        {"trigger": "trigger:*", "emitted": True},
        {"trigger": "trigger:out.when", "emitted": True},
    ]


@pytest.mark.inv("EFF-2")
def test_values_and_gates_of_one_step_read_what_was_there_before_it() -> None:
    count = {"key": "n", "compute": {"add": [{"var": "n"}, 1]}}
    copy = {"key": "out", "compute": {"var": "n"}, "when": {"var": "n", "equals": 1}}
    harness = serving(count, copy)
    first = harness.start("test.flow", context={"n": 1, "sent": 1})
    harness.advance(first)
    assert captured(harness, first)["effects"] == [{"key": "n", "value": 2}, {"key": "out", "value": 1}]
