"""Spawn to first answers and memory, compared with two floors by turns, in both eras.

The floors are an echo server on the same SDK, one that is written by hand without any SDK, and one on the TypeScript
SDK where `make clients` has installed that.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.load import Sent, Site, linear_workflow

from benchmarks.table import Figure, at_most, ms
from benchmarks.wire import BARE, ECHO, ERAS, Era, Wire, serving, start, temporary_site, typescript_echo

SPAWNS = 21
FIRST_RATIO_MAX, LISTED_RATIO_MAX, CALLED_RATIO_MAX, PEAK_RATIO_MAX = 0.10, 0.12, 1.0, 1.3
GROWTH_MIB_MAX = 30.0
STEPS, SESSIONS = 1_000, 100
LONG, SHORT = "bench.long", "bench.short"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Seconds from the spawn to three answers (first, `tools/list`, a tool's), and the peak memory at the last."""

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
    listing, echoed = Sent(tool="list_workflows", arguments={}), Sent(tool="echo", arguments={"text": "x"})
    floors = {"echo": ECHO, "by hand": BARE}
    if (typescript := typescript_echo()) is not None:
        floors["TypeScript"] = typescript

    def spawn_each() -> dict[str, Spawn]:
        ours = _spawned(Wire(site.command(), era=era, extra=site.environment()), listing)
        return {"ours": ours, **{name: _spawned(Wire(floor, era=era), echoed) for name, floor in floors.items()}}

    # The first of each writes the byte code that the others find.
    rounds = [spawn_each() for _ in range(count + 1)][1:]
    peak, peak_floor = (statistics.median(one[name].peak_kib for one in rounds) / 1024 for name in ("ours", "echo"))
    beside = f"{peak:.1f} / {peak_floor:.1f} MiB"
    moments: list[tuple[str, float, Callable[[Spawn], float]]] = [
        ("first answer", FIRST_RATIO_MAX, lambda one: one.first),
        ("tools/list", LISTED_RATIO_MAX, lambda one: one.listed),
        ("a tool's answer", CALLED_RATIO_MAX, lambda one: one.called),
    ]
    found: list[Figure] = []
    for what, limit, moment in moments:
        took = {name: ms(moment(one[name]) for one in rounds) for name in ("ours", *floors)}
        others = "; ".join(f"{name} {took[name]:.0f} ms" for name in floors if name != "echo")
        times = f"{took['ours']:.0f} / {took['echo']:.0f} ms; {others}"
        found.append(at_most(f"spawn to {what} / echo, {era}", took["ours"] / took["echo"], limit, beside=times))
    found.append(at_most(f"peak memory after these / echo, {era}", peak / peak_floor, PEAK_RATIO_MAX, beside=beside))
    return found


def _spawned(wire: Wire, call: Sent) -> Spawn:
    with wire:
        wire.hello()
        first = time.perf_counter() - wire.begun
        wire.request("tools/list", {})
        listed = time.perf_counter() - wire.begun
        wire.call(call)
        called = time.perf_counter() - wire.begun
        return Spawn(first=first, listed=listed, called=called, peak_kib=wire.memory_kib("VmHWM"))


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
        # The front answers before the server is imported: a tool's answer shows that it is.
        wire.call(Sent(tool="list_workflows", arguments={}))
        begun = wire.memory_kib("VmRSS")
        work(wire)
        return (wire.memory_kib("VmHWM") - begun) / 1024


def _worked(wire: Wire, workflow_id: str, steps: int) -> None:
    answer = wire.call(start(workflow_id))
    for _ in range(steps):
        call = answer.next_call()
        assert call is not None, "the workflow has more steps"
        answer = wire.call(call)
