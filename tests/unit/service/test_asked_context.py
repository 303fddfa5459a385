"""A refused context is asked for again key by key: no other key is dropped, and no answer leads round in a circle."""

import json
from typing import Any

import pytest
from tests.support.calls import assert_shown

from interlock.kernel.blanks import fill_in
from interlock.kernel.budgets import CORRECTED_ARGUMENTS_MAX, GOAL_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Harness, linear_workflow

pytestmark = pytest.mark.inv("ANS-24", "ANS-29")

START = "start_workflow"
LONG = "x" * (GOAL_BYTES_MAX + 1)
GOOD: dict[str, Json] = {"urgent": True, "level": "low", "goal": "Mend it.", "extra": "A-1"}


@pytest.fixture
def memory() -> Harness:
    inputs = [
        {"key": "urgent", "type": "boolean", "required": True, "description": "Whether it is urgent."},
        {"key": "level", "type": "string", "required": True, "choices": ["low", "high"], "description": "How much."},
    ]
    return Harness.in_memory(
        {**linear_workflow("test.abc", "a", "b"), "inputs": inputs}, linear_workflow("test.bare", "a")
    )


def refuse(memory: Harness, sent: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Start with a wrong context; return the paths that the refusal asks for, and the call with good values there."""
    refused = memory.call(START, sent)
    assert refused.code is ErrorCode.VALIDATION_ERROR
    call = refused["details"]["correctedCall"]
    assert_shown(call, refused.text)
    filled = fill_in(call["arguments"], call["fill"], lambda one: GOOD[str(one["path"]).removeprefix("context.")])
    return [one["path"] for one in call["fill"]], filled


@pytest.mark.parametrize("form", ["object", "text"])
def test_the_other_keys_of_a_context_are_asked_for_as_well(memory: Harness, form: str) -> None:
    context = {"urgent": "yes", "extra": "A-1"}
    sent = {"workflowId": "test.abc", "context": context if form == "object" else json.dumps(context)}
    paths, filled = refuse(memory, sent)
    assert sorted(paths) == ["context.extra", "context.level", "context.urgent"]
    assert filled["context"] == {"urgent": True, "level": "low", "extra": "A-1"}
    assert memory.call(START, filled)["kind"] == "ok"
    many = {f"k{number}": number for number in range(CORRECTED_ARGUMENTS_MAX)}
    refused = memory.call(START, {"workflowId": "test.abc", "context": many})
    assert [one["path"] for one in refused["details"]["correctedCall"]["fill"]] == ["context"]


def test_the_words_of_a_blank_are_no_value_of_the_context(memory: Harness) -> None:
    for said in ("your extra, as you sent it", "<your extra, as you sent it>"):
        assert memory.start("test.bare", context={"extra": said}).code is ErrorCode.VALIDATION_ERROR
    assert memory.start("test.bare", context={"extra": "<p>x</p>"})["kind"] == "ok"


@pytest.mark.parametrize(
    "sent",
    [
        {"context": {"goal": LONG}},
        {"context": {"goal": LONG, "extra": "A-1"}},
        {"goal": LONG, "context": {"goal": LONG}},
    ],
)
def test_a_goal_that_is_too_long_is_asked_for_once(memory: Harness, sent: dict[str, Any]) -> None:
    paths, filled = refuse(memory, {"workflowId": "test.bare", **sent})
    extra = {"context": {"extra": "A-1"}} if "extra" in sent["context"] else {}
    assert paths == ["goal", *(["context.extra"] if extra else [])]
    assert filled == {"workflowId": "test.bare", "goal": "Mend it.", **extra}
    assert memory.call(START, filled)["kind"] == "ok"


def test_keys_under_another_name_join_the_context(memory: Harness) -> None:
    sent = {"workflowId": "test.abc", "inputs": {"urgent": True, "x": 1}, "context": {"level": "low", "x": 2}}
    refused = memory.call(START, sent)
    assert refused["suggestion"].endswith(" Left out of the call below: `inputs.x`.")


def test_a_key_that_was_sent_as_an_argument_is_asked_for_in_the_context() -> None:
    step = {"id": "a", "title": "A", "prompt": "Do.", "produces": ["size"]}
    memory = Harness.in_memory(linear_workflow("test.asks", step))
    sent = {"ackToken": memory.start("test.asks").ack, "notes": "Done.", "size": 3, "odd": 4}
    for order in (sent, dict(reversed(sent.items()))):
        refused = memory.call("continue_workflow", order)
        call = refused["details"]["correctedCall"]
        assert call["arguments"] == {"ackToken": sent["ackToken"], "output": {"notesMarkdown": "Done."}}
        assert [one["path"] for one in call["fill"]] == ["context.size"]
        assert ("`size`" in refused["suggestion"], "`odd`" in refused["suggestion"]) == (False, True)
    del sent["odd"], sent["notes"]
    refused = memory.call("continue_workflow", {**sent, "output": {"notesMarkdown": "Done."}})
    assert refused["suggestion"] == "Send `size` in `context`, as in the call below."
