"""Progress of a long read on stderr, only if stderr is a terminal."""

import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from interlock.kernel.budgets import TERMINAL_PROGRESS_S_MIN, TERMINAL_PROGRESS_STEP_S
from interlock.kernel.progress import Progress, report_nothing

_Read = TypeVar("_Read")
_ERASE = "\r\x1b[K"


@contextmanager
def shown_progress(what: str) -> Generator[Progress]:
    """Yield a callback that shows progress on one line of stderr; the line is erased at the end."""
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] — it may be closed
        yield report_nothing
        return
    next_s, is_shown = time.monotonic() + TERMINAL_PROGRESS_S_MIN, False

    def show(done: int, total: int) -> None:
        nonlocal next_s, is_shown
        if time.monotonic() >= next_s:
            next_s, is_shown = time.monotonic() + TERMINAL_PROGRESS_STEP_S, True
            sys.stderr.write(f"{_ERASE}{what}: {done} of {total}")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def with_progress(read: Iterable[_Read], total: int, what: str) -> Iterator[_Read]:
    """Yield the items of a read, and show how many of `total` were read until the last one."""
    with shown_progress(what) as show:
        for number, one in enumerate(read, start=1):
            show(number, total)
            yield one
