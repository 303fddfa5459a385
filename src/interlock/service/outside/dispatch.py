"""Sends intents through channels, each at most once, after the commit and outside of every lock (WORLD-6).

Who records an intent sends it; nobody else does by itself, except the next server here if nobody has tried (WORLD-13).
A claim is appended under the session's lock before anything
is sent, so two processes never send the same try. The result is appended when it is known. A process that ends in
between leaves a claim without a result: whether it was sent is unknown, and nothing sends it again by itself.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from interlock.channels.channel import ChannelConfig, ChannelSource, Message, Result, owner_of
from interlock.channels.child import end_children
from interlock.channels.opening import open_channel
from interlock.engine.outside import EVENT_KIND, SentEvent, parse_event_artifact
from interlock.engine.request import MemberFault
from interlock.kernel.budgets import (
    CHANNEL_NOTE_BYTES_MAX,
    CLOSE_WAIT_S,
    DISPATCH_PAUSE_S,
    DISPATCH_QUEUE_MAX,
    DISPATCH_TRIES_MAX,
    DISPATCHES_AT_ONCE,
    SETTLE_WAIT_S,
)
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.frozen import frozen, mutable, replace
from interlock.kernel.ids import IntentId, RunId, SessionId
from interlock.kernel.text import one_line
from interlock.record.append_plan import AppendPlan, EventDraft
from interlock.record.events import Actor
from interlock.record.world import IntentSettled
from interlock.service.ports import AppendPorts, NothingUntried, Untried
from interlock.store.ports.errors import SessionBusyError, SessionUnhealthyError, StoreFailureError
from interlock.store.ports.writer import SessionLock
from interlock.version import VERSION
from interlock.views.outside import Intent
from interlock.views.session import Run, Session

SYSTEM = Actor(type="system", identifier="channels", metadata={"version": VERSION})
"""Who records what became of an intent that a server sends."""
OnEvent = Callable[[SessionId, RunId, SentEvent], str | None]
"""Records an event that a channel answered with; returns why it is refused."""
_log = logging.getLogger(__name__)


@frozen
class Undelivered:
    """Why a try was not made; or, with `was_made`, why its result is not recorded."""

    why: str
    was_made: bool = False


@frozen
class Sender:
    """Sends single intents. `owner` names this process in its claims."""

    ports: AppendPorts
    channels: tuple[ChannelConfig, ...]
    owner: str
    actor: Actor = SYSTEM
    on_event: OnEvent | None = None

    def send(self, session_id: SessionId, intent_id: IntentId, expected: int) -> IntentSettled | Undelivered:
        """Make the next try of an intent that has had `expected` tries, and record what became of it.

        Raises:
            SessionBusyError, SessionUnhealthyError, StoreFailureError: The claim is not recorded, and nothing is sent.
        """
        claimed = self.claim(session_id, intent_id, expected)
        if isinstance(claimed, Undelivered):
            return claimed
        intent, channel, message = claimed
        result = open_channel(channel).deliver(message)
        refused = self._receive_answer(session_id, intent, result)
        if refused is not None:
            words = f"{result.note} {refused}" if result.note else refused
            result = replace(result, note=one_line(words, CHANNEL_NOTE_BYTES_MAX))
        try:
            return _while_busy(lambda: self.settle(session_id, intent, channel, result))
        except (SessionBusyError, SessionUnhealthyError, StoreFailureError) as error:
            why = f"it was sent (the channel says: {result.outcome}), but that could not be recorded: {error}"
            return Undelivered(why=why, was_made=True)

    def _receive_answer(self, session_id: SessionId, intent: Intent, result: Result) -> str | None:
        """Record the event that a channel answered with, if it did; return why it is not recorded."""
        event = event_in(result)
        if event is None or self.on_event is None:
            return None
        if isinstance(event, MemberFault):
            return f"The event of the answer is not recorded: {event.member}: {event.found}"
        receive = self.on_event
        try:
            why = _while_busy(lambda: receive(session_id, intent.run, event))
        except (SessionBusyError, SessionUnhealthyError, StoreFailureError) as error:
            why = str(error)
        return f"The event of the answer is not recorded: {why}" if why is not None else None

    def claim(
        self, session_id: SessionId, intent_id: IntentId, expected: int
    ) -> tuple[Intent, ChannelConfig, Message] | Undelivered:
        """Append the claim of the next try; return what to send through which channel, or why nothing is sent.

        Raises:
            SessionBusyError, SessionUnhealthyError, StoreFailureError: As `send` says.
        """
        with self.ports.hold(session_id) as lock:
            session = lock.session
            intent = session.outside.intents.get(intent_id) if session is not None else None
            if session is None or intent is None:
                return Undelivered(why="the session has no such intent")
            if intent.attempt != expected:
                return Undelivered(why="another process has tried to send it")
            intent = self._without_open_claim(lock, intent)
            run = session.runs[intent.run]
            if run.ended is not None and intent.attempt == 0:
                record_settled(self.ports, lock, intent, {"state": "cancelled"}, self.actor)
                return Undelivered(why="its run has ended")
            channel = owner_of(self.channels, intent.sends, source_of(session, run))
            if isinstance(channel, str):
                return Undelivered(why=channel)
            claim = {"state": "dispatched", "channel": channel.name, "owner": self.owner}
            record_settled(self.ports, lock, intent, claim, self.actor)
            return intent, channel, message_of(session, intent, intent.attempt + 1)

    def _without_open_claim(self, lock: SessionLock, intent: Intent) -> Intent:
        """Settle a claim whose result nobody recorded as unknown, so that a further try can follow it."""
        if intent.state != "dispatched":
            return intent
        note = "The process that sent it recorded no result."
        session = record_settled(self.ports, lock, intent, {"state": "unknown", "note": note}, self.actor)
        return session.outside.intents[intent.intent_id]

    def settle(
        self, session_id: SessionId, intent: Intent, channel: ChannelConfig, result: Result
    ) -> IntentSettled | Undelivered:
        """Append the result of a claimed try; return what the log holds of the intent after it.

        Raises:
            SessionBusyError, SessionUnhealthyError, StoreFailureError: As `send` says.
        """
        fields: dict[str, Any] = {"state": result.outcome, "channel": channel.name}
        if result.note:
            fields["note"] = result.note
        with self.ports.hold(session_id) as lock:
            if lock.session is None:
                why = f"it was sent (the channel says: {result.outcome}), but its session was deleted meanwhile"
                return Undelivered(why=why, was_made=True)
            claimed = lock.session.outside.intents[intent.intent_id]
            if (claimed.attempt, claimed.state) != (intent.attempt + 1, "dispatched"):
                # A person has settled this try in the meantime, and may have begun the next one.
                return settled_of(lock.session, intent)
            return settled_of(record_settled(self.ports, lock, claimed, fields, self.actor), intent)


def source_of(session: Session, run: Run) -> ChannelSource:
    """Return the source of a run for channels. What a bundle says of its runs' sources is not believed (WORLD-7)."""
    return "imported" if session.is_imported else run.source_kind


def settled_of(session: Session, intent: Intent) -> IntentSettled:
    """Return the last record of an intent that has one."""
    settled = session.outside.intents[intent.intent_id].settled
    assert settled is not None, "as the caller recorded"
    return settled


def record_settled(
    ports: AppendPorts, lock: SessionLock, intent: Intent, fields: Mapping[str, Any], actor: Actor
) -> Session:
    """Record what became of the open try of an intent or, if none is open, of its next one.

    Raises:
        StoreFailureError: The disk failed; it may be recorded.
    """
    session = lock.session
    assert session is not None, "the intent was found in it"
    attempt = intent.attempt if intent.state == "dispatched" else intent.attempt + 1
    settled = IntentSettled(intent_id=intent.intent_id, attempt=attempt, **fields)
    plan = AppendPlan(session=session.session, drafts=(EventDraft(data=settled, run=intent.run),))
    return ports.append(lock, plan, actor)


def message_of(session: Session, intent: Intent, attempt: int) -> Message:
    """Return what a channel sends of an intent."""
    run = session.runs[intent.run]
    body = canonical_bytes(
        {
            "v": 1,
            "intent": intent.intent_id,
            "kind": intent.sends,
            "fields": dict(intent.fields),
            "session": session.session,
            "run": intent.run,
            "workflow": run.workflow_id,
            "attempt": attempt,
        }
    )
    return Message(intent_id=intent.intent_id, body=body)


def event_in(result: Result) -> SentEvent | MemberFault | None:
    """Return the event that a channel answered with: a `wr.event` artifact; None if the answer is none."""
    if result.reply is None or result.reply.get("kind") != EVENT_KIND:
        return None
    return parse_event_artifact(result.reply)


T = TypeVar("T")


def _while_busy(record: Callable[[], T]) -> T:
    """Record something; while its session is busy, try again within a bound: each try waits for the lock itself.

    Raises:
        SessionBusyError: It was busy for the whole time.
    """
    until_s = time.monotonic() + SETTLE_WAIT_S
    while True:
        try:
            return record()
        except SessionBusyError:
            if time.monotonic() >= until_s:
                raise


@mutable
class Dispatcher:
    """Sends the intents that this process records, in threads of its own (`Outbox`).

    The end of the process waits for them a short time (`close`). What is left in the queue then stays undelivered.
    """

    sender: Sender
    untried: Untried = field(default_factory=NothingUntried)
    _waiting: dict[SessionId, set[IntentId]] = field(default_factory=dict[SessionId, set[IntentId]], init=False)
    _noting: threading.Lock = field(default_factory=threading.Lock, init=False)
    _queue: "queue.Queue[tuple[SessionId, IntentId]]" = field(
        default_factory=lambda: queue.Queue(DISPATCH_QUEUE_MAX), init=False
    )
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread], init=False)
    _mutex: threading.Condition = field(default_factory=threading.Condition, init=False)
    _unsent: int = field(default=0, init=False)
    _ending: threading.Event = field(default_factory=threading.Event, init=False)

    def uncovered(self, sends: str, source: ChannelSource) -> str | None:
        """See `Outbox`."""
        found = owner_of(self.sender.channels, sends, source)
        return found if isinstance(found, str) else None

    def offer(self, session: SessionId, intents: Sequence[Intent]) -> None:
        """See `Outbox`."""
        new = [intent for intent in intents if intent.attempt == 0]
        self._note_untried(session, added={intent.intent_id for intent in new})
        for intent in new:
            with self._mutex:
                self._unsent += 1
            try:
                self._queue.put_nowait((session, intent.intent_id))
            except queue.Full:
                self._note_sent()
                _log.warning("%s stays undelivered: too many intents wait", intent.intent_id)
            self._start_thread()

    def resume(self) -> None:
        """See `Outbox`. The claim under the session's lock keeps it at most once, also if two servers do this."""
        for session_id, left in self.untried.left():
            try:
                session = self.sender.ports.read.load(session_id)
            except (SessionBusyError, SessionUnhealthyError, StoreFailureError) as error:
                _log.warning("intents of %s stay undelivered: %s", session_id, error)
                continue
            if session is not None:
                found = session.outside.intents
                self.offer(session_id, [found[one] for one in sorted(left) if one in found])

    def _note_untried(
        self, session: SessionId, *, added: Collection[IntentId] = (), tried: IntentId | None = None
    ) -> None:
        """Remember what still waits of a session. Also after an append without intents: the manifest has changed."""
        with self._noting:
            before = self._waiting.pop(session, set())
            waiting = (before | set(added)) - {tried}
            if waiting:
                self._waiting[session] = waiting
            if before or waiting:
                self.untried.note(session, waiting)

    def drain(self) -> None:
        """Wait until all that was offered is sent or given up, for a process that ends after one call.

        Each try has a time limit, so this ends.
        """
        with self._mutex:
            self._mutex.wait_for(lambda: self._unsent == 0)

    def close(self) -> None:
        """See `Outbox`. What is being sent gets a short time; after it, the result of a try stays unknown."""
        with self._mutex:
            self._mutex.wait_for(lambda: self._unsent == 0, CLOSE_WAIT_S)
        self._ending.set()
        end_children()

    def _start_thread(self) -> None:
        with self._mutex:
            if len(self._threads) < DISPATCHES_AT_ONCE:
                # A daemon thread: a channel that hangs must not hold the end of the server.
                thread = threading.Thread(target=self._run, daemon=True, name="interlock-dispatch")
                self._threads.append(thread)
                thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            session, intent_id = self._queue.get()
            if self._ending.is_set():
                return
            try:
                self._send(session, intent_id)
            except Exception:  # noqa: BLE001 — the outermost edge of the thread: the next intent must still be sent
                _log.exception("%s: its result is not recorded", intent_id)
            finally:
                # What the end of the process leaves untried, the next server sends.
                if not self._ending.is_set():
                    self._note_untried(session, tried=intent_id)
                self._note_sent()

    def _note_sent(self) -> None:
        with self._mutex:
            self._unsent -= 1
            self._mutex.notify_all()

    def _send(self, session: SessionId, intent_id: IntentId) -> None:
        """Try to send an intent; again if its session is busy or, with a channel that allows it, after a failure."""
        tries = 0
        for _ in range(DISPATCH_TRIES_MAX):
            if self._ending.is_set():
                # A process that ends starts no further try: nobody would end its child.
                return
            try:
                found = self.sender.send(session, intent_id, tries)
            except (SessionUnhealthyError, StoreFailureError) as error:
                _log.warning("%s stays undelivered: %s", intent_id, error)
                return
            except SessionBusyError:
                self._ending.wait(DISPATCH_PAUSE_S)
                continue
            if isinstance(found, Undelivered):
                _log.warning("%s%s: %s", intent_id, "" if found.was_made else " stays undelivered", found.why)
                return
            if found.state not in ("failed", "unknown") or not may_repeat(self.sender.channels, found):
                return
            tries = found.attempt
            self._ending.wait(DISPATCH_PAUSE_S)


def may_repeat(channels: Sequence[ChannelConfig], settled: IntentSettled) -> bool:
    """Say whether the channel of a try recognises the id of an intent that it got before."""
    return any(one.name == settled.channel and one.delivery == "at_least_once" for one in channels)
