"""Takes standard input and output away from all other code of the process. Imports nothing heavy: a start waits."""

import os
import sys


def claim_descriptors() -> tuple[int, int]:
    """Return private descriptors of stdin and stdout. No other code can read or write them any more.

    They are never closed: a thread may still wait on them, and a reused number could be another file.
    """
    null = os.open(os.devnull, os.O_RDWR)
    source, sink = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    # In a process that was started without stderr, 2 is the number of some other file.
    os.dup2(null if sys.stderr is None else 2, 1)  # pyright: ignore[reportUnnecessaryComparison] — so it is if closed
    os.close(null)
    for descriptor in (source, sink):
        # A parent that shares the file may have set it to return at once; a thread can wait. Windows has no such call.
        try:
            os.set_blocking(descriptor, True)
        except (AttributeError, OSError):
            continue
    return source, sink


def pipe_bytes(descriptor: int) -> int | None:
    """Return how many bytes a pipe holds until it is read; None for anything else, and where it cannot say."""
    try:
        import fcntl  # noqa: PLC0415 — POSIX only

        return fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)
    except (ImportError, AttributeError, OSError):
        return None
