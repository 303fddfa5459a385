"""A corrected report asks for what its step asks for, and drops no evidence that was sent (ANS-12, ANS-15)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.calls import assert_shown, with_samples
from tests.support.ends import ended_by_command

from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Harness, ToolResult, filled_call, filled_in, linear_workflow

pytestmark = pytest.mark.inv("ANS-12", "ANS-15", "ANS-24")

CONTINUE = "continue_workflow"
DONE = {"notesMarkdown": "Done."}
STEP = {"title": "Look", "prompt": "Look at it."}


@pytest.fixture
def memory() -> Harness:
    b = {**STEP, "id": "b", "outputContract": {"contractRef": "wr.contracts.verification_report"}}
    c = {**STEP, "id": "c", "produces": ["questions"]}
    return Harness.in_memory(linear_workflow("test.abc", "a", b, c, "d"))


def steps(memory: Harness) -> Iterator[ToolResult]:
    """Yield the answer about each step of a run."""
    answer = memory.start("test.abc")
    while answer["nextCall"] is not None:
        yield answer
        sent = filled_in(answer, "Done.")
        if answer["pending"]["stepId"] == "c":
            sent["context"] = {"questions": ["Which?"]}
        answer = memory.call(CONTINUE, sent)
        assert not answer.is_error


def correct(refused: ToolResult) -> dict[str, Any]:
    assert refused.code is ErrorCode.VALIDATION_ERROR
    call = refused["details"]["correctedCall"]
    assert_shown(call, refused.text)
    return call


def test_a_shown_call_that_was_sent_whole_is_answered_with_all_that_its_step_asks_for(memory: Harness) -> None:
    seen = []
    for answer in steps(memory):
        shown = answer["nextCall"]
        for sent in (shown, {**shown["arguments"], "output": "none"}, {**shown["arguments"], "summary": "I did it."}):
            call = correct(memory.call(CONTINUE, sent))
            assert (call["arguments"], call["fill"]) == (shown["arguments"], shown["fill"])
        seen.append([one["path"] for one in shown["fill"]])
    assert seen[1][0] == "output.artifacts[0].kind"
    assert "context.questions" in seen[2]


def test_after_a_refusal_only_what_was_refused_is_asked_for(memory: Harness) -> None:
    report = list(steps(memory))[1]
    blocked = memory.advance(memory.start("test.abc"), None)
    call = correct(memory.call(CONTINUE, blocked["nextCall"]))
    assert call["fill"] == blocked["nextCall"]["fill"]
    done = correct(memory.call(CONTINUE, report["nextCall"]))
    assert [one["path"] for one in done["fill"]] == ["output.notesMarkdown"], "the step is done: nothing is looked up"


def forms(artifact: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        "directly in output": {"output": artifact},
        "directly in the call": artifact,
        "beside notes": {"output": {**artifact, **DONE}},
        "under a path in output": {"output": {"artifacts[0]": artifact}},
        "under a path": {"output.artifacts[0]": artifact},
        "under paths of its fields": {f"output.artifacts[0].{name}": value for name, value in artifact.items()},
        "under paths of its fields in output": {
            "output": {f"artifacts[0].{name}": value for name, value in artifact.items()}
        },
    }


@pytest.mark.parametrize("form", forms({}))
def test_an_artifact_at_another_place_is_moved_to_the_list(memory: Harness, form: str) -> None:
    answer = next(one for one in steps(memory) if one["pending"]["stepId"] == "b")
    artifact = filled_call(answer["nextCall"])["output"]["artifacts"][0]
    sent = forms(artifact)[form]
    call = correct(memory.call(CONTINUE, {**answer["nextCall"]["arguments"], **sent}))
    notes = DONE if form == "beside notes" else {}
    assert call["fill"] == []
    assert call["arguments"]["output"] == {"artifacts": [artifact], **notes}


def test_two_artifacts_under_paths_stay_two(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    sent = {"output.artifacts[0].kind": "one", "output.artifacts[1].kind": "two", "output.artifacts[1].x[0]": 1}
    call = correct(memory.call(CONTINUE, {"ackToken": token, **sent}))
    assert call["arguments"]["output"] == {"artifacts": [{"kind": "one"}, {"kind": "two", "x": [1]}]}


def test_notes_and_context_under_a_path_are_moved(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    sent = {"ackToken": token, "output.notesMarkdown": "Done.", "context.questions": ["Which?"]}
    refused = memory.call(CONTINUE, sent)
    assert "is a path and not a name" in refused["suggestion"]
    call = with_samples(correct(refused))["arguments"]
    assert call == {"ackToken": token, "output": DONE, "context": "<your context, as you sent it>"}
    for odd in ("output.zzz", "output[0]", "zzz.artifacts", "output.", "run.label", "output.artifacts[0]..x"):
        memory.call(CONTINUE, {"ackToken": token, "output": DONE, odd: 1})


def test_what_is_at_its_place_is_not_replaced_by_a_path(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    good = {"ackToken": token, "output": {"notesMarkdown": "Done.", "artifacts": [{"kind": "one"}]}}
    sent = {**good, "output.artifacts[0].kind": "two", "output.notesMarkdown.x": "y", "output.artifacts[0].kind.z": 1}
    assert correct(memory.call(CONTINUE, sent))["arguments"] == good


def test_arguments_in_a_text_of_json_are_moved(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    whole = {"ackToken": token, "output": DONE}
    for sent in ({"arguments": json.dumps(whole)}, {"input": json.dumps({"arguments": whole})}):
        assert correct(memory.call(CONTINUE, sent))["arguments"] == whole


@pytest.mark.parametrize(
    ("evidence", "output"),
    [
        ({"output": {"notes": "Done."}}, DONE),
        ({"output": json.dumps({"notes": "Done."})}, DONE),
        ({"output": {"artifact": {"kind": "one", "x": 1}}}, {"artifacts": [{"kind": "one", "x": 1}]}),
        ({"output": {"kind": "one", "x": 1}}, {"artifacts": [{"kind": "one", "x": 1}]}),
        ({"kind": "one", "x": 1, "notes": "Done."}, {**DONE, "artifacts": [{"kind": "one", "x": 1}]}),
    ],
)
@pytest.mark.parametrize("wrapper", ["arguments", "input"])
def test_misnamed_evidence_is_moved_out_of_a_wrapper_as_well(
    memory: Harness, wrapper: str, evidence: dict[str, Any], output: dict[str, Any]
) -> None:
    token = memory.start("test.abc").ack
    call = correct(memory.call(CONTINUE, {wrapper: {"ackToken": token, **evidence}}))
    assert call["arguments"] == {"ackToken": token, "output": output}


def test_a_member_of_an_artifact_is_no_wrapper_by_its_name(memory: Harness) -> None:
    token, artifact = memory.start("test.abc").ack, {"kind": "one", "input": {"goal": "Mend", "run": "abcd"}}
    call = correct(memory.call(CONTINUE, {"ackToken": token, **artifact}))
    assert call["arguments"] == {"ackToken": token, "output": {"artifacts": [artifact]}}


def test_a_key_that_the_step_asks_for_as_context_is_asked_for_wherever_it_was_sent() -> None:
    memory = Harness.in_memory(linear_workflow("test.abc", {**STEP, "id": "a", "produces": ["questions"]}))
    token, key = memory.start("test.abc").ack, {"questions": ["Which?"]}
    good = {"ackToken": token, "output": DONE}
    for sent, others in (
        ({**good, **key}, []),
        ({**good, **key, "context": {"x": 1}}, ["context.x"]),
        ({**good, "output": {**DONE, **key}, "context": {"x": 1}}, ["context.x"]),
        ({"arguments": {**good, **key, "context": {"x": 1}}}, ["context.x"]),
        ({"arguments": {**good, "output": {**DONE, **key}}}, []),
    ):
        refused = memory.call(CONTINUE, sent)
        call = correct(refused)
        assert call["arguments"] == good
        assert [one["path"] for one in call["fill"]] == [*others, "context.questions"]
        assert "Left out" not in refused["suggestion"]
        assert "arguments" in sent or refused["suggestion"].startswith("Send `questions` in `context`")
    stays = {**good, **key, "context": {"questions": ["Why?"]}}
    assert [one["path"] for one in correct(memory.call(CONTINUE, stays))["fill"]] == ["context"]
    member = {**good, "kind": "one", **key}
    assert "context.questions" not in [one["path"] for one in correct(memory.call(CONTINUE, member))["fill"]]


def test_a_checkpoint_token_that_a_report_cannot_have_is_answered_with_the_token_of_the_step(memory: Harness) -> None:
    answer = memory.start("test.abc")
    refused = memory.call(CONTINUE, {"checkpointToken": answer["checkpointToken"], "output": DONE})
    call = correct(refused)
    assert call["arguments"] == {"ackToken": answer.ack, "output": DONE}
    assert "of the same step" in refused["suggestion"]
    memory.advance(answer)
    late = correct(memory.call(CONTINUE, {"checkpointToken": answer["checkpointToken"], "output": DONE}))
    assert late["arguments"].keys() == {"stateToken", "run"}
    assert not memory.call(late["tool"], late["arguments"]).is_error


def test_a_report_with_the_state_token_of_a_complete_run_is_answered_with_a_look(memory: Harness) -> None:
    *_, last = steps(memory)
    complete = memory.call(CONTINUE, filled_in(last, "Done."))
    refused = memory.call(CONTINUE, {"stateToken": complete.state, "output": DONE})
    call = correct(refused)
    assert (call["arguments"]["stateToken"], call["fill"]) == (complete.state, [])
    assert "takes no report any more" in refused["suggestion"]
    assert memory.call(call["tool"], call["arguments"])["isComplete"]


@pytest.mark.parametrize(
    ("goal", "shown"),
    [
        ("Mend", "`Mend`"),
        ("Fix the typo, please (now)!", "`Fix the typo, please (now)!`"),
        ("true", '`"true"`'),
        ('Say "hi"', '`"Say \\"hi\\""`'),
        ("a  b", '`"a  b"`'),
    ],
)
def test_a_text_is_shown_as_it_is_unless_it_could_be_read_as_something_else(
    memory: Harness, goal: str, shown: str
) -> None:
    refused = memory.call("start_workflow", {"goal": goal})
    assert f"- `goal`: {shown}\n" in refused.text
    assert correct(refused)["arguments"] == {"goal": goal}


def test_an_output_in_the_context_is_led_to_its_place(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    refused = memory.call(CONTINUE, {"ackToken": token, "context": {"output": DONE, "size": 3}})
    assert refused["details"]["path"] == "context.output"
    call = correct(refused)["arguments"]
    assert call == {"context": {"size": 3}, "ackToken": token, "output": DONE}
    assert memory.call(CONTINUE, {"ackToken": token, "context": {"output": "a file"}, "output": DONE})["kind"] == "ok"


@pytest.mark.parametrize(
    ("held", "output"),
    [
        ({"note": "Done."}, DONE),
        ({"artifact": {"kind": "one", "x": 1}}, {"artifacts": [{"kind": "one", "x": 1}]}),
        ({"notes": "Done.", "artifacts": [{"kind": "one"}]}, {**DONE, "artifacts": [{"kind": "one"}]}),
    ],
)
def test_an_output_in_the_context_is_found_by_similar_names_as_well(
    memory: Harness, held: dict[str, Any], output: dict[str, Any]
) -> None:
    token = memory.start("test.abc").ack
    refused = memory.call(CONTINUE, {"ackToken": token, "context": {"output": held}})
    assert refused["details"]["path"] == "context.output"
    assert correct(refused)["arguments"] == {"ackToken": token, "output": output}


def test_an_object_with_other_members_in_the_context_is_data(memory: Harness) -> None:
    data = {"output": {"note": "As printed.", "lines": 3}}
    for more in ({}, {"output": DONE}):
        answer = memory.call(CONTINUE, {"ackToken": memory.start("test.abc").ack, "context": data, **more})
        assert not answer.is_error


@pytest.mark.parametrize("argument", ["ackToken", "checkpointToken"])
def test_a_wrong_token_of_an_ended_run_is_answered_with_the_call_that_shows_it(memory: Harness, argument: str) -> None:
    answer = memory.start("test.abc")
    ended_by_command(memory, answer)
    tool = CONTINUE if argument == "ackToken" else "checkpoint_workflow"
    for wrong in (answer[argument][:-4], answer.state):
        call = memory.call(tool, {argument: wrong, "output": DONE})["details"]["correctedCall"]
        assert (call["tool"], call["arguments"].keys(), call["fill"]) == (CONTINUE, {"stateToken", "run"}, [])
        assert memory.call(call["tool"], call["arguments"])["ended"]["status"] == "cancelled"
