"""Reading a session: verify each group once, and later only what was added (FOLLOW-1).

A group is whole if the manifest holds, at its place, exactly the bytes that its segment determines. So reading means:
find the segment that the next line names, compute its group, compare. The bytes after the last whole group are a torn
tail, which does not count, if they are a proper prefix of the group of a segment at the next index (NULs may replace
the part of it that the disk lost). Everything else is damage.

A whole group counts for readers once its writer has settled it: the settled mark reaches its end. Beyond the mark it
counts if the mark is of another boot or there is none, for then its bytes came from the disk, or if a summary was
cached after it, because only a writer that has settled a group caches. If the mark is not one of this log, the last
group is undecided without such a summary. A manifest that ends before its mark has lost acknowledged history: damage.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TypeVar

from rpds import HashTrieSet

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest, SessionId, SnapshotRef
from interlock.record import events as ev
from interlock.record.content import collect_references
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.manifest import (
    Group,
    SegmentClosed,
    build_group,
    parse_manifest_record,
    parse_segment_closed,
    segment_rel_path,
)
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.local.session.settled import SettledMark, is_lost, is_of_log, missing_bytes, read_mark
from interlock.store.local.session.summary_file import folded_bytes
from interlock.store.ports.errors import Health
from interlock.store.ports.reader import Appended, Omitted
from interlock.store.regular_file import NotRegularFileError
from interlock.views.evolution import evolve
from interlock.views.session import BrokenHistoryError, Session, new_session

_OTHER_GROUP = "does not match its segment"
_NULS_MIN = 2
"""A lost tail may read as NULs; a single NUL can be a flipped newline, so it is damage."""


Found = TypeVar("Found")


class DamageError(InterlockError):
    """The log holds bytes that no append of Interlock leaves. `verified` is the part before them."""

    def __init__(self, *, where: str, found: str, verified: "Verified", health: Health | None = None) -> None:
        super().__init__(f"{where}: {found}")
        self.where = where
        self.found = found
        self.verified = verified
        tail_or_head = Health.CORRUPT_TAIL if verified.manifest_lines else Health.CORRUPT_HEAD
        self.health = health or tail_or_head


@frozen
class Verified:
    """The verified part of a session's manifest, and its content.

    `manifest_bytes` is the end of the last whole group; `last_group` are that group's bytes, by which a later call
    recognises the same file. `log_bytes` is the size of the manifest and of the segments up to that end. `hashed` took
    the bytes of the manifest up to that end, and takes no more. `is_marked` says that the session's mark, written since
    the machine started, covers the manifest up to this end.
    """

    fold: Session
    manifest_bytes: int = 0
    manifest_lines: int = 0
    log_bytes: int = 0
    last_group: bytes = b""
    pins: "HashTrieSet[SnapshotRef]"
    artifacts: "HashTrieSet[Digest]"
    hashed: "hashlib._Hash" = field(compare=False, repr=False)  # pyright: ignore[reportPrivateUsage]
    file: tuple[int, int] | None = None
    is_marked: bool = False

    @property
    def session(self) -> SessionId:
        """The id of the session."""
        return self.fold.session

    @property
    def manifest_digest(self) -> Digest:
        """The digest of the manifest up to the end of the last whole group."""
        return Digest(f"sha256:{self.hashed.hexdigest()}")


@frozen
class StoredSegment:
    """A segment as read from the disk: its bytes, its events, and the group that it determines."""

    data: bytes
    events: tuple[ev.Event, ...]
    group: Group


@frozen
class Followed:
    """What a session's manifest holds: the part that counts for every reader, and the unsettled whole groups after it.

    Each such group comes with the verified state that includes it, and its segment. There is at most one, except after
    an interrupted restore of a whole session. With `is_unmarked`, the mark is not one of this log, so an unsettled
    group may have been acknowledged. `appends` has the settled part by appends if it was read from its start.
    """

    settled: Verified
    unsettled: tuple[tuple[Verified, StoredSegment], ...] = ()
    is_unmarked: bool = False
    appends: tuple[Appended, ...] | None = None

    def omitted(self) -> Omitted:
        """Return the size of the unsettled groups."""
        segments = [segment for _, segment in self.unsettled]
        return Omitted(
            groups=len(segments),
            events=sum(len(segment.events) for segment in segments),
            bytes=sum(len(segment.data) + len(segment.group.data) for segment in segments),
            is_known=True,
        )


def unread(session: SessionId) -> Verified:
    """Return the state before anything of a session was read."""
    return Verified(fold=new_session(session), pins=HashTrieSet(), artifacts=HashTrieSet(), hashed=hashlib.sha256())


def follow(files: FileOps, known: Verified) -> Followed:
    """Return what the manifest holds, reading only what was added since `known`.

    A file that was replaced or shortened, or no longer holds the last verified group, is read from the start. The mark
    is read after the manifest: a writer writes a mark before its first group in a boot, so a group without one is from
    an earlier boot. If the manifest has nothing new, the mark is not read.

    Raises:
        DamageError: See the module.
        OSError: The disk failed.
    """
    data, identity = _manifest(files, known, known.manifest_bytes - len(known.last_group))
    if known.file not in (None, identity) or not data.startswith(known.last_group):
        known = unread(known.session)
        data, identity = _manifest(files, known, 0)
    if identity is None:
        return _with_mark(files, unread(known.session), b"")
    known = known if known.file == identity else replace(known, file=identity)
    if known.manifest_lines and len(data) == len(known.last_group):
        return Followed(settled=known)
    return _with_mark(files, known, data)


def _with_mark(files: FileOps, known: Verified, data: bytes) -> Followed:
    """Verify the manifest's bytes from the last known group on, and split them at the settled mark.

    A mark beyond the bytes may be newer than the read, so the rest is read before it counts as damage.
    """
    groups, last = list[tuple[Verified, StoredSegment]](), known
    while True:
        new = list(_whole_groups(files, last, data, len(last.last_group)))
        groups += new
        last = groups[-1][0] if groups else known
        mark = read_mark(files, known.session)
        missing = missing_bytes(mark, last.manifest_bytes)
        if not missing:
            _check_not_lost(files, last, mark)
            return _split_at_mark(files, known, groups, mark)
        again, _ = _manifest(files, last, last.manifest_bytes - len(last.last_group))
        if not new and again == data:
            raise _cut_short(last, missing)
        data = again


def _split_at_mark(
    files: FileOps, known: Verified, groups: list[tuple[Verified, StoredSegment]], mark: SettledMark | None
) -> Followed:
    """Split the groups where they are known to be settled. Without a readable mark, only the last one may not be."""
    appends = None
    if not known.manifest_lines:
        appends = tuple(Appended(events=segment.events, after=verified.fold) for verified, segment in groups)
    if mark is None or not mark.is_of_this_boot:
        return Followed(settled=groups[-1][0] if groups else known, appends=appends)
    end, ends = mark.manifest_bytes or 0, [verified.manifest_bytes for verified, _ in groups]
    if ends and ends[-1] > end:
        end = max(end, folded_bytes(files, known.session))
    is_unmarked = not is_of_log(mark, known.manifest_bytes, ends, end)
    count = max(sum(one <= end for one in ends), len(ends) - 1 if is_unmarked else 0)
    settled = groups[count - 1][0] if count else known
    return Followed(
        settled=replace(settled, is_marked=not is_unmarked and mark.manifest_bytes == settled.manifest_bytes),
        unsettled=tuple(groups[count:]),
        is_unmarked=is_unmarked,
        appends=appends[:count] if appends is not None else None,
    )


def _cut_short(verified: Verified, missing: int) -> DamageError:
    found = f"{missing} acknowledged bytes are missing at its end"
    return DamageError(where="manifest", found=found, verified=verified)


def _check_not_lost(files: FileOps, verified: Verified, mark: SettledMark | None) -> None:
    if not verified.manifest_lines and is_lost(files, verified.session, mark):
        raise DamageError(where="manifest", found="it is missing or empty, but was written before", verified=verified)


def read_with_recheck(
    read: Callable[[], Found],
    hold: Callable[[], AbstractContextManager[None]],
    *,
    first: Callable[[], Found] | None = None,
) -> Found:
    """Read a session; if it seems damaged, read it again, the last time under the lock (FOLLOW-3).

    A writer at work can look like damage, so it is read once more without the lock, and then under it. `first` replaces
    the first of these reads.

    Raises:
        DamageError: It is damaged.
        OSError: The disk failed.
    """
    for reading in (first or read, read):
        try:
            return reading()
        except DamageError:
            continue
    with hold():
        return read()


def whole_groups(files: FileOps, session: SessionId, *, folds: bool = True) -> Iterator[tuple[Verified, StoredSegment]]:
    """Yield each whole group of a session, oldest first: the verified state that includes it, and its segment.

    `folds` has the same meaning as in `add_group`.

    Raises:
        DamageError: See the module.
        OSError: The disk failed.
    """
    last = unread(session)
    data, _ = _manifest(files, last, 0)
    for verified, segment in _whole_groups(files, last, data, 0, folds=folds):
        last = verified
        yield verified, segment
    mark = read_mark(files, session)
    missing = missing_bytes(mark, last.manifest_bytes)
    if missing:
        raise _cut_short(last, missing)
    _check_not_lost(files, last, mark)


def history_of(files: FileOps, verified: Verified) -> tuple[tuple[ev.Event, ...], ...]:
    """Return the events of a verified session, one tuple for each plan that was appended, oldest first.

    Raises:
        DamageError: See the module. Its `verified` is not folded, because the session is already.
        OSError: The disk failed.
    """
    if not verified.manifest_lines:
        return ()
    manifest = files.read(layout.manifest(verified.session))[: verified.manifest_bytes]
    known, history, at = unread(verified.session), list[tuple[ev.Event, ...]](), 0
    while at < len(manifest):
        segment = _named_segment(files, known, manifest, at)
        if segment is None:
            raise DamageError(where=_place(known), found=_OTHER_GROUP, verified=known)
        known = add_group(known, segment, folds=False)
        history.append(segment.events)
        at += len(segment.group.data)
    return tuple(history)


def history_after(files: FileOps, verified: Verified, events: int) -> tuple[tuple[ev.Event, ...], ...]:
    """Return what was appended to a verified session after so many events, of which the last ended a plan.

    Only the segments of these events are read: their groups were verified when the session was followed.

    Raises:
        DamageError: See the module.
        OSError: The disk failed.
    """
    if events >= verified.fold.next_index:
        return ()
    manifest = files.read(layout.manifest(verified.session))[: verified.manifest_bytes]
    at = manifest.rfind(b'"firstEventIndex":%d,' % events)
    if at < 0 or not manifest.endswith(verified.last_group):
        raise DamageError(where="manifest", found=f"no plan begins at event {events}", verified=verified)
    try:
        records = [parse_manifest_record(line) for line in manifest[manifest.rfind(b"\n", 0, at) + 1 :].splitlines()]
    except (MalformedRecordError, UnknownVersionError) as error:
        raise DamageError(where="manifest", found=error.found, verified=verified) from error
    segments = (_attested_bytes(files, verified, one) for one in records if isinstance(one, SegmentClosed))
    return tuple(tuple(map(ev.parse_event, segment.splitlines())) for segment in segments)


def add_group(known: Verified, segment: StoredSegment, *, folds: bool = True) -> Verified:
    """Return the verified state after one more whole group.

    Without `folds`, only the number of events is updated: for a log that its writer has folded already.

    Raises:
        BrokenHistoryError: Its events cannot follow.
    """
    if folds:
        fold = evolve(known.fold, *segment.events)
    else:
        fold = replace(known.fold, next_index=known.fold.next_index + len(segment.events))
    pins = known.pins
    for ref in segment.group.pins:
        pins = pins.insert(ref)
    artifacts = known.artifacts
    for digest in collect_references(segment.events).artifacts:
        artifacts = artifacts.insert(digest)
    hashed = known.hashed.copy()
    hashed.update(segment.group.data)
    return Verified(
        fold=fold,
        manifest_bytes=known.manifest_bytes + len(segment.group.data),
        manifest_lines=known.manifest_lines + segment.group.lines,
        log_bytes=known.log_bytes + len(segment.group.data) + len(segment.data),
        last_group=segment.group.data,
        pins=pins,
        artifacts=artifacts,
        hashed=hashed,
        file=known.file,
    )


def content_paths(session: SessionId, segment: StoredSegment) -> tuple[str, ...]:
    """Return the files that a segment refers to, itself first: all must be durable before the group counts."""
    named = collect_references(segment.events)
    return (
        layout.segment(session, segment.events[0].event_index, segment.events[-1].event_index),
        *map(layout.snapshot, segment.group.pins),
        *map(layout.pinned_workflow, named.workflows),
        *map(layout.artifact, named.artifacts),
    )


def find_omitted(files: FileOps, verified: Verified) -> Omitted:
    """Return what the manifest attests after its verified part, as far as its lines can be parsed.

    Raises:
        OSError: The disk failed.
    """
    try:
        tail, _ = _manifest(files, verified, verified.manifest_bytes)
    except DamageError:
        tail = b""
    groups = events = segment_bytes = 0
    is_known, due = tail.endswith(b"\n"), verified.fold.next_index
    for line in tail.splitlines():
        try:
            record = parse_manifest_record(line)
        except (MalformedRecordError, UnknownVersionError):
            is_known = False
            continue
        if not isinstance(record, SegmentClosed):
            continue
        first, last = record.first_event_index, record.last_event_index
        if not due <= first <= last or record.segment_rel_path != segment_rel_path(first, last):
            is_known = False
            continue
        is_known = is_known and first == due
        groups, events, due = groups + 1, events + last - first + 1, last + 1
        segment_bytes += record.bytes
    return Omitted(groups=groups, events=events, bytes=len(tail) + segment_bytes, is_known=is_known)


def _whole_groups(
    files: FileOps, known: Verified, data: bytes, at: int, *, folds: bool = True
) -> Iterator[tuple[Verified, StoredSegment]]:
    """Yield the whole groups in the manifest's bytes from `at` on; stop before a torn tail."""
    while at < len(data):
        segment = _named_segment(files, known, data, at)
        if segment is None or not data.startswith(segment.group.data, at):
            candidates = _candidates(files, known) if segment is None else iter((segment,))
            if any(_is_torn(data, at, candidate.group.data) for candidate in candidates):
                return
            health = Health.UNKNOWN_VERSION if segment is not None and _is_newer(data, at, segment.group) else None
            raise DamageError(where=_place(known), found=_OTHER_GROUP, verified=known, health=health)
        try:
            known = add_group(known, segment, folds=folds)
        except BrokenHistoryError as error:
            raise DamageError(where=_place(known), found=str(error), verified=known) from error
        yield known, segment
        at += len(segment.group.data)


def _is_newer(data: bytes, at: int, group: Group) -> bool:
    """Return whether a newer Interlock wrote one of the records at the place of the next group."""
    for line in data[at:].split(b"\n", group.lines)[: group.lines]:
        try:
            parse_manifest_record(line)
        except UnknownVersionError:
            return True
        except MalformedRecordError:
            continue
    return False


def _named_segment(files: FileOps, known: Verified, data: bytes, at: int) -> StoredSegment | None:
    """Return the segment that the manifest line at `at` names, or None if there is no line of Interlock.

    Raises:
        DamageError: The line is whole, but its segment is missing or has other bytes; or a newer Interlock wrote it.
    """
    end = data.find(b"\n", at)
    if end < 0:
        return None
    try:
        record = parse_segment_closed(data[at:end])
    except UnknownVersionError as error:
        raise DamageError(
            where=_place(known), found=error.found, verified=known, health=Health.UNKNOWN_VERSION
        ) from error
    except MalformedRecordError:
        return None
    first, last = record.first_event_index, record.last_event_index
    if first != known.fold.next_index or record.segment_rel_path != segment_rel_path(first, last):
        raise DamageError(where=_place(known), found="events out of sequence", verified=known)
    where, segment = record.segment_rel_path, _attested_bytes(files, known, record)
    try:
        return _stored(known, segment)
    except UnknownVersionError as error:
        raise DamageError(where=where, found=error.found, verified=known, health=Health.UNKNOWN_VERSION) from error
    except MalformedRecordError as error:
        raise DamageError(where=where, found=error.found, verified=known) from error


def _attested_bytes(files: FileOps, known: Verified, record: SegmentClosed) -> bytes:
    """Return the bytes of a segment, which are those that the manifest attests.

    Raises:
        DamageError: It is missing, or has other bytes.
    """
    where = record.segment_rel_path
    try:
        segment = files.read(layout.segment(known.session, record.first_event_index, record.last_event_index))
    except FileNotFoundError:
        raise DamageError(where=where, found="missing", verified=known) from None
    except NotRegularFileError:
        raise DamageError(where=where, found="not a regular file", verified=known) from None
    if len(segment) != record.bytes or digest_of_bytes(segment) != record.sha256:
        raise DamageError(where=where, found="other bytes than the manifest attests", verified=known)
    return segment


def _stored(known: Verified, segment: bytes) -> StoredSegment:
    """Parse a segment that may be the next one, and compute the group that it determines."""
    if not segment.endswith(b"\n"):
        raise MalformedRecordError("segment", "does not end with a newline")
    events = tuple(ev.parse_event(line) for line in segment[:-1].split(b"\n"))
    for at, event in enumerate(events):
        if event.event_index != known.fold.next_index + at or event.session_id != known.session:
            raise MalformedRecordError("segment", "an event of another place")
    group = build_group(
        known.session, manifest_index=known.manifest_lines, segment=segment, events=events, pinned=known.pins
    )
    return StoredSegment(data=segment, events=events, group=group)


def _candidates(files: FileOps, known: Verified) -> Iterator[StoredSegment]:
    """Yield the readable segments at the next index: a torn group is a prefix of the group of one of them."""
    prefix = f"{known.fold.next_index:08d}-"
    for name in files.names(layout.events_dir(known.session)):
        if not name.startswith(prefix) or not name.endswith(".jsonl"):
            continue
        try:
            yield _stored(known, files.read(f"{layout.events_dir(known.session)}/{name}"))
        except (MalformedRecordError, UnknownVersionError, FileNotFoundError, NotRegularFileError):
            continue


def _is_torn(data: bytes, at: int, group: bytes) -> bool:
    """Return whether the bytes from `at` on are a proper prefix of the group, perhaps followed by NULs."""
    tail = data[at:]
    written = tail.rstrip(b"\0")
    nuls = len(tail) - len(written)
    fits = len(tail) <= len(group) if nuls else len(tail) < len(group)
    return fits and group.startswith(written) and (nuls == 0 or nuls >= _NULS_MIN)


def _manifest(files: FileOps, known: Verified, begin: int) -> tuple[bytes, tuple[int, int] | None]:
    """Return the manifest's bytes from an offset on, and which file it is; nothing if there is no manifest."""
    try:
        data, stat = files.read_with_stat(layout.manifest(known.session), begin)
    except FileNotFoundError:
        return b"", None
    except NotRegularFileError:
        raise DamageError(where=_place(known), found="not a regular file", verified=known) from None
    return data, (stat.device, stat.inode)


def _place(known: Verified) -> str:
    return f"manifest record {known.manifest_lines}"
