"""Upkeep of a data directory of many sessions, in fresh processes: a dry collection, and what the doctor says."""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.many_sessions import ADVANCES, SESSIONS, make_sessions
from benchmarks.table import Figure, at_most, told
from benchmarks.wire import environment, temporary_site

GC_S_MAX, DOCTOR_S_MAX, PEAK_MB_MAX = 5.0, 3.0, 200.0
_ROUNDS = 3


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure on 2,000 sessions of 10 advances; with `is_quick` on a tenth of them, which holds no budget."""
    count = SESSIONS // 10 if is_quick else SESSIONS
    with temporary_site() as site:
        make_sessions(site.data_dir, sessions=count)
        where = f"of {count} sessions with {ADVANCES} advances each"
        dry, deep = ("gc", "--dry-run"), ("doctor", "--deep")
        gc_s, gc_mb = _measured(site.data_dir, dry)
        doctor_s, _ = _measured(site.data_dir, ("doctor",))
        deep_s, deep_mb = _measured(site.data_dir, deep)
    if is_quick:
        return [told(f"gc --dry-run {where}", f"{gc_s:.2f} s"), told(f"doctor {where}", f"{doctor_s:.2f} s")]
    return [
        at_most(f"gc --dry-run {where}", gc_s, GC_S_MAX, " s"),
        at_most(f"gc --dry-run {where}, peak memory", gc_mb, PEAK_MB_MAX, " MB"),
        at_most(f"doctor {where}", doctor_s, DOCTOR_S_MAX, " s"),
        told(f"doctor --deep {where}", f"{deep_s:.2f} s, {deep_mb:.0f} MB"),
    ]


def _measured(data_dir: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds that a command takes, the best of some rounds, and its peak memory in megabytes."""
    command = [sys.executable, "-m", "interlock", *arguments, "--data-dir", str(data_dir)]
    seconds, peak = list[float](), 0.0
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds.append(time.perf_counter() - began)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}")
        # Kilobytes on Linux, bytes on macOS.
        peak = max(peak, usage.ru_maxrss / (1_000_000 if sys.platform == "darwin" else 1_000))
    return min(seconds), peak
