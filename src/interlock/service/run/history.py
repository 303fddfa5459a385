"""The history of a session for read-only views: its state, and each appended plan of its log."""

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId, SessionId
from interlock.record.events import Event
from interlock.store.ports.errors import SessionUnhealthyError
from interlock.store.ports.reader import SessionReader
from interlock.views.evolution import evolve
from interlock.views.session import Session, new_session


@frozen
class History:
    """A session's state and its events: one tuple for each appended plan, oldest first."""

    session: Session
    appended: tuple[tuple[Event, ...], ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The index of the last event of each append."""
        return tuple(plan[-1].event_index for plan in self.appended)


def history_of(reader: SessionReader, session: SessionId) -> History | None:
    """Load a session's history; None if there is no such session or its log is empty.

    Every view of one session reads it here. Nothing of a damaged session is returned
    (HIS-2): commands catch the damage that is raised here, and show the sound beginning (HIS-8).

    Raises:
        SessionUnhealthyError: Its log does not verify.
        StoreFailureError: The disk failed.
    """
    state = reader.load(session)
    if state is None:
        return None
    # Another process may append between the two.
    appended = (plan for plan in reader.history(session) if plan[0].event_index < state.next_index)
    return History(session=state, appended=tuple(appended))


def grown_history(reader: SessionReader, known: History) -> History | None:
    """Return a history with what was appended since it was read, reading only that; None if it did not only grow.

    Raises:
        SessionUnhealthyError: The log does not verify any more.
        StoreFailureError: The disk failed.
    """
    before = known.session
    state = reader.load(before.session)
    if state is None or not all(one.tip is None or one.tip in state.nodes for one in before.runs.values()):
        return None
    # Another process may append between the two.
    added = (plan for plan in reader.history(before.session, after=before.next_index))
    appended = tuple(plan for plan in added if plan[0].event_index < state.next_index)
    return History(session=state, appended=known.appended + appended)


def history_at(history: History, event: int) -> History:
    """Return the history up to an event, with the whole append that contains it: an append becomes true whole.

    The state is computed from the beginning of the log.
    """
    kept = tuple(plan for plan in history.appended if plan[0].event_index <= event)
    assert kept, "no event is before the first"
    events = [one for plan in kept for one in plan]
    return History(session=evolve(new_session(history.session.session), *events), appended=kept)


def session_of_node(reader: SessionReader, node: NodeId) -> Session | None:
    """Find the session that contains a node, if there is one. Sessions that do not verify are skipped.

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
