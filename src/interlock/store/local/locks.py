"""The session lock: the operating system's, so that it dies with its holder (locks 15, D12)."""

import random
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from interlock.kernel.budgets import LOCK_WAIT_MS_MAX
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.ports import SessionBusyError

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


class OsLocks:
    """Locks `sessions/<id>/.lock`, which is never deleted while its directory stands."""

    def __init__(self, root: Path, *, wait_ms_max: int = LOCK_WAIT_MS_MAX) -> None:
        self._root = root
        self._wait_ms_max = wait_ms_max

    @contextmanager
    def hold(self, session: SessionId) -> Generator[None]:
        """See `Locks.hold`."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 — off the start-up path

        lock = FileLock(
            self._root / layout.lock(session),
            timeout=self._wait_ms_max / 1000,
            mode=0o600,
            thread_local=False,
            fallback_to_soft=False,
            preserve_lock_file=True,
            poll_interval=random.uniform(*_POLL_S),  # noqa: S311 — jitter, not a secret
        )
        began = time.monotonic()
        try:
            lock.acquire()
        except Timeout:
            waited = int((time.monotonic() - began) * 1000)
            raise SessionBusyError(session=session, waited_ms=waited) from None
        try:
            yield
        finally:
            lock.release()
