"""Events as they are sent: parsed from an artifact or a command, and held to what the plan declares (WORLD-3). Pure."""

import json
from collections.abc import Mapping
from typing import cast

from interlock.decide.evaluate import describe_kind
from interlock.decide.value import INTENT_FIELD, describe_unsendable
from interlock.define.diagnostics import suggest_name
from interlock.engine.request import MemberFault, Request
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import ECHO_BYTES_MAX, EVENT_FIELDS_BYTES_MAX, EVENT_TEXT_CHARS_MAX
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId
from interlock.kernel.shape import ShapeError
from interlock.kernel.text import flat, has_surrogate, one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.base import NodeIdField, Record
from interlock.record.tokens import decode_base64url
from interlock.record.world import Fields, OutsideKind, OutsideName, check_size

EVENT_KIND = "wr.event"
"""The artifact with which an MCP client says that something happened outside."""
KEY_BYTES = 32
"""Bytes of an Ed25519 key, public or private; part of the algorithm."""
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

    def __post_init__(self) -> None:
        """Check the size of the fields."""
        check_size(self.fields)


@frozen
class SourceKey:
    """A source whose events are believed: its public key, and the kinds that it may sign. No kinds: every kind."""

    name: str
    public_key: str
    kinds: tuple[str, ...] = ()


def parse_event_artifact(artifact: Mapping[str, Json]) -> SentEvent | MemberFault:
    """Parse the artifact `wr.event`; its `fields` may be left out if there are none."""
    members = {"fields": {}, **{name: value for name, value in artifact.items() if name != "kind"}}
    event = members.get("event")
    if isinstance(event, str) and event.startswith(RESERVED):
        found = f"`{one_line(event, EVENT_TEXT_CHARS_MAX)}` cannot be sent."
        return MemberFault(member="event", found=found, fix=_OWN, blank=_BLANKS["event"])
    try:
        return SentEvent.of_json(members)
    except ShapeError as error:
        first = error.faults[0]
        return _fault(members, first["type"], [str(part) for part in first["loc"]])


def _fault(members: Mapping[str, Json], kind: str, place: list[str]) -> MemberFault:
    """Say what is wrong at the first faulty place of an event, in words of its sender."""
    member, here = place[0], members.get(place[0])
    if kind == "missing":
        return MemberFault(
            member=".".join(place), found="The member is missing.", fix=_FIXES[member], blank=_BLANKS.get(member)
        )
    if kind == "extra_forbidden":
        known = SentEvent.__struct_fields__ if len(place) == 1 else SentSignature.__struct_fields__
        guess = suggest_name(place[-1], known)
        fix = f"Did you mean `{guess}`?" if guess else f"Remove it. Known are {', '.join(f'`{one}`' for one in known)}."
        return MemberFault(member=_short(".".join(place)), found="There is no such member.", fix=fix)
    if member == "fields" and isinstance(here, dict):
        return _field_fault(here, place[1:])
    if member == "signed" and isinstance(here, dict):
        here, member = here.get(place[-1]), ".".join(place)
    found = f"Found {_echo(here) if isinstance(here, str) else describe_kind(here)}."
    return MemberFault(member=member, found=found, fix=_FIXES[place[0]], blank=_BLANKS.get(place[0]))


def _field_fault(fields: Mapping[str, Json], place: list[str]) -> MemberFault:
    """Say which field cannot be taken: its name, its value, or the size of all."""
    if not place:
        name, found = next(((name, found) for name, one in fields.items() if (found := _unfit(one))), ("", None))
        found = f"Found {found}." if found else f"The fields have more than {EVENT_FIELDS_BYTES_MAX} bytes."
        return _fault_of_fields(f"fields.{name}".rstrip("."), found)
    [name, *_] = place
    is_name = place[-1] == "[key]"
    found = f"{_echo(name)} is no name of a field." if is_name else f"Found {_unfit(fields[name]) or 'no such value'}."
    return _fault_of_fields(f"fields.{name}", found)


def _fault_of_fields(member: str, found: str) -> MemberFault:
    return MemberFault(member=_short(member), found=found, fix=_FIXES["fields"], blank=_BLANKS["fields"])


def _unfit(value: Json) -> str | None:
    if isinstance(value, str):
        return "a text that is not valid Unicode" if has_surrogate(value) else None
    return describe_unsendable(value)


def _echo(text: str) -> str:
    return json.dumps(_short(text), ensure_ascii=False) if text else "an empty text"


def _short(text: str) -> str:
    return one_line(text.encode("utf-8", "replace").decode(), ECHO_BYTES_MAX)


_OWN = "Kinds that begin with `wr.` are recorded by Interlock itself. Send an event that the workflow waits for."
_FIXES: Mapping[str, str] = {
    "event": "Write the kind that the step waits for: `namespace.name` in lower case, such as `ci.finished`.",
    "id": f"Write an id of your own for this event: a text of 1 to {EVENT_TEXT_CHARS_MAX} characters.",
    "fields": 'Write an object such as `{"status": "green"}`. A name has letters, digits, `_` and `-`; a value is'
    f" {INTENT_FIELD}; all fields have at most {EVENT_FIELDS_BYTES_MAX} bytes.",
    "node": "Leave `node` out, or write the id of a node of the run: `interlock session show RUN --json` prints them.",
    "signed": "Send the event as `interlock event sign` printed it, with `signed.source` and `signed.signature`.",
}
"""What to write for each member of an event."""
_BLANKS: Mapping[str, Blank] = {
    "event": Blank(what="the kind of event that the step waits for"),
    "id": Blank(what="an id of your own for this event"),
    "fields": Blank(what="an object with the fields of the event"),
}
"""The members that an event cannot do without."""


def events_in(request: Request) -> tuple[tuple[SentEvent, ...], Request]:
    """Split a request whose artifacts were checked into its events, and the rest."""
    found = [one for one in request.artifacts if one.get("kind") == EVENT_KIND]
    if not found:
        return (), request
    events = tuple(map(parse_event_artifact, found))
    assert all(isinstance(one, SentEvent) for one in events), "arguments with such a fault are refused before"
    return cast("tuple[SentEvent, ...]", events), request.without(EVENT_KIND)


def declared_fault(workflow: CompiledWorkflow, sent: SentEvent) -> MemberFault | None:
    """Return why no step of a plan can wait for an event; None if one does.

    A step waits for an event with exactly its declared fields, each of the declared type.
    """
    if not sent.id.strip():
        return MemberFault(member="id", found="The id of the event is blank.", fix="Send an id of your own for it.")
    found = (node.task.awaits for node in workflow.steps.values() if node.task is not None)
    # Interlock records its own kinds itself: nobody sends them.
    awaited = [one for one in found if one is not None and not one.event.startswith(RESERVED)]
    kinds = sorted({one.event for one in awaited})
    declared = [one.fields for one in awaited if one.event == sent.event]
    if not declared:
        guess = suggest_name(sent.event, kinds)
        named = ", ".join(f"`{one}`" for one in kinds)
        fix = f"Did you mean `{guess}`?" if guess else f"It waits for {named or 'no event'}."
        return MemberFault(member="event", found=f"No step of the run waits for `{sent.event}`.", fix=fix)
    faults = [_fields_fault(fields, sent.fields) for fields in declared]
    return None if None in faults else faults[0]


def _fields_fault(declared: Mapping[str, str], fields: Mapping[str, object]) -> MemberFault | None:
    shown = ", ".join(f"`{name}` ({kind})" for name, kind in sorted(declared.items())) or "no fields"
    fix = f"The event has {shown}."
    for name in sorted({*declared, *fields}):
        if name not in fields:
            return MemberFault(member=f"fields.{name}", found=f"The field `{name}` is missing.", fix=fix)
        if name not in declared:
            return MemberFault(member=f"fields.{name}", found=f"The event has no field `{flat(name)}`.", fix=fix)
        if _type_of(fields[name]) != declared[name]:
            found = f"Found a {_type_of(fields[name])}, expected a {declared[name]}."
            return MemberFault(member=f"fields.{name}", found=found, fix=fix)
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


def decoded_key(text: str) -> bytes | None:
    """Return the bytes of a key in base64url without padding; None if it is not one."""
    data = decode_base64url(text)
    return data if data is not None and len(data) == KEY_BYTES else None


def is_signed(run: RunId, sent: SentEvent, public_key: str) -> bool:
    """Say whether the signature of an event is one of this key over exactly this event."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 — only signatures need it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 — see above

    assert sent.signed is not None, "the event has a signature"
    key, signature = decoded_key(public_key), decode_base64url(sent.signed.signature)
    if key is None or signature is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed_bytes(run, sent))
    except InvalidSignature:
        return False
    return True
