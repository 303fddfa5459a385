"""What all durable records share: strict, frozen, versioned, one spelling (EVT-1, EVT-2)."""

from typing import Annotated, Literal, NewType

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import InterlockError
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
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    TraceId,
    WorkflowHash,
)

EventIndex = NewType("EventIndex", int)
"""0-based position of an event in its session: the only order there is (EVT-3)."""
ManifestIndex = NewType("ManifestIndex", int)
"""0-based position of a record in a session's manifest; its own sequence (APP-3)."""

_DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"


def _id_pattern(prefix: str) -> str:
    return rf"^{prefix}_{ID_BODY_PATTERN}$"


SessionIdField = Annotated[SessionId, Field(pattern=_id_pattern("sess"))]
RunIdField = Annotated[RunId, Field(pattern=_id_pattern("run"))]
NodeIdField = Annotated[NodeId, Field(pattern=_id_pattern("node"))]
EventIdField = Annotated[EventId, Field(pattern=_id_pattern("evt"))]
AttemptIdField = Annotated[AttemptId, Field(pattern=_id_pattern("att"))]
OutputIdField = Annotated[OutputId, Field(pattern=_id_pattern("out"))]
ContextIdField = Annotated[ContextId, Field(pattern=_id_pattern("ctx"))]
ChangeIdField = Annotated[ChangeId, Field(pattern=_id_pattern("prefchg"))]
GapIdField = Annotated[GapId, Field(pattern=_id_pattern("gap"))]
TraceIdField = Annotated[TraceId, Field(pattern=_id_pattern("trace"))]
CapObsIdField = Annotated[CapObsId, Field(pattern=_id_pattern("capobs"))]
DivergenceIdField = Annotated[DivergenceId, Field(pattern=_id_pattern("div"))]
DigestField = Annotated[Digest, Field(pattern=_DIGEST_PATTERN)]
SnapshotRefField = Annotated[SnapshotRef, Field(pattern=_DIGEST_PATTERN)]
WorkflowHashField = Annotated[WorkflowHash, Field(pattern=_DIGEST_PATTERN)]
IndexField = Annotated[int, Field(ge=0)]
DelimiterSafe = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=300)]
"""Step and loop ids, and those derived from them: no character that a step instance key uses (SNAP-3)."""

Autonomy = Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"]
RiskPolicy = Literal["conservative", "balanced", "aggressive"]
TokenFormat = Literal[1, 2]
"""Which form tokens are minted in; both verify for ever (TOK-1, TOK-8)."""
SHORT: TokenFormat = 2


class Record(BaseModel):
    """A value that is stored: camelCase outside, snake_case inside, nothing coerced, nothing extra.

    Only fields that were set are written, so a record read and written again is the same bytes.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    def to_json(self) -> dict[str, Json]:
        """Return the record as the JSON value that is stored."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def to_bytes(self) -> bytes:
        """Return the record's canonical bytes, without a newline."""
        return canonical_bytes(self.to_json())


class Preferences(Record):
    """How much a run may do alone, and how cautious it is (CTX-8)."""

    autonomy: Autonomy
    risk_policy: RiskPolicy


class UnknownVersionError(InterlockError):
    """A record was written by a newer Interlock: known to be lawful, not understood (EVT-2)."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"{what}: {found}; written by a newer Interlock")
        self.what = what
        self.found = found


class MalformedRecordError(InterlockError):
    """A stored record breaks its own schema."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"{what}: {found}")
        self.what = what
        self.found = found


_FAULTS_OF_NEWER_RECORDS = frozenset({"extra_forbidden", "union_tag_invalid"})
_VERSIONS = frozenset({"v", "schemaVersion", "bundleSchemaVersion"})


def classify_read_error(what: str, error: ValidationError) -> UnknownVersionError | MalformedRecordError:
    """Tell a newer record from a broken one (EVT-2).

    Newer is what names another version, whatever else it holds, and what differs in nothing but unknown fields,
    kinds or members.
    """
    faults = error.errors(include_url=False)
    version = next((fault for fault in faults if _is_version(fault)), None)
    broken = next((fault for fault in faults if not _is_newer(fault)), None)
    if version is not None or broken is None:
        return UnknownVersionError(what, f"unknown {_render_location(version or faults[0])}")
    return MalformedRecordError(what, f"{_render_location(broken)}: {broken['type']}")


def _is_version(fault: ErrorDetails) -> bool:
    return fault["type"] == "literal_error" and _is_version_field(fault) and type(fault["input"]) is int


def _is_version_field(fault: ErrorDetails) -> bool:
    return bool(fault["loc"]) and fault["loc"][-1] in _VERSIONS


def _is_newer(fault: ErrorDetails) -> bool:
    """Say whether a newer record can have this fault: a version is a number, a member of a closed set is text."""
    match fault["type"]:
        case "literal_error":
            return _is_version(fault) if _is_version_field(fault) else isinstance(fault["input"], str)
        case "too_short":
            # Items with faults are left out of the count, so a list that is long enough is called short beside them.
            return len(fault["input"]) >= fault.get("ctx", {})["min_length"]
        case kind:
            return kind in _FAULTS_OF_NEWER_RECORDS


def _render_location(fault: ErrorDetails) -> str:
    return ".".join(map(str, fault["loc"])) or "record"
