"""How far a long reading is, on a terminal's error output and nowhere else."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Read = TypeVar("_Read")
_SECONDS_MIN = 0.5
"""What is over sooner is not worth a word."""
_STEP_SECONDS = 0.1
_ERASE = "\r\x1b[K"


def with_progress(read: Iterable[_Read], total: int, what: str) -> Iterator[_Read]:
    """Yield what is read, and tell how many of `total` came; the words are gone when the last has come."""
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] — it may be closed
        yield from read
        return
    told, is_shown = time.monotonic() + _SECONDS_MIN - _STEP_SECONDS, False
    try:
        for number, one in enumerate(read, start=1):
            if time.monotonic() - told >= _STEP_SECONDS:
                told, is_shown = time.monotonic(), True
                sys.stderr.write(f"{_ERASE}{what}: {number} of {total}")
                sys.stderr.flush()
            yield one
    finally:
        if is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
