"""Is what came back enough? Every refusal says what was found and what to send instead."""

from typing import Any

import pytest
from tests.support.flow import Document, compiled, deciding, loop, step

from interlock.engine.answer.structure import NextCall
from interlock.engine.judge.evidence import Judgement, artifact_outlines, judge, schema_fault
from interlock.engine.request import Request
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets.workflow import (
    TRACE_SUMMARY_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.plan.builtins.packs import PACKS
from interlock.plan.compiled import CompiledWorkflow, parse_compiled
from interlock.plan.records import NOTES_CONTRACT
from interlock.record.outcome import Blocker, CapabilityPointer, ContextKeyPointer, OutputContractPointer, build_report
from interlock.testing.harness import filled_call

REVIEW = "wr.contracts.review_verdict"
VERDICT: dict[str, Json] = {
    "kind": "wr.review_verdict",
    "verdict": "clean",
    "confidence": "high",
    "findings": [],
    "summary": "All of it.",
}
CONTRACTS = sorted(ref for ref, pack in PACKS.items() if pack.kind is not None)


def workflow_of(*more: Document, **changes: object) -> CompiledWorkflow:
    """Return a workflow whose only step is `a`, with these changes to the step."""
    document = {name: changes.pop(name) for name in ("assessments", "capabilities") if name in changes}
    return compiled(step("a", **changes), *more, **document)


def judged(
    workflow: CompiledWorkflow,
    *artifacts: dict[str, Json],
    notes: str | None = "Done.",
    name: str = "a",
    context: dict[str, Json] | None = None,
) -> Judgement:
    request = Request(notes=notes, artifacts=artifacts, context=context or {})
    found = judge(workflow, workflow.steps[name], request, context or {})
    for finding in found.findings:
        assert build_report([finding.blocker()]).blockers == (finding.blocker(),), "within every budget"
    return found


def good_artifacts(workflow: CompiledWorkflow, name: str = "a") -> list[dict[str, Any]]:
    """Return the artifacts that a step asks for, filled in."""
    outlines = artifact_outlines(workflow, workflow.steps[name])
    return filled_call(NextCall.of("", {"all": outlines}).to_json()).get("all", [])


def blockers(*arguments: Any, **more: Any) -> list[Blocker]:
    return [finding.blocker() for finding in judged(*arguments, **more).findings]


def only(found: list[Blocker]) -> Blocker:
    (blocker,) = found
    return blocker


def ref_of(blocker: Blocker) -> str:
    assert isinstance(blocker.pointer, OutputContractPointer)
    return blocker.pointer.contract_ref


def fix_of(blocker: Blocker) -> str:
    return blocker.suggested_fix or ""


# Notes.


@pytest.mark.inv("BLK-1")
@pytest.mark.parametrize("notes", [None, "", "  \n"])
def test_a_step_that_requires_notes_asks_for_them(notes: str | None) -> None:
    blocker = only(blockers(workflow_of(), notes=notes))
    assert (blocker.code, ref_of(blocker)) == ("MISSING_REQUIRED_OUTPUT", NOTES_CONTRACT)


def test_a_step_with_an_output_contract_leaves_notes_optional_unless_it_says_otherwise() -> None:
    contract = {"contractRef": REVIEW}
    assert blockers(workflow_of(outputContract=contract), VERDICT, notes=None) == []
    required = workflow_of(outputContract=contract, notes="required")
    assert ref_of(only(blockers(required, VERDICT, notes=None))) == NOTES_CONTRACT


# Contracts.


def test_an_artifact_that_meets_its_contract_is_enough_wherever_it_stands_among_others() -> None:
    workflow = workflow_of(outputContract={"contractRef": REVIEW})
    assert blockers(workflow, {"kind": "sketch"}, VERDICT, {"kind": "other", "n": 1}) == []


@pytest.mark.parametrize(
    ("artifacts", "found"), [((), "no artifact was sent"), (({"kind": "sketch"}, {"kind": "x"}), "found 'sketch', 'x'")]
)
@pytest.mark.inv("EVID-1")
def test_a_missing_artifact_is_reported_with_what_came_and_the_smallest_valid_one(
    artifacts: tuple[dict[str, Json], ...], found: str
) -> None:
    workflow = workflow_of(outputContract={"contractRef": REVIEW})
    blocker = only(blockers(workflow, *artifacts))
    assert (blocker.code, ref_of(blocker)) == ("MISSING_REQUIRED_OUTPUT", REVIEW)
    assert found in blocker.message
    assert "{kind: wr.review_verdict, confidence: high | medium | low, verdict: clean | minor | blocking" in fix_of(
        blocker
    )


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"verdict": "fine"}, "`verdict`"),
        ({"confidence": None}, "`confidence`"),
        ({"summary": ""}, "`summary`"),
        ({"findings": "none"}, "`findings`"),
        ({"findings": [{"severity": "major"}]}, "`findings[0]`: missing `summary`"),
        ({"findings": [{"summary": "x"}]}, "`findings[0]`: missing `severity` (critical | major | minor | nit)"),
        ({"findings": [{"severity": "huge", "summary": "x"}]}, "`findings[0].severity`"),
        ({"more": 1}, "`the artifact`"),
    ],
)
def test_an_artifact_that_breaks_its_contract_is_reported_with_the_place(change: dict[str, Json], place: str) -> None:
    blocker = only(blockers(workflow_of(outputContract={"contractRef": REVIEW}), VERDICT | change))
    assert (blocker.code, ref_of(blocker)) == ("INVALID_REQUIRED_OUTPUT", REVIEW)
    assert place in blocker.message
    assert "kind: wr.review_verdict" in fix_of(blocker)


def test_a_key_that_is_missing_is_reported_by_its_name() -> None:
    artifact = {key: value for key, value in VERDICT.items() if key != "summary"}
    assert "`summary`" in only(blockers(workflow_of(outputContract={"contractRef": REVIEW}), artifact)).message


@pytest.mark.inv("EVID-12")
def test_a_report_with_different_artifacts_of_the_kind_is_refused() -> None:
    """Whichever counted, an agent could state both results and let the plan see the better one."""
    workflow = workflow_of(outputContract={"contractRef": REVIEW})
    other: dict[str, Json] = VERDICT | {"summary": "Another summary of the same review."}
    for artifacts in ((VERDICT, other), (other, VERDICT), (VERDICT, VERDICT | {"verdict": "fine"})):
        assert "found 2 different artifacts; the step asks for one" in only(blockers(workflow, *artifacts)).message
        assert "artifact" not in judged(workflow, *artifacts).values
    assert judged(workflow, VERDICT, dict(VERDICT)).values == {"artifact": VERDICT}


@pytest.mark.inv("EVID-11")
@pytest.mark.parametrize("summary", ["   ", "\u200b", "…", "\u202e\n", "---"])
def test_a_text_that_says_nothing_is_no_evidence(summary: str) -> None:
    workflow = workflow_of(outputContract={"contractRef": REVIEW})
    assert "`summary`: only blanks or marks" in only(blockers(workflow, VERDICT | {"summary": summary})).message


@pytest.mark.inv("ANS-22")
def test_the_words_of_a_blank_are_no_value_in_any_part_of_it() -> None:
    workflow = workflow_of(outputContract={"contractRef": "wr.contracts.verification_report"})
    (outline,) = artifact_outlines(workflow, workflow.steps["a"])
    checks = outline["checks"]
    assert isinstance(checks, Blank)
    report: dict[str, Json] = {"kind": "wr.verification_report", "verdict": "passed", "summary": "Ran all tests."}
    for words in (checks.what, checks.shape):
        check: Json = {"name": words, "result": "passed", "evidence": "12 tests passed."}
        message = only(blockers(workflow, report | {"checks": [check]})).message
        assert "`checks.0.name`: this is the sample text" in message


def test_an_example_that_is_sent_back_as_it_was_shown_is_no_evidence() -> None:
    workflow = workflow_of(outputContract={"contractRef": REVIEW})
    for words in ("<what you reviewed>", "what you reviewed, and the result", "`What you reviewed, and the result.`"):
        blocker = only(blockers(workflow, VERDICT | {"summary": words}))
        assert blocker.code == "INVALID_REQUIRED_OUTPUT"
        assert "`summary`: this is the sample text" in blocker.message


def test_an_optional_artifact_may_be_left_out_and_must_be_valid_if_it_comes() -> None:
    workflow = workflow_of(outputContract={"contractRef": REVIEW, "required": False})
    assert blockers(workflow) == []
    assert blockers(workflow, VERDICT) == []
    assert only(blockers(workflow, VERDICT | {"verdict": "fine"})).code == "INVALID_REQUIRED_OUTPUT"
    assert artifact_outlines(workflow, workflow.steps["a"]) == ()


@pytest.mark.parametrize("ref", CONTRACTS)
def test_the_example_of_every_contract_meets_it_and_nothing_less_does(ref: str) -> None:
    workflow = workflow_of(outputContract={"contractRef": ref})
    (example,) = good_artifacts(workflow, "a")
    assert blockers(workflow, example) == []
    schema = workflow.packs[ref].artifact_schema
    assert schema is not None
    for key in example:
        less = {name: value for name, value in example.items() if name != key}
        assert schema_fault(less, schema) is not None, f"{key} need not be there"


@pytest.mark.parametrize("ref", CONTRACTS)
@pytest.mark.parametrize("wrong", [{}, {"kind": None}, {"decision": 1, "dimensions": [], "verdict": {}}], ids=str)
def test_an_artifact_of_any_shape_is_judged_and_never_fails_the_judge(ref: str, wrong: dict[str, Json]) -> None:
    workflow = workflow_of(outputContract={"contractRef": ref})
    kind = workflow.packs[ref].artifact_kind
    assert blockers(workflow, wrong)
    assert blockers(workflow, {"kind": kind, "unheard-of": [{}]} | {k: v for k, v in wrong.items() if k != "kind"})


@pytest.mark.inv("EVID-1")
def test_the_pinned_schema_judges_and_not_that_of_today() -> None:
    workflow = workflow_of(outputContract={"contractRef": REVIEW})
    packs = tuple(
        pack.changed(artifact_schema={"type": "object", "required": ["mine"]}) if pack.contract_ref == REVIEW else pack
        for pack in workflow.contracts
    )
    pinned = parse_compiled(workflow.changed(contracts=packs).to_bytes())
    assert "`mine`" in only(blockers(pinned, VERDICT)).message
    assert blockers(pinned, {"kind": "wr.review_verdict", "mine": 1}) == []


# Loop control.

CONTROLLED = compiled(loop("l", step("b"), deciding("d"), **{"while": {"kind": "loop_control"}}), step("z"))
STOP: dict[str, Json] = {"kind": "wr.loop_control", "decision": "stop", "summary": "Done."}


def test_a_loop_control_artifact_may_leave_its_loop_out_and_must_not_name_another() -> None:
    assert blockers(CONTROLLED, STOP, name="d") == []
    assert blockers(CONTROLLED, STOP | {"loopId": "l"}, name="d") == []
    blocker = only(blockers(CONTROLLED, STOP | {"loopId": "other"}, name="d"))
    assert blocker.code == "INVALID_REQUIRED_OUTPUT"
    assert "found 'other', this loop is 'l'" in blocker.message
    assert "loopId: l" in fix_of(blocker)


def test_the_example_of_loop_control_names_the_loop() -> None:
    (example,) = good_artifacts(CONTROLLED, "d")
    assert {**example, "summary": "Done."} == STOP | {"loopId": "l"}
    assert blockers(CONTROLLED, example, name="d") == []


# Assessments.

QUALITY: Document = {
    "id": "quality",
    "purpose": "How good it is.",
    "dimensions": [
        {"id": "clear", "purpose": "Is it clear?", "levels": ["low", "High"]},
        {"id": "sound", "purpose": "Is it sound?", "levels": ["low", "middle", "high"], "required": False},
    ],
}
HARM: Document = {"id": "harm", "purpose": "H.", "levels": ["no", "yes"]}
RISK: Document = {"id": "risk", "purpose": "R.", "dimensions": [HARM]}
FOLLOW_UP: Document = {
    "when": {"anyEqualsLevel": "low"},
    "effect": {"kind": "require_followup", "guidance": "Rework what is weak."},
}
RATED = workflow_of(assessmentRefs=["quality"], assessmentConsequences=[FOLLOW_UP], assessments=[QUALITY])
BOTH = workflow_of(
    assessmentRefs=["quality", "risk"],
    assessmentConsequences=[{**FOLLOW_UP, "when": {"anyEqualsLevel": "low", "forAssessment": "quality"}}],
    assessments=[QUALITY, RISK],
)


def rating(dimensions: object, assessment: str | None = "quality") -> dict[str, Any]:
    named = {} if assessment is None else {"assessmentId": assessment}
    return {"kind": "wr.assessment", **named, "dimensions": dimensions, "summary": "Why."}


@pytest.mark.parametrize(
    "dimensions",
    [
        {"clear": "High"},
        {"clear": "High", "sound": "middle"},
        {"clear": {"level": "High", "rationale": "It is."}},
    ],
)
def test_a_rating_with_every_required_dimension_at_a_known_level_is_enough(dimensions: Document) -> None:
    found = judged(RATED, rating(dimensions))
    assert (found.findings, found.trace) == ((), ())


@pytest.mark.parametrize(
    ("dimensions", "said"),
    [
        ({}, "`dimensions.clear`: missing"),
        ({"sound": "high"}, "`dimensions.clear`: missing"),
        ({"clear": "great"}, "`dimensions.clear`: found 'great'; use one of low | High"),
        ({"clear": {"level": "great"}}, "found 'great'"),
        ({"clear": "High", "sound": "so-so"}, "`dimensions.sound`: found 'so-so'; use one of low | middle | high"),
        ({"clear": "High", "depth": "low"}, "`dimensions.depth`: there is no such dimension; use clear, sound"),
        ({"clear": 1}, "`dimensions.clear`"),
        ({"clear": {"rationale": "x"}}, "`dimensions.clear`"),
        ([], "`dimensions`"),
        (None, "`dimensions`"),
    ],
)
def test_a_rating_that_is_none_is_reported_with_the_dimension(dimensions: object, said: str) -> None:
    blocker = only(blockers(RATED, rating(dimensions)))
    assert (blocker.code, ref_of(blocker)) == ("INVALID_REQUIRED_OUTPUT", "wr.contracts.assessment")
    assert said in blocker.message


@pytest.mark.inv("EVID-6")
def test_all_faults_of_a_rating_are_reported_at_once() -> None:
    message = only(blockers(RATED, rating({"sound": "so-so", "depth": "low"}))).message
    for said in (
        "`dimensions.sound`: found 'so-so'",
        "`dimensions.depth`: there is no such",
        "`dimensions.clear`: mis",
    ):
        assert said in message


@pytest.mark.inv("EVID-12")
def test_of_different_ratings_none_is_picked() -> None:
    message = only(blockers(RATED, rating({"clear": "High"}), rating({"clear": "low"}))).message
    assert "found 2 different artifacts" in message


def test_a_missing_rating_is_asked_for_with_levels_that_bring_no_more_work() -> None:
    blocker = only(blockers(RATED))
    assert blocker.code == "MISSING_REQUIRED_OUTPUT"
    assert "dimensions: {clear: low | High}" in fix_of(blocker)


@pytest.mark.parametrize(("sent", "meant"), [("high", "High"), (" HIGH ", "High"), ("HiGh", "High")])
def test_a_level_that_is_spelled_otherwise_is_read_as_the_one_that_is_meant_and_that_is_reported(
    sent: str, meant: str
) -> None:
    found = judged(RATED, rating({"clear": sent}))
    assert found.findings == ()
    (entry,) = found.trace
    assert (repr(sent) in entry.summary, repr(meant) in entry.summary) == (True, True)
    assert [ref.kind for ref in entry.refs or ()] == ["step_id"]


def test_a_level_of_any_length_and_script_that_is_spelled_otherwise_is_reported_within_its_budget() -> None:
    long = {**QUALITY, "dimensions": [{"id": "d", "purpose": "D.", "levels": ["é" * 64, "low"]}]}
    workflow = workflow_of(assessmentRefs=["quality"], assessments=[long])
    found = judged(workflow, rating({"d": "É" * 64}))
    assert found.findings == ()
    (entry,) = found.trace
    assert len(entry.summary.encode()) <= TRACE_SUMMARY_BYTES_MAX


@pytest.mark.parametrize("dimensions", [{"clear": "low"}, {"clear": "High", "sound": " LOW"}])
def test_a_level_with_a_consequence_calls_for_more_work_first(dimensions: Document) -> None:
    blocker = only(blockers(RATED, rating(dimensions)))
    assert (blocker.code, ref_of(blocker)) == ("INVALID_REQUIRED_OUTPUT", "wr.contracts.assessment")
    assert "Rework what is weak." in blocker.message
    assert fix_of(blocker).startswith("Do that work. Then rate again")
    assert blocker.details == {"assessmentId": "quality", "level": "low"}


def test_the_rating_of_a_step_with_one_assessment_need_not_name_it() -> None:
    assert blockers(RATED, rating({"clear": "High"}, None)) == []
    assert only(blockers(RATED, rating({"clear": "High"}, "other"))).code == "MISSING_REQUIRED_OUTPUT"


def test_of_several_assessments_each_is_asked_for_by_its_name() -> None:
    good = (rating({"clear": "High"}), rating({"harm": "no"}, "risk"))
    assert blockers(BOTH, *good) == blockers(BOTH, *reversed(good)) == []
    assert "risk" in fix_of(only(blockers(BOTH, good[0])))
    assert "quality" in fix_of(only(blockers(BOTH, good[1])))
    assert len(blockers(BOTH, rating({"clear": "High"}, None))) == 2


def test_a_consequence_for_one_assessment_does_not_concern_another() -> None:
    named = {**RISK, "dimensions": [{**HARM, "levels": ["low", "yes"]}]}
    workflow = workflow_of(
        assessmentRefs=["quality", "risk"],
        assessmentConsequences=[{**FOLLOW_UP, "when": {"anyEqualsLevel": "low", "forAssessment": "quality"}}],
        assessments=[QUALITY, named],
    )
    assert blockers(workflow, rating({"clear": "High"}), rating({"harm": "low"}, "risk")) == []
    assert len(blockers(workflow, rating({"clear": "low"}), rating({"harm": "low"}, "risk"))) == 1


def test_the_examples_of_a_rated_step_are_enough() -> None:
    for workflow in (RATED, BOTH):
        examples = good_artifacts(workflow, "a")
        assert len(examples) == len(workflow.steps["a"].task.evidence.assessments if workflow.steps["a"].task else ())
        assert blockers(workflow, *examples) == []


@pytest.mark.inv("EVID-6")
def test_a_rated_step_may_want_an_artifact_of_another_contract_too() -> None:
    workflow = workflow_of(assessmentRefs=["quality"], assessments=[QUALITY], outputContract={"contractRef": REVIEW})
    assert sorted(map(ref_of, blockers(workflow))) == ["wr.contracts.assessment", REVIEW]
    assert [one["kind"] for one in good_artifacts(workflow, "a")] == [
        "wr.review_verdict",
        "wr.assessment",
    ]
    shown = good_artifacts(workflow, "a")
    assert blockers(workflow, *shown) == []


# Criteria.


def test_notes_that_do_not_meet_the_criteria_are_refused_with_what_they_lack() -> None:
    rules = [{"type": "contains", "value": "because"}, {"type": "length", "min": 20}]
    workflow = workflow_of(validationCriteria=rules)
    blocker = only(blockers(workflow))
    assert (blocker.code, ref_of(blocker)) == ("INVALID_REQUIRED_OUTPUT", NOTES_CONTRACT)
    for words in ("must contain 'because'", "must have at least 20 characters"):
        assert words in blocker.message
        assert words not in fix_of(blocker)
    assert blockers(workflow, notes="It is so because it is so.") == []


def test_missing_notes_are_reported_once_and_not_judged() -> None:
    workflow = workflow_of(validationCriteria={"type": "length", "min": 20})
    assert only(blockers(workflow, notes=None)).code == "MISSING_REQUIRED_OUTPUT"


def test_optional_notes_are_judged_only_if_they_come() -> None:
    workflow = workflow_of(validationCriteria={"type": "length", "min": 20}, notes="optional")
    assert blockers(workflow, notes=None) == []
    assert only(blockers(workflow, notes="Short.")).code == "INVALID_REQUIRED_OUTPUT"


def test_a_criterion_with_a_condition_reads_the_context_of_the_call() -> None:
    rule = {"type": "contains", "value": "urgent", "when": {"var": "is_urgent", "equals": True}}
    workflow = workflow_of(validationCriteria=rule)
    assert blockers(workflow) == blockers(workflow, context={"is_urgent": False}) == []
    assert len(blockers(workflow, context={"is_urgent": True})) == 1


# Context keys.


def test_a_step_is_not_done_before_the_keys_it_produces_are_set() -> None:
    workflow = workflow_of(produces=["cause", "size"])
    found = blockers(workflow, context={"size": False})
    blocker = only(found)
    assert (blocker.code, blocker.pointer) == (
        "MISSING_REQUIRED_OUTPUT",
        ContextKeyPointer(key="cause"),
    )
    assert "'cause'" in fix_of(blocker)
    assert blockers(workflow, context={"size": 0, "cause": "it"}) == []
    assert len(blockers(workflow)) == 2


# Capabilities.

PROBED = compiled(step("b"), capabilities={"web_browsing": "required"})
PROBE = "probe--web_browsing"


def observation(status: str, capability: str = "web_browsing") -> dict[str, Json]:
    return {"kind": "wr.capability_observation", "capability": capability, "status": status}


def test_a_required_capability_that_is_there_lets_the_run_go_on() -> None:
    assert blockers(PROBED, observation("available"), notes=None, name=PROBE) == []
    (example,) = good_artifacts(PROBED, PROBE)
    assert example == observation("available")


@pytest.mark.parametrize(
    ("status", "code"),
    [("unavailable", "REQUIRED_CAPABILITY_UNAVAILABLE"), ("unknown", "REQUIRED_CAPABILITY_UNKNOWN")],
)
def test_a_required_capability_that_is_not_there_or_unknown_refuses(status: str, code: str) -> None:
    blocker = only(blockers(PROBED, observation(status), notes=None, name=PROBE))
    assert (blocker.code, blocker.pointer) == (
        code,
        CapabilityPointer(capability="web_browsing"),
    )
    assert "Report this to the user." in fix_of(blocker)


def test_a_probe_of_another_capability_is_no_probe_of_this_one() -> None:
    blocker = only(blockers(PROBED, observation("available", "delegation"), notes=None, name=PROBE))
    assert blocker.code == "INVALID_REQUIRED_OUTPUT"
    assert "found 'delegation', this step is about 'web_browsing'" in blocker.message


@pytest.mark.inv("EVID-6")
def test_everything_that_is_missing_is_reported_at_once() -> None:
    workflow = workflow_of(
        assessmentRefs=["quality"],
        assessments=[QUALITY],
        outputContract={"contractRef": REVIEW},
        notes="required",
        produces=["cause"],
    )
    assert [blocker.code for blocker in blockers(workflow, notes=None)] == ["MISSING_REQUIRED_OUTPUT"] * 4
