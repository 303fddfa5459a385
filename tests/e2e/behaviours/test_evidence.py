"""What a step asks for is asked for in its prompt, and a refusal says what would meet it."""

import json
from typing import Any

import pytest
from tests.e2e.behaviours.conftest import Maker
from tests.support.flow import IS_FAST, deciding, document, loop, step
from tests.support.server import ToolResult, blockers_of, step_of

from interlock.plan.builtins.packs import PACKS
from interlock.testing.harness import filled_call

CONTRACTS = sorted(ref for ref, pack in PACKS.items() if pack.kind is not None)
CONTROL = "wr.contracts.loop_control"
LOOPING = document(loop("l", step("b"), deciding("d"), **{"while": {"kind": "loop_control"}}), step("z"))
DIFFERENTIATION = {
    "kind": "wr.differentiation_handoff",
    "version": 1,
    "positioning": "For teams that lose work, a record of it, unlike a chat.",
    "keyDifferentiators": ["It survives a restart."],
    "targetSegment": "Teams with agents",
    "alternatives": [{"name": "Chat", "difference": "It forgets."}],
    "evidence": [{"claim": "It forgets.", "source": "interview 3"}],
    "risks": ["Nobody asks for it."],
}


def test_rules_for_notes_stand_in_the_prompt_and_each_that_is_not_met_is_reported_with_its_message(make: Maker) -> None:
    rules = [
        {"type": "contains", "value": "Risks:", "message": "List the risks."},
        {"type": "length", "min": 40, "message": "Say more."},
    ]
    served = make(document(step("a", validationCriteria=rules), step("b")))
    first = served.start("test.flow")
    for words in ("must contain 'Risks:'", "at least 40 characters"):
        assert words in first["pending"]["prompt"]
    refused = served.advance(first, "Done.")
    assert blockers_of(refused) == [("INVALID_REQUIRED_OUTPUT", "wr.contracts.notes")]
    for words in ("List the risks.", "Say more."):
        assert words in refused["blockers"][0]["message"]
    one_left = served.advance(refused, "Done at some length, and with care, but nothing was listed.")
    assert "List the risks." in one_left["blockers"][0]["message"]
    assert "Say more." not in one_left["blockers"][0]["message"]
    assert step_of(served.advance(one_left, "Done. Risks: none that would matter to anybody here.")) == "b"


def test_a_rule_that_asks_only_under_a_condition_is_reported_with_that_condition(make: Maker) -> None:
    rule = {"type": "contains", "value": "Hurried", "when": IS_FAST}
    served = make(document(step("a", validationCriteria=rule), step("b")))
    first = served.start("test.flow", context={"mode": "slow"})
    outcome = [line for line in first["pending"]["prompt"].splitlines() if "Hurried" in line]
    assert all("mode" in line for line in outcome)


@pytest.mark.inv("EVID-1")
@pytest.mark.parametrize(
    ("sent", "code", "found"),
    [
        ((), "MISSING_REQUIRED_OUTPUT", "no artifact was sent"),
        (({"kind": "wr.decision", "decision": "stop"},), "MISSING_REQUIRED_OUTPUT", "'wr.decision'"),
        (({"kind": "wr.loop_control", "decision": "maybe"},), "INVALID_REQUIRED_OUTPUT", '"maybe"'),
        (({"kind": "wr.loop_control"},), "INVALID_REQUIRED_OUTPUT", "decision"),
        (
            ({"kind": "wr.loop_control", "decision": "stop", "summary": "Done.", "loopId": "m"},),
            "INVALID_REQUIRED_OUTPUT",
            "'m'",
        ),
    ],
    ids=["none", "another kind", "an unknown decision", "no decision", "another loop"],
)
def test_an_artifact_that_does_not_do_is_reported_with_what_came_and_an_example_that_does(
    make: Maker, sent: tuple[dict[str, Any], ...], code: str, found: str
) -> None:
    served = make(LOOPING)
    deciding_step = served.advance(served.start("test.flow"))
    refused = served.report(deciding_step, *sent, notes="Done.")
    assert blockers_of(refused) == [(code, CONTROL)]
    (blocker,) = refused["blockers"]
    assert found in blocker["message"]
    fixed = [one for one in refused["nextCall"]["fill"] if len(one.get("choices", ())) == 1]
    assert [one["choices"] for one in fixed] == [["wr.loop_control"], ["l"]]
    assert "kind: wr.loop_control, decision: continue | stop" in blocker["suggestedFix"]
    assert step_of(served.follow(refused)) == "z"


def test_an_artifact_that_is_not_required_may_be_left_out_and_is_judged_if_it_comes(make: Maker) -> None:
    contract = {"contractRef": "wr.contracts.decision", "required": False}
    served = make(document(step("a", outputContract=contract), step("b")))
    assert step_of(served.advance(served.start("test.flow"))) == "b"
    refused = served.report(served.start("test.flow"), {"kind": "wr.decision", "result": "yes"}, notes="Done.")
    assert blockers_of(refused) == [("INVALID_REQUIRED_OUTPUT", "wr.contracts.decision")]


@pytest.mark.inv("EVID-1")
@pytest.mark.parametrize("ref", CONTRACTS)
def test_the_artifact_that_an_answer_shows_meets_its_contract_and_none_does_not(make: Maker, ref: str) -> None:
    served = make(document(step("a", outputContract={"contractRef": ref}), step("b")))
    first = served.start("test.flow")
    assert blockers_of(served.advance(first)) == [("MISSING_REQUIRED_OUTPUT", ref)]
    fresh = served.start("test.flow")
    (artifact,) = filled_call(fresh["nextCall"])["output"]["artifacts"]
    assert artifact["kind"] == PACKS[ref].kind
    assert step_of(served.report(fresh, artifact)) == "b"


def test_an_artifact_with_all_that_its_contract_leaves_open_is_taken(make: Maker) -> None:
    contract = {"contractRef": "wr.contracts.differentiation_handoff"}
    served = make(document(step("a", outputContract=contract), step("b")))
    assert step_of(served.report(served.start("test.flow"), DIFFERENTIATION)) == "b"
    worse = DIFFERENTIATION | {"keyDifferentiators": "many"}
    refused = served.report(served.start("test.flow"), worse)
    assert "keyDifferentiators" in refused["blockers"][0]["message"]


# Ratings.

LEVELS = ["low", "high"]
CLEAR = {"id": "clear", "purpose": "Is it clear?", "levels": LEVELS}
SOUND = {"id": "sound", "purpose": "Is it sound?", "levels": LEVELS, "required": False}
QUALITY = {"id": "quality", "purpose": "How good it is.", "dimensions": [CLEAR, SOUND]}
RISK = {"id": "risk", "purpose": "What may break.", "dimensions": [{**CLEAR, "id": "harm", "levels": ["no", "yes"]}]}
REWORK = {
    "when": {"anyEqualsLevel": "low"},
    "effect": {"kind": "require_followup", "guidance": "Rework what is weak."},
}
RATED = document(step("a", assessmentRefs=["quality"]), step("b"), assessments=[QUALITY])


def rating(assessment: str | None = None, **dimensions: object) -> dict[str, object]:
    named = {} if assessment is None else {"assessmentId": assessment}
    return {"kind": "wr.assessment", **named, "dimensions": dimensions, "summary": "Why."}


@pytest.mark.parametrize(
    ("dimensions", "said"),
    [
        ({"clear": "great"}, "`dimensions.clear`: found 'great'; use one of low | high"),
        ({"sound": "high"}, "`dimensions.clear`: missing"),
        ({"clear": "high", "depth": "low"}, "`dimensions.depth`: there is no such dimension"),
    ],
    ids=["an unknown level", "a dimension is missing", "an unknown dimension"],
)
def test_a_rating_that_is_none_is_refused_by_the_dimension(make: Maker, dimensions: dict[str, str], said: str) -> None:
    served = make(RATED)
    first = served.start("test.flow")
    for level in LEVELS:
        assert level in first["pending"]["prompt"]
    refused = served.report(first, rating(**dimensions), notes="Done.")
    assert blockers_of(refused) == [("INVALID_REQUIRED_OUTPUT", "wr.contracts.assessment")]
    assert said in refused["blockers"][0]["message"]
    assert step_of(served.follow(refused)) == "b"


def test_a_level_spelled_with_spaces_and_capitals_is_read_as_meant_and_the_log_says_so(make: Maker) -> None:
    served = make(RATED)
    first = served.start("test.flow")
    second = served.report(first, rating(clear="  High "), notes="Done.")
    assert step_of(second) == "b"
    assert second.warnings == ["LEVEL_NORMALISED"]
    recorded = json.dumps([event["data"] for event in served.events(first) if event["kind"].startswith("decision")])
    assert "' High '" in recorded
    assert "'high'" in recorded


def test_a_level_that_calls_for_more_work_holds_the_step_until_it_is_rated_better(make: Maker) -> None:
    served = make(
        document(
            step("a", assessmentRefs=["quality"], assessmentConsequences=[REWORK]), step("b"), assessments=[QUALITY]
        )
    )
    refused = served.report(served.start("test.flow"), rating(clear="low"), notes="Done.")
    assert blockers_of(refused) == [("INVALID_REQUIRED_OUTPUT", "wr.contracts.assessment")]
    assert "Rework what is weak." in refused["blockers"][0]["message"]
    assert "Rework what is weak." in refused.text
    again = served.report(refused, rating(clear="high", sound="low"))
    assert "Rework what is weak." in again["blockers"][0]["message"]
    assert step_of(served.report(again, rating(clear="high", sound="high"))) == "b"


def test_of_two_ratings_each_is_matched_by_its_name_and_both_must_come(make: Maker) -> None:
    served = make(document(step("a", assessmentRefs=["quality", "risk"]), step("b"), assessments=[QUALITY, RISK]))
    quality, risk = rating("quality", clear="high"), rating("risk", harm="no")
    for missing, sent in (("risk", quality), ("quality", risk)):
        first = served.start("test.flow")
        refused = served.report(first, sent, notes="Done.")
        assert blockers_of(refused) == [("MISSING_REQUIRED_OUTPUT", "wr.contracts.assessment")]
        assert f"assessmentId: {missing}" in refused["blockers"][0]["suggestedFix"]
    assert step_of(served.report(served.start("test.flow"), risk, quality, notes="Done.")) == "b"
    swapped: ToolResult = served.report(served.start("test.flow"), rating("quality", harm="no"), risk, notes="Done.")
    assert [code for code, _ in blockers_of(swapped)] == ["INVALID_REQUIRED_OUTPUT"]
