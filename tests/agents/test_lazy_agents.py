"""Lazy agents bring next to no bundled run to a plain end, and an agent that works is hardly ever refused."""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from tests.agents.lazy import LAZINESS, WORKED_ONCE, End, Laziness, LazyAgent
from tests.support.modes import claim
from tests.unit.test_bundled_failures import FULL, NEEDED, asks_a_person
from tests.unit.test_bundled_workflows import SOURCES

from interlock.kernel.canonical import Json
from interlock.testing.harness import Harness, filled_in

PLAIN_ENDS_MAX = 0.02
REFUSALS_MAX = 0.2
CALLS_MAX = 120
IDS = tuple(SOURCES)


@cache
def serving(workflow_id: str) -> Harness:
    """Return a harness that serves a bundled workflow under the id of a project's own."""
    return Harness.in_memory(SOURCES[workflow_id] | {"id": "test.bundled"})


def begun_with(workflow_id: str) -> Mapping[str, Json]:
    return {one["key"]: NEEDED[one["key"]] for one in SOURCES[workflow_id].get("inputs", ()) if one.get("required")}


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
    harness = serving(workflow_id)
    answer = harness.start("test.bundled", goal="See it through", context=dict(begun_with(workflow_id)))
    reports = refusals = 0
    while not answer["isComplete"]:
        reports += 1
        assert reports < CALLS_MAX, answer.text
        title = answer["pending"]["title"]
        sent: dict[str, Any] = filled_in(answer, f"{title}, report {reports}: {WORKED_ONCE}")
        if "context" in sent:
            sent["context"] = {key: FULL.get(key, value) for key, value in sent["context"].items()}
        if asks_a_person(answer):
            sent["output"] = {"artifacts": [claim()]}
        answer = harness.call("continue_workflow", sent)
        assert not answer.is_error, answer.text
        refusals += answer["kind"] == "blocked" and not asks_a_person(answer)
    return reports, refusals


@pytest.mark.inv("EVID-11")
def test_an_agent_that_works_finishes_every_bundled_workflow_with_few_refusals() -> None:
    runs = {workflow_id: honest_run(workflow_id) for workflow_id in IDS}
    reports, refusals = (sum(counts) for counts in zip(*runs.values(), strict=True))
    assert refusals <= REFUSALS_MAX * reports, runs
