"""What history costs: an advance and a rehydrate at 1,000 steps against 10, old and young sessions by turns."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

import anyio
from mcp import Client, StdioServerParameters
from tests.support.load import Heard, Sent, Site, linear_workflow

from benchmarks.floors import Disk
from benchmarks.table import Figure, at_most, ms, noted
from benchmarks.wire import ECHO, Wire, environment, serving, session_of, start, temporary_site

SHORT, LONG = "bench.short", "bench.long"
SHORT_STEPS = 10
OLD = 1_000
YOUNG_FROM, YOUNG_TO = 5, 15
RATIO_MAX, ADVANCE_MS_MAX, REHYDRATE_MS_MAX = 1.3, 4.0, 3.0
DISK_MS_MAX = 0.5
"""Above this the absolute budget of an advance does not apply: the disk is to blame."""


class Line:
    """One session with its agent: short runs one after another, or one long run."""

    def __init__(self, wire: Wire, workflow_id: str) -> None:
        self._wire, self._workflow_id = wire, workflow_id
        self.last = wire.call(start(workflow_id))
        self.session = session_of(self.last)
        self.steps = 0

    def advance(self) -> float:
        """Ack the pending step; return the seconds that took. A run that ended is followed by another, untimed."""
        call = self.last.next_call()
        if call is None:
            self.last = self._wire.call(start(self._workflow_id, self.session))
            call = self.last.next_call()
        assert call is not None, "a start leaves a step to do"
        began = time.perf_counter()
        self.last = self._wire.call(call)
        self.steps += 1
        return time.perf_counter() - began

    def rehydrate(self) -> float:
        """Look at the tip; return the seconds that took."""
        look = Sent(tool="continue_workflow", arguments={"stateToken": self.last.structure["stateToken"]})
        began = time.perf_counter()
        self._wire.call(look)
        return time.perf_counter() - began

    def grow(self, steps: int) -> None:
        """Advance until the session has that many steps of history."""
        while self.steps < steps:
            self.advance()


class Young:
    """Sessions that stay young: the next one begins where this one grows too old, with the next workflow."""

    def __init__(self, wire: Wire, workflow_ids: Iterator[str]) -> None:
        self._wire, self._workflow_ids = wire, workflow_ids
        self.line = self._next()

    def advance(self) -> float:
        """See `Line.advance`."""
        if self.line.steps >= YOUNG_TO:
            self.line = self._next()
        return self.line.advance()

    def _next(self) -> Line:
        line = Line(self._wire, next(self._workflow_ids))
        line.grow(YOUNG_FROM)
        return line


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure both shapes of history, and the same at the SDK's client."""
    rounds = 60 if is_quick else 300
    with temporary_site() as site:
        site.add_workflow(linear_workflow(SHORT, SHORT_STEPS))
        site.add_workflow(linear_workflow(LONG, OLD + rounds + 1))
        # A step of a linear run stores a new snapshot. For a young run to do so too, none may have been there before.
        fresh = [f"bench.fresh{number}" for number in range(rounds // (YOUNG_TO - YOUNG_FROM) + 2)]
        for workflow_id in fresh:
            site.add_workflow(linear_workflow(workflow_id, YOUNG_TO + 1))
        with serving(site) as wire:
            runs, linear = Line(wire, SHORT), Line(wire, LONG)
            in_runs = _compared(runs, Young(wire, repeat(SHORT)), Disk(site.root), rounds)
            in_one = _compared(linear, Young(wire, iter(fresh)), Disk(site.root), rounds)
        at_the_client = anyio.run(_at_the_sdk_client, site, runs, rounds)
    return [
        *in_runs.figures(f"one session, runs of {SHORT_STEPS} steps"),
        *in_one.figures("one linear run"),
        at_the_client,
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Medians in milliseconds, taken by turns."""

    floor: float
    old: float
    young: float
    look_old: float
    look_young: float

    def figures(self, shape: str) -> list[Figure]:
        """Judge them."""
        look = f"rehydrate of the tip at {OLD} steps"
        return [
            at_most(
                f"advance p50 at {OLD} steps / at 10, {shape}",
                self.old / self.young,
                RATIO_MAX,
                beside=f"{self.old:.2f} / {self.young:.2f} ms",
            ),
            _advance(f"advance p50 at {OLD} steps, {shape}", self.old, self.floor),
            at_most(f"{look}, {shape}", self.look_old, REHYDRATE_MS_MAX, " ms"),
            noted(f"{look} / at 10, {shape}", f"{self.look_old / self.look_young:.2f}"),
        ]


def _compared(old: Line, young: Young, disk: Disk, rounds: int) -> Compared:
    old.grow(OLD)
    floor: list[float] = []
    at_old: list[float] = []
    at_young: list[float] = []
    for _ in range(rounds):
        floor.append(disk.sync_once())
        at_old.append(old.advance())
        at_young.append(young.advance())
    looks = [(old.rehydrate(), young.line.rehydrate()) for _ in range(rounds)]
    look_old, look_young = (ms(column) for column in zip(*looks, strict=True))
    return Compared(floor=ms(floor), old=ms(at_old), young=ms(at_young), look_old=look_old, look_young=look_young)


def _advance(what: str, found_ms: float, floor_ms: float) -> Figure:
    beside = f"file+directory fsync {floor_ms:.2f} ms"
    if floor_ms < DISK_MS_MAX:
        return at_most(what, found_ms, ADVANCE_MS_MAX, " ms", beside=beside)
    return Figure(
        what=what, found=f"{found_ms:.2f} ms ({beside})", budget=f"<= {ADVANCE_MS_MAX:g} ms if under {DISK_MS_MAX} ms"
    )


async def _at_the_sdk_client(site: Site, old: Line, rounds: int) -> Figure:
    """Go on in the old session of short runs over the SDK's own client, an echo of the same size by turns."""
    command, env = site.command(), environment() | site.environment()
    ours = StdioServerParameters(command=command[0], args=command[1:], env=env)
    bare = StdioServerParameters(command=ECHO[0], args=ECHO[1:], env=env)
    disk = Disk(site.root)
    floor: list[float] = []
    echoed: list[float] = []
    advanced: list[float] = []
    async with Client(ours) as client, Client(bare) as echo:
        answer = old.last
        while len(advanced) < rounds:
            call = answer.next_call() or start(SHORT, old.session)
            answer, seconds = await _timed(client, call)
            if call.tool == "continue_workflow":
                advanced.append(seconds)
            floor.append(disk.sync_once())
            echoed.append((await _timed(echo, Sent(tool="echo", arguments={"text": json.dumps(answer.structure)})))[1])
    what = f"advance p50 at {OLD} steps at the SDK's client (which takes {ms(echoed):.2f} ms for an echo)"
    return _advance(what, ms(advanced), ms(floor))


async def _timed(client: Client, call: Sent) -> tuple[Heard, float]:
    began = time.perf_counter()
    result = await client.call_tool(call.tool, dict(call.arguments))
    seconds = time.perf_counter() - began
    return Heard(call=call, structure=result.structured_content or {}, text=""), seconds
