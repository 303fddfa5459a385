"""Lazy agents bring next to no bundled run to a plain end, and an agent that works is hardly ever refused."""

from collections import Counter
from itertools import pairwise

import pytest
from tests.agents.honest import begun_with, honest_answers, serving
from tests.agents.lazy import LAZINESS, End, Laziness, LazyAgent
from tests.unit.test_bundled_failures import asks_a_person
from tests.unit.test_bundled_workflows import SOURCES

PLAIN_ENDS_MAX = 0.02
REFUSALS_MAX = 0.2
IDS = tuple(SOURCES)


def ends(seeds: range) -> Counter[tuple[Laziness, End]]:
    """Return how runs end: each seed is one kind of laziness in one workflow."""
    found = Counter[tuple[Laziness, End]]()
    for seed in seeds:
        kind, workflow_id = LAZINESS[seed % len(LAZINESS)], IDS[seed // len(LAZINESS) % len(IDS)]
        agent = LazyAgent(harness=serving(workflow_id), kind=kind, seed=seed)
        found[kind, agent.work("test.bundled", begun_with(workflow_id))] += 1
    return found


def assert_few_plain_ends(found: Counter[tuple[Laziness, End]]) -> None:
    plain = {kind: count for (kind, end), count in found.items() if end == "complete"}
    assert sum(plain.values()) <= PLAIN_ENDS_MAX * found.total(), plain
    assert {kind for kind, _ in found} == {*LAZINESS}
    # Those that never stop arrive, and say what they left open.
    assert sum(count for (_, end), count in found.items() if end == "complete with gaps") > found.total() / 10


@pytest.mark.inv("EVID-11")
def test_lazy_agents_do_not_bring_a_run_to_a_plain_end() -> None:
    assert_few_plain_ends(ends(range(len(LAZINESS) * len(IDS))))


@pytest.mark.soak
def test_a_thousand_lazy_agents_bring_next_to_no_run_to_a_plain_end() -> None:
    assert_few_plain_ends(ends(range(1_000)))


def honest_run(workflow_id: str) -> tuple[int, int]:
    """Work through a workflow; return how many reports were sent and how many of them were refused."""
    answers = list(honest_answers(workflow_id))
    refused = [one["kind"] == "blocked" and not asks_a_person(before) for before, one in pairwise(answers)]
    return len(refused), sum(refused)


@pytest.mark.inv("EVID-11")
def test_an_agent_that_works_finishes_every_bundled_workflow_with_few_refusals() -> None:
    runs = {workflow_id: honest_run(workflow_id) for workflow_id in IDS}
    reports, refusals = (sum(counts) for counts in zip(*runs.values(), strict=True))
    assert refusals <= REFUSALS_MAX * reports, runs
