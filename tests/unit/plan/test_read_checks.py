"""What conditions, needs and loops may read, as checked before any run."""

from typing import Any

import pytest
from tests.support.flow import DECLARED_KINDS, Document, document, loop, step

from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.check.checks import check_document


def faults(*steps: Document, **more: Any) -> list[tuple[str, str]]:
    """Return place and message of each fault of a document."""
    parsed = parse_workflow(document(*steps, **{"inputs": DECLARED_KINDS, **more}))
    found = check_document(parsed) if isinstance(parsed, WorkflowDocument) else parsed
    return [(one.path, one.message) for one in found if one.severity == "error"]


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize(
    ("operand", "words"), [(5, "a number"), (True, "true or false"), (["x"], "a list"), ({"x": 1}, "an object")]
)
@pytest.mark.parametrize("key", ["mode", "goal"])
def test_a_string_cannot_contain_anything_but_a_string(key: str, operand: object, words: str) -> None:
    message = f"{key!r} is a string, but `contains` with {words} needs a list."
    assert faults(step("a", when={"var": key, "contains": operand})) == [("steps[0].when", message)]
    action: Document = {"key": "level", "value": 1, "when": {"var": key, "contains": operand}}
    assert faults(step("a", set=[action])) == [("steps[0].set[0].when", message)]


@pytest.mark.inv("DEC-12")
@pytest.mark.parametrize("when", [{"var": "things", "contains": 5}, {"var": "mode", "contains": "x"}], ids=str)
def test_a_list_contains_anything_and_a_string_strings(when: Document) -> None:
    assert faults(step("a", when=when)) == []


@pytest.mark.inv("CTX-4")
@pytest.mark.parametrize("path", ["box.constructor", "box.__proto__.x", "box.x.prototype"])
def test_a_path_through_a_reserved_key_is_never_read(path: str) -> None:
    message = f"The path {path!r} contains a reserved key, which cannot be sent."
    whole: Document = loop("l", step("b"), **{"for": {"countFrom": path}})
    assert faults(step("a", needs=[path])) == [("steps[0].needs[0]", message)]
    assert faults(step("a", when={"var": path, "equals": 1})) == [("steps[0].when", message)]
    assert faults(step("a", when={"not": {"var": path, "exists": True}})) == [("steps[0].when", message)]
    assert faults(step("a", set=[{"key": "mode", "from": path}])) == [("steps[0].set[0].from", message)]
    assert faults(whole) == [("steps[0].for.countFrom", message)]
