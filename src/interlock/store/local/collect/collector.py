"""The collector of a data directory: mark and sweep behind their port."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from interlock.kernel.budgets import SWEEP_LOCK_WAIT_MS_MAX
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.store.local import layout
from interlock.store.local.collect.keep import PinFile
from interlock.store.local.collect.mark import CONTENT_KINDS, mark, overview
from interlock.store.local.collect.obstacles import find_obstacles
from interlock.store.local.collect.sweep import free_space, sweep
from interlock.store.local.content import ContentFiles
from interlock.store.local.failures import store_failure
from interlock.store.local.files import FileOps, OsFiles
from interlock.store.local.locks import Locks, OsLocks
from interlock.store.local.upkeep import upkeep_lock
from interlock.store.ports.errors import ContentDamagedError, ContentUnreadableError
from interlock.store.ports.maintenance import DamagedContent, GcSnapshot, Obstacle, Retention, StoreOverview, Swept


class LocalCollector:
    """The collector over files below one directory, and its retention pins. Opening it reads and writes nothing."""

    def __init__(self, root: Path, *, files: FileOps | None = None, locks: Locks | None = None) -> None:
        self._files = files or OsFiles(root)
        self._locks = locks or OsLocks(root)
        # Writers have priority: a session that is locked now is left to the next sweep.
        self._session_locks = locks or OsLocks(root, wait_ms_max=SWEEP_LOCK_WAIT_MS_MAX)
        self.retention_pins = PinFile(self._files, self._locks)

    def mark(self, report: Progress = report_nothing, *, folds_all: bool = False) -> GcSnapshot:
        """See `Collector.mark`."""
        return mark(self._files, self._session_locks, report, folds_all=folds_all)

    def overview(self, report: Progress = report_nothing) -> StoreOverview:
        """See `StoreInspector.overview`."""
        return overview(self._files, self._session_locks, report)

    def damaged_content(self, marked: GcSnapshot) -> tuple[DamagedContent, ...]:
        """See `StoreInspector.damaged_content`."""
        return tuple(damaged_content(self._files, marked))

    def obstacles(self) -> tuple[Obstacle, ...]:
        """See `StoreInspector.obstacles`."""
        try:
            return tuple(find_obstacles(self._files))
        except OSError as error:
            raise store_failure(error) from error

    def held_sessions(self) -> tuple[SessionId, ...]:
        """See `StoreInspector.held_sessions`."""
        try:
            names = sorted(filter(layout.is_session, self._files.names(layout.SESSIONS)))
        except OSError as error:
            raise store_failure(error) from error
        return tuple(SessionId(name) for name in names if self._locks.is_held(SessionId(name)))

    def upkeep_lock(self) -> AbstractContextManager[None]:
        """See `Collector.upkeep_lock`."""
        return upkeep_lock(self._files, self._locks)

    def free_space(self, marked: GcSnapshot, retention: Retention) -> None:
        """See `Collector.free_space`."""
        free_space(self._files, self._session_locks, marked, retention)

    def sweep(self, marked: GcSnapshot, retention: Retention) -> Swept:
        """See `Collector.sweep`."""
        return sweep(self._files, self._session_locks, marked, retention)


def damaged_content(files: FileOps, marked: GcSnapshot) -> Iterator[DamagedContent]:
    """Yield what `StoreInspector.damaged_content` returns."""
    content = ContentFiles(files)
    for name in sorted(frozenset[str]().union(*(one.content for one in marked.sessions))):
        try:
            content.read(name, layout.digest_in(name), CONTENT_KINDS[name.rpartition("/")[0]].value)
        except ContentDamagedError as damage:
            refer = tuple(one.session for one in marked.sessions if name in one.content)
            is_unreadable = isinstance(damage, ContentUnreadableError)
            yield DamagedContent(name=name, found=damage.found, sessions=refer, is_unreadable=is_unreadable)
