"""Adds a time to every sync of a file, in each Python process that finds this module on its path at the start.

`python -m benchmarks --sync-ms 5` puts it there: then a fast disk waits like a slow one. Syncs issued at the same time
wait at the same time, as a disk lets them.
"""

import os
import time

_SECONDS = float(os.environ.get("BENCHMARK_SYNC_MS", "0")) / 1000
_fsync, _fdatasync = os.fsync, os.fdatasync


def _slow_fsync(handle: int) -> None:
    _fsync(handle)
    time.sleep(_SECONDS)


def _slow_fdatasync(handle: int) -> None:
    _fdatasync(handle)
    time.sleep(_SECONDS)


if _SECONDS:
    os.fsync = _slow_fsync
    os.fdatasync = _slow_fdatasync
