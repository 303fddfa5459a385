"""An advance and a rehydrate compared with the smallest durable server on the SDK, by turns in one run.

The sessions have 10, 1,000 and 5,000 steps of history in short runs, and plans of 20 and of 1,100 steps. Throughput
over 8 and 16 sessions is compared with the same server, and four processes with one.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.support.load import Heard, Sent, linear_workflow

from benchmarks.floors import FiveSyncs
from benchmarks.history import YOUNG_FROM, YOUNG_TO, Line, Young
from benchmarks.table import Figure, at_most, least, ms, noted
from benchmarks.wire import MINIMAL, MINIMAL_NOTES, SYNC_MS, Wire, call_params, heard, serving, start, temporary_site
from interlock.kernel.canonical import Json

SHORT, PLAN_SHORT, PLAN_LONG, MANY = "bench.short", "bench.plan20", "bench.plan1100", "bench.many"
SHORT_STEPS, PLAN_STEPS, LONG_DONE = 10, 1_100, 900
ADVANCE_RATIO_MAX, LOOK_RATIO_MAX, PLAN_RATIO_MAX = 1.5, 0.6, 1.15
SLOW_MS, SLOW_ADVANCE_MS_MAX = 5.0, 20.0
THROUGHPUT_MIN, PROCESSES_MIN, PROCESSES, RATE_PASSES = 0.7, 1.6, 4, 6


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure latency, then throughput."""
    depths = (10, 300) if is_quick else (10, 1_000, 5_000)
    rounds, steps = (30, 5) if is_quick else (200, 20)
    return [*_latency(depths, rounds), *_throughput(steps), *_processes(steps)]


def _latency(depths: Sequence[int], rounds: int) -> list[Figure]:
    with temporary_site() as site, ExitStack() as exits:
        site.add_workflow(linear_workflow(SHORT, SHORT_STEPS))
        site.add_workflow(linear_workflow(PLAN_LONG, PLAN_STEPS))
        # A step of the long plan stores a new snapshot. For one of a short plan to do so too, each plan runs once.
        fresh = [f"{PLAN_SHORT}-{number}" for number in range(rounds // (YOUNG_TO - YOUNG_FROM) + 2)]
        for workflow_id in fresh:
            site.add_workflow(linear_workflow(workflow_id, 20))
        wire = exits.enter_context(serving(site))
        minimal = exits.enter_context(minimal_server(site.root / "minimal"))
        floor = FiveSyncs(site.root)
        lines = {depth: Line(wire, SHORT) for depth in depths}
        for depth, line in lines.items():
            line.grow(depth)
        long = Line(wire, PLAN_LONG)
        long.grow(LONG_DONE if rounds > 100 else 100)
        young = Young(wire, iter(fresh))
        contestants: dict[str, Callable[[], float]] = {
            "five": floor.append_once,
            "minimal": MinimalSession(minimal).advance,
            "plan": long.advance,
            "plan20": young.advance,
            "look": long.rehydrate,
            **{f"at {depth}": line.advance for depth, line in lines.items()},
        }
        taken: dict[str, list[float]] = {name: [] for name in contestants}
        # In one order, the first call to a server after one to another would always find cold caches.
        order, chance = list(contestants), random.Random(0)
        for _ in range(rounds):
            chance.shuffle(order)
            for name in order:
                taken[name].append(contestants[name]())
    found = {name: ms(times[5:]) for name, times in taken.items()}
    return _judged(found, depths)


def _judged(found: dict[str, float], depths: Sequence[int]) -> list[Figure]:
    base = found["minimal"]
    figures = [
        noted("five syncs, as an advance orders them", f"{found['five']:.2f} ms"),
        noted("an advance of the minimal durable server", f"{base:.2f} ms"),
    ]
    for depth in depths:
        took = found[f"at {depth}"]
        beside = f"{took:.2f} / {base:.2f} ms"
        figures.append(at_most(f"advance at {depth} steps / minimal", took / base, ADVANCE_RATIO_MAX, beside=beside))
    if float(os.environ.get(SYNC_MS, "0")) == SLOW_MS:
        slow = found[f"at {depths[0]}"]
        figures.append(at_most(f"advance, each sync {SLOW_MS:g} ms slower", slow, SLOW_ADVANCE_MS_MAX, " ms"))
    look, plan, short = found["look"], found["plan"], found["plan20"]
    ratio = f"advance in a plan of {PLAN_STEPS} steps / of 20"
    return [
        *figures,
        at_most("rehydrate / minimal's advance", look / base, LOOK_RATIO_MAX, beside=f"{look:.2f} / {base:.2f} ms"),
        at_most(ratio, plan / short, PLAN_RATIO_MAX, beside=f"{plan:.2f} / {short:.2f} ms"),
    ]


def minimal_server(root: Path) -> Wire:
    """Return the minimal server, greeted."""
    wire = Wire([*MINIMAL, str(root)])
    wire.hello()
    return wire


class MinimalSession:
    """One session of the minimal server, advanced one call after another."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._tokens = wire.advance_minimal("one")

    def advance(self) -> float:
        """Make one call; return the seconds that took."""
        began = time.perf_counter()
        self._tokens = self._wire.advance_minimal("one", self._tokens)
        return time.perf_counter() - began


@dataclass(slots=True)
class _Queue:
    """The calls that one server still has to answer, by their ids, and how many it has answered."""

    wire: Wire
    left: dict[str, int]
    waiting: dict[int, tuple[str, Sent | None]]
    answered: int = 0

    def send(self, session: str, call: Sent | None, tokens: Json = None) -> None:
        """Send the next call of a session, if it has one left."""
        if not self.left[session]:
            return
        self.left[session] -= 1
        notes = f"{MINIMAL_NOTES}{self.left[session]}"
        minimal = Sent(tool="advance", arguments={"session": session, "notes": notes, "tokens": tokens})
        params = call_params(call or minimal)
        self.waiting[self.wire.send("tools/call", params)] = (session, call)

    def receive(self) -> None:
        """Receive one answer, and send the next call of its session."""
        identity, result = self.wire.receive()
        session, call = self.waiting.pop(identity)
        if result.get("isError"):
            raise RuntimeError(f"a lawful call was refused: {result}")
        self.answered += 1
        if call is not None:
            self.send(session, heard(call, result).next_call())
        else:
            structure = result["structuredContent"]
            assert isinstance(structure, dict), "as the minimal server answers"
            self.send(session, None, structure["tokens"])


def _ours(wire: Wire, sessions: int, steps: int) -> _Queue:
    """Return a queue over so many runs, with the first call of each sent."""
    answers: list[Heard] = [wire.call(start(MANY)) for _ in range(sessions)]
    queue = _Queue(wire, {str(number): steps for number in range(sessions)}, {})
    for number, answer in enumerate(answers):
        queue.send(str(number), answer.next_call())
    return queue


def _theirs(minimal: Wire, number: int, sessions: int, steps: int) -> _Queue:
    """Return a queue over so many sessions of the minimal server, with the first call of each sent."""
    queue = _Queue(minimal, {f"{number}-{sessions}-{one}": steps for one in range(sessions)}, {})
    for session in list(queue.left):
        queue.send(session, None)
    return queue


def _rate(queues: Sequence[_Queue]) -> float:
    """Answer everything, each server in a thread of its own; return the answers in a second."""

    def answer_all(queue: _Queue) -> None:
        while queue.waiting:
            queue.receive()

    threads = [threading.Thread(target=answer_all, args=(queue,)) for queue in queues]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(queue.answered for queue in queues) / (time.perf_counter() - began)


def _throughput(steps: int) -> list[Figure]:
    found: list[Figure] = []
    with temporary_site() as site, ExitStack() as exits:
        site.add_workflow(linear_workflow(MANY, steps + 2))
        wire = exits.enter_context(serving(site))
        minimal = exits.enter_context(minimal_server(site.root / "minimal"))
        for sessions in (8, 16):
            rate, base = _alternating(
                lambda _: [_ours(wire, sessions, steps)],  # noqa: B023 — called in this pass
                lambda at: [_theirs(minimal, at, sessions, steps)],  # noqa: B023 — called in this pass
            )
            what = f"advances a second over {sessions} sessions / minimal"
            found.append(least(what, rate / base, THROUGHPUT_MIN, f"{rate:.0f} / {base:.0f}"))
    return found


def _processes(steps: int) -> list[Figure]:
    with temporary_site() as site, ExitStack() as exits:
        site.add_workflow(linear_workflow(MANY, steps + 2))
        wires = [exits.enter_context(serving(site)) for _ in range(PROCESSES)]
        one, four = _alternating(
            lambda _: [_ours(wires[0], PROCESSES, steps)],
            lambda _: [_ours(wire, 1, steps) for wire in wires],
        )
    what = f"{PROCESSES} processes / one, {PROCESSES} sessions"
    return [least(what, four / one, PROCESSES_MIN, f"{four:.0f} / {one:.0f}")]


def _alternating(one: Callable[[int], list[_Queue]], other: Callable[[int], list[_Queue]]) -> tuple[float, float]:
    """Return the median rates of two contestants that answer their queues by turns. The first pass warms them up."""
    rates = [(_rate(one(at)), _rate(other(at))) for at in range(RATE_PASSES)][1:]
    return median(rate for rate, _ in rates), median(rate for _, rate in rates)
