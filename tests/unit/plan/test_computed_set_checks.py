"""What `when` and `compute` of a `set` action may read and give, as checked before any run."""

from typing import Any

import pytest
from tests.support.flow import DECLARED_KINDS, RATING, Document, document, step

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.kernel.budgets.workflow import (
    CONDITION_TERMS_MAX,
    VALUE_DEPTH_MAX,
)
from interlock.plan.compile.compiler import Compiled, compile_workflow

IS_HIGH: Document = {"var": "level", "gt": 1}
REVIEW: Document = {"outputContract": {"contractRef": "wr.contracts.review_verdict"}}
OPTIONAL_REVIEW: Document = {"outputContract": {"contractRef": "wr.contracts.review_verdict", "required": False}}
RATED: Document = {"assessmentRefs": ["quality"]}


def diagnostics(action: Document, **of_step: object) -> Diagnostics:
    assessments = {"assessments": [RATING]} if "assessmentRefs" in of_step else {}
    parsed = parse_workflow(document(step("a", set=[action], **of_step), inputs=DECLARED_KINDS, **assessments))
    if not isinstance(parsed, WorkflowDocument):
        return parsed
    found = compile_workflow(parsed)
    return found.warnings if isinstance(found, Compiled) else found


def var(path: str) -> Document:
    return {"var": path}


def nested(depth: int) -> Document:
    value = var("level")
    for _ in range(depth):
        value = {"negate": value}
    return value


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("level", {"add": [var("level"), 1, 2]}),
        ("level", {"length": var("mode")}),
        ("level", {"length": {"append": [var("things"), var("mode")]}}),
        ("level", {"add": [var("box.size"), 1]}),
        ("things", {"append": [var("things"), var("box")]}),
        ("level", {"if": [IS_HIGH, {"negate": 1}, var("level")]}),
        ("speed", {"if": [IS_HIGH, "fast", {"if": [IS_HIGH, "slow", var("speed")]}]}),
        ("pace", var("speed")),
        ("mode", var("box.name")),
        ("level", {"divide": [var("level"), 1e-16]}),
        ("level", nested(VALUE_DEPTH_MAX - 1)),
    ],
    ids=str,
)
def test_a_computed_value_that_can_fit_is_no_fault(key: str, value: Document) -> None:
    assert [one for one in diagnostics({"key": key, "compute": value}) if one.severity == "error"] == []


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"add": [var("mode"), 1]}, "`add` needs a number; operand 1 is a string."),
        ({"add": [1, "1"]}, "`add` needs a number; operand 2 is a string."),
        ({"divide": [var("is_urgent"), 2]}, "`divide` needs a number; operand 1 is a boolean."),
        ({"max": [var("level"), var("box")]}, "`max` needs a number; operand 2 is an object."),
        ({"negate": var("things")}, "`negate` needs a number; operand 1 is a list."),
        ({"negate": [1, 2]}, "`negate` needs a number; operand 1 is a list."),
        ({"sum": var("level")}, "`sum` needs a list; operand 1 is a number."),
        ({"length": var("level")}, "`length` needs a list or a string; operand 1 is a number."),
        ({"length": {"append": [var("level"), 1]}}, "`append` needs a list; operand 1 is a number."),
        ({"add": [{"append": [var("things"), 1]}, 1]}, "`add` needs a number; operand 1 is a list."),
        ({"if": [IS_HIGH, {"add": [var("mode"), 1]}, 0]}, "`add` needs a number; operand 1 is a string."),
        ({"add": [{"if": [IS_HIGH, 1, "none"]}, 1]}, "`add` needs a number; operand 1 is a string."),
        ({"add": [{"if": [IS_HIGH, "some", "none"]}, 1]}, "`add` needs a number; operand 1 is a string."),
    ],
    ids=str,
)
def test_an_operand_that_can_only_have_another_type_is_a_fault(value: Document, message: str) -> None:
    (found,) = diagnostics({"key": "level", "compute": value})
    assert (found.path, found.code, found.message) == ("steps[0].set[0].compute", "wrong_type", message)


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("mode", {"add": [var("level"), 1]}, "wrong_type"),
        ("level", {"append": [var("things"), 1]}, "wrong_type"),
        ("things", {"length": var("things")}, "wrong_type"),
        ("is_urgent", {"if": [IS_HIGH, 1, 0]}, "wrong_type"),
        ("level", {"if": [IS_HIGH, 1, "none"]}, "wrong_type"),
        ("level", {"if": [IS_HIGH, 1, {"if": [IS_HIGH, 2, var("mode")]}]}, "wrong_type"),
        ("speed", {"if": [IS_HIGH, "fast", "still"]}, "wrong_value"),
        ("speed", {"if": [IS_HIGH, "fast", var("mode")]}, "wrong_value"),
        ("speed", {"if": [IS_HIGH, "still", 1]}, "wrong_value"),
        ("speed", var("pace"), "wrong_value"),
    ],
    ids=str,
)
def test_a_result_that_does_not_fit_the_declared_key_is_a_fault(key: str, value: Document, code: str) -> None:
    found = diagnostics({"key": key, "compute": value})
    assert ("steps[0].set[0].compute", code) in [(one.path, one.code) for one in found]
    assert all(repr(key) in one.message for one in found)


@pytest.mark.parametrize(
    ("action", "part"),
    [
        ({"key": "level", "compute": {"add": [var("gone"), 1]}}, "compute"),
        ({"key": "level", "compute": {"if": [{"var": "gone", "exists": True}, 1, 2]}}, "compute"),
        ({"key": "level", "value": 1, "when": {"not": {"var": "gone", "equals": 1}}}, "when"),
        ({"key": "gone", "compute": {"add": [1, 2]}}, "key"),
        ({"key": "level", "value": 1, "when": {"var": "artifact.verdict", "equals": "clean"}}, "when"),
        ({"key": "level", "compute": {"length": var("artifact.findings")}}, "compute"),
        ({"key": "level", "value": 1, "when": {"var": "assessments.quality.clear", "equals": "low"}}, "when"),
    ],
    ids=str,
)
def test_a_key_or_evidence_that_the_step_does_not_have_is_undeclared(action: Document, part: str) -> None:
    (found,) = diagnostics(action)
    assert (found.path, found.code, found.severity) == (f"steps[0].set[0].{part}", "undeclared_key", "error")


@pytest.mark.parametrize(
    ("action", "of_step", "expected"),
    [
        ({"when": {"var": "artifact.verdict", "equals": "clean"}}, REVIEW, []),
        ({"when": {"var": "artifact.verdict", "equals": "clean"}}, OPTIONAL_REVIEW, []),
        ({"when": {"var": "artifact.verdct", "equals": "clean"}}, REVIEW, [("when", "undeclared_key")]),
        ({"when": {"var": "assessments.quality.clear", "equals": "low"}}, RATED, []),
        ({"when": {"var": "assessments.quality.cler", "equals": "low"}}, RATED, [("when", "unknown_assessment")]),
        ({"when": {"var": "assessments.other.clear", "equals": "low"}}, RATED, [("when", "unknown_assessment")]),
        ({"compute": {"length": var("artifact.findings")}}, REVIEW, []),
        ({"compute": {"length": var("artifact.findings")}}, OPTIONAL_REVIEW, []),
        ({"compute": {"length": var("artifact.fndings")}}, REVIEW, [("compute", "undeclared_key")]),
        ({"compute": {"add": [var("assessments.quality.clear"), 1]}}, RATED, [("compute", "wrong_type")]),
    ],
    ids=str,
)
def test_evidence_is_read_as_its_contract_or_assessment_says(
    action: Document, of_step: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    value = {} if "compute" in action else {"value": 1}
    found = diagnostics({"key": "level", **value, **action}, **of_step)
    assert [(one.path, one.code) for one in found] == [(f"steps[0].set[0].{part}", code) for part, code in expected]


@pytest.mark.parametrize(
    ("action", "path", "code"),
    [
        ({"compute": {"add": [1]}}, ".compute.add", "wrong_value"),
        ({"compute": {"add": [1] * 51}}, ".compute.add", "too_many"),
        ({"compute": {"if": [IS_HIGH, 1]}}, ".compute.if[2]", "missing_key"),
        ({"compute": {"add": [1, 2], "sum": []}}, ".compute", "wrong_value"),
        ({"compute": {}}, ".compute", "wrong_value"),
        ({"compute": {"pow": [1, 2]}}, ".compute.pow", "unknown_key"),
        ({"compute": 5}, ".compute", "wrong_type"),
        ({"compute": {"add": [1, 2]}, "value": 3}, "", "wrong_value"),
        ({"when": IS_HIGH}, "", "wrong_value"),
        ({"value": 1, "when": {"kind": "loop_control"}}, ".when", "wrong_value"),
        (
            {"value": 1, "when": {"kind": "condition_ref", "conditionId": "no"}},
            ".when.conditionId",
            "unknown_condition",
        ),
        ({"value": 1, "when": {"var": "mode", "gt": 1}}, ".when", "wrong_type"),
    ],
    ids=str,
)
def test_a_part_of_another_form_is_a_fault_at_its_place(action: Document, path: str, code: str) -> None:
    (found,) = diagnostics({"key": "level", **action})
    assert (found.path, found.code) == (f"steps[0].set[0]{path}", code)


@pytest.mark.parametrize(
    ("action", "limit"),
    [
        ({"compute": nested(VALUE_DEPTH_MAX)}, VALUE_DEPTH_MAX),
        ({"value": 1, "when": {"or": [IS_HIGH] * CONDITION_TERMS_MAX}}, CONDITION_TERMS_MAX),
    ],
    ids=["depth", "terms"],
)
def test_depth_and_size_are_bounded(action: Document, limit: int) -> None:
    (found,) = diagnostics({"key": "level", **action})
    assert found.code == "too_many"
    assert str(limit) in found.message


def test_the_values_of_all_actions_count_together() -> None:
    full: Document = {"max": [{"max": [1] * 50}] * 50}
    parsed = parse_workflow(
        document(*(step(f"s{at}", set=[{"key": "level", "compute": full}]) for at in range(2)), inputs=DECLARED_KINDS)
    )
    assert not isinstance(parsed, WorkflowDocument)
    assert {one.code for one in parsed} == {"too_many"}
    assert str(CONDITION_TERMS_MAX) in parsed[0].message


@pytest.mark.inv("EFF-1")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"divide": [1, 0]}, "a division by zero"),
        ({"divide": [var("level"), {"subtract": [2, 2]}]}, "a division by zero"),
        ({"multiply": [9007199254740991, 9007199254740991]}, "an integer of 2^53 or beyond"),
        ({"add": [var("level"), {"if": [IS_HIGH, {"divide": [1, 0]}, 1]}]}, "a division by zero"),
    ],
)
def test_an_operation_that_fails_whenever_it_is_computed_is_a_fault(value: Document, found: str) -> None:
    [one] = diagnostics({"key": "level", "compute": value})
    assert (one.path, one.code) == ("steps[0].set[0].compute", "wrong_value")
    assert one.message == f"A part of this fails whenever it is computed: found {found}."
