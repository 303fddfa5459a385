"""An agent's own word opens a gate only where the policy says so, and it is disclosed as a claim."""

import json

import pytest
from tests.support.evidence import FAILED, GOOD
from tests.support.flow import Document, choose, step
from tests.support.modes import (
    NEVER_STOPS,
    answering,
    asking,
    claim,
    details_of,
    gaps_in,
    serving,
    session_of,
    status_of,
    with_artifacts,
)
from tests.support.verify import unsound

from interlock.record.payloads import ArtifactPayload, OutputEvidence
from interlock.testing.harness import Harness, ToolResult
from interlock.views.timeline import entry_of

GATED = step("a", requireConfirmation=True)
ACCEPTED = {
    ("when_client_cannot_ask", False): True,
    ("when_client_cannot_ask", True): False,
    ("always", False): True,
    ("always", True): True,
    ("never", False): False,
    ("never", True): False,
}


def gated() -> tuple[Harness, ToolResult]:
    harness = serving(GATED, step("b"))
    return harness, harness.start("test.flow")


@pytest.mark.inv("GATE-6")
@pytest.mark.parametrize(("claims", "can_ask"), ACCEPTED)
def test_a_claim_opens_a_gate_exactly_where_the_policy_accepts_it(claims: str, *, can_ask: bool) -> None:
    harness, first = gated()
    client = asking(harness, client_can=can_ask, claims=claims)
    is_accepted = ACCEPTED[claims, can_ask]
    waiting = client.advance(first)
    shown = [one["choices"] for one in waiting["nextCall"]["fill"] if one["path"] == "output.artifacts[0].kind"]
    assert shown == ([["wr.confirmation"]] if is_accepted else [])
    answer = client.advance(first, output=with_artifacts(claim()))
    assert answer["kind"] == ("ok" if is_accepted else "blocked")
    assert answer["nextIntent"] == ("perform_pending_then_continue" if is_accepted else "await_user_confirmation")


@pytest.mark.inv("GATE-6")
@pytest.mark.parametrize(
    "said",
    [
        claim("<who>", "<what they confirmed>"),
        claim("Ada", "<what they confirmed>"),
        claim("<who>", "All of it"),
        claim("Ada", "  "),
        claim("", "All of it"),
        {"kind": "wr.confirmation", "statement": "All of it"},
        {"kind": "wr.confirmation", "confirmedBy": ["Ada"], "statement": "All of it"},
        {"kind": "wr.decision", "confirmedBy": "Ada", "statement": "All of it"},
    ],
)
def test_what_does_not_say_who_confirmed_what_is_no_claim(said: Document) -> None:
    harness, first = gated()
    assert harness.advance(first, output=with_artifacts(said))["nextIntent"] == "await_user_confirmation"
    assert len(harness.events(harness.session_of(first))) == 4


@pytest.mark.inv("GATE-6")
def test_a_claim_is_disclosed_as_a_warning_and_leaves_the_run_complete() -> None:
    harness, first = gated()
    second = harness.advance(first, output=with_artifacts(claim("Ada", "All of it")))
    (gap,) = gaps_in(harness, first)
    assert (gap.severity, gap.reason.detail) == ("warning", "needs_user_approval")
    assert all(words in gap.summary for words in ("claims", "Ada", "All of it"))
    assert "answered" not in second.structure
    last = harness.advance(second)
    assert "COMPLETE_WITH_GAPS" not in last.warnings
    assert status_of(harness, first) == "complete"
    child = next(node for node in session_of(harness, first).nodes.values() if node.gaps)
    assert child.trace[0].summary == "The step was approved by a claim."


LONG = "Agreed on the plan with the user, who read each part of it and asked for no change."
PLAN: Document = {"key": "plan", "type": "string", "description": "What is done."}


def refused_with_a_claim() -> tuple[Harness, ToolResult]:
    """Return a run at its gate, where a claim came with notes that are too short."""
    gate = step("b", requireConfirmation=True, validationCriteria={"type": "length", "min": 40})
    harness = serving(step("a", produces=["plan"]), gate, step("c"), inputs=[PLAN])
    second = harness.advance(harness.start("test.flow"), context={"plan": "add a flag"})
    refused = harness.advance(second, output=with_artifacts(claim(), notes="Agreed."))
    assert refused["kind"] == "blocked"
    return harness, refused


@pytest.mark.inv("GATE-6", "EVID-2")
def test_a_claim_that_came_with_a_refused_report_is_not_asked_for_again_and_opens_the_gate() -> None:
    harness, refused = refused_with_a_claim()
    assert [one["path"] for one in refused["nextCall"]["fill"]] == ["output.notesMarkdown"]
    answer = harness.advance(refused, output={"notesMarkdown": LONG})
    assert (answer["kind"], answer["pending"]["stepId"]) == ("ok", "c")
    assert unsound(harness.store) == []


@pytest.mark.inv("GATE-6", "EVID-13")
@pytest.mark.parametrize(("box", "is_changed"), [({}, True), (None, False)])
def test_a_claim_is_asked_for_again_with_context_that_changes_what_it_is_about(
    *, box: Document | None, is_changed: bool
) -> None:
    """The key was asked for without the claim, then the claim without the key, until the step had no attempt left."""
    gate = step("a", requireConfirmation=True)
    declared: Document = {"key": "box", "type": "object", "required": False, "description": "The box."}
    choice = choose("c", ({"var": "box.size", "gte": 2}, [step("b")]))
    harness = serving(gate, choice, step("d"), inputs=[declared])
    first = harness.start("test.flow", context={} if box is None else {"box": box})
    refused = harness.advance(first, output=with_artifacts(claim()))
    paths = [one["path"] for one in refused["nextCall"]["fill"]]
    assert [paths.count("context.box"), paths.count("output.artifacts[0].confirmedBy")] == [1, int(is_changed)]
    output = with_artifacts(claim()) if is_changed else None
    answer = harness.advance(refused, output=output, context={"box": {"size": 3}})
    assert (answer["kind"], answer["pending"]["stepId"]) == ("ok", "b")


@pytest.mark.inv("GATE-6")
@pytest.mark.parametrize("later", [0, 1])
def test_a_claim_does_not_open_the_gate_for_context_that_came_after_it(later: int) -> None:
    harness, refused = refused_with_a_claim()
    changed: Document = {"plan": "drop the database"}
    if later:
        refused = harness.advance(refused, output={"notesMarkdown": "Still short."}, context=changed)
        waiting = harness.advance(refused, output={"notesMarkdown": LONG})
    else:
        waiting = harness.advance(refused, output={"notesMarkdown": LONG}, context=changed)
    assert waiting["nextIntent"] == "await_user_confirmation"
    paths = [one["path"] for one in waiting["nextCall"]["fill"]]
    assert "output.artifacts[0].confirmedBy" in paths
    answer = harness.advance(refused, output=with_artifacts(claim(), notes=LONG), context={} if later else changed)
    assert answer["pending"]["stepId"] == "c"
    assert unsound(harness.store) == []


@pytest.mark.inv("GATE-6")
def test_a_claim_does_not_open_the_gate_for_an_artifact_that_replaced_the_one_it_came_with() -> None:
    gate = checked("b", requireConfirmation=True, notes="required", validationCriteria={"type": "length", "min": 40})
    harness = serving(gate, step("c"))
    refused = harness.advance(
        harness.start("test.flow"), output=with_artifacts(verdict("passed"), claim(), notes="Agreed.")
    )
    again = harness.advance(refused, output=with_artifacts(verdict("failed"), notes=LONG))
    assert again["nextIntent"] == "await_user_confirmation"
    assert harness.advance(refused, output=with_artifacts(verdict("passed"), notes=LONG))["pending"]["stepId"] == "c"


def checked(name: str, **more: object) -> Document:
    return step(name, outputContract={"contractRef": "wr.contracts.verification_report"}, **more)


def verdict(word: str) -> Document:
    contract = "wr.contracts.verification_report"
    best, *changed = GOOD[contract], *({**GOOD[contract], **one} for one in FAILED[contract])
    return next(dict(one) for one in (best, *changed) if one["verdict"] == word)


PATHS: dict[str, tuple[list[Document], list[list[Document]], str]] = {
    "claim after": ([checked("v"), GATED, step("b")], [[verdict("failed")], [claim()], []], "complete_with_gaps"),
    "claim at the end": ([checked("v"), GATED], [[verdict("failed")], [claim()]], "complete_with_gaps"),
    "claim with it": ([checked("v", requireConfirmation=True)], [[verdict("failed"), claim()]], "complete_with_gaps"),
    "repaired": (
        [checked("v"), GATED, checked("w")],
        [[verdict("failed")], [claim()], [verdict("passed")]],
        "complete",
    ),
    "claim before": ([GATED, checked("v")], [[claim()], [verdict("failed")]], "complete"),
    "neither": ([checked("v"), GATED], [[verdict("partial")], [claim()]], "complete"),
}


@pytest.mark.inv("MODE-13", "GATE-6")
@pytest.mark.parametrize("path", PATHS)
def test_a_claim_that_overrules_a_failed_verdict_leaves_an_open_gap_at_the_end(path: str) -> None:
    steps, reports, status = PATHS[path]
    harness = serving(*steps)
    first = answer = harness.start("test.flow")
    for number, artifacts in enumerate(reports):
        answer = harness.advance(answer, output=with_artifacts(*artifacts, notes=f"Did part {number}."))
    assert answer["isComplete"]
    assert status_of(harness, first) == status
    assert ("COMPLETE_WITH_GAPS" in answer.warnings) == (status != "complete")
    assert unsound(harness.store) == []


@pytest.mark.inv("MODE-13")
def test_a_person_may_accept_a_failed_verdict() -> None:
    harness = serving(checked("v"), GATED)
    first = harness.start("test.flow")
    second = harness.advance(first, output=with_artifacts(verdict("failed")))
    assert answering(harness).advance(second)["isComplete"]
    assert status_of(harness, first) == "complete"


@pytest.mark.inv("GATE-6", "GATE-3")
def test_a_claim_that_came_otherwise_is_still_the_same_request_on_replay() -> None:
    harness, first = gated()
    second = harness.advance(first, output=with_artifacts(claim()))
    again = harness.advance(first, output=with_artifacts(claim("Bob", "Nothing")))
    assert (again.text, again.structure) == (second.text, second.structure)


@pytest.mark.inv("GATE-6", "GAP-2")
def test_a_claim_is_settled_when_a_person_confirms_the_step_on_a_branch() -> None:
    harness, first = gated()
    harness.advance(first, output=with_artifacts(claim()))
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    answering(harness).advance(fork)
    assert [gap.resolution.kind for gap in gaps_in(harness, first)] == ["unresolved", "resolves"]
    assert len(session_of(harness, first).open_gaps) == 0


@pytest.mark.inv("GATE-6", "MODE-2")
@pytest.mark.parametrize("is_claimed", [True, False])
def test_a_run_that_never_stops_goes_through_a_gate_and_says_who_let_it(*, is_claimed: bool) -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    second = harness.advance(first, output=with_artifacts(*([claim()] if is_claimed else [])))
    assert second["pending"]["stepId"] == "b"
    assert details_of(gaps_in(harness, first)) == ["needs_user_approval"]
    assert [gap.severity for gap in gaps_in(harness, first)] == ["warning" if is_claimed else "critical"]


@pytest.mark.inv("MODE-2", "GATE-6")
def test_a_run_that_never_stops_asks_nobody() -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow", preferences=NEVER_STOPS)
    assert asking(harness).advance(first)["pending"]["stepId"] == "b"


# Risk.

TOLD = {"conservative": 2, "balanced": 1, "aggressive": 0}


@pytest.mark.inv("MODE-4")
@pytest.mark.parametrize("policy", TOLD)
def test_the_risk_policy_decides_how_many_claimed_facts_are_warned_of_and_nothing_else(policy: str) -> None:
    harness, plain = serving(GATED, step("b")), serving(GATED, step("b"))
    sent = with_artifacts(
        claim(), {"kind": "wr.capability_observation", "capability": "delegation", "status": "available"}
    )
    first = harness.start("test.flow", preferences={"riskPolicy": policy})
    second = harness.advance(first, output=sent)
    assert second.warnings == ["CLAIMED_FACT"] * TOLD[policy]
    assert (harness.advance(first, output=sent).text) == second.text
    usual = plain.start("test.flow")
    plain.advance(usual, output=sent)
    kinds = [
        [event.kind for event in one.events(one.session_of(run))] for one, run in ((harness, first), (plain, usual))
    ]
    assert kinds[0] == kinds[1]
    assert gaps_in(harness, first) == gaps_in(plain, usual)


@pytest.mark.inv("MODE-4")
@pytest.mark.parametrize("policy", TOLD)
def test_no_risk_policy_opens_a_gate_or_takes_missing_evidence(policy: str) -> None:
    harness = serving(GATED, step("b"))
    first = harness.start("test.flow", preferences={"riskPolicy": policy})
    assert harness.advance(first)["nextIntent"] == "await_user_confirmation"
    assert harness.advance(first, None)["blockers"][0]["code"] == "MISSING_REQUIRED_OUTPUT"


@pytest.mark.inv("MODE-4")
def test_a_policy_counts_from_the_node_that_its_change_makes() -> None:
    harness, first = gated()
    sent = with_artifacts(claim())
    second = harness.advance(first, output=sent, preferences={"riskPolicy": "aggressive"})
    assert second.warnings == []


# What the author recommends.

ADVISED: Document = {"recommendedAutonomy": "full_auto_stop_on_user_deps", "recommendedRiskPolicy": "balanced"}
BEYOND: list[tuple[Document, int]] = [
    ({}, 0),
    ({"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "balanced"}, 0),
    ({"autonomy": "full_auto_never_stop"}, 1),
    ({"riskPolicy": "aggressive"}, 1),
    ({"autonomy": "full_auto_never_stop", "riskPolicy": "aggressive"}, 2),
]


@pytest.mark.inv("MODE-5")
@pytest.mark.parametrize(("preferences", "count"), BEYOND)
def test_going_beyond_what_the_author_recommends_is_reported_at_the_start_and_on_a_change(
    preferences: Document, count: int
) -> None:
    harness = serving(step("a"), step("b"), step("c"), recommendedPreferences=ADVISED)
    expected = ["BEYOND_RECOMMENDATION"] * count
    assert harness.start("test.flow", preferences=preferences).warnings == expected
    first = harness.start("test.flow")
    second = harness.advance(first, preferences=preferences)
    assert second.warnings == expected
    assert harness.advance(first, preferences=preferences).warnings == expected
    assert harness.advance(second).warnings == []


@pytest.mark.inv("MODE-12")
@pytest.mark.parametrize(("preferences", "count"), BEYOND)
def test_going_beyond_what_the_author_recommends_is_recorded_on_its_node_and_shown_by_the_timeline(
    preferences: Document, count: int
) -> None:
    harness = serving(step("a"), step("b"), step("c"), recommendedPreferences=ADVISED)
    first = harness.start("test.flow")
    refused = harness.advance(first, None, preferences=preferences)
    second = harness.advance(refused)
    other = harness.start("test.flow", preferences=preferences)
    for begun, answer in ((first, refused), (other, other)):
        session = session_of(harness, begun)
        recorded = {
            node.node: [one.summary for one in node.trace if "the author recommends" in one.summary]
            for node in session.nodes.values()
        }
        assert sorted(map(len, recorded.values())) == [0] * (len(recorded) - 1) + [count]
        words = [one for summaries in recorded.values() for one in summaries]
        assert all(one in answer.text for one in words)
        shown = entry_of(session, harness.events(harness.session_of(begun)), lambda _: "a step").more
        assert [f"because: {one}" for one in words] == [line for line in shown if "the author recommends" in line]
    assert second["kind"] == "ok"


@pytest.mark.inv("MODE-5")
def test_where_nothing_is_recommended_nothing_is_beyond_it() -> None:
    harness = serving(step("a"), recommendedPreferences={"recommendedAutonomy": "guided"})
    assert harness.start("test.flow", preferences={"riskPolicy": "aggressive"}).warnings == []
    wide = {"autonomy": "full_auto_never_stop", "riskPolicy": "aggressive"}
    assert serving(step("a")).start("test.flow", preferences=wide).warnings == []


@pytest.mark.inv("GAP-4")
def test_the_gap_of_a_claim_refers_to_the_artifact_that_claims_it() -> None:
    harness, first = gated()
    harness.advance(first, output=with_artifacts({"kind": "mine"}, claim("Ada", "All of it")))
    (gap,) = gaps_in(harness, first)
    child = next(node for node in session_of(harness, first).nodes.values() if node.gaps)
    stored = {
        output.output_id: json.loads(harness.store.artifact(output.payload.sha256))["kind"]
        for output in child.outputs
        if isinstance(output.payload, ArtifactPayload)
    }
    assert sorted(stored.values()) == ["mine", "wr.confirmation"]
    assert gap.evidence_refs is not None
    (evidence,) = gap.evidence_refs
    assert isinstance(evidence, OutputEvidence)
    assert stored[evidence.output_id] == "wr.confirmation"
