"""How far a long look is, on a terminal; nothing where nobody watches."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from interlock.store.retention import Progress, untold

_EVERY_S = 0.1
_FIRST_S = 0.3
"""What takes less is over before it could be read."""
_CLEAR = "\r\033[K"


@contextmanager
def shown_progress(what: str) -> Generator[Progress]:
    """Return what takes the progress and shows it on one line of stderr, which is empty again afterwards."""
    if not sys.stderr.isatty():
        yield untold
        return
    next_s = time.monotonic() + _FIRST_S

    def show(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _EVERY_S
            print(f"{_CLEAR}{what} {done} of {total}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(_CLEAR, end="", file=sys.stderr, flush=True)
