"""A command in a process of its own: the time it takes, its processor time, its peak memory, and what it prints."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.wire import environment

_PARENT = """
import os, resource, sys
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status = os.waitpid(process, 0)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
# Kilobytes on Linux, bytes on macOS.
print(used.ru_maxrss // (1024 if sys.platform == "darwin" else 1), used.ru_utime + used.ru_stime, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A parent of next to no size: what a process has at its peak is counted from what its parent had when it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one process took, and what it printed. The seconds include the start of its small parent."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    said: str


def run_measured(
    command: Sequence[str], *, directory: Path | None = None, extra: Mapping[str, str] | None = None, fails_at: int = 2
) -> Spent:
    """Run a command to its end.

    Raises:
        RuntimeError: It ended with the code `fails_at` or a higher one, or by a signal.
    """
    began = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PARENT, *command],
        cwd=directory,
        env={**environment(), **(extra or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    *lines, used = ended.stderr.splitlines()
    if not 0 <= ended.returncode < fails_at:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}")
    peak_kib, cpu = used.split()
    said = "\n".join([ended.stdout, *lines])
    return Spent(seconds=seconds, cpu_seconds=float(cpu), peak_mib=int(peak_kib) / 1024, said=said)
