"""Opening a data directory: the one place that chooses the kind of store. Callers get ports (HOUSE-2).

Opening touches nothing: a directory that is missing is made by the first write. What no server needs is imported when
it is opened.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from interlock.kernel.ids import SessionId
from interlock.store.local.store import LocalStore
from interlock.store.ports.keys import KeyRingMaintenance
from interlock.store.ports.store import Store

if TYPE_CHECKING:
    from interlock.store.local.session.session_files import SessionFiles
    from interlock.store.ports.maintenance import Upkeep


def open_store(data_dir: Path) -> Store:
    """Return the store of a data directory."""
    return LocalStore(data_dir)


def open_key_ring(data_dir: Path) -> KeyRingMaintenance:
    """Return what shows and rotates the keys of a data directory."""
    return LocalStore(data_dir)


def open_upkeep(data_dir: Path) -> "Upkeep":
    """Return what checks and collects a data directory."""
    from interlock.store.local.collect.collector import LocalCollector  # noqa: PLC0415 — see above

    return LocalCollector(data_dir)


def open_session_files(data_dir: Path, session: SessionId) -> "SessionFiles":
    """Return where the bytes of one session are, for a reader that checks them by itself."""
    from interlock.store.local.session.session_files import SessionFiles  # noqa: PLC0415 — see above

    return SessionFiles(root=data_dir, session=session)
