"""Commands over a data directory of many sessions: each within half a second, whatever it looks for."""

import sys
import tempfile
from pathlib import Path

from benchmarks.many_sessions import ADVANCES, SESSIONS, make_sessions
from benchmarks.spent import run_measured
from benchmarks.table import Figure, at_most, noted

COMMAND_S_MAX = 0.5
STARTS_MAX = 40.0
"""CPU time of a command in starts of a Python that imports json: a ratio, so a busy machine changes it little."""
_ROUNDS = 3
_COMMANDS = {
    "session list": ("list",),
    "session status": ("status",),
    "session show @last": ("show", "@last"),
    "session open-gaps": ("open-gaps",),
    "session search, common words": ("search", "cache", "layer"),
    "session search, rare words": ("search", "part", "1777"),
    "session search, a misspelt word": ("search", "lyaer"),
    "session search, words that nothing has": ("search", "zebra"),
}


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure on 2,000 sessions of 10 advances; with `is_quick` on a tenth of them, which holds no budget."""
    count = SESSIONS // 10 if is_quick else SESSIONS
    where = f"of {count} sessions with {ADVANCES} advances each"
    with tempfile.TemporaryDirectory(prefix="interlock-") as made:
        data_dir = Path(made)
        make_sessions(data_dir, sessions=count, ends_now=True)
        found = {name: _measured(data_dir, arguments) for name, arguments in _COMMANDS.items()}
        started, _ = _measured(data_dir, ("list", "--help"))
    python_cpu = _spent([sys.executable, "-c", "import json"])[1]
    start = noted("session list --help: the start of a process", f"{started:.2f} s")
    if is_quick:
        return [start, *(noted(f"{name} {where}", f"{wall:.2f} s") for name, (wall, _) in found.items())]
    return [
        start,
        *(
            at_most(f"{name} {where}", wall, COMMAND_S_MAX, " s", beside=f"{cpu:.2f} s of CPU time")
            for name, (wall, cpu) in found.items()
        ),
        *(
            at_most(f"{name} {where}, in starts of Python", cpu / python_cpu, STARTS_MAX, "")
            for name, (_, cpu) in found.items()
        ),
    ]


def _measured(data_dir: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a command in a fresh process."""
    return _spent([sys.executable, "-m", "interlock", "session", *arguments, "--data-dir", str(data_dir)])


def _spent(command: list[str]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a fresh process, each the best of some rounds."""
    spent = [run_measured(command) for _ in range(_ROUNDS)]
    return min(one.seconds for one in spent), min(one.cpu_seconds for one in spent)
