"""Lists, delivers and abandons recorded intents for a person (WORLD-6)."""

from collections.abc import Iterator
from typing import Literal

from interlock.channels.channel import ChannelConfig, owner_of
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import IntentId, SessionId
from interlock.record.events import Actor
from interlock.record.world import IntentSettled
from interlock.service.outside.dispatch import Sender, Undelivered, may_repeat, record_settled, settled_of, source_of
from interlock.service.ports import AppendPorts
from interlock.views.outside import Intent
from interlock.views.session import Session

ShownState = Literal["undelivered", "delivered", "refused", "failed", "unknown", "cancelled", "abandoned"]
OPEN_STATES: frozenset[ShownState] = frozenset({"undelivered", "refused", "failed", "unknown"})
"""The states that a person should look at."""


@frozen
class ShownIntent:
    """An intent as lists show it. A claim without a result is `unknown`: the log does not know more."""

    session: SessionId
    label: str
    intent: Intent
    state: ShownState
    why: str | None

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON."""
        one = self.intent
        return {
            "intent": one.intent_id,
            "session": self.session,
            "run": one.run,
            "label": self.label,
            "node": one.node,
            "sends": one.sends,
            "fields": dict(one.fields),
            "state": self.state,
            "why": self.why,
            "tries": one.attempt,
            "channel": one.settled.channel if one.settled is not None else None,
            "recordedAt": one.at,
            "settledAt": one.settled_at,
        }


def shown_intents(session: Session, channels: tuple[ChannelConfig, ...]) -> Iterator[ShownIntent]:
    """Yield the intents of a session in log order, each with its state and the reason for it."""
    for intent in sorted(session.outside.intents.values(), key=lambda one: one.index):
        state, why = _state(session, intent, channels)
        yield ShownIntent(session=session.session, label=session.label(intent.run), intent=intent, state=state, why=why)


def _state(session: Session, intent: Intent, channels: tuple[ChannelConfig, ...]) -> tuple[ShownState, str | None]:
    if intent.settled is None:
        run = session.runs[intent.run]
        if run.ended is not None:
            return "cancelled", "its run has ended"
        owner = owner_of(channels, intent.sends, source_of(session, run))
        return "undelivered", f"uncovered: {owner}" if isinstance(owner, str) else "nobody has tried to send it"
    if intent.settled.state == "dispatched":
        return "unknown", "it was claimed, and no result is recorded"
    return intent.settled.state, intent.settled.note


def deliver_intent(
    sender: Sender, session: Session, intent_id: IntentId, *, is_repeated: bool
) -> IntentSettled | Undelivered:
    """Send an intent for a person, in this process.

    One that may have arrived is sent again only if the person says so (`is_repeated`), or if its channel recognises it.

    Raises:
        SessionBusyError, SessionUnhealthyError, StoreFailureError: The claim or the result could not be recorded.
    """
    intent = session.outside.intents[intent_id]
    settled = intent.settled
    if settled is not None and settled.state in ("delivered", "abandoned", "cancelled"):
        return Undelivered(why=f"it is {settled.state}")
    may_have_arrived = settled is not None and settled.state in ("dispatched", "unknown")
    if settled is not None and may_have_arrived and not is_repeated and not may_repeat(sender.channels, settled):
        return Undelivered(why="it may have arrived: add `--again` to send it once more")
    return sender.send(session.session, intent_id, intent.attempt)


def abandon_intent(
    ports: AppendPorts, session_id: SessionId, intent_id: IntentId, actor: Actor
) -> IntentSettled | Undelivered:
    """Record that an intent is not sent any more.

    Raises:
        SessionBusyError, SessionUnhealthyError, StoreFailureError: It could not be recorded.
    """
    with ports.hold(session_id) as lock:
        intent = lock.session.outside.intents.get(intent_id) if lock.session is not None else None
        if intent is None:
            return Undelivered(why="the session has no such intent")
        if intent.state in ("delivered", "abandoned", "cancelled"):
            return Undelivered(why=f"it is {intent.state}")
        return settled_of(record_settled(ports, lock, intent, {"state": "abandoned"}, actor), intent)
