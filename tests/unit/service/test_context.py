"""Context: recorded as it was sent, seen on its own branch only, and never a document or a trap."""

import json
from typing import Any

import pytest

from interlock.kernel.budgets import CONTEXT_BYTES_MAX, CONTEXT_DEPTH_MAX, CONTEXT_KEY_BYTES_MAX
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.errors import ErrorCode
from interlock.record.events import ContextSetEvent
from interlock.testing.harness import Harness, ToolResult, linear_workflow


def shown(name: str) -> dict[str, str]:
    return {"id": name, "title": f"Step {name}", "prompt": "x={{x}} y={{y}} deep={{o.k}} goal={{goal}}"}


@pytest.fixture
def memory() -> Harness:
    return Harness.in_memory(linear_workflow("test.show", *(shown(name) for name in "abcd")))


def prompt(answer: ToolResult) -> str:
    return str(answer["pending"]["prompt"])


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.inv("CTX-2", "PLAN-6")
def test_what_was_sent_once_holds_for_all_later_steps(memory: Harness) -> None:
    first = memory.start("test.show", goal="G", context={"x": 1})
    assert prompt(first) == "x=1 y=[context key not set: y] deep=[context key not set: o.k] goal=G"
    second = memory.advance(first, context={"y": "two"})
    assert prompt(second) == "x=1 y=two deep=[context key not set: o.k] goal=G"
    third = memory.advance(second)
    assert prompt(third) == prompt(second)
    assert prompt(memory.rehydrate(third)) == prompt(third)


@pytest.mark.inv("CTX-1")
def test_the_delta_is_recorded_and_not_the_whole(memory: Harness) -> None:
    first = memory.start("test.show", context={"x": 1, "y": {"a": 1}})
    memory.advance(first, context={"x": None, "z": [1]})
    found = [event for event in memory.events(memory.session_of(first)) if isinstance(event, ContextSetEvent)]
    assert [event.data.context for event in found] == [{"x": 1, "y": {"a": 1}}, {"x": None, "z": [1]}]
    assert [event.data.source for event in found] == ["initial", "agent_delta"]


@pytest.mark.inv("CTX-3")
def test_a_delta_merges_at_the_top_and_null_removes(memory: Harness) -> None:
    first = memory.start("test.show", context={"x": 1, "o": {"k": 1, "l": 2}})
    second = memory.advance(first, context={"x": None, "o": {"l": 3}, "y": [1, {"a": None}]})
    assert prompt(second) == (
        'x=[context key not set: x] y=[1,{"a":null}] deep=[context key not set: o.k] goal=[context key not set: goal]'
    )
    third = memory.advance(second, context={"x": 5, "o": {"k": "back"}, "y": None})
    assert prompt(third) == "x=5 y=[context key not set: y] deep=back goal=[context key not set: goal]"


@pytest.mark.inv("CTX-2", "ADV-10")
def test_a_value_of_one_branch_is_never_seen_from_another(memory: Harness) -> None:
    first = memory.start("test.show", context={"x": "root"})
    second = memory.advance(first, context={"x": "main", "y": "main"})
    third = memory.advance(second, context={"o": {"k": "main"}})
    forked = memory.advance(memory.rehydrate(first)["fork"]["ackToken"], context={"x": "fork"})
    assert prompt(forked) == (
        "x=fork y=[context key not set: y] deep=[context key not set: o.k] goal=[context key not set: goal]"
    )
    assert prompt(memory.advance(forked)) == prompt(forked)
    assert prompt(memory.rehydrate(third)) == "x=main y=main deep=main goal=[context key not set: goal]"
    assert prompt(memory.advance(third)) == prompt(third)
    assert prompt(memory.rehydrate(first)) == prompt(first)


@pytest.mark.inv("CTX-2")
def test_a_node_renders_the_same_before_and_after_its_own_ack(memory: Harness) -> None:
    first = memory.start("test.show", context={"x": "before"})
    memory.advance(first, context={"x": "after"})
    assert prompt(memory.rehydrate(first)) == prompt(first)


@pytest.mark.inv("CTX-1", "CTX-2", "BLK-2")
def test_context_that_came_with_a_refused_attempt_need_not_be_sent_again(memory: Harness) -> None:
    first = memory.start("test.show")
    blocked = memory.advance(first, None, context={"x": "kept"})
    assert prompt(blocked).startswith("x=kept")
    assert prompt(memory.advance(blocked)).startswith("x=kept")
    assert prompt(memory.rehydrate(blocked)).startswith("x=kept")
    assert prompt(memory.rehydrate(first)).startswith("x=[context key not set")


@pytest.mark.inv("CTX-6")
@pytest.mark.parametrize("goal", ["New", None, 5, ["Old"]])
def test_no_report_changes_the_goal(memory: Harness, goal: object) -> None:
    first = memory.start("test.show", goal="Old")
    events = memory.events(memory.session_of(first))
    refused = memory.advance(first, context={"goal": goal, "x": 1})
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "context.goal")
    assert memory.events(memory.session_of(first)) == events
    second = memory.advance(first, context={"goal": "Old", "x": 1})
    assert memory.rehydrate(second)["run"]["goal"] == "Old"
    assert "goal: `Old`" in memory.rehydrate(second).text.partition("\n")[0]
    assert memory.advance(memory.rehydrate(first)["fork"]["ackToken"], context={"goal": goal}).is_error


@pytest.mark.inv("CTX-6")
def test_the_corrected_call_of_a_report_with_another_goal_keeps_the_other_keys(memory: Harness) -> None:
    first = memory.start("test.show", goal="Old")
    refused = memory.advance(first, context={"goal": "New", "x": 1})
    assert refused["message"] == "`context.goal` cannot be changed: it is the goal of the run."
    assert refused["details"]["correctedCall"]["arguments"]["context"] == {"x": 1}


@pytest.mark.inv("CTX-6")
def test_a_run_without_a_goal_is_given_one_by_a_report_and_only_as_text(memory: Harness) -> None:
    first = memory.start("test.show")
    assert memory.advance(first, context={"goal": ["x"]}).code == ErrorCode.VALIDATION_ERROR
    second = memory.advance(first, context={"goal": "Now"})
    assert memory.rehydrate(second)["run"]["goal"] == "Now"
    assert memory.start("test.show", context={"goal": 5}).code == ErrorCode.VALIDATION_ERROR


@pytest.mark.inv("CTX-5")
def test_no_answer_repeats_the_context(memory: Harness) -> None:
    first = memory.start("test.show", context={"secret": "s3cr3t-value", "x": "shown"})
    answers = [first, memory.advance(first, context={"other": "s3cr3t-value"}), memory.rehydrate(first)]
    for answer in answers:
        assert "s3cr3t-value" not in answer.text
        assert "s3cr3t-value" not in json.dumps(dict(answer.structure))


@pytest.mark.inv("CTX-9")
def test_a_refusal_repeats_no_value_that_came_with_the_report_or_was_stored_before(memory: Harness) -> None:
    first = memory.start("test.show", context={"secret": "s3cr3t-value", "x": "shown"})
    refused = memory.advance(first, None, context={"token": "ghp_0123456789abcdefghijklmnopqrstuvwxyz"})
    assert refused["kind"] == "blocked"
    for answer in (refused, memory.rehydrate(refused)):
        assert "context" not in answer["nextCall"]["arguments"]
        for value in ("s3cr3t-value", "ghp_0123456789"):
            assert value not in answer.text + json.dumps(dict(answer.structure))


def exactly(measured: int) -> dict[str, str]:
    context = {"é": "", "x": ""}
    room = measured - len(canonical_bytes(context))
    return {"é": "é" * 100, "x": "x" * (room - 200)}


@pytest.mark.inv("CTX-4")
def test_context_is_measured_in_canonical_bytes_and_refused_above_the_limit(memory: Harness) -> None:
    assert not memory.start("test.show", context=exactly(CONTEXT_BYTES_MAX)).is_error
    refused = memory.start("test.show", context=exactly(CONTEXT_BYTES_MAX + 1))
    assert refused.code is ErrorCode.VALIDATION_ERROR
    details = refused["details"]
    assert (details["measuredBytes"], details["maxBytes"]) == (CONTEXT_BYTES_MAX + 1, CONTEXT_BYTES_MAX)
    assert "RFC 8785" in details["method"]
    for words in (str(CONTEXT_BYTES_MAX + 1), str(CONTEXT_BYTES_MAX), "RFC 8785", "references"):
        assert words in refused.text


@pytest.mark.inv("CTX-4")
def test_the_limit_is_that_of_the_merged_context_and_a_removed_key_makes_room(memory: Harness) -> None:
    half = "x" * (CONTEXT_BYTES_MAX * 6 // 10)
    first = memory.start("test.show", context={"x": half})
    refused = memory.advance(first, context={"y": half})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    assert memory.rehydrate(first)["pending"]["stepId"] == "a"
    assert not memory.advance(first, context={"y": half, "x": None}).is_error


TRAPS: dict[str, tuple[dict[str, Any], str]] = {
    "a reserved key": ({"__proto__": 1}, "context.__proto__"),
    "a reserved key below": ({"a": {"b": [{"constructor": 1}]}}, "context.a"),
    "another reserved key below": ({"a": {"prototype": {}}}, "context.a"),
    "NaN": ({"a": float("nan")}, "context.a"),
    "an infinity below": ({"a": {"b": [1, float("inf")]}}, "context.a.b[1]"),
    "an integer beyond 2^53": ({"a": {"b": 2**53}}, "context.a.b"),
    "a negative integer beyond 2^53": ({"a": -(2**53)}, "context.a"),
    "a whole float beyond 2^53": ({"a": {"b": 1e17}}, "context.a.b"),
    "half a character": ({"a": ["\ud800"]}, "context.a[0]"),
    "half a character as key": ({"\ud800": 1}, "context"),
    "half a character as key below": ({"a": {"\udfff": 1}}, "context.a"),
    "half a character above what is too deep": ({"\ud800": nested(CONTEXT_DEPTH_MAX + 5)}, "context"),
    "half a character above a reserved key": ({"\ud800": {"__proto__": 1}}, "context"),
    "too deep": ({"a": nested(CONTEXT_DEPTH_MAX + 5)}, "context.a"),
    "far too deep": ({"a": nested(300)}, "context.a"),
    "an empty key": ({"": 1}, "context"),
    "a long key": ({"k" * (CONTEXT_KEY_BYTES_MAX + 1): 1}, "context"),
    "a long key of few characters": ({"é" * (CONTEXT_KEY_BYTES_MAX // 2 + 1): 1}, "context"),
}


@pytest.mark.inv("CTX-4", "ANS-9")
@pytest.mark.parametrize("trap", TRAPS)
def test_context_that_is_a_trap_is_refused_with_its_place_and_nothing_is_recorded(memory: Harness, trap: str) -> None:
    context, path = TRAPS[trap]
    first = memory.start("test.show")
    for refused in (memory.start("test.show", context=context), memory.advance(first, context=context)):
        assert refused.code is ErrorCode.VALIDATION_ERROR
        assert refused["details"]["path"] == path
        assert len(refused.text) < 1_000
    assert len(memory.events(memory.session_of(first))) == 4


@pytest.mark.inv("CTX-4", "ANS-9", "ANS-11")
@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_in_a_context_that_is_sent_as_text_is_refused_as_well(memory: Harness, trap: str) -> None:
    """What no line of JSON can carry, a text inside it can."""
    refused = memory.start("test.show", context=json.dumps(TRAPS[trap][0]))
    assert refused.code is ErrorCode.VALIDATION_ERROR


@pytest.mark.inv("CTX-4")
@pytest.mark.parametrize(
    "context",
    [
        {"a": 2**53 - 1, "b": -(2**53) + 1, "c": 1e300, "d": 2.0**70},
        {"__proto": 1, "proto__": {"constructors": 1}},
        {"a": nested(CONTEXT_DEPTH_MAX - 1)},
        {"k" * CONTEXT_KEY_BYTES_MAX: 1},
        {"camelCase.dotted key/ü": "\N{GRINNING FACE}\x00\u2028"},
        {},
    ],
)
def test_context_at_the_limits_is_recorded(memory: Harness, context: dict[str, Any]) -> None:
    first = memory.start("test.show", context=context)
    assert not first.is_error
    assert not memory.advance(first, context=context).is_error


@pytest.mark.inv("PLAN-6", "ANS-2")
def test_a_value_rendered_into_a_title_cannot_break_the_first_line(memory: Harness) -> None:
    """Titles stand on one line and within their budget; what a context brings into one must not undo that."""
    memory.workflows.put(linear_workflow("test.title", {"id": "a", "title": "Fix {{x}}", "prompt": "p"}))
    first = memory.start("test.title", context={"x": "one\ntwo " + "long " * 10_000})
    line = first.text.partition("\n")[0]
    assert "Fix one two" in line
    assert len(line) < 2_000
