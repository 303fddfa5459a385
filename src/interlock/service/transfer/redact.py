"""Redaction: copy a session into a new one without a value, such as a secret; the old one is not changed (EVD-13)."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from pydantic import ValidationError

from interlock.kernel.budgets import REDACTED_CHARS_MIN
from interlock.kernel.canonical import Json, canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import ID_BODY_PATTERN, Digest, SessionId, SnapshotRef
from interlock.record import payloads as data
from interlock.record.base import EventIndex
from interlock.record.content import REDACTED, Contents
from interlock.record.errors import MalformedRecordError
from interlock.record.events import (
    AdvanceRecordedEvent,
    Event,
    EventReceivedEvent,
    ObservationRecordedEvent,
    copy_to_session,
)
from interlock.record.snapshot import parse_snapshot
from interlock.service.clock import Clock, mint_event, recorded_at
from interlock.service.transfer.restore import Restored, Restoring
from interlock.service.transfer.salvage import SoundPrefix, sound_prefix

_IDENTIFIER = re.compile(rf"[a-z]+_{ID_BODY_PATTERN}|sha256:[0-9a-f]{{64}}")
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

    Digests of the requests that held the value are replaced, too: from them the value could be guessed.

    Raises:
        SessionBusyError, UnknownVersionError, StoreFailureError, KeyRingDamagedError: See `service.failures`.
        UnansweredError: The new session may be recorded.
    """
    if len(value) < REDACTED_CHARS_MIN:
        message = f"The value has {len(value)} characters; it must have at least {REDACTED_CHARS_MIN}."
        return _refused(message, "Name the whole value: a short one occurs in words that are no secret.")
    prefix = sound_prefix(ports.read.reader, session)
    if isinstance(prefix, Refusal):
        return prefix
    if prefix.banner is not None:
        return _refused(f"{session} is damaged.", f"`interlock session repair {session}` first, then redact the copy.")
    redaction = _Redaction(value)
    kept = redaction.find_kept(prefix)
    if kept is not None:
        return _refused(kept, f"Delete the session: `interlock session delete {session}`.")
    try:
        contents = redaction.contents(prefix.contents)
        history = tuple(redaction.append(events) for events in prefix.history)
    except (_StructureError, ValidationError, MalformedRecordError):
        return _refused("The value is also a name in the records, such as a status.", "Name a longer part of the text.")
    if not redaction.texts:
        fix = "Name the value exactly, with its case and its spaces, or search for it with `interlock session search`."
        return _refused(f"{session} does not contain the value.", fix)
    if redaction.is_left(history, contents):
        message = "The value is part of an id, which cannot be changed."
        return _refused(message, f"Delete the session: `interlock session delete {session}`.")
    history = (*history, (_derivation(prefix, ports.clock),))
    return Redacted(restored=ports.restored(None, history, contents), source=session, texts=redaction.texts)


@dataclass(slots=True)
class _Redaction:
    """Replaces a value in texts, and the digests of contents in which it was."""

    value: str
    texts: int = 0
    digests: dict[str, str] = field(default_factory=dict[str, str])
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
        if any(self.is_in(event.to_bytes()) for event in _signed(prefix)):
            return "An event that its source signed contains the value: a copy could not verify."
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
            changed = canonical_bytes(self.without(json.loads(raw))) if self.is_in(raw) else raw
            parse_snapshot(changed)
            snapshots[SnapshotRef(self._named(ref, changed))] = changed
        return Contents(snapshots=snapshots, workflows=contents.workflows, artifacts=artifacts)

    def append(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Return the events of one append without the value.

        Raises:
            ValidationError, _StructureError: The value is part of their structure.
        """
        found = tuple(map(self._event, events))
        return tuple(map(_with_other_digest, found)) if found != tuple(events) else found

    def without(self, value: Json) -> Json:
        """Return a JSON value without the value to redact; ids stay as they are, digests become the new ones."""
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
        """Say whether the value, or the digest of a content that held it, is still there."""
        parts = (contents.snapshots.values(), contents.artifacts.values())
        written = [one for part in parts for one in part] + [event.to_bytes() for events in history for event in events]
        gone = [digest.encode() for digest in self.digests]
        return any(self.is_in(one) or any(digest in one for digest in gone) for one in written)

    def _event(self, event: Event) -> Event:
        payload = cast("data.SessionCreated", event.data)
        found = type(payload).model_validate_json(canonical_bytes(self.without(payload.to_json())))
        actor = event.actor
        if actor is not None:
            actor = type(actor).model_validate_json(canonical_bytes(self.without(actor.to_json())))
        changed = event.model_copy(update={"data": found} if actor is None else {"data": found, "actor": actor})
        return copy_to_session(changed, event.session_id)

    def _artifact(self, content: bytes) -> bytes:
        if not self.is_in(content):
            return content
        try:
            return canonical_bytes(self.without(json.loads(content)))
        except (ValueError, RecursionError):
            return self._text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _named(self, digest: Digest, content: bytes) -> Digest:
        name = digest_of_bytes(content)
        if name != digest:
            self.digests[digest], self.sizes[digest] = name, len(content)
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
        if _IDENTIFIER.fullmatch(text):
            return self.digests.get(text, text)
        found = text
        for spelling in self._spellings:
            found = found.replace(spelling, REDACTED)
        self.texts += found != text
        return found


def _with_other_digest(event: Event) -> Event:
    """Return an advance with a digest that says nothing of its request; any other event unchanged."""
    if not isinstance(event, AdvanceRecordedEvent):
        return event
    digest = digest_of({"redacted": event.event_id})
    return event.model_copy(update={"data": event.data.model_copy(update={"request_digest": digest})})


def _signed(prefix: SoundPrefix) -> Iterator[Event]:
    """Yield the events with a signature."""
    for event in chain.from_iterable(prefix.history):
        if isinstance(event, EventReceivedEvent) and event.data.signed is not None:
            yield event


def _derivation(prefix: SoundPrefix, clock: Clock) -> Event:
    """Return the event that says which session this one is a copy of."""
    value = data.ObservationValue(type="short_string", value=prefix.session)
    event = ObservationRecordedEvent.model_construct(
        {"v", "event_id", "event_index", "session_id", "dedupe_key", "recorded_at", "kind", "data"},
        v=1,
        event_id=mint_event(clock),
        event_index=EventIndex(prefix.events),
        session_id=prefix.session,
        dedupe_key="",
        recorded_at=recorded_at(clock),
        kind="observation_recorded",
        data=data.ObservationRecorded(key="redacted_from", value=value, confidence="high"),
    )
    return copy_to_session(event, prefix.session)


def _refused(message: str, fix: str) -> Refusal:
    return Refusal(code=ErrorCode.VALIDATION_ERROR, message=message, suggestion=f"{fix} {_NOTHING_WRITTEN}")
