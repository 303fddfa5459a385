"""Redaction: copy a session into a new one without a value, such as a secret; the old one is not changed (EVD-13)."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, product
from typing import cast

from interlock.kernel.budgets import CHECKPOINTS_PER_NODE_MAX, REDACTED_CHARS_MIN
from interlock.kernel.canonical import Json, canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import (
    ID_BODY_PATTERN,
    AttemptId,
    Digest,
    SessionId,
    SnapshotRef,
    checkpoint_attempt,
    derived_id,
    node_of_attempt,
)
from interlock.kernel.shape import ShapeError
from interlock.record import payloads as data
from interlock.record.base import EventIndex
from interlock.record.content import REDACTED, Contents, collect_references
from interlock.record.errors import MalformedRecordError
from interlock.record.events import (
    AdvanceRecordedEvent,
    Event,
    EventReceivedEvent,
    NodeCreatedEvent,
    ObservationRecordedEvent,
    copy_to_session,
)
from interlock.record.snapshot import parse_snapshot
from interlock.service.clock import Clock, mint_event, recorded_at
from interlock.service.transfer.guessable import guessable_digests
from interlock.service.transfer.restore import Restored, Restoring
from interlock.service.transfer.salvage import SoundPrefix, refuse_undecided, sound_prefix

_NAME = re.compile(rf"[a-z]+_{ID_BODY_PATTERN}|(?:sha256:)?[0-9a-f]{{64}}")
"""An id or a digest, with its prefix or without it."""
_NAME_BYTES = re.compile(_NAME.pattern.encode())
_PREFIX = "sha256:"
_DERIVED = ("out", "capobs", "div")
"""The prefixes of the ids that are derived from an attempt and the digest of an artifact of it."""
_REDACTED_NAME = data.ObservationValue(type="short_string", value=REDACTED)
_NOTHING_WRITTEN = "Nothing was written."


@frozen
class Redacted:
    """The new session, the session that it is a copy of (`source`), and how many texts were changed."""

    restored: Restored
    source: SessionId
    texts: int


class _StructureError(Exception):
    """A record cannot be written without the value: it is part of the record's structure."""


def redact_session(ports: Restoring, session: SessionId, value: str) -> Redacted | Refusal:
    """Copy a session into a new one in which `REDACTED` is written for a value. The copy says what it is a copy of.

    Digests and ids that are made from text with the value are replaced, too: from them the value could be guessed.

    Raises:
        SessionBusyError, UnknownVersionError, StoreFailureError, KeyRingDamagedError: See `service.failures`.
        UnansweredError: The new session may be recorded.
    """
    if len(value) < REDACTED_CHARS_MIN:
        message = f"The value is shorter than {REDACTED_CHARS_MIN} characters."
        return _refused(message, "Name the whole value: a short one occurs in words that are no secret.")
    prefix = sound_prefix(ports.read.reader, session)
    if isinstance(prefix, Refusal):
        return prefix
    if prefix.banner is not None:
        fix = f"`interlock session repair {session}` first, then redact the copy."
        return refuse_undecided(session) if prefix.is_undecided else _refused(f"{session} is damaged.", fix)
    redaction = _Redaction(value)
    redaction.names |= guessable_digests(ports.read, prefix, redaction.is_in)
    kept = redaction.find_kept(prefix)
    if kept is not None:
        return _refused(kept, f"Delete the session: `interlock session delete {session}`.")
    try:
        contents = redaction.contents(prefix.contents)
        history = tuple(redaction.append(events) for events in prefix.history)
    except (_StructureError, ShapeError, MalformedRecordError):
        return _refused("The value is also a name in the records, such as a status.", "Name a longer part of the text.")
    if not redaction.texts:
        fix = "Name the value exactly, with its case and its spaces, or search for it with `interlock session search`."
        return _refused(f"{session} does not contain the value.", fix)
    if redaction.is_left(history, contents):
        message = "The value is part of an id, which cannot be changed."
        return _refused(message, f"Delete the session: `interlock session delete {session}`.")
    history = (*history, (_derivation(prefix, ports.clock),))
    return Redacted(restored=ports.restored(None, history, contents), source=session, texts=redaction.texts)


@mutable
class _Redaction:
    """Replaces a value in texts, and the digests and ids that were made from text with it: `names`, by the old ones."""

    value: str
    texts: int = 0
    names: dict[str, str] = field(default_factory=dict[str, str])
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def _spellings(self) -> tuple[str, ...]:
        """The value, and as it is written inside JSON."""
        escaped = (json.dumps(self.value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True))
        return tuple(dict.fromkeys((self.value, *escaped)))

    def is_in(self, content: bytes) -> bool:
        """Say whether the value is in these bytes."""
        return any(one.encode("utf-8", "surrogatepass") in content for one in self._spellings)

    def find_kept(self, prefix: SoundPrefix) -> str | None:
        """Return which part that no copy may change contains the value; None if there is none."""
        if any(map(self.is_in, prefix.contents.workflows.values())):
            return f"The workflow that {prefix.session} pinned contains the value, and a run keeps its plan."
        if any(self._is_left_in(event.to_bytes()) for event in _signed(prefix)):
            return "An event that its source signed contains the value, or a digest of it: a copy could not verify."
        return None

    def contents(self, contents: Contents) -> Contents:
        """Return the contents without the value, under their new digests.

        Raises:
            MalformedRecordError: A snapshot is none without it.
        """
        found = {digest: self._artifact(content) for digest, content in contents.artifacts.items()}
        artifacts = {self._named(digest, content): content for digest, content in found.items()}
        snapshots = dict[SnapshotRef, bytes]()
        for ref, raw in contents.snapshots.items():
            changed = canonical_bytes(self.without(json.loads(raw))) if self._is_left_in(raw) else raw
            parse_snapshot(changed)
            snapshots[SnapshotRef(self._named(ref, changed))] = changed
        return Contents(snapshots=snapshots, workflows=contents.workflows, artifacts=artifacts)

    def append(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Return the events of one append without the value.

        Raises:
            ShapeError, _StructureError: The value is part of their structure.
        """
        self._rename_derived(events)
        found = tuple(map(self._event, events))
        return tuple(map(_with_other_digest, found)) if found != tuple(events) else found

    def without(self, value: Json) -> Json:
        """Return a JSON value without the value to redact; ids and digests with another name become the new ones."""
        match value:
            case str():
                return self._text(value)
            case list():
                return [self.without(one) for one in value]
            case dict():
                return self._object(value)
            case _:
                return value

    def is_left(self, history: Sequence[Sequence[Event]], contents: Contents) -> bool:
        """Say whether the value, or a digest of text that held it, is still there."""
        parts = (contents.snapshots.values(), contents.artifacts.values())
        written = [one for part in parts for one in part] + [event.to_bytes() for events in history for event in events]
        return any(map(self._is_left_in, written))

    def _is_left_in(self, content: bytes) -> bool:
        """Say whether the value is in these bytes, or a name that was made from text with it."""
        return self.is_in(content) or any(
            name != self._name(name) for name in map(bytes.decode, _NAME_BYTES.findall(content))
        )

    def _rename_derived(self, events: Sequence[Event]) -> None:
        """Give other ids to what was derived from an artifact that has another digest now."""
        changed = [one for one in collect_references(events).artifacts if one in self.names]
        for attempt in _attempts(events) if changed else ():
            for prefix, digest in product(_DERIVED, changed):
                self.names[derived_id(prefix, attempt, digest)] = derived_id(prefix, attempt, self.names[digest])

    def _event(self, event: Event) -> Event:
        payload = cast("data.SessionCreated | data.ObservationRecorded", event.data)
        written = self.without(payload.to_json())
        if (
            isinstance(payload, data.ObservationRecorded)
            and payload.key == "git_branch"
            and written != payload.to_json()
        ):
            # A long name ends with a digest of all of it.
            written = payload.changed(value=_REDACTED_NAME).to_json()
        found = type(payload).of_json(written)
        actor = event.actor
        if actor is not None:
            actor = type(actor).of_json(self.without(actor.to_json()))
        changed = event.changed(data=found, actor=actor)
        return copy_to_session(changed, event.session_id)

    def _artifact(self, content: bytes) -> bytes:
        if not self._is_left_in(content):
            return content
        try:
            return canonical_bytes(self.without(json.loads(content)))
        except (ValueError, RecursionError):
            return self._text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _named(self, digest: Digest, content: bytes) -> Digest:
        name = digest_of_bytes(content)
        if name != digest:
            self.names[digest], self.sizes[digest] = name, len(content)
        return name

    def _object(self, value: Mapping[str, Json]) -> dict[str, Json]:
        found = {self._text(name): self.without(one) for name, one in value.items()}
        if len(found) < len(value):
            raise _StructureError
        digest = value.get("sha256")
        if isinstance(digest, str) and digest in self.sizes and "byteLength" in value:
            found["byteLength"] = self.sizes[digest]
        return found

    def _text(self, text: str) -> str:
        if _NAME.fullmatch(text):
            return self._name(text)
        found = text
        for spelling in self._spellings:
            found = found.replace(spelling, REDACTED)
        self.texts += found != text
        return _NAME.sub(lambda name: self._name(name[0]), found)

    def _name(self, name: str) -> str:
        """Return the new name of an id or a digest, which may be without its prefix; the same if it has none."""
        if name in self.names:
            return self.names[name]
        return self.names.get(_PREFIX + name, name).removeprefix("" if name.startswith(_PREFIX) else _PREFIX)


def _with_other_digest(event: Event) -> Event:
    """Return an advance or a checkpoint with a digest that says nothing of its request; other events unchanged."""
    is_checkpoint = isinstance(event, NodeCreatedEvent) and event.data.request_digest is not None
    if not (isinstance(event, AdvanceRecordedEvent) or is_checkpoint):
        return event
    digest = digest_of({"redacted": event.event_id})
    return event.changed(data=event.data.changed(request_digest=digest))


def _attempts(events: Sequence[Event]) -> Iterator[AttemptId]:
    """Yield the attempts of an append: that of its advance, or that of its checkpoint."""
    for event in events:
        if isinstance(event, AdvanceRecordedEvent):
            yield event.data.attempt_id
        elif isinstance(event, NodeCreatedEvent) and event.data.node_kind == "checkpoint":
            parent = event.data.parent_node_id
            assert parent is not None, "a checkpoint is of a node"
            tries = (checkpoint_attempt(parent, number) for number in range(CHECKPOINTS_PER_NODE_MAX))
            yield from (one for one in tries if node_of_attempt(one) == event.scope.node_id)


def _signed(prefix: SoundPrefix) -> Iterator[Event]:
    """Yield the events with a signature."""
    for event in chain.from_iterable(prefix.history):
        if isinstance(event, EventReceivedEvent) and event.data.signed is not None:
            yield event


def _derivation(prefix: SoundPrefix, clock: Clock) -> Event:
    """Return the event that says which session this one is a copy of."""
    value = data.ObservationValue(type="short_string", value=prefix.session)
    event = ObservationRecordedEvent(
        v=1,
        event_id=mint_event(clock),
        event_index=EventIndex(prefix.events),
        session_id=prefix.session,
        dedupe_key="",
        recorded_at=recorded_at(clock),
        data=data.ObservationRecorded(key="redacted_from", value=value, confidence="high"),
    )
    return copy_to_session(event, prefix.session)


def _refused(message: str, fix: str) -> Refusal:
    return Refusal(code=ErrorCode.VALIDATION_ERROR, message=message, suggestion=f"{fix} {_NOTHING_WRITTEN}")
