"""`gc`: collect what has expired and what nothing refers to, or say what that would be (locks 2.2, D33)."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal

from interlock.kernel.canonical import Json
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, untold
from interlock.store.ports import Health
from interlock.store.retention import (
    Collector,
    Due,
    KeepMarksDamagedError,
    KeepMarksPort,
    Marked,
    Retention,
    Skipped,
    UnsoundSession,
    due,
)

_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectCommand:
    """What to collect: sessions without an event for so many days (0: none). `now_s` counts from the epoch."""

    days: int
    now_s: float
    is_dry_run: bool = False

    def retention(self, kept: frozenset[SessionId]) -> Retention:
        """Return what may go, those that are kept aside."""
        return Retention(now_s=self.now_s, ttl_s=self.days * _DAY_S if self.days else None, kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A reason why nothing is collected: what cannot be relied on, and what to do."""

    code: Literal["SESSION_NOT_HEALTHY", "KEEP_MARKS_DAMAGED"]
    message: str
    fix: str
    session: SessionId | None = None
    health: Health | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the doubt as commands print it."""
        told: dict[str, Json] = {"code": self.code, "message": self.message, "fix": self.fix}
        if self.session is not None and self.health is not None:
            told |= {"session": self.session, "health": self.health.value}
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What went, or would go; what was left to the next time; and what made it do nothing: safe mode."""

    sessions: int
    kept: int
    taken: Due = field(default_factory=Due)
    skipped: tuple[Skipped, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    @property
    def is_safe_mode(self) -> bool:
        """Whether nothing goes because something cannot be relied on."""
        return bool(self.doubts)


def collect(collector: Collector, marks: KeepMarksPort, command: CollectCommand, told: Progress = untold) -> Collected:
    """Mark, and unless it is a dry run, sweep. A dry run writes nothing.

    Raises:
        UpkeepBusyError: Another process collects or sets marks.
        StoreFailureError: The disk failed; what was not taken yet is taken the next time.
    """
    with nullcontext() if command.is_dry_run else collector.alone():
        marked = collector.mark(told)
        count, doubts = len(marked.sessions) + len(marked.unsound), tuple(doubts_of(marked, marks))
        if doubts:
            return Collected(sessions=count, kept=0, doubts=doubts)
        retention = command.retention(marks.kept())
        if command.is_dry_run:
            return Collected(sessions=count, kept=len(retention.kept), taken=due(marked, retention))
        swept = collector.sweep(marked, retention)
        return Collected(sessions=count, kept=len(retention.kept), taken=swept.taken, skipped=swept.skipped)


def doubts_of(marked: Marked, marks: KeepMarksPort) -> Iterator[Doubt]:
    """Yield each reason why nothing may be collected.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        marks.kept()
    except KeepMarksDamagedError as damage:
        yield Doubt(
            code="KEEP_MARKS_DAMAGED",
            message=f"The keep marks, config/keep.json of the data directory, cannot be read: {damage.found}.",
            fix="Restore the file from a backup, or remove it and set the marks again with `interlock session keep`.",
        )
    for one in marked.unsound:
        yield _doubt(one)


def _doubt(one: UnsoundSession) -> Doubt:
    if one.health is Health.UNKNOWN_VERSION:
        message = f"{one.session} was written by a newer Interlock ({one.where}: {one.found})."
        fix = "Collect with that Interlock, or move the session's directory elsewhere."
    else:
        message = f"{one.session} is damaged ({one.health.value}; {one.where}: {one.found})."
        fix = (
            f"Copy what is sound of it into a new session with `interlock session repair {one.session}`, or keep it"
            f" as a file with `interlock session export {one.session} --salvage`; then move its directory elsewhere."
        )
    return Doubt(code="SESSION_NOT_HEALTHY", message=message, fix=fix, session=one.session, health=one.health)
