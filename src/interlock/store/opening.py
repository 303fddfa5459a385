"""Opening a store: the only module that chooses its kind. Callers get ports (HOUSE-2).

Opening reads and writes nothing: the first write creates a missing data directory.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from interlock.kernel.ids import SessionId
from interlock.store.local.store import LocalStore
from interlock.store.ports.store import Store

if TYPE_CHECKING:
    from interlock.store.local.checks import LocalCheckFiles
    from interlock.store.local.session.session_files import SessionFiles
    from interlock.store.ports.maintenance import RetentionPins


def open_store(data_dir: Path, *, is_server: bool = False) -> Store:
    """Return the store of a data directory. That of a server announces its process with the first write."""
    return LocalStore(data_dir, announces=is_server)


def open_retention_pins(data_dir: Path) -> "RetentionPins":
    """Return the retention pins of a data directory."""
    from interlock.store.local.collect.keep import PinFile  # noqa: PLC0415 — no server needs it
    from interlock.store.local.files import OsFiles  # noqa: PLC0415 — see above
    from interlock.store.local.locks import OsLocks  # noqa: PLC0415 — see above

    return PinFile(OsFiles(data_dir), OsLocks(data_dir))


def descends_from_client(data_dir: Path) -> bool | None:
    """Say whether this process descends from one that started a live server on a data directory (WORLD-9).

    None if the platform does not tell.
    """
    from interlock.store.local.files import OsFiles  # noqa: PLC0415 — only commands that report facts need it
    from interlock.store.local.live import descends_from  # noqa: PLC0415 — see above

    return descends_from(OsFiles(data_dir))


def open_check_files(data_dir: Path) -> "LocalCheckFiles":
    """Return the files of checks in a data directory."""
    from interlock.store.local.checks import LocalCheckFiles  # noqa: PLC0415 — only runs with checks need it

    return LocalCheckFiles(data_dir)


def open_memory_store() -> Store:
    """Return an empty store in memory, for what is read once and never stored."""
    from interlock.store.memory.store import MemoryStore  # noqa: PLC0415 — off the start-up path of a server

    return MemoryStore()


def open_session_files(data_dir: Path, session: SessionId) -> "SessionFiles":
    """Return the paths of one session's files, for a reader that checks the bytes itself."""
    from interlock.store.local.session.session_files import SessionFiles  # noqa: PLC0415 — only the demo needs it

    return SessionFiles(root=data_dir, session=session)
