"""Lets the threads of a process compute by turns, and wait for the disk or the client at the same time (SRV-18).

The interpreter runs one thread at a time anyway. But it lets go of its lock at every call to the system, so threads
that compute at the same time wake each other dozens of times in one call of a tool, which costs as much as the call.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager

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

    @contextmanager
    def computing(self) -> Generator[None, None, None]:
        """Compute in the turn of this thread for as long as the block runs."""
        has_taken = self.take()
        try:
            yield
        finally:
            if has_taken:
                self.give()

    @contextmanager
    def waiting(self) -> Generator[None, None, None]:
        """Let others compute while the block waits, for a disk or a lock for example, if this thread has the turn."""
        has_given = self.give()
        try:
            yield
        finally:
            if has_given:
                self.take()


TURNS = Turns()
"""The turns of this process: there is one interpreter."""
