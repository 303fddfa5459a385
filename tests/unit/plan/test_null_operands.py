"""An operand that is null, as a YAML key without a value is, is a fault at its place."""

from typing import Any

import pytest
from tests.support.flow import DECLARED_KINDS, Document, document, step

from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.flows.predicates import lower_predicate
from interlock.testing.harness import Harness, linear_workflow

BLANK = b"""\
id: team.blank
name: Blank
inputs:
  - {key: size, type: string, description: The size.}
steps:
  - {id: a, title: A, prompt: Do it.}
  - id: b
    title: B
    prompt: Do it again.
    when: {var: size, in: }
"""
UNDECIDABLE = ("gt", "gte", "lt", "lte", "in", "contains", "startsWith", "endsWith", "exists")


def faults(**of_step: Any) -> list[tuple[str, str]]:
    found = parse_workflow(document(step("a", **of_step), inputs=DECLARED_KINDS))
    return [] if isinstance(found, WorkflowDocument) else [(one.path, one.code) for one in found]


@pytest.mark.inv("SRC-4")
def test_a_file_with_a_null_operand_is_refused_at_its_place_and_hides_nothing() -> None:
    harness = Harness.in_memory(linear_workflow("team.good", "a"))
    harness.workflows.put(BLANK, ref="blank.yaml")
    (refused,) = harness.call("list_workflows")["refused"]
    answer = harness.call("inspect_workflow", {"workflowId": "team.blank"})
    (found,) = answer.structure["details"]["diagnostics"]
    assert refused["source"] == "blank.yaml"
    assert (found["path"], found["code"], found["line"]) == ("steps[1].when.in", "wrong_type", 10)
    assert found["message"] == "`in` cannot compare with null."
    assert not harness.start("team.good").is_error


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize("operator", UNDECIDABLE)
def test_an_operator_that_null_never_decides_refuses_it(operator: str) -> None:
    assert faults(when={"var": "mode", operator: None}) == [(f"steps[0].when.{operator}", "wrong_type")]
    assert faults(when={"not": {"and": [{"var": "mode", operator: None}]}}) == [
        (f"steps[0].when.not.and[0].{operator}", "wrong_type")
    ]


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize("operator", ["equals", "notEquals"])
def test_any_value_can_be_compared_with_null_for_equality(operator: str) -> None:
    assert faults(when={"var": "mode", operator: None}) == []


@pytest.mark.inv("DEC-14")
@pytest.mark.parametrize(
    ("compute", "place"),
    [
        ({"if": None}, ".if"),
        ({"add": None}, ".add"),
        ({"negate": None}, ".negate"),
        ({"length": None}, ".length"),
        ({"var": None}, ".var"),
        ({"add": [{"var": None}, 1]}, ".add[0].var"),
        ({"add": [1, None]}, ".add[1]"),
        ({"append": [None, 1]}, ".append[0]"),
        ({"if": [{"var": "mode", "gt": None}, 1, 2]}, ".if[0].gt"),
    ],
    ids=str,
)
def test_a_value_cannot_be_computed_with_null(compute: Document, place: str) -> None:
    assert faults(set=[{"key": "level", "compute": compute}]) == [(f"steps[0].set[0].compute{place}", "wrong_type")]


@pytest.mark.parametrize(
    "action",
    [
        {"key": "things", "compute": {"append": [{"var": "things"}, None]}},
        {"key": "level", "compute": {"if": [{"var": "mode", "exists": True}, 1, None]}},
        {"key": "level", "value": None},
    ],
    ids=str,
)
def test_null_is_a_value_where_any_value_is_allowed(action: Document) -> None:
    assert faults(set=[action]) == []


@pytest.mark.parametrize("part", ["from", "compute"])
def test_an_action_without_a_source_does_not_remove_its_key(part: str) -> None:
    assert faults(set=[{"key": "level", part: None}]) == [(f"steps[0].set[0].{part}", "wrong_type")]


@pytest.mark.inv("OPS-19")
@pytest.mark.parametrize(
    "predicate", [{"var": "x", "in": None}, {"var": "x", "gt": None}, {">": [{"var": "x"}, None]}], ids=str
)
def test_a_predicate_that_compares_with_null_is_not_read(predicate: Document) -> None:
    assert lower_predicate(predicate, lambda path: path) is None
