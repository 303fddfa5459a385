"""What checks need on the disk: one lock for each step that waits for one, and the list of allowed files (CHECK-3)."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from interlock.kernel.budgets import CHECK_RUN_BYTES_MAX
from interlock.kernel.budgets.files import SMALL_FILE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, parse_object
from interlock.kernel.ids import Digest, NodeId
from interlock.record.errors import MalformedRecordError
from interlock.store.local import layout
from interlock.store.local.content import write_durably
from interlock.store.local.failures import error_name, store_failure
from interlock.store.local.files import FileOps, OsFiles
from interlock.store.local.locks import OsLocks, is_locked, lock_now, read_locked, released, rewrite_locked
from interlock.store.local.small_files import read_small
from interlock.store.local.upkeep import replacing, upkeep_lock
from interlock.store.ports.errors import FailureKind, StoreFailureError
from interlock.store.ports.maintenance import Obstacle


class CheckLock:
    """The held right to run the check of a node. Its file has the number of the run that has begun (CHECK-7).

    `descriptor` is what a command inherits. `unfinished` is the run of an earlier holder, which ended before it had
    recorded the result of that run; None if there is none.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.unfinished = _run_number(read_locked(descriptor, CHECK_RUN_BYTES_MAX))

    def mark(self, run: int) -> None:
        """Write down that a run begins, in place of an earlier one.

        Raises:
            StoreFailureError: The disk failed.
        """
        try:
            rewrite_locked(self.descriptor, f"{run}\n".encode())
        except OSError as error:
            raise store_failure(error) from error
        self.unfinished = None


class LocalCheckFiles:
    """The files of checks in a data directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def hold(self, node: NodeId) -> Generator[CheckLock | None]:
        """Hold the right to run the check of a node; gives None if another process has it.

        If the caller fails before it has recorded what became of an earlier run, the next one finds that run again.

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
            lock = CheckLock(handle)
            try:
                yield lock
            except BaseException:
                if lock.unfinished is None:
                    _remove(path)
                raise
            _remove(path)

    def is_held(self, node: NodeId) -> bool:
        """Say whether the check of a node runs, as far as that is known."""
        return bool(is_locked(self._root / layout.check_lock(node)))

    def is_unfinished(self, node: NodeId) -> bool:
        """Say whether a run of the check of a node has begun and nobody runs it, as far as that is known."""
        try:
            is_begun = (self._root / layout.check_lock(node)).stat().st_size > 0
        except OSError:
            return False
        return is_begun and not self.is_held(node)

    def allowed(self) -> dict[str, Digest]:
        """Return the digest of the file with own checks that a person has allowed, by its directory.

        If that cannot be read, none is allowed.
        """
        try:
            return read_allowed(OsFiles(self._root))
        except (OSError, MalformedRecordError):
            return {}

    def obstacle(self) -> Obstacle | None:
        """Return why it is unknown which files a person has allowed; None if it is known."""
        return allowed_obstacle(OsFiles(self._root))

    def allow(self, directory: str, digest: Digest | None) -> None:
        """Record that the file with own checks of a directory is allowed as it is now; None forgets it.

        Raises:
            UpkeepBusyError, StoreFailureError: Another process works on the data directory, the disk failed, what was
                allowed before cannot be read, or the list would be too large.
        """
        files = OsFiles(self._root)
        with upkeep_lock(files, OsLocks(self._root)):
            try:
                entries: dict[str, Json] = {**read_allowed(files)}
            except OSError as error:
                raise store_failure(error) from error
            except MalformedRecordError as error:
                raise StoreFailureError(FailureKind.UNREADABLE, error.found, where=layout.ALLOWED_CHECKS) from error
            entries.pop(directory, None)
            if digest is not None:
                entries[directory] = digest
            data = canonical_bytes(entries)
            if len(data) > SMALL_FILE_BYTES_MAX:
                raise StoreFailureError(FailureKind.TOO_LARGE, f"{layout.ALLOWED_CHECKS} would have {len(data)} bytes")
            with replacing(files, layout.ALLOWED_CHECKS):
                write_durably(files, layout.ALLOWED_CHECKS, data)
                files.sync_dir(layout.CONFIG)


def _run_number(data: bytes) -> int | None:
    """Return the number that a lock file has; None for the file of a run that has not begun."""
    text = data.strip()
    return int(text) if text.isdigit() else None


def _remove(path: Path) -> None:
    """Remove a lock file while it is locked: whoever opened it meanwhile sees that the path names another file."""
    with suppress(OSError):
        path.unlink()


def allowed_obstacle(files: FileOps) -> Obstacle | None:
    """Return why the list of allowed files cannot be used; None if it can.

    As long as it cannot, no check of a project is run, and no other one can be allowed.
    """
    try:
        read_allowed(files)
    except MalformedRecordError as error:
        found = error.found
    except OSError as error:
        found = f"it cannot be read ({error_name(error)})"
    else:
        return None
    fix = "Restore it from a backup, or move it elsewhere and allow each project again (`interlock checks allow`)."
    return Obstacle(name=layout.ALLOWED_CHECKS, found=found, fix=fix)


def read_allowed(files: FileOps) -> dict[str, Digest]:
    """Return what `LocalCheckFiles.allowed` returns; empty if the list is missing.

    Raises:
        MalformedRecordError: The file holds anything but such a list.
        OSError: It cannot be read.
    """
    try:
        found: Mapping[str, object] | None = parse_object(read_small(files, layout.ALLOWED_CHECKS))
    except FileNotFoundError:
        return {}
    digests = {name: Digest(one) for name, one in (found or {}).items() if isinstance(one, str)}
    if found is None or len(digests) < len(found):
        raise MalformedRecordError("allowed checks", "it does not hold what Interlock writes")
    return digests
