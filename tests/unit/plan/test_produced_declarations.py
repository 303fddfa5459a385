"""What a step declares that it produces: a fault in a declaration is reported at its place."""

import pytest
from tests.support.flow import Document, declared, document, step

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.compile.compiler import Compiled, compile_workflow

LIST: Document = {"key": "it", "description": "It.", "type": "list"}
X: Document = {"key": "x", "type": "string"}


def diagnostics(*steps: Document, inputs: tuple[Document, ...] = ()) -> Diagnostics:
    parsed = parse_workflow(document(*steps, inputs=list(inputs)))
    assert isinstance(parsed, WorkflowDocument), parsed
    found = compile_workflow(parsed)
    return found.warnings if isinstance(found, Compiled) else found


@pytest.mark.inv("CTX-13")
@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"type": "string", "choices": [1]}, ".choices[0]", "wrong_type"),
        ({"type": "string", "items": {"type": "string"}}, ".items", "wrong_type"),
        ({"items": {"type": "string", "choices": [1]}}, ".items.choices[0]", "wrong_type"),
        ({"items": {"type": "string", "fields": [X]}}, ".items.fields", "wrong_type"),
        ({"items": {"type": "object", "fields": [X, X]}}, ".items.fields[1].key", "duplicate_id"),
        ({"items": {"type": "object", "fields": [X | {"choices": [1]}]}}, ".items.fields[0].choices[0]", "wrong_type"),
        ({"choices": [["a"]], "items": {"type": "string", "choices": ["b"]}}, ".choices[0]", "wrong_value"),
        ({"key": "constructor"}, "", "wrong_value"),
        ({"key": "goal"}, ".type", "wrong_type"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_a_fault_at_its_place(change: Document, path: str, code: str) -> None:
    for at, more in (("steps[0].produces[0]", {"produces": [LIST | change]}), ("inputs[0]", {})):
        inputs = () if more else (LIST | change,)
        found = {(one.path, one.code) for one in diagnostics(step("a", **more), inputs=inputs)}
        assert (at + (path or (".key" if not more else "")), code) in found


@pytest.mark.inv("CTX-12")
def test_a_key_has_one_declaration() -> None:
    one, other = step("a", produces=[LIST]), step("b", produces=[LIST | {"description": "Another."}])
    found = [(fault.path, fault.code) for fault in diagnostics(one, other)]
    assert found == [("steps[1].produces[0].key", "duplicate_id")]
    found = [(fault.path, fault.code) for fault in diagnostics(one, inputs=(LIST | {"type": "string"},))]
    assert found == [("steps[0].produces[0].key", "duplicate_id")]
    assert diagnostics(one, step("b", produces=["it"])) == ()


@pytest.mark.inv("CTX-12")
def test_a_read_that_contradicts_the_declaration_of_a_step_is_a_fault() -> None:
    read = step("b", when={"var": "it", "gt": 1})
    (found,) = diagnostics(step("a", produces=[LIST]), read)
    assert (found.path, found.code) == ("steps[1].when", "wrong_type")


@pytest.mark.inv("CTX-6")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"produces": ["goal"]}, "steps[0].produces[0]"),
        ({"set": [{"key": "goal", "value": "Another"}]}, "steps[0].set[0].key"),
        (
            {"emit": [{"kind": "team.x", "fields": {"to": {"value": "Another"}}, "mirror": {"goal": "to"}}]},
            "steps[0].emit[0].mirror.goal",
        ),
    ],
)
def test_a_step_that_changes_the_goal_is_a_fault(change: Document, path: str) -> None:
    [found] = diagnostics(step("a", **change), inputs=(declared("goal", required=False),))
    assert (found.path, found.code) == (path, "wrong_value")
