"""Whether what tests left in stores follows again from what came in."""

from pathlib import Path

from interlock.service.audit.verify import Mismatch, verify_session
from interlock.service.run.plans import Plans
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Store


def unsound(store: Store) -> list[Mismatch]:
    """Return whatever does not verify of the sessions of a store."""
    plans = Plans(store)
    return [one for name in store.sessions() for one in verify_session(store, plans, name)]


def unsound_below(directory: Path) -> list[Mismatch]:
    """Return whatever does not verify of the data directories below a directory, as another process finds them."""
    # What lies in the trash is no data directory of its own.
    found = [path.parent for path in directory.rglob("sessions") if path.is_dir() and path.parent.name != layout.TRASH]
    return [one for data_dir in found for one in unsound(LocalStore(data_dir))]
