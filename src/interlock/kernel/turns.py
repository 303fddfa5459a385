"""Lets the threads of a process compute by turns, and wait for the disk or the client at the same time (SRV-18).

The interpreter runs one thread at a time anyway. But it lets go of its lock at every call to the system, so threads
that compute at the same time wake each other dozens of times in one call of a tool, which costs as much as the call.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from interlock.kernel.budgets.threads import TURN_S_MAX, TURNS_WAITED_MAX


class Turns:
    """One turn to compute, which one thread has at a time.

    It protects no data: to compute without the turn is only slower. A thread that has had the turn for `TURN_S_MAX`
    no longer keeps others waiting: they compute at the same time, as if there were no turns. A thread waits for at
    most `TURNS_WAITED_MAX` turns. So no thread can hold up another for long, whatever it does in its turns.
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
        for _ in range(TURNS_WAITED_MAX):
            number = self._number
            if self._lock.acquire(timeout=0 if number == self._overdue else TURN_S_MAX):
                self._number += 1
                self._holder = me
                return True
            if number == self._number:
                self._overdue = number
                return False
        return False

    def give(self) -> bool:
        """Let the next thread compute; return False if this thread does not have the turn."""
        if self._holder != threading.get_ident():
            return False
        self._holder = None
        self._lock.release()
        return True

    def computing(self) -> AbstractContextManager[None]:
        """Compute in the turn of this thread for as long as the block runs."""
        return _Changed(self.take, self.give)

    def waiting(self) -> AbstractContextManager[None]:
        """Let others compute while the block waits, for a disk or a lock for example, if this thread has the turn."""
        return _Changed(self.give, self.take)


class _Changed:
    """Takes or gives the turn for as long as a block runs. It is entered several times in each call of a tool."""

    __slots__ = ("_begin", "_end", "_is_changed")

    def __init__(self, begin: Callable[[], bool], end: Callable[[], bool]) -> None:
        self._begin, self._end, self._is_changed = begin, end, False

    def __enter__(self) -> None:
        self._is_changed = self._begin()

    def __exit__(self, *_: object) -> None:
        if self._is_changed:
            self._end()


TURNS = Turns()
"""The turns of this process: there is one interpreter."""
