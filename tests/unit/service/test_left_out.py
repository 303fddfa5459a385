"""A corrected call says nothing else than what was sent, and a refusal names what it leaves out (ANS-29)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.calls import assert_shown

from interlock.kernel.budgets import ARTIFACTS_MAX, MOVED_ARGUMENTS_MAX
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Harness, ToolResult, linear_workflow

pytestmark = pytest.mark.inv("ANS-29", "ANS-15")

CONTINUE = "continue_workflow"
CHECKPOINT = "checkpoint_workflow"
DONE = {"notesMarkdown": "Read all of it."}
VERDICT = {
    "kind": "wr.gate_verdict",
    "version": 1,
    "verdict": "rejected",
    "confidence": "low",
    "rationale": "It fails.",
}
DIVERGENCE = {"kind": "wr.workflow_divergence", "reason": "efficiency_skip", "summary": "Skipped a part."}
END = {"kind": "wr.work_record", "work": "cancelled", "reason": "user_request", "note": "Drop it."}
LEFT_OUT = " Left out of the call below: "


@pytest.fixture
def memory() -> Harness:
    step = {"id": "a", "title": "A", "prompt": "Judge.", "outputContract": {"contractRef": "wr.contracts.gate_verdict"}}
    return Harness.in_memory(linear_workflow("test.abc", step, "b"))


def refuse(memory: Harness, sent: dict[str, Any], tool: str = CONTINUE) -> tuple[ToolResult, dict[str, Any]]:
    """Send wrong arguments with a token; return the refusal and the output of its corrected call."""
    refused = memory.call(tool, {"ackToken": memory.start("test.abc").ack, **sent})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    call = refused["details"]["correctedCall"]
    assert_shown(call, refused.text)
    return refused, call["arguments"].get("output", {})


@pytest.mark.parametrize(
    ("sent", "place", "reason"),
    [
        ({"notes": "Other."}, "notes", "`output.notesMarkdown` has another value"),
        ({"output": {**DONE, "notes": "Other."}}, "notes", "`output.notesMarkdown` has another value"),
        ({"output.notesMarkdown": "Other."}, "output.notesMarkdown", "`output` has another value at that place"),
    ],
)
def test_of_two_values_for_one_place_the_other_one_is_named(
    memory: Harness, sent: dict[str, Any], place: str, reason: str
) -> None:
    refused, output = refuse(memory, {"output": DONE, **sent})
    assert output == DONE
    assert refused["suggestion"] == f"Left out of the call below: `{place}`, because {reason}."


def test_what_is_sent_twice_with_one_value_is_not_left_out(memory: Harness) -> None:
    refused, output = refuse(memory, {"output": DONE, "notes": DONE["notesMarkdown"], "context": {"size": 3}})
    assert (output, refused["suggestion"]) == (DONE, "Send it as `output.notesMarkdown`.")


def test_all_that_is_left_out_is_named_or_counted(memory: Harness) -> None:
    more = {f"x{number}": number % 2 for number in range(9)}
    refused, output = refuse(memory, {"output": {**DONE, "artifacts": [{**VERDICT, "n": 1}]}, **more})
    assert output == {**DONE, "artifacts": [{**VERDICT, "n": 1}]}
    assert refused["suggestion"] == f"Leave `x0` out.{LEFT_OUT}`x1`, `x2`, `x3`, `x4`, `x5` and 3 more."
    refused, output = refuse(
        memory, {"output": {**DONE, "data": {"a": 1, "b": ["c"]}}, "preferences": {"autonomy": "x"}}
    )
    assert (output, refused["suggestion"]) == (DONE, f"Leave `data` out.{LEFT_OUT}`preferences`.")


def test_two_records_of_work_become_one(memory: Harness) -> None:
    refused, output = refuse(memory, {"output": {"artifacts": [END, END]}})
    assert (output, refused["suggestion"]) == ({"artifacts": [END]}, "Send one.")
    refused, output = refuse(memory, {"output": {"artifacts": [END, {**END, "note": "Other."}]}})
    assert (output, refused["suggestion"]) == ({"artifacts": [END]}, f"Send one.{LEFT_OUT}`output.artifacts[1].note`.")
    left = {**END, "work": "released"}
    refused, output = refuse(memory, {"output": {**DONE, "artifacts": [left, {**left, "note": "Other."}]}}, CHECKPOINT)
    assert output == {**DONE, "artifacts": [left]}


def as_text(value: object) -> object:
    return json.dumps(value)


def as_it_is(value: object) -> object:
    return value


@pytest.mark.parametrize("form", [as_text, as_it_is])
def test_evidence_in_a_text_of_json_is_kept(memory: Harness, form: Callable[[object], object]) -> None:
    artifact = {"verdict": "rejected", "rationale": "It fails."}
    whole = {**DONE, "artifacts": [artifact]}
    _, output = refuse(memory, {"output": form(whole)})
    assert output == DONE
    refused, _ = refuse(memory, {"output": {**DONE, "artifacts": form([artifact])}})
    paths = {one["path"]: one.get("choices") for one in refused["details"]["correctedCall"]["fill"]}
    at = "output.artifacts[0]"
    assert paths == {f"{at}.kind": None, f"{at}.verdict": ["rejected"], f"{at}.rationale": ["It fails."]}


@pytest.mark.parametrize("name", ["artifact", "artefacts", "artefact", "Artifacts"])
def test_a_single_artifact_under_a_near_name_is_kept(memory: Harness, name: str) -> None:
    for sent in ({"output": {**DONE, name: VERDICT}}, {"output": DONE, name: VERDICT}):
        assert refuse(memory, sent)[1] == {**DONE, "artifacts": [VERDICT]}


@pytest.mark.parametrize(
    "artifact",
    [
        END,
        {"kind": "wr.confirmation", "confirmedBy": "Ann", "statement": "Yes."},
        {"kind": "wr.capability_observation", "capability": "web", "status": "available", "detail": "Seen."},
        {"kind": "wr.coordinator_signal", "signalKind": "x", "payload": {"a": 1}, "sessionId": "s"},
        {"kind": "wr.event", "event": "ci.done", "id": "1", "fields": {"a": "b"}},
        {"kind": "own.kind", "statement": "Yes.", "tokens": "many"},
    ],
)
def test_a_loose_artifact_keeps_its_members(memory: Harness, artifact: dict[str, Any]) -> None:
    for sent in (artifact, {"output": artifact}):
        assert refuse(memory, sent)[1] == {"artifacts": [artifact]}


@pytest.mark.parametrize("artifacts", [VERDICT, [VERDICT]])
def test_a_loose_artifact_is_put_beside_the_other_one(memory: Harness, artifacts: object) -> None:
    assert refuse(memory, {"output": {"artifacts": artifacts}, **DIVERGENCE})[1] == {"artifacts": [VERDICT, DIVERGENCE]}


def test_positions_of_paths_only_order_the_artifacts(memory: Harness) -> None:
    second = {f"output.artifacts[1].{name}": value for name, value in VERDICT.items()}
    assert refuse(memory, second)[1] == {"artifacts": [VERDICT]}
    first = {f"output.artifacts[0].{name}": value for name, value in DIVERGENCE.items()}
    assert refuse(memory, second | first)[1] == {"artifacts": [DIVERGENCE, VERDICT]}
    nested = {"output.artifacts[0].kind": "own.kind", "output.artifacts[0].x[2].b": 1, "output.artifacts[0].x[2].c": 2}
    assert refuse(memory, nested)[1] == {"artifacts": [{"kind": "own.kind", "x": [{"b": 1, "c": 2}]}]}
    refused, _ = refuse(memory, {"output": DONE, f"output.artifacts[{'9' * 5_000}].kind": "own.kind"})
    assert refused["suggestion"].startswith("Leave `output.artifacts[999")


def test_artifacts_by_position_kind_contract_or_name_become_a_list(memory: Harness) -> None:
    inner = {name: value for name, value in VERDICT.items() if name != "kind"}
    for artifacts in (
        {"0": VERDICT, "1": DIVERGENCE},
        {"wr.gate_verdict": inner, "wr.workflow_divergence": DIVERGENCE},
        {"wr.contracts.gate_verdict": inner, "divergence": DIVERGENCE},
        {"verdict": VERDICT, "others": [DIVERGENCE]},
        {"wr.contracts.gate_verdict": [inner], "wr.workflow_divergence": [DIVERGENCE]},
    ):
        output = refuse(memory, {"output": {**DONE, "artifacts": artifacts}})[1]
        assert output == {**DONE, "artifacts": [VERDICT, DIVERGENCE]}
    own = {"team.review": {"a": 1}, "x": {"kind": "y"}}
    kinds = [{"kind": "team.review", "a": 1}, {"kind": "y"}]
    assert refuse(memory, {"output": {"artifacts": own}})[1] == {"artifacts": kinds}
    assert refuse(memory, {"output": {"artifacts": {"data": {"a": 1}}}})[1] == {"artifacts": [{"data": {"a": 1}}]}


def test_an_artifact_in_a_text_is_an_artifact(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    answers = [
        memory.call(CONTINUE, {"ackToken": token, "output": {**DONE, "artifacts": [one]}})
        for one in (VERDICT, json.dumps(VERDICT))
    ]
    assert answers[0].text == answers[1].text


def test_two_loose_artifacts_stay_two(memory: Harness) -> None:
    output = refuse(memory, {**VERDICT, "output": {**DIVERGENCE, **DONE}})[1]
    assert output["notesMarkdown"] == DONE["notesMarkdown"]
    assert sorted(one["kind"] for one in output["artifacts"]) == ["wr.gate_verdict", "wr.workflow_divergence"]


def test_an_object_is_known_by_its_members(memory: Harness) -> None:
    whole = {**DONE, "artifacts": [VERDICT]}
    for sent in (
        {"result": whole},
        {"output": {"arguments": whole}},
        {"output": DONE, "data": {"artifacts": [VERDICT]}},
    ):
        refused, output = refuse(memory, sent)
        assert (output, "`output`" in refused["suggestion"]) == (whole, True)


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({"output": {"artifacts": [VERDICT]}}, "context.output"),
        ({"artifacts": [VERDICT]}, "context.artifacts"),
        ({"artifacts": VERDICT}, "context.artifacts"),
    ],
)
def test_evidence_in_the_context_joins_the_output(memory: Harness, context: dict[str, Any], path: str) -> None:
    refused, output = refuse(memory, {"output": DONE, "context": context})
    assert (refused["details"]["path"], output) == (path, {**DONE, "artifacts": [VERDICT]})
    token = memory.start("test.abc").ack
    own = {"artifacts": [{"kind": "own.kind"}], "output": {"notesMarkdown": "Other."}}
    assert memory.call(CONTINUE, {"ackToken": token, "context": own, "output": DONE})["kind"] == "blocked"


def test_an_ack_token_as_the_state_token_of_a_report_is_moved(memory: Harness) -> None:
    token = memory.start("test.abc").ack
    call = memory.call(CONTINUE, {"stateToken": token, "output": DONE})["details"]["correctedCall"]
    assert (call["arguments"], call["fill"]) == ({"ackToken": token, "output": DONE}, [])


def test_a_value_that_its_place_does_not_take_is_left_out(memory: Harness) -> None:
    for name, value, meant in (("riskPolicy", "bold", "preferences.riskPolicy"), ("output.artifacts[0]", 5, "")):
        refused, output = refuse(memory, {"output": DONE, name: value})
        assert output == DONE
        assert refused["suggestion"].startswith(f"It is meant for `{meant or name}`, which does not take its value.")


def test_what_is_no_artifact_is_left_out_of_the_list(memory: Harness) -> None:
    refused, output = refuse(memory, {"output": {"notesMarkdown": 5, "artifacts": [VERDICT, 5, "x"]}})
    assert output == {"artifacts": [VERDICT]}
    assert refused["suggestion"] == f"Send a string.{LEFT_OUT}`output.artifacts[1]`, `output.artifacts[2]`."
    many = [{"kind": "own.kind", "n": number} for number in range(ARTIFACTS_MAX + 1)]
    refused, output = refuse(memory, {"output": {**DONE, "artifacts": many}})
    assert output == DONE
    assert [one["path"] for one in refused["details"]["correctedCall"]["fill"]] == ["output.artifacts"]


def test_advice_about_a_value_is_what_the_call_shows(memory: Harness) -> None:
    refused, _ = refuse(memory, {"output": {**DONE, "artifacts": [{**VERDICT, "n": 2**60}]}})
    shown = {one["path"]: one.get("choices") for one in refused["details"]["correctedCall"]["fill"]}
    assert (refused["suggestion"], shown["output.artifacts[0].n"]) == ("Send it as text.", [str(2**60)])
    event = {"kind": "wr.event", "event": "ci.done", "id": "1"}
    refused, output = refuse(memory, {"output": {**DONE, "artifacts": [event]}}, CHECKPOINT)
    assert output == DONE
    assert refused["suggestion"] == f"Send it with `continue_workflow`.{LEFT_OUT}`output.artifacts`."


@pytest.mark.inv("ANS-4")
def test_of_the_tokens_of_two_runs_the_refusal_asks_for_one(memory: Harness) -> None:
    first, second = memory.start("test.abc"), memory.start("test.abc")
    one, other = ({"ackToken": of.ack, "run": of["run"]["label"]} for of in (first, second))
    inner = {**other, "output": DONE}
    for sent in (
        {**one, "arguments": inner},
        {"token": other["ackToken"], **one, "output": DONE},
        {"input": {**one, "arguments": inner}},
        {"input": json.dumps({**one, "arguments": json.dumps(inner)})},
        {**one, "input": {"arguments": inner}},
    ):
        refused = memory.call(CONTINUE, sent)
        call = refused["details"]["correctedCall"]
        assert (call["arguments"], [blank["path"] for blank in call["fill"]]) == ({"output": DONE}, ["ackToken"])
        assert refused["suggestion"].startswith("Two values of `ackToken` were sent, which may be of two runs.")


def test_a_required_argument_without_words_of_its_own_is_asked_for(memory: Harness) -> None:
    refused = memory.call("answer_question", {"stateToken": memory.start("test.abc").state, "choice": "approve"})
    assert refused["details"]["correctedCall"]["fill"] == [{"path": "mark"}]


def test_advice_names_the_call_that_is_shown(memory: Harness) -> None:
    answer = memory.start("test.abc")
    refused = memory.call(CONTINUE, {"ackToken": answer.ack[:8], "output": DONE})
    assert refused["details"]["correctedCall"]["arguments"].keys() == {"stateToken", "run"}
    assert refused["suggestion"].endswith("If you have none, the call below shows where the run is.")
    refused = memory.start(" test.abc ")
    assert refused["message"] == "There is no workflow ' test.abc '."
    assert refused["suggestion"].startswith("Did you mean `test.abc`?")


def test_an_artifact_of_very_many_loose_members_is_cut_and_counted(memory: Harness) -> None:
    many = {f"k{number}": f"v{number}" for number in range(20 * MOVED_ARGUMENTS_MAX)}
    refused, output = refuse(memory, {**many, "kind": "own.kind"})
    assert len(output["artifacts"][0]) <= MOVED_ARGUMENTS_MAX
    assert refused["suggestion"].endswith(" more.")
