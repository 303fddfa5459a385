"""Diagnostics of wrong forms: what is written instead corrects the file, and one mistake has one diagnostic."""

from typing import Any

import pytest

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow

STEP: dict[str, Any] = {"id": "a", "title": "A", "prompt": "Do a."}
BARE: dict[str, Any] = {"id": "a", "title": "A"}
LOOP: dict[str, Any] = {"loopId": "l", "title": "L", "maxIterations": 2, "while": {"kind": "loop_control"}}
TYPES = "`step`, `loop`, `parallel`, `choose`, `template`, `await`, `check`, `approve`"


def diagnosed(*steps: object, **more: object) -> Diagnostics:
    found = parse_workflow({"id": "test.one", "name": "One", "steps": list(steps), **more})  # pyright: ignore[reportArgumentType]
    return found.warnings if isinstance(found, WorkflowDocument) else found


def fixes(*steps: object, **more: object) -> list[tuple[str, str, str]]:
    return [(one.path, one.code, one.fix) for one in diagnosed(*steps, **more)]


@pytest.mark.inv("PLAN-25")
def test_a_loop_whose_body_is_missing_or_misspelt_has_one_diagnostic() -> None:
    assert fixes(LOOP) == [("steps[0].body", "missing_key", "Add `body`: the steps to repeat.")]
    assert fixes({**LOOP, "steps": [STEP]}) == [("steps[0].steps", "unknown_key", "Did you mean `body`?")]
    assert fixes({**LOOP, "boddy": [STEP]}) == [("steps[0].boddy", "unknown_key", "Did you mean `body`?")]


@pytest.mark.inv("PLAN-25")
def test_a_step_with_only_the_repetition_of_a_loop_is_a_loop_unless_it_has_a_prompt() -> None:
    looped = {"id": "l", "title": "L", "maxIterations": 2, "forEach": {"items": "goal"}, "steps": [STEP]}
    assert fixes(looped) == [
        ("steps[0].id", "unknown_key", "Did you mean `loopId`?"),
        ("steps[0].steps", "unknown_key", "Did you mean `body`?"),
    ]
    del looped["maxIterations"]
    assert ("steps[0].maxIterations", "missing_key") in [(one.path, one.code) for one in diagnosed(looped)]
    (prompted,) = diagnosed({**STEP, "while": {"var": "goal", "exists": True}})
    assert (prompted.path, prompted.code) == ("steps[0].while", "unknown_key")


@pytest.mark.inv("PLAN-25")
def test_an_unknown_type_is_answered_with_every_type_and_the_nearest() -> None:
    for name in ("task", "gate"):
        (found,) = diagnosed({**STEP, "type": name})
        assert (found.path, found.code) == ("steps[0].type", "wrong_value")
        assert (found.message, found.fix) == (
            f"Found {name!r}: there is no such type.",
            f"Write one of the types {TYPES}.",
        )
    assert fixes({**BARE, "type": "task"}) == fixes({**STEP, "type": "task"}), "no prompt is asked for"
    nearest = f"Did you mean `parallel`? The types are {TYPES}."
    assert fixes({**STEP, "type": "paralel"}) == [("steps[0].type", "wrong_value", nearest)]
    by_keys = f"Did you mean `approve`? The types are {TYPES}."
    assert fixes({**BARE, "type": "gate", "question": "May it be merged?"}) == [
        ("steps[0].type", "wrong_value", by_keys)
    ]
    (number,) = diagnosed({**STEP, "type": 3})
    assert (number.fix, number.replacement) == (f"Write one of the types {TYPES}.", None)


@pytest.mark.inv("PLAN-25")
@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [("question", "May it be merged?", "approve"), ("event", "ci.finished", "await"), ("run", "tests", "check")],
)
def test_a_key_of_a_step_that_waits_asks_for_its_type(key: str, value: str, kind: str) -> None:
    for step in (BARE, STEP):
        assert fixes({**step, key: value}) == [("steps[0].type", "missing_key", f"Add `type: {kind}`.")]
        assert fixes({**step, key: value, "type": kind}) == []
