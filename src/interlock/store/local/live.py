"""Which servers work on a data directory: so that a command can say whether an agent's client started it (WORLD-9).

A server leaves one file when it first writes. A file whose process is gone, or has another start time, says nothing.
Nothing depends on these files being there: without one, a command is only believed less carefully.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from interlock.store.processes import Process, parent_of, this_process

LIVE = "live"
"""The directory of the files, one for each process."""


def announce(root: Path) -> None:
    """Leave the file of this process, with the process that started it. Best effort: it never raises."""
    here = this_process()
    parent = parent_of(here) if here is not None else None
    if here is None or parent is None:
        return
    with contextlib.suppress(OSError):
        folder = root / LIVE
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in folder.iterdir():
            if _read(path) is None:
                path.unlink(missing_ok=True)
        data = json.dumps({"pid": here.pid, "start": here.start, "parent": parent.pid, "parentStart": parent.start})
        (folder / f"{here.pid}.json").write_text(data, encoding="ascii")


def starters(root: Path) -> frozenset[Process]:
    """Return the processes that started the servers which are alive, and those servers themselves."""
    found: set[Process] = set()
    with contextlib.suppress(OSError):
        for path in (root / LIVE).iterdir():
            found.update(_read(path) or ())
    return frozenset(found)


def _read(path: Path) -> tuple[Process, Process] | None:
    """Return the server of a file and the process that started it; None if that server is gone."""
    try:
        value = json.loads(path.read_bytes())
        server = Process(pid=int(value["pid"]), start=int(value["start"]))
        parent = Process(pid=int(value["parent"]), start=int(value["parentStart"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (server, parent) if server.is_alive() else None


def descends_from(root: Path) -> bool | None:
    """Say whether this process descends from one that started a live server here; None if that cannot be known."""
    here = this_process()
    if here is None:
        return None
    return not starters(root).isdisjoint(_ancestors(here))


def _ancestors(process: Process) -> Iterator[Process]:
    above: Process | None = process
    while above is not None and above.pid > 1:
        yield above
        above = parent_of(above)
