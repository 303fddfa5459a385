"""What the contracts let in and what they refuse: whole artifacts, each bound, each nested field."""

from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.plan.builtins.packs import PACKS

FULL: dict[str, dict[str, Any]] = {
    "assessment": {
        "assessmentId": "ready",
        "dimensions": {"a": "high", "b": {"level": "low", "rationale": "why"}},
        "summary": "so so",
    },
    "block_outputs": {"outputs": {"report": {"path": "report.md"}}},
    "capability_observation": {"capability": "web_browsing", "status": "unknown", "detail": "no tool of that name"},
    "coding_handoff": {
        "version": 1,
        "branchName": "fix",
        "keyDecisions": ["a"] * 8,
        "knownLimitations": ["b"] * 6,
        "testsAdded": ["c"] * 10,
        "filesChanged": ["d" * 300] * 20,
        "correctedAssumptions": [{"assumed": "x", "actual": "y"}] * 6,
    },
    "confirmation": {"confirmedBy": "the owner", "statement": "Ship it."},
    "coordinator_signal": {"signalKind": "data_needed", "payload": {"what": ["a key"]}, "sessionId": "sess_1"},
    "decision": {"conditionId": "is-small", "result": False, "rationale": "it touches the log"},
    "differentiation_handoff": {
        "version": 1,
        "positioning": "For teams that resume work, the log that survives, unlike a chat.",
        "keyDifferentiators": ["survives a crash"] * 8,
        "targetSegment": "teams with long tasks",
        "alternatives": [{"name": "a chat", "difference": "forgets"}] * 10,
        "evidence": [{"claim": "survives", "source": "the crash tests"}] * 10,
        "risks": ["nobody needs it"] * 8,
    },
    "discovery_handoff": {
        "version": 1,
        "selectedDirection": "this way",
        "designDocPath": "docs/design.md",
        "confidenceBand": "low",
        "keyInvariants": ["n" * 200] * 12,
        "rejectedDirections": [{"direction": "that way", "reason": "too slow"}] * 5,
        "implementationConstraints": ["no new service"] * 8,
        "keyCodebaseLocations": [{"path": "src/a.py", "relevance": "entry"}] * 10,
        "selectionTier": "provisional_recommendation",
    },
    "gate_verdict": {
        "version": 1,
        "verdict": "uncertain",
        "confidence": "medium",
        "rationale": "exactly twenty chars",
    },
    "loop_control": {
        "decision": "continue",
        "loopId": "fix_loop-2",
        "summary": "two findings are left",
        "metadata": {"reason": "r" * 1024, "issuesFound": 2, "iterationIndex": 1, "confidence": 100},
    },
    "review_verdict": {
        "verdict": "blocking",
        "confidence": "medium",
        "findings": [
            {"severity": "major", "summary": "leaks", "findingCategory": "security", "file": "a.py", "line": 3}
        ],
        "summary": "one leak",
    },
    "shaping_handoff": {
        "version": 1,
        "pitchPath": "docs/pitch.md",
        "selectedShape": "s" * 200,
        "appetite": "a" * 100,
        "keyConstraints": ["c"] * 8,
        "rabbitHoles": ["r"] * 6,
        "outOfScope": ["o"] * 6,
        "validationChecklist": ["v"] * 10,
    },
    "turn": {"version": 1, "turn": 1, "status": "about_to_call", "ids": {"interactionId": "one"}},
    "verification_report": {
        "verdict": "partial",
        "checks": [{"name": "tests", "result": "skipped", "evidence": "no network"}] * 50,
        "summary": "not all could be run",
    },
    "workflow_divergence": {
        "reason": "safety_stop",
        "summary": "the data was live",
        "stepId": "drop-table",
        "relatedStepId": "check-table",
    },
}
"""Every field of every contract, each list and text as long as it may be."""

OPEN = {"block_outputs", *(name for name in FULL if name.endswith("_handoff")), "gate_verdict", "turn"}
FINDING = {"severity": "nit", "summary": "a name"}

TOO_MUCH: list[tuple[str, dict[str, Any]]] = [
    ("assessment", {"summary": "s" * 1025}),
    ("assessment", {"dimensions": {"a": {"level": "low", "rationale": "r" * 513}}}),
    ("assessment", {"dimensions": {"a": 3}}),
    ("assessment", {"dimensions": {"a": {"rationale": "no level"}}}),
    ("assessment", {"dimensions": {"a": {"level": "low", "score": 1}}}),
    ("block_outputs", {"outputs": []}),
    ("capability_observation", {"capability": "telepathy"}),
    ("coding_handoff", {"keyDecisions": ["a"] * 9}),
    ("coding_handoff", {"knownLimitations": ["a"] * 7}),
    ("coding_handoff", {"testsAdded": ["a"] * 11}),
    ("coding_handoff", {"filesChanged": ["a"] * 21}),
    ("coding_handoff", {"filesChanged": ["a" * 301]}),
    ("coding_handoff", {"correctedAssumptions": [{"assumed": "x"}]}),
    ("coding_handoff", {"version": 2}),
    ("coordinator_signal", {"payload": "text"}),
    ("decision", {"result": "true"}),
    ("differentiation_handoff", {"positioning": ""}),
    ("differentiation_handoff", {"keyDifferentiators": ["a"] * 9}),
    ("differentiation_handoff", {"alternatives": [{"name": "a chat"}]}),
    ("differentiation_handoff", {"evidence": [{"claim": "fast"}]}),
    ("discovery_handoff", {"keyInvariants": ["n"] * 13}),
    ("discovery_handoff", {"keyInvariants": ["n" * 201]}),
    ("discovery_handoff", {"rejectedDirections": [{"direction": "that way", "reason": "slow"}] * 6}),
    ("discovery_handoff", {"implementationConstraints": ["c"] * 9}),
    ("discovery_handoff", {"keyCodebaseLocations": [{"path": "a"}]}),
    ("gate_verdict", {"rationale": "nineteen characters"}),
    ("gate_verdict", {"confidence": "certain"}),
    ("loop_control", {"decision": "maybe"}),
    ("loop_control", {"loopId": "a/b"}),
    ("loop_control", {"loopID": "a"}),
    ("loop_control", {"metadata": {"confidence": 101}}),
    ("loop_control", {"metadata": {"confidence": -1}}),
    ("loop_control", {"metadata": {"issuesFound": 1.5}}),
    ("loop_control", {"metadata": {"reason": "r" * 1025}}),
    ("loop_control", {"metadata": {"mood": "good"}}),
    ("review_verdict", {"findings": [{"severity": "major"}]}),
    ("review_verdict", {"findings": [FINDING | {"severity": "worst"}]}),
    ("review_verdict", {"findings": [FINDING | {"findingCategory": "taste"}]}),
    ("shaping_handoff", {"selectedShape": "s" * 201}),
    ("shaping_handoff", {"appetite": "a" * 101}),
    ("shaping_handoff", {"keyConstraints": ["c"] * 9}),
    ("shaping_handoff", {"rabbitHoles": ["r"] * 7}),
    ("shaping_handoff", {"outOfScope": ["o"] * 7}),
    ("shaping_handoff", {"validationChecklist": ["v"] * 11}),
    ("turn", {"status": "begun"}),
    ("turn", {"turn": 0}),
    ("verification_report", {"checks": []}),
    ("verification_report", {"checks": [{"name": "a", "result": "passed", "evidence": "b"}] * 51}),
    ("verification_report", {"checks": [{"name": "a", "result": "passed"}]}),
    ("verification_report", {"checks": [{"name": "a", "result": "passed", "evidence": ""}]}),
    ("workflow_divergence", {"reason": "boredom"}),
]


def whole(name: str, **changed: object) -> dict[str, Any]:
    return {"kind": f"wr.{name}", **FULL[name], **changed}


def refused(name: str, artifact: Mapping[str, Any]) -> bool:
    return not Draft202012Validator(PACK_SCHEMAS[f"wr.contracts.{name}"]).is_valid(artifact)


def test_the_artifacts_above_hold_every_field_of_every_contract() -> None:
    assert {f"wr.contracts.{name}" for name in FULL} == {ref for ref, pack in PACKS.items() if pack.kind is not None}
    for name in FULL:
        properties = PACK_SCHEMAS[f"wr.contracts.{name}"]["properties"]
        assert isinstance(properties, dict)
        assert set(whole(name)) == set(properties)


@pytest.mark.parametrize("name", FULL)
def test_an_artifact_with_every_field_as_long_as_it_may_be_is_accepted(name: str) -> None:
    assert not refused(name, whole(name))


@pytest.mark.parametrize(("name", "changed"), TOO_MUCH)
def test_an_artifact_beyond_a_bound_or_a_closed_set_is_refused(name: str, changed: dict[str, Any]) -> None:
    assert refused(name, whole(name) | changed)


@pytest.mark.parametrize("name", FULL)
def test_handoffs_and_outputs_take_more_fields_and_all_else_tells_a_misspelt_one(name: str) -> None:
    assert refused(name, whole(name, anotherField=1)) == (name not in OPEN)


@pytest.mark.parametrize("name", FULL)
def test_a_text_or_list_that_is_null_is_refused_where_it_may_be_left_out(name: str) -> None:
    for field in FULL[name]:
        assert refused(name, whole(name) | {field: None}), field


def test_an_assessment_may_rate_nothing_where_nothing_has_to_be_rated() -> None:
    assert not refused("assessment", {"kind": "wr.assessment", "dimensions": {}})


def test_a_discovery_without_a_document_says_so_with_an_empty_path() -> None:
    assert not refused("discovery_handoff", whole("discovery_handoff", designDocPath=""))
