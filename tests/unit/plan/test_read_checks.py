"""What conditions, needs and loops may read, as checked before any run."""

from typing import Any

import pytest
from tests.support.flow import DECLARED_KINDS, Document, document, step

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
