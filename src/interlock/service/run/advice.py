"""What to do about a damaged session: `interlock session repair` is named only where it works (ANS-18)."""

from interlock.kernel.ids import SessionId
from interlock.store.ports.errors import Health

_BACKUP = "Restore it from a backup, or import a bundle of it"
ACCESS = (
    "It is not known to be damaged. Give the user who runs Interlock access to the named file or directory, and check"
    " its disk."
)
NEWER = "It is not damaged. Use the Interlock version that wrote it."


def advise_by_health(session: SessionId, health: str) -> str:
    """Return what a person can do about a session, by its health."""
    if health == Health.UNKNOWN_VERSION:
        return NEWER
    if health == Health.UNREADABLE:
        return ACCESS
    if health == Health.UNDECIDED:
        return advise_undecided(session)
    return advise(session, has_sound_part=health != Health.CORRUPT_HEAD)


def advise_undecided(session: SessionId) -> str:
    """Return what to do about a session whose last append may or may not count (`Salvaged.is_undecided`)."""
    return (
        "Whether the last append was acknowledged is decided by the next call that writes to the session, or by"
        f" `interlock session repair {session}`, which writes it and its mark again and loses nothing."
    )


def advise(session: SessionId, *, has_sound_part: bool) -> str:
    """Return what to do about a damaged session, by whether its beginning is intact."""
    if not has_sound_part:
        return f"No part of {session} can be used. {_BACKUP}."
    return (
        f"{_BACKUP}. Or copy its intact part into a new session with `interlock session repair {session}`, or save that"
        f" part with `interlock session export {session} --salvage`."
    )
