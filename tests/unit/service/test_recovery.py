"""What an agent without memory reads beside the step: enough to go on, within a budget, from the log alone."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.flow import step

from interlock.kernel.budgets import FUNCTIONS_BYTES_MAX, RECAP_BYTES_MAX
from interlock.kernel.text import TRUNCATION_MARKER, utf8_bytes
from interlock.testing.harness import Harness, ToolResult, linear_workflow


def artifacts(*kinds: str) -> dict[str, Any]:
    return {"notesMarkdown": "Done.", "artifacts": [{"kind": kind} for kind in kinds]}


@pytest.mark.inv("REC-1")
def test_a_step_that_is_done_is_reported_with_what_came_after_it_and_its_branches(harness: Harness) -> None:
    first = harness.start("test.abc")
    second = harness.advance(first, "Did a.")
    harness.advance(harness.advance(second, "Did b."), "Did c.")
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    harness.advance(fork, "Did a anew.")
    assert harness.rehydrate(first)["recap"] == (
        "**Done from this step on, newest first**\n\n`Step a`:\n> Did a anew.\n\n"
        "**Branches from this step**\n- 3 steps, now at: Complete\n- 1 steps, now at: `Step b` (continued last)"
    )
    of_second = harness.rehydrate(second)["recap"]
    assert of_second.startswith(
        "**Done from this step on, newest first**\n\n`Step c`:\n> Did c.\n\n`Step b`:\n> Did b."
    )
    assert of_second.endswith("`Step a`:\n> Did a.")
    assert "Branches" not in of_second


@pytest.mark.inv("REC-1")
def test_artifacts_are_named_by_kind_and_digest_and_context_by_its_keys_alone(harness: Harness) -> None:
    second = harness.advance(
        harness.start("test.abc"), None, output=artifacts("one", "two"), context={"secretly": "xyz"}
    )
    third = harness.advance(second, None, output=artifacts("three"))
    looked = harness.rehydrate(third)
    named = looked["recap"].partition("**Stored artifacts, newest first**\n")[2]
    kinds = [line.split("`")[1] for line in named.splitlines() if line.startswith("- ")]
    assert kinds[0] == "three"
    assert sorted(kinds[1:]) == ["one", "two"]
    assert looked["recap"].endswith("**Context keys that are set**: `secretly`")
    assert "xyz" not in looked.text


@pytest.mark.inv("REC-1")
@pytest.mark.parametrize("notes", ["x" * 50, "é" * 2_000, "x" * 5_000])
def test_everything_together_keeps_the_budget(notes: str) -> None:
    names = [f"s{number}" for number in range(30)]
    harness = Harness.in_memory(linear_workflow("test.long", *names))
    answer: ToolResult = harness.start("test.long")
    passed = answer
    for number in range(20):
        output = {"notesMarkdown": notes, "artifacts": [{"kind": f"kind-{number}-{'k' * 90}"}]}
        answer = harness.advance(answer, None, output=output, context={f"key{number}{'y' * 80}": 1})
    harness.checkpoint(answer, notes)
    for place in (answer, passed):
        recap = harness.rehydrate(place)["recap"]
        assert utf8_bytes(recap) <= RECAP_BYTES_MAX
        assert recap in harness.rehydrate(place).text
    assert harness.rehydrate(answer)["recap"].startswith("**Notes of the last checkpoint of this step, `Step s20`**")


@pytest.mark.inv("REC-1", "PLAN-9")
def test_functions_that_later_steps_use_are_defined_where_an_earlier_one_is_looked_at() -> None:
    def using(name: str, *functions: str) -> dict[str, Any]:
        return step(name, functionReferences=list(functions))

    functions = [{"name": name, "definition": f"Means {name}."} for name in ("early", "later")]
    document = {
        "id": "test.fun",
        "name": "Fun",
        "functionDefinitions": functions,
        "steps": [using("a", "early"), using("b", "later", "early"), step("c")],
    }
    harness = Harness.in_memory(document)
    first = harness.start("test.fun")
    harness.advance(harness.advance(first, "Did a."), "Did b.")
    looked = harness.rehydrate(first)
    assert "Means early." in looked["pending"]["prompt"]
    assert "**Functions used since**\n- `later()`: Means later." in looked["recap"]
    assert "Means early." not in looked["recap"]


@pytest.mark.inv("PLAN-9")
def test_functions_beyond_the_budget_are_cut_and_counted() -> None:
    functions = [{"name": f"f{number}", "definition": "x" * 1_900} for number in range(6)]
    document = {
        "id": "test.fun",
        "name": "Fun",
        "functionDefinitions": functions,
        "steps": [step("a", functionReferences=[one["name"] for one in functions])],
    }
    prompt = Harness.in_memory(document).start("test.fun")["pending"]["prompt"]
    section = prompt.partition("**Functions used here**")[2].partition("\n\n**Evidence")[0]
    assert utf8_bytes(f"**Functions used here**{section}") <= FUNCTIONS_BYTES_MAX
    assert f"{TRUNCATION_MARKER}\nOmitted 2 function definitions." in section


@pytest.mark.inv("REC-4")
def test_a_removed_source_is_named_and_the_run_continues(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.workflows.remove("test.abc.json")
    looked = harness.rehydrate(first)
    assert looked.warnings == ["WORKFLOW_SOURCE_REMOVED"]
    assert "`test.abc.json of the project source`" in looked.text
    assert "in this workspace" in looked.text
    harness.workflows.put(b"{", ref="test.abc.json")
    assert harness.rehydrate(first).warnings == [], "it is there, and faulty"
    assert harness.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("REC-2")
def test_a_changed_source_is_reported_and_the_run_goes_on_as_it_was_pinned(harness: Harness) -> None:
    first = harness.start("test.abc")
    assert harness.rehydrate(first).warnings == []
    harness.workflows.put(linear_workflow("test.abc", "a", "other"))
    looked = harness.rehydrate(first)
    assert looked.warnings == ["WORKFLOW_SOURCE_CHANGED"]
    assert "only a new run uses" in looked.text
    assert harness.rehydrate(first) == looked
    assert harness.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("REC-2")
def test_a_source_that_is_faulty_says_nothing(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b")
    first = Harness.on_disk(tmp_path, document).start("test.abc")
    assert Harness.on_disk(tmp_path, {**document, "steps": []}).rehydrate(first).warnings == []
