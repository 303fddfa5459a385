"""Spawn to first answer and memory, against a bare echo server on the same SDK, by turns, in both eras."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.load import Sent, Site, linear_workflow

from benchmarks.table import Figure, at_most, ms, told
from benchmarks.wire import ECHO, ERAS, Era, Wire, serving, start, temporary_site

SPAWNS = 21
RATIO_MAX, PEAK_RATIO_MAX = 1.25, 1.3
GROWTH_MIB_MAX = 30.0
STEPS, SESSIONS = 1_000, 100
LONG, SHORT = "bench.long", "bench.short"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Seconds from the spawn to three answers (first, `tools/list`, a tool's), and the peak memory at the first."""

    first: float
    listed: float
    called: float
    peak_kib: int


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure spawns in both eras, then growth."""
    found: list[Figure] = []
    with temporary_site() as site:
        for era in ERAS:
            found += _spawns(site, era, 5 if is_quick else SPAWNS)
    return found + _growth()


def _spawns(site: Site, era: Era, count: int) -> list[Figure]:
    def ours() -> Spawn:
        wire = Wire(site.command(), era=era, extra=site.environment())
        return _spawned(wire, Sent(tool="list_workflows", arguments={}))

    def bare() -> Spawn:
        return _spawned(Wire(ECHO, era=era), Sent(tool="echo", arguments={"text": "x"}))

    # The first of each writes the byte code that the others find.
    pairs = [(ours(), bare()) for _ in range(count + 1)][1:]
    mine, echo = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    first, floor = ms(one.first for one in mine), ms(one.first for one in echo)
    peak, peak_floor = (statistics.median(one.peak_kib for one in side) / 1024 for side in (mine, echo))
    beside = f"{peak:.1f} / {peak_floor:.1f} MiB"
    return [
        at_most(
            f"spawn to first answer / echo, {era}", first / floor, RATIO_MAX, beside=f"{first:.0f} / {floor:.0f} ms"
        ),
        _ratio(f"spawn to tools/list / echo, {era}", ms(one.listed for one in mine), ms(one.listed for one in echo)),
        _ratio(
            f"spawn to a tool's answer / echo, {era}", ms(one.called for one in mine), ms(one.called for one in echo)
        ),
        at_most(f"peak memory at first answer / echo, {era}", peak / peak_floor, PEAK_RATIO_MAX, beside=beside),
    ]


def _ratio(what: str, mine: float, echo: float) -> Figure:
    return told(what, f"{mine / echo:.2f} ({mine:.0f} / {echo:.0f} ms)")


def _spawned(wire: Wire, call: Sent) -> Spawn:
    with wire:
        wire.hello()
        first = time.perf_counter() - wire.begun
        peak = wire.memory_kib("VmHWM")
        wire.request("tools/list", {})
        listed = time.perf_counter() - wire.begun
        wire.call(call)
        return Spawn(first=first, listed=listed, called=time.perf_counter() - wire.begun, peak_kib=peak)


def _growth() -> list[Figure]:
    with temporary_site() as site:
        site.add_workflow(linear_workflow(LONG, STEPS + 1))
        site.add_workflow(linear_workflow(SHORT, 10))
        one = _grown(site, lambda wire: _worked(wire, LONG, STEPS))
        many = _grown(site, lambda wire: [_worked(wire, SHORT, 10) for _ in range(SESSIONS)])
    return [
        at_most(f"peak memory above own start after {STEPS} steps in one session", one, GROWTH_MIB_MAX, " MiB"),
        at_most(f"the same after {SESSIONS} sessions in turn", many, GROWTH_MIB_MAX, " MiB"),
    ]


def _grown(site: Site, work: Callable[[Wire], object]) -> float:
    """Return by how many MiB the peak after some work is above what a fresh server holds after its first answer."""
    with serving(site) as wire:
        begun = wire.memory_kib("VmRSS")
        work(wire)
        return (wire.memory_kib("VmHWM") - begun) / 1024


def _worked(wire: Wire, workflow_id: str, steps: int) -> None:
    answer = wire.call(start(workflow_id))
    for _ in range(steps):
        call = answer.next_call()
        assert call is not None, "the workflow has more steps"
        answer = wire.call(call)
