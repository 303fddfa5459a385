"""A data directory of many sessions: finding one, looking at one, a dry collection, and what the doctor says."""

import statistics
import sys
import time
from pathlib import Path

from tests.support.load import Sent, Site

from benchmarks.many_sessions import ADVANCES, SESSIONS, make_sessions
from benchmarks.spent import run_measured
from benchmarks.table import Figure, at_most, noted
from benchmarks.wire import Wire, temporary_site

GC_S_MAX, DOCTOR_S_MAX, PEAK_MIB_MAX = 5.0, 3.0, 200.0
COLD_S_MAX, WARM_MS_MAX, SHOW_MS_MAX = 2.0, 50.0, 300.0
_ROUNDS = 3


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure on 2,000 sessions of 10 advances; with `is_quick` on a tenth of them, which holds no budget."""
    count = SESSIONS // 10 if is_quick else SESSIONS
    with temporary_site() as site:
        made = make_sessions(site.data_dir, sessions=count)
        where = f"of {count} sessions with {ADVANCES} advances each"
        dry, deep = ("gc", "--dry-run"), ("doctor", "--deep")
        gc_s, gc_mib = _measured(site.data_dir, dry)
        doctor_s, _ = _measured(site.data_dir, ("doctor",))
        deep_s, deep_mib = _measured(site.data_dir, deep)
        list_s, list_mib = _measured(site.data_dir, ("session", "list"))
        show_s, _ = _measured(site.data_dir, ("session", "show", made[count // 2].session))
        cold_s, warm_s = _resumed(site)
    if is_quick:
        return [noted(f"gc --dry-run {where}", f"{gc_s:.2f} s"), noted(f"doctor {where}", f"{doctor_s:.2f} s")]
    return [
        at_most(f"gc --dry-run {where}", gc_s, GC_S_MAX, " s"),
        at_most(f"gc --dry-run {where}, peak memory", gc_mib, PEAK_MIB_MAX, " MiB"),
        at_most(f"doctor {where}", doctor_s, DOCTOR_S_MAX, " s"),
        noted(f"doctor --deep {where}", f"{deep_s:.2f} s, {deep_mib:.0f} MiB"),
        at_most(f"session list {where}, a fresh process", list_s, COLD_S_MAX, " s"),
        at_most(f"session list {where}, peak memory", list_mib, PEAK_MIB_MAX, " MiB"),
        at_most(f"session show, beside {count} sessions, a fresh process", show_s * 1000, SHOW_MS_MAX, " ms"),
        at_most(f"resume_session {where}, first in a server", cold_s, COLD_S_MAX, " s"),
        at_most(f"resume_session {where}, again", warm_s * 1000, WARM_MS_MAX, " ms"),
    ]


def _resumed(site: Site) -> tuple[float, float]:
    """Return the seconds of the first `resume_session` of a server, and the median of later ones."""
    with Wire(site.command(), extra=site.environment()) as wire:
        wire.hello()
        seconds: list[float] = []
        for _ in range(1 + 2 * _ROUNDS):
            began = time.perf_counter()
            wire.call(Sent(tool="resume_session", arguments={"query": "login form"}))
            seconds.append(time.perf_counter() - began)
    return seconds[0], statistics.median(seconds[1:])


def _measured(data_dir: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds that a command takes, the best of some rounds, and its peak memory in MiB."""
    command = [sys.executable, "-m", "interlock", *arguments, "--data-dir", str(data_dir)]
    spent = [run_measured(command, fails_at=1) for _ in range(_ROUNDS)]
    return min(one.seconds for one in spent), max(one.peak_mib for one in spent)
