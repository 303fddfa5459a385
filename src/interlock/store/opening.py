"""Opening a data directory: the one place that chooses the kind of store. Callers get ports (HOUSE-2).

Opening touches nothing: a directory that is missing is made by the first write.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from interlock.kernel.ids import SessionId
from interlock.store.local.store import LocalStore
from interlock.store.ports.store import Store

if TYPE_CHECKING:
    from interlock.store.local.session.session_files import SessionFiles


def open_store(data_dir: Path) -> Store:
    """Return the store of a data directory."""
    return LocalStore(data_dir)


def open_session_files(data_dir: Path, session: SessionId) -> "SessionFiles":
    """Return where a local store keeps the bytes of one session, for a reader that checks them by itself."""
    from interlock.store.local.session.session_files import SessionFiles  # noqa: PLC0415 — only the demo needs it

    return SessionFiles(root=data_dir, session=session)
