"""Damage anywhere in a valid document: it still compiles, or the fault names a place that exists."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.support.plans import Document, workflows
from tests.support.shares import examples

from interlock.define.diagnostics import Diagnostic, has_errors
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.compile.compiler import Compiled, compile_workflow

pytestmark = pytest.mark.exhaustive

Container = dict[str, Any] | list[Any]

GARBAGE: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**15, "", "s1", "x" * 300, "Not An Id", "{{", "*", [], {}, [[]], [None], ["mode"],
    {"var": "mode"}, {"var": "nobody", "equals": 1}, {"kind": "loop_control"}, {"and": []},
    {"type": "regex", "pattern": "("}, {"id": "s1", "title": "Twice", "prompt": "x"},
    {"kind": "binding", "slotId": "none"},
)  # fmt: skip
KEYS = (
    "id",
    "when",
    "steps",
    "body",
    "branches",
    "choose",
    "type",
    "prompt",
    "promptBlocks",
    "version",
    "while",
    "extra",
)


def places(value: Any) -> Iterator[tuple[Container, str | int]]:
    """Yield every place inside a value: what holds it, and its key or index there."""
    if isinstance(value, dict):
        keys: list[str | int] = list(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        keys = list(range(len(cast("list[Any]", value))))
    else:
        return
    for key in keys:
        yield value, key
        yield from places(cast("Any", value)[key])


def damaged(document: Document, data: st.DataObject) -> Document:
    """Return a copy with something deleted, replaced or inserted, once or a few times."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        every = list(places(document))
        if not every:
            break
        holder, key = every[data.draw(st.integers(0, len(every) - 1))]
        held = cast("Any", holder)
        garbage = copy.deepcopy(data.draw(st.sampled_from(GARBAGE)))
        match data.draw(st.sampled_from(["delete", "replace", "insert", "move"])):
            case "delete":
                del held[key]
            case "replace":
                held[key] = garbage
            case "insert" if isinstance(holder, list):
                held.insert(key, garbage)
            case "insert":
                held[data.draw(st.sampled_from(KEYS))] = garbage
            case _:
                other, to = every[data.draw(st.integers(0, len(every) - 1))]
                cast("Any", other)[to] = copy.deepcopy(held[key])
    return document


def describe_position(value: Any, path: str) -> bool:
    """Say whether a path leads to something in a value. Keys may hold any character, so every reading counts."""
    if not path:
        return True
    if isinstance(value, list):
        return any(
            path.startswith(f"[{at}]") and describe_position(item, path.removeprefix(f"[{at}]"))
            for at, item in enumerate(cast("list[Any]", value))
        )
    if not isinstance(value, dict):
        return False
    path = path.removeprefix(".")
    return any(
        path.startswith(key)
        and (rest := path.removeprefix(key))[:1] in ("", ".", "[")
        and describe_position(member, rest)
        for key, member in cast("Mapping[str, Any]", value).items()
    )


def is_placed(document: Document, found: Diagnostic) -> bool:
    """Say whether a diagnostic's place exists, or the place that should hold it."""
    path = found.path
    parents = [path[:at] for at, char in enumerate(path) if char in ".["]
    return (
        path.endswith("…")
        or describe_position(document, path)
        or describe_position(document, parents[-1] if parents else "")
    )


@settings(
    deadline=None, max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(workflows(), st.data())
@pytest.mark.inv("PLAN-7")
def test_a_damaged_document_compiles_or_its_faults_are_reported_where_they_stand(
    document: Document, data: st.DataObject
) -> None:
    document = damaged(document, data)
    parsed = parse_workflow(copy.deepcopy(document))
    found = compile_workflow(parsed) if isinstance(parsed, WorkflowDocument) else parsed
    if isinstance(found, Compiled):
        event("still a workflow")
        diagnostics = found.warnings
    else:
        event("refused")
        assert has_errors(found)
        diagnostics = found
    for one in diagnostics:
        assert one.message
        assert one.fix
        assert is_placed(document, one), one
