"""Whether what tests left in stores follows again from what came in."""

from pathlib import Path

from interlock.service.audit.verify import Mismatch, verify_with_words
from interlock.service.run.plans import Plans
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Store


def unsound(store: Store) -> list[Mismatch]:
    """Return whatever does not verify of the sessions of a store, whose texts are those that this build writes."""
    plans = Plans(store)
    verified = [verify_with_words(store, plans, name) for name in store.sessions()]
    assert [one for each in verified for one in each.words] == []
    return [one for each in verified for one in each.mismatches]


def unsound_below(directory: Path) -> list[Mismatch]:
    """Return whatever does not verify of the data directories below a directory, as another process finds them."""
    # What lies in the trash is no data directory of its own.
    found = [path.parent for path in directory.rglob("sessions") if path.is_dir() and path.parent.name != layout.TRASH]
    return [one for data_dir in found for one in unsound(LocalStore(data_dir))]
