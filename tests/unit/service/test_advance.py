"""Acking a step: recorded once, answered the same way for ever after."""

import json
from pathlib import Path

import pytest

from interlock.kernel.budgets import NOTES_BYTES_MAX
from interlock.kernel.errors import ErrorCode
from interlock.kernel.text import TRUNCATION_MARKER
from interlock.record.events import EdgeCreatedEvent, NodeOutputAppendedEvent
from interlock.record.payloads import ArtifactPayload, NotesPayload
from interlock.testing.harness import Harness, ToolResult, linear_workflow


def files_below(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return every file and directory with its times and its bytes."""
    return {
        path.relative_to(root).as_posix(): (
            path.stat().st_mtime_ns,
            path.stat().st_ctime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [root, *root.rglob("*")]
    }


def finished(harness: Harness, answer: ToolResult) -> ToolResult:
    while not answer["isComplete"]:
        answer = harness.follow(answer)
    return answer


@pytest.mark.produces("event:advance_recorded", "event:edge_created", "event:node_output_appended")
@pytest.mark.inv("ADV-3", "ANS-5")
def test_an_accepted_ack_hands_out_the_next_step_with_fresh_tokens(harness: Harness) -> None:
    first = harness.start("test.abc", goal="G")
    second = harness.advance(first, "Did a.")
    assert second["pending"]["stepId"] == "b"
    assert second["run"] == {"label": first["run"]["label"], "step": {"number": 2, "total": 3}}
    assert len({first.ack, first.state, second.ack, second.state}) == 4
    events = harness.events(harness.session_of(first))[-4:]
    assert [event.kind for event in events] == [
        *("advance_recorded", "node_created", "edge_created", "node_output_appended"),
    ]
    (edge,) = [event for event in events if isinstance(event, EdgeCreatedEvent)]
    assert (edge.data.cause.kind, edge.data.cause.event_id) == ("tip_advance", events[0].event_id)


@pytest.mark.inv("ADV-4", "ANS-3")
def test_following_each_next_call_leads_to_the_end(harness: Harness) -> None:
    last = finished(harness, harness.start("test.abc"))
    assert (last["isComplete"], last["nextIntent"]) == (True, "complete")
    assert last["pending"] is None
    assert last["nextCall"] is None
    assert "ackToken" not in last.structure
    assert "step" not in last["run"]


@pytest.mark.inv("ADV-5")
def test_a_call_repeated_a_hundred_times_gives_the_same_bytes_and_writes_none(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", linear_workflow("test.abc", "a", "b", "c"))
    first = harness.start("test.abc", goal="G")
    sent = {"ackToken": first.ack, "output": {"notesMarkdown": "Did a.", "artifacts": [{"kind": "k"}]}}
    sent |= {"context": {"x": {"y": 1}}, "preferences": {"autonomy": "full_auto_never_stop"}}
    answer = harness.call("continue_workflow", sent)
    before = files_below(tmp_path)
    for _ in range(100):
        again = harness.call("continue_workflow", sent)
        assert json.dumps(dict(again.structure)) == json.dumps(dict(answer.structure))
        assert again.text == answer.text
    assert files_below(tmp_path) == before


@pytest.mark.inv("ADV-5", "TOK-7")
def test_another_process_replays_the_same_bytes(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b", "c")
    first = Harness.on_disk(tmp_path, document).start("test.abc")
    answer = Harness.on_disk(tmp_path, document).advance(first)
    assert Harness.on_disk(tmp_path, document).advance(first) == answer


@pytest.mark.inv("ADV-5")
def test_a_replay_is_reported_as_before_whatever_happened_since(harness: Harness) -> None:
    first = harness.start("test.abc", goal="G")
    answer = harness.advance(first, "Did a.")
    harness.checkpoint(answer)
    assert harness.advance(first, "Did a.") == answer
    last = finished(harness, answer)
    assert harness.advance(first, "Did a.") == answer
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    harness.advance(fork, "Did a otherwise.", context={"x": "Another"})
    harness.start("test.one", sessionId=harness.session_of(first))
    assert harness.advance(first, "Did a.") == answer
    assert finished(harness, answer) == last


@pytest.mark.inv("ADV-7")
@pytest.mark.parametrize(
    "other",
    [
        {"output": {"notesMarkdown": "Something else."}},
        {"output": {"notesMarkdown": "Did a.", "artifacts": [{"kind": "k"}]}},
        {"output": {"notesMarkdown": "Did a."}, "context": {"x": 1}},
        {"output": {"notesMarkdown": "Did a."}, "preferences": {"riskPolicy": "balanced"}},
        {},
    ],
)
def test_a_replay_with_another_payload_keeps_the_record_and_says_so(harness: Harness, other: dict[str, object]) -> None:
    first = harness.start("test.abc")
    answer = harness.advance(first, "Did a.")
    count = len(harness.events(harness.session_of(first)))
    again = harness.call("continue_workflow", {"ackToken": first.ack, **other})
    assert again.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert "REPLAY_PAYLOAD_IGNORED" in again.text
    assert {**again.structure, "warnings": None} == {**answer.structure, "warnings": None}
    assert len(harness.events(harness.session_of(first))) == count
    assert "Did a." in harness.rehydrate(answer)["recap"]


@pytest.mark.inv("ADV-7")
def test_a_replay_in_another_spelling_is_the_same_payload(harness: Harness) -> None:
    first = harness.start("test.abc")
    artifact = {"kind": "k", "a": 1, "b": [1.0]}
    harness.advance(first, None, output={"notesMarkdown": "n", "artifacts": [artifact]}, context={"x": 1, "y": None})
    spelled = '{"artifacts": [{"b": [1], "kind": "k", "a": 1.0}], "notesMarkdown": "n", "wait_for_previous": true}'
    again = harness.advance(first, None, output=spelled, context={"y": None, "x": 1.0}, preferences={}, run="")
    assert again.warnings == []


@pytest.mark.inv("ANS-9")
@pytest.mark.parametrize(
    "context",
    [{"a": 2**53}, {"a": float("nan")}, {"a": {"b": [float("inf")]}}, {"\ud800": 1}, {"a": "\udfff"}, {"a": -(2**60)}],
    ids=repr,
)
def test_a_replay_with_a_context_that_cannot_be_recorded_is_still_answered(
    harness: Harness, context: dict[str, object]
) -> None:
    """The payload of a replay is compared with the recorded one, and not every payload has a digest."""
    first = harness.start("test.abc")
    harness.advance(first)
    again = harness.advance(first, context=context)
    assert again.code is ErrorCode.VALIDATION_ERROR or again.warnings == ["REPLAY_PAYLOAD_IGNORED"]


@pytest.mark.inv("BLK-1", "ADV-3")
def test_a_step_with_optional_notes_takes_none_or_some(harness: Harness) -> None:
    for notes in (None, "", "Some."):
        second = harness.advance(harness.start("test.optional"))
        assert second["pending"]["stepId"] == "b"
        third = harness.advance(second, notes)
        assert (third["kind"], third["pending"]["stepId"]) == ("ok", "c")
    second = harness.advance(harness.start("test.optional"))
    third = harness.call("continue_workflow", second["nextCall"]["arguments"])
    assert third["pending"]["stepId"] == "c"
    assert "<what you did" not in harness.rehydrate(third)["recap"]


@pytest.mark.inv("EVT-7")
def test_notes_over_the_budget_are_cut_and_warned_of_in_the_first_answer_and_each_replay(harness: Harness) -> None:
    first = harness.start("test.abc")
    answer = harness.advance(first, "é" * NOTES_BYTES_MAX)
    assert answer["pending"]["stepId"] == "b"
    assert answer.warnings == ["NOTES_TRUNCATED"]
    assert str(NOTES_BYTES_MAX) in answer.text
    assert harness.advance(first, "é" * NOTES_BYTES_MAX) == answer
    outputs = [one for one in harness.events(harness.session_of(first)) if isinstance(one, NodeOutputAppendedEvent)]
    notes, whole = [output.data.payload for output in outputs]
    assert isinstance(notes, NotesPayload)
    assert notes.notes_markdown.endswith(TRUNCATION_MARKER)
    assert len(notes.notes_markdown.encode()) <= NOTES_BYTES_MAX
    assert isinstance(whole, ArtifactPayload)
    assert (whole.content_type, whole.byte_length) == ("text/markdown", 2 * NOTES_BYTES_MAX)


@pytest.mark.inv("EVT-7", "BLK-3")
def test_a_retry_brings_the_whole_of_the_long_notes_that_were_refused_with_it() -> None:
    step = {"id": "a", "title": "A", "prompt": "Decide.", "outputContract": {"contractRef": "wr.contracts.decision"}}
    harness = Harness.in_memory(linear_workflow("test.decide", step, "b"))
    first = harness.start("test.decide")
    refused = harness.advance(first, "é" * NOTES_BYTES_MAX)
    assert refused["kind"] == "blocked"
    decision = {"kind": "wr.decision", "conditionId": "go", "result": True}
    answer = harness.advance(refused, None, output={"artifacts": [decision]})
    outputs = [one for one in harness.events(harness.session_of(first)) if isinstance(one, NodeOutputAppendedEvent)]
    lengths = [
        one.data.payload.byte_length
        for one in outputs
        if isinstance(one.data.payload, ArtifactPayload) and one.data.payload.content_type == "text/markdown"
    ]
    assert answer["kind"] == "ok"
    assert lengths == [2 * NOTES_BYTES_MAX] * 2


def test_notes_that_fit_exactly_are_kept_whole_and_not_warned_of(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"), "x" * NOTES_BYTES_MAX)
    assert second.warnings == []
    assert "x" * NOTES_BYTES_MAX in harness.rehydrate(second)["recap"]


@pytest.mark.inv("PLAN-3")
def test_a_run_goes_on_from_its_pin_when_its_file_was_edited_or_removed(harness: Harness) -> None:
    first = harness.start("test.abc")
    edited = linear_workflow("test.abc", {"id": "a", "title": "Edited", "prompt": "Edited."}, "z", name="Edited")
    harness.workflows.put(edited)
    second = harness.advance(first)
    assert (second["pending"]["stepId"], second["run"]["step"]["total"]) == ("b", 3)
    assert harness.rehydrate(first)["pending"]["prompt"] == "Do a."
    assert harness.start("test.abc")["pending"]["prompt"] == "Edited."
    harness.workflows.remove("test.abc.json")
    assert harness.start("test.abc").code is ErrorCode.WORKFLOW_NOT_FOUND
    third = harness.advance(second)
    assert (third["pending"]["stepId"], harness.advance(third)["isComplete"]) == ("c", True)


@pytest.mark.inv("PLAN-3")
def test_another_process_goes_on_from_the_pin_without_the_file(tmp_path: Path) -> None:
    first = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b")).start("test.abc")
    second = Harness.on_disk(tmp_path).advance(first)
    assert (second["pending"]["prompt"], second["run"]["label"]) == ("Do b.", first["run"]["label"])
