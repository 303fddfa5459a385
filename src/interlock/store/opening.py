"""Opening a store: the only module that chooses its kind. Callers get ports (HOUSE-2).

Opening reads and writes nothing: the first write creates a missing data directory.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.kernel.ids import SessionId
from interlock.store.local.store import LocalStore
from interlock.store.local.upkeep import make_root
from interlock.store.ports.errors import StoreFailureError
from interlock.store.ports.servers import AppliedConfig, RunningServer
from interlock.store.ports.store import Store

if TYPE_CHECKING:
    from interlock.store.local.checks import LocalCheckFiles
    from interlock.store.local.session.session_files import SessionFiles
    from interlock.store.local.session.untried import UntriedFiles
    from interlock.store.ports.maintenance import RetentionPins


def open_store(data_dir: Path) -> Store:
    """Return the store of a data directory."""
    return LocalStore(data_dir)


def open_server_store(
    data_dir: Path, server_input: int, applied: AppliedConfig
) -> tuple[Store, Callable[[], bool | None]]:
    """Return the store of a server and whether an agent started its client, and announce the process (WORLD-9).

    `server_input` is the descriptor of its standard input; `applied` is what others read of its configuration. An
    answer None means that it cannot be known.
    """
    store = LocalStore(data_dir, server_input=server_input)
    store.announce(applied)
    return store, store.is_client_of_agent


def announce_driver(data_dir: Path) -> None:
    """Say in a data directory that this process drives runs there: what it starts speaks for no person (WORLD-9)."""
    from interlock.store.local.files import OsFiles  # noqa: PLC0415 — only a driver needs it
    from interlock.store.local.live import announce  # noqa: PLC0415 — see above

    files = OsFiles(data_dir)
    with suppress(StoreFailureError):
        make_root(files)
        announce(files)


def open_retention_pins(data_dir: Path) -> "RetentionPins":
    """Return the retention pins of a data directory."""
    from interlock.store.local.collect.keep import PinFile  # noqa: PLC0415 — no server needs it
    from interlock.store.local.files import OsFiles  # noqa: PLC0415 — see above
    from interlock.store.local.locks import OsLocks  # noqa: PLC0415 — see above

    return PinFile(OsFiles(data_dir), OsLocks(data_dir))


def is_of_agent(data_dir: Path) -> bool | None:
    """Say whether an agent that works on a data directory started this process; None if unknown (WORLD-9)."""
    from interlock.store.local import live  # noqa: PLC0415 — see above
    from interlock.store.local.files import OsFiles  # noqa: PLC0415 — only commands that report facts need it

    return live.is_of_agent(OsFiles(data_dir))


def running_servers(data_dir: Path) -> tuple[RunningServer, ...] | None:
    """Return the servers that work on a data directory now; None if that cannot be known."""
    from interlock.store.local import live  # noqa: PLC0415 — see above
    from interlock.store.local.files import OsFiles  # noqa: PLC0415 — see above

    try:
        return live.running_servers(OsFiles(data_dir))
    except OSError:
        return None


def open_check_files(data_dir: Path) -> "LocalCheckFiles":
    """Return the files of checks in a data directory."""
    from interlock.store.local.checks import LocalCheckFiles  # noqa: PLC0415 — only runs with checks need it

    return LocalCheckFiles(data_dir)


def open_untried(data_dir: Path) -> "UntriedFiles":
    """Return the intents that no process has tried to send, in a data directory."""
    from interlock.store.local.session.untried import UntriedFiles  # noqa: PLC0415 — only who records intents needs it

    return UntriedFiles(data_dir)


def open_memory_store() -> Store:
    """Return an empty store in memory, for what is read once and never stored."""
    from interlock.store.memory.store import MemoryStore  # noqa: PLC0415 — off the start-up path of a server

    return MemoryStore()


def open_session_files(data_dir: Path, session: SessionId) -> "SessionFiles":
    """Return the paths of one session's files, for a reader that checks the bytes itself."""
    from interlock.store.local.session.session_files import SessionFiles  # noqa: PLC0415 — only the demo needs it

    return SessionFiles(root=data_dir, session=session)
