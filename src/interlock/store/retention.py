"""The pure rules of retention, the same for every kind of store: what a sweep removes, and the limit of pins."""

from collections.abc import Collection
from datetime import datetime

from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.kernel.ids import SessionId
from interlock.store.ports.errors import TooManyPinsError
from interlock.store.ports.maintenance import Due, GcSession, GcSnapshot, Item, Kind, Retention


def due(marked: GcSnapshot, retention: Retention, spared: Collection[SessionId] = ()) -> Due:
    """Return what may be removed. `spared` sessions stay."""
    assert not marked.unsound, "no sweep while any session is unsound (GC-7)"
    claimed = _find_claimed(marked, retention, spared)
    sessions = () if Kind.SESSION in marked.apart else marked.sessions
    gone = {one.session for one in sessions if retention.has_expired(one)} - claimed - set(spared)
    roots, without = roots_of(marked, gone, retention), gone.union(spared)
    returning = frozenset(find_returning(marked, retention))
    trashed = (one.item for one in marked.trashed if one.session not in returning)
    found = (*marked.items, *trashed)
    items = (one for one in found if one.kind not in marked.apart and _is_due(one, roots, retention))
    return Due(
        sessions=tuple(one for one in marked.sessions if one.session in gone),
        items=tuple(one for one in items if one.kind is Kind.TRASH or one.session not in without),
    )


def find_returning(marked: GcSnapshot, retention: Retention) -> tuple[GcSession, ...]:
    """Return the sessions in the trash that have not expired: the clock was ahead when they were moved there (GC-3)."""
    if retention.chosen:
        return ()
    return tuple(one.session for one in marked.trashed if not retention.has_expired(one.session))


def _find_claimed(marked: GcSnapshot, retention: Retention, spared: Collection[SessionId]) -> set[SessionId]:
    """Return the sessions that a session that stays claims, directly or through others (GOAL-9)."""
    returning = find_returning(marked, retention)
    claims = {one.session: one.claims for one in (*marked.sessions, *returning)}
    frontier = [one.session for one in marked.sessions if one.session in spared or not retention.has_expired(one)]
    frontier += [one.session for one in returning]
    claimed: set[SessionId] = set()
    while frontier:
        for session in claims.get(frontier.pop(), frozenset()) - claimed:
            claimed.add(session)
            frontier.append(session)
    return claimed


def roots_of(marked: GcSnapshot, gone: Collection[SessionId], retention: Retention) -> frozenset[str]:
    """Return the names of the content that what stays refers to: everything but the sessions in `gone`."""
    sessions = (one.content for one in marked.sessions if one.session not in gone)
    returning = (one.content for one in find_returning(marked, retention))
    return frozenset[str]().union(*sessions, *returning, *(one.content for one in marked.foreign))


def _is_due(item: Item, roots: frozenset[str], retention: Retention) -> bool:
    is_trashed = item.kind is Kind.TRASH and item.content is None
    if retention.chosen:
        return is_trashed and item.session in retention.chosen
    if is_trashed:
        return True  # it was old when it went there; a session that is not is no longer among these
    name = item.content if item.kind is Kind.TRASH else item.name
    return name not in roots and retention.is_old(item.modified_s)


def seconds_of(recorded_at: str | None) -> float:
    """Return a recorded time in seconds since the epoch; 0 if it is missing or not a time."""
    try:
        return datetime.fromisoformat(recorded_at).timestamp() if recorded_at is not None else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def add_pins(kept: frozenset[SessionId], sessions: Collection[SessionId]) -> frozenset[SessionId]:
    """Return the pinned sessions, including these.

    Raises:
        TooManyPinsError: There would be more than `RETENTION_PINS_MAX`.
    """
    after = kept.union(sessions)
    if len(after) > RETENTION_PINS_MAX:
        raise TooManyPinsError(len(after))
    return after
