"""The payloads of what comes in from outside and of what goes out: events and intents (WORLD-2, WORLD-5)."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from interlock.kernel.budgets import EVENT_FIELDS_BYTES_MAX, EVENT_TEXT_CHARS_MAX
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.shape import Rule, limits
from interlock.record.base import DigestField, IntentIdField, Record, WorkNote, check_work_note

Assurance = Literal["claimed", "observed", "signed", "executed"]
"""How well a fact from outside is known, the weakest first: an agent says so, a command saw it, a source signed it, or
Interlock itself ran it."""
ASSURANCES: tuple[Assurance, ...] = ("claimed", "observed", "signed", "executed")
Via = Literal["elicitation", "console", "app", "command", "hook", "channel", "check", "claim", "clock"]
"""How a fact reached the log. `app`: the page of Interlock in a chat. `clock`: the server noticed that time passed."""
OutsideKind = Annotated[str, *limits(pattern=r"^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)+$", max_length=EVENT_TEXT_CHARS_MAX)]
"""The kind of an event or an intent: `namespace.name`."""
FieldName = Annotated[str, *limits(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=EVENT_TEXT_CHARS_MAX)]
OutsideName = Annotated[str, *limits(min_length=1, max_length=EVENT_TEXT_CHARS_MAX)]
APPROVAL = "wr.approval"
"""The kind of the event that a person answered the question of a step. It is about the node that waits for it."""
NEEDS_PERSON = "wr.needs_person"
"""The kind of the intent which tells people that a run waits for their answer. Interlock alone sends it."""
CHECK = "wr.check"
"""The kind of the event that a check of the user's configuration ended. It is about the node that waits for it."""
RECEIPT = "wr.receipt"
"""The kind of the event that `interlock witness` ran a command. It is about the node that was pending meanwhile."""
TREE = "wr.tree"
"""The kind of the event that Interlock read the working tree when a step was reported. It is about the step's node."""
UNCOUNTED = frozenset({RECEIPT, TREE})
"""The kinds that no step waits for: they take no place of events, and have limits of their own."""
EXPIRED = "wr.expired"
"""The kind of the event that a step waited for longer than its timeout. Its id is that of the node."""
UNANSWERED_CHOICE = "expired"
"""The choice that a step reads of an answer that did not come in time."""

RECORDED_KINDS = frozenset({APPROVAL, CHECK, EXPIRED, NEEDS_PERSON, RECEIPT, TREE})
"""The kinds of events and intents that Interlock alone records: no artifact of a report has one of them."""

RECORDED_FIELDS: Mapping[str, Mapping[str, str]] = {
    APPROVAL: {"approved": "boolean", "choice": "string", "note": "string", "shown": "string"},
    CHECK: {
        "check": "string",
        "command": "string",
        "digest": "string",
        "ended": "string",
        "exit": "number",
        "output": "string",
        "passed": "boolean",
        "run": "number",
        "seconds": "number",
    },
    RECEIPT: {
        "argv": "string",
        "command": "string",
        "digest": "string",
        "exit": "integer",
        "output": "string",
        "seconds": "number",
        "tree": "string",
    },
    TREE: {"tree": "string"},
}
"""The fields that an event of Interlock's own always has, each with its type. `shown` of an answer is the digest of the
question and of what the person saw."""
LOST: Final = "lost"
"""How a check ended whose process ended before it recorded a result (CHECK-7)."""
EXIT_UNKNOWN = 255
"""The exit code in the result of such a check if nobody knows how its process ended."""
_ENDED: Mapping[str, str] = {
    "exit": "exit code {exit}",
    "signal": "ended by signal {signal}",
    "timeout": "stopped because it took too long",
    "changed": "protected files were changed while it ran",
}
_TYPES: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
}


def check_size(fields: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
    """Return fields of an event or an intent if they are within their limit.

    Raises:
        ValueError: They are too large.
    """
    if len(canonical_bytes(dict(fields))) > EVENT_FIELDS_BYTES_MAX:
        raise ValueError(f"fields of more than {EVENT_FIELDS_BYTES_MAX} bytes")
    return fields


Fields = Annotated[dict[FieldName, str | int | float | bool], Rule(check=check_size)]
"""The fields of an event or an intent: strings, numbers and booleans by name."""


ProofMode = Literal["enforce", "shadow", "off"]
"""What a missing proof does: it refuses the report, it is recorded, or nobody looks for it."""


PinnedProofs = Literal["shadow", "off"]
"""What a run records of the mode: nothing if missing proofs refuse a report (PROOF-5)."""


class Signed(Record):
    """A signature over an event (`signed_bytes`), and the source whose public key verified it."""

    source: OutsideName
    public_key: Annotated[str, *limits(pattern=r"^[A-Za-z0-9_-]{43}$")]
    signature: Annotated[str, *limits(pattern=r"^[A-Za-z0-9_-]{86}$")]


class PinnedCheck(Record):
    """The digests of the definition of a check, and of the files that it protects, at the start of a run (CHECK-2)."""

    name: OutsideName
    definition: DigestField
    protected: DigestField | None = None


class EventReceived(Record):
    """Something happened outside. `sentId` is the sender's id: with the same kind, id, node and level it counts once.

    So a claim does not take the place of the signed event with its id.

    It never advances a run: the ack of a step that waits for it does (WORLD-3).
    """

    event: OutsideKind
    sent_id: OutsideName
    fields: Fields
    assurance: Assurance
    via: Via
    signed: Signed | None = None
    intent_id: IntentIdField | None = None

    def __post_init__(self) -> None:
        """Check the size of the fields, and that a signature is there if it must be."""
        check_size(self.fields)
        if (self.assurance == "signed") != (self.signed is not None):
            raise ValueError("a signed event has a signature, and no other event has one")


def lacking_field(event: EventReceived) -> str | None:
    """Return the first field that Interlock records with an event of its own and that this one lacks; else None."""
    needed = RECORDED_FIELDS.get(event.event, {})
    return next((name for name, kind in needed.items() if type(event.fields.get(name)) not in _TYPES[kind]), None)


class IntentRecorded(Record):
    """Something is to be sent outside, derived from the declarations of a step; a channel sends it after the commit.

    `number` is its place among the intents of the step.
    """

    intent_id: IntentIdField
    sends: OutsideKind
    number: Annotated[int, *limits(ge=0)]
    fields: Fields

    def __post_init__(self) -> None:
        """Check the size of the fields."""
        check_size(self.fields)


IntentResult = Literal["delivered", "refused", "failed", "unknown", "cancelled", "abandoned"]
IntentState = Literal["dispatched", IntentResult]
"""`dispatched` is the claim of the process that sends it; every other state is the result of a try (WORLD-6)."""


class IntentSettled(Record):
    """What became of a try to send an intent, counted from 1. A claim names the channel and its process."""

    intent_id: IntentIdField
    attempt: Annotated[int, *limits(ge=1)]
    state: IntentState
    channel: OutsideName | None = None
    owner: OutsideName | None = None
    note: WorkNote | None = None

    def __post_init__(self) -> None:
        """Check the size of the note, and that only a claim names a process."""
        if self.note is not None:
            check_work_note(self.note)
        if (self.state == "dispatched") != (self.owner is not None):
            raise ValueError("a claim names its process, and nothing else does")


def check_end(fields: Mapping[str, object]) -> str:
    """Say how a check ended, from the fields of its result; a bundle may name an end that no check has."""
    number = fields.get("exit")
    signal = -number if isinstance(number, int) else number
    if fields.get("ended") == LOST:
        known = "" if number == EXIT_UNKNOWN else f", with exit code {number}"
        is_signal = isinstance(number, int) and number < 0
        return f"its process ended without a result{f', by signal {signal}' if is_signal else known}"
    return _ENDED.get(str(fields.get("ended")), "exit code {exit}").format(exit=number, signal=signal)


def exit_words(fields: Mapping[str, object]) -> str:
    """Say with which exit code a command ended; of a check without a result, say that."""
    return check_end(fields) if fields.get("ended") == LOST else f"exit code {fields.get('exit')}"
