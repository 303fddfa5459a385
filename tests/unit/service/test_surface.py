"""What a client may send: lenient in what is harmless, exact in what is not, and never a fault of ours."""

import json
import random
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.calls import assert_shown, with_samples
from tests.support.shares import examples

from interlock.kernel.budgets import (
    ARGUMENT_VALUES_MAX,
    ARTIFACT_BYTES_MAX,
    ARTIFACT_DEPTH_MAX,
    ARTIFACTS_MAX,
    LINE_DEPTH_MAX,
    NOTES_INPUT_BYTES_MAX,
    NUMBER_DIGITS_MAX,
)
from interlock.kernel.errors import ErrorCode
from interlock.record.payloads import WorkReason
from interlock.record.world import RECORDED_KINDS
from interlock.server.tools import TOOLS
from interlock.testing.harness import Harness, ToolResult, linear_workflow

CONTINUE, START = "continue_workflow", "start_workflow"


@pytest.fixture
def memory() -> Harness:
    return Harness.in_memory(linear_workflow("test.abc", "a", "b", "c"))


def small(answer: ToolResult) -> bool:
    return len(answer.text) < 5_000 and len(json.dumps(dict(answer.structure))) < 10_000


@pytest.mark.inv("ANS-11")
def test_arguments_that_clients_inject_are_dropped_wherever_they_stand(memory: Harness) -> None:
    injected = {"wait_for_previous": True}
    first = memory.start("test.abc", **injected)
    assert memory.call("list_workflows", injected)["workflows"]
    answer = memory.advance(first, None, output={"notesMarkdown": "n", **injected}, preferences=injected, **injected)
    assert answer["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-11")
@pytest.mark.parametrize("nothing", [None, ""])
def test_null_and_the_empty_text_on_an_optional_argument_are_absent(memory: Harness, nothing: str | None) -> None:
    optional = ["goal", "context", "workspacePath", "preferences", "sessionId"]
    first = memory.start("test.abc", **dict.fromkeys(optional, nothing))
    assert "goal" not in first["run"]
    more = dict.fromkeys(["stateToken", "run", "context", "preferences"], nothing)
    answer = memory.call(CONTINUE, {"ackToken": first.ack, "output": {"notesMarkdown": "n"}, **more})
    assert answer["pending"]["stepId"] == "b"
    looked = memory.rehydrate(answer, **dict.fromkeys(["ackToken", "output", "context", "preferences", "run"], nothing))
    assert looked["pending"]["stepId"] == "b"
    assert memory.call("list_workflows", dict.fromkeys(["query", "tag", "workspacePath"], nothing))["workflows"]
    assert memory.call("inspect_workflow", {"workflowId": "test.abc", "detail": nothing})["steps"]


@pytest.mark.inv("ANS-11")
@pytest.mark.parametrize("nothing", [None, ""])
def test_null_and_the_empty_text_inside_output_and_preferences_are_absent_too(
    memory: Harness, nothing: str | None
) -> None:
    """Clients that send "" for what is not set do so at every level."""
    first = memory.start("test.abc", preferences={"autonomy": nothing, "riskPolicy": "balanced"})
    assert first["preferences"] == {"autonomy": "guided", "riskPolicy": "balanced"}
    answer = memory.advance(first, None, output={"notesMarkdown": "n", "artifacts": nothing})
    assert answer["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-11")
def test_an_object_sent_as_text_is_the_object(memory: Harness) -> None:
    first = memory.start("test.abc", context='{"x": 1}', preferences='{"riskPolicy": "balanced"}')
    assert first["preferences"]["riskPolicy"] == "balanced"
    output = json.dumps({"notesMarkdown": "Did it.", "artifacts": json.dumps([{"kind": "k"}])})
    answer = memory.advance(first, None, output=output)
    assert answer["pending"]["stepId"] == "b"
    assert [event.kind for event in memory.events(memory.session_of(first))].count("node_output_appended") == 2


@pytest.mark.inv("ANS-9")
@pytest.mark.parametrize("text", ["x", "[1]", "5", "null", "{", '"{}"', "{'a': 1}", "[" * 100_000, "1" * 10_000])
@pytest.mark.parametrize("name", ["output", "context", "preferences"])
def test_a_text_that_is_no_object_is_refused_where_one_belongs(memory: Harness, name: str, text: str) -> None:
    refused = memory.call(CONTINUE, {"ackToken": memory.start("test.abc").ack, name: text})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert refused["details"]["path"] == name
    assert small(refused)


@pytest.mark.inv("LIM-1")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a":[' + "[]," * (ARGUMENT_VALUES_MAX // 2) + "[]]}", f"more than {ARGUMENT_VALUES_MAX} values"),
        ('{"a":' + "[" * LINE_DEPTH_MAX + "]" * LINE_DEPTH_MAX + "}", f"deeper than {LINE_DEPTH_MAX} levels"),
        ('{"a":' + "1" * (NUMBER_DIGITS_MAX + 1) + "}", f"more than {NUMBER_DIGITS_MAX} digits"),
    ],
)
def test_a_text_that_costs_too_much_to_read_as_an_object_is_refused_unread(
    memory: Harness, text: str, words: str
) -> None:
    refused = memory.call(START, {"workflowId": "test.abc", "context": text})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert words in refused["message"]
    assert refused["details"]["path"] == "context"
    assert small(refused)


TYPOS: list[tuple[str, str, str, object]] = [
    (CONTINUE, "outputs", "output", {"notesMarkdown": "n"}),
    (CONTINUE, "acktoken", "ackToken", "x"),
    (CONTINUE, "state_token", "stateToken", "x"),
    (CONTINUE, "contxt", "context", {}),
    (START, "workflow_id", "workflowId", "test.abc"),
    (START, "gaol", "goal", "x"),
    (START, "inputs", "context", {"depth": "quick"}),
    (CONTINUE, "variables", "context", {"depth": "quick"}),
    (START, "workspace", "workspacePath", "/x"),
    ("list_workflows", "queries", "query", "x"),
    ("inspect_workflow", "details", "detail", "plan"),
    ("inspect_workflow", "id", "workflowId", "test.abc"),
    (START, "id", "workflowId", "test.abc"),
]


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize(("tool", "typo", "meant", "value"), TYPOS)
def test_an_unknown_argument_is_answered_with_the_one_that_was_meant(
    memory: Harness, tool: str, typo: str, meant: str, value: object
) -> None:
    first = memory.start("test.abc")
    required = {CONTINUE: {"ackToken": first.ack}, "list_workflows": {}}.get(tool, {"workflowId": "test.abc"})
    sent = {key: item for key, item in required.items() if key != meant} | {typo: value}
    refused = memory.call(tool, sent)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert refused["details"]["path"] == typo
    assert refused["details"]["didYouMean"] == meant
    assert f"`{meant}`" in refused.text
    corrected = with_samples(refused["details"]["correctedCall"])
    assert corrected["tool"] == tool
    assert meant in corrected["arguments"]
    assert typo not in corrected["arguments"]


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize(
    ("arguments", "path", "meant"),
    [
        ({"output": {"notes": "n"}}, "output.notes", "notesMarkdown"),
        ({"output": {"notesMarkdown": "n", "artefacts": []}}, "output.artefacts", "artifacts"),
        ({"preferences": {"risk": "balanced"}}, "preferences.risk", "riskPolicy"),
    ],
)
def test_an_unknown_member_is_answered_with_the_one_that_was_meant(
    memory: Harness, arguments: dict[str, object], path: str, meant: str
) -> None:
    refused = memory.call(CONTINUE, {"ackToken": memory.start("test.abc").ack, **arguments})
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, path)
    assert f"`{meant}`" in refused["suggestion"]


@pytest.mark.inv("ANS-12")
def test_an_unknown_argument_that_resembles_nothing_is_to_be_left_out(memory: Harness) -> None:
    refused = memory.start("test.abc", zzz=1)
    assert refused["details"]["path"] == "zzz"
    assert "Leave `zzz` out" in refused["suggestion"]
    assert "zzz" not in with_samples(refused["details"]["correctedCall"])["arguments"]


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize(
    ("wrong", "value"),
    [("intent", "advance"), ("content", "x"), ("text", ["x"]), ("outputs", "done"), ("notes", ["x"])],
)
def test_an_argument_that_cannot_take_the_value_is_not_suggested(memory: Harness, wrong: str, value: object) -> None:
    refused = memory.call(CONTINUE, {"ackToken": memory.start("test.abc").ack, wrong: value})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert f"Leave `{wrong}` out" in refused["suggestion"]
    assert "didYouMean" not in refused["details"] or refused["details"]["didYouMean"] is None
    corrected = with_samples(refused["details"]["correctedCall"])
    assert corrected["arguments"].keys() == {"ackToken", "output"}


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize("sent", [{"list": 1}, {"output": {"list": 1}}, {"dict": 1}])
def test_an_unknown_argument_is_named_even_where_it_is_called_like_a_kind(
    memory: Harness, sent: dict[str, object]
) -> None:
    refused = memory.call(CONTINUE, {"ackToken": "a", **sent})
    assert refused["details"]["path"].rpartition(".")[2] in {"list", "dict"}


NOTES = {"notesMarkdown": "N"}
ACK, STATE = "<your ackToken>", "<your stateToken>"
KIND_SAMPLE = "<the kind of the artifact>"
CORRECTED: list[tuple[str, dict[str, object], str, dict[str, object]]] = [
    (START, {"workflowId": "team.t", "goal": 5}, "a string", {"workflowId": "team.t"}),
    (START, {"workflowId": "team.t", "goal": "G", "context": [1]}, "an object", {"workflowId": "team.t", "goal": "G"}),
    (START, {"goal": "G"}, "Send it", {"goal": "G", "workflowId": "<an id that list_workflows returned>"}),
    (
        START,
        {"workflowId": "team.t", "preferences": {"autonomy": "full", "riskPolicy": "balanced"}},
        "one of 'guided'",
        {"workflowId": "team.t", "preferences": {"riskPolicy": "balanced"}},
    ),
    (
        START,
        {"workflowId": "team.t", "context": {"x": 1}, "zzz": 1},
        "out",
        {"workflowId": "team.t", "context": "<your context, as you sent it>"},
    ),
    ("inspect_workflow", {"workflowId": "team.t", "detail": True}, "one of 'summary'", {"workflowId": "team.t"}),
    ("list_workflows", {"query": "a", "tag": ["b"]}, "a string", {"query": "a"}),
    (CONTINUE, {"ackToken": ACK, "notesMarkdown": "N"}, "`output.notesMarkdown`", {"ackToken": ACK, "output": NOTES}),
    (CONTINUE, {"ackToken": ACK, "notes": "N"}, "`output.notesMarkdown`", {"ackToken": ACK, "output": NOTES}),
    (CONTINUE, {"ackToken": ACK, "output": {"notes": "N"}}, "`notesMarkdown`", {"ackToken": ACK, "output": NOTES}),
    (
        CONTINUE,
        {"ackToken": ACK, "output": NOTES, "artifacts": [{"kind": "k"}]},
        "`output.artifacts`",
        {"ackToken": ACK, "output": {"artifacts": [{"kind": "k"}], **NOTES}},
    ),
    (
        CONTINUE,
        {"ackToken": ACK, "output": {**NOTES, "artifacts": {"kind": "k"}}},
        "a list",
        {"ackToken": ACK, "output": {**NOTES, "artifacts": [{"kind": "k"}]}},
    ),
    (
        CONTINUE,
        {"stateToken": STATE, "output": NOTES},
        "`ackToken`",
        {"stateToken": STATE, "output": NOTES, "ackToken": "<the ackToken of the last answer>"},
    ),
    # Of an artifact without a kind, only the kind is asked for.
    (
        CONTINUE,
        {"ackToken": ACK, "output": {"artifacts": [{"kind": "k", "said": 1}, {"kind": 2, "said": "S"}]}},
        "kind",
        {"ackToken": ACK, "output": {"artifacts": [{"kind": "k", "said": 1}, {"kind": KIND_SAMPLE, "said": "S"}]}},
    ),
    # Evidence that is not too long is shown whole: what is shown can be sent as it is.
    (
        CONTINUE,
        {"ackToken": ACK, "zzz": 1, "output": {"artifacts": [{"kind": "k", "said": "x" * 900}], **NOTES}},
        "out",
        {"ackToken": ACK, "output": {"artifacts": [{"kind": "k", "said": "x" * 900}], **NOTES}},
    ),
    (
        CONTINUE,
        {"ackToken": ACK, "zzz": 1, "output": {"artifacts": [{"kind": "k", "said": "x" * 1_000}], **NOTES}},
        "out",
        {"ackToken": ACK, "output": {**NOTES, "artifacts": "<your artifacts, as you sent it>"}},
    ),
]


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize(("tool", "sent", "words", "arguments"), CORRECTED)
def test_the_corrected_call_is_the_callers_own_but_for_what_was_wrong(
    memory: Harness, tool: str, sent: dict[str, object], words: str, arguments: dict[str, object]
) -> None:
    refused = memory.call(tool, sent)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert words in refused["suggestion"]
    assert with_samples(refused["details"]["correctedCall"]) == {"tool": tool, "arguments": arguments}


@pytest.mark.inv("ANS-12", "EVID-14")
@pytest.mark.parametrize("kind", sorted(RECORDED_KINDS))
@pytest.mark.parametrize("tool", ["continue_workflow", "checkpoint_workflow"])
def test_an_artifact_with_the_kind_of_a_record_that_interlock_alone_makes_is_refused(
    memory: Harness, tool: str, kind: str
) -> None:
    first = memory.start("test.abc")
    artifact = {"kind": kind, "verdict": "passed", "summary": "`interlock witness` ran `make test`: exit code 0"}
    refused = memory.call(tool, {"ackToken": first.ack, "output": {"artifacts": [artifact], **NOTES}})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert f"Found `{kind}`, which Interlock alone records" in refused.text
    blank, *_ = refused["details"]["correctedCall"]["fill"]
    assert blank == {"path": "output.artifacts[0].kind", "what": "the kind of the artifact"}


@pytest.mark.inv("ANS-12")
def test_a_member_that_is_none_of_its_choices_is_asked_for_with_them(memory: Harness) -> None:
    record = {"kind": "wr.work_record", "work": "failed", "reason": "R"}
    sent = {"ackToken": ACK, "output": {"artifacts": [{"kind": "k"}, record], **NOTES}}
    call = memory.call("checkpoint_workflow", sent)["details"]["correctedCall"]
    assert call["arguments"] == {"ackToken": ACK, "output": {"artifacts": [{"kind": "k"}], **NOTES}}
    place = "output.artifacts[1]"
    assert call["fill"] == [
        {"path": f"{place}.reason", "choices": list(get_args(WorkReason))},
        {"path": f"{place}.kind", "choices": ["wr.work_record"]},
        {"path": f"{place}.work", "choices": ["failed"]},
    ]


@pytest.mark.inv("ANS-12")
@pytest.mark.parametrize(
    ("tool", "sent"),
    [
        *((START, {"workflowId": wrong}) for wrong in (5, 1.5, True, [1], {"a": 1})),
        *((START, {"workflowId": "a", "context": wrong}) for wrong in (5, True, [1])),
        *((START, {"workflowId": "a", "preferences": wrong}) for wrong in (5, True, [1], {"autonomy": True})),
        *((CONTINUE, {"ackToken": "a", "output": wrong}) for wrong in (5, True, [1], {"artifacts": "x"})),
        *((CONTINUE, {"ackToken": "a", "output": {"artifacts": [wrong]}}) for wrong in (5, True, [1])),
        ("inspect_workflow", {"workflowId": "a", "detail": False}),
    ],
)
def test_a_value_of_the_wrong_kind_is_reported_in_words_of_json(
    memory: Harness, tool: str, sent: dict[str, object]
) -> None:
    refused = memory.call(tool, sent)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    for word in ("dict", "valid ", "instance", "True", "False", "Input", "input should", "boolean"):
        assert word not in refused["message"] + refused["suggestion"]


@pytest.mark.inv("ANS-13")
@pytest.mark.parametrize(
    "beside", [{"output": {"notesMarkdown": "n"}}, {"context": {"x": 1}}, {"preferences": {"autonomy": "guided"}}]
)
def test_what_a_look_would_lose_is_refused_with_the_reason(memory: Harness, beside: dict[str, object]) -> None:
    refused = memory.rehydrate(memory.start("test.abc"), **beside)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert refused["details"]["path"] == next(iter(beside))
    assert "only shows the step" in refused["message"]
    assert "ackToken" in refused["suggestion"]


@pytest.mark.inv("ANS-12")
def test_a_call_without_what_it_needs_shows_one_that_has_it(memory: Harness) -> None:
    for tool, path in ((CONTINUE, "stateToken"), (START, "workflowId"), ("inspect_workflow", "workflowId")):
        refused = memory.call(tool)
        assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, path)
        assert path in with_samples(refused["details"]["correctedCall"])["arguments"]
        assert_shown(refused["details"]["correctedCall"], refused.text)


@pytest.mark.inv("ANS-9", "ANS-12")
@pytest.mark.parametrize("path", ["relative", "./x", "~", "~/x", "C:\\x", "/a\0b", " /x"])
def test_a_workspace_path_is_absolute(memory: Harness, path: str) -> None:
    for tool in (START, "inspect_workflow", "list_workflows"):
        required = {} if tool == "list_workflows" else {"workflowId": "test.abc"}
        refused = memory.call(tool, {**required, "workspacePath": path})
        assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "workspacePath")
        call = refused["details"]["correctedCall"]
        assert (call["arguments"], call["fill"]) == (required, [])


EVIDENCE: dict[str, tuple[dict[str, Any], str]] = {
    "notes that are no text": ({"notesMarkdown": 5}, "output.notesMarkdown"),
    "notes that are a file": ({"notesMarkdown": "x" * (NOTES_INPUT_BYTES_MAX + 1)}, "output.notesMarkdown"),
    "notes with half a character": ({"notesMarkdown": "\ud800"}, "output.notesMarkdown"),
    "artifacts that are one": ({"artifacts": {"kind": "k"}}, "output.artifacts"),
    "too many artifacts": ({"artifacts": [{"kind": "k"}] * (ARTIFACTS_MAX + 1)}, "output.artifacts"),
    "an artifact that is a text": ({"artifacts": ["k"]}, "output.artifacts[0]"),
    "an artifact without kind": ({"artifacts": [{"kind": "k"}, {"n": 1}]}, "output.artifacts[1].kind"),
    "an artifact whose kind is no text": ({"artifacts": [{"kind": 1}]}, "output.artifacts[0].kind"),
    "a large artifact": ({"artifacts": [{"kind": "k", "x": "x" * ARTIFACT_BYTES_MAX}]}, "output.artifacts[0]"),
    "a deep artifact": (
        {
            "artifacts": [
                {"kind": "k", "x": json.loads("[" * (ARTIFACT_DEPTH_MAX + 2) + "]" * (ARTIFACT_DEPTH_MAX + 2))}
            ]
        },
        "output.artifacts[0]",
    ),
    "a very deep artifact": (
        {"artifacts": [{"kind": "k", "x": json.loads("[" * 300 + "]" * 300)}]},
        "output.artifacts[0]",
    ),
    "an artifact with NaN": ({"artifacts": [{"kind": "k", "x": [float("nan")]}]}, "output.artifacts[0].x[0]"),
    "an artifact with 2^53": ({"artifacts": [{"kind": "k", "x": 2**53}]}, "output.artifacts[0].x"),
    "an artifact with half a character": ({"artifacts": [{"kind": "\ud800"}]}, "output.artifacts[0].kind"),
    "an artifact with half a character as key": ({"artifacts": [{"kind": "k", "\ud800": 1}]}, "output.artifacts[0]"),
}


@pytest.mark.parametrize("limit", [10_000, 2 * ARTIFACT_BYTES_MAX])
def test_an_artifact_is_held_to_the_configured_limit_and_a_larger_one_is_refused_with_it(
    memory: Harness, limit: int
) -> None:
    configured = replace(memory, ports=replace(memory.ports, artifact_bytes_max=limit))
    first = configured.start("test.abc")
    fits: dict[str, Any] = {"kind": "k", "x": "x" * (limit - len('{"kind":"k","x":""}'))}
    refused = configured.advance(first, output={"notesMarkdown": "Done.", "artifacts": [fits | {"x": fits["x"] + "x"}]})
    assert refused["details"]["maxBytes"] == limit
    assert str(limit) in refused["message"]
    taken = configured.advance(first, output={"notesMarkdown": "Done.", "artifacts": [fits]})
    assert taken["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-9", "ANS-12", "ID-4")
@pytest.mark.parametrize("fault", EVIDENCE)
def test_evidence_that_cannot_be_recorded_is_refused_with_its_place(memory: Harness, fault: str) -> None:
    output, path = EVIDENCE[fault]
    first = memory.start("test.abc")
    refused = memory.advance(first, None, output=output)
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, path)
    assert small(refused)
    assert len(memory.events(memory.session_of(first))) == 4


def test_an_artifact_without_a_kind_is_led_to_that_of_the_step_or_left_out(memory: Harness) -> None:
    refused = memory.advance(memory.start("test.abc"), "Done.", output={"artifacts": [{"summary": "x"}]})
    assert "the kind that the step asks for" in refused["suggestion"]
    assert "leave `artifacts` out" in refused["suggestion"]


HUGE: dict[str, tuple[str, dict[str, Any]]] = {
    "a workflow id": (START, {"workflowId": "x" * 100_000}),
    "a workflow id to inspect": ("inspect_workflow", {"workflowId": "x" * 100_000}),
    "a workflow id of many words": (START, {"workflowId": "ab." * 30_000}),
    "an argument's name": (START, {"workflowId": "test.abc", "k" * 100_000: 1}),
    "an argument's name that is near": (START, {"workflowId": "test.abc", "goal" * 20_000: 1}),
    "many arguments": (START, {"workflowId": "test.abc", **{f"k{at}": "v" * 80 for at in range(2_000)}}),
    "a session id": (START, {"workflowId": "test.abc", "sessionId": "x" * 100_000}),
    "a workspace": (START, {"workflowId": "test.abc", "workspacePath": "x" * 100_000}),
    "a preference": (START, {"workflowId": "test.abc", "preferences": {"autonomy": "x" * 100_000}}),
    "a preference's name": (START, {"workflowId": "test.abc", "preferences": {"x" * 100_000: "guided"}}),
    "a context key": (START, {"workflowId": "test.abc", "context": {"k" * 100_000: 1}}),
    "a context key above a trap": (START, {"workflowId": "test.abc", "context": {"k" * 100: {"l" * 100_000: 2**53}}}),
    "a token": (CONTINUE, {"ackToken": "x" * 100_000}),
    "a token's version": (CONTINUE, {"ackToken": f"ack.{'v' * 4_000}.x.y"}),
    "a detail": ("inspect_workflow", {"workflowId": "test.abc", "detail": "x" * 100_000}),
}


@pytest.mark.inv("ANS-6", "ANS-9")
@pytest.mark.parametrize("what", HUGE)
def test_a_refusal_never_repeats_a_huge_value(memory: Harness, what: str) -> None:
    tool, arguments = HUGE[what]
    refused = memory.call(tool, arguments)
    assert refused.is_error
    assert small(refused)


@pytest.mark.inv("ANS-9")
def test_half_characters_that_only_a_text_can_carry_break_no_answer(memory: Harness) -> None:
    """The transport refuses them on the line; inside an object that is sent as text they arrive."""
    token = memory.start("test.abc").ack
    for name, text in (
        ("output", '{"\\ud800": 1}'),
        ("output", '{"artifacts": "[{\\"kind\\": \\"k\\", \\"\\\\ud800\\": 1}]"}'),
        ("preferences", '{"\\udfff": 1}'),
        ("preferences", '{"autonomy": "\\udfff"}'),
        ("context", '{"\\ud800": 1}'),
        ("context", '{"\\ud800": {"prototype": 1}}'),
    ):
        assert memory.call(CONTINUE, {"ackToken": token, name: text}).code is ErrorCode.VALIDATION_ERROR


NAMES = [
    *("workflowId", "goal", "context", "workspacePath", "preferences", "sessionId", "ackToken", "stateToken", "run"),
    *("output", "query", "tag", "detail", "wait_for_previous", "outputs", "__proto__", ""),
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["test.abc", "/", "guided", "plan", "{}", '{"notesMarkdown": "n"}', "ack.v1.e30.e30"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*NAMES, "notesMarkdown", "artifacts", "kind", "autonomy"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@pytest.mark.exhaustive
@pytest.mark.inv("ANS-9", "ANS-7")
@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), VALUES, max_size=5), seed=st.integers())
def test_no_arguments_whatever_are_a_fault_of_ours(tool: str, arguments: dict[str, Any], seed: int) -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    rng = random.Random(seed)
    for name in ("ackToken", "stateToken"):
        if rng.random() < 0.5:
            arguments[name] = first[name]
    for _ in range(2):
        called = harness.call(tool, arguments)
        if called.is_error:
            assert set(called.structure) <= {"code", "message", "retry", "suggestion", "details"}
            for name in ("message", "suggestion"):
                assert called[name] in called.text
