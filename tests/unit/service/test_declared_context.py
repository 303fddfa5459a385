"""A report's context is held to its declarations, as that of a start is: type, choices, items of lists."""

from typing import Any

import pytest
from tests.support.flow import Document, declared, document, step
from tests.support.modes import NEVER_STOPS

from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Harness, ToolResult, filled_in

SPEED = declared("speed", choices=["fast", "slow"])
SHOWN = step("b", prompt="speed={{speed}} n={{n}}")
FINDINGS: Document = {
    "key": "findings",
    "description": "What you found.",
    "type": "list",
    "items": {
        "type": "object",
        "fields": [
            {"key": "file", "type": "string"},
            {"key": "weight", "type": "string", "choices": ["major", "minor"]},
            {"key": "lines", "type": "number", "required": False},
        ],
    },
}
SHAPE = "list of {file, weight: major | minor, lines?: number}"


def flow(*steps: Document, inputs: list[Document] | None = None) -> Harness:
    return Harness.in_memory(document(*steps, inputs=[SPEED, declared("n", "number")] if inputs is None else inputs))


def blocker(answer: ToolResult) -> dict[str, Any]:
    assert answer["kind"] == "blocked"
    (found,) = answer["blockers"]
    assert found["code"] == "INVALID_REQUIRED_OUTPUT"
    return dict(found)


@pytest.mark.inv("CTX-12")
@pytest.mark.parametrize(
    ("sent", "found", "wanted"),
    [
        ({"speed": "quick"}, '"quick"', 'one of ["fast", "slow"]'),
        ({"speed": 1}, "a number", "a string"),
        ({"n": "1"}, "a string", "a number"),
        ({"n": True}, "true or false", "a number"),
        ({"n": "<The n.>"}, "the sample text", "a number"),
    ],
)
def test_a_report_and_a_start_refuse_the_same_values(sent: dict[str, Json], found: str, wanted: str) -> None:
    (key,) = sent
    harness = flow(step("a"), SHOWN)
    at_start = harness.start("test.flow", context=sent)
    assert at_start.code is ErrorCode.VALIDATION_ERROR
    assert f"Found {found}" in at_start["message"]
    refused = harness.advance(harness.start("test.flow"), context=sent)
    result = blocker(refused)
    assert result["pointer"] == {"kind": "context_key", "key": key}
    assert result["details"] == {"found": found, "wanted": wanted}
    assert refused["nextCall"]["fill"][-1]["path"] == f"context.{key}"
    # The notes are kept and the value is not: without another value, the key is not set.
    assert harness.call("continue_workflow", {"ackToken": refused.ack})["pending"]["prompt"] == (
        "speed=[context key not set: speed] n=[context key not set: n]"
    )


@pytest.mark.inv("CTX-12")
def test_a_value_that_does_not_fit_leaves_the_value_from_before() -> None:
    harness = flow(step("a"), SHOWN)
    refused = harness.advance(harness.start("test.flow", context={"speed": "slow"}), context={"speed": "no", "n": 1})
    assert harness.advance(refused)["pending"]["prompt"] == "speed=slow n=1"


@pytest.mark.inv("CTX-12")
def test_a_choice_is_recorded_as_it_is_declared_and_a_free_text_as_it_was_sent() -> None:
    harness = flow(step("a"), step("b", prompt="{{speed}} {{free}}"), inputs=[SPEED, declared("free")])
    first = harness.start("test.flow", context={"speed": "SLOW", "free": "Slow"})
    second = harness.advance(first)
    assert second["pending"]["prompt"] == "slow Slow"
    third = harness.advance(harness.start("test.flow"), context={"speed": " Fast ", "free": "FAST"})
    assert third["pending"]["prompt"] == "fast FAST"


@pytest.mark.inv("CTX-12")
def test_a_run_that_never_stops_goes_on_without_the_value_and_says_so() -> None:
    harness = flow(step("a"), SHOWN)
    answer = harness.advance(harness.start("test.flow", preferences=NEVER_STOPS), context={"speed": "quick"})
    assert answer["pending"]["prompt"] == "speed=[context key not set: speed] n=[context key not set: n]"
    assert answer.warnings == ["GAP_RECORDED"]


@pytest.mark.inv("CTX-12")
def test_a_step_declares_what_it_produces() -> None:
    key = {"key": "kind", "description": "What it is.", "type": "string", "choices": ["bug", "wish"]}
    harness = flow(step("a", produces=[key]), step("b", prompt="{{kind}}"), inputs=[])
    first = harness.start("test.flow")
    assert first["nextCall"]["fill"][-1] == {"path": "context.kind", "what": "What it is.", "choices": ["bug", "wish"]}
    refused = harness.advance(first, context={"kind": "both"})
    assert blocker(refused)["details"] == {"found": '"both"', "wanted": 'one of ["bug", "wish"]'}
    assert refused["nextCall"]["fill"] == [{"path": "context.kind", "what": "What it is.", "choices": ["bug", "wish"]}]
    assert harness.advance(refused, None, context={"kind": "Bug"})["pending"]["prompt"] == "bug"


@pytest.mark.inv("CTX-13")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([{"file": "a", "weight": "huge"}], '"huge" in `[0].weight`'),
        ([{"file": "a", "weight": "major"}, {"file": "b"}], "without `weight` in `[1]`"),
        ([{"file": 1, "weight": "major"}], "a number in `[0].file`"),
        ([{"file": "a", "weight": "major", "lines": "2"}], "a string in `[0].lines`"),
        ([{"file": "a", "weight": "major", "line": 2}], 'with the unknown member "line" in `[0]`'),
        (["a"], "a string in `[0]`"),
    ],
)
def test_an_item_of_a_list_is_held_to_its_declaration_at_start_and_report(value: list[Json], found: str) -> None:
    of_input = flow(step("a"), inputs=[FINDINGS])
    assert f"Found {found}" in of_input.start("test.flow", context={"findings": value})["message"]
    for harness in (of_input, flow(step("a", produces=[FINDINGS]), inputs=[])):
        result = blocker(harness.advance(harness.start("test.flow"), context={"findings": value}))
        assert result["details"] == {"found": found, "wanted": f"a {SHAPE}"}


@pytest.mark.inv("CTX-13")
def test_a_list_holds_at_least_as_many_items_as_its_declaration_says() -> None:
    files = {"key": "files", "description": "Files.", "type": "list", "items": {"type": "string", "minItems": 2}}
    harness = flow(step("a", produces=[files]), step("b"), inputs=[])
    first = harness.start("test.flow")
    assert first["nextCall"]["fill"][-1]["shape"] == "list of text (at least 2)"
    refused = harness.advance(first, context={"files": ["a.py"]})
    assert blocker(refused)["details"] == {"found": "a list of 1", "wanted": "a list of text (at least 2)"}
    assert harness.advance(refused, None, context={"files": ["a.py", "b.py"]})["pending"]["stepId"] == "b"


@pytest.mark.inv("CTX-13")
def test_the_call_shows_the_shape_of_the_items_and_takes_items_of_that_shape() -> None:
    harness = flow(step("a", produces=[FINDINGS]), step("b", prompt="{{findings}}"), inputs=[])
    first = harness.start("test.flow")
    assert first["nextCall"]["fill"][-1] == {"path": "context.findings", "what": "What you found.", "shape": SHAPE}
    arguments = filled_in(first, "Did it.")
    arguments["context"]["findings"] = [{"file": "a", "weight": "MAJOR", "lines": None}]
    assert harness.call("continue_workflow", arguments)["pending"]["prompt"] == (
        '[{"file":"a","lines":null,"weight":"major"}]'
    )


@pytest.mark.inv("CTX-13")
@pytest.mark.parametrize("value", ["none", {"file": "a"}, [3], [{"file": "a", "weight": "heavy"}]])
def test_a_refused_list_is_asked_for_again_with_the_shape_of_its_items(value: Json) -> None:
    harness = flow(step("a", produces=[FINDINGS]), step("b"), inputs=[])
    refused = harness.advance(harness.start("test.flow"), context={"findings": value})
    assert refused["nextCall"]["fill"] == [{"path": "context.findings", "what": "What you found.", "shape": SHAPE}]


@pytest.mark.inv("CTX-13")
def test_plain_items_have_a_type_and_choices() -> None:
    names = declared("names", "list", items={"type": "string", "choices": ["x", "y"]})
    harness = flow(step("a", produces=["names"]), step("b", prompt="{{names}}"), inputs=[names])
    first = harness.start("test.flow")
    assert first["nextCall"]["fill"][-1]["shape"] == "list of x | y"
    refused = harness.advance(first, context={"names": ["x", "z"]})
    assert blocker(refused)["details"] == {"found": '"z" in `[1]`', "wanted": "a list of x | y"}
    assert harness.advance(refused, None, context={"names": ["Y"]})["pending"]["prompt"] == '["y"]'
