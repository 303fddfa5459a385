"""How much of an exhaustive family of cases a run of the tests takes: a share of it, or all of it in `make soak`.

A test that takes a share is marked `exhaustive`. Which cases an ordinary run takes does not change from run to run.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

IS_WHOLE = os.environ.get("INTERLOCK_EXHAUSTIVE") == "1"


def share_of(cases: Iterable[T], every: int) -> list[T]:
    """Return one in so many cases, with the first and the last one; or all cases."""
    found = list(cases)
    if IS_WHOLE or len(found) <= every:
        return found
    return [*found[:-1:every], found[-1]]


def examples(count: int, every: int = 5) -> int:
    """Return how many random examples to try of those that a whole run tries."""
    return count if IS_WHOLE else -(-count // every)
