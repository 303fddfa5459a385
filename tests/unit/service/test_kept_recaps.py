"""A recap is the same whether its parts are kept from an earlier call or read again."""

import random
from typing import cast

import pytest
from tests.support.words import many_words

from interlock.kernel.budgets import RECAP_NODES_MAX
from interlock.kernel.frozen import replace
from interlock.kernel.text import TRUNCATION_MARKER
from interlock.service.run.plans import Plans
from interlock.service.tools.recap import DONE_SO_FAR
from interlock.testing.harness import Harness, ToolResult, linear_workflow

STEPS = [f"s{number}" for number in range(40)]


def with_plans(harness: Harness, plans: Plans) -> Harness:
    """Return the harness with another cache."""
    return replace(harness, ports=replace(harness.ports, read=replace(harness.ports.read, plans=plans)))


def read_again(harness: Harness, answer: ToolResult) -> ToolResult:
    """Show a step as a process does that has kept nothing."""
    return with_plans(harness, Plans(harness.ports.read.reader)).rehydrate(answer)


def worked(harness: Harness, chance: random.Random, at: ToolResult, notes: str | None) -> ToolResult:
    """Do something at a step: report it, on a new branch if it is done, or leave a checkpoint."""
    shown = harness.rehydrate(at)
    if shown["isComplete"]:
        return shown
    if "fork" in shown.structure:
        return harness.advance(shown["fork"]["ackToken"], notes)
    if chance.random() < 0.2:
        harness.checkpoint(shown)
    return harness.advance(shown, notes)


@pytest.mark.inv("REC-1", "ADV-8")
@pytest.mark.parametrize("seed", range(4))
def test_a_recap_follows_from_the_log_alone(seed: int) -> None:
    chance, document = random.Random(seed), linear_workflow("test.long", *STEPS)
    cast("list[dict[str, str]]", document["steps"])[7]["title"] = "At {{place}}"
    harness = Harness.in_memory(document)
    answers = [harness.start("test.long", goal="G", context={"place": "home"})]
    for number in range(60):
        at = answers[-1] if chance.random() < 0.8 else chance.choice(answers)
        words = f"Note {number}: {many_words(chance.choice([10, 60, 300, 1_200, 8_000]))}"
        answer = worked(harness, chance, at, words if chance.random() < 0.9 else None)
        assert not answer.is_error, answer.text
        if answer.structure.get("kind") == "ok":
            answers.append(answer)
        for shown in (answers[-1], chance.choice(answers)):
            assert harness.rehydrate(shown) == read_again(harness, shown)
    assert len(answers) > 40


@pytest.mark.inv("REC-1")
def test_a_copy_of_a_session_with_other_notes_gets_its_own_recap() -> None:
    """As after a session was deleted and a redacted copy of it was restored under its id."""
    shown = list[str]()
    plans: Plans | None = None
    for word in ("secret", "public"):
        harness = Harness.in_memory(linear_workflow("test.abc", *STEPS[:4]))
        plans = plans or harness.ports.read.plans
        at = harness.start("test.abc", goal="G")
        for number in range(3):
            at = harness.advance(at, f"{word} {number}")
            shown.append(with_plans(harness, plans).rehydrate(at)["recap"])
    assert len(set(shown)) == 6
    assert shown[-1] == DONE_SO_FAR + "\n\n".join(f"`Step s{number}`:\n> public {number}" for number in (2, 1, 0))


@pytest.mark.inv("REC-1")
def test_a_recap_of_kept_parts_reads_no_more_nodes_than_another() -> None:
    count = RECAP_NODES_MAX - 20
    harness = Harness.in_memory(linear_workflow("test.short", *(f"s{number}" for number in range(count + 1))))
    at = harness.start("test.short", goal="G")
    for number in range(count):
        if number % 8 == 0:
            # A refused attempt is a node without notes of the step.
            at = harness.rehydrate(harness.advance(at, None))
        at = harness.advance(at, f"n{number}")
        if number > RECAP_NODES_MAX - 28:
            assert harness.rehydrate(at) == read_again(harness, at)
    assert harness.rehydrate(at)["recap"].endswith(TRUNCATION_MARKER)
