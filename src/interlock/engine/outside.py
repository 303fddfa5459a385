"""Events as they are sent: parsed from an artifact or a command, and held to what the plan declares (WORLD-3). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from interlock.define.diagnostics import suggest_name
from interlock.engine.request import Request
from interlock.kernel.budgets import EVENT_FIELDS_BYTES_MAX, EVENT_TEXT_CHARS_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.ids import RunId
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.base import NodeIdField, Record
from interlock.record.world import Fields, OutsideKind, OutsideName

EVENT_KIND = "wr.event"
"""The artifact with which an MCP client says that something happened outside."""
RESERVED = "wr."
"""How the kinds of Interlock's own events begin: nobody can send them."""


class SentSignature(Record):
    """A signature that came with an event, and the source that is said to have made it."""

    source: OutsideName
    signature: str


class SentEvent(Record):
    """An event as it was sent. `id` is the sender's; `node` names the node that it is about, if it is about one."""

    event: OutsideKind
    id: OutsideName
    fields: Fields
    node: NodeIdField | None = None
    signed: SentSignature | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKey:
    """A source whose events are believed: its public key, and the kinds that it may sign. No kinds: every kind."""

    name: str
    public_key: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFault:
    """Why an event cannot be taken: the member, what was found, and what to send."""

    member: str
    found: str
    fix: str


def parse_event_artifact(artifact: Mapping[str, Json]) -> SentEvent | EventFault:
    """Parse the artifact `wr.event`; its `fields` may be left out if there are none."""
    members = {"fields": {}, **{name: value for name, value in artifact.items() if name != "kind"}}
    event = members.get("event")
    if isinstance(event, str) and event.startswith(RESERVED):
        return EventFault(member="event", found=f"`{one_line(event, EVENT_TEXT_CHARS_MAX)}` cannot be sent.", fix=_OWN)
    try:
        return SentEvent.model_validate(members)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "event"
        return EventFault(
            member=place, found=f"The member is missing, unknown or malformed ({first['type']}).", fix=_FORM
        )


_OWN = "Kinds that begin with `wr.` are recorded by Interlock itself. Send an event that the workflow waits for."
_FORM = (
    '`{"kind": "wr.event", "event": "namespace.name", "id": "<unique>", "fields": {…}}`: strings, numbers and booleans,'
    f" at most {EVENT_FIELDS_BYTES_MAX} bytes in all."
)


def events_in(request: Request) -> tuple[tuple[SentEvent, ...], Request]:
    """Split a request whose artifacts were checked into its events, and the rest."""
    found = [one for one in request.artifacts if one.get("kind") == EVENT_KIND]
    if not found:
        return (), request
    events = tuple(map(parse_event_artifact, found))
    assert all(isinstance(one, SentEvent) for one in events), "arguments with such a fault are refused before"
    return cast("tuple[SentEvent, ...]", events), request.without(EVENT_KIND)


def declared_fault(workflow: CompiledWorkflow, sent: SentEvent) -> EventFault | None:
    """Return why no step of a plan can wait for an event; None if one does.

    A step waits for an event with exactly its declared fields, each of the declared type.
    """
    found = (node.task.awaits for node in workflow.steps.values() if node.task is not None)
    # Interlock records its own kinds itself: nobody sends them.
    awaited = [one for one in found if one is not None and not one.event.startswith(RESERVED)]
    kinds = sorted({one.event for one in awaited})
    declared = [one.fields for one in awaited if one.event == sent.event]
    if not declared:
        guess = suggest_name(sent.event, kinds)
        named = ", ".join(f"`{one}`" for one in kinds)
        fix = f"Did you mean `{guess}`?" if guess else f"It waits for {named or 'no event'}."
        return EventFault(member="event", found=f"No step of the run waits for `{sent.event}`.", fix=fix)
    faults = [_fields_fault(fields, sent.fields) for fields in declared]
    return None if None in faults else faults[0]


def _fields_fault(declared: Mapping[str, str], fields: Mapping[str, object]) -> EventFault | None:
    shown = ", ".join(f"`{name}` ({kind})" for name, kind in sorted(declared.items())) or "no fields"
    fix = f"The event has {shown}."
    for name in sorted({*declared, *fields}):
        if name not in fields:
            return EventFault(member=f"fields.{name}", found="The field is missing.", fix=fix)
        if name not in declared:
            return EventFault(member=f"fields.{name}", found="The event has no such field.", fix=fix)
        if _type_of(fields[name]) != declared[name]:
            found = f"Found a {_type_of(fields[name])}, expected a {declared[name]}."
            return EventFault(member=f"fields.{name}", found=found, fix=fix)
    return None


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def signed_bytes(run: RunId, sent: SentEvent) -> bytes:
    """Return the bytes that a signature of an event covers, so that it cannot be moved to another run or content."""
    body: dict[str, Json] = {
        "v": 1,
        "run": run,
        "node": sent.node,
        "event": sent.event,
        "id": sent.id,
        "fields": dict(sent.fields),
    }
    return canonical_bytes(body)
