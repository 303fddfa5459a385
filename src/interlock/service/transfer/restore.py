"""Making a session of a history that comes from elsewhere, and how its runs go on."""

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.engine.answer.model import look_call
from interlock.engine.answer.parts import RunView
from interlock.engine.answer.structure import NextCall
from interlock.kernel.canonical import Json
from interlock.kernel.ids import SessionId
from interlock.record.content import Contents
from interlock.record.events import Event, copy_to_session
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
from interlock.views.status import RunStatus, run_status


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """How a run goes on: the run in words, its status, and the call that shows where it stands."""

    run: RunView
    status: RunStatus
    next_call: NextCall

    def to_json(self) -> dict[str, Json]:
        """Return it as commands print it."""
        return {**self.run.to_json(), "status": self.status, "nextCall": self.next_call.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A session that was made of another one's history, and how each of its runs goes on."""

    session: SessionId
    events: int
    groups: int
    ways_on: tuple[Continuation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """What making a session takes."""

    read: ReadPorts
    writer: SessionWriter
    key_ring: KeyRingWriter
    shell: Clock

    def restored(self, wanted: SessionId | None, history: Sequence[Sequence[Event]], contents: Contents) -> Restored:
        """Make a session of a history, under the wanted id if that is free, else under a fresh one.

        Raises:
            SessionBusyError, StoreFailureError, KeyRingDamagedError: See `service.failures`; nothing was recorded.
            UnansweredError: The session may be recorded.
        """
        # Nothing is stored that could not be told how to go on with.
        ring = self.key_ring.ensured()
        facts = None
        if wanted is not None and _is_free(self.read.reader, wanted):
            facts = self._made(wanted, history, contents)
        while facts is None:
            facts = self._made(mint_session(self.shell), history, contents)
        with named(facts.session), after_append():
            ways_on = _ways_on(self.read, ring, facts)
        return Restored(session=facts.session, events=facts.next_index, groups=len(history), ways_on=ways_on)

    def _made(self, session: SessionId, history: Sequence[Sequence[Event]], contents: Contents) -> Session | None:
        """Make the session; None if another one came to have its id.

        An import that may be recorded counts once its session is locked again: then it is this one, and made already.
        """
        moved = tuple(tuple(copy_to_session(event, session) for event in events) for events in history)
        with named(session), self.writer.hold(session) as witness:
            if witness.session is None:
                return self.writer.restore(witness, moved, contents)
            return witness.session if self.read.reader.history(session) == moved else None


def _is_free(reader: SessionReader, session: SessionId) -> bool:
    try:
        return reader.load(session) is None
    except SessionUnhealthyError:
        return False


def _ways_on(read: ReadPorts, ring: KeyRing, session: Session) -> tuple[Continuation, ...]:
    ways: list[Continuation] = []
    for run in sorted(session.runs.values(), key=lambda one: one.index):
        assert run.tip is not None, "a run begins with its root, in one plan"
        scene, tip = load_run_context(session, run, read.plans), session.nodes[run.tip]
        words, token = scene.words(), Mint(ring=ring, session=session, run=run).state(run.tip)
        status = run_status(session, tip, scene.snapshot(tip))
        ways.append(Continuation(run=words, status=status, next_call=look_call(token, words.label)))
    return tuple(ways)
