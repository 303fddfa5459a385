"""Content-addressed files: snapshots, pinned workflows, artifacts (APP-5).

A file's name is the digest of its bytes, so readers verify what they read, and writing a file again changes nothing.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from interlock.kernel.budgets import CREATED_OPEN_MAX, REWRITE_AFTER_S, WRITTEN_KEPT_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import Digest
from interlock.kernel.turns import TURNS
from interlock.store.local import layout
from interlock.store.local.failures import error_name, store_failure
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.local.rounds import Round, in_order
from interlock.store.ports.errors import ContentDamagedError, ContentUnreadableError
from interlock.store.regular_file import NotRegularFileError, unused_name


class ContentFiles:
    """Stores and reads immutable files under the digest of their bytes. `now_s` is the clock that dates files."""

    def __init__(self, files: FileOps, now_s: Callable[[], float] = time.time) -> None:
        self._files = files
        self._now_s = now_s
        self._written_s: OrderedDict[str, float] = OrderedDict()
        self._mutex = threading.Lock()

    def read(self, path: str, digest: Digest, what: str) -> bytes:
        """Return a file's bytes, verified against its digest.

        Raises:
            ContentDamagedError: It is missing, or its bytes do not match the digest.
            ContentUnreadableError: It cannot be read.
            StoreFailureError: The disk failed.
        """
        found = "missing"
        try:
            for data in self._copies(path):
                if digest_of_bytes(data) == digest:
                    return data
                found = "wrong bytes"
        except NotRegularFileError:
            raise ContentDamagedError(what=what, digest=digest, found="not a regular file") from None
        except UnreadableError as error:
            where = error.filename or path
            raise ContentUnreadableError(what=what, digest=digest, where=where, cause=error_name(error)) from error
        except OSError as error:
            raise store_failure(error) from error
        raise ContentDamagedError(what=what, digest=digest, found=found)

    def is_stored(self, path: str, digest: Digest, data: bytes) -> bool:
        """Return whether a file need not be written: this process wrote it lately, and it still holds these bytes.

        Lately means that no sweep removes it yet. Any other file is written again, which also renews it for sweeps: its
        writer may have failed to sync it, and after a failed sync the next one succeeds without writing anything
        (APP-5); or a sweep removed it since, and the one of this name now is not durable yet.

        Raises:
            OSError: The disk failed; nothing refers to the file yet.
        """
        with self._mutex:
            written_s = self._written_s.get(path)
        if written_s is not None and self._now_s() - written_s < REWRITE_AFTER_S:
            with suppress(FileNotFoundError, UnreadableError):
                if self._files.read(path) == data:
                    return True
        assert digest_of_bytes(data) == digest, "content is filed under its own digest"
        return False

    def mark_written(self, path: str) -> None:
        """Remember that this process wrote the file just now, and made it and its name durable."""
        with self._mutex:
            self._written_s[path] = self._now_s()
            self._written_s.move_to_end(path)
            if len(self._written_s) > WRITTEN_KEPT_MAX:
                self._written_s.popitem(last=False)

    def _copies(self, path: str) -> Iterator[bytes]:
        """Yield what a file holds, then what its copy in the trash holds (GC-3).

        A file that a writer has not finished hides no whole copy. After the trash the file is read again: a sweep may
        have moved it back, or its writer finished it, between the two reads.
        """
        for place in (path, layout.trashed(path), path):
            with suppress(FileNotFoundError):
                yield self._files.read(place)


def write_durably(files: FileOps, path: str, data: bytes) -> None:
    """Write a file under a temporary name, sync it and rename it; its directory is not synced yet.

    Raises:
        OSError: The disk failed; the name still refers to the previous file, if any.
    """
    write_together(files, [(path, data)], in_order)


def write_synced(files: FileOps, wanted: Sequence[tuple[str, bytes]], dirs: Iterable[str], sync_round: Round) -> None:
    """Write files, replacing those that exist, and make them and the directories durable.

    A new file is written under its own name, because no group refers to it yet, and synced in one round with the
    directories. Meanwhile, another process may put a file with the same content in its place. The file that was created
    is synced, and the other one was synced before it got the name: a power loss leaves one of them, and it is whole.

    A group may refer to a file that exists, or to a copy in the trash whose move there is not durable yet. Such a file
    is replaced as a whole, in a round of its own (`write_together`).

    Many files take several rounds; the directories are synced in the last one.

    Raises:
        OSError: The disk failed. New files may exist, and may be incomplete.
    """
    *early, last = [wanted[at : at + CREATED_OPEN_MAX] for at in range(0, len(wanted), CREATED_OPEN_MAX)] or [()]
    for batch in early:
        _write_batch(files, batch, (), sync_round)
    _write_batch(files, last, [partial(files.sync_dir, path, full=True) for path in sorted(dirs)], sync_round)


def _write_batch(
    files: FileOps, wanted: Sequence[tuple[str, bytes]], others: Sequence[Callable[[], None]], sync_round: Round
) -> None:
    """Write files as `write_synced` does, and sync them in one round with others.

    To create a file takes as long as a quarter of what else an advance does, so other threads compute meanwhile.
    """
    existing, new = list[tuple[str, bytes]](), list[tuple[str, bytes]]()
    for path, data in wanted:
        (existing if _may_be_trashed(files, path) else new).append((path, data))
    with ExitStack() as opened, TURNS.waiting():
        syncs = list[Callable[[], None]]()
        for path, data in new:
            try:
                file = files.create(path, data)
            except FileExistsError:
                existing.append((path, data))
                continue
            opened.callback(file.close)
            syncs.append(partial(files.sync, path, full=True, opened=file))
        if existing:
            write_together(files, existing, sync_round)
        sync_round([*syncs, *others])


def _may_be_trashed(files: FileOps, path: str) -> bool:
    """Say whether a file may have a copy in the trash, so that a group may refer to its name.

    Nearly always its session is not there either, and that is found in fewer calls.
    """
    places = dict.fromkeys((layout.moved_to_trash(path), layout.trashed(path)))
    try:
        return all(files.stat(place) is not None for place in places)
    except UnreadableError:
        return True


def write_together(files: FileOps, wanted: Sequence[tuple[str, bytes]], sync_round: Round) -> None:
    """Write files under temporary names, sync them in one round, then rename them; no directory is synced yet.

    Raises:
        OSError: The disk failed; each name refers to the previous file, if any, or to its whole new one.
    """
    temps = [layout.temp(path, unused_name()) for path, _ in wanted]
    try:
        for temp, (_, data) in zip(temps, wanted, strict=True):
            files.write(temp, data)
        sync_round([partial(files.sync, temp) for temp in temps])
        for temp, (path, _) in zip(temps, wanted, strict=True):
            files.rename(temp, path)
    except OSError:
        for temp in temps:
            discard(files, temp)
        raise


def discard(files: FileOps, path: str) -> None:
    """Remove a temporary file if possible; readers ignore it in any case."""
    try:
        files.unlink(path)
    except OSError:
        return
