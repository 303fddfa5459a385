"""The history of a session for people who look: its fold, and each plan of its log."""

from dataclasses import dataclass

from interlock.kernel.ids import NodeId, SessionId
from interlock.record.events import Event
from interlock.store.ports.errors import SessionUnhealthyError
from interlock.store.ports.reader import SessionReader
from interlock.views.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A session's facts and its events, one tuple for each plan that was appended, oldest first."""

    facts: Session
    appended: tuple[tuple[Event, ...], ...]


def history_of(reader: SessionReader, session: SessionId) -> History | None:
    """Return a session's history; None where no such session has one.

    Every view that shows one session reads it here and nowhere else, so what is shown of a damaged one (HIS-2) is
    decided here. Today that is nothing: the damage is raised.

    Raises:
        SessionUnhealthyError: Its log does not verify.
        StoreFailureError: The disk failed.
    """
    facts = reader.load(session)
    if facts is None:
        return None
    # Another process may append between the two.
    appended = (plan for plan in reader.history(session) if plan[0].event_index < facts.next_index)
    return History(facts=facts, appended=tuple(appended))


def session_of_node(reader: SessionReader, node: NodeId) -> Session | None:
    """Return the session that holds a node, if one does. Sessions that do not verify are passed over.

    Raises:
        StoreFailureError: The disk failed.
    """
    for name in reader.sessions():
        try:
            session = reader.load(name)
        except SessionUnhealthyError:
            continue
        if session is not None and node in session.nodes:
            return session
    return None
