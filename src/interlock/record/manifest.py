"""The manifest: the list of segments that count (APP-3).

One append writes one *group*: a `segment_closed` line, and a `snapshot_pinned` line for every snapshot that the
segment introduces. A group is a pure function of the segment's bytes. So a reader verifies it by building it again,
and recognises a torn tail as a prefix of the expected group.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, cast

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId, SnapshotRef
from interlock.kernel.shape import Reader, RefusedError
from interlock.record.base import (
    DigestField,
    EventIdField,
    IndexField,
    OfKind,
    SessionIdField,
    SnapshotRefField,
    classify_faults,
)
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.events import Event, NodeCreatedEvent


class _Line(OfKind):
    """What every line has."""

    v: Literal[1]
    manifest_index: IndexField
    session_id: SessionIdField


class SegmentClosed(_Line, tag="segment_closed"):
    """Attests the bytes of one segment: from this line on, its events count."""

    first_event_index: IndexField
    last_event_index: IndexField
    segment_rel_path: str
    sha256: DigestField
    bytes: IndexField


class SnapshotPinned(_Line, tag="snapshot_pinned"):
    """Names the event that first refers to a snapshot."""

    event_index: IndexField
    snapshot_ref: SnapshotRefField
    created_by_event_id: EventIdField


ManifestRecord = SegmentClosed | SnapshotPinned
_RECORD: Reader[ManifestRecord] = Reader(ManifestRecord)
_KINDS = frozenset({"segment_closed", "snapshot_pinned"})


@frozen
class Group:
    """The manifest lines of one segment, as bytes, and the snapshots that they pin."""

    data: bytes
    lines: int
    pins: tuple[SnapshotRef, ...]


def segment_rel_path(first_event_index: int, last_event_index: int) -> str:
    """Return the path of a segment below its session directory. It names the first and last event index (APP-3)."""
    return f"events/{first_event_index:08d}-{last_event_index:08d}.jsonl"


def build_group(
    session: SessionId,
    *,
    manifest_index: int,
    segment: bytes,
    events: Sequence[Event],
    pinned: frozenset[SnapshotRef],
) -> Group:
    """Build the only group that attests this segment at this position of the manifest.

    Args:
        session: The session that the manifest belongs to.
        manifest_index: Index of the group's first line.
        segment: The bytes of the segment file.
        events: The events in those bytes, at least one.
        pinned: Snapshots that earlier groups pinned. They are not pinned again.
    """
    first, last = events[0].event_index, events[-1].event_index
    records: list[ManifestRecord] = [
        SegmentClosed(
            v=1,
            manifest_index=manifest_index,
            session_id=session,
            first_event_index=first,
            last_event_index=last,
            segment_rel_path=segment_rel_path(first, last),
            sha256=digest_of_bytes(segment),
            bytes=len(segment),
        )
    ]
    pins: list[SnapshotRef] = []
    for event in events:
        if not isinstance(event, NodeCreatedEvent):
            continue
        ref = event.data.snapshot_ref
        if ref in pinned or ref in pins:
            continue
        pins.append(ref)
        records.append(
            SnapshotPinned(
                v=1,
                manifest_index=manifest_index + len(pins),
                session_id=session,
                event_index=event.event_index,
                snapshot_ref=ref,
                created_by_event_id=event.event_id,
            )
        )
    data = b"".join(record.to_bytes() + b"\n" for record in records)
    return Group(data=data, lines=len(records), pins=tuple(pins))


def attest_history(session: SessionId, history: Iterable[Sequence[Event]]) -> Iterator[tuple[bytes, Group]]:
    """Yield the segment bytes and the group of each plan of a history, from the first plan on."""
    lines, pinned = 0, frozenset[SnapshotRef]()
    for events in history:
        segment = b"".join(event.to_bytes() + b"\n" for event in events)
        group = build_group(session, manifest_index=lines, segment=segment, events=events, pinned=pinned)
        yield segment, group
        lines += group.lines
        pinned |= frozenset(group.pins)


def parse_segment_closed(line: bytes) -> SegmentClosed:
    """Parse the first line of a group.

    Raises:
        UnknownVersionError: A newer Interlock wrote it.
        MalformedRecordError: It is not a `segment_closed` record.
    """
    record = parse_manifest_record(line)
    if not isinstance(record, SegmentClosed):
        raise MalformedRecordError("manifest", "not the first record of a group")
    return record


def parse_manifest_record(line: bytes) -> ManifestRecord:
    """Parse a line of a manifest.

    Raises:
        UnknownVersionError: A newer Interlock wrote it.
        MalformedRecordError: It is not a manifest record.
    """
    try:
        return _RECORD.read(line)
    except RefusedError as error:
        raise _classify_refusal(line, error) from None


def _classify_refusal(line: bytes, refusal: RefusedError) -> UnknownVersionError | MalformedRecordError:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return MalformedRecordError("manifest", "not JSON")
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    version, kind = fields.get("v"), fields.get("kind")
    if type(version) is int and version != 1:
        return UnknownVersionError("manifest", f"version {version}")
    if not isinstance(kind, str) or (kind not in _KINDS and version is None):
        return MalformedRecordError("manifest", "no kind")
    if kind not in _KINDS:
        return UnknownVersionError("manifest", "unknown kind")
    return classify_faults("manifest", _RECORD.faults(line), refusal)
