"""Check a session's bytes against its manifest, without reading a record."""

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.manifest import (
    SegmentClosed,
    SnapshotPinned,
    parse_manifest_record,
    parse_segment_closed,
    segment_rel_path,
)
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.local.session.settled import missing_bytes, read_mark
from interlock.store.regular_file import NotRegularFileError


def attested_segments(files: FileOps, session: SessionId) -> frozenset[str] | None:
    """Return the segments of a manifest if all of its lines are complete and in order, and all segments match it.

    None does not say what is wrong, or that anything is: only reading the session shows that.

    Raises:
        OSError: The disk failed.
    """
    try:
        data = files.read(layout.manifest(session))
        mark = read_mark(files, session)
        is_whole = data.endswith(b"\n") and not missing_bytes(mark, len(data))
        return frozenset(_segments(files, session, data)) if is_whole else None
    except (
        FileNotFoundError,
        NotRegularFileError,
        MalformedRecordError,
        UnknownVersionError,
    ):
        return None


def _segments(files: FileOps, session: SessionId, manifest: bytes) -> list[str]:
    """Return the segments that the lines attest.

    Raises:
        FileNotFoundError, MalformedRecordError, UnknownVersionError: Something does not match.
    """
    paths, next_event = list[str](), 0
    for index, line in enumerate(manifest[:-1].split(b"\n")):
        record = _record(line, is_first=index == 0)
        if record.manifest_index != index or record.session_id != session:
            raise MalformedRecordError("manifest", "out of order")
        if isinstance(record, SnapshotPinned):
            continue
        first, last = record.first_event_index, record.last_event_index
        path = layout.segment(session, first, last)
        segment = files.read(path)
        is_next = first == next_event and record.segment_rel_path == segment_rel_path(first, last)
        if not is_next or len(segment) != record.bytes or digest_of_bytes(segment) != record.sha256:
            raise MalformedRecordError("segment", "not what the manifest attests")
        next_event = last + 1
        paths.append(path)
    return paths


def _record(line: bytes, *, is_first: bool) -> SegmentClosed | SnapshotPinned:
    if is_first or b'"kind":"segment_closed"' in line:
        return parse_segment_closed(line)
    return parse_manifest_record(line)
