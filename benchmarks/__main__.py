"""`python -m benchmarks`: run all or some, and print what holds. A budget that does not hold is no error here."""

import argparse
import importlib
import os
import sys

from benchmarks import (
    advance,
    advance_size,
    authoring,
    cold_load,
    concurrency,
    console,
    dishonest,
    durability,
    finding,
    forgetful,
    growing,
    history,
    hostile,
    lifecycle,
    operations,
    spawning,
    starting,
    turns,
    upkeep,
)
from benchmarks.table import Figure, table
from benchmarks.wire import SYNC_MS

BENCHMARKS = {
    "advance": advance.figures,
    "advance-size": advance_size.figures,
    "durability": durability.figures,
    "finding": finding.figures,
    "growing": growing.figures,
    "history": history.figures,
    "cold-load": cold_load.figures,
    "concurrency": concurrency.figures,
    "console": console.figures,
    "spawning": spawning.figures,
    "starting": starting.figures,
    "authoring": authoring.figures,
    "upkeep": upkeep.figures,
    "lifecycle": lifecycle.figures,
    "operations": operations.figures,
    "forgetful": forgetful.figures,
    "dishonest": dishonest.figures,
    "hostile": hostile.figures,
    "turns": turns.figures,
}


def main() -> int:
    """Run what was asked for and return the exit code: 0 unless something failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=BENCHMARKS, help="run one of them")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a measurement")
    parser.add_argument("--sync-ms", type=float, default=0.0, help="slow every sync of a file by this time")
    chosen = parser.parse_args()
    if chosen.sync_ms:
        os.environ[SYNC_MS] = str(chosen.sync_ms)
        importlib.import_module("benchmarks.slow_sync.sitecustomize")
    found: list[Figure] = []
    for name, figures in BENCHMARKS.items():
        if chosen.only in (None, name):
            print(f"{name} ...", file=sys.stderr, flush=True)
            found += figures(is_quick=chosen.quick)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load}\n\n{table(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
