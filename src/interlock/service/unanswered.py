"""Calls that may be recorded and got no answer: what their refusal names, and how a repeat finds what they made.

An advance or a checkpoint needs nothing of this: its token names the one attempt, so a repeat is answered from the
record. A start and an import mint ids that only their answer shows. A start that is repeated to the same process uses
the ids of its first sending (FAIL-2); everywhere else the refusal names them (FAIL-3).
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from interlock.kernel.budgets import UNANSWERED_STARTS_MAX
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest, RunId, SessionId
from interlock.service.recent import Recent
from interlock.store.ports.errors import StoreFailureError

StartKey: TypeAlias = tuple[str, Path | None, SessionId | None, Digest]
"""What makes two starts the same call: the workflow, the workspace, the session to join, and what was sent."""


class UnansweredError(InterlockError):
    """A call may be recorded under ids that its caller was never given. `run` is None for a session that was copied."""

    def __init__(self, failure: StoreFailureError, *, session: SessionId, run: RunId | None) -> None:
        super().__init__(f"{failure}; it may be recorded as {run or session}")
        self.failure = failure
        self.session = session
        self.run = run


@contextmanager
def after_append() -> Generator[None]:
    """Report what fails inside as a call that may be recorded: it is, and only its answer is lost.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        yield
    except StoreFailureError as failure:
        raise StoreFailureError(failure.kind, failure.found, may_be_recorded=True) from failure


@contextmanager
def named(session: SessionId, run: RunId | None = None, *, is_repeat: bool = False) -> Generator[None]:
    """Name what a call that may be recorded has made, if it fails inside.

    A repeat may be recorded whatever it meets itself: the sending before it may be.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StartIds:
    """The ids under which a start is recorded, and the call that they are of."""

    key: StartKey
    session: SessionId
    run: RunId


class UnansweredStarts:
    """The ids of the starts that this process may have recorded without an answer; the oldest are forgotten."""

    def __init__(self) -> None:
        self._ids: Recent[StartKey, StartIds] = Recent(UNANSWERED_STARTS_MAX)

    def find(self, key: StartKey) -> StartIds | None:
        """Return the ids of an earlier sending of the same call, if it got no answer."""
        return self._ids.find(key)

    def keep(self, ids: StartIds) -> None:
        """Keep the ids of a start that failed and may be recorded."""
        self._ids.put(ids.key, ids)

    def forget(self, ids: StartIds) -> None:
        """Forget a start that was answered, or that cannot be answered any more. An equal one keeps its own ids."""
        if self._ids.find(ids.key) == ids:
            self._ids.forget(ids.key)
