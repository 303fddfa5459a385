"""A start that repeats an open run's workflow and goal says so, and is a run of its own."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.kernel.budgets import OPEN_RUN_SESSIONS_MAX
from interlock.store.ports.workspace import NOWHERE, GitAnchors
from interlock.testing.harness import Harness, ToolResult

HERE = GitAnchors(repo_root="/project")


def at(harness: Harness, anchors: GitAnchors) -> Harness:
    """The same harness, called from a place in git."""

    def found(_workspace: Path | None) -> GitAnchors:
        return anchors

    read = replace(harness.ports.read, anchors=found)
    return replace(harness, ports=replace(harness.ports, read=read))


def named(answer: ToolResult) -> list[str]:
    return [one["message"] for one in answer.structure.get("warnings", ()) if one["code"] == "SAME_RUN_OPEN"]


@pytest.mark.inv("ADV-14")
def test_a_second_start_names_the_open_run_and_the_call_that_continues_it(harness: Harness) -> None:
    here = at(harness, HERE)
    first = here.start("test.abc", goal="Mend it")
    here.advance(first)
    second = here.start("test.abc", goal="Mend it")
    (message,) = named(second)
    assert f"`{first['run']['label']}`" in message
    assert "step 2 of 3" in message
    assert message in second.text
    call = re.search(r"call `continue_workflow` with `({.*})`", message)
    assert call is not None
    shown = here.call("continue_workflow", json.loads(call[1]))
    assert shown["pending"]["stepId"] == "b"
    assert second["run"]["label"] != first["run"]["label"]


@pytest.mark.inv("ADV-14")
@pytest.mark.parametrize("other", ["workflow", "goal", "no goal", "repository", "no repository"])
def test_a_start_of_other_work_names_no_run(harness: Harness, other: str) -> None:
    here = at(harness, HERE)
    arguments = {} if other == "no goal" else {"goal": "Mend it"}
    here.start("test.abc", **arguments)
    place = {"repository": GitAnchors(repo_root="/other"), "no repository": NOWHERE}.get(other, HERE)
    if other == "goal":
        arguments = {"goal": "Break it"}
    again = at(harness, place).start("test.one" if other == "workflow" else "test.abc", **arguments)
    assert named(again) == []


@pytest.mark.inv("ADV-14")
def test_a_start_after_the_run_is_complete_names_no_run(harness: Harness) -> None:
    here = at(harness, HERE)
    here.advance(here.start("test.one", goal="Mend it"))
    assert named(here.start("test.one", goal="Mend it")) == []


@pytest.mark.inv("ADV-14")
def test_only_the_newest_sessions_are_looked_at(monkeypatch: pytest.MonkeyPatch, harness: Harness) -> None:
    here = at(harness, HERE)
    for number in range(4):
        here.start("test.abc", goal=f"Goal {number}")
    monkeypatch.setattr("interlock.service.tools.open_runs.OPEN_RUN_SESSIONS_MAX", 2)
    assert OPEN_RUN_SESSIONS_MAX == 50
    assert named(here.start("test.abc", goal="Goal 3"))
    assert named(here.start("test.abc", goal="Goal 0")) == []
