"""Agents that want a demanded proof to count without giving it: which tricks pass, and what an honest agent pays."""

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.agents.proof_tricks import LIMITS, TRICKS, passes, played, played_honestly
from tests.support.modes import status_of

from benchmarks.table import Figure, at_most, noted
from interlock.record.world import Assurance

SEEDS, HONEST = 1_000, 200
EXTRA_CALLS_MAX = 0.3
LEVELS: tuple[Assurance, ...] = ("claimed", "observed")


def figures(*, is_quick: bool) -> list[Figure]:
    """Play each trick with many seeds against both levels, then an honest agent at the same step."""
    count, honest = (SEEDS // 50, HONEST // 10) if is_quick else (SEEDS, HONEST)
    found = list[Figure]()
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for name in TRICKS:
            passed = sum(processes.map(partial(_passes, name), range(count), chunksize=20))
            found.append(at_most(f"{name}: passed the proof", passed, 0, beside=f"of {count}"))
        extra = sum(processes.map(_extra_calls, range(honest), chunksize=20)) / honest
    found.append(at_most("honest agent: extra calls a proof", extra, EXTRA_CALLS_MAX, beside=f"of {honest}"))
    for name in LIMITS:
        levels = [one["level"] for level in LEVELS for one in passes(played(name, level, 1))]
        found.append(noted(f"limit: {name}", f"passes, recorded as {', '.join(sorted(set(levels)))}"))
    return found


def _passes(name: str, seed: int) -> bool:
    """Play a trick; say whether the step was passed or the run is complete."""
    world = played(name, LEVELS[seed % len(LEVELS)], seed)
    return bool(passes(world)) or status_of(world.harness, world.start) == "complete"


def _extra_calls(seed: int) -> int:
    """Play an honest agent; return the reports that it needed beyond one."""
    return played_honestly(LEVELS[seed % len(LEVELS)], seed).calls - 1
