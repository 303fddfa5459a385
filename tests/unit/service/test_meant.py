"""A refused call is answered with the call that was meant, and with no more than can be known (ANS-15)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.calls import assert_shown, with_samples

from interlock.kernel.blanks import fill_in
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Harness, ToolResult, linear_workflow

pytestmark = pytest.mark.inv("ANS-15")

CONTINUE = "continue_workflow"
DONE = {"notesMarkdown": "Done."}


@pytest.fixture
def memory() -> Harness:
    return Harness.in_memory(linear_workflow("test.abc", "a", "b", "c"), linear_workflow("test.other", "x", "y"))


def corrected(refused: ToolResult) -> tuple[str, dict[str, Any]]:
    """Return the call that a refusal shows, which both channels show alike."""
    assert refused.is_error
    call = refused["details"]["correctedCall"]
    assert_shown(call, refused.text)
    return call["tool"], with_samples(call)["arguments"]


def damaged(token: str) -> dict[str, str]:
    at = len(token) // 2
    return {
        "cut": token[:-12],
        "in lower case": token.lower(),
        "a character wrong": f"{token[:at]}{'A' if token[at] != 'A' else 'B'}{token[at + 1 :]}",
        "a character missing": token[:at] + token[at + 1 :],
        "a character twice": token[:at] + token[at] + token[at:],
        "with a space": f" {token} ",
        "in backticks": f"`{token}`",
        "in quotes": f'"{token}",',
        "in brackets, and cut": f"<{token[:-6]}>",
        "with another label": f"{token.partition('_')[0]}_zzzz{token.partition('_')[2][4:]}",
    }


@pytest.mark.parametrize("how", damaged("a" * 60))
@pytest.mark.parametrize("argument", ["ackToken", "stateToken", "checkpointToken"])
def test_a_damaged_token_is_spelled_right_and_nothing_else_is_changed(memory: Harness, argument: str, how: str) -> None:
    answer = memory.start("test.abc")
    tool = "checkpoint_workflow" if argument == "checkpointToken" else CONTINUE
    whole = {argument: answer[argument], **({} if argument == "stateToken" else {"output": DONE})}
    refused = memory.call(tool, whole | {argument: damaged(answer[argument])[how]})
    assert "issued here" in refused["suggestion"]
    assert corrected(refused) == (tool, whole)
    assert not memory.call(*corrected(refused)).is_error


def test_a_token_of_a_step_that_is_done_is_spelled_right_as_well(memory: Harness) -> None:
    first = memory.start("test.abc")
    memory.advance(memory.advance(first))
    refused = memory.call(CONTINUE, {"ackToken": first.ack[:-3], "output": DONE})
    assert corrected(refused)[1]["ackToken"] == first.ack


def test_for_a_damaged_token_of_a_refused_report_the_token_of_the_refusal_is_shown(memory: Harness) -> None:
    first = memory.start("test.abc")
    refused = memory.advance(first, None)
    assert refused["kind"] == "blocked"
    spliced = first.ack[:-8] + refused.ack[-8:]
    for text in (spliced, *damaged(first.ack).values(), *damaged(refused.ack).values()):
        shown = corrected(memory.call(CONTINUE, {"ackToken": text, "output": DONE}))
        assert shown == (CONTINUE, {"ackToken": refused.ack, "output": DONE}), text
    assert memory.advance(refused)["pending"]["stepId"] == "b"


def test_for_the_state_token_behind_the_prefix_of_an_ack_token_the_ack_token_of_the_step_is_shown(
    memory: Harness,
) -> None:
    first = memory.start("test.abc")
    body = first.state.removeprefix("st_")
    for text in (f"ack_{body}", f"ack_{body[:-6]}", f"ACK_{body.upper()}"):
        refused = memory.call(CONTINUE, {"ackToken": text, "run": first["run"]["label"], "output": DONE})
        assert refused.code is not None
        whole = {"ackToken": first.ack, "run": first["run"]["label"], "output": DONE}
        assert corrected(refused) == (CONTINUE, whole), text
    chk, ack = first["checkpointToken"].removeprefix("chk_"), first.ack.removeprefix("ack_")
    assert corrected(memory.call(CONTINUE, {"ackToken": f"ack_{chk}", "output": DONE}))[1]["ackToken"] == first.ack
    saved = memory.call("checkpoint_workflow", {"checkpointToken": f"chk_{ack}", "output": DONE})
    assert corrected(saved)[1]["checkpointToken"] == first["checkpointToken"]
    second = memory.advance(first)
    refused = memory.call(CONTINUE, {"ackToken": f"ack_{body}", "output": DONE})
    shown = {"stateToken": second.state, "run": first["run"]["label"]}
    assert corrected(refused) == (CONTINUE, shown), "a step that is done is not done again"


def test_notes_in_the_context_are_led_to_their_place(memory: Harness) -> None:
    first = memory.start("test.abc")
    misplaced = {"ackToken": first.ack, "context": {"notesMarkdown": "Built it.", "size": 3}}
    refused = memory.call(CONTINUE, misplaced)
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "context.notesMarkdown")
    wanted = {"notesMarkdown": "Built it."}
    assert corrected(refused) == (CONTINUE, {"ackToken": first.ack, "context": {"size": 3}, "output": wanted})
    report = {"artifacts": [{"kind": "report"}]}
    alone = memory.call(CONTINUE, {"ackToken": first.ack, "context": wanted, "output": report})
    assert corrected(alone) == (CONTINUE, {"ackToken": first.ack, "output": {**wanted, **report}})
    for notes, blank in ((5, "written by you"), ("Built it. " * 200, "your notesMarkdown, as you sent it")):
        refused = memory.call(CONTINUE, {"ackToken": first.ack, "context": {"notesMarkdown": notes}})
        assert corrected(refused)[1] == {"ackToken": first.ack, "output": {"notesMarkdown": f"<{blank}>"}}
    both = memory.call(CONTINUE, misplaced | {"output": DONE})
    assert both["pending"]["stepId"] == "b"


def test_the_run_of_a_token_in_quotes_is_found_by_its_label(memory: Harness) -> None:
    answer = memory.start("test.abc")
    refused = memory.call(CONTINUE, {"ackToken": f"`{answer.ack[:8]}`", "output": DONE})
    assert corrected(refused) == (CONTINUE, {"stateToken": answer.state, "run": answer["run"]["label"]})


def test_of_a_token_without_its_signature_nothing_is_completed(memory: Harness) -> None:
    """The log holds the payload. A caller with the payload alone gets the call that shows the run, no token."""
    answer = memory.start("test.abc")
    head, payload = answer.ack[:8], answer.ack[8 + 22 :]
    for text in (answer.ack[:8], head + payload, f"{head}{'A' * 22}{payload}"):
        refused = memory.call(CONTINUE, {"ackToken": text, "output": DONE})
        tool, arguments = corrected(refused)
        assert (tool, arguments) == (CONTINUE, {"stateToken": answer.state, "run": answer["run"]["label"]})
        assert answer.ack not in refused.text


def test_where_nothing_can_be_known_a_search_is_shown(memory: Harness) -> None:
    memory.start("test.abc")
    for text in ("garbage", "ack_zzzz", f"ack_zzzz{'A' * 52}", "st.v1.x.y"):
        assert corrected(memory.call(CONTINUE, {"ackToken": text, "output": DONE})) == (
            "resume_session",
            {"query": "<a few words of the run's goal or notes>"},
        )


def test_the_token_of_another_run_is_left_for_the_caller_to_name(memory: Harness) -> None:
    """Which step of the named run the evidence is of, nobody but the caller knows."""
    one, other = memory.start("test.abc", goal="Mend the lamp"), memory.start("test.other", goal="Paint the barn")
    label = other["run"]["label"]
    refused = memory.call(CONTINUE, {"ackToken": one.ack, "run": label, "output": DONE})
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert ("Mend the lamp" in refused["message"], "Paint the barn" in refused["suggestion"]) == (True, True)
    assert other.state in refused["suggestion"]
    assert other.ack not in refused.text
    wanted = f"<the ackToken of the last answer of run {label}>"
    assert corrected(refused) == (CONTINUE, {"ackToken": wanted, "run": label, "output": DONE})


@pytest.mark.parametrize("said", ["zzzz", "0002 ", "run 0002", "sess_0002", "Mend the lamp"])
def test_a_run_that_is_not_there_is_left_for_the_caller_to_name(memory: Harness, said: str) -> None:
    answer = memory.start("test.abc", goal="Mend the lamp")
    refused = memory.call(CONTINUE, {"ackToken": answer.ack, "run": said, "output": DONE})
    assert f'`run: "{answer["run"]["label"]}"`' in refused["suggestion"]
    wanted = {
        "ackToken": "<the ackToken of the last answer of the run you mean>",
        "run": "<the label of that run>",
        "output": DONE,
    }
    assert corrected(refused) == (CONTINUE, wanted)


def test_a_token_of_another_kind_is_replaced_by_the_one_of_the_same_step(memory: Harness) -> None:
    first = memory.start("test.abc")
    refused = memory.call(CONTINUE, {"ackToken": first.state, "output": DONE})
    assert corrected(refused) == (CONTINUE, {"ackToken": first.ack, "output": DONE})
    memory.advance(first)
    done = memory.call(CONTINUE, {"ackToken": first.state, "output": DONE})
    tool, arguments = corrected(done)
    assert (tool, "ackToken" in arguments) == (CONTINUE, False), "a step that is done is not done again"


def test_for_the_state_token_of_a_checkpoint_the_ack_token_of_the_step_is_shown(memory: Harness) -> None:
    first = memory.start("test.abc")
    whole = ("checkpoint_workflow", {"ackToken": first.ack, "output": DONE})
    for text in (first.state, first.state[:-6], f"`{first.state}`", first["checkpointToken"], first.ack):
        refused = memory.call("checkpoint_workflow", {"stateToken": text, "output": DONE})
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        assert corrected(refused) == whole, text
    assert not memory.call(*whole).is_error
    second = memory.advance(first)
    done = memory.call("checkpoint_workflow", {"stateToken": first.state, "output": DONE})
    assert corrected(done) == (CONTINUE, {"stateToken": second.state, "run": first["run"]["label"]})
    assert corrected(memory.call("checkpoint_workflow", {"stateToken": "junk"}))[0] == "resume_session"


def test_of_two_tokens_that_disagree_the_caller_names_one(memory: Harness) -> None:
    one, other = memory.start("test.abc"), memory.start("test.other")
    refused = memory.call(CONTINUE, {"ackToken": one.ack, "stateToken": other.state, "output": DONE})
    wanted = "<the ackToken of the last answer of the run you mean>"
    assert corrected(refused) == (CONTINUE, {"ackToken": wanted, "output": DONE})
    second = memory.advance(one)
    refused = memory.call(CONTINUE, {"ackToken": second.ack, "stateToken": one.state, "output": DONE})
    wanted = "<the ackToken of the last answer of the step you mean>"
    assert corrected(refused) == (CONTINUE, {"ackToken": wanted, "output": DONE})


@pytest.mark.inv("ANS-24")
@pytest.mark.parametrize("how", [*damaged("a" * 60), "of another kind", "of another kind, under this prefix"])
@pytest.mark.parametrize("beside", ["run", "stateToken"])
def test_a_wrong_token_of_another_run_than_the_call_names_is_left_for_the_caller_to_name(
    memory: Harness, beside: str, how: str
) -> None:
    """The call with the right token of that run would be refused because it names two runs."""
    one, other = memory.start("test.abc", goal="Mend the lamp"), memory.start("test.other", goal="Paint the barn")
    others = {"of another kind": one.state, "of another kind, under this prefix": f"ack_{one.state.partition('_')[2]}"}
    wrong = {**damaged(one.ack), **others}[how]
    named = {"run": other["run"]["label"]} if beside == "run" else {"stateToken": other.state}
    refused = memory.call(CONTINUE, {"ackToken": wrong, **named, "output": DONE})
    whole = memory.call(CONTINUE, {"ackToken": one.ack, **named, "output": DONE})
    assert (corrected(refused), refused.code) == (corrected(whole), memory.call(CONTINUE, {"ackToken": wrong}).code)
    assert ("Mend the lamp" in refused["suggestion"], one.ack in refused.text) == (True, False)


@pytest.mark.inv("ANS-24")
def test_of_a_wrong_ack_token_and_a_checkpoint_token_of_another_run_the_caller_names_one(memory: Harness) -> None:
    one, other = memory.start("test.abc"), memory.start("test.other")
    sent = {"ackToken": one.ack[:-6], "checkpointToken": other["checkpointToken"], "output": DONE}
    wanted = {"ackToken": "<the ackToken of the last answer of the run you mean>", "output": DONE}
    assert corrected(memory.call("checkpoint_workflow", sent)) == ("checkpoint_workflow", wanted)


@pytest.mark.inv("ANS-24")
def test_of_two_wrong_tokens_one_is_spelled_right_and_the_other_one_left_out(memory: Harness) -> None:
    answer = memory.start("test.abc")
    refused = memory.call(CONTINUE, {"ackToken": answer.ack[:-6], "stateToken": answer.state[:-6], "output": DONE})
    assert corrected(refused) == (CONTINUE, {"ackToken": answer.ack, "output": DONE})
    assert not memory.call(*corrected(refused)).is_error


def test_bookmarks_and_tokens_of_other_branches_are_spelled_right_as_well(memory: Harness) -> None:
    first = memory.start("test.abc")
    bookmark = memory.checkpoint(first)
    second = memory.advance(first)
    memory.advance(memory.rehydrate(first)["fork"]["ackToken"])
    for token in (bookmark.state, second.state):
        assert corrected(memory.call(CONTINUE, {"stateToken": token[:-4]}))[1] == {"stateToken": token}
    refused = memory.call(CONTINUE, {"ackToken": second.ack.lower(), "output": DONE})
    assert corrected(refused)[1]["ackToken"] == second.ack


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("resume_session", "goal"),
        ("resume_session", "ackToken"),
        ("start_workflow", "stateToken"),
        (CONTINUE, "goal"),
        ("list_workflows", "workflowId"),
    ],
)
def test_an_argument_of_another_tool_is_left_out_and_its_tool_named(memory: Harness, tool: str, name: str) -> None:
    required = {"start_workflow": {"workflowId": "test.abc"}, CONTINUE: {"stateToken": memory.start("test.abc").state}}
    good = required.get(tool, {})
    refused = memory.call(tool, {**good, name: "something"})
    assert corrected(refused) == (tool, good)
    assert "It is an argument of `" in refused["suggestion"]
    assert not memory.call(*corrected(refused)).is_error


@pytest.mark.parametrize(
    "sent", [{"summary": "I did it."}, {"output": {"text": "I did it."}}, {"output": {}, "message": "I did it."}]
)
def test_evidence_under_another_name_gets_a_place_and_is_not_dropped(memory: Harness, sent: dict[str, Any]) -> None:
    token = memory.start("test.abc")["checkpointToken"]
    _, arguments = corrected(memory.call("checkpoint_workflow", {"checkpointToken": token, **sent}))
    assert arguments == {"checkpointToken": token, "output": {"notesMarkdown": "<written by you>"}}


def test_a_token_under_another_name_goes_where_it_belongs_and_replaces_none(memory: Harness) -> None:
    answer = memory.start("test.abc")
    refused = memory.call(CONTINUE, {"token": answer.ack, "output": DONE})
    assert corrected(refused) == (CONTINUE, {"output": DONE, "ackToken": answer.ack})
    refused = memory.call(CONTINUE, {"ackToken": answer.ack, "ack_token": "junk", "output": DONE})
    assert corrected(refused) == (CONTINUE, {"ackToken": answer.ack, "output": DONE})


@pytest.mark.inv("ANS-4", "ANS-15")
def test_of_the_tokens_of_two_runs_none_is_kept(memory: Harness) -> None:
    first, second = memory.start("test.abc"), memory.start("test.abc")
    other = second["nextCall"]["arguments"]
    for more in ({"token": second.ack}, {"arguments": other}):
        refused = memory.call(CONTINUE, {**first["nextCall"]["arguments"], "output": DONE, **more})
        call = refused["details"]["correctedCall"]
        assert call["arguments"] == {"output": DONE}
        assert [blank["path"] for blank in call["fill"]] == ["ackToken"]


@pytest.mark.inv("ANS-12", "ANS-24")
def test_wrapped_and_misplaced_arguments_are_moved_to_their_place(memory: Harness) -> None:
    answer = memory.start("test.abc")
    whole = {"ackToken": answer.ack, "run": answer["run"]["label"], "output": DONE}
    token = {"ackToken": answer.ack}
    shown = answer["nextCall"]
    for sent in (
        {**shown, "arguments": whole},
        {**shown, "output": DONE},
        {"nextCall": {**shown, "output": DONE}},
        {"arguments": shown["arguments"], "output": DONE},
        {"arguments": {**shown["arguments"], **DONE}},
        {"params": whole},
        {"params": {"name": CONTINUE, "arguments": whole}},
        {"output": whole},
        {"output": {**DONE, **token, "run": whole["run"]}},
        {"output": {**DONE, "arguments": shown["arguments"]}},
        {"output": {**DONE, "token": answer.ack}, "run": whole["run"]},
        {"token": answer.ack, "ruun": whole["run"], "outptu": DONE},
    ):
        assert corrected(memory.call(CONTINUE, sent)) == (CONTINUE, whole), sent
    checkpoint = {**token, "output": DONE}
    assert corrected(memory.call("checkpoint_workflow", {"output": checkpoint}))[1] == checkpoint
    both = {**whole, "arguments": {"ackToken": "another", "run": "zzzz"}}
    assert corrected(memory.call(CONTINUE, both))[1] == whole, "what is at its place stays"
    assert not memory.call(CONTINUE, whole).is_error


@pytest.mark.inv("ANS-24")
def test_a_shown_call_that_was_sent_whole_is_asked_for_the_evidence_it_lacks(memory: Harness) -> None:
    shown = memory.start("test.abc")["nextCall"]
    wanted = {**shown["arguments"], "output": {"notesMarkdown": "<written by you>"}}
    assert corrected(memory.call(CONTINUE, shown)) == (CONTINUE, wanted)
    refused = memory.call(CONTINUE, {"arguments": {**shown["arguments"], "output": 5}})
    assert corrected(refused) == (CONTINUE, wanted), "none of its other faults"


@pytest.mark.inv("ANS-24")
@pytest.mark.parametrize("wrapper", ["arguments", "input", "output"])
def test_the_wrapped_arguments_of_other_tools_are_moved_as_well(memory: Harness, wrapper: str) -> None:
    start = {"workflowId": "test.abc", "goal": "Mend the lamp"}
    for tool, sent in (("inspect_workflow", {"workflowId": "test.abc"}), ("start_workflow", start)):
        refused = memory.call(tool, {wrapper: sent})
        assert corrected(refused) == (tool, sent)
        assert f"Send what `{wrapper}` holds" in refused["suggestion"]
        assert not memory.call(*corrected(refused)).is_error


@pytest.mark.inv("ANS-24")
@pytest.mark.parametrize("wrapper", ["arguments", "args", "input", "params", "parameters"])
def test_a_member_that_no_tool_has_does_not_hide_the_arguments_beside_it(memory: Harness, wrapper: str) -> None:
    start, goal = {"workflowId": "test.abc"}, {"goal": "Mend the lamp"}
    misspelled = {"workflow_id": "test.abc", "Goal": "Mend the lamp"}
    for sent in ({**start, wrapper: {**goal, "zzz": 1}}, {wrapper: {**misspelled, "zzz": 1}}):
        refused = memory.call("start_workflow", sent)
        assert corrected(refused) == ("start_workflow", start | goal)
        assert f"Left out of the call below: `{wrapper}.zzz`" in refused["suggestion"]
        assert not memory.call(*corrected(refused)).is_error
    refused = memory.call("start_workflow", {**start, wrapper: {"zzz": 1}})
    assert corrected(refused) == ("start_workflow", start)
    assert refused["suggestion"] == f"Leave `{wrapper}` out."


@pytest.mark.inv("ANS-24")
def test_a_token_that_a_corrected_call_lacks_is_asked_for(memory: Harness) -> None:
    token = "<the ackToken of the last answer>"
    assert corrected(memory.call(CONTINUE, {"output": DONE, "foo": 1}))[1] == {"output": DONE, "ackToken": token}
    assert corrected(memory.call(CONTINUE, {"foo": 1}))[1] == {"stateToken": "<the stateToken of the last answer>"}
    saved = corrected(memory.call("checkpoint_workflow", {"output": {**DONE, "text": "x"}}))[1]
    assert saved == {"output": DONE, "ackToken": token}
    inspected = corrected(memory.call("inspect_workflow", {"arguments": {"detail": "all"}}))[1]
    assert inspected == {"workflowId": "<an id that list_workflows returned>"}


@pytest.mark.inv("ANS-22")
@pytest.mark.parametrize("wrapping", ["{}", "<{}>", "`{}`.", "{}."])
def test_the_words_that_stand_for_long_values_are_not_taken_for_them(memory: Harness, wrapping: str) -> None:
    answer = memory.start("test.abc")
    long = "".join(f"Changed line {at} of the parser.\n" for at in range(50))
    for sent in ({"output": {"notesMarkdown": long}, "foo": 1}, {"context": {"notesMarkdown": long}}):
        call = memory.call(CONTINUE, {"ackToken": answer.ack, **sent})["details"]["correctedCall"]
        filled = fill_in(call["arguments"], call["fill"], lambda one: wrapping.format(one["what"]))
        assert memory.call(CONTINUE, filled)["kind"] == "blocked"
    call = memory.start("test.abc", goal=long, foo=1)["details"]["correctedCall"]
    filled = fill_in(call["arguments"], call["fill"], lambda one: wrapping.format(one["what"]))
    assert memory.call("start_workflow", filled).code is ErrorCode.VALIDATION_ERROR


def test_what_only_says_what_belongs_there_is_not_taken_for_it() -> None:
    asked = {"key": "who", "description": "Who.", "type": "string"}
    memory = Harness.in_memory(linear_workflow("test.inputs", "a", inputs=[asked]))
    for arguments in ({"goal": "<what the user wants>"}, {"context": {"who": "<Who.>"}}):
        assert memory.start("test.inputs", **arguments).code is ErrorCode.VALIDATION_ERROR
    answer = memory.start("test.inputs")
    output = {**DONE, "artifacts": [{"kind": "<kind>"}]}
    assert memory.advance(answer, output=output).code is ErrorCode.VALIDATION_ERROR
    refused = memory.advance(answer, output={**DONE, "artifacts": {"kind": "report"}})
    assert corrected(refused)[1]["output"]["artifacts"] == [{"kind": "report"}]


@pytest.mark.damages
def test_a_damaged_neighbour_is_not_taken_for_the_run_that_is_meant(tmp_path: Path) -> None:
    disk = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    good, bad = disk.start("test.abc", goal="Mend the lamp"), disk.start("test.abc", goal="Paint the barn")
    segment = next((tmp_path / "sessions" / disk.session_of(bad) / "events").glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes()[:-2] + b"~\n")
    disk = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    for beside in ({"stateToken": bad.state}, {"run": bad["run"]["label"]}):
        refused = disk.call(CONTINUE, {"ackToken": good.ack, "output": DONE, **beside})
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        assert corrected(refused)[1]["ackToken"].startswith("<the ackToken of")
    found = disk.resume("barn")
    assert [one["run"]["goal"] for one in found["candidates"]] == ["Mend the lamp"]
    assert found["candidates"][0]["whyMatched"] == ["recency_fallback"]


def test_who_brings_nothing_is_not_led_to_report_a_step(memory: Harness) -> None:
    looked = memory.call(CONTINUE, {"run": "ab12"})
    assert corrected(looked) == (CONTINUE, {"run": "ab12", "stateToken": "<the stateToken of the last answer>"})
    reported = memory.call(CONTINUE, {"run": "ab12", "output": DONE})
    assert corrected(reported)[1] == {"run": "ab12", "ackToken": "<the ackToken of the last answer>", "output": DONE}


NAMES: list[tuple[str, dict[str, str], tuple[str, dict[str, str]]]] = [
    ("start_workflow", {"workflowId": "test.abd"}, ("start_workflow", {"workflowId": "test.abc"})),
    ("start_workflow", {"workflowId": "nothing.like_it"}, ("list_workflows", {})),
    (
        "start_workflow",
        {"workflowId": "test.abc", "sessionId": "sess_00000000000000000000000000"},
        ("start_workflow", {"workflowId": "test.abc"}),
    ),
    (
        "start_workflow",
        {"workflowId": "test.abc", "sessionId": "here"},
        ("start_workflow", {"workflowId": "test.abc"}),
    ),
    ("resume_session", {"runId": "0002", "query": "lamp"}, ("resume_session", {"query": "lamp"})),
]


@pytest.mark.parametrize(("tool", "sent", "call"), NAMES)
def test_a_name_that_is_not_there_is_replaced_or_left_out(
    memory: Harness, tool: str, sent: dict[str, str], call: tuple[str, dict[str, str]]
) -> None:
    assert corrected(memory.call(tool, sent)) == call


def test_a_start_without_its_inputs_is_shown_with_what_each_is() -> None:
    asked = {"key": "colour", "description": "Which paint.", "type": "string", "required": True}
    memory = Harness.in_memory(linear_workflow("test.inputs", "a", inputs=[asked]))
    _, arguments = corrected(memory.start("test.inputs"))
    assert arguments == {"workflowId": "test.inputs", "context": {"colour": "<Which paint.>"}}


def test_a_start_asks_for_no_optional_input_that_was_not_sent() -> None:
    must = {"key": "colour", "description": "Which paint.", "type": "string", "required": True}
    may = [{"key": key, "description": f"The {key}.", "type": "string"} for key in ("brush", "hour")]
    memory = Harness.in_memory(linear_workflow("test.inputs", "a", inputs=[must, *may]))
    refused = memory.start("test.inputs")
    assert corrected(refused)[1]["context"] == {"colour": "<Which paint.>"}
    assert "Only if the user named a value for them: `brush`, `hour`." in refused["suggestion"]
    assert {one["key"]: one["required"] for one in refused["details"]["wanted"]}["brush"] is False
    again = memory.start("test.inputs", context={"hour": "noon"})
    assert corrected(again)[1]["context"] == {"colour": "<Which paint.>", "hour": "<The hour.>"}


def test_an_old_attempt_with_other_content_says_where_the_run_stands(memory: Harness) -> None:
    first = memory.start("test.abc")
    third = memory.advance(memory.advance(first))
    again = memory.advance(first, "Something else.")
    assert again.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert again["nextCall"]["arguments"] == {"stateToken": third.state, "run": third["run"]["label"]}
    assert "already done; the run is at step 3 of 3" in again.text
    assert third.state in again.text


def test_a_complete_run_names_no_next_call(memory: Harness) -> None:
    last = memory.advance(memory.advance(memory.start("test.abc")))
    memory.advance(last)
    again = memory.advance(last, "Something else.")
    assert again.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert "next call" not in again.text
    kept = memory.call("checkpoint_workflow", {"ackToken": last.ack, "output": DONE})
    assert "the next call shows where the run is" in kept.text


def test_a_run_is_found_by_what_is_reported_of_it(memory: Harness) -> None:
    answer = memory.start("test.abc", goal="Mend the lamp")
    memory.start("test.other", goal="Paint the barn")
    run = answer["run"]
    for query in (f"run {run['label']}", run["runId"], run["sessionId"]):
        found = memory.resume(query)["candidates"]
        assert [one["run"]["runId"] for one in found] == [run["runId"]]
        assert found[0]["whyMatched"] == ["matched_session_id" if query == run["sessionId"] else "matched_run_id"]


@pytest.mark.parametrize("argument", ["ackToken", "stateToken", "checkpointToken"])
def test_a_token_with_the_end_of_another_one_is_completed_as_it_begins(memory: Harness, argument: str) -> None:
    """A small model wrote the beginning of one token of an answer and the end of another one."""
    answer = memory.start("test.abc")
    tool = "checkpoint_workflow" if argument == "checkpointToken" else CONTINUE
    sent = {} if argument == "stateToken" else {"output": DONE}
    for end in {"ackToken", "stateToken", "checkpointToken"} - {argument}:
        for at in (8 + 12, 8 + 18):
            refused = memory.call(tool, {argument: answer[argument][:at] + answer[end][-60 + at :], **sent})
            assert corrected(refused) == (tool, {argument: answer[argument], **sent})


@pytest.mark.inv("ANS-24")
@pytest.mark.parametrize("tool", [CONTINUE, "checkpoint_workflow"])
def test_a_wrong_state_token_beside_a_right_token_is_left_out(memory: Harness, tool: str) -> None:
    """A call that shows the run led a small model back to the same refusal."""
    answer = memory.start("test.abc")
    good = {"ackToken": answer.ack, "output": DONE}
    for wrong in ("junk", answer.state[:20] + answer.ack[21:], answer["checkpointToken"]):
        refused = memory.call(tool, good | {"stateToken": wrong})
        assert (refused.is_error, corrected(refused)) == (True, (tool, good))
        assert "Leave `stateToken` out" in refused["suggestion"]
    assert not memory.call(*corrected(refused)).is_error


@pytest.mark.inv("ANS-24")
@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        ({"workflowId": "test.abc", "goal": "Mend it"}, {"workspacePath": 5}),
        ({"workflowId": "test.abc"}, {"workspacePath": "not/absolute", "goal": ["x"]}),
        ({"workflowId": "test.abc"}, {"goal": "<what the user wants>"}),
        ({"workflowId": "test.abc", "preferences": {}}, {"preferences": {"autonomy": "full"}, "gaol": True}),
        ({"workflowId": "test.abc"}, {"context": "none", "sessionId": 1}),
    ],
)
def test_a_wrong_optional_argument_is_left_out(memory: Harness, good: dict[str, Any], wrong: dict[str, Any]) -> None:
    tool, arguments = "start_workflow", good | wrong
    while arguments != good:
        tool, arguments = corrected(memory.call(tool, arguments))
    assert not memory.call(tool, arguments).is_error


@pytest.mark.inv("ANS-24")
def test_a_corrected_call_has_none_of_the_other_faults(memory: Harness) -> None:
    sent = {"workflowId": "test.abc", "preferences": {"autonomy": "full", "riskPolicy": "none"}, "stateToken": "x"}
    tool, arguments = corrected(memory.call("start_workflow", sent))
    assert arguments == {"workflowId": "test.abc", "preferences": {}}
    assert not memory.call(tool, arguments).is_error
    moved = {"workflow_id": "test.abc", "preferences": {"autonomy": "full"}}
    assert corrected(memory.call("start_workflow", moved))[1] == {"workflowId": "test.abc", "preferences": {}}


@pytest.mark.inv("ANS-25")
def test_without_any_run_each_unknown_token_is_answered_with_a_start() -> None:
    memory = Harness.in_memory(linear_workflow("test.abc", "a"))
    for text in ("garbage", f"ack_ab12{'A' * 52}", "st.v1.x.y"):
        for tool, argument in ((CONTINUE, "ackToken"), (CONTINUE, "stateToken"), ("checkpoint_workflow", "ackToken")):
            refused = memory.call(tool, {argument: text})
            assert "No run exists yet: call `start_workflow`." in refused["suggestion"]
            wanted = ("start_workflow", {"workflowId": "<an id that list_workflows returned>"})
            assert corrected(refused) == wanted


@pytest.mark.inv("ANS-26")
def test_a_refusal_that_shows_a_call_does_not_say_that_nothing_can_be_sent(memory: Harness) -> None:
    answer = memory.start("test.abc")
    for refused in (memory.start("test.abd"), memory.call(CONTINUE, {"ackToken": answer.ack[:-4]})):
        assert refused.text.startswith(f"**{refused.code}**\n\n")
        assert refused["retry"] == {"kind": "not_retryable"}


LONG = "word " * 2_000
INSIDE = "<your context, corrected>"


@pytest.mark.inv("ANS-24")
@pytest.mark.parametrize(
    ("tool", "sent", "shown"),
    [
        ("start_workflow", {"context": {"ticket": "A-1", "n": 2**63}}, {"context": INSIDE}),
        ("start_workflow", {"context": {"ticket": "A-1", "": 1}}, {"context": INSIDE}),
        ("start_workflow", {"context": {"ticket": "A-1", "all": "x" * 300_000}}, {"context": INSIDE}),
        ("start_workflow", {"goal": LONG}, {"goal": "<the goal, in a sentence>"}),
        (CONTINUE, {"context": {"ticket": "A-1", "n": 2**63}, "output": DONE}, {"context": INSIDE}),
        ("resume_session", {"query": LONG}, {"query": "<a few words>"}),
    ],
)
def test_what_was_sent_with_a_fault_inside_is_asked_for_again(
    memory: Harness, tool: str, sent: dict[str, Any], shown: dict[str, Any]
) -> None:
    given = {"start_workflow": {"workflowId": "test.abc"}, CONTINUE: {"ackToken": memory.start("test.abc").ack}}
    refused = memory.call(tool, given.get(tool, {}) | sent)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert corrected(refused)[0] == tool
    found = with_samples(refused["details"]["correctedCall"])["arguments"]
    assert found == given.get(tool, {}) | sent | shown


@pytest.mark.inv("ANS-15")
@pytest.mark.parametrize("sent", [{"token": ""}, {"token": None}, {"stateToken": None, "preferences": "x"}])
def test_an_empty_token_is_asked_for(memory: Harness, sent: dict[str, Any]) -> None:
    call = memory.call(CONTINUE, sent)["details"]["correctedCall"]
    assert "" not in call["arguments"].values()
    assert [one["path"] for one in call["fill"]] == ["stateToken"]
