"""Calls that may be recorded although they got no answer: how a repeated call finds what the first one recorded.

An advance or a checkpoint does not need this: its token names the attempt, so a repeat is answered from the record. But
a start or an import makes new ids that only its answer shows. A start that is repeated in the same process reuses the
ids of the first call (FAIL-2); in all other cases the refusal names the ids (FAIL-3).
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from interlock.kernel.budgets import UNANSWERED_STARTS_MAX
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, RunId, SessionId
from interlock.service.run.recent import Recent
from interlock.store.ports.errors import StoreFailureError

StartKey: TypeAlias = tuple[str, Path | None, SessionId | None, Digest]
"""Two starts with an equal key are the same call: workflow, workspace, session to join, digest of the request."""


class UnansweredError(InterlockError):
    """A call may be recorded under ids that its caller did not get. `run` is None for an import or a repair."""

    def __init__(self, failure: StoreFailureError, *, session: SessionId, run: RunId | None) -> None:
        super().__init__(f"{failure}; it may be recorded as {run or session}")
        self.failure = failure
        self.session = session
        self.run = run


@contextmanager
def after_append() -> Generator[None]:
    """Mark a disk failure inside as one after the append: the call is recorded, and only its answer is lost.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        yield
    except StoreFailureError as failure:
        raise StoreFailureError(failure.kind, failure.found, may_be_recorded=True) from failure


@contextmanager
def named(session: SessionId, run: RunId | None = None, *, is_repeat: bool = False) -> Generator[None]:
    """Add the ids to a disk failure inside, if the call may be recorded.

    A repeat may always be recorded, because the call before it may be.

    Raises:
        UnansweredError: The disk failed, and the call may be recorded.
        StoreFailureError: The disk failed before anything was recorded.
    """
    try:
        yield
    except StoreFailureError as failure:
        if not (failure.may_be_recorded or is_repeat):
            raise
        raise UnansweredError(failure, session=session, run=run) from failure


@frozen
class StartIds:
    """The ids of a start, and the key of its call."""

    key: StartKey
    session: SessionId
    run: RunId


class UnansweredStarts:
    """The ids of the latest starts that this process may have recorded without an answer."""

    def __init__(self) -> None:
        self._ids: Recent[StartKey, StartIds] = Recent(UNANSWERED_STARTS_MAX)

    def find(self, key: StartKey) -> StartIds | None:
        """Return the ids of an earlier equal call that got no answer, if there is one."""
        return self._ids.find(key)

    def keep(self, ids: StartIds) -> None:
        """Keep the ids of a start that failed and may be recorded."""
        self._ids.put(ids.key, ids)

    def forget(self, ids: StartIds) -> None:
        """Forget a start that was answered, or cannot be answered any more. The ids of a later equal start stay."""
        if self._ids.find(ids.key) == ids:
            self._ids.forget(ids.key)
