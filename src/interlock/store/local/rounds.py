"""Rounds of syncs: those of one round depend on none of each other, so a disk may do them at the same time (APP-2)."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from interlock.kernel.budgets import SYNC_THREADS_MAX

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Round: TypeAlias = Callable[[Sequence[Callable[[], None]]], None]
"""Makes all calls, in any order, and returns when every one has ended.

Raises the error of the first call in the sequence that failed.
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


@cache
def _threads() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 — off the start-up path

    return ThreadPoolExecutor(SYNC_THREADS_MAX, thread_name_prefix="interlock-sync")
