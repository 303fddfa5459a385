"""What a step sets is held to its declaration when the step is reported: what only a run can show."""

from typing import Any

import pytest
from tests.support.flow import Document, declared, document, loop, step
from tests.support.modes import NEVER_STOPS

from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode
from interlock.record.events import ContextSetEvent
from interlock.testing.harness import Harness, ToolResult

REVIEW: Document = {
    "kind": "wr.review_verdict",
    "verdict": "minor",
    "confidence": "high",
    "findings": [{"severity": "nit", "summary": "A word."}],
    "summary": "All of it.",
}
CONTRACT = {"contractRef": "wr.contracts.review_verdict"}


def harness_of(target: Document, source: str, **more: object) -> Harness:
    # What a step produces is declared without a type, so only the report can show what came.
    more = {"produces": [source]} | more if source == "sent" else more
    one = step("a", set=[{"key": target["key"], "from": source}], **more)
    return Harness.in_memory(document(one, step("b", prompt="{{copy}}"), inputs=[target, declared("mode")]))


def blocker(answer: ToolResult) -> dict[str, Any]:
    assert answer["kind"] == "blocked"
    (found,) = answer["blockers"]
    assert found["code"] == "INVALID_REQUIRED_OUTPUT"
    assert found["message"] in answer.text
    return dict(found)


@pytest.mark.inv("CTX-9")
@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("string", 3, "a number"),
        ("number", "3", "a string"),
        ("number", True, "true or false"),
        ("boolean", 1, "a number"),
        ("list", {}, "an object"),
        ("object", [], "a list"),
    ],
)
def test_a_value_of_another_kind_is_refused_naming_both_kinds(kind: str, value: object, found: str) -> None:
    harness = harness_of(declared("copy", kind), "sent")
    refused = harness.advance(harness.start("test.flow"), context={"sent": value})
    result = blocker(refused)
    assert result["pointer"] == {"kind": "context_key", "key": "sent"}
    wanted = "an object" if kind == "object" else f"a {kind}"
    assert result["details"] == {"key": "copy", "found": found, "wanted": wanted}
    assert "'copy'" in result["message"]
    assert found in result["message"]
    assert wanted in result["suggestedFix"]
    assert "context" not in refused["nextCall"]["arguments"]
    assert refused["nextCall"]["fill"] == [{"path": "context.sent", "what": "the value of sent", "shape": wanted}]


@pytest.mark.inv("EFF-1")
def test_a_value_outside_the_choices_is_refused_and_one_of_them_goes_on() -> None:
    harness = harness_of(declared("copy", choices=["fast", "slow"]), "sent")
    refused = harness.advance(harness.start("test.flow"), context={"sent": "quick"})
    assert blocker(refused)["details"] == {"key": "copy", "found": '"quick"', "wanted": 'one of ["fast", "slow"]'}
    assert harness.advance(refused, None, context={"sent": "fast"})["pending"]["prompt"] == "fast"


def test_a_value_that_does_not_fit_is_nowhere_in_the_log() -> None:
    harness = harness_of(declared("copy", "number"), "sent")
    first = harness.start("test.flow")
    harness.advance(first, context={"sent": "x"})
    contexts = [event for event in harness.events(harness.session_of(first)) if isinstance(event, ContextSetEvent)]
    assert [event.data.context for event in contexts] == [{"sent": "x"}]


def test_a_member_of_the_artifact_that_does_not_fit_is_to_be_sent_again_with_the_artifact() -> None:
    harness = harness_of(declared("copy", choices=["clean"]), "artifact.verdict", outputContract=CONTRACT)
    refused = harness.advance(harness.start("test.flow"), None, output={"artifacts": [REVIEW]})
    result = blocker(refused)
    assert result["pointer"] == {"kind": "context_key", "key": "artifact.verdict"}
    assert result["details"] == {"key": "copy", "found": '"minor"', "wanted": 'one of ["clean"]'}
    assert "the artifact in `output.artifacts` again, with a correct 'verdict'" in result["suggestedFix"]
    paths = [blank["path"] for blank in refused["nextCall"]["fill"]]
    assert not any(path.startswith("context") for path in paths)
    assert {"path": "output.artifacts[0].kind", "choices": ["wr.review_verdict"]} in refused["nextCall"]["fill"]
    again = harness.advance(
        refused, None, output={"artifacts": [{**REVIEW, "verdict": "clean", "findings": list[Json]()}]}
    )
    assert again["pending"]["prompt"] == "clean"


def test_nothing_is_set_to_null_where_the_key_is_required_and_elsewhere_it_is_removed() -> None:
    for is_required in (True, False):
        harness = harness_of(declared("copy", required=is_required), "box.size", produces=["box"])
        first = harness.start("test.flow", context={"copy": "before", "box": {"size": None}})
        answer = harness.advance(first)
        if is_required:
            assert blocker(answer)["details"] == {"key": "copy", "found": "nothing", "wanted": "a string"}
        else:
            assert answer["pending"]["prompt"] == "[context key not set: copy]"


def test_a_refused_set_is_reported_the_same_when_it_is_sent_again() -> None:
    harness = harness_of(declared("copy", "number"), "sent")
    first = harness.start("test.flow")
    one, two = (harness.advance(first, context={"sent": "x"}) for _ in range(2))
    assert (one.structure, one.text) == (two.structure, two.text)


def test_a_long_list_of_choices_leaves_the_blocker_whole() -> None:
    harness = harness_of(declared("copy", choices=[f"choice-{number}" for number in range(50)]), "sent")
    result = blocker(harness.advance(harness.start("test.flow"), context={"sent": "x"}))
    assert result["suggestedFix"].endswith("Use the tokens of this answer, not the earlier ones.")


SETTING = document(
    step("a", set=[{"key": "outcome", "value": "x"}, {"key": "must", "value": "y"}]),
    step("b", set=[{"key": "outcome", "value": "z"}]),
    inputs=[declared("outcome"), declared("must", required=True), declared("mode")],
)


@pytest.mark.parametrize("detail", ["summary", "plan"])
def test_an_inspection_tells_what_to_start_with_from_what_steps_set(detail: str) -> None:
    answer = Harness.in_memory(SETTING).call("inspect_workflow", {"workflowId": "test.flow", "detail": detail})
    assert {one["key"]: one.get("setBy") for one in answer["inputs"]} == {
        "outcome": ["a", "b"],
        "must": ["a"],
        "mode": None,
    }
    assert "- `context.outcome` (string) is set by `a`, `b`; you need not send it: The outcome." in answer.text
    assert "- start with `context.must` (string, required): The must." in answer.text
    assert "- start with `context.mode` (string): The mode." in answer.text


def test_a_refused_start_asks_only_for_what_no_step_sets_by_itself() -> None:
    harness = Harness.in_memory(SETTING)
    refused = harness.start("test.flow")
    assert [one["key"] for one in refused["details"]["wanted"]] == ["mode", "must"]
    refused = harness.start("test.flow", context={"must": "it", "outcome": 1})
    assert [one["key"] for one in refused["details"]["wanted"]] == ["mode", "must", "outcome"]
    assert harness.start("test.flow", context={"must": "it", "outcome": "early"})["kind"] == "ok"


VERDICT = [declared("verdict")]
REVIEWED = step("fix", outputContract=CONTRACT, set=[{"key": "verdict", "from": "artifact.verdict"}])
IS_CLEAN = {"and": [{"var": "verdict", "exists": True}, {"var": "verdict", "equals": "clean"}]}
UNTIL_CLEAN = loop("l", REVIEWED, until=IS_CLEAN)


@pytest.mark.inv("CTX-11")
@pytest.mark.parametrize("preferences", [{}, NEVER_STOPS])
def test_a_report_cannot_send_what_ends_a_loop_if_a_step_sets_it(preferences: Document) -> None:
    harness = Harness.in_memory(document(step("a"), UNTIL_CLEAN, step("c"), inputs=VERDICT))
    first = harness.start("test.flow", preferences=preferences)
    events = len(harness.events(harness.session_of(first)))
    refused = harness.advance(first, context={"verdict": "clean", "other": 1})
    assert refused.code == ErrorCode.VALIDATION_ERROR
    assert refused["details"]["path"] == "context.verdict"
    assert "a step is done (`fix`)" in refused["message"]
    assert refused["details"]["correctedCall"]["arguments"]["context"] == {"other": 1}
    assert len(harness.events(harness.session_of(first))) == events
    second = harness.advance(first, context={"verdict": None, "other": 1})
    again = harness.advance(second, output={"artifacts": [REVIEW]}, notes=None)
    assert again["pending"]["loop"]["pass"] == 2
    assert harness.advance(again, context={"verdict": "clean"}).code == ErrorCode.VALIDATION_ERROR
    same = harness.advance(again, context={"verdict": "minor"}, output={"artifacts": [REVIEW]}, notes=None)
    assert same["pending"]["loop"]["pass"] == 3


@pytest.mark.inv("CTX-11")
def test_a_step_that_produces_a_key_may_send_it_although_another_step_sets_it() -> None:
    produced = step("a", produces=["verdict"])
    harness = Harness.in_memory(document(produced, UNTIL_CLEAN, inputs=VERDICT))
    assert harness.advance(harness.start("test.flow"), context={"verdict": "?"})["pending"]["stepId"] == "fix"


@pytest.mark.inv("CTX-11")
def test_a_key_that_a_refusal_asks_for_may_be_sent_although_a_step_sets_it() -> None:
    way = step("x", when={"var": "mode", "equals": "fast"}, set=[{"key": "verdict", "value": "clean"}])
    asked = step("b", when={"var": "verdict", "equals": "clean"})
    harness = Harness.in_memory(document(step("a"), way, asked, step("c"), inputs=[*VERDICT, declared("mode")]))
    first = harness.start("test.flow", context={"mode": "slow"})
    assert harness.advance(first, context={"verdict": "clean"}).code == ErrorCode.VALIDATION_ERROR
    refused = harness.advance(first)
    assert refused["blockers"][0]["pointer"] == {"kind": "context_key", "key": "verdict"}
    assert harness.advance(refused, context={"verdict": "clean"})["pending"]["stepId"] == "b"


def reading_a_source(source: Document, then: Document) -> Harness:
    inputs = [declared("box", "object"), declared("raw", "object"), declared("size", "number")]
    contract = {"outputContract": {"contractRef": "wr.contracts.review_verdict"}}
    first = step("a", notes="optional", **(contract if source.get("from") == "artifact" else {}))
    return Harness.in_memory(document(first | {"set": [source]}, step("b", **then), step("c"), inputs=inputs))


@pytest.mark.inv("WALK-2", "WALK-4")
def test_a_decision_on_a_key_that_the_step_sets_asks_for_what_it_is_set_from() -> None:
    harness = reading_a_source({"key": "box", "from": "raw"}, {"when": {"var": "box.size", "gt": 5}})
    answer = harness.start("test.flow", context={"raw": {"large": True}})
    refused = harness.advance(answer, "Looked.")
    (found,) = refused["blockers"]
    assert found["pointer"] == {"kind": "context_key", "key": "raw.size"}
    assert "'box.size', which is not set" in found["message"]
    assert "sets it from 'raw.size'" in found["message"]
    assert "'raw' in `context`, whole and including 'size'" in found["suggestedFix"]
    moved = harness.advance(refused, "Looked again.", context={"raw": {"size": 9}})
    assert moved["pending"]["stepId"] == "b"


@pytest.mark.inv("WALK-4")
def test_a_decision_on_a_key_that_is_set_to_a_constant_names_no_value_to_send() -> None:
    harness = reading_a_source({"key": "box", "value": {"large": True}}, {"needs": ["box.size"]})
    (found,) = harness.advance(harness.start("test.flow"), "Looked.")["blockers"]
    assert found["pointer"] == {"kind": "workflow_step", "stepId": "a"}
    assert "The pending step sets this key itself." in found["message"]
    assert "report to the user that the workflow is wrong" in found["suggestedFix"]


@pytest.mark.inv("WALK-4")
def test_a_decision_on_a_member_of_a_set_artifact_asks_for_the_artifact() -> None:
    harness = reading_a_source({"key": "box", "from": "artifact"}, {"when": {"var": "box.size", "gt": 5}})
    answer = harness.start("test.flow")
    refused = harness.follow(answer)
    (found,) = refused["blockers"]
    assert found["pointer"] == {"kind": "context_key", "key": "artifact.size"}
    assert "the artifact in `output.artifacts` again, with a correct 'size'" in found["suggestedFix"]
    assert refused["nextCall"]["fill"][0]["path"].startswith("output.artifacts[0]")


@pytest.mark.inv("WALK-4")
@pytest.mark.parametrize("reads", [{"when": {"var": "artifact.size", "gt": 5}}, {"needs": ["artifact.size"]}])
@pytest.mark.parametrize("contract", [None, "wr.contracts.review_verdict"])
def test_a_context_key_with_the_name_of_evidence_is_asked_for_in_the_context(
    reads: Document, contract: str | None
) -> None:
    first = step("a", notes="optional", **({"outputContract": {"contractRef": contract}} if contract else {}))
    inputs = [declared("artifact", "object")]
    harness = Harness.in_memory(document(first, step("b", **reads), step("c"), inputs=inputs))
    refused = harness.follow(harness.start("test.flow"))
    (found,) = refused["blockers"]
    assert "'artifact' in `context`, whole and including 'size'" in found["suggestedFix"]
    assert [one["path"] for one in refused["nextCall"]["fill"]] == ["context.artifact"]
    moved = harness.advance(refused, None, context={"artifact": {"size": 9}})
    assert moved["pending"]["stepId"] == "b"


@pytest.mark.inv("CTX-9")
def test_a_step_that_reads_a_key_which_is_not_set_is_not_said_to_set_it() -> None:
    added = {"key": "m", "compute": {"add": [{"var": "n"}, 1]}}
    inputs = [declared("m", "number"), declared("n", "number")]
    harness = Harness.in_memory(document(step("a", set=[added]), inputs=inputs))
    refused = harness.advance(harness.start("test.flow"))
    (found,) = refused["blockers"]
    assert found["code"] == "MISSING_REQUIRED_OUTPUT"
    assert found["pointer"] == {"kind": "context_key", "key": "n"}
    assert "sets 'm' from the context key 'n', which is not set." in found["message"]
