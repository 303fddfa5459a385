"""Artifacts that contradict themselves are refused with the value that does not fit, and why (EVID-12)."""

from typing import Any

import pytest
from tests.support.evidence import GOOD

from interlock.engine.judge.evidence import schema_fault
from interlock.engine.judge.reasons import invalid_artifact
from interlock.kernel.canonical import Json
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS

REPORT, REVIEW = "wr.contracts.verification_report", "wr.contracts.review_verdict"
GATE, DISCOVERY = "wr.contracts.gate_verdict", "wr.contracts.discovery_handoff"
CODING, LOOP = "wr.contracts.coding_handoff", "wr.contracts.loop_control"


def checks(*results: str) -> list[Json]:
    return [{"name": f"Check {at}", "result": result, "evidence": "its output"} for at, result in enumerate(results)]


def findings(*severities: str) -> list[Json]:
    return [{"severity": severity, "summary": "What is wrong."} for severity in severities]


CONTRADICTIONS: list[tuple[str, dict[str, Json], str]] = [
    (
        REPORT,
        {"checks": checks("passed", "failed")},
        '`checks[1].result`: found "failed"; use one of "passed" | "skipped"',
    ),
    (REPORT, {"checks": checks("skipped")}, '`checks`: no entry has `result` "passed", because `verdict` is "passed"'),
    (REPORT, {"verdict": "failed", "checks": checks("passed")}, '`checks`: no entry has `result` "failed"'),
    (
        REPORT,
        {"verdict": "partial", "checks": checks("skipped", "failed")},
        '`checks[1].result`: found "failed"; use one of "passed" | "skipped", because `verdict` is "partial"',
    ),
    (REPORT, {"verdict": "partial", "checks": checks("passed")}, '`checks`: no entry has `result` "skipped", because'),
    (REVIEW, {"findings": findings("nit")}, '`findings`: found a list of 1; send [], because `verdict` is "clean"'),
    (REVIEW, {"verdict": "minor", "findings": []}, 'at least 1 entry, because `verdict` is "minor"'),
    (REVIEW, {"verdict": "minor", "findings": findings("critical")}, '`findings[0].severity`: found "critical"'),
    (REVIEW, {"verdict": "blocking", "findings": findings("nit")}, '`severity` "critical" | "major"'),
    (
        GATE,
        {"confidence": "low"},
        '`confidence`: found "low"; use one of "high" | "medium", because `verdict` is "approved"',
    ),
    (
        DISCOVERY,
        {"selectionTier": "strong_recommendation", "confidenceBand": "low"},
        'because `selectionTier` is "strong_recommendation"',
    ),
    (DISCOVERY, {"selectionTier": "insufficient_signal"}, '`confidenceBand`: found "high"; use one of "low"'),
    (CODING, {"testsAdded": ["a test"], "filesChanged": []}, "at least 1 entry, because `testsAdded` is not empty"),
    (LOOP, {"summary": None}, 'missing `summary`, because `decision` is "stop"'),
]
CONSISTENT: list[tuple[str, dict[str, Json]]] = [
    (REPORT, {"checks": checks("passed", "skipped")}),
    (REPORT, {"verdict": "partial", "checks": checks("skipped")}),
    (REPORT, {"verdict": "partial", "checks": checks("passed", "skipped")}),
    (REPORT, {"verdict": "failed", "checks": checks("passed", "failed")}),
    (REVIEW, {"verdict": "minor", "findings": findings("minor", "nit")}),
    (REVIEW, {"verdict": "blocking", "findings": findings("nit", "major")}),
    (GATE, {"verdict": "uncertain", "confidence": "low"}),
    (DISCOVERY, {"selectionTier": "strong_recommendation", "confidenceBand": "medium"}),
    (DISCOVERY, {"selectionTier": "insufficient_signal", "confidenceBand": "low"}),
    (CODING, {"testsAdded": [], "filesChanged": []}),
    (LOOP, {"decision": "continue", "summary": None}),
]


def fault_of(ref: str, change: dict[str, Json]) -> str | None:
    artifact: dict[str, Any] = {**GOOD[ref], **change}
    return schema_fault({name: value for name, value in artifact.items() if value is not None}, PACK_SCHEMAS[ref])


@pytest.mark.inv("EVID-12")
@pytest.mark.parametrize(("ref", "change", "said"), CONTRADICTIONS)
def test_a_contradiction_is_refused_with_its_place_and_reason(ref: str, change: dict[str, Json], said: str) -> None:
    fault = fault_of(ref, change)
    assert fault is not None
    assert said in fault
    assert ", because " in fault


@pytest.mark.inv("EVID-12")
@pytest.mark.parametrize(("ref", "change"), CONSISTENT)
def test_an_artifact_that_agrees_with_itself_is_accepted(ref: str, change: dict[str, Json]) -> None:
    assert fault_of(ref, change) is None


def test_a_fault_that_follows_from_no_other_field_has_no_reason() -> None:
    assert fault_of(GATE, {"confidence": "certain", "verdict": "uncertain"}) == (
        '`confidence`: found "certain"; use one of "high" | "medium" | "low"'
    )


def test_a_value_that_is_none_of_its_choices_has_one_fault_whatever_its_kind() -> None:
    artifact = {**GOOD[REPORT], "verdict": None, "checks": None, "summary": None}
    fault = schema_fault(artifact, PACK_SCHEMAS[REPORT])
    assert fault is not None
    assert fault.count("found null") == 3
    assert "more" not in fault


def test_the_value_that_decides_is_named_in_the_message() -> None:
    artifact = {**GOOD[REPORT], "checks": checks("failed", "failed")}
    fault = schema_fault(artifact, PACK_SCHEMAS[REPORT])
    assert fault is not None
    message = invalid_artifact(REPORT, "wr.report", fault, ()).blocker().message
    why = 'use one of "passed" | "skipped", because `verdict` is "passed"'
    assert f'`checks[0].result`: found "failed"; {why}' in message
