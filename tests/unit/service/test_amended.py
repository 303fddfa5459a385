"""After a refusal, the shown call keeps what may stay of the artifact (EVID-13)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.support.shown import shown_calls

from interlock.engine.judge.amended import amended
from interlock.engine.judge.shape import artifact_outline
from interlock.kernel.blanks import Blank
from interlock.kernel.canonical import digest_of
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.record.payloads import ArtifactPayload
from interlock.testing.harness import Harness, ToolResult

_REVIEW = PACK_SCHEMAS["wr.contracts.review_verdict"]
_MINOR = {"severity": "minor", "summary": "A name is long."}
_MAJOR = {"severity": "major", "summary": "It loses data."}
_CLEAN: dict[str, Any] = {
    "kind": "wr.review_verdict",
    "confidence": "high",
    "verdict": "clean",
    "findings": [],
    "summary": "Read it.",
}
_WORKFLOW: dict[str, Any] = {
    "id": "test.review",
    "name": "Review",
    "description": "Reviews.",
    "steps": [
        {
            "id": "review",
            "title": "Review",
            "prompt": "Review it.",
            "outputContract": {"contractRef": "wr.contracts.review_verdict"},
        },
        {"id": "end", "title": "End", "prompt": "End it."},
    ],
}


def _open(artifact: Mapping[str, Any]) -> Mapping[str, object]:
    """Return what has to change of a review, with its choices; the rest must be unchanged."""
    shown = amended(artifact, _REVIEW, artifact_outline(_REVIEW))
    blanks = {name: value.choices for name, value in shown.items() if isinstance(value, Blank)}
    for name, value in shown.items():
        assert name in blanks or value == artifact[name]
    return blanks


@pytest.mark.inv("EVID-13")
@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"findings": [_MINOR]}, {"verdict": ("minor",)}),
        ({"findings": [_MAJOR]}, {"verdict": ("blocking",)}),
        ({"verdict": "minor", "findings": [_MAJOR]}, {"verdict": ("blocking",)}),
        ({"verdict": "minor"}, {"verdict": ("clean", "minor", "blocking"), "findings": ()}),
        ({"verdict": "blocking", "findings": [_MINOR]}, {"verdict": ("clean", "minor", "blocking"), "findings": ()}),
        ({"confidence": "very"}, {"confidence": ("high", "medium", "low")}),
        ({"summary": "<what you reviewed>"}, {"summary": ()}),
        ({"findings": [{"severity": "nit"}], "verdict": "minor"}, {"findings": ()}),
        (
            {"findings": [_MINOR], "summary": "<the result>"},
            {"verdict": ("clean", "minor", "blocking"), "findings": (), "summary": ()},
        ),
    ],
)
def test_only_what_has_to_change_is_asked_for(change: Mapping[str, Any], left: Mapping[str, Any]) -> None:
    """A verdict follows its findings. Where findings are missing, the call does not lead to the better verdict."""
    assert _open({**_CLEAN, **change}) == left


@pytest.mark.inv("EVID-13")
def test_a_missing_field_is_asked_for_and_an_unknown_one_is_left_out() -> None:
    artifact = {name: value for name, value in _CLEAN.items() if name != "summary"} | {"mood": "good"}
    shown = amended(artifact, _REVIEW, artifact_outline(_REVIEW))
    assert "mood" not in shown
    assert [name for name, value in shown.items() if isinstance(value, Blank)] == ["summary"]


@pytest.mark.inv("EVID-13")
def test_the_refusal_and_a_later_look_keep_what_was_sent_in_both_channels() -> None:
    """What is filled in is accepted."""
    harness = Harness.in_memory(_WORKFLOW)
    first = harness.start("test.review")
    sent = {**_CLEAN, "findings": [_MINOR]}
    refused = harness.advance(first, None, output={"artifacts": [sent]})
    assert refused["kind"] == "blocked"
    for answer in (refused, harness.rehydrate(refused)):
        fill = {one["path"].rpartition(".")[2]: one["choices"] for one in answer["nextCall"]["fill"]}
        assert fill == {name: [value] for name, value in sent.items()} | {"verdict": ["minor"]}
        shown = shown_calls(answer.text)[-1][2]
        assert [one["path"] for one in shown] == [one["path"] for one in answer["nextCall"]["fill"]]
    assert harness.advance(refused, None, output={"artifacts": [sent | {"verdict": "minor"}]})["kind"] == "ok"


@pytest.mark.inv("EVID-13")
def test_an_artifact_that_is_too_long_to_repeat_is_asked_for_again() -> None:
    harness = Harness.in_memory(_WORKFLOW)
    first = harness.start("test.review")
    sent = {**_CLEAN, "findings": [_MINOR], "summary": "Read it. " * 200}
    refused = harness.advance(first, None, output={"artifacts": [sent]})
    assert [one.get("choices") for one in refused["nextCall"]["fill"]][-2:] == [None, None]


def _stored(harness: Harness, first: ToolResult) -> list[str]:
    """Return the digests of the artifacts that the first step was accepted with."""
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    (reached,) = [node for node in session.nodes.values() if node.kind == "step" and node.parent is not None]
    return [one.payload.sha256 for one in reached.outputs if isinstance(one.payload, ArtifactPayload)]


_LOST: dict[str, Any] = {**_CLEAN, "findings": [{"severity": "critical", "summary": "It loses data."}]}


@pytest.mark.inv("EVID-2")
@pytest.mark.parametrize("names", [("verdict",), ("verdict", "summary"), ("verdict", "confidence", "findings")])
def test_a_part_of_a_refused_artifact_is_enough(names: Sequence[str]) -> None:
    """What is missing is taken from the refused one, and the run holds the whole artifact."""
    harness = Harness.in_memory(_WORKFLOW)
    first = harness.start("test.review")
    refused = harness.advance(first, None, output={"artifacts": [_LOST]})
    whole = {**_LOST, "verdict": "blocking"}
    part = {name: whole[name] for name in ("kind", *names)}
    assert harness.advance(refused, None, output={"artifacts": [part]})["kind"] == "ok"
    assert _stored(harness, first) == [digest_of(whole)]


@pytest.mark.inv("EVID-2")
def test_parts_that_are_sent_one_by_one_add_up() -> None:
    harness = Harness.in_memory(_WORKFLOW)
    answer = harness.start("test.review")
    for name in ("summary", "confidence", "findings"):
        answer = harness.advance(answer, None, output={"artifacts": [{"kind": _CLEAN["kind"], name: _CLEAN[name]}]})
        assert answer["kind"] == "blocked"
    last = {"kind": _CLEAN["kind"], "verdict": "clean"}
    assert harness.advance(answer, None, output={"artifacts": [last]})["kind"] == "ok"


@pytest.mark.inv("EVID-2")
def test_several_artifacts_of_one_kind_are_judged_as_they_were_sent() -> None:
    """If both were completed, they could become one, which would be accepted."""
    harness = Harness.in_memory(_WORKFLOW)
    refused = harness.advance(harness.start("test.review"), None, output={"artifacts": [_LOST]})
    parts = [{"kind": _LOST["kind"], "verdict": "blocking"}, {**_LOST, "verdict": "blocking"}]
    answer = harness.advance(refused, None, output={"artifacts": parts})
    assert "found 2 different artifacts" in answer["blockers"][0]["message"]


@pytest.mark.inv("EVID-2")
def test_an_optional_field_is_not_taken_over() -> None:
    """It may have been left out on purpose: the artifact that is stored does not have it."""
    decides = {**_WORKFLOW["steps"][0], "outputContract": {"contractRef": "wr.contracts.decision"}}
    harness = Harness.in_memory({**_WORKFLOW, "steps": [decides, _WORKFLOW["steps"][1]]})
    first = harness.start("test.review")
    sent = {"kind": "wr.decision", "conditionId": "is_fast", "result": "yes", "rationale": "It took a second."}
    refused = harness.advance(first, None, output={"artifacts": [sent]})
    part = {"kind": "wr.decision", "result": True}
    assert harness.advance(refused, None, output={"artifacts": [part]})["kind"] == "ok"
    assert _stored(harness, first) == [digest_of({**part, "conditionId": "is_fast"})]


@pytest.mark.inv("EVID-2")
def test_a_field_of_another_kind_is_not_taken_over() -> None:
    refused = {**_CLEAN, "mood": "good", "kind": "other"}
    harness = Harness.in_memory(_WORKFLOW)
    answer = harness.advance(harness.start("test.review"), None, output={"artifacts": [refused]})
    assert harness.advance(answer, None, output={"artifacts": [{"kind": _CLEAN["kind"]}]})["kind"] == "blocked"


@pytest.mark.inv("EVID-13")
def test_a_verdict_that_its_confidence_contradicts_is_asked_for_again_not_the_confidence() -> None:
    """The call must not lead to the better verdict."""
    asks = {**_WORKFLOW["steps"][0], "outputContract": {"contractRef": "wr.contracts.gate_verdict"}}
    harness = Harness.in_memory({**_WORKFLOW, "steps": [asks, _WORKFLOW["steps"][1]]})
    sent = {"kind": "wr.gate_verdict", "version": 1, "verdict": "approved", "confidence": "low"}
    sent["rationale"] = "Read the plan and each of its risks."
    answer = harness.advance(harness.start("test.review"), None, output={"artifacts": [sent]})
    asked = {one["path"].rpartition(".")[2]: one.get("choices") for one in answer["nextCall"]["fill"]}
    assert asked["confidence"] == ["low"]
    assert "approved" not in asked["verdict"]


@pytest.mark.inv("EVID-13")
def test_an_artifact_that_may_be_left_out_is_asked_for_once_it_was_refused() -> None:
    """Until then, and if something else was refused, the call asks for none."""
    review = _WORKFLOW["steps"][0]
    contract = {"contractRef": "wr.contracts.review_verdict", "required": False}
    step = {**review, "outputContract": contract, "notes": "required"}
    harness = Harness.in_memory({**_WORKFLOW, "steps": [step, *_WORKFLOW["steps"][1:]]})
    first = harness.start("test.review")
    assert _artifact_fields(first) == set()
    blocked = harness.advance(first, None, output={"artifacts": [_CLEAN]})
    assert _artifact_fields(blocked) == set()
    sent = {**_CLEAN, "findings": [_MINOR]}
    reported = {"notesMarkdown": "Found one long name.", "artifacts": [sent]}
    refused = harness.advance(blocked, None, output=reported)
    assert len(refused["blockers"]) == 1
    for answer in (refused, harness.rehydrate(refused)):
        assert _artifact_fields(answer) == set(sent)
    assert harness.advance(refused, None, output={"artifacts": [sent | {"verdict": "minor"}]})["kind"] == "ok"


def _artifact_fields(answer: ToolResult) -> set[str]:
    paths = (one["path"] for one in answer["nextCall"]["fill"])
    return {path.rpartition(".")[2] for path in paths if "artifacts" in path}
