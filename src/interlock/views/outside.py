"""What a session's log says of the world outside: the events that came in and the intents that went out (WORLD-2).

A part of the fold (`views.session`): immutable, and applying an event costs the same at any length of history.
"""

from collections.abc import Iterable, Iterator

from rpds import HashTrieMap, HashTrieSet, List

from interlock.engine.outside import SentEvent, SentSignature, is_signed
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest, EventId, IntentId, NodeId, RunId
from interlock.record import events as ev
from interlock.record.world import (
    APPROVAL,
    ASSURANCES,
    CHECK,
    EXPIRED,
    UNCOUNTED,
    Assurance,
    EventReceived,
    IntentSettled,
    IntentState,
    lacking_field,
)

OWN_KINDS = frozenset({APPROVAL, CHECK})
"""The kinds of events that Interlock records about a node that waits for them."""


class BrokenOutsideError(InterlockError):
    """An event of an intent cannot follow what is recorded of it: Interlock never writes such a log."""


@frozen
class Received:
    """An event as the log holds it. `node` is set if it is about one node."""

    event_id: EventId
    run: RunId
    node: NodeId | None
    index: int
    at: str | None
    actor: ev.Actor | None
    data: EventReceived


def received_of(event: ev.EventReceivedEvent) -> Received:
    """Return an event of the log as this part of the fold holds it."""
    return Received(
        event_id=event.event_id,
        run=event.scope.run_id,
        node=event.scope.node_id if isinstance(event.scope, ev.NodeScope) else None,
        index=event.event_index,
        at=event.recorded_at,
        actor=event.actor,
        data=event.data,
    )


NOT_CONFIGURED = "is not configured here"
"""What views say of a signing key that the user's configuration does not name: its signature proves nothing."""
SigningKeys = frozenset[tuple[str, str]]
"""The sources whose signatures count, each by its name and its public key."""


def has_unknown_key(event: EventReceived, keys: SigningKeys | None) -> bool:
    """Say whether an event is signed with a key that is none of these; with None, the keys are not known."""
    return keys is not None and event.signed is not None and (event.signed.source, event.signed.public_key) not in keys


def has_signature(received: Received) -> bool:
    """Say whether an event has a signature that is one over exactly what the log holds of it."""
    event = received.data
    if event.signed is None:
        return False
    sent = SentEvent(
        event=event.event,
        id=event.sent_id,
        fields=event.fields,
        node=received.node,
        signed=SentSignature(source=event.signed.source, signature=event.signed.signature),
    )
    return is_signed(received.run, sent, event.signed.public_key)


def false_signatures(events: Iterable[ev.Event]) -> Iterator[tuple[ev.EventReceivedEvent, str]]:
    """Yield each event whose signature is not one over what the log holds of it, and what is wrong."""
    for event in events:
        if not isinstance(event, ev.EventReceivedEvent) or event.data.signed is None:
            continue
        if not has_signature(received_of(event)):
            yield event, f"the signature of {event.data.signed.source!r} is not one over this event"


def level_of(received: Received, trusted_from: int, keys: SigningKeys | None) -> Assurance:
    """Return how well an event is known here.

    A bundle can give its events any level. So an event before the index `trusted_from`, which came with one, counts as
    claimed. Only a signature over it with one of `keys` proves more. None: each signature counts unchecked, as in a
    view.
    """
    level = received.data.assurance
    if received.index >= trusted_from:
        return level
    is_known = level == "signed" and not has_unknown_key(received.data, keys)
    return level if is_known and (keys is None or has_signature(received)) else "claimed"


def grounds_of(received: Received, trusted_from: int) -> Assurance:
    """Return how well a step that took an event is founded, as a view says it.

    That time passed, or that nobody was asked, is recorded by Interlock itself, and says nothing about the work.
    """
    return level_of(received, trusted_from, keys=None) if received.data.via != "clock" else "claimed"


@frozen
class Demand:
    """What a step waits for: the kind of an event, and how well it must be known.

    `keys` are those that a demanded signature may be of; None: each key that the log names, as in a view. Events before
    the index `trusted_from` came with a bundle. `shown` are the digests that an answer of a person must have one of,
    so that it is one to what is shown now (APPR-8); None: the event is no answer, or any answer is looked for.
    """

    kind: str
    assurance: Assurance
    keys: SigningKeys | None = None
    trusted_from: int = 0
    shown: frozenset[Digest] | None = None

    def is_met_by(self, received: Received) -> bool:
        """Say whether an event of this kind is known well enough, and is about what is shown now."""
        if self.shown is not None and received.data.fields.get("shown") not in self.shown:
            return False
        if ASSURANCES.index(level_of(received, self.trusted_from, self.keys)) < ASSURANCES.index(self.assurance):
            return False
        event = received.data
        if self.assurance != "signed" or self.keys is None or event.event.startswith("wr."):
            return True
        # An imported log may call any event signed or executed; only a key that is known here proves it.
        return event.signed is not None and (event.signed.source, event.signed.public_key) in self.keys


@frozen
class Intent:
    """An intent as the log holds it. `attempt` counts the tries; `settled` is the last record of the last one.

    A claim without a result says nothing: it was sent or not.
    """

    intent_id: IntentId
    run: RunId
    node: NodeId
    index: int
    at: str | None
    sends: str
    number: int
    fields: ev.world.Fields
    attempt: int = 0
    settled: IntentSettled | None = None
    settled_at: str | None = None
    settled_index: int | None = None

    @property
    def state(self) -> "IntentState | None":
        """The last recorded state; None if nobody has tried to send it."""
        return self.settled.state if self.settled is not None else None


@frozen
class Outside:
    """The events and intents of a session. `by_kind` has the events of a run and kind, newest first.

    `of_run` and `intents_of` count the events and the intents of a run; `claims_of` and `claims_taken` its claimed
    events, and those of them that a step took. Receipts and trees are in `events` and `by_kind` alone.
    """

    events: "HashTrieMap[EventId, Received]"
    intents: "HashTrieMap[IntentId, Intent]"
    by_kind: "HashTrieMap[tuple[RunId, str], List[EventId]]"
    by_node: "HashTrieMap[NodeId, tuple[IntentId, ...]]"
    of_run: "HashTrieMap[RunId, int]"
    intents_of: "HashTrieMap[RunId, int]"
    taken: "HashTrieMap[RunId, HashTrieSet[EventId]]"
    claims_of: "HashTrieMap[RunId, int]"
    claims_taken: "HashTrieMap[RunId, int]"

    def received(self, run: RunId, kind: str) -> Iterator[Received]:
        """Yield the events of a run and kind in log order."""
        yield from reversed([self.events[one] for one in self.by_kind.get((run, kind), List())])

    def latest(self, run: RunId, kind: str) -> Iterator[Received]:
        """Yield the events of a run and kind, the newest first."""
        yield from (self.events[one] for one in self.by_kind.get((run, kind), List()))

    def last_about(self, run: RunId, kind: str, node: NodeId) -> Received | None:
        """Return the newest event of a run and kind that is about a node."""
        return next((one for one in self.latest(run, kind) if one.node == node), None)

    def count(self, run: RunId, kind: str) -> int:
        """Count the events of a run and kind."""
        return len(self.by_kind.get((run, kind), List()))

    def first_match(self, run: RunId, demand: Demand, node: NodeId, taken: "HashTrieSet[EventId]") -> Received | None:
        """Return the first event in log order that a step waits for: well enough known, and not taken by its branch.

        A timeout that was noticed at this node counts like an event. An event of Interlock's own is about one node,
        and a later one replaces it.
        """
        is_own = demand.kind in OWN_KINDS
        known = self.latest(run, demand.kind) if is_own else self.received(run, demand.kind)
        about = (node,) if is_own else (None, node)
        free = (one for one in known if one.event_id not in taken and one.node in about)
        found = next((one for one in free if demand.is_met_by(one)), None)
        expired = [one for one in self.received(run, EXPIRED) if one.node == node and one.index >= demand.trusted_from]
        return min([*([found] if found is not None else []), *expired[:1]], key=lambda one: one.index, default=None)

    def waiting(self, run: RunId) -> int:
        """Count the events of a run that no step of any branch has taken."""
        return self.of_run.get(run, 0) - len(self.taken.get(run, HashTrieSet()))

    def waiting_claims(self, run: RunId) -> int:
        """Count the claimed events of a run that no step of any branch has taken."""
        return self.claims_of.get(run, 0) - self.claims_taken.get(run, 0)

    def of_node(self, node: NodeId) -> tuple[Intent, ...]:
        """Return the intents that the advance to a node recorded."""
        return tuple(self.intents[one] for one in self.by_node.get(node, ()))


NOTHING_OUTSIDE = Outside(
    events=HashTrieMap(),
    intents=HashTrieMap(),
    by_kind=HashTrieMap(),
    by_node=HashTrieMap(),
    of_run=HashTrieMap(),
    intents_of=HashTrieMap(),
    taken=HashTrieMap(),
    claims_of=HashTrieMap(),
    claims_taken=HashTrieMap(),
)
"""The state before the first event."""


def event_received(outside: Outside, event: ev.EventReceivedEvent) -> Outside:
    """Add an event.

    Raises:
        BrokenOutsideError: It is of a kind of Interlock, and lacks what Interlock records with it.
    """
    lacking = lacking_field(event.data)
    if lacking is not None:
        raise BrokenOutsideError(f"{event.data.event} has no field `{lacking}` as Interlock records it")
    received, run = received_of(event), event.scope.run_id
    key = (run, event.data.event)
    added = replace(
        outside,
        events=outside.events.insert(event.event_id, received),
        by_kind=outside.by_kind.insert(key, outside.by_kind.get(key, List()).push_front(event.event_id)),
    )
    if event.data.event in UNCOUNTED:
        return added
    return replace(
        added,
        of_run=outside.of_run.insert(run, outside.of_run.get(run, 0) + 1),
        claims_of=outside.claims_of.insert(run, outside.claims_of.get(run, 0) + _claims([received])),
    )


def events_taken(outside: Outside, run: RunId, took: tuple[EventId, ...]) -> Outside:
    """Note that steps of a run took events.

    Raises:
        BrokenOutsideError: The log has no such event of the run.
    """
    for one in took:
        if one not in outside.events or outside.events[one].run != run:
            raise BrokenOutsideError(f"an advance took {one}, which is no event of its run")
    took = tuple(one for one in took if outside.events[one].data.event not in UNCOUNTED)
    before = outside.taken.get(run, HashTrieSet())
    claims = outside.claims_taken.get(run, 0) + _claims(outside.events[one] for one in took if one not in before)
    return replace(
        outside,
        taken=outside.taken.insert(run, before.update(took)),
        claims_taken=outside.claims_taken.insert(run, claims),
    )


def _claims(events: Iterable[Received]) -> int:
    return sum(one.data.assurance == "claimed" for one in events)


def intent_recorded(outside: Outside, event: ev.IntentRecordedEvent) -> Outside:
    """Add an intent."""
    intent = Intent(
        intent_id=event.data.intent_id,
        run=event.scope.run_id,
        node=event.scope.node_id,
        index=event.event_index,
        at=event.recorded_at,
        sends=event.data.sends,
        number=event.data.number,
        fields=event.data.fields,
    )
    before = outside.by_node.get(intent.node, ())
    return replace(
        outside,
        intents=outside.intents.insert(intent.intent_id, intent),
        by_node=outside.by_node.insert(intent.node, (*before, intent.intent_id)),
        intents_of=outside.intents_of.insert(intent.run, outside.intents_of.get(intent.run, 0) + 1),
    )


def intent_settled(outside: Outside, event: ev.IntentSettledEvent) -> Outside:
    """Note a claim, or the result of a try.

    Raises:
        BrokenOutsideError: The intent is not in the log, or the record does not follow the last one of the intent.
    """
    data = event.data
    intent = outside.intents.get(data.intent_id)
    if intent is None or intent.run != event.scope.run_id:
        raise BrokenOutsideError(f"{data.intent_id} is no intent of its run")
    is_open = intent.state == "dispatched"
    expected = intent.attempt if is_open else intent.attempt + 1
    if data.attempt != expected or (is_open and data.state == "dispatched"):
        raise BrokenOutsideError(f"{data.intent_id}: {data.state} as try {data.attempt} after try {intent.attempt}")
    settled = replace(
        intent,
        attempt=data.attempt,
        settled=data,
        settled_at=event.recorded_at,
        settled_index=event.event_index,
    )
    return replace(outside, intents=outside.intents.insert(data.intent_id, settled))
