"""The session lock: a lock of the operating system, which releases it if its holder dies (LOCK-1, LOCK-4)."""

import errno
import os
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Protocol

from interlock.kernel.budgets import LOCK_POLL_S_MAX, LOCK_POLL_S_MIN, LOCK_WAIT_MS_MAX
from interlock.kernel.ids import SessionId
from interlock.kernel.turns import TURNS
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.lock_wait import wait_window
from interlock.store.ports.errors import SessionBusyError, UpkeepBusyError
from interlock.store.regular_file import NotRegularFileError, open_regular

try:
    import fcntl
except ImportError:
    # On Windows `filelock` does it, whose import takes 10 ms and more.
    fcntl = None

_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A lock file is a regular file: no link is followed, and opening a pipe of its name does not block."""
_HELD = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})
"""The errors for a lock that somebody else holds."""


class Locks(Protocol):
    """Excludes every other writer of a session, in this process and in others."""

    def hold(self, session: SessionId, *, since_s: float | None = None) -> AbstractContextManager[None]:
        """Return a context that holds the session's lock while it lasts.

        The wait counts from `since_s`, a time of `time.monotonic`; without it, from now.

        Raises:
            SessionBusyError: On entering: it was not available in time.
            OSError: On entering: the lock file cannot be opened.
        """
        ...

    def hold_upkeep(self) -> AbstractContextManager[None]:
        """Return a context that holds the upkeep lock, for data outside of sessions. Its directory must exist.

        Raises:
            UpkeepBusyError: On entering: it was not available in time.
            OSError: On entering: the lock file cannot be opened.
        """
        ...

    def is_held(self, session: SessionId) -> bool:
        """Return whether a process holds a session's lock right now, without waiting. False if that is unknown."""
        ...


def hold_if_made(
    files: FileOps, locks: Locks, session: SessionId, since_s: float | None = None
) -> AbstractContextManager[None]:
    """Return a context that holds a session's lock, or nothing if it has no lock file: a reader creates none."""
    return nullcontext() if files.stat(layout.lock(session)) is None else locks.hold(session, since_s=since_s)


class OsLocks:
    """Locks `sessions/<id>/.lock`, which is never deleted while its directory exists.

    `wait_ms_max` counts from `since_s`, when the call arrived. A call that spent it in a queue still waits for a short
    time, so that a writer at work can finish (LOCK-6).
    """

    def __init__(self, root: Path, *, wait_ms_max: int = LOCK_WAIT_MS_MAX) -> None:
        self._root = root
        self._wait_ms_max = wait_ms_max

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[None]:
        """See `Locks.hold`."""
        try:
            handle = _acquire(f"{self._root}/{layout.lock(session)}", self._wait_ms_max, since_s)
        except _WaitedError as error:
            raise SessionBusyError(session=session, waited_ms=error.waited_ms) from None
        with _released(handle):
            yield

    @contextmanager
    def hold_upkeep(self) -> Generator[None]:
        """See `Locks.hold_upkeep`."""
        try:
            handle = _acquire(f"{self._root}/{layout.UPKEEP_LOCK}", self._wait_ms_max, None)
        except _WaitedError as error:
            raise UpkeepBusyError(waited_ms=error.waited_ms) from None
        with _released(handle):
            yield

    def is_held(self, session: SessionId) -> bool:
        """See `Locks.is_held`."""
        return bool(is_held(self._root, session))


def lock_now(path: Path) -> int | None:
    """Return a handle that holds the lock of a file, which is made if it is missing; None if another process holds it.

    The lock is held until every process that has inherited the handle has closed it, or one of them unlocks it.

    Raises:
        OSError: The lock file cannot be opened.
    """
    try:
        return _acquire(path, 0, None)
    except _WaitedError:
        return None


def released(handle: int) -> AbstractContextManager[None]:
    """Return a context that releases a held lock when it ends."""
    return _released(handle)


def read_locked(handle: int, bytes_max: int) -> bytes:
    """Return the beginning of a held lock file: what an earlier holder wrote into it."""
    return os.read(handle, bytes_max)


def rewrite_locked(handle: int, data: bytes) -> None:
    """Replace the content of a held lock file by a few bytes. They are not synced.

    Raises:
        OSError: They cannot be written.
    """
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, data)


class _WaitedError(Exception):
    """A lock was not available in time."""

    def __init__(self, waited_ms: int) -> None:
        super().__init__(f"waited {waited_ms} ms")
        self.waited_ms = waited_ms


def _acquire(path: str | Path, wait_ms_max: int, since_s: float | None) -> int:
    """Return a handle that holds the lock of the file that the path names; wait as `Locks.hold` says.

    A directory that was moved takes its lock file with it; a lock on that file does not count (LOCK-4).

    Raises:
        _WaitedError: It was not available in time.
        OSError: The lock file cannot be opened.
    """
    began, until = wait_window(wait_ms_max, since_s)
    while True:
        handle = os.open(path, _OPEN_FLAGS, 0o600)
        try:
            is_locked = _lock(handle, until)
            is_hold = is_locked and _is_named(path, handle)
        except OSError:
            os.close(handle)
            raise
        if is_hold:
            return handle
        os.close(handle)
        if not is_locked:
            raise _WaitedError(int((time.monotonic() - began) * 1000))


def _lock(handle: int, until_s: float) -> bool:
    """Try to lock an open file until a time; return whether that succeeded."""
    while not _try_lock(handle):
        if time.monotonic() >= until_s:
            return False
        import random  # noqa: PLC0415 — only a lock that another process holds needs it

        with TURNS.waiting():
            time.sleep(random.uniform(LOCK_POLL_S_MIN, LOCK_POLL_S_MAX))  # noqa: S311 — jitter, not a secret
    return True


def _try_lock(handle: int) -> bool:
    """Try once to lock an open file; return whether that succeeded."""
    if fcntl is None:
        from filelock import lock_descriptor  # noqa: PLC0415 — see the import of fcntl

        return lock_descriptor(handle, blocking=False)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def _unlock(handle: int) -> None:
    if fcntl is None:
        from filelock import unlock_descriptor  # noqa: PLC0415 — see the import of fcntl

        unlock_descriptor(handle)
    else:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _is_named(path: str | Path, handle: int) -> bool:
    """Return whether a path names an open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))  # noqa: PTH116 — each hold of a session asks
    except FileNotFoundError:
        return False


@contextmanager
def _released(handle: int) -> Generator[None]:
    """Release a held lock file when the context ends. A failed release does not fail the call: its work is done.

    Closing the handle releases the lock, even if unlocking failed (LOCK-7). On Windows, a lock that only closing
    releases is released late, so it is unlocked first.
    """
    try:
        yield
    finally:
        with suppress(OSError):
            _unlock(handle)
        with suppress(OSError):
            os.close(handle)


def is_held(root: Path, session: SessionId) -> bool | None:
    """Return whether a process holds a session's lock right now; None if unknown. Does not wait or write.

    The test takes a shared lock for a moment: a writer that meets it tries again within milliseconds.
    """
    return is_locked(root / layout.lock(session))


def is_locked(path: Path) -> bool | None:
    """Return whether a process holds the lock of a file right now, as `is_held` does."""
    if fcntl is None:
        return None
    try:
        handle, _ = open_regular(path)
    except (FileNotFoundError, NotADirectoryError, NotRegularFileError):
        return False
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        # Any other error, such as that of a file system without locks, says nothing about a holder.
        return True if error.errno in _HELD else None
    finally:
        os.close(handle)
    return False
