"""The base of all durable records: strict, frozen, versioned, with one spelling in bytes (EVT-1, EVT-2)."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NewType, TypeVar, cast

import msgspec

from interlock.kernel.budgets import WORK_NOTE_BYTES_MAX
from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.ids import (
    ID_BODY_PATTERN,
    AttemptId,
    CapObsId,
    ChangeId,
    ContextId,
    Digest,
    DivergenceId,
    EventId,
    GapId,
    IntentId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    TraceId,
    WorkflowHash,
)
from interlock.kernel.shape import Reader, ReadFault, RefusedError, Rule, Shape, limits
from interlock.kernel.shape.plain import encode_plain
from interlock.kernel.text import utf8_bytes
from interlock.kernel.uuids import UUID_PATTERN, Uuid
from interlock.record.errors import MalformedRecordError, UnknownVersionError

EventIndex = NewType("EventIndex", int)
"""0-based position of an event in its session. Events have no other order (EVT-3)."""
ManifestIndex = NewType("ManifestIndex", int)
"""0-based position of a record in a session's manifest. It is not an event index (APP-3)."""

_DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"


def _id_pattern(prefix: str) -> str:
    return rf"^{prefix}_{ID_BODY_PATTERN}$"


SessionIdField = Annotated[SessionId, *limits(pattern=_id_pattern("sess"))]
RUN_ID = re.compile(_id_pattern("run"))
"""A whole run id."""
RunIdField = Annotated[RunId, *limits(pattern=_id_pattern("run"))]
NodeIdField = Annotated[NodeId, *limits(pattern=_id_pattern("node"))]
EventIdField = Annotated[EventId, *limits(pattern=_id_pattern("evt"))]
AttemptIdField = Annotated[AttemptId, *limits(pattern=_id_pattern("att"))]
OutputIdField = Annotated[OutputId, *limits(pattern=_id_pattern("out"))]
ContextIdField = Annotated[ContextId, *limits(pattern=_id_pattern("ctx"))]
ChangeIdField = Annotated[ChangeId, *limits(pattern=_id_pattern("prefchg"))]
GapIdField = Annotated[GapId, *limits(pattern=_id_pattern("gap"))]
TraceIdField = Annotated[TraceId, *limits(pattern=_id_pattern("trace"))]
CapObsIdField = Annotated[CapObsId, *limits(pattern=_id_pattern("capobs"))]
DivergenceIdField = Annotated[DivergenceId, *limits(pattern=_id_pattern("div"))]
IntentIdField = Annotated[IntentId, *limits(pattern=_id_pattern("intent"))]
DigestField = Annotated[Digest, *limits(pattern=_DIGEST_PATTERN)]
SnapshotRefField = Annotated[SnapshotRef, *limits(pattern=_DIGEST_PATTERN)]
WorkflowHashField = Annotated[WorkflowHash, *limits(pattern=_DIGEST_PATTERN)]
IndexField = Annotated[int, *limits(ge=0)]
UuidField = Annotated[Uuid, *limits(pattern=UUID_PATTERN)]
"""The id of a definition or of an execution (OPS-15)."""
DelimiterSafe = Annotated[str, *limits(pattern=r"^[a-z0-9_-]+$", max_length=300)]
"""Step and loop ids, and ids derived from them. They contain no delimiter of a step instance key (SNAP-3)."""

_T = TypeVar("_T")
Autonomy = Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"]
RiskPolicy = Literal["conservative", "balanced", "aggressive"]
PreferenceKey = Literal["autonomy", "riskPolicy"]
TokenFormat = Literal[1, 2]
"""The format in which tokens are minted. Tokens of both formats stay valid (TOK-1, TOK-8)."""
SHORT: TokenFormat = 2


def at_most_bytes(bytes_max: int) -> Callable[[str], str]:
    """Return the check of a text's limit in bytes of UTF-8."""

    def check(text: str) -> str:
        if utf8_bytes(text) > bytes_max:
            raise ValueError(f"a text of more than {bytes_max} bytes")
        return text

    return check


check_work_note = at_most_bytes(WORK_NOTE_BYTES_MAX)
WorkNote = Annotated[str, *limits(min_length=1), Rule(check=check_work_note)]
"""Why work ended, or why an intent was not delivered."""


class Record(Shape):
    """A stored value: camelCase in bytes, snake_case in code, no coercion, no unknown fields."""

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of the record, without a newline."""
        data = encode_plain(self)
        return canonical_bytes(msgspec.to_builtins(self)) if data is None else data


class OfKind(Record, tag_field="kind"):
    """A record that is one of several kinds."""

    @property
    def kind(self) -> str:
        """Its kind."""
        return cast("str", self.__struct_config__.tag)


class Preferences(Record):
    """How far a run may proceed without the user, and how cautious it is (CTX-8)."""

    autonomy: Autonomy
    risk_policy: RiskPolicy

    @property
    def never_stops(self) -> bool:
        """Whether a run discloses what is missing instead of stopping for it (MODE-2)."""
        return self.autonomy == "full_auto_never_stop"


_VERSIONS = frozenset({"v", "schemaVersion", "bundleSchemaVersion"})


def read_record(what: str, reader: Reader[_T], data: bytes) -> _T:
    """Return the record that some bytes hold.

    Raises:
        UnknownVersionError: A newer Interlock wrote it.
        MalformedRecordError: They hold no such record.
    """
    try:
        return reader.read(data)
    except RefusedError as error:
        raise classify_faults(what, reader.faults(data), error) from None


def classify_faults(
    what: str, faults: Sequence[ReadFault], refusal: RefusedError
) -> UnknownVersionError | MalformedRecordError:
    """Decide whether a record is newer or malformed, and return the matching error (EVT-2).

    A record is newer if it names another version, or if its only faults are unknown fields, kinds or members of
    closed sets. Any other record is malformed.
    """
    if not faults:
        return MalformedRecordError(what, str(refusal))
    version = next((fault for fault in faults if _is_version(fault)), None)
    broken = next((fault for fault in faults if not _is_newer(fault)), None)
    if version is not None or broken is None:
        return UnknownVersionError(what, f"unknown {_render_location(version or faults[0])}")
    return MalformedRecordError(what, f"{_render_location(broken)}: {broken['type']}")


def _is_version(fault: ReadFault) -> bool:
    return fault["type"] == "literal_error" and _is_version_field(fault) and type(fault["input"]) is int


def _is_version_field(fault: ReadFault) -> bool:
    return bool(fault["loc"]) and fault["loc"][-1] in _VERSIONS


def _is_newer(fault: ReadFault) -> bool:
    """Return whether a newer record can have this fault: versions are numbers, kinds and members of sets are text."""
    match fault["type"]:
        case "literal_error":
            return _is_version(fault) if _is_version_field(fault) else isinstance(fault["input"], str)
        case "too_short":
            # pydantic does not count items with faults, so it can report a long list as too short.
            return len(fault["input"]) >= fault.get("ctx", {})["min_length"]
        case "union_tag_invalid":
            # pydantic puts the name of the discriminator key in quotes.
            return isinstance(fault["input"].get(fault["ctx"]["discriminator"].strip("'")), str)
        case kind:
            return kind == "extra_forbidden"


def _render_location(fault: ReadFault) -> str:
    return ".".join(map(str, fault["loc"])) or "record"
