"""Work on data outside of sessions: one process at a time, in an existing data directory."""

from collections.abc import Generator
from contextlib import contextmanager, suppress

from interlock.store.local import layout
from interlock.store.local.failures import store_failure
from interlock.store.local.files import FileOps
from interlock.store.local.locks import Locks
from interlock.store.local.small_files import read_small
from interlock.store.ports.errors import FailureKind, StoreFailureError

TRASH_DIRS = (
    layout.TRASH,
    layout.TRASHED_SESSIONS,
    layout.TRASHED_SEGMENTS,
    layout.trashed(layout.WORKFLOWS),
    *map(layout.trashed, layout.CONTENT_DIRS),
)


def make_root(files: FileOps) -> None:
    """Create the data directory, durably.

    Raises:
        StoreFailureError: It cannot be created.
    """
    try:
        files.make_root()
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreFailureError(FailureKind.NO_DIRECTORY, "a file where a directory should be") from error
    except OSError as error:
        raise store_failure(error) from error


@contextmanager
def upkeep_lock(files: FileOps, locks: Locks) -> Generator[None]:
    """Hold the upkeep lock, for data outside of sessions, while the context lasts.

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
        # The work is done. A lock that cannot be released ends with its process; trying again would not help.
        with suppress(OSError):
            lock.__exit__(None, None, None)


def make_trash(files: FileOps) -> None:
    """Create the missing directories of the trash. Not durable: a later collection creates them again.

    The first start creates them, so that they exist when a collection runs on a full disk.

    Raises:
        StoreFailureError: The disk failed, or one of them is a link: files moved there would leave the data directory.
    """
    try:
        for path in TRASH_DIRS:
            if files.is_link(path):
                raise StoreFailureError(FailureKind.FAILED, f"{path} is a link; the trash is a directory of its own")
            files.make_dir(path)
    except OSError as error:
        raise store_failure(error) from error


@contextmanager
def replacing(files: FileOps, path: str) -> Generator[None]:
    """Replace a file inside the context. A failure says whether the new file may already be in place.

    Raises:
        StoreFailureError: The disk failed; `may_be_recorded` unless the file is known to be unchanged.
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
        return read_small(files, path)
    except FileNotFoundError:
        return None


def _is_still(files: FileOps, path: str, before: bytes | None) -> bool:
    try:
        return _read(files, path) == before
    except OSError:
        return False
