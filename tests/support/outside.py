"""Workflows that wait and send, events as they arrive, and an outbox that a test sends by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.flow import Document, declared, document, step

from interlock.channels.channel import ChannelConfig, ChannelSource, owner_of
from interlock.engine.outside import SentEvent, SourceKey, decoded_key
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import IntentId, SessionId
from interlock.record.events import Actor
from interlock.record.world import Assurance, Via
from interlock.service.outside.dispatch import Sender
from interlock.service.outside.receive import Arrival
from interlock.service.outside.signatures import SigningKey, new_source, sign_event
from interlock.service.ports import AppendPorts
from interlock.service.tools.send_event import EventReport, send_event
from interlock.testing.harness import Harness, ToolResult
from interlock.views.outside import Intent

PERSON = Actor(type="human", identifier="command line")
AWAIT: Document = {
    "type": "await",
    "id": "ci",
    "title": "Wait for CI",
    "event": "ci.finished",
    "fields": {"status": "string"},
    "set": [{"key": "status", "from": "event.status"}],
}
STATUS = declared("status", required=False)
WAITING = document(step("a"), AWAIT, step("b"), inputs=[STATUS])


def waiting_for(**changes: object) -> Document:
    """Return the workflow whose second step waits, with a changed `await`."""
    return document(step("a"), {**AWAIT, **changes}, step("b"), inputs=[STATUS, declared("late", "boolean")])


def sent(
    harness: Harness,
    start: ToolResult,
    event_id: str = "1",
    *,
    assurance: Assurance = "observed",
    via: Via = "command",
    **changes: Any,
) -> EventReport | Refusal:
    """Send an event to a run, as a command does."""
    given: dict[str, Any] = {"event": "ci.finished", "id": event_id, "fields": {"status": "green"}, **changes}
    where = harness.session_of(start), harness.reference_of(start).run
    how = Arrival(via=via, assurance=assurance)
    return send_event(harness.ports, where, SentEvent.of_json(given), how, PERSON)


def artifact(event_id: str = "1", **changes: Any) -> Document:
    """Return the artifact with which an agent says that the event happened."""
    return {"kind": "wr.event", "event": "ci.finished", "id": event_id, "fields": {"status": "green"}, **changes}


@dataclass(slots=True)
class HeldOutbox:
    """An outbox that takes intents and sends none."""

    channels: tuple[ChannelConfig, ...]
    offered: list[tuple[SessionId, IntentId]] = field(default_factory=list[tuple[SessionId, IntentId]])

    def uncovered(self, sends: str, source: ChannelSource) -> str | None:
        """See `Outbox`."""
        found = owner_of(self.channels, sends, source)
        return found if isinstance(found, str) else None

    def offer(self, session: SessionId, intents: Sequence[Intent]) -> None:
        """See `Outbox`."""
        self.offered += [(session, one.intent_id) for one in intents]

    def resume(self) -> None:
        """See `Outbox`."""

    def close(self) -> None:
        """See `Outbox`."""


def into_file(path: Path, **changes: Any) -> ChannelConfig:
    """Return a channel that appends to a file, also for workflows of a project."""
    fields: dict[str, Any] = {
        "name": "log",
        "kind": "file",
        "accepts": ("team.notify",),
        "sources": ("project",),
        "path": str(path),
        **changes,
    }
    return ChannelConfig(**fields)


def sending(harness: Harness, *channels: ChannelConfig) -> Harness:
    """Return the harness with an outbox that takes what these channels take and sends nothing by itself."""
    return replace(harness, ports=replace(harness.ports, outbox=HeldOutbox(channels=channels)))


def sender_of(harness: Harness, *channels: ChannelConfig, owner: str = "process 1") -> Sender:
    """Return a sender over the store of a harness."""
    ports = AppendPorts(read=harness.ports.read, writer=harness.ports.writer, clock=harness.ports.clock)
    return Sender(ports=ports, channels=channels, owner=owner)


def with_sources(harness: Harness, *sources: SourceKey) -> Harness:
    """Return the harness with these sources of signed events."""
    named: Mapping[str, SourceKey] = {one.name: one for one in sources}
    return replace(harness, ports=replace(harness.ports, sources=named))


def a_source(*kinds: str) -> tuple[SourceKey, bytes]:
    private, public = new_source()
    key = decoded_key(private)
    assert key is not None
    return SourceKey(name="ci", public_key=public, kinds=kinds), key


def signed_event(harness: Harness, start: ToolResult, key: bytes, **changes: Any) -> SentEvent:
    given: dict[str, Any] = {"event": "ci.finished", "id": "1", "fields": {"status": "green"}, **changes}
    return sign_event(
        harness.reference_of(start).run, SentEvent.of_json(given), SigningKey(source="ci", private_key=key)
    )
