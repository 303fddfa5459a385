"""`gc`: delete expired sessions and unreferenced content, or only list them (GC-3, GC-8)."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import field
from typing import Literal

from interlock.engine.published import Published
from interlock.kernel.budgets import DAY_S
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.service.retention.lifetime import Kept, read_kept
from interlock.service.run.advice import advise_by_health
from interlock.store.ports.errors import FailureKind, Health, PinsDamagedError, StoreFailureError
from interlock.store.ports.maintenance import (
    Collector,
    Due,
    GcSnapshot,
    Kind,
    Retention,
    RetentionPins,
    Skipped,
    StoreInspector,
    UnsoundSession,
    Upkeep,
)
from interlock.store.retention import due, find_returning


@frozen
class CollectCommand:
    """What to delete: sessions without an event for `days` days (0: no session). `now_s` is the Unix time.

    With `chosen`, these sessions are deleted at any age, and nothing else.
    """

    days: int
    now_s: float
    is_dry_run: bool = False
    chosen: frozenset[SessionId] = frozenset()

    def retention(self, kept: frozenset[SessionId]) -> Retention:
        """Return the rule for what may be deleted; kept sessions are exempt."""
        ttl_s = self.days * DAY_S if self.days else None
        return Retention(now_s=self.now_s, ttl_s=ttl_s, kept=kept, chosen=self.chosen)


class GcBlocker(Published):
    """A reason why `gc` deletes nothing: what cannot be trusted, and what to do."""

    code: Literal["SESSION_NOT_HEALTHY", "KEEP_MARKS_DAMAGED", "KEPT_SESSION_MISSING"]
    message: str
    fix: str
    session: SessionId | None = None
    health: Health | None = None


@frozen
class Collected:
    """What was deleted, or would be; what was left; and the reasons for safe mode, if any.

    The `restored` sessions were moved back from the trash, or would be: they have not expired. What is `apart` stays,
    because it cannot be moved to the trash. `failure` ended the work early.
    """

    sessions: int
    kept: int
    taken: Due = field(default_factory=Due)
    restored: tuple[SessionId, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    blockers: tuple[GcBlocker, ...] = ()
    apart: frozenset[Kind] = frozenset()
    failure: StoreFailureError | None = None

    @property
    def is_safe_mode(self) -> bool:
        """Whether `gc` deletes nothing because the store cannot be trusted."""
        return bool(self.blockers)

    @property
    def needs_attention(self) -> bool:
        """Whether something stays until a person has done something about it."""
        is_kept = any(one.why in {"damaged", "linked", "failed"} for one in self.skipped)
        return self.is_safe_mode or is_kept or bool(self.apart) or self.failure is not None


def _announce_nothing(_taken: Due) -> None: ...


def collect(
    collector: Upkeep,
    pins: RetentionPins,
    command: CollectCommand,
    progress: Progress = report_nothing,
    announce: Callable[[Due], None] = _announce_nothing,
) -> Collected:
    """Find what can be deleted and delete it; a dry run only finds it and writes nothing.

    `announce` gets what is due before any of it is moved: a later run deletes it for good, even if this one is
    interrupted before it reports anything.

    Raises:
        UpkeepBusyError: Another process runs `gc` or changes retention pins.
        StoreFailureError: The disk failed before anything was deleted.
    """
    with ExitStack() as lock:
        if command.is_dry_run:
            return _collect(collector, pins, command, progress, announce)
        try:
            lock.enter_context(collector.upkeep_lock())
        except StoreFailureError as failure:
            if failure.kind is not FailureKind.FULL:
                raise
            # The lock file is missing, and the disk has no room for a new one until something is deleted.
            _free_space(collector, pins, command, progress)
            lock.enter_context(collector.upkeep_lock())
        return _collect(collector, pins, command, progress, announce)


def _collect(
    collector: Upkeep,
    pins: RetentionPins,
    command: CollectCommand,
    progress: Progress,
    announce: Callable[[Due], None],
) -> Collected:
    # The pins are read before the sessions are listed, so every pinned session is listed, even without a lock.
    kept = read_kept(pins)
    snapshot = collector.mark(progress)
    count = len(snapshot.sessions) + len(snapshot.unsound)
    blockers = find_gc_blockers(kept, snapshot.names(), snapshot.unsound)
    if blockers or isinstance(kept, PinsDamagedError):
        marks = 0 if isinstance(kept, PinsDamagedError) else len(kept)
        return Collected(sessions=count, kept=marks, blockers=blockers)
    retention, left = hold_back(collector, snapshot, command.retention(kept))
    found = Collected(
        sessions=count,
        kept=len(kept),
        taken=due(snapshot, retention),
        restored=tuple(one.session for one in find_returning(snapshot, retention)),
        skipped=left,
        apart=snapshot.apart,
    )
    announce(found.taken)
    if command.is_dry_run:
        return found
    swept = collector.sweep(snapshot, retention)
    skipped = (*left, *swept.skipped)
    return replace(found, taken=swept.taken, restored=swept.restored, skipped=skipped, failure=swept.failure)


def hold_back(
    inspector: StoreInspector, snapshot: GcSnapshot, retention: Retention
) -> tuple[Retention, tuple[Skipped, ...]]:
    """Return the rule under which expired sessions that may be restored, and those behind links, stay; and which stay.

    Only the content of sessions that are due is read. A chosen session goes although content of it is lost.

    Raises:
        StoreFailureError: The disk failed.
    """
    expired = due(snapshot, retention).sessions
    linked = [one.session for one in expired if one.is_linked]
    aged = replace(snapshot, sessions=tuple(one for one in expired if one.session not in retention.chosen))
    damaged = {session for one in inspector.damaged_content(aged) for session in one.sessions}.difference(linked)
    left = [Skipped(session=one, why="linked") for one in linked]
    left += [Skipped(session=one, why="damaged") for one in sorted(damaged)]
    if not retention.chosen:
        left += [Skipped(session=None, why="foreign", name=one.name) for one in snapshot.foreign]
    return replace(retention, kept=retention.kept.union(linked, damaged)), tuple(left)


def _free_space(collector: Collector, pins: RetentionPins, command: CollectCommand, progress: Progress) -> None:
    kept = read_kept(pins)
    snapshot = collector.mark(progress)
    if not find_gc_blockers(kept, snapshot.names(), snapshot.unsound):
        collector.free_space(snapshot, command.retention(frozenset()))


def find_gc_blockers(
    kept: Kept, sound: Iterable[SessionId], unsound: Collection[UnsoundSession]
) -> tuple[GcBlocker, ...]:
    """Return each reason why nothing may be deleted. The sessions must be listed after `kept` was read."""
    existing = {*sound, *(one.session for one in unsound)}
    return (*_pin_blockers(kept, existing), *map(_session_blocker, unsound))


def _pin_blockers(kept: Kept, existing: Collection[SessionId]) -> Iterator[GcBlocker]:
    if isinstance(kept, PinsDamagedError):
        yield GcBlocker(
            code="KEEP_MARKS_DAMAGED",
            message=f"The retention pins, config/keep.json of the data directory, cannot be read: {kept.found}.",
            fix=f"Restore the file from a backup. {kept.fix}",
        )
        return
    for session in sorted(kept.difference(existing)):
        yield GcBlocker(
            code="KEPT_SESSION_MISSING",
            message=f"{session} is marked to be kept but is missing: it was removed by hand, or its files are lost.",
            fix="Restore its directory from a backup or from `trash/sessions` of the data directory. If you do not"
            f" need the session, run `interlock session unkeep {session}`.",
            session=session,
        )


def _session_blocker(one: UnsoundSession) -> GcBlocker:
    if one.health is Health.UNKNOWN_VERSION:
        message = f"{one.session} was written by a newer Interlock ({one.where}: {one.found})."
        fix = "Run `interlock gc` of that version, or move the session's directory out of the data directory."
    elif one.health is Health.UNREADABLE:
        message = f"{one.session} cannot be read ({one.where}: {one.found})."
        fix = f"{advise_by_health(one.session, one.health)} Or, to give the session up, move its directory out of"
        fix += " the data directory: content that only it refers to is then deleted."
    else:
        message = f"{one.session} is damaged ({one.health.value}; {one.where}: {one.found})."
        fix = f"{advise_by_health(one.session, one.health)} Then move its directory out of the data directory."
    return GcBlocker(code="SESSION_NOT_HEALTHY", message=message, fix=fix, session=one.session, health=one.health)
