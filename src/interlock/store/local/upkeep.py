"""Work on what belongs to no session: one process at a time, in a data directory that stands."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from interlock.store.local import layout
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks
from interlock.store.ports import FailureKind, StoreFailureError


def make_root(files: FileOps) -> None:
    """See that the data directory stands, durably.

    Raises:
        StoreFailureError: It cannot.
    """
    try:
        files.make_root()
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreFailureError(FailureKind.NO_DIRECTORY, "a file where a directory should be") from error
    except OSError as error:
        raise store_failure(error) from error


@contextmanager
def alone(files: FileOps, locks: Locks) -> Generator[None]:
    """Hold the lock over what belongs to no session while the context lasts.

    Raises:
        UpkeepBusyError: On entering: another process holds it.
        StoreFailureError: On entering: the disk failed.
    """
    make_root(files)
    with ExitStack() as held:
        try:
            files.make_dir(layout.CONFIG)
            held.enter_context(locks.hold_upkeep())
        except OSError as error:
            raise store_failure(error) from error
        yield
