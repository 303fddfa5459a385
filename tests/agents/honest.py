"""An agent that works through a bundled workflow: it fills in what each answer asks for, with notes of its own."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tests.agents.lazy import WORKED_ONCE
from tests.support.modes import claim
from tests.unit.test_bundled_failures import FULL, NEEDED, asks_a_person
from tests.unit.test_bundled_workflows import SOURCES

from interlock.kernel.canonical import Json
from interlock.testing.harness import Harness, ToolResult, filled_in

CALLS_MAX = 120


@cache
def serving(workflow_id: str) -> Harness:
    """Return a harness that serves a bundled workflow under the id of a project's own."""
    return Harness.in_memory(SOURCES[workflow_id] | {"id": "test.bundled"})


def begun_with(workflow_id: str) -> Mapping[str, Json]:
    return {one["key"]: NEEDED[one["key"]] for one in SOURCES[workflow_id].get("inputs", ()) if one.get("required")}


def honest_answers(
    workflow_id: str, *, goal: str = "See it through", context: Mapping[str, Json] | None = None
) -> Iterator[ToolResult]:
    """Yield the answers of a run from its start to its end; `context` says what the agent sends for a key."""
    harness, known = serving(workflow_id), FULL | dict(context or {})
    answer = harness.start("test.bundled", goal=goal, context=dict(begun_with(workflow_id)))
    yield answer
    reports = 0
    while not answer["isComplete"]:
        reports += 1
        assert reports < CALLS_MAX, answer.text
        title = answer["pending"]["title"]
        sent: dict[str, Any] = filled_in(answer, f"{title}, report {reports}: {WORKED_ONCE}")
        if "context" in sent:
            sent["context"] = {key: known.get(key, value) for key, value in sent["context"].items()}
        if asks_a_person(answer):
            sent["output"] = {"artifacts": [claim()]}
        answer = harness.call("continue_workflow", sent)
        assert not answer.is_error, answer.text
        yield answer
