"""Agents that slip, in scenarios: whether they arrive, what they do wrong, and what their slips cost in calls."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import anyio
from tests.agents.agent import LostAgentError
from tests.agents.reading import Channel
from tests.agents.scenarios import DOCUMENTS, SCENARIOS, Kind, Outcome, play, play_over_stdio

from benchmarks.many_sessions import UnsyncedFiles
from benchmarks.table import Figure, at_least, at_most, noted
from interlock.service.clock import SystemClock
from interlock.store.local.store import LocalStore
from interlock.testing.harness import ERAS, Harness

SEEDS, OVER_STDIO = 1_000, 50
EXTRA_MAX = 1.2
CHANNELS: tuple[Channel, ...] = ("structure", "text")


@dataclass(slots=True)
class _Tally:
    """What came of many scenarios."""

    arrived: int = 0
    wrong: int = 0
    extra: int = 0
    calls: int = 0
    slips: Counter[str] = field(default_factory=Counter[str])

    def take(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        self.arrived += outcome.work.is_complete
        self.wrong += len(outcome.wrong)
        self.extra += outcome.extra
        self.calls += outcome.work.calls
        self.slips += outcome.work.faults

    def figures(self, what: str, count: int) -> Iterator[Figure]:
        slips = self.slips.total()
        rate = f"{slips} slips in {self.calls} calls"
        yield at_least(f"{what}: arrived", self.arrived, count, beside=f"of {count}")
        yield at_most(f"{what}: wrong effects", self.wrong, 0)
        yield at_most(f"{what}: extra calls a slip", self.extra / max(slips, 1), EXTRA_MAX, beside=rate)


def figures(*, is_quick: bool) -> list[Figure]:
    """Play each kind of scenario with agents that see one channel alone; and some over stdio, in both eras."""
    seeds = range(SEEDS // 20 if is_quick else SEEDS)
    found, slips = list[Figure](), Counter[str]()
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for kind, channel in product(SCENARIOS, CHANNELS):
            tally = _tallied(processes.map(partial(_played, kind, channel), seeds, chunksize=20))
            found += tally.figures(f"forgetful agent, {kind}, {channel} alone", len(seeds))
            slips += tally.slips
    over_stdio = range(OVER_STDIO // 5 if is_quick else OVER_STDIO)
    found += _tallied(map(_played_over_stdio, over_stdio)).figures("forgetful agent over stdio", len(over_stdio))
    return [*found, *(noted(f"slips: {what}", f"{count}") for what, count in slips.most_common())]


def _tallied(outcomes: Iterable[Outcome | None]) -> _Tally:
    tally = _Tally()
    for outcome in outcomes:
        tally.take(outcome)
    return tally


def _played(kind: Kind, channel: Channel, seed: int) -> Outcome | None:
    """Play a scenario in a data directory of its own, without syncs; None if the agent got lost."""
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / "data"
        harness = Harness.over(LocalStore(path, files=UnsyncedFiles(path)), *DOCUMENTS, clock=SystemClock())
        try:
            return play(harness, kind, seed, channel)
        except LostAgentError:
            return None


def _played_over_stdio(seed: int) -> Outcome | None:
    kinds = tuple(SCENARIOS)
    kind, channel, era = kinds[seed % len(kinds)], CHANNELS[seed // 4 % 2], ERAS[seed // 8 % 2]
    with tempfile.TemporaryDirectory() as root:
        try:
            return anyio.run(play_over_stdio, Path(root), kind, seed, channel, era)
        except LostAgentError:
            return None
