"""What checks need on the disk: one lock for each step that waits for one, and the list of allowed files (CHECK-3)."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from interlock.kernel.budgets import CHECKS_FILE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, parse_object
from interlock.kernel.ids import Digest, NodeId
from interlock.store.local import layout
from interlock.store.local.files import OsFiles, store_failure
from interlock.store.local.locks import OsLocks, is_locked, lock_now, released
from interlock.store.local.upkeep import replacing, upkeep_lock
from interlock.store.regular_file import read_regular


class LocalCheckFiles:
    """The files of checks in a data directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def hold(self, node: NodeId) -> Generator[int | None]:
        """Hold the right to run the check of a node; gives None if another process has it. A command inherits it.

        Raises:
            StoreFailureError: The disk failed.
        """
        path = self._root / layout.check_lock(node)
        try:
            OsFiles(self._root).make_dir(layout.CHECKS)
            handle = lock_now(path)
        except OSError as error:
            raise store_failure(error) from error
        if handle is None:
            yield None
            return
        with released(handle):
            try:
                yield handle
            finally:
                # Removed while it is locked: whoever opened it meanwhile sees that the path names another file.
                with suppress(OSError):
                    path.unlink()

    def is_held(self, node: NodeId) -> bool:
        """Say whether the check of a node runs, as far as that is known."""
        return bool(is_locked(self._root / layout.check_lock(node)))

    def allowed(self) -> dict[str, Digest]:
        """Return the digest of the file with own checks that a person has allowed, by its directory."""
        try:
            data = read_regular(self._root / layout.ALLOWED_CHECKS, CHECKS_FILE_BYTES_MAX)
        except OSError:
            return {}
        found: Mapping[str, object] = parse_object(data) or {}
        return {name: Digest(digest) for name, digest in found.items() if isinstance(digest, str)}

    def allow(self, directory: str, digest: Digest | None) -> None:
        """Record that the file with own checks of a directory is allowed as it is now; None forgets it.

        Raises:
            UpkeepBusyError, StoreFailureError: Another process works on the data directory, or the disk failed.
        """
        files = OsFiles(self._root)
        with upkeep_lock(files, OsLocks(self._root)):
            entries: dict[str, Json] = {name: one for name, one in self.allowed().items() if name != directory}
            if digest is not None:
                entries[directory] = digest
            with replacing(files, layout.ALLOWED_CHECKS):
                temp = layout.temp(layout.ALLOWED_CHECKS, "0" * 16)
                files.write(temp, canonical_bytes(entries))
                files.sync(temp)
                files.rename(temp, layout.ALLOWED_CHECKS)
                files.sync_dir(layout.CONFIG)
