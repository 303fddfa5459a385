"""The bundle: one session and all content it refers to, as one JSON file with its own digests (BND-1, BND-2).

A bundle is exactly the canonical bytes of its value, and every part has an integrity entry with its digest. The part
`envelope` is everything except `integrity` and `session`; the other parts are named by their path. So a change of
any byte is detected. A bundle contains no tokens: the importing server mints new ones.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Annotated, Literal, cast

from interlock.kernel.budgets import BUNDLE_BYTES_MAX, BUNDLE_DEPTH_MAX, BUNDLE_VALUES_MAX, NUMBER_DIGITS_MAX
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode, InterlockError
from interlock.kernel.ids import ID_BODY_PATTERN, SessionId, derived_id
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess
from interlock.kernel.shape import Reader, limits
from interlock.record.base import (
    DigestField,
    IndexField,
    Record,
    SessionIdField,
    SnapshotRefField,
    WorkflowHashField,
    read_record,
)
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.events import Event
from interlock.record.manifest import ManifestRecord
from interlock.record.snapshot import ExecutionSnapshot

BUNDLE_BOUNDS = JsonBounds(values_max=BUNDLE_VALUES_MAX, depth_max=BUNDLE_DEPTH_MAX)
INTEGRITY_KIND = "sha256_manifest_v1"
_VERSION = 1
_MAPS = frozenset({"artifacts", "pinnedWorkflows", "snapshots"})
"""Members of `session` whose members are separate parts, each with an integrity entry."""
_EXCESS_WORDS: Mapping[Excess, str] = {
    "values": f"more than {BUNDLE_VALUES_MAX} values",
    "depth": f"values nested deeper than {BUNDLE_DEPTH_MAX} levels",
    "digits": f"a number with more than {NUMBER_DIGITS_MAX} digits",
}


class BundleError(InterlockError):
    """A file cannot be imported as a bundle. `where` and `found` say what is wrong in which part."""

    def __init__(self, code: ErrorCode, where: str, found: str) -> None:
        super().__init__(f"{code}: {where}: {found}")
        self.code = code
        self.where = where
        self.found = found


class Producer(Record):
    """The program that wrote the bundle. For readers only: nothing depends on it."""

    app_version: str
    applied_config_hash: DigestField | None = None


class SalvageBanner(Record):
    """Marks a bundle that contains only part of a session, and says why (BND-9).

    `where` and `found` say what ended the readable part. The counts say how much the log attests after that point:
    exactly if `isCountKnown`, else at least.
    """

    code: Literal["SALVAGED_PREFIX", "PARTIAL_DATA"]
    health: Literal["healthy", "corrupt_tail", "corrupt_head"]
    where: str
    found: str
    groups_left_out: IndexField
    events_left_out: IndexField
    bytes_left_out: IndexField
    is_count_known: bool


class BundleEnvelope(Record):
    """The header of a bundle. `exportedAt` (UTC) is for readers and orders nothing."""

    bundle_schema_version: Literal[1]
    bundle_id: Annotated[str, *limits(pattern=rf"^bundle_{ID_BODY_PATTERN}$")]
    exported_at: str
    producer: Producer
    salvage: SalvageBanner | None = None


class IntegrityEntry(Record):
    """The size and digest of the canonical bytes of one part."""

    path: str
    sha256: DigestField
    bytes: IndexField


class Integrity(Record):
    """Exactly one entry for each part, ordered by path."""

    kind: Literal["sha256_manifest_v1"]
    entries: tuple[IntegrityEntry, ...]


class ArtifactText(Record):
    """An artifact's bytes as text: UTF-8 if they are valid UTF-8, else base64."""

    encoding: Literal["utf-8", "base64"]
    data: str

    @classmethod
    def from_bytes(cls, data: bytes) -> "ArtifactText":
        """Encode bytes. The same bytes always give the same text."""
        try:
            return cls(encoding="utf-8", data=data.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(encoding="base64", data=base64.b64encode(data).decode("ascii"))

    def content(self) -> bytes:
        """Decode the text to the artifact's bytes.

        Raises:
            ValueError: The text is not valid base64.
        """
        if self.encoding == "utf-8":
            return self.data.encode("utf-8")
        return base64.b64decode(self.data, validate=True)


class BundledSession(Record):
    """A session: its events and manifest in order, and the content that they refer to by digest."""

    session_id: SessionIdField
    events: Annotated[tuple[Event, ...], *limits(min_length=1)]
    manifest: Annotated[tuple[ManifestRecord, ...], *limits(min_length=1)]
    snapshots: dict[SnapshotRefField, ExecutionSnapshot]
    pinned_workflows: dict[WorkflowHashField, dict[str, Json]]
    artifacts: dict[DigestField, ArtifactText]

    def check_read(self) -> None:
        """Check each event and each snapshot."""
        for one in (*self.events, *self.snapshots.values()):
            one.check_read()


class Bundle(BundleEnvelope):
    """A whole bundle, as parsed from a file."""

    integrity: Integrity
    session: BundledSession

    def check_read(self) -> None:
        """Check the session."""
        self.session.check_read()


_BUNDLE: Reader[Bundle] = Reader(Bundle)


def derive_bundle_id(session: SessionId, events: Json) -> str:
    """Derive the bundle id from the session and its events, so that equal content always has the same id."""
    return derived_id("bundle", session, digest_of_bytes(canonical_bytes(events)))


def seal_bundle(envelope: BundleEnvelope, session: Mapping[str, Json]) -> bytes:
    """Add the integrity entries to an envelope and a session, and return the bundle's bytes."""
    value: dict[str, Json] = {**envelope.to_json(), "session": dict(session)}
    value["integrity"] = {"kind": INTEGRITY_KIND, "entries": _build_entries(value)}
    return canonical_bytes(value)


def parse_bundle(data: bytes) -> Bundle:
    """Parse a bundle and check its integrity.

    Beyond the schemas of the parts, their content is not checked here.

    Raises:
        BundleError: The bytes are not a valid bundle. The code says whether the format, the version or the integrity
            is wrong.
    """
    if len(data) > BUNDLE_BYTES_MAX:
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "the file", f"more than {BUNDLE_BYTES_MAX} bytes")
    value = _parse_value(data)
    version = value.get("bundleSchemaVersion")
    if type(version) is int and version != _VERSION:
        raise BundleError(ErrorCode.BUNDLE_UNSUPPORTED_VERSION, "bundleSchemaVersion", f"version {version}")
    _check_canonical(value, data)
    _check_integrity(value)
    try:
        return read_record("bundle", _BUNDLE, data)
    except (UnknownVersionError, MalformedRecordError) as fault:
        is_newer = isinstance(fault, UnknownVersionError)
        code = ErrorCode.BUNDLE_UNSUPPORTED_VERSION if is_newer else ErrorCode.BUNDLE_INVALID_FORMAT
        raise BundleError(code, "the bundle", fault.found) from None


def _parse_value(data: bytes) -> dict[str, Json]:
    # Every non-empty canonical object begins with these bytes. `json.loads` would also accept UTF-16; that never does.
    if not data.startswith(b'{"'):
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "the file", "not an object")
    excess = find_excess(data, BUNDLE_BOUNDS)
    if excess is not None:
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "the file", _EXCESS_WORDS[excess])
    try:
        return json.loads(data)
    except ValueError:
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "the file", "not JSON") from None


def _check_canonical(value: dict[str, Json], data: bytes) -> None:
    """Refuse a file that is not canonical: other whitespace, key order, number format or escapes."""
    try:
        is_canonical = canonical_bytes(value) == data
    except NotCanonicalError:
        is_canonical = False
    if not is_canonical:
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "the file", "not the bytes that an export writes")


def _check_integrity(value: dict[str, Json]) -> None:
    integrity = value.get("integrity")
    if not isinstance(integrity, dict) or not isinstance(integrity.get("entries"), list):
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "integrity", "no list of entries")
    kind = integrity.get("kind")
    if not isinstance(kind, str):
        raise BundleError(ErrorCode.BUNDLE_INVALID_FORMAT, "integrity.kind", "not text")
    if kind != INTEGRITY_KIND:
        raise BundleError(ErrorCode.BUNDLE_UNSUPPORTED_VERSION, "integrity.kind", "an unknown kind")
    entries, expected = cast("list[Json]", integrity["entries"]), _build_entries(value)
    if entries != expected:
        raise BundleError(ErrorCode.BUNDLE_INTEGRITY_FAILED, *_find_difference(entries, expected))


def _find_difference(entries: list[Json], expected: list[Json]) -> tuple[str, str]:
    """Return the path of the first part with a wrong entry, and what is wrong with it."""
    named = {str(entry.get("path")): entry for entry in entries if isinstance(entry, dict)}
    required = {str(entry["path"]): entry for entry in expected if isinstance(entry, dict)}
    for path, entry in required.items():
        if named.get(path) != entry:
            return path, "differs from its entry" if path in named else "has no entry"
    for path in named:
        if path not in required:
            return path, "an entry without a part"
    return "integrity", "entries out of order"


def _build_entries(value: Mapping[str, Json]) -> list[Json]:
    """Build one entry for each part of a bundle's value, ordered by path."""
    entries: list[Json] = []
    for path, part in sorted(_iter_parts(value), key=itemgetter(0)):
        data = canonical_bytes(part)
        entries.append({"path": path, "sha256": digest_of_bytes(data), "bytes": len(data)})
    return entries


def _iter_parts(value: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    yield "envelope", {key: part for key, part in value.items() if key not in {"integrity", "session"}}
    session = value.get("session")
    if not isinstance(session, dict):
        yield "session", session
        return
    for key, part in session.items():
        if key in _MAPS and isinstance(part, dict):
            yield from ((f"session/{key}/{name}", member) for name, member in part.items())
        else:
            yield f"session/{key}", part
