"""Processes of this machine and their parents, as Linux shows them under `/proc`; elsewhere nothing is known."""

import os
from pathlib import Path
from typing import NamedTuple

_AFTER_NAME_PARENT, _AFTER_NAME_START = 1, 19
"""Places in `/proc/PID/stat` after the name of the program, which is in brackets and may contain anything."""


class Process(NamedTuple):
    """A process. `start` is its start time in ticks: with it, a pid that is used again is another process."""

    pid: int
    start: int

    def is_alive(self) -> bool:
        """Say whether this process still runs."""
        return _stat(self.pid) is not None and _process(self.pid) == self


def this_process() -> Process | None:
    """Return this process; None if the platform does not show processes."""
    return _process(os.getpid())


def parent_of(process: Process) -> Process | None:
    """Return the process that started another one, or that adopted it; None if it is not known."""
    fields = _stat(process.pid)
    return _process(int(fields[_AFTER_NAME_PARENT])) if fields is not None else None


def _process(pid: int) -> Process | None:
    fields = _stat(pid)
    return Process(pid=pid, start=int(fields[_AFTER_NAME_START])) if fields is not None else None


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
