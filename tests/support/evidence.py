"""What an agent sends for the bundled workflows: good evidence for every step, and every value that says failure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.kernel.canonical import Json
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import ASSESSMENT_CONTRACT, NOTES_CONTRACT, PlanNode

NOTES = (
    "At 14:05 the command `run` failed in 3 of 20 runs on a1b2c3d4e5f6; the first wrong value is set in src/app.py:12. "
    * 3
)
"""Notes that meet the criteria of every bundled step: long enough, with a place, a rate, a time and a commit."""
_CHECK = {"name": "The suite", "evidence": "make test: 214 passed"}
GOOD: Mapping[str, Mapping[str, Any]] = {
    "wr.contracts.coding_handoff": {
        "kind": "wr.coding_handoff",
        "version": 1,
        "keyDecisions": ["One writer."],
        "knownLimitations": [],
        "testsAdded": [],
        "filesChanged": ["src/app.py"],
    },
    "wr.contracts.decision": {"kind": "wr.decision", "conditionId": "one", "result": True, "rationale": "It was said."},
    "wr.contracts.discovery_handoff": {
        "kind": "wr.discovery_handoff",
        "version": 1,
        "selectedDirection": "A file.",
        "designDocPath": "design.md",
        "confidenceBand": "high",
        "keyInvariants": ["Nothing is lost."],
    },
    "wr.contracts.gate_verdict": {
        "kind": "wr.gate_verdict",
        "version": 1,
        "verdict": "approved",
        "confidence": "high",
        "rationale": "Every must was shown by a run.",
    },
    "wr.contracts.loop_control": {"kind": "wr.loop_control", "decision": "stop", "summary": "Nothing would change."},
    "wr.contracts.review_verdict": {
        "kind": "wr.review_verdict",
        "verdict": "clean",
        "confidence": "high",
        "findings": [],
        "summary": "Nothing was found in the whole diff.",
    },
    "wr.contracts.verification_report": {
        "kind": "wr.verification_report",
        "verdict": "passed",
        "checks": [_CHECK | {"result": "passed"}],
        "summary": "The suite passed.",
    },
}
"""The best artifact of each contract that the bundled workflows ask for."""
_FINDING = {"severity": "critical", "summary": "It loses the last line.", "file": "src/app.py", "line": 12}
FAILED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "wr.contracts.coding_handoff": (),
    "wr.contracts.decision": ({"result": False},),
    "wr.contracts.discovery_handoff": (),
    "wr.contracts.gate_verdict": ({"verdict": "rejected"}, {"verdict": "uncertain", "confidence": "low"}),
    "wr.contracts.loop_control": (),
    "wr.contracts.review_verdict": ({"verdict": "blocking", "findings": [_FINDING]}, {"confidence": "low"}),
    "wr.contracts.verification_report": (
        {"verdict": "failed", "checks": [_CHECK | {"result": "failed"}]},
        {"verdict": "partial", "checks": [_CHECK | {"result": "skipped"}]},
    ),
}
"""For each contract, the changes to its best artifact that say failure."""
LEVELS: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("account", "sources"): ("two", ("none",)),
    ("answer", "found"): ("corroborated", ("unanswered",)),
    ("cause", "reach"): ("searched", ("not_searched",)),
    ("cause", "support"): ("proven", ("open", "guessed")),
    ("net", "breaks"): ("noticed", ("survive",)),
    ("plan", "coverage"): ("complete", ("holes",)),
    ("plan", "footing"): ("checked", ("assumed",)),
    ("readiness", "communication"): ("ready", ("blocked", "unknown")),
    ("readiness", "operation"): ("ready", ("blocked", "unknown")),
    ("readiness", "quality"): ("ready", ("blocked", "unknown")),
    ("readiness", "recommendation"): ("go", ("no_go",)),
    ("readiness", "upgrade"): ("ready", ("blocked", "unknown")),
    ("readiness", "way_back"): ("ready", ("blocked", "unknown")),
    ("replayed", "effect"): ("prevents", ("nothing",)),
    ("round", "explanation"): ("confirmed", ("testable", "exhausted")),
    ("support", "agreement"): ("agree", ("single_source", "conflicting")),
    ("support", "evidence"): ("direct", ("reasoned",)),
    ("support", "freshness"): ("current", ("unknown",)),
}
"""For each dimension that the bundled workflows rate, its best level and those that say failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of what an agent sends for a contract or an assessment, by its id."""

    of: str
    fields: Mapping[str, Any]


def contract_of(node: PlanNode) -> str | None:
    """Return the contract whose artifact a step asks for; None where it asks for ratings or notes alone."""
    ref = node.evidence_schema_ref
    return None if ref in (None, NOTES_CONTRACT, ASSESSMENT_CONTRACT) else ref


def artifacts_for(workflow: CompiledWorkflow, node: PlanNode, change: Change | None = None) -> list[dict[str, Json]]:
    """Return the artifacts that a step asks for: the best ones, but for one change."""
    assert node.task is not None
    ref = contract_of(node)
    sent: list[dict[str, Json]] = []
    if ref is not None:
        sent.append({**GOOD[ref], **(change.fields if change is not None and change.of == ref else {})})
    for name in node.task.evidence.assessments:
        levels = {one.id: LEVELS[name, one.id][0] for one in workflow.ratings[name].dimensions}
        changed: Mapping[str, Any] = change.fields if change is not None and change.of == name else {}
        rated = {"dimensions": {**levels, **changed}, "summary": "Rated by what the runs showed."}
        sent.append({"kind": "wr.assessment", "assessmentId": name, **rated})
    return sent


def failures_of(workflow: CompiledWorkflow, node: PlanNode) -> Iterator[Change]:
    """Yield each way in which the evidence of a step can say that something failed."""
    assert node.task is not None
    ref = contract_of(node)
    if ref is not None:
        yield from (Change(of=ref, fields=fields) for fields in FAILED[ref])
    for name in node.task.evidence.assessments:
        for dimension in workflow.ratings[name].dimensions:
            for level in LEVELS[name, dimension.id][1]:
                yield Change(of=name, fields={dimension.id: level})
