"""The maintenance of an in-memory store. Memory has no damage and no trash: a sweep deletes at once."""

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain

from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.record.content import collect_references
from interlock.store.memory.state import MemoryState, names_of
from interlock.store.ports.errors import SessionsMissingError, UpkeepBusyError
from interlock.store.ports.maintenance import (
    DamagedContent,
    GcSession,
    GcSnapshot,
    Item,
    Obstacle,
    Retention,
    Skipped,
    StoreOverview,
    Swept,
)
from interlock.store.retention import add_pins, due, seconds_of


@contextmanager
def upkeep_lock(state: MemoryState) -> Generator[None]:
    """Hold the upkeep lock, for data outside of sessions, while the context lasts.

    Raises:
        UpkeepBusyError: On entering: another thread holds it.
    """
    if not state.upkeep_lock.acquire(blocking=False):
        raise UpkeepBusyError(waited_ms=0)
    try:
        yield
    finally:
        state.upkeep_lock.release()


class MemoryPins:
    """The retention pins of this store."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    def kept(self) -> frozenset[SessionId]:
        """See `RetentionPins.kept`."""
        return self._state.kept

    def keep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `RetentionPins.keep`."""
        with upkeep_lock(self._state):
            after = add_pins(self._state.kept, sessions)
            missing = tuple(sorted(frozenset(sessions) - self._state.segments.keys()))
            if missing:
                raise SessionsMissingError(missing)
            self._state.kept = after
            return after

    def unkeep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `RetentionPins.unkeep`."""
        with upkeep_lock(self._state):
            self._state.kept = self._state.kept.difference(sessions)
            return self._state.kept


class MemoryUpkeep:
    """The maintenance of this store."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state
        self.retention_pins = MemoryPins(state)

    def mark(self, report: Progress = report_nothing, *, folds_all: bool = False) -> GcSnapshot:  # noqa: ARG002 — memory holds no damage
        """See `Collector.mark`."""
        with self._state.mutex:
            return self._marked(report)

    def upkeep_lock(self) -> AbstractContextManager[None]:
        """See `Collector.upkeep_lock`."""
        return upkeep_lock(self._state)

    def free_space(self, marked: GcSnapshot, retention: Retention) -> None:
        """See `Collector.free_space`. Memory has no trash and no temporary files."""

    def sweep(self, marked: GcSnapshot, retention: Retention) -> Swept:
        """See `Collector.sweep`. It removes what is due by the snapshot and by the current state."""
        with self._state.mutex, ExitStack() as locks:
            now, expired = self._marked(), due(marked, retention).sessions
            skipped = tuple(self._skipped(expired, now, locks))
            held = {one.session for one in skipped if one.session is not None}
            spared = held | (now.names() - {one.session for one in expired})
            # The mutex excludes writers, so unreferenced content may be deleted even if it is not in the snapshot.
            taken = due(now, retention, spared)
            for session in taken.sessions:
                self._state.remove(session.session)
            for item in taken.items:
                del self._state.content[item.name]
        return Swept(taken=taken, skipped=skipped)

    def overview(self, report: Progress = report_nothing) -> StoreOverview:
        """See `StoreInspector.overview`."""
        return StoreOverview(attested=tuple(one.session for one in self.mark(report).sessions), unsound=(), debris=())

    def damaged_content(self, marked: GcSnapshot) -> tuple[DamagedContent, ...]:  # noqa: ARG002 — memory holds no damage
        """See `StoreInspector.damaged_content`."""
        return ()

    def obstacles(self) -> tuple[Obstacle, ...]:
        """See `StoreInspector.obstacles`."""
        return ()

    def held_sessions(self) -> tuple[SessionId, ...]:
        """See `StoreInspector.held_sessions`."""
        with self._state.mutex:
            return tuple(sorted(session for session, lock in self._state.locks.items() if lock.locked()))

    def _marked(self, report: Progress = report_nothing) -> GcSnapshot:
        total = len(self._state.segments)
        sessions = list[GcSession]()
        for session in sorted(self._state.segments):
            report(len(sessions), total)
            sessions.append(self._marked_session(session))
        report(total, total)
        items = (
            Item(kind=one.kind, name=name, bytes=len(one.data), modified_s=one.written_s)
            for name, one in sorted(self._state.content.items())
        )
        return GcSnapshot(sessions=tuple(sessions), items=tuple(items))

    def _marked_session(self, session: SessionId) -> GcSession:
        events = list(chain.from_iterable(self._state.history(session)))
        recorded_s = max((seconds_of(event.recorded_at) for event in events), default=0.0)
        named = collect_references(events)
        return GcSession(
            session=session,
            last_activity_s=max(recorded_s, self._state.changed_s[session]),
            bytes=sum(map(len, self._state.segments[session])),
            content=names_of(named),
            claims=named.sessions,
        )

    def _skipped(self, expired: Iterable[GcSession], now: GcSnapshot, locks: ExitStack) -> Iterator[Skipped]:
        """Lock the expired sessions, and yield those that are held or that changed since they were marked."""
        there = frozenset(now.sessions)
        for one in expired:
            lock = self._state.locks[one.session]
            if not lock.acquire(blocking=False):
                yield Skipped(session=one.session, why="busy")
                continue
            locks.callback(lock.release)
            if one not in there:
                yield Skipped(session=one.session, why="changed")
