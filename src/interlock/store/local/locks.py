"""The session lock: the operating system's, so that it dies with its holder (locks 15, D12)."""

import os
import random
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from interlock.kernel.budgets import LOCK_WAIT_MS_MAX
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.ports import SessionBusyError, UpkeepBusyError
from interlock.store.regular_file import open_regular

if TYPE_CHECKING:
    from filelock import BaseFileLock

_POLL_S = (0.001, 0.005)
"""Between tries: long enough to let the holder work, jittered so that waiters do not march in step."""


class Locks(Protocol):
    """Excludes every other writer of a session, in this process and in others."""

    def hold(self, session: SessionId) -> AbstractContextManager[None]:
        """Return a context that holds the session's lock while it lasts.

        Raises:
            SessionBusyError: On entering: it was not to be had in time.
            OSError: On entering: the lock file cannot be opened.
        """
        ...

    def hold_upkeep(self) -> AbstractContextManager[None]:
        """Return a context that holds the one lock over what belongs to no session. Its directory must stand.

        Raises:
            UpkeepBusyError: On entering: it was not to be had in time.
            OSError: On entering: the lock file cannot be opened.
        """
        ...


def hold_if_made(files: FileOps, locks: Locks, session: SessionId) -> AbstractContextManager[None]:
    """Return a context that holds a session's lock, or nothing where it has no lock file: a reader makes none."""
    return nullcontext() if files.stat(layout.lock(session)) is None else locks.hold(session)


class OsLocks:
    """Locks `sessions/<id>/.lock`, which is never deleted while its directory stands."""

    def __init__(self, root: Path, *, wait_ms_max: int = LOCK_WAIT_MS_MAX) -> None:
        self._root = root
        self._wait_ms_max = wait_ms_max

    @contextmanager
    def hold(self, session: SessionId) -> Generator[None]:
        """See `Locks.hold`."""
        with _held(self._root / layout.lock(session), self._wait_ms_max) as waited_ms:
            if waited_ms is not None:
                raise SessionBusyError(session=session, waited_ms=waited_ms)
            yield

    @contextmanager
    def hold_upkeep(self) -> Generator[None]:
        """See `Locks.hold_upkeep`."""
        with _held(self._root / layout.UPKEEP_LOCK, self._wait_ms_max) as waited_ms:
            if waited_ms is not None:
                raise UpkeepBusyError(waited_ms=waited_ms)
            yield


@contextmanager
def _held(path: Path, wait_ms_max: int) -> Generator[int | None]:
    """Hold a lock file while the context lasts; yield None, or how long it was waited for in vain."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 — off the start-up path

    lock = FileLock(
        path,
        timeout=wait_ms_max / 1000,
        mode=0o600,
        thread_local=False,
        fallback_to_soft=False,
        preserve_lock_file=True,
        poll_interval=random.uniform(*_POLL_S),  # noqa: S311 — jitter, not a secret
    )
    began = time.monotonic()
    try:
        _acquire(lock, path)
    except Timeout:
        yield int((time.monotonic() - began) * 1000)
        return
    try:
        yield None
    finally:
        lock.release()


def _acquire(lock: "BaseFileLock", path: Path) -> None:
    """Acquire a lock whose file the path still names: a directory that was moved away takes its lock along (D12).

    What has the path's name before and after is what was opened between the two.

    Raises:
        Timeout: It was not to be had in time.
        OSError: The lock file cannot be opened.
    """
    while True:
        before = _identity(path)
        lock.acquire()
        if before is not None and before == _identity(path):
            return
        lock.release()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_held(root: Path, session: SessionId) -> bool | None:
    """Say whether somebody holds a session's lock right now, without waiting and without a trace; None if unknown.

    The look is a shared lock for a moment: a writer that comes in it tries again within milliseconds.
    """
    try:
        import fcntl  # noqa: PLC0415 — POSIX only
    except ImportError:
        return None
    try:
        handle = open_regular(root / layout.lock(session))
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
