"""How much of an exhaustive family of cases a run of the tests takes: a share of it, or all of it in `make soak`.

A test that takes a share is marked `exhaustive`. Which cases an ordinary run takes does not change from run to run.
"""

import itertools
import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

IS_WHOLE = os.environ.get("INTERLOCK_EXHAUSTIVE") == "1"


def share_of(cases: Iterable[T], every: int) -> list[T]:
    """Return one in so many cases, with the first and the last one; or all cases."""
    if IS_WHOLE:
        return list(cases)
    rest = iter(cases)
    found = list(itertools.islice(rest, every + 1))
    if len(found) <= every:
        return found
    chosen, last = found[:1], found[-1]
    # What is not chosen is not kept: the families are large.
    for number, case in enumerate(rest, every + 1):
        if (number - 1) % every == 0:
            chosen.append(last)
        last = case
    return [*chosen, last]


def examples(count: int, every: int = 5) -> int:
    """Return how many random examples to try of those that a whole run tries."""
    return count if IS_WHOLE else -(-count // every)
