"""Files that people wrote for WorkRail are read as they are. The corpus is no part of the repository."""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.corpus import workrail_files

from interlock.define import document as doc
from interlock.define.front import parse_workflow

REFUSED = "dashboard-template-workflow"
"""The one file that holds keys which are not of the dialect."""


def agent_steps(steps: tuple[doc.Step, ...]) -> Iterator[doc.AgentStep]:
    for step in steps:
        if isinstance(step, doc.AgentStep):
            yield step
        if isinstance(step, doc.LoopStep):
            yield from agent_steps(step.body)


def authored(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        yield step
        yield from authored(step["body"]) if not isinstance(step.get("body", ""), str) else ()


def test_every_file_of_the_dialect_is_read() -> None:
    for path in workrail_files():
        if path.stem == REFUSED:
            continue
        found = parse_workflow(json.loads(path.read_bytes()))
        assert isinstance(found, doc.WorkflowDocument), [path.name, *(one.render_line() for one in found)]


def test_nothing_that_is_said_in_those_files_is_lost() -> None:
    for path in workrail_files():
        written: dict[str, Any] = json.loads(path.read_bytes())
        found = parse_workflow(written)
        if not isinstance(found, doc.WorkflowDocument):
            continue
        lines = "\n".join(found.guidance)
        for key in ("metaGuidance", "preconditions", "clarificationPrompts"):
            assert all(line in lines for line in written.get(key, [])), path.name
        steps = {step.id: step for step in agent_steps(found.steps)}
        for step in authored(written["steps"]):
            if "prompt" in step:
                assert steps[step["id"]].prompt == doc.to_prose(step["prompt"]), path.name
            assert set(step.get("guidance", [])) <= set(steps[step["id"]].guidance if step["id"] in steps else ())


def test_a_file_with_keys_of_its_own_is_refused_and_each_of_them_is_named() -> None:
    (path,) = [path for path in workrail_files() if path.stem == REFUSED]
    found = parse_workflow(json.loads(path.read_bytes()))
    assert not isinstance(found, doc.WorkflowDocument)
    assert {one.path for one in found if one.code == "unknown_key"} == {
        "tags",
        "tips",
        "autoRecognitionPatterns",
        "steps[0].expectedOutput",
    }
