"""Which servers work on a data directory: so that a command can say whether an agent's client started it (WORLD-9).

A server leaves one file when it first writes. A file whose process is gone, or has another start time, says nothing,
and the next server deletes it. Other files stay. A file of a server that cannot be read leaves it unknown which client
started a command. These files have no other use. Processes are read as Linux shows them, and on no other platform.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from interlock.kernel.budgets import PROCESS_STATUS_BYTES_MAX
from interlock.kernel.canonical import parse_object
from interlock.store.local import layout
from interlock.store.local.failures import error_name
from interlock.store.local.files import FileOps
from interlock.store.local.small_files import read_small
from interlock.store.regular_file import read_regular

_NAME = re.compile(r"[0-9]+\.json")
_FIELDS = ("pid", "start", "parent", "parentStart")
_PARENT, _START = 1, 19
"""Places in the status of a process after the name of its program, which is in brackets and may contain anything."""


class Process(NamedTuple):
    """A process. `start` is its start time in ticks: with it, a pid that is used again is another process."""

    pid: int
    start: int


def announce(files: FileOps) -> bool:
    """Leave the file of this process, with the process that started it; return False if that failed.

    It never raises: the work of the server does not depend on it.
    """
    here = _process(os.getpid())
    parent = _parent(here) if here is not None else None
    if here is None or parent is None:
        return True
    try:
        files.make_dir(layout.LIVE)
        for name in [] if files.is_link(layout.LIVE) else _names(files):
            with suppress(OSError):
                if _read(files, name) is None:
                    files.unlink(f"{layout.LIVE}/{name}")
        data = json.dumps(dict(zip(_FIELDS, (*here, *parent), strict=True)))
        files.write(f"{layout.LIVE}/{here.pid}.json", data.encode("ascii"))
    except OSError:
        return False
    return True


def descends_from(files: FileOps) -> bool | None:
    """Say whether this process descends from one that started a live server here; None if that cannot be known."""
    here = _process(os.getpid())
    if here is None:
        return None
    starters: set[Process] = set()
    is_known = True
    try:
        names = _names(files)
    except OSError:
        return None
    for name in names:
        try:
            starters.update(_read(files, name) or ())
        except OSError:
            is_known = False
    if not starters.isdisjoint(_ancestors(here)):
        return True
    return False if is_known else None


def unread(files: FileOps) -> Iterator[tuple[str, str]]:
    """Yield each file of a server that cannot be read, with the name of the system's error.

    Raises:
        OSError: The directory cannot be read.
    """
    for name in _names(files):
        try:
            _read(files, name)
        except OSError as error:
            yield f"{layout.LIVE}/{name}", error_name(error)


def _names(files: FileOps) -> list[str]:
    """Return the names of the files that servers have left. Raises as `FileOps.names` does."""
    return list(filter(_NAME.fullmatch, files.names(layout.LIVE)))


def _read(files: FileOps, name: str) -> tuple[Process, Process] | None:
    """Return the server of a file and the process that started it; None if that server or its file is gone.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        said = parse_object(read_small(files, f"{layout.LIVE}/{name}")) or {}
    except FileNotFoundError:
        return None
    found = [said.get(key) for key in _FIELDS]
    pid, start, parent_pid, parent_start = (one if isinstance(one, int) else -1 for one in found)
    server, parent = Process(pid=pid, start=start), Process(pid=parent_pid, start=parent_start)
    return (server, parent) if _process(server.pid) == server else None


def _ancestors(process: Process) -> Iterator[Process]:
    above: Process | None = process
    while above is not None and above.pid > 1:
        yield above
        above = _parent(above)


def _parent(process: Process) -> Process | None:
    fields = _status(process.pid)
    return _process(int(fields[_PARENT])) if fields is not None else None


def _process(pid: int) -> Process | None:
    fields = _status(pid)
    return Process(pid=pid, start=int(fields[_START])) if fields is not None else None


def _status(pid: int) -> list[str] | None:
    try:
        text = read_regular(Path(f"/proc/{pid}/stat"), PROCESS_STATUS_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
