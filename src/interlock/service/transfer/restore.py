"""Make a session from the history of another one, and say how its runs continue."""

from collections.abc import Sequence

from interlock.engine.answer.model import look_call
from interlock.engine.answer.parts import RunView
from interlock.engine.answer.structure import NextCall
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.record.content import Contents
from interlock.record.events import Event, SessionCreatedEvent, copy_to_session, mark_imported
from interlock.service.clock import Clock, mint_session
from interlock.service.ports import ReadPorts
from interlock.service.run.context import load_run_context
from interlock.service.tokens.mint import Mint
from interlock.service.unanswered import after_append, named
from interlock.store.ports.errors import SessionUnhealthyError
from interlock.store.ports.keys import KeyRing, KeyRingWriter
from interlock.store.ports.reader import SessionReader
from interlock.store.ports.writer import SessionWriter
from interlock.views.session import Session
from interlock.views.status import run_status
from interlock.views.summary import RunStatus


@frozen
class Continuation:
    """How a run continues: its names, its status, and the call that shows its current step."""

    run: RunView
    status: RunStatus
    next_call: NextCall

    def to_json(self) -> dict[str, Json]:
        """Return the continuation as JSON, as commands print it."""
        return {**self.run.to_json(), "status": self.status, "nextCall": self.next_call.to_json()}


@frozen
class Restored:
    """A session that was made from the history of another one, and how each of its runs continues."""

    session: SessionId
    events: int
    groups: int
    ways_on: tuple[Continuation, ...]


@frozen
class Restoring:
    """The ports that are needed to make a session from a history."""

    read: ReadPorts
    writer: SessionWriter
    key_ring: KeyRingWriter
    clock: Clock

    def restored(self, wanted: SessionId | None, history: Sequence[Sequence[Event]], contents: Contents) -> Restored:
        """Make a session from a history, under the wanted id if that is free, else under a new id.

        Raises:
            SessionBusyError, StoreFailureError, KeyRingDamagedError: See `service.failures`; nothing was recorded.
            UnansweredError: The session may be recorded.
        """
        # The key ring comes first: without it the answer could not say how the runs continue.
        ring = self.key_ring.ensure_keys()
        made_session = None
        if wanted is not None and _is_free(self.read.reader, wanted):
            made_session = self._make(wanted, history, contents)
        while made_session is None:
            made_session = self._make(mint_session(self.clock), history, contents)
        with named(made_session.session), after_append():
            ways_on = _build_continuations(self.read, ring, made_session)
        return Restored(
            session=made_session.session, events=made_session.next_index, groups=len(history), ways_on=ways_on
        )

    def _make(self, session: SessionId, history: Sequence[Sequence[Event]], contents: Contents) -> Session | None:
        """Make the session; None if another session has taken the id.

        An earlier import of the same history that may be recorded takes effect when the session is locked again: then
        the session is already made.
        """
        count = sum(map(len, history))
        rewritten = tuple(tuple(_copied(event, session, count) for event in events) for events in history)
        with named(session), self.writer.hold(session) as lock:
            if lock.session is None:
                return self.writer.restore(lock, rewritten, contents)
            return lock.session if self.read.reader.history(session) == rewritten else None


def _copied(event: Event, session: SessionId, count: int) -> Event:
    """Return an event for the made session. If fewer events than its bundle had are left, the mark counts those."""
    if isinstance(event, SessionCreatedEvent) and (event.data.imported or 0) > count:
        event = mark_imported(event, count)
    return copy_to_session(event, session)


def _is_free(reader: SessionReader, session: SessionId) -> bool:
    try:
        return reader.load(session) is None
    except SessionUnhealthyError:
        return False


def _build_continuations(read: ReadPorts, ring: KeyRing, session: Session) -> tuple[Continuation, ...]:
    ways: list[Continuation] = []
    for run in sorted(session.runs.values(), key=lambda one: one.index):
        assert run.tip is not None, "a run begins with its root, in one plan"
        run_context, tip = load_run_context(session, run, read.plans), session.nodes[run.tip]
        view, token = run_context.view(), Mint(ring=ring, session=session, run=run).state(run.tip)
        status = run_status(session, tip, run_context.snapshot(tip))
        ways.append(Continuation(run=view, status=status, next_call=look_call(token, view.label)))
    return tuple(ways)
