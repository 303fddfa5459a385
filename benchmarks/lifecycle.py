"""What the view of a run's life costs: the events of 1,000 steps, and of one event at 100 and at 1,000 steps."""

import gc
import time

from tests.support.lifecycle import run_of

from benchmarks.table import Figure, at_most, ms
from interlock.kernel.budgets import COLLECTION_VALUES_MIN
from interlock.service.run.context import RunContext
from interlock.service.run.lifecycle import read_lifecycle
from interlock.testing.harness import Harness, linear_workflow
from interlock.views.session import Node

STEPS_OF_PLAN, SHORT, LONG = 18, 100, 1_000
VIEW_MS_MAX, RATIO_MAX = 200, 1.3


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure the view of a loop of a plan of 20 nodes, by turns, with the garbage collection of a command."""
    gc.set_threshold(COLLECTION_VALUES_MIN)
    body = linear_workflow("bench.life", *(f"s{number}" for number in range(STEPS_OF_PLAN)))["steps"]
    passes = LONG // STEPS_OF_PLAN + 1
    repeated = {"loopId": "again", "title": "Again", "maxIterations": passes, "body": body, "for": {"count": passes}}
    harness = Harness.in_memory({"id": "bench.life", "name": "Life", "steps": [repeated]})
    start = answer = harness.start("bench.life")
    short: tuple[RunContext, Node] | None = None
    for step in range(1, LONG + 1):
        answer = harness.advance(answer)
        if step == SHORT:
            short = _tip(run_of(harness, start))
    assert short is not None, "the run is longer"
    long = _tip(run_of(harness, start))
    seconds: dict[int, list[float]] = {SHORT: [], LONG: []}
    events: dict[int, int] = {}
    for _ in range(5 if is_quick else 20):
        for steps, (run, tip) in ((SHORT, short), (LONG, long)):
            began = time.perf_counter()
            events[steps] = len(read_lifecycle(harness.store, run, tip).events)
            seconds[steps].append(time.perf_counter() - began)
    each = {steps: ms(seconds[steps]) / events[steps] for steps in seconds}
    return [
        at_most(f"lifecycle of {LONG} steps, {events[LONG]} events, warm", ms(seconds[LONG]), VIEW_MS_MAX, " ms"),
        at_most(f"lifecycle, cost of one event at {LONG} steps / at {SHORT}", each[LONG] / each[SHORT], RATIO_MAX),
    ]


def _tip(run: RunContext) -> tuple[RunContext, Node]:
    assert run.run.tip is not None, "a run begins with its root"
    return run, run.session.nodes[run.run.tip]
