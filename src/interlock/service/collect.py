"""`gc`: collect what has expired and what nothing refers to, or say what that would be (GC-3, GC-8)."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from interlock.engine.published import Published
from interlock.kernel.budgets import DAY_S
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.store.ports.errors import FailureKind, Health, PinsDamagedError, StoreFailureError
from interlock.store.ports.maintenance import Collector, Due, Retention, RetentionPins, Skipped, UnsoundSession
from interlock.store.retention import due

Kept: TypeAlias = frozenset[SessionId] | PinsDamagedError
"""The kept sessions, or why they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectCommand:
    """What to collect: sessions without an event for so many days (0: none). `now_s` counts from the epoch."""

    days: int
    now_s: float
    is_dry_run: bool = False

    def retention(self, kept: frozenset[SessionId]) -> Retention:
        """Return what may go, those that are kept aside."""
        return Retention(now_s=self.now_s, ttl_s=self.days * DAY_S if self.days else None, kept=kept)


class GcBlocker(Published):
    """A reason why nothing is collected: what cannot be relied on, and what to do."""

    code: Literal["SESSION_NOT_HEALTHY", "KEEP_MARKS_DAMAGED", "KEPT_SESSION_MISSING"]
    message: str
    fix: str
    session: SessionId | None = None
    health: Health | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What went, or would go; what was left to the next time; and what made it do nothing: safe mode."""

    sessions: int
    kept: int
    taken: Due = field(default_factory=Due)
    skipped: tuple[Skipped, ...] = ()
    doubts: tuple[GcBlocker, ...] = ()

    @property
    def is_safe_mode(self) -> bool:
        """Whether nothing goes because something cannot be relied on."""
        return bool(self.doubts)


def collect(
    collector: Collector, marks: RetentionPins, command: CollectCommand, progress: Progress = report_nothing
) -> Collected:
    """Mark, and unless it is a dry run, sweep. A dry run writes nothing.

    Raises:
        UpkeepBusyError: Another process collects or sets marks.
        StoreFailureError: The disk failed; what was not taken yet is taken the next time.
    """
    with ExitStack() as lock:
        if command.is_dry_run:
            return _collected(collector, marks, command, progress)
        try:
            lock.enter_context(collector.alone())
        except StoreFailureError as failure:
            if failure.kind is not FailureKind.FULL:
                raise
            # The lock file was removed, and the disk has no room for another until something goes.
            _make_room(collector, marks, command, progress)
            lock.enter_context(collector.alone())
        return _collected(collector, marks, command, progress)


def _collected(collector: Collector, marks: RetentionPins, command: CollectCommand, progress: Progress) -> Collected:
    # In this order: whoever was kept before the sessions were listed is among them, also without a lock.
    kept = read_kept(marks)
    marked = collector.mark(progress)
    count = len(marked.sessions) + len(marked.unsound)
    doubts = doubts_of(kept, marked.names(), marked.unsound)
    if doubts or isinstance(kept, PinsDamagedError):
        return Collected(sessions=count, kept=0, doubts=doubts)
    retention = command.retention(kept)
    if command.is_dry_run:
        return Collected(sessions=count, kept=len(kept), taken=due(marked, retention))
    swept = collector.sweep(marked, retention)
    return Collected(sessions=count, kept=len(kept), taken=swept.taken, skipped=swept.skipped)


def _make_room(collector: Collector, marks: RetentionPins, command: CollectCommand, progress: Progress) -> None:
    kept = read_kept(marks)
    marked = collector.mark(progress)
    if not doubts_of(kept, marked.names(), marked.unsound):
        collector.make_room(marked, command.retention(frozenset()))


def read_kept(marks: RetentionPins) -> Kept:
    """Return the kept sessions, or why they are not known.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        return marks.kept()
    except PinsDamagedError as damage:
        return damage


def doubts_of(kept: Kept, sound: Iterable[SessionId], unsound: Collection[UnsoundSession]) -> tuple[GcBlocker, ...]:
    """Return each reason why nothing may be collected, by the sessions that were found after `kept` was read."""
    there = {*sound, *(one.session for one in unsound)}
    return (*_doubts_of_marks(kept, there), *map(_doubt, unsound))


def _doubts_of_marks(kept: Kept, there: Collection[SessionId]) -> Iterator[GcBlocker]:
    if isinstance(kept, PinsDamagedError):
        yield GcBlocker(
            code="KEEP_MARKS_DAMAGED",
            message=f"The keep marks, config/keep.json of the data directory, cannot be read: {kept.found}.",
            fix="Restore the file from a backup. Without one, remove it and set the marks again with `interlock session"
            " keep`; the file still shows most of the session ids.",
        )
        return
    for session in sorted(kept.difference(there)):
        yield GcBlocker(
            code="KEPT_SESSION_MISSING",
            message=f"{session} is marked to be kept but is missing: it was removed by hand, or its files are lost.",
            fix="Restore its directory from a backup or from `trash/sessions` of the data directory. If you do not"
            f" need the session, run `interlock session unkeep {session}`.",
            session=session,
        )


def _doubt(one: UnsoundSession) -> GcBlocker:
    if one.health is Health.UNKNOWN_VERSION:
        message = f"{one.session} was written by a newer Interlock ({one.where}: {one.found})."
        fix = "Run `interlock gc` of that version, or move the session's directory elsewhere."
    else:
        message = f"{one.session} is damaged ({one.health.value}; {one.where}: {one.found})."
        fix = (
            f"Copy its undamaged part into a new session with `interlock session repair {one.session}`, or save that"
            f" part with `interlock session export {one.session} --salvage`. Then move its directory elsewhere."
        )
    return GcBlocker(code="SESSION_NOT_HEALTHY", message=message, fix=fix, session=one.session, health=one.health)
