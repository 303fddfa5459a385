"""What a person waits for: the start of a run in a git repository, a search over many sessions, and a report."""

import os
import subprocess
import sys
import time

from tests.support.load import Sent, Site, linear_workflow

from benchmarks.many_sessions import make_sessions
from benchmarks.table import Figure, at_most, ms, noted
from benchmarks.wire import Wire, environment, serving, start, temporary_site

WORKFLOW = "bench.start"
STEPS = 10
WARM_MS_MAX, COLD_MS_MAX = 25.0, 80.0
RESUME_WARM_MS_MAX, RESUME_COLD_MS_MAX = 40.0, 250.0
SHOW_MS_MAX = 150.0


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure starts in a repository, then searches and reports over many sessions."""
    return [*_starts(3 if is_quick else 9), *_over_many(200 if is_quick else 2_000, 2 if is_quick else 5)]


def _starts(rounds: int) -> list[Figure]:
    cold: list[float] = []
    warm: list[float] = []
    with temporary_site() as site:
        site.add_workflow(linear_workflow(WORKFLOW, STEPS))
        _make_repository(site)
        for _ in range(rounds):
            with serving(site) as wire:
                # The imports of a new process are not part of a start: `spawning` measures them.
                wire.call(Sent(tool="resume_session", arguments={}))
                cold.append(_timed(wire, start(WORKFLOW)))
                warm += [_timed(wire, start(WORKFLOW)) for _ in range(3)]
    return [
        at_most("start_workflow in a git repository, first of a server", ms(cold), COLD_MS_MAX, " ms"),
        at_most("start_workflow in a git repository, later ones", ms(warm), WARM_MS_MAX, " ms"),
    ]


def _make_repository(site: Site) -> None:
    git = ["git", "-C", str(site.root), "-c", "user.name=b", "-c", "user.email=b@localhost"]
    for words in (["init", "--quiet"], ["add", ".interlock"], ["commit", "--quiet", "--message", "Begin"]):
        subprocess.run([*git, *words], check=True, capture_output=True)


def _timed(wire: Wire, call: Sent) -> float:
    began = time.perf_counter()
    wire.call(call)
    return time.perf_counter() - began


def _over_many(count: int, servers: int) -> list[Figure]:
    search = Sent(tool="resume_session", arguments={"query": "search index"})
    first, warm, shown, bare = list[float](), list[float](), list[float](), list[float]()
    with temporary_site() as site:
        made = make_sessions(site.data_dir, sessions=count)
        # What was just written reaches the disk first, not while it is read.
        os.sync()
        for _ in range(servers):
            with serving(site) as wire:
                wire.call(Sent(tool="list_workflows", arguments={}))
                first.append(_timed(wire, search))
                warm += [_timed(wire, search) for _ in range(3)]
            for _ in range(3):
                shown.append(_shown(site, made[-1].session))
                bare.append(_run([sys.executable, "-c", "import json"]))
    return [
        at_most(f"resume_session over {count} sessions, first of a server", ms(first), RESUME_COLD_MS_MAX, " ms"),
        at_most(f"resume_session over {count} sessions, later ones", ms(warm), RESUME_WARM_MS_MAX, " ms"),
        at_most("`session show` as a new process", ms(shown), SHOW_MS_MAX, " ms"),
        noted("a Python process that imports json", f"{ms(bare):.0f} ms"),
    ]


def _shown(site: Site, session: str) -> float:
    return _run([sys.executable, "-m", "interlock", "session", "show", session, "--data-dir", str(site.data_dir)])


def _run(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    return time.perf_counter() - began
