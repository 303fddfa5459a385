"""Rounds of syncs: those of one round depend on none of each other, so a disk may do them at the same time (APP-2)."""

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from interlock.kernel.budgets.threads import SLOW_SYNC_S, SYNC_THREADS_MAX
from interlock.kernel.turns import TURNS

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Round: TypeAlias = Callable[[Sequence[Callable[[], None]]], None]
"""Makes all calls, in any order, and returns when every one that began has ended.

Raises the error of the first call in the sequence that failed; after an error, calls may be left out.
"""


def in_order(calls: Sequence[Callable[[], None]]) -> None:
    """Make one call after another; the first error ends the round. For a disk that counts its operations."""
    for call in calls:
        call()


def at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Make all calls at the same time, the first in this thread. An error never leaves a call running."""
    others = [_threads().submit(call) for call in calls[1:]]
    try:
        for call in calls[:1]:
            call()
    finally:
        errors = [other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error


class BySpeed:
    """Makes the calls of a round at the same time on a slow disk, and one after another on a fast one.

    To hand a call to a thread costs as much as a sync of a fast disk. The disk is slow if even the fastest call of the
    last round took `SLOW_SYNC_S`: a single slow one may have waited for the processor.
    """

    def __init__(self, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._now_s = now_s
        self._is_slow = False

    def __call__(self, calls: Sequence[Callable[[], None]]) -> None:
        """See `Round`; one after another, the first error ends the round."""
        taken = list[float]()

        def timed(call: Callable[[], None]) -> None:
            began = self._now_s()
            call()
            taken.append(self._now_s() - began)

        with TURNS.waiting():
            (at_once if self._is_slow else in_order)([partial(timed, call) for call in calls])
        self._is_slow = min(taken, default=0.0) >= SLOW_SYNC_S


@cache
def _threads() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 — off the start-up path

    return ThreadPoolExecutor(SYNC_THREADS_MAX, thread_name_prefix="interlock-sync")
