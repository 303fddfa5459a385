"""The in-memory store: the same ports without a disk, for library users and for tests of everything above."""

import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from interlock.kernel.budgets import LOCK_WAIT_MS_MAX
from interlock.kernel.ids import Digest, SessionId, SigningKey, SnapshotRef, WorkflowHash
from interlock.record.append_plan import AppendPlan, Stamps, stamp
from interlock.record.content import Contents
from interlock.record.events import Event, is_key_event
from interlock.record.manifest import attest_history
from interlock.record.snapshot import ExecutionSnapshot, parse_snapshot
from interlock.store.lock_wait import wait_window
from interlock.store.memory.state import MemoryState, name_of
from interlock.store.memory.upkeep import MemoryUpkeep
from interlock.store.ports.definitions import DamagedDefinition, DefinitionKey
from interlock.store.ports.errors import (
    ContentDamagedError,
    DefinitionTakenError,
    SessionBusyError,
    SessionLockReleasedError,
)
from interlock.store.ports.keys import KeyRing, KeyRingStatus
from interlock.store.ports.maintenance import (
    Kind,
)
from interlock.store.ports.reader import Appended, ContentCheck, LogVersion, Salvaged, StoredLog, UnfinishedAppend
from interlock.store.ports.writer import SessionLock
from interlock.views.evolution import evolve
from interlock.views.session import BrokenHistoryError, Session, new_session


class MemorySessionLock:
    """A `SessionLock` of this store."""

    def __init__(self, session_id: SessionId, session: Session | None, maker: object) -> None:
        self.maker = maker
        self.session_id = session_id
        self.is_released = False
        self._session = session

    @property
    def session(self) -> Session | None:
        """See `SessionLock.session`."""
        if self.is_released:
            raise SessionLockReleasedError("the session's hold has ended")
        return self._session

    def advance(self, session: Session) -> None:
        """Replace the session's state after an append."""
        self._session = session


class MemoryStore:
    """Every store port in the memory of one process. Segments are stored as bytes, as on a disk.

    `now_s` is the clock that dates changes, in seconds since the epoch.
    """

    def __init__(self, *, now_s: Callable[[], float] = time.time) -> None:
        self._state = MemoryState(now_s=now_s)
        self._ring: KeyRing | None = None
        self._ring_changed_s = 0.0
        self._definitions: dict[DefinitionKey, bytes] = {}

    def load(
        self,
        session: SessionId,
        tag: str | None = None,  # noqa: ARG002 — every append is settled
        *,
        since_s: float | None = None,  # noqa: ARG002 — no read waits
    ) -> Session | None:
        """See `SessionReader.load`."""
        return self._state.folds.get(session)

    def replayed(self, session: SessionId) -> Session:
        """Return the fold of the stored bytes, read again from the start."""
        return evolve(new_session(session), *chain.from_iterable(self.history(session)))

    def stored_log(self, session: SessionId) -> StoredLog:
        """See `SessionReader.stored_log`."""
        return StoredLog(segments=tuple(self._state.segments.get(session, ())), snapshots=(), is_attested=True)

    def names(self) -> tuple[SessionId, ...]:
        """See `SessionReader.names`."""
        return self.sessions()

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        return tuple(sorted(self._state.segments))

    def is_stored(self, session: SessionId) -> bool:
        """See `SessionReader.is_stored`."""
        return session in self._state.segments

    def history(self, session: SessionId, *, after: int = 0) -> tuple[tuple[Event, ...], ...]:
        """See `SessionReader.history`."""
        return self._state.history(session, after)

    def appends(self, session: SessionId) -> tuple[Appended, ...]:
        """See `SessionReader.appends`."""
        found, after = list[Appended](), new_session(session)
        for events in self.history(session):
            after = evolve(after, *events)
            found.append(Appended(events=events, after=after))
        return tuple(found)

    def log_versions(self, *, newest: int | None = None) -> Mapping[SessionId, LogVersion]:
        """See `SessionReader.log_versions`."""
        state = self._state
        with state.mutex:
            names = sorted(state.segments)[-(newest or 0) :]
            return {name: LogVersion((len(state.segments[name]), 0, state.changed_s[name], 0)) for name in names}

    def cached_summary(
        self,
        session: SessionId,
        check: ContentCheck | None = None,  # noqa: ARG002 — memory loses nothing
    ) -> bytes | None:
        """See `SessionReader.cached_summary`."""
        count, summary = self._state.summaries.get(session, (0, b""))
        return summary if count and count == len(self._state.segments.get(session, ())) else None

    def cached_summary_of(self, session: SessionId, version: LogVersion) -> bytes | None:
        """See `SessionReader.cached_summary_of`."""
        count, summary = self._state.summaries.get(session, (0, b""))
        return summary if count and count == version[0] else None

    def salvage(self, session: SessionId) -> Salvaged | None:
        """See `SessionReader.salvage`. Memory holds no damage."""
        fold = self.load(session)
        return Salvaged(session=session, fold=fold, history=self.history(session)) if fold is not None else None

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:  # noqa: ARG002 — no append is interrupted
        """See `SessionReader.unfinished`."""
        return None

    def published(self) -> Mapping[DefinitionKey, bytes]:
        """See `DefinitionArchive.published`."""
        return dict(self._definitions)

    def damaged_definitions(self) -> Mapping[DefinitionKey, DamagedDefinition]:
        """See `DefinitionArchive.damaged_definitions`. Memory holds no damage."""
        return {}

    def publish(self, definitions: Mapping[DefinitionKey, bytes]) -> None:
        """See `DefinitionArchive.publish`."""
        with self._state.mutex:
            for (definition_id, version), data in definitions.items():
                if self._definitions.get((definition_id, version), data) != data:
                    raise DefinitionTakenError(definition_id=definition_id, version=version)
            self._definitions |= definitions

    def snapshot(self, ref: SnapshotRef) -> ExecutionSnapshot:
        """See `SessionReader.snapshot`."""
        return parse_snapshot(self._found(Kind.SNAPSHOT, "snapshot", ref))

    def check_snapshot(self, ref: SnapshotRef) -> None:
        """See `SessionReader.check_snapshot`."""
        self.snapshot(ref)

    def workflow_bytes(self, workflow_hash: WorkflowHash) -> bytes:
        """See `SessionReader.workflow_bytes`."""
        return self._found(Kind.WORKFLOW, "pinned workflow", workflow_hash)

    def artifact(self, digest: Digest) -> bytes:
        """See `SessionReader.artifact`."""
        return self._found(Kind.ARTIFACT, "artifact", digest)

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[SessionLock]:
        """See `SessionWriter.hold`."""
        with self._state.mutex:
            mutex = self._state.locks.setdefault(session, threading.Lock())
        began, until = wait_window(LOCK_WAIT_MS_MAX, since_s)
        if not mutex.acquire(timeout=max(0.0, until - time.monotonic())):
            raise SessionBusyError(session=session, waited_ms=int((time.monotonic() - began) * 1000))
        try:
            lock = MemorySessionLock(session, self._state.folds.get(session), self)
            try:
                yield lock
            finally:
                lock.is_released = True
        finally:
            mutex.release()

    def append(self, lock: SessionLock, plan: AppendPlan, stamps: Stamps) -> Session:
        """See `SessionWriter.append`."""
        lock = self._own(lock)
        if lock.session_id != plan.session:
            raise SessionLockReleasedError("a lock of another session")
        fold = lock.session or new_session(plan.session)
        segment = stamp(plan, next_index=fold.next_index, stamps=stamps)
        if any(is_key_event(event) and fold.holds(event) for event in segment.events):
            return fold
        fold = evolve(fold, *segment.events)
        workflows = dict([plan.workflow] if plan.workflow is not None else [])
        contents = Contents(snapshots=dict(plan.snapshots), workflows=workflows, artifacts=dict(plan.artifacts))
        self._record(fold, [segment.data], contents)
        lock.advance(fold)
        return fold

    def cache_summary(self, lock: SessionLock, summary: bytes) -> None:
        """See `SessionWriter.cache_summary`."""
        lock = self._own(lock)
        if lock.is_released:
            raise SessionLockReleasedError("the session's hold has ended")
        self._state.summaries[lock.session_id] = (len(self._state.segments.get(lock.session_id, ())), summary)

    def restore(self, lock: SessionLock, history: Sequence[Sequence[Event]], contents: Contents) -> Session:
        """See `SessionWriter.restore`."""
        lock = self._own(lock)
        if lock.session is not None:
            raise BrokenHistoryError("a session that has history is not restored")
        session = lock.session_id
        fold = evolve(new_session(session), *chain.from_iterable(history))
        self._record(fold, [segment for segment, _ in attest_history(session, history)], contents)
        lock.advance(fold)
        return fold

    def keys(self, *, fresh: bool = False) -> KeyRing | None:  # noqa: ARG002 — memory is always fresh
        """See `KeyRingReader.keys`."""
        return self._ring

    def ensure_keys(self) -> KeyRing:
        """See `KeyRingWriter.ensure_keys`."""
        with self._state.mutex:
            return self._ring or self._put_ring(previous=None)

    def key_ring_status(self) -> KeyRingStatus | None:
        """See `KeyRingMaintenance.key_ring_status`. Only the process and its user reach its memory."""
        if self._ring is None:
            return None
        return KeyRingStatus(
            keys=len(self._ring.keys()),
            changed_s=self._ring_changed_s,
            mode=0o600,
            directory_mode=0o700,
            has_unfinished_rotation=False,
        )

    def rotate(self) -> KeyRing:
        """See `KeyRingMaintenance.rotate`."""
        with self._state.mutex:
            old = self._ring or self._put_ring(previous=None)
            return self._put_ring(previous=old.current)

    def _put_ring(self, previous: SigningKey | None) -> KeyRing:
        self._ring = KeyRing(current=SigningKey(secrets.token_bytes(32)), previous=previous)
        self._ring_changed_s = self._state.now_s()
        return self._ring

    @property
    def upkeep(self) -> "MemoryUpkeep":
        """See `Store.upkeep`."""
        return MemoryUpkeep(self._state)

    def _own(self, lock: SessionLock) -> MemorySessionLock:
        if not isinstance(lock, MemorySessionLock) or lock.maker is not self:
            raise SessionLockReleasedError("a session lock of another store")
        return lock

    def _record(self, fold: Session, segments: Iterable[bytes], contents: Contents) -> None:
        with self._state.mutex:
            self._state.put(contents)
            self._state.record(fold, segments)

    def _found(self, kind: Kind, what: str, digest: Digest) -> bytes:
        try:
            return self._state.content[name_of(kind, digest)].data
        except KeyError:
            raise ContentDamagedError(what=what, digest=digest, found="missing") from None
