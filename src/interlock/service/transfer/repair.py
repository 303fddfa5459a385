"""Repair: copy the undamaged part of a session into a new session; the damaged one is not changed (SAL-3)."""

from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.record.bundle import SalvageBanner
from interlock.service.transfer.restore import Restored, Restoring
from interlock.service.transfer.salvage import sound_prefix


@frozen
class Repaired:
    """The new session, the damaged one (`source`), and what was left out and why."""

    restored: Restored
    source: SessionId
    banner: SalvageBanner


@frozen
class Settled:
    """A session whose last append was undecided, and now counts: its number of events."""

    session: SessionId
    events: int


def repair_session(ports: Restoring, session: SessionId) -> Repaired | Settled | Refusal:
    """Copy the undamaged beginning of a damaged session into a new one.

    If nothing is damaged but the settled mark, the last append is settled and the mark is written again, as the next
    writer would do it.

    Raises:
        SessionBusyError, UnknownVersionError, StoreFailureError, KeyRingDamagedError: See `service.failures`.
        UnansweredError: The new session may be recorded.
    """
    reader = ports.read.reader
    salvaged = reader.salvage(session) if reader.is_stored(session) else None
    if salvaged is not None and salvaged.is_undecided:
        return _settle(ports, session)
    prefix = sound_prefix(reader, session)
    if isinstance(prefix, Refusal):
        return prefix
    if prefix.banner is None and salvaged is not None and salvaged.is_unmarked:
        return _settle(ports, session)
    if prefix.banner is None:
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"{session} is not damaged: its {prefix.events} events and all that they refer to are intact.",
            suggestion="There is nothing to repair, and nothing was written.",
        )
    restored = ports.restored(None, prefix.history, prefix.contents)
    return Repaired(restored=restored, source=session, banner=prefix.banner)


def _settle(ports: Restoring, session: SessionId) -> Settled:
    with ports.writer.hold(session) as lock:
        assert lock.session is not None, "what has a mark to mend has an append"
        return Settled(session=session, events=lock.session.next_index)
