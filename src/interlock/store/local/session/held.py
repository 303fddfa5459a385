"""The proof that a session's lock is held, and the errors of the ports that a failure turns into."""

from collections.abc import Generator
from contextlib import contextmanager

from interlock.kernel.ids import SessionId
from interlock.store.local.failures import session_failure
from interlock.store.local.session.reading import DamageError, Verified
from interlock.store.ports.errors import SessionLockReleasedError, SessionUnhealthyError
from interlock.store.ports.writer import SessionLock
from interlock.views.session import BrokenHistoryError, Session


class LocalSessionLock:
    """A `SessionLock` of this store: valid inside the `with` block that yielded it, and only for its session.

    `maker` identifies the store that yielded it; every other store rejects it.
    """

    def __init__(self, verified: Verified, maker: object) -> None:
        self.maker = maker
        self._verified: Verified | None = verified

    @property
    def session(self) -> Session | None:
        """See `SessionLock.session`."""
        fold = self.verified().fold
        return fold if fold.next_index else None

    def verified(self) -> Verified:
        """Return what was verified under the lock.

        Raises:
            SessionLockReleasedError: The hold has ended.
        """
        if self._verified is None:
            raise SessionLockReleasedError("the session's hold has ended")
        return self._verified

    def advance(self, verified: Verified | None) -> None:
        """Replace the verified state after an append; None ends the hold."""
        self._verified = verified


def own_lock(lock: SessionLock, maker: object) -> LocalSessionLock:
    """Return a session lock after checking that this store yielded it.

    Raises:
        SessionLockReleasedError: Another store made it.
    """
    if not isinstance(lock, LocalSessionLock) or lock.maker is not maker:
        raise SessionLockReleasedError("a session lock of another store")
    return lock


@contextmanager
def port_errors(session: SessionId) -> Generator[None]:
    """Convert the errors of reading and writing a session into those that the ports document."""
    try:
        yield
    except DamageError as damage:
        raise SessionUnhealthyError(
            session=session,
            health=damage.health,
            where=damage.where,
            found=damage.found,
            breaks_history=isinstance(damage.__cause__, BrokenHistoryError),
        ) from damage
    except OSError as error:
        raise session_failure(session, error) from error
