"""How long a session is kept: its age, and the marks of the sessions that are never deleted by age."""

from typing import TYPE_CHECKING, TypeAlias

from interlock.kernel.budgets import DAY_S
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.service.clock import moment_of, text_of_moment
from interlock.store.ports.errors import PinsDamagedError

if TYPE_CHECKING:
    from interlock.store.ports.maintenance import RetentionPins
    from interlock.views.session import Session

Kept: TypeAlias = frozenset[SessionId] | PinsDamagedError
"""The sessions that are marked to be kept, or why they are unknown."""


@frozen
class Lifetime:
    """Whether a session is marked to be kept (None: the marks cannot be read), and from when it may be deleted.

    `expires_at` is None if it never expires. `days` is the setting; None: the configuration has faults.
    """

    is_kept: bool | None
    expires_at: str | None
    days: int | None

    def in_words(self) -> str:
        """Return the sentence for people."""
        if self.is_kept is None:
            return "not known: the marks of kept sessions cannot be read; `interlock doctor` says why"
        if self.is_kept:
            return "never deleted by age: it is marked to be kept"
        if self.days is None:
            return "not known: the configuration has faults, and `gc` deletes nothing before they are corrected"
        if self.expires_at is None:
            return "never deleted by age: `retention.days` is 0" if self.days == 0 else "not known: no time is recorded"
        return f"`interlock gc` may delete it from {self.expires_at} on, unless something is recorded before"

    def to_json(self) -> dict[str, Json]:
        """Return the value as JSON."""
        return {"isKept": self.is_kept, "expiresAt": self.expires_at, "days": self.days}


def lifetime_of(session: "Session", kept: Kept, days: int | None) -> Lifetime:
    """Return how long a session is kept at least: `days` days after its last event (0: for ever)."""
    is_kept = None if isinstance(kept, PinsDamagedError) else session.session in kept
    last_ms = max((at for run in session.runs.values() if (at := moment_of(run.last_at)) is not None), default=None)
    if is_kept is not False or not days or last_ms is None:
        return Lifetime(is_kept=is_kept, expires_at=None, days=days)
    return Lifetime(is_kept=False, expires_at=text_of_moment(last_ms + days * DAY_S * 1000), days=days)


def read_kept(pins: "RetentionPins") -> Kept:
    """Return the sessions that are marked to be kept, or why they are unknown.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        return pins.kept()
    except PinsDamagedError as damage:
        return damage
