"""Work on what belongs to no session: one process at a time, in a data directory that stands."""

from collections.abc import Generator
from contextlib import contextmanager, suppress

from interlock.store.local import layout
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks
from interlock.store.ports.errors import FailureKind, StoreFailureError

_TRASH_DIRS = (
    layout.TRASH,
    layout.TRASHED_SESSIONS,
    layout.TRASHED_SEGMENTS,
    layout.trashed(layout.WORKFLOWS),
    *map(layout.trashed, layout.CONTENT_DIRS),
)


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
    lock = locks.hold_upkeep()
    try:
        files.make_dir(layout.CONFIG)
        lock.__enter__()
    except OSError as error:
        raise store_failure(error) from error
    try:
        yield
    finally:
        # The work is done. A lock that cannot be released ends with its process, and no repeat would help.
        with suppress(OSError):
            lock.__exit__(None, None, None)


def make_trash(files: FileOps) -> None:
    """Make the directories of the trash that are missing. Not durable: a later collection makes them again.

    The first start makes them, so that a collection on a full disk finds them.

    Raises:
        StoreFailureError: The disk failed, or a link is in the place of one: what is moved there would go among
            somebody else's files.
    """
    try:
        for path in _TRASH_DIRS:
            if files.is_link(path):
                raise StoreFailureError(FailureKind.FAILED, f"{path} is a link; the trash is a directory of its own")
            files.make_dir(path)
    except OSError as error:
        raise store_failure(error) from error


@contextmanager
def replacing(files: FileOps, path: str) -> Generator[None]:
    """Replace a file while the context lasts: a failure says whether the new file may already be there.

    Raises:
        StoreFailureError: The disk failed; `may_be_recorded` unless the file is seen to be unchanged.
    """
    try:
        before = _read(files, path)
    except OSError as error:
        raise store_failure(error) from error
    try:
        yield
    except OSError as error:
        raise store_failure(error, may_be_recorded=not _is_still(files, path, before)) from error


def _read(files: FileOps, path: str) -> bytes | None:
    try:
        return files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_still(files: FileOps, path: str, before: bytes | None) -> bool:
    try:
        return _read(files, path) == before
    except OSError:
        return False
