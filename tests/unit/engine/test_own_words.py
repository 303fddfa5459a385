"""Which texts are no account of work: copies of the prompt, a few words over and over, notes of another step."""

import pytest
from tests.support.flow import Document, document, step

from interlock.engine.judge.own_words import is_copy, repeats_itself, text_in_two_fields
from interlock.engine.judge.reasons import OWN_WORDS_FIX
from interlock.testing.harness import Harness, ToolResult

PROMPT = "Read the change from end to end and write down each place where a caller may see another result than before."
WORK = (
    "I read all nine files and ran the suite twice. Two callers see another result: the report sorts by name now, and"
    " the importer keeps empty lines, which app.py:12 did not expect."
)


@pytest.mark.parametrize(
    "text",
    [
        PROMPT,
        PROMPT.upper(),
        "Read the change from end to end",
        "write down each place where a caller Read the change from end to end",
        "Done: read the change from end to end and write down each place. Done.",
    ],
)
def test_a_text_of_pieces_of_another_one_is_a_copy(text: str) -> None:
    assert is_copy(text, PROMPT)


@pytest.mark.parametrize("text", [WORK, f"{WORK} Asked was: {PROMPT[:60]}", "Read the change", ""])
def test_own_words_are_no_copy_even_with_a_quotation(text: str) -> None:
    assert not is_copy(text, PROMPT)


def test_a_few_words_over_and_over_repeat_themselves_and_a_long_log_does_not() -> None:
    assert repeats_itself("done " * 40)
    assert repeats_itself("All good here. " * 20)
    assert not repeats_itself("done done done")
    assert not repeats_itself(WORK)
    assert not repeats_itself(WORK + " passed" * 400)


def test_the_same_text_in_two_fields_is_found_and_in_the_items_of_one_it_is_not() -> None:
    said = "All of the checks passed."
    assert text_in_two_fields({"summary": said, "evidence": "all  of the checks passed."}) == ("summary", "evidence")
    assert text_in_two_fields({"checks": [{"name": said, "evidence": said}]}) == ("name", "evidence")
    assert text_in_two_fields({"files": ["a", said], "summary": said}) == ("files", "summary")
    assert text_in_two_fields({"summary": said, "checks": [{"evidence": said}]}) is None
    assert text_in_two_fields({"checks": [{"evidence": said}, {"evidence": said}]}) is None
    assert text_in_two_fields({"summary": "Passed.", "evidence": "Passed."}) is None


CHECKED = "Checked each line of the result against the table, and found no fault in it."
CLEAN_REVIEW: Document = {
    "kind": "wr.review_verdict",
    "verdict": "clean",
    "confidence": "high",
    "findings": [],
    "summary": CHECKED,
}
REPORTS_OF_A_CHECK: list[tuple[Document, Document]] = [
    ({}, {"notesMarkdown": CHECKED}),
    ({"outputContract": {"contractRef": "wr.contracts.review_verdict"}}, {"artifacts": [CLEAN_REVIEW]}),
]
"""What the step of a check adds to its declaration, and its report."""


def flow() -> Harness:
    return Harness.in_memory(document(step("a", prompt=PROMPT), step("b"), step("c"), inputs=[]))


def fault(answer: ToolResult) -> str:
    (blocker,) = answer["blockers"]
    assert blocker["code"] == "INVALID_REQUIRED_OUTPUT"
    return str(blocker["message"])


@pytest.mark.inv("EVID-11")
def test_each_kind_of_copied_notes_is_refused_and_own_notes_are_accepted() -> None:
    harness = flow()
    first = harness.start("test.flow")
    refused = harness.advance(first, PROMPT)
    assert "only repeat the prompt" in fault(refused)
    refused = harness.advance(refused, "ok " * 30)
    assert "over and over" in fault(refused)
    second = harness.advance(refused, WORK)
    refused = harness.advance(second, WORK.replace(". ", ".\n\n"))
    assert "those of the step before" in fault(refused)
    assert harness.advance(refused, f"{WORK} Then the second step.")["kind"] == "ok"


@pytest.mark.inv("EVID-11")
@pytest.mark.parametrize("again", [WORK, WORK.upper(), None], ids=["sent again", "in other letters", "kept"])
def test_the_notes_of_the_step_before_are_refused_once_and_then_accepted_as_a_gap(again: str | None) -> None:
    harness = flow()
    second = harness.advance(harness.start("test.flow"), WORK)
    refused = harness.advance(second, WORK)
    assert "those of the step before" in fault(refused)
    third = harness.advance(refused, again)
    assert (third["pending"]["stepId"], third.warnings) == ("c", ["GAP_RECORDED"])
    refused = harness.advance(third, WORK)
    assert "those of the step before" in fault(refused), "each step is asked about"
    last = harness.advance(refused, f"{WORK} Then the last step.")
    assert last["isComplete"]
    assert "COMPLETE_WITH_GAPS" in last.warnings
    assert f"of the step '{second['pending']['title']}' are those of the step before" in last.text


@pytest.mark.inv("EVID-11")
def test_the_notes_of_the_step_before_may_come_with_an_artifact_that_is_the_evidence() -> None:
    check = step("b", outputContract={"contractRef": "wr.contracts.review_verdict"})
    harness = Harness.in_memory(document(step("a"), check, inputs=[]))
    checked = harness.advance(harness.start("test.flow"), WORK)
    last = harness.advance(checked, output={"notesMarkdown": WORK, "artifacts": [CLEAN_REVIEW]})
    assert (last["isComplete"], last.warnings) == (True, [])


@pytest.mark.inv("EVID-11")
def test_other_faults_of_notes_are_refused_each_time() -> None:
    harness = flow()
    answer = harness.start("test.flow")
    for notes in (PROMPT, "ok " * 30):
        for _ in range(2):
            answer = harness.advance(answer, notes)
            assert answer["kind"] == "blocked"


@pytest.mark.inv("EVID-11")
@pytest.mark.parametrize(
    ("contract", "output"),
    REPORTS_OF_A_CHECK,
    ids=["checked in notes", "checked in a verdict"],
)
def test_a_result_that_a_check_left_unchanged_may_be_reported_again(contract: Document, output: Document) -> None:
    harness = Harness.in_memory(document(step("a"), step("b", **contract), step("c"), inputs=[]))
    checked = harness.advance(harness.start("test.flow"), WORK)
    last = harness.advance(checked, output=output)
    assert harness.advance(last, WORK)["isComplete"]


@pytest.mark.inv("EVID-11")
def test_notes_of_a_refused_attempt_and_of_another_branch_may_be_sent_again() -> None:
    harness = Harness.in_memory(document(step("a", produces=["x"]), step("b"), inputs=[]))
    first = harness.start("test.flow")
    second = harness.advance(harness.advance(first, WORK), WORK, context={"x": 1})
    assert second["kind"] == "ok"
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    assert harness.advance(fork, WORK, context={"x": 2})["kind"] == "ok"


@pytest.mark.inv("EVID-11")
def test_what_an_answer_says_about_notes_is_refused_as_notes() -> None:
    harness = flow()
    answer = harness.start("test.flow")
    for notes in (None, answer["nextCall"]["then"], OWN_WORDS_FIX):
        answer = harness.advance(answer, notes)
        (blocker,) = answer["blockers"]
        assert blocker["code"] in ("MISSING_REQUIRED_OUTPUT", "INVALID_REQUIRED_OUTPUT")
        # The sentences of a refusal lead a small model into a loop if they pass, or if the next refusal asks for them.
        answer = harness.advance(answer, str(blocker["suggestedFix"]))
        assert "only repeat what an answer says about notes" in fault(answer)
    assert harness.advance(answer, WORK)["pending"]["stepId"] == "b"


@pytest.mark.inv("EVID-11")
def test_the_sentence_before_a_call_in_a_text_is_refused_as_notes() -> None:
    harness = flow()
    answer = harness.start("test.flow")
    sentence, _, lines = answer.text.rpartition("---\n")[2].partition("\n")
    assert sentence.startswith("Do this step now: ")
    for notes in (sentence, f"{sentence} {lines.rpartition(': ')[2]}"):
        answer = harness.advance(answer, notes)
        assert "only repeat what an answer says about notes" in fault(answer)
    assert harness.advance(answer, WORK)["pending"]["stepId"] == "b"
