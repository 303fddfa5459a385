"""Prompts that follow how a run may stop, and the prompts that parallel steps carry for subagents."""

import re
from typing import Any

import pytest
from tests.support.flow import step

from interlock.kernel.budgets import PARALLEL_PROMPTS_BYTES_MAX
from interlock.kernel.text import utf8_bytes
from interlock.testing.harness import Harness

NEVER_STOPS = {"autonomy": "full_auto_never_stop"}
DECIDE = "decide as the user would, and write each assumption down"
ASKING: dict[str, Any] = {
    "id": "test.asking",
    "name": "Asking",
    "inputs": [{"key": "size", "description": "The size.", "type": "string", "required": False}],
    "steps": [
        step(
            "a",
            promptFragments=[
                {"id": "first", "asksUser": True, "text": "Find out the size from its owner."},
                {"id": "second", "asksUser": True, "text": "Wait for the answer."},
                {"id": "hidden", "asksUser": True, "when": {"var": "size", "equals": "large"}, "text": "Insist."},
            ],
        ),
        step("b", promptFragments=[{"id": "plain", "text": "Say what you saw."}]),
    ],
}


@pytest.mark.inv("PLAN-22", "MODE-8")
def test_a_fragment_that_asks_the_user_is_shown_in_a_run_that_may_stop() -> None:
    prompt = Harness.in_memory(ASKING).start("test.asking", context={"size": "small"})["pending"]["prompt"]
    assert "Find out the size from its owner.\n\nWait for the answer." in prompt
    assert "Insist." not in prompt
    assert DECIDE not in prompt


@pytest.mark.inv("PLAN-22", "MODE-8")
def test_in_a_run_that_never_stops_the_answer_asks_once_to_decide_in_its_place() -> None:
    harness = Harness.in_memory(ASKING)
    first = harness.start("test.asking", context={"size": "large"}, preferences=NEVER_STOPS)
    prompt = first["pending"]["prompt"]
    assert "owner" not in prompt
    assert "Insist." not in prompt
    assert prompt.count(DECIDE) == 1
    following = harness.advance(first)["pending"]["prompt"]
    assert "Say what you saw." in following
    assert DECIDE not in following


def parallel(*branches: list[dict[str, Any]]) -> Harness:
    both = {"type": "parallel", "id": "both", "title": "Both", "branches": [{"steps": steps} for steps in branches]}
    inputs = [{"key": "size", "description": "The size.", "type": "string", "required": False}]
    return Harness.in_memory({"id": "test.both", "name": "Both", "inputs": inputs, "steps": [both, step("z")]})


@pytest.mark.inv("PLAN-21")
def test_the_first_parallel_step_carries_the_prompts_of_the_others_and_no_later_one_does() -> None:
    harness = parallel(
        [step("a"), step("b")],
        [step("c", title="Look at {{size}}", prompt="Find {{size}}.", validationCriteria={"type": "length", "min": 9})],
        [step("d", prompt="Find D.")],
    )
    first = harness.start("test.both", context={"size": "the log"})
    prompt = first["pending"]["prompt"]
    assert "For a subagent, `c` (Look at the log):\n\n> Find the log." in prompt
    assert "For a subagent, `d`" in prompt
    assert re.search(r"^> - .*9 characters", prompt, re.MULTILINE), "the evidence of the part belongs to its prompt"
    second = harness.advance(first)
    assert second["pending"]["stepId"] == "b"
    assert second["pending"]["parallelWith"] == ["c", "d"]
    third = harness.advance(second)
    for answer in (second, third):
        assert "For a subagent" not in answer["pending"]["prompt"]


@pytest.mark.inv("PLAN-21")
def test_prompts_of_parallel_steps_that_do_not_fit_are_named() -> None:
    long = "Read it. " * (PARALLEL_PROMPTS_BYTES_MAX // 20)
    harness = parallel([step("a")], *([step(name, prompt=long)] for name in "bcde"))
    prompt = harness.start("test.both")["pending"]["prompt"]
    assert prompt.count("For a subagent") == 2
    assert "The prompts of `d`, `e` follow when these steps are pending." in prompt
    assert utf8_bytes(prompt) < PARALLEL_PROMPTS_BYTES_MAX + 1_000


@pytest.mark.inv("WALK-5", "PLAN-21")
@pytest.mark.parametrize("context", [{"size": "large"}, {"size": "small"}, {}])
def test_a_parallel_step_behind_a_decision_is_not_named_until_the_run_has_made_it(context: dict[str, str]) -> None:
    """Even where the condition is true: the report of the pending step can change what it reads."""
    harness = parallel([step("a")], [step("b", when={"var": "size", "equals": "large"}), step("d")], [step("c")])
    first = harness.start("test.both", context=context)
    assert first["pending"]["parallelWith"] == ["c"]
    assert "`b`" not in first["pending"]["prompt"]
    second = harness.advance(first, context={"size": "large"})
    assert second["pending"]["stepId"] == "b"
    assert second["pending"]["parallelWith"] == ["c"]


@pytest.mark.inv("PLAN-21")
def test_a_prompt_for_a_subagent_comes_with_the_first_answer_that_names_its_step() -> None:
    inner = {"type": "parallel", "id": "inner", "title": "Inner", "branches": [{"steps": [step(one)]} for one in "cd"]}
    harness = parallel([step("a")], [step("b"), inner])
    first = harness.start("test.both")
    assert first["pending"]["parallelWith"] == ["b"]
    assert first["pending"]["prompt"].count("For a subagent") == 1
    second = harness.advance(first)
    assert (second["pending"]["stepId"], second["pending"].get("parallelWith")) == ("b", None)
    third = harness.advance(second)
    assert (third["pending"]["stepId"], third["pending"]["parallelWith"]) == ("c", ["d"])
    assert "For a subagent, `d`" in third["pending"]["prompt"]
