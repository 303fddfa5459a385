"""Loading a session of 1,000 steps in a process that has never seen it."""

import subprocess
import sys

from tests.support.load import Site, linear_workflow

from benchmarks.durability import LONG, SHORT, Bench
from benchmarks.table import Figure, at_most, ms
from benchmarks.wire import environment, temporary_site

STEPS = 1_000
LOAD_MS_MAX = 400.0

_LOAD_ONCE = """
import sys, time
from pathlib import Path
from interlock.store.local.store import LocalStore
store = LocalStore(Path(sys.argv[1]))
began = time.perf_counter()
session = store.load(sys.argv[2])
print(time.perf_counter() - began, len(session.advances))
"""


def figures(*, is_quick: bool) -> list[Figure]:
    """Load both shapes of history in fresh processes; only the load is timed."""
    rounds = 3 if is_quick else 9
    with temporary_site() as site:
        site.add_workflow(linear_workflow(SHORT, 10))
        site.add_workflow(linear_workflow(LONG, STEPS + 1))
        found: list[Figure] = []
        for workflow_id, shape in ((SHORT, "runs of 10 steps"), (LONG, "one linear run")):
            Bench(site).costs(workflow_id, STEPS)
            session = max((site.data_dir / "sessions").iterdir(), key=lambda path: path.stat().st_ctime_ns).name
            seconds = [_loaded(site, session) for _ in range(rounds + 1)][1:]
            found.append(at_most(f"cold load of {STEPS} steps, {shape}", ms(seconds), LOAD_MS_MAX, " ms"))
    return found


def _loaded(site: Site, session: str) -> float:
    """Return the seconds that a fresh process takes to load a session.

    Raises:
        RuntimeError: It found another history than was written.
    """
    command = [sys.executable, "-c", _LOAD_ONCE, str(site.data_dir), session]
    said = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout
    seconds, advances = said.split()
    if int(advances) != STEPS:
        raise RuntimeError(f"{advances} advances were loaded")
    return float(seconds)
