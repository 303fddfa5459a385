"""Which servers and drivers work on a data directory, and whether an agent started a process (WORLD-9).

A server and a driver leave one file when they start. A file whose process is gone, or has another start time, says
nothing, and the next server deletes it. Other files stay. A file that cannot be read, or does not name a client, leaves
it unknown who started a process. A server also says there which configuration it applied, for `config show` and the
console. These files have no other use. Processes are read as Linux shows them, and on no other
platform.

A *client* is the process that an agent works in: the one at the other end of a server's standard input, or a driver.
What it starts are tools of the agent; the client itself may speak for a person.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from interlock.kernel.budgets import PROCESS_ENVIRONMENT_BYTES_MAX, PROCESS_STATUS_BYTES_MAX
from interlock.kernel.canonical import Json, parse_object
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.ids import Digest
from interlock.store.local import layout
from interlock.store.local.failures import error_name
from interlock.store.local.files import FileOps
from interlock.store.local.small_files import read_small
from interlock.store.ports.servers import AppliedConfig, RunningServer
from interlock.store.regular_file import read_regular

_NAME = re.compile(r"[0-9]+\.json")
_FIELDS = ("pid", "start", "client", "clientStart")
_APPLIED = ("appliedConfigHash", "configFileHash")
_PARENT, _START = 1, 19
"""Places in the status of a process after the name of its program, which is in brackets and may contain anything."""


class Process(NamedTuple):
    """A process. `start` is its start time in ticks: with it, a pid that is used again is another process."""

    pid: int
    start: int


class _Live(NamedTuple):
    """A live server or driver, its client, and what a server applied: None if it is not known."""

    server: Process
    client: Process | None
    applied: AppliedConfig | None = None


class Announced(NamedTuple):
    """What a process that announced itself knows of its client: None if it cannot be known."""

    client: Process | None


def announce(files: FileOps, *, stdin: int | None = None, applied: AppliedConfig | None = None) -> Announced | None:
    """Leave the file of this process, with its client and what it applied; return None if that failed.

    `stdin` is the standard input of a server, by its descriptor. A driver has none: it is its own client. It never
    raises: the work of the process does not depend on it.
    """
    here = _process(os.getpid())
    if here is None:
        return Announced(client=None)
    client = here if stdin is None else _client_of(here, stdin)
    try:
        files.make_dir(layout.LIVE)
        for name in [] if files.is_link(layout.LIVE) else _names(files):
            with suppress(OSError):
                if _read(files, name) is None:
                    files.unlink(f"{layout.LIVE}/{name}")
        said: dict[str, Json] = dict(zip(_FIELDS, (*here, *(client or (None, None))), strict=True))
        if applied is not None:
            said |= dict(zip(_APPLIED, (applied.values, applied.file), strict=True))
        files.write(f"{layout.LIVE}/{here.pid}.json", json.dumps(said).encode("ascii"))
    except OSError:
        return None
    return Announced(client=client)


def is_of_agent(files: FileOps) -> bool | None:
    """Say whether an agent started this process; None if that cannot be known.

    An agent did if the process has the mark of what Interlock starts, or descends from a child of a client.
    """
    if os.environ.get(DESCENDANT):
        return True
    here = _process(os.getpid())
    return _descends(files, here) if here is not None else None


def is_client_of_agent(files: FileOps, announced: Announced) -> bool | None:
    """Say whether an agent started the client of this server; None if that cannot be known.

    A client does not descend from its own child, so two chats of one client both speak for its user.
    """
    client = announced.client
    if os.environ.get(DESCENDANT):
        return True
    if client is None:
        return None
    is_marked = _is_marked(client)
    return _descends(files, client) if is_marked is False else is_marked


def running_servers(files: FileOps) -> tuple[RunningServer, ...] | None:
    """Return the servers that run now, by pid; None if this platform does not say which processes run.

    A driver is none of them. A file that cannot be read is passed over: `unread` yields it.

    Raises:
        OSError: The directory cannot be read.
    """
    if _process(os.getpid()) is None:
        return None
    found = list[RunningServer]()
    for name in _names(files):
        with suppress(OSError):
            live = _read(files, name)
            if live is not None and live.client != live.server:
                client = live.client.pid if live.client is not None else None
                found.append(RunningServer(pid=live.server.pid, client=client, applied=live.applied))
    return tuple(sorted(found, key=lambda server: server.pid))


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


def _descends(files: FileOps, process: Process) -> bool | None:
    """Say whether a process descends from a live server or from a child of a client; None if that cannot be known."""
    agents: set[Process] = set()
    is_known = True
    try:
        names = _names(files)
    except OSError:
        return None
    for name in names:
        try:
            live = _read(files, name)
        except OSError:
            live = _Live(server=process, client=None)
        if live is not None:
            agents |= {live.server, live.client or live.server}
            is_known = is_known and live.client is not None
    _, *above = _ancestors(process)
    if not agents.isdisjoint(above):
        return True
    return False if is_known else None


def _client_of(server: Process, stdin: int) -> Process | None:
    """Return the first process above a server whose standard input is another one; None if that cannot be known.

    Those that share a pipe with the server are launchers. Where the standard input is no pipe, nothing tells a launcher
    from the client, and the parent counts.
    """
    _, *above = _ancestors(server)
    try:
        own = os.fstat(stdin)
        for process in above:
            if not (stat.S_ISFIFO(own.st_mode) or stat.S_ISSOCK(own.st_mode)) or not _shares(process, own):
                return process
    except OSError:
        return None
    return None


def _shares(process: Process, own: os.stat_result) -> bool:
    """Say whether the standard input of a process is this file.

    Raises:
        OSError: The system does not tell.
    """
    try:
        theirs = Path(f"/proc/{process.pid}/fd/0").stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(theirs, own)


def _is_marked(process: Process) -> bool | None:
    """Say whether a process was started with the mark of what Interlock starts; None if the system does not tell."""
    try:
        started_with = read_regular(Path(f"/proc/{process.pid}/environ"), PROCESS_ENVIRONMENT_BYTES_MAX)
    except OSError:
        return None
    if any(one.startswith(f"{DESCENDANT}=".encode()) for one in started_with.split(b"\0")):
        return True
    return False if len(started_with) <= PROCESS_ENVIRONMENT_BYTES_MAX else None


def _names(files: FileOps) -> list[str]:
    """Return the names of the files that servers have left. Raises as `FileOps.names` does."""
    return list(filter(_NAME.fullmatch, files.names(layout.LIVE)))


def _read(files: FileOps, name: str) -> _Live | None:
    """Return the process of a file with its client; None if that process or its file is gone.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        said = parse_object(read_small(files, f"{layout.LIVE}/{name}")) or {}
    except FileNotFoundError:
        return None
    found = (said.get(key) for key in _FIELDS)
    pid, start, client_pid, client_start = (one if isinstance(one, int) else -1 for one in found)
    server, client = Process(pid=pid, start=start), Process(pid=client_pid, start=client_start)
    if _process(pid) != server:
        return None
    values, file = (one if isinstance(one, str) else None for one in map(said.get, _APPLIED))
    applied = AppliedConfig(values=Digest(values), file=Digest(file)) if values and file else None
    return _Live(server=server, client=client if client.pid > 0 else None, applied=applied)


def _ancestors(process: Process) -> Iterator[Process]:
    above: Process | None = process
    while above is not None:
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
