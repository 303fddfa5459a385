"""Many sessions on one server: sustained advances, and eight sessions that do the same step at once."""

import time
from dataclasses import dataclass

from tests.support.load import Heard, Sent, linear_workflow

from benchmarks.floors import Disk
from benchmarks.table import Figure, at_least, at_most, ms, noted
from benchmarks.wire import Wire, call_params, heard, serving, start, temporary_site

WORKFLOW = "bench.many"
SESSIONS, TWINS = 16, 8
RATE_MIN = 250.0


@dataclass(slots=True)
class Tally:
    """How many advances were answered well, how many were not, how long all took, and how long the server worked."""

    advances: int = 0
    failures: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure on a server of its own."""
    steps = 20 if is_quick else 150
    with temporary_site() as site:
        site.add_workflow(linear_workflow(WORKFLOW, steps))
        disk = Disk(site.root)
        with serving(site) as wire:
            floor = [disk.sync_once() for _ in range(50)]
            busy = _sustained(wire, SESSIONS)
            floor += [disk.sync_once() for _ in range(50)]
            twins = _in_step(wire, TWINS)
    rate = busy.advances / busy.seconds
    beside = f"{busy.advances} advances; one file+directory fsync: {ms(floor):.2f} ms"
    return [
        at_least(f"advances a second over {SESSIONS} sessions", rate, RATE_MIN, "/s", beside=beside),
        noted("processor time of the server per advance", f"{busy.cpu_seconds / busy.advances * 1000:.2f} ms"),
        at_most("failures among them", busy.failures, 0),
        at_most(
            f"failures of {TWINS} sessions at the same step at once", twins.failures, 0, beside=f"{twins.advances} ok"
        ),
    ]


def _sustained(wire: Wire, sessions: int) -> Tally:
    """Work through as many runs at once; each session's next call leaves as soon as its answer is there."""
    tally = Tally()
    waiting: dict[int, Sent] = {}
    answers = [wire.call(start(WORKFLOW)) for _ in range(sessions)]
    began, worked = time.perf_counter(), wire.cpu_seconds()
    for answer in answers:
        _send_next(wire, answer, waiting)
    while waiting:
        answer = _received(wire, waiting, tally)
        if answer is not None:
            _send_next(wire, answer, waiting)
    tally.seconds, tally.cpu_seconds = time.perf_counter() - began, wire.cpu_seconds() - worked
    return tally


def _in_step(wire: Wire, sessions: int) -> Tally:
    """Work through as many runs of one workflow step by step: the calls of a step leave together."""
    tally = Tally()
    waiting: dict[int, Sent] = {}
    answers = [wire.call(start(WORKFLOW)) for _ in range(sessions)]
    while answers:
        for answer in answers:
            _send_next(wire, answer, waiting)
        received = [_received(wire, waiting, tally) for _ in list(waiting)]
        answers = [answer for answer in received if answer is not None]
    return tally


def _send_next(wire: Wire, answer: Heard, waiting: dict[int, Sent]) -> None:
    call = answer.next_call()
    if call is not None:
        waiting[wire.send("tools/call", call_params(call))] = call


def _received(wire: Wire, waiting: dict[int, Sent], tally: Tally) -> Heard | None:
    identity, result = wire.receive()
    call = waiting.pop(identity)
    if result.get("isError"):
        tally.failures += 1
        return None
    tally.advances += 1
    return heard(call, result)
