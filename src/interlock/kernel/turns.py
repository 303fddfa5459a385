"""Lets the threads of a process compute by turns, and wait for the disk or the client at the same time (SRV-18).

The interpreter runs one thread at a time anyway. But it lets go of its lock at every call to the system, so threads
that compute at the same time wake each other dozens of times in one call of a tool, which costs as much as the call.
"""

import threading
from types import TracebackType

from interlock.kernel.budgets.threads import TURN_S_MAX


class Turns:
    """One turn to compute, which one thread has at a time.

    It protects no data: to compute without the turn is only slower. A thread that has had the turn for `TURN_S_MAX`
    keeps nobody waiting any more; the others compute at the same time, as if there were no turns. So no thread can
    hold up the process, whatever it does in its turn.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._number = 0
        self._overdue: int | None = None

    def take(self) -> bool:
        """Wait for the turn; return False if this thread has it already, or continues without it."""
        me = threading.get_ident()
        if self._holder == me:
            return False
        number = self._number
        while not self._lock.acquire(timeout=0 if number == self._overdue else TURN_S_MAX):
            if number == self._number:
                self._overdue = number
                return False
            number = self._number
        self._number += 1
        self._holder = me
        return True

    def give(self) -> bool:
        """Let the next thread compute; return False if this thread does not have the turn."""
        if self._holder != threading.get_ident():
            return False
        self._holder = None
        self._lock.release()
        return True


class Computing:
    """A block of code that computes in its turn."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._has_taken = False

    def __enter__(self) -> None:
        self._has_taken = self._turns.take()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if self._has_taken:
            self._turns.give()


class Waiting:
    """A block of code that waits. If the thread has the turn, others have it meanwhile."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._has_given = False

    def __enter__(self) -> None:
        self._has_given = self._turns.give()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if self._has_given:
            self._turns.take()


TURNS = Turns()
"""The turns of this process: there is one interpreter."""


def computing() -> Computing:
    """Return a block that computes in its turn."""
    return Computing(TURNS)


def waiting() -> Waiting:
    """Return a block that waits for something else than the processor."""
    return Waiting(TURNS)
