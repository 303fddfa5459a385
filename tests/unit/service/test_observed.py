"""What an agent tells beside its evidence: what its client can do, by how it is known, and where it left the script."""

import pytest
from tests.support.flow import Document, declared, document, step
from tests.support.modes import NEVER_STOPS, codes, details_of, events_of, gaps_in, serving, with_artifacts

from interlock.kernel.budgets import DIVERGENCE_SUMMARY_BYTES_MAX
from interlock.kernel.text import TRUNCATION_MARKER
from interlock.record.events import CapabilityObservedEvent, DivergenceRecordedEvent
from interlock.testing.harness import Harness, ToolResult

CONTRACT = {"contractRef": "wr.contracts.capability_observation"}
SEEN = "artifact.status"


def seen(status: str = "available", capability: str = "web_browsing") -> Document:
    return {"kind": "wr.capability_observation", "capability": capability, "status": status}


def left(**changes: object) -> Document:
    return {"kind": "wr.workflow_divergence", "reason": "efficiency_skip", "summary": "Skipped it."} | changes


def observed(harness: Harness, first: ToolResult) -> list[Document]:
    found = events_of(harness, first, "capability_observed")
    return [one.data.to_json() for one in found if isinstance(one, CapabilityObservedEvent)]


@pytest.mark.produces("event:capability_observed")
@pytest.mark.inv("EVID-3")
@pytest.mark.parametrize(
    ("status", "result"), [("available", "success"), ("unavailable", "failure"), ("unknown", "failure")]
)
def test_what_a_probe_of_the_plan_finds_is_known_for_sure(status: str, result: str) -> None:
    harness = serving(step("a"), capabilities={"web_browsing": "required"})
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    harness.advance(first, output=with_artifacts(seen(status)))
    (found,) = observed(harness, first)
    assert (found["capability"], found["status"]) == ("web_browsing", status)
    provenance = found["provenance"]
    assert (provenance["kind"], provenance["enforcementGrade"]) == ("probe_step", "strong")
    assert (provenance["detail"]["probeStepId"], provenance["detail"]["result"]) == ("probe--web_browsing", result)


@pytest.mark.inv("EVID-3")
@pytest.mark.parametrize("status", ["available", "unavailable"])
def test_what_a_step_about_a_capability_finds_is_an_attempted_use(status: str) -> None:
    harness = serving(step("a", outputContract=CONTRACT), step("b"))
    first = harness.start("test.flow")
    harness.advance(first, output=with_artifacts(seen(status)))
    (found,) = observed(harness, first)
    failed = {"result": "failure", "failureCode": "unknown"}
    assert found["provenance"] == {
        "kind": "attempted_use",
        "enforcementGrade": "strong",
        "detail": {"attemptContext": "workflow_step"} | (failed if status == "unavailable" else {"result": "success"}),
    }


@pytest.mark.inv("EVID-8")
@pytest.mark.parametrize("need", [None, "preferred"])
@pytest.mark.parametrize("status", ["unavailable", "unknown"])
def test_a_workflow_that_does_not_require_a_capability_goes_on_without_it(need: str | None, status: str) -> None:
    probe = step("a", outputContract=CONTRACT, capabilities=["web_browsing"], set=[{"key": "web", "from": SEEN}])
    more: Document = {"capabilities": {"web_browsing": need}} if need else {}
    ways = {"choose": [{"when": {"var": "web", "equals": "available"}, "steps": [step("b")]}], "otherwise": [step("c")]}
    harness = serving(probe, {"id": "way", "title": "The way", **ways}, inputs=[declared("web")], **more)
    first = harness.start("test.flow")
    second = harness.advance(first, output=with_artifacts(seen(status)))
    assert second["pending"]["stepId"] == "c"
    assert [one["status"] for one in observed(harness, first)] == [status]


@pytest.mark.inv("EVID-9")
@pytest.mark.parametrize("status", ["unavailable", "unknown"])
def test_a_refused_probe_is_recorded_as_an_observation_of_its_attempt(status: str) -> None:
    harness = serving(step("a"), capabilities={"web_browsing": "required"})
    first = harness.start("test.flow")
    blocked = harness.advance(first, output=with_artifacts(seen(status)))
    assert blocked["kind"] == "blocked"
    assert [(one["status"], one["provenance"]["kind"]) for one in observed(harness, first)] == [(status, "probe_step")]
    assert harness.advance(first, output=with_artifacts(seen(status))).text == blocked.text
    harness.advance(blocked, output=with_artifacts(seen()))
    assert [one["status"] for one in observed(harness, first)] == [status, "available"]


@pytest.mark.inv("EVID-9")
def test_a_refused_attempt_leaves_no_claim_and_nothing_that_it_says_is_there() -> None:
    harness = serving(step("a", outputContract=CONTRACT, produces=["k"]), step("b"))
    first = harness.start("test.flow")
    harness.advance(first, output=with_artifacts(seen()))
    assert observed(harness, first) == []


@pytest.mark.inv("EVID-3", "MODE-4")
def test_what_is_said_beside_another_step_is_a_claim_and_no_more() -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow")
    second = harness.advance(first, output=with_artifacts(seen("unavailable")))
    (found,) = observed(harness, first)
    assert found["provenance"] == {
        "kind": "manual_claim",
        "enforcementGrade": "weak",
        "detail": {"claimedBy": "agent", "claim": "unavailable"},
    }
    assert second.warnings == ["CLAIMED_FACT"]


@pytest.mark.inv("EVID-3")
def test_a_claim_beside_a_probe_settles_nothing() -> None:
    harness = serving(step("a"), capabilities={"web_browsing": "required"})
    first = harness.start("test.flow")
    blocked = harness.advance(first, output=with_artifacts(seen("available", "delegation")))
    assert codes(blocked) == ["INVALID_REQUIRED_OUTPUT"]
    assert observed(harness, first) == []


@pytest.mark.inv("EVID-3")
@pytest.mark.parametrize(
    "said", [seen("unknown"), seen(capability="flying"), seen("perhaps"), {"kind": seen()["kind"]}]
)
def test_what_says_nothing_of_a_capability_is_no_observation_and_no_fault(said: Document) -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow")
    assert harness.advance(first, output=with_artifacts(said))["kind"] == "ok"
    assert observed(harness, first) == []


@pytest.mark.inv("EVID-3")
def test_an_observation_that_comes_twice_is_recorded_once() -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow")
    harness.advance(first, output=with_artifacts(seen(), seen(), seen(capability="delegation")))
    assert sorted(one["capability"] for one in observed(harness, first)) == ["delegation", "web_browsing"]


# Divergences.


def divergences(harness: Harness, first: ToolResult) -> list[Document]:
    found = events_of(harness, first, "divergence_recorded")
    return [one.data.to_json() for one in found if isinstance(one, DivergenceRecordedEvent)]


@pytest.mark.inv("EVID-10")
@pytest.mark.parametrize("place", ["stepId", "relatedStepId"])
def test_a_divergence_is_recorded_with_the_step_that_it_names(place: str) -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow")
    assert harness.advance(first, output=with_artifacts(left(**{place: "b"})))["kind"] == "ok"
    assert [one["relatedStepId"] for one in divergences(harness, first)] == ["b"]


@pytest.mark.produces("event:divergence_recorded")
@pytest.mark.inv("EVID-4")
@pytest.mark.parametrize(
    "reason",
    ["missing_user_context", "capability_unavailable", "efficiency_skip", "safety_stop", "policy_constraint"],
)
@pytest.mark.parametrize("step_id", [None, "b"])
def test_leaving_the_script_is_recorded_with_its_reason_and_the_step(reason: str, step_id: str | None) -> None:
    harness = serving(step("a"), step("b"))
    first = harness.start("test.flow")
    assert harness.advance(first, output=with_artifacts(left(reason=reason, stepId=step_id)))["kind"] == "ok"
    (found,) = divergences(harness, first)
    assert (found["reason"], found["summary"], found["relatedStepId"]) == (reason, "Skipped it.", step_id or "a")


@pytest.mark.inv("EVID-4", "EVID-10")
@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"summary": "x" * 1025}, "summary"),
        ({"relatedStepId": "bb"}, "did you mean 'b'"),
        ({"stepId": "bb"}, "there is no step 'bb'"),
        ({"extra": 1}, "extra"),
        ({"reason": "lazy"}, "reason"),
        ({"reason": None}, "reason"),
        ({"summary": ""}, "summary"),
        ({"summary": 7}, "summary"),
        ({"summary": "<what was left out or done instead, and why>"}, "summary"),
        ({"stepId": "No Such"}, "stepId"),
        ({"stepId": 7}, "stepId"),
    ],
)
def test_a_divergence_that_cannot_be_understood_is_refused_with_its_place_and_the_example(
    change: Document, place: str
) -> None:
    harness = serving(step("a"), step("b"))
    blocked = harness.advance(harness.start("test.flow"), output=with_artifacts(left(**change)))
    assert codes(blocked) == ["INVALID_REQUIRED_OUTPUT"]
    assert place in blocked["blockers"][0]["message"]
    assert "reason: missing_user_context | capability_unavailable" in blocked["blockers"][0]["suggestedFix"]
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    harness.advance(first, output=with_artifacts(left(**change)))
    assert details_of(gaps_in(harness, first)) == ["invalid_required_output"]
    assert divergences(harness, first) == []


@pytest.mark.inv("EVID-4")
def test_however_much_is_said_of_divergences_the_log_holds_its_beginning() -> None:
    harness = Harness.in_memory(document(step("a"), step("b")))
    first = harness.start("test.flow")
    long = [left(summary=f"{number}" + "é" * 1_000) for number in range(6)]
    assert harness.advance(first, output=with_artifacts(*long))["kind"] == "ok"
    outcome = [str(one["summary"]) for one in divergences(harness, first)]
    assert sorted(words[0] for words in outcome) == list("012345")
    assert all(words.endswith(TRUNCATION_MARKER) for words in outcome)
    assert all(len(words.encode()) <= DIVERGENCE_SUMMARY_BYTES_MAX for words in outcome)
