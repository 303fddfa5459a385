"""The local store: all ports over one data directory."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.record.errors import MalformedRecordError
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles
from interlock.store.local.files import FileOps, OsFiles
from interlock.store.local.keyring import KeyRingFile
from interlock.store.local.locks import Locks, OsLocks
from interlock.store.local.rounds import BySpeed, in_order
from interlock.store.local.session.stored_sessions import StoredSessions
from interlock.store.local.session.summary_cache import SummaryCache
from interlock.store.local.upkeep import make_root, make_trash, upkeep_lock
from interlock.store.ports.definitions import DamagedDefinition, DefinitionKey
from interlock.store.ports.errors import ContentDamagedError, FailureKind, StoreFailureError, UpkeepBusyError
from interlock.store.ports.keys import KeyRing, KeyRingStatus
from interlock.store.ports.reader import Appended, ContentCheck, LogVersion, Salvaged, StoredLog, UnfinishedAppend
from interlock.store.ports.writer import SessionLock

if TYPE_CHECKING:
    from interlock.record.append_plan import AppendPlan, Stamps
    from interlock.record.content import Contents
    from interlock.record.events import Event
    from interlock.record.snapshot import ExecutionSnapshot
    from interlock.store.local.collect.collector import LocalCollector
    from interlock.store.local.definitions import DefinitionFiles
    from interlock.store.local.live import Announced
    from interlock.store.local.session.session_log import SessionLog
    from interlock.store.ports.servers import AppliedConfig
    from interlock.views.session import Session


class LocalStore:
    """Every store port over the files of one directory. Opening it reads and writes nothing.

    `now_s` is the clock that dates files, in seconds since the epoch. `server_input` is the descriptor of the standard
    input of a process that is a server: such a process announces itself.
    """

    def __init__(
        self,
        root: Path,
        *,
        files: FileOps | None = None,
        locks: Locks | None = None,
        now_s: Callable[[], float] = time.time,
        server_input: int | None = None,
    ) -> None:
        self._root = root
        self._server_input = server_input
        self._applied: AppliedConfig | None = None
        self._announced: Announced | None = None
        self._has_root = False
        self._files = files or OsFiles(root)
        self._given_locks = locks
        self._locks = locks or OsLocks(root)
        self._content = ContentFiles(self._files, now_s)
        # Only the real disk is asked for several things at once.
        self._sync_round = BySpeed() if files is None else in_order
        self._mutex = threading.Lock()
        self._made_log: SessionLog | None = None
        self._stored = StoredSessions(self._files)
        self._keyring = KeyRingFile(self._files)
        self._summaries = SummaryCache(self._files, self._content)

    @property
    def _log(self) -> "SessionLog":
        """The logs of all sessions, one object for the whole store: it verifies the locks that it yielded."""
        with self._mutex:
            if self._made_log is None:
                from interlock.store.local.session.session_log import SessionLog  # noqa: PLC0415 — a list reads no log

                self._made_log = SessionLog(self._files, self._locks, self._content, self._sync_round)
            return self._made_log

    @property
    def _definitions(self) -> "DefinitionFiles":
        from interlock.store.local.definitions import DefinitionFiles  # noqa: PLC0415 — few calls read definitions

        return DefinitionFiles(self._files, self._locks)

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> "Session | None":
        """See `SessionReader.load`."""
        return self._log.load(session, tag, since_s=since_s)

    def names(self) -> tuple[SessionId, ...]:
        """See `SessionReader.names`."""
        return self._stored.names()

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        return self._stored.sessions()

    def is_stored(self, session: SessionId) -> bool:
        """See `SessionReader.is_stored`."""
        return self._stored.is_stored(session)

    def history(self, session: SessionId, *, after: int = 0) -> "tuple[tuple[Event, ...], ...]":
        """See `SessionReader.history`."""
        return self._log.history(session, after=after)

    def appends(self, session: SessionId) -> "tuple[Appended, ...]":
        """See `SessionReader.appends`."""
        return self._log.appends(session)

    def stored_log(self, session: SessionId) -> StoredLog:
        """See `SessionReader.stored_log`."""
        return self._stored.log(session)

    def log_versions(self, *, newest: int | None = None) -> Mapping[SessionId, LogVersion]:
        """See `SessionReader.log_versions`."""
        return self._stored.log_versions(newest=newest)

    def cached_summary(self, session: SessionId, check: ContentCheck | None = None) -> bytes | None:
        """See `SessionReader.cached_summary`."""
        return self._summaries.read(session, check)

    def cached_summary_of(self, session: SessionId, version: LogVersion) -> bytes | None:
        """See `SessionReader.cached_summary_of`."""
        return self._summaries.read_of(session, version)

    def salvage(self, session: SessionId) -> Salvaged | None:
        """See `SessionReader.salvage`."""
        return self._log.salvage(session)

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:
        """See `SessionReader.unfinished`."""
        return self._log.unfinished(session)

    def snapshot(self, ref: SnapshotRef) -> "ExecutionSnapshot":
        """See `SessionReader.snapshot`."""
        from interlock.record.snapshot import parse_snapshot  # noqa: PLC0415 — see `_log`

        data = self._content.read(layout.snapshot(ref), ref, "snapshot")
        try:
            return parse_snapshot(data)
        except MalformedRecordError as error:
            raise ContentDamagedError(what="snapshot", digest=ref, found=error.found) from error

    def check_snapshot(self, ref: SnapshotRef) -> None:
        """See `SessionReader.check_snapshot`."""
        self._content.read(layout.snapshot(ref), ref, "snapshot")

    def workflow_bytes(self, workflow_hash: WorkflowHash) -> bytes:
        """See `SessionReader.workflow_bytes`."""
        return self._content.read(layout.pinned_workflow(workflow_hash), workflow_hash, "pinned workflow")

    def artifact(self, digest: Digest) -> bytes:
        """See `SessionReader.artifact`."""
        return self._content.read(layout.artifact(digest), digest, "artifact")

    def announce(self, applied: "AppliedConfig | None" = None) -> None:
        """Say in the data directory that this server works on it. If that fails, the next write tries it again."""
        self._applied = applied or self._applied
        if self._server_input is None or self._announced is not None:
            return
        from interlock.store.local.live import announce  # noqa: PLC0415 — once in a server

        self._announced = announce(self._files, stdin=self._server_input, applied=self._applied)
        if self._announced is None and not self._has_root:
            with suppress(StoreFailureError):
                self._ensure_root()
                self._announced = announce(self._files, stdin=self._server_input, applied=self._applied)

    def is_client_of_agent(self) -> bool | None:
        """Say whether an agent started the client of this server; None if that cannot be known (WORLD-9)."""
        from interlock.store.local.live import is_client_of_agent  # noqa: PLC0415 — only for an answer of a person

        return is_client_of_agent(self._files, self._announced) if self._announced is not None else None

    def hold(self, session: SessionId, *, since_s: float | None = None) -> AbstractContextManager[SessionLock]:
        """See `SessionWriter.hold`."""
        self._ensure_root()
        self.announce()
        return self._log.hold(session, since_s=since_s)

    def append(self, lock: SessionLock, plan: "AppendPlan", stamps: "Stamps") -> "Session":
        """See `SessionWriter.append`."""
        return self._log.append(lock, plan, stamps)

    def cache_summary(self, lock: SessionLock, summary: bytes) -> None:
        """See `SessionWriter.cache_summary`."""
        from interlock.store.local.session.held import own_lock  # noqa: PLC0415 — see `_log`

        self._summaries.write(own_lock(lock, self._log).verified(), summary)

    def restore(self, lock: SessionLock, history: "Sequence[Sequence[Event]]", contents: "Contents") -> "Session":
        """See `SessionWriter.restore`."""
        return self._log.restore(lock, history, contents)

    def keys(self, *, fresh: bool = False) -> KeyRing | None:
        """See `KeyRingReader.keys`."""
        return self._keyring.keys(fresh=fresh)

    def ensure_keys(self) -> KeyRing:
        """See `KeyRingWriter.ensure_keys`."""
        self._ensure_root()
        ring = self._keyring.signing()
        return ring if ring is not None else self._made_ring()

    def rotate(self) -> KeyRing:
        """See `KeyRingMaintenance.rotate`."""
        with upkeep_lock(self._files, self._locks):
            return self._keyring.rotate()

    def key_ring_status(self) -> KeyRingStatus | None:
        """See `KeyRingMaintenance.key_ring_status`."""
        return self._keyring.status()

    def published(self) -> Mapping[DefinitionKey, bytes]:
        """See `DefinitionArchive.published`."""
        return self._definitions.published()

    def damaged_definitions(self) -> Mapping[DefinitionKey, DamagedDefinition]:
        """See `DefinitionArchive.damaged_definitions`."""
        return self._definitions.damaged()

    def publish(self, definitions: Mapping[DefinitionKey, bytes]) -> None:
        """See `DefinitionArchive.publish`."""
        self._ensure_root()
        self._definitions.publish(definitions)

    @property
    def upkeep(self) -> "LocalCollector":
        """See `Store.upkeep`."""
        from interlock.store.local.collect.collector import LocalCollector  # noqa: PLC0415 — no server needs it

        return LocalCollector(self._root, files=self._files, locks=self._given_locks)

    def _made_ring(self) -> KeyRing:
        """Create or settle the ring. This first write also creates what a full disk would refuse later.

        If nothing can be written, the ring is as durable as everything else in the directory.
        """
        try:
            with upkeep_lock(self._files, self._locks):
                # If the trash cannot be created, the collection that needs it reports that.
                with suppress(StoreFailureError):
                    make_trash(self._files)
                return self._keyring.make()
        except UpkeepBusyError as error:
            raise StoreFailureError(FailureKind.FAILED, "locked by another command") from error
        except StoreFailureError as failure:
            ring = self._keyring.keys() if failure.kind is FailureKind.READ_ONLY else None
            if ring is None:
                raise
            return ring

    def _ensure_root(self) -> None:
        """Create the data directory, durably, before the first write of this process.

        It is done even if the directory exists: the process that created it may have been killed before its sync.
        """
        if self._has_root:
            return
        make_root(self._files)
        self._has_root = True
