"""Loops of the WorkRail dialect: their kinds, their conditions, their bodies, and their faults."""

from typing import Any

import pytest

from interlock.decide.condition import Always, Compare, LoopControl
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic
from interlock.define.front import parse_workflow

STEP: dict[str, Any] = {"id": "a", "title": "A", "prompt": "Do a."}
DECIDER: dict[str, Any] = {**STEP, "id": "d", "outputContract": {"contractRef": "wr.contracts.loop_control"}}
WHEN: dict[str, Any] = {"var": "x", "equals": 1}
X_IS_1 = Compare(op="lenient_equals", var="x", value=1)
ARTIFACT = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control", "loopId": "any_loop"}
HELD = LoopControl(op="loop_control", loop_id=None, when_absent="hold")


def document(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"id": "demo", "name": "Demo", "description": "D", "version": "3.0.0", "steps": list(steps)}


def looping(body: tuple[dict[str, Any], ...] | str = (STEP,), loop_id: str = "l", **spec: Any) -> dict[str, Any]:
    held = list(body) if isinstance(body, tuple) else body
    return {"id": loop_id, "type": "loop", "title": "L", "loop": {"maxIterations": 3, **spec}, "body": held}


def steps_of(*steps: dict[str, Any]) -> tuple[doc.Step, ...]:
    found = parse_workflow(document(*steps))
    assert isinstance(found, doc.WorkflowDocument), [one.render_line() for one in found]
    return found.steps


def loop_of(*steps: dict[str, Any]) -> doc.LoopStep:
    loop = steps_of(*steps)[0]
    assert isinstance(loop, doc.LoopStep)
    return loop


def faults(*steps: dict[str, Any]) -> list[Diagnostic]:
    found = parse_workflow(document(*steps))
    assert not isinstance(found, doc.WorkflowDocument)
    return list(found)


def fault_codes(*steps: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in faults(*steps)]


def test_a_loop_says_the_same_as_in_its_file() -> None:
    written = {
        **looping(type="forEach", items="slices", itemVar="slice", indexVar="n", iterationVar="pass"),
        "runCondition": WHEN,
        "functionDefinitions": [{"name": "f", "definition": "How."}],
        "requireConfirmation": True,
        "notesOptional": True,
    }
    loop = loop_of(written)
    assert (loop.at, loop.id, loop.title, loop.max_iterations, loop.on_limit) == ("steps[0]", "l", "L", 3, "exit")
    assert loop.when == doc.Guard(condition=X_IS_1, at="steps[0].runCondition")
    assert (loop.kind, loop.items, loop.item_var, loop.index_var, loop.iteration_var) == (
        "for_each",
        "slices",
        "slice",
        "n",
        "pass",
    )
    assert (loop.count, loop.condition, loop.checked) == (None, None, "before_pass")
    assert loop.own_functions[0].name == "f"
    assert [step.at for step in loop.body] == ["steps[0].body[0]"]


def test_variables_have_the_names_that_files_rely_on() -> None:
    each = loop_of(looping(type="forEach", items="slices"))
    assert (each.iteration_var, each.index_var, each.item_var) == ("currentIteration", "currentIndex", "currentItem")
    counted = loop_of(looping(type="for", count=2))
    assert (counted.iteration_var, counted.item_var) == ("currentIteration", None)


@pytest.mark.parametrize("count", [0, 2, "maxRetries"])
def test_a_for_loop_counts_to_a_number_or_to_what_a_key_holds(count: int | str) -> None:
    loop = loop_of(looping(type="for", count=count))
    assert (loop.kind, loop.count, loop.items, loop.checked) == ("for", count, None, "before_pass")


@pytest.mark.parametrize("kind", ["while", "until"])
@pytest.mark.parametrize(
    ("body", "spec", "at"),
    [
        ((STEP,), {"condition": WHEN}, "steps[0].loop.condition"),
        (
            (STEP, DECIDER),
            {"conditionSource": {"kind": "context_variable", "condition": WHEN}},
            "steps[0].loop.conditionSource.condition",
        ),
    ],
)
def test_a_loop_over_the_context_keeps_its_kind_and_is_checked_before_every_step(
    kind: str, body: tuple[dict[str, Any], ...], spec: dict[str, Any], at: str
) -> None:
    loop = loop_of(looping(body, type=kind, **spec))
    assert (loop.kind, loop.checked) == (kind, "before_step")
    assert loop.condition == doc.Guard(condition=X_IS_1, at=at)


@pytest.mark.parametrize("kind", ["while", "until"])
def test_a_step_that_decides_goes_before_a_condition_without_a_source(kind: str) -> None:
    loop = loop_of(looping((STEP, DECIDER), type=kind, condition=WHEN))
    assert (loop.kind, loop.condition and loop.condition.condition) == ("while", HELD)


@pytest.mark.parametrize("kind", ["while", "until"])
def test_a_loop_on_the_artifact_continues_while_it_says_so_and_without_one(kind: str) -> None:
    loop = loop_of(looping(type=kind, conditionSource=ARTIFACT, condition=WHEN))
    assert (loop.kind, loop.checked) == ("while", "before_step")
    assert loop.condition == doc.Guard(condition=HELD, at="steps[0].loop.conditionSource")


def test_a_step_of_the_body_may_decide_a_loop_without_its_own_condition() -> None:
    inline = loop_of(looping((STEP, DECIDER), type="until"))
    assert inline.kind == "while"
    assert inline.condition == doc.Guard(condition=HELD, at="steps[0].body[1].outputContract")
    named = loop_of(looping("d", type="while"), DECIDER)
    assert named.condition == doc.Guard(condition=HELD, at="steps[1].outputContract")


def test_an_empty_condition_always_holds() -> None:
    loop = loop_of(looping(type="while", condition={}))
    assert loop.condition == doc.Guard(condition=Always(op="always"), at="steps[0].loop.condition")


def test_a_loop_without_an_end_condition_is_reported() -> None:
    other = {**STEP, "outputContract": {"contractRef": "wr.contracts.review_verdict"}}
    piece: dict[str, Any] = {"id": "p", "title": "P", "type": "parallel", "parallelDelegations": []}
    assert fault_codes(looping((other, piece), type="while")) == [("steps[0].loop", "loop_condition_missing")]
    assert fault_codes(looping(type="until")) == [("steps[0].loop", "loop_condition_missing")]
    assert fault_codes(looping(type="for")) == [("steps[0].loop.count", "missing_key")]
    assert fault_codes(looping(type="forEach")) == [("steps[0].loop.items", "missing_key")]


@pytest.mark.parametrize(
    ("spec", "path", "code"),
    [
        ({"type": "repeat"}, "type", "wrong_value"),
        ({"type": "for", "count": 1, "maxIterations": 0}, "maxIterations", "wrong_value"),
        ({"type": "for", "count": 1, "maxIterations": 1001}, "maxIterations", "wrong_value"),
        ({"type": "for", "count": -1}, "count", "wrong_value"),
        ({"type": "for", "count": 1.5}, "count", "wrong_type"),
        ({"type": "while", "conditionSource": {"kind": "artifact"}}, "conditionSource.kind", "wrong_value"),
        ({"type": "while", "conditionSource": {}}, "conditionSource.kind", "missing_key"),
        (
            {"type": "while", "conditionSource": {**ARTIFACT, "contractRef": "wr.contracts.review_verdict"}},
            "conditionSource.contractRef",
            "wrong_value",
        ),
        (
            {"type": "while", "conditionSource": {"kind": "context_variable", "condition": {"vra": "x"}}},
            "conditionSource.condition.vra",
            "unknown_key",
        ),
    ],
)
def test_a_fault_in_a_loop_is_reported_at_its_place(spec: dict[str, Any], path: str, code: str) -> None:
    assert fault_codes(looping(**spec)) == [(f"steps[0].loop.{path}", code)]


def test_a_step_that_is_named_as_a_body_is_moved_there_with_its_declared_steps() -> None:
    last = {**STEP, "id": "z"}
    first, second = steps_of(looping("a", type="for", count=1), {**STEP, "verification": {}}, last)
    assert isinstance(first, doc.LoopStep)
    assert [(step.id, step.at) for step in first.body] == [
        ("a", "steps[1]"),
        ("a--verification", "steps[1].verification"),
    ]
    assert second.id == "z"


def test_a_loop_body_with_an_unknown_step_id_is_reported_with_the_nearest_id() -> None:
    (found,) = faults(looping("chek", type="for", count=1), {**STEP, "id": "check"})
    assert (found.path, found.code, found.fix) == ("steps[0].body", "unknown_step", "Did you mean `check`?")
    (found,) = faults(looping("zzz", type="for", count=1), STEP)
    assert found.code == "unknown_step"


def test_a_loop_holds_no_loop() -> None:
    inner = looping((STEP,), loop_id="m", type="for", count=1)
    assert fault_codes(looping("m", type="for", count=1), inner) == [("steps[0].body", "wrong_value")]
    assert fault_codes(looping((inner,), type="for", count=1)) == [("steps[0].body[0]", "wrong_value")]
    assert fault_codes(looping("l", type="for", count=1)) == [("steps[0].body", "wrong_value")]


def test_a_step_is_the_body_of_one_loop() -> None:
    first, second = (looping("a", loop_id=name, type="for", count=1) for name in "lm")
    (found,) = faults(first, second, STEP)
    assert (found.path, found.code) == ("steps[1].body", "wrong_value")
    assert "steps[0]" in found.message


def test_a_loop_without_its_type_is_still_a_loop() -> None:
    loop = looping(type="for", count=1)
    del loop["type"]
    assert fault_codes(loop) == [("steps[0].type", "missing_key")]
    assert fault_codes({**looping(type="for", count=1), "body": 3}) == [("steps[0].body", "wrong_type")]
    assert fault_codes(looping((), type="for", count=1)) == [("steps[0].body", "empty")]
