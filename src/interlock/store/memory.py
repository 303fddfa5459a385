"""The in-memory store: the same ports without a disk, for library users and for tests of everything above."""

import secrets
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.record.append_plan import AppendPlan, Stamps, stamp
from interlock.record.content import Contents
from interlock.record.events import Event, is_key_event, parse_event
from interlock.record.manifest import attest_history
from interlock.record.snapshot import ExecutionSnapshot, parse_snapshot
from interlock.record.tokens import SigningKey
from interlock.store.ports import (
    ContentDamagedError,
    KeyRing,
    LogMark,
    Salvaged,
    UnfinishedAppend,
    Witness,
    WitnessReleasedError,
)
from interlock.views.session import BrokenHistoryError, Session, evolve, new_session


class MemoryWitness:
    """The witness of this store."""

    def __init__(self, session_id: SessionId, session: Session | None) -> None:
        self.session_id = session_id
        self.is_released = False
        self._session = session

    @property
    def session(self) -> Session | None:
        """See `Witness.session`."""
        if self.is_released:
            raise WitnessReleasedError("the session's hold has ended")
        return self._session

    def advance(self, session: Session) -> None:
        """Go on with what an append made true."""
        self._session = session


class MemoryStore:
    """Every port of durable truth in one process's memory. Segments are kept as bytes, as a disk would."""

    def __init__(self) -> None:
        self._segments: dict[SessionId, list[bytes]] = {}
        self._folds: dict[SessionId, Session] = {}
        self._content: dict[Digest, bytes] = {}
        self._locks: dict[SessionId, threading.Lock] = {}
        self._mutex = threading.Lock()
        self._ring: KeyRing | None = None
        self._summaries: dict[SessionId, tuple[int, bytes]] = {}

    def load(self, session: SessionId, tag: str | None = None) -> Session | None:  # noqa: ARG002 — all is settled
        """See `SessionReader.load`."""
        return self._folds.get(session)

    def replayed(self, session: SessionId) -> Session:
        """Return the fold of the stored bytes, read again from the first."""
        fold = new_session(session)
        for segment in self._segments.get(session, []):
            fold = evolve(fold, *map(parse_event, segment.splitlines()))
        return fold

    def segments(self, session: SessionId) -> tuple[bytes, ...]:
        """Return the stored segments, oldest first."""
        return tuple(self._segments.get(session, ()))

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        return tuple(sorted(self._segments))

    def history(self, session: SessionId) -> tuple[tuple[Event, ...], ...]:
        """See `SessionReader.history`."""
        return tuple(tuple(map(parse_event, segment.splitlines())) for segment in self.segments(session))

    def marks(self) -> Mapping[SessionId, LogMark]:
        """See `SessionReader.marks`."""
        return {session: LogMark((len(segments), 0, 0.0, 0)) for session, segments in self._segments.items()}

    def cached_summary(self, session: SessionId) -> bytes | None:
        """See `SessionReader.cached_summary`."""
        count, summary = self._summaries.get(session, (0, b""))
        return summary if count and count == len(self.segments(session)) else None

    def salvage(self, session: SessionId) -> Salvaged | None:
        """See `SessionReader.salvage`. Memory holds no damage."""
        facts = self.load(session)
        return Salvaged(session=session, facts=facts, history=self.history(session)) if facts is not None else None

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:  # noqa: ARG002 — memory is never cut off
        """See `SessionReader.unfinished`."""
        return None

    def snapshot(self, ref: SnapshotRef) -> ExecutionSnapshot:
        """See `SessionReader.snapshot`."""
        return parse_snapshot(self._found("snapshot", ref))

    def workflow_bytes(self, workflow_hash: WorkflowHash) -> bytes:
        """See `SessionReader.workflow_bytes`."""
        return self._found("pinned workflow", workflow_hash)

    def artifact(self, digest: Digest) -> bytes:
        """See `SessionReader.artifact`."""
        return self._found("artifact", digest)

    @contextmanager
    def hold(self, session: SessionId) -> Generator[Witness]:
        """See `SessionWriter.hold`."""
        with self._mutex:
            lock = self._locks.setdefault(session, threading.Lock())
        with lock:
            witness = MemoryWitness(session, self._folds.get(session))
            try:
                yield witness
            finally:
                witness.is_released = True

    def append(self, witness: Witness, plan: AppendPlan, stamps: Stamps) -> Session:
        """See `SessionWriter.append`."""
        if not isinstance(witness, MemoryWitness) or witness.session_id != plan.session:
            raise WitnessReleasedError("not a witness of this session")
        fold = witness.session or new_session(plan.session)
        segment = stamp(plan, next_index=fold.next_index, stamps=stamps)
        if any(is_key_event(event) and event.dedupe_key in fold.dedupe_keys for event in segment.events):
            return fold
        fold = evolve(fold, *segment.events)
        self._keep([*plan.snapshots, *plan.artifacts, *([plan.workflow] if plan.workflow else [])])
        self._segments.setdefault(plan.session, []).append(segment.data)
        self._folds[plan.session] = fold
        witness.advance(fold)
        return fold

    def cache_summary(self, witness: Witness, summary: bytes) -> None:
        """See `SessionWriter.cache_summary`."""
        if not isinstance(witness, MemoryWitness) or witness.is_released:
            raise WitnessReleasedError("not a witness of this store")
        self._summaries[witness.session_id] = (len(self.segments(witness.session_id)), summary)

    def restore(self, witness: Witness, history: Sequence[Sequence[Event]], contents: Contents) -> Session:
        """See `SessionWriter.restore`."""
        if not isinstance(witness, MemoryWitness):
            raise WitnessReleasedError("not a witness of this store")
        if witness.session is not None:
            raise BrokenHistoryError("a session that has history is not restored")
        session = witness.session_id
        fold = evolve(new_session(session), *chain.from_iterable(history))
        self._keep([*contents.snapshots.items(), *contents.workflows.items(), *contents.artifacts.items()])
        self._segments[session] = [segment for segment, _ in attest_history(session, history)]
        self._folds[session] = fold
        witness.advance(fold)
        return fold

    def keys(self, *, fresh: bool = False) -> KeyRing | None:  # noqa: ARG002 — memory is always fresh
        """See `KeyRingPort.keys`."""
        return self._ring

    def ensured(self) -> KeyRing:
        """See `KeyRingPort.ensured`."""
        with self._mutex:
            self._ring = self._ring or KeyRing(current=SigningKey(secrets.token_bytes(32)), previous=None)
            return self._ring

    def rotate(self) -> KeyRing:
        """See `KeyRingPort.rotate`."""
        old = self.ensured()
        self._ring = KeyRing(current=SigningKey(secrets.token_bytes(32)), previous=old.current)
        return self._ring

    def _keep(self, content: Iterable[tuple[Digest, bytes]]) -> None:
        for digest, data in content:
            assert digest_of_bytes(data) == digest, "content is filed under its own digest"
            self._content[digest] = data

    def _found(self, what: str, digest: Digest) -> bytes:
        try:
            return self._content[digest]
        except KeyError:
            raise ContentDamagedError(what=what, digest=digest, found="missing") from None
