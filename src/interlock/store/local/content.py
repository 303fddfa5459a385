"""Content-addressed files: snapshots, pinned workflows, artifacts (APP-5).

A file's name is the digest of its bytes, so a reader checks what it reads, and writing twice is writing once.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from interlock.kernel.budgets import RENEW_AFTER_S, SYNCED_KEPT_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import Digest
from interlock.store.local import layout
from interlock.store.local.files import FileOps, store_failure
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.regular_file import NotRegularFileError


class ContentFiles:
    """Puts and gets immutable files under the digest of their bytes. `now_s` is the clock by which files are dated."""

    def __init__(self, files: FileOps, now_s: Callable[[], float] = time.time) -> None:
        self._files = files
        self._now_s = now_s
        self._synced: OrderedDict[str, None] = OrderedDict()
        self._mutex = threading.Lock()

    def read(self, path: str, digest: Digest, what: str) -> bytes:
        """Return a file's bytes, checked against its digest.

        Raises:
            ContentDamagedError: It is missing, or its bytes are others.
            StoreFailureError: The disk failed.
        """
        try:
            data = self._found(path)
        except NotRegularFileError:
            raise ContentDamagedError(what=what, digest=digest, found="not a regular file") from None
        except OSError as error:
            raise store_failure(error) from error
        if data is None:
            raise ContentDamagedError(what=what, digest=digest, found="missing")
        if digest_of_bytes(data) != digest:
            raise ContentDamagedError(what=what, digest=digest, found="other bytes")
        return data

    def put(self, path: str, digest: Digest, data: bytes) -> set[str]:
        """See that the file stands with durable bytes; return the directories that still need a sync.

        A file that exists counts if this process made it durable and it still holds these bytes; a sweep that might
        take it is kept off. Any other is written anew: its writer may have failed to sync it, and after a failed sync
        the next one succeeds without having written anything (APP-5).

        Raises:
            OSError: The disk failed; nothing refers to the file yet.
        """
        with suppress(FileNotFoundError):
            if self._is_durable(path, data):
                return set()
        assert digest_of_bytes(data) == digest, "content is filed under its own digest"
        write_durably(self._files, path, data)
        return {layout.parent(path)}

    def _is_durable(self, path: str, data: bytes) -> bool:
        """Say whether this process made these bytes durable under this name; if so, see that no sweep takes them.

        Raises:
            FileNotFoundError: A sweep takes them right now.
            OSError: The disk failed.
        """
        with self._mutex:
            is_synced = path in self._synced
        if not is_synced or self._files.read(path) != data:
            return False
        found = self._files.stat(path)
        if found is None or self._now_s() - found.modified_s > RENEW_AFTER_S:
            self._files.renew(path)
        return True

    def mark_synced(self, path: str) -> None:
        """Remember that this process made the file and its name durable."""
        with self._mutex:
            self._synced[path] = None
            self._synced.move_to_end(path)
            if len(self._synced) > SYNCED_KEPT_MAX:
                self._synced.popitem(last=False)

    def _found(self, path: str) -> bytes | None:
        """Read a file, looking in the trash before it is called missing (GC-3).

        And then once more where it belongs: a sweep may have moved it back between the two looks.
        """
        for place in (path, layout.trashed(path), path):
            try:
                return self._files.read(place)
            except FileNotFoundError:
                continue
        return None


def write_durably(files: FileOps, path: str, data: bytes) -> None:
    """Write a file under a temporary name, sync it, and give it its name; its directory is not synced yet.

    Raises:
        OSError: The disk failed; the name still has what it had.
    """
    temp = layout.temp(path, secrets.token_hex(8))
    try:
        files.write(temp, data)
        files.sync(temp)
        files.rename(temp, path)
    except OSError:
        discard(files, temp)
        raise


def discard(files: FileOps, path: str) -> None:
    """Remove a leftover if that is possible; readers ignore it either way."""
    try:
        files.unlink(path)
    except OSError:
        return
