"""The floors that ratios stand on: what the disk and the bare SDK take here and now."""

import os
import tempfile
import time
from pathlib import Path

from benchmarks.minimal_server import MinimalLog

_NOTES = b"x" * 1000


class Disk:
    """Makes one small file durable at a time, its name included, in a new directory below the one given."""

    def __init__(self, directory: Path) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="floor-", dir=directory))
        self._count = 0

    def sync_once(self) -> float:
        """Write a file, sync it and its directory; return the seconds that took."""
        self._count += 1
        began = time.perf_counter()
        handle = os.open(self._directory / str(self._count), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(handle, b"x" * 2000)
        os.fsync(handle)
        os.close(handle)
        handle = os.open(self._directory, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
        return time.perf_counter() - began


class FiveSyncs:
    """Makes durable what an advance makes durable, in its order, and does nothing else."""

    def __init__(self, directory: Path) -> None:
        self._log = MinimalLog(Path(tempfile.mkdtemp(prefix="floor-", dir=directory)) / "session")

    def append_once(self) -> float:
        """Write content, segment and manifest with five syncs; return the seconds that took."""
        began = time.perf_counter()
        self._log.append(_NOTES)
        return time.perf_counter() - began
