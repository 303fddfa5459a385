"""The mark phase of mark-and-sweep: read every session one by one, and list everything else (GC-4, GC-7).

A session is healthy if a server would find it healthy: each group is verified, and it is folded. A collection does not
fold again what a current summary says that its writer has folded. The pins and the events of a session say what it
refers to. An `overview` is for people who only want to know the state of a store: it compares each session's bytes with
its manifest, and reads a session in full only if they differ.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from functools import partial

from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.record.content import collect_references
from interlock.store.local import layout
from interlock.store.local.collect.attest import attested_segments
from interlock.store.local.collect.traces import trace_log
from interlock.store.local.failures import error_name, store_failure
from interlock.store.local.files import FileOps, FileStat, UnreadableError
from interlock.store.local.locks import Locks, hold_if_made
from interlock.store.local.session.reading import DamageError, content_paths, read_with_recheck, whole_groups
from interlock.store.local.session.settled import read_mark
from interlock.store.local.session.summary_file import folded_bytes
from interlock.store.ports.errors import Health, SessionBusyError
from interlock.store.ports.maintenance import (
    CONTENT,
    Foreign,
    GcSession,
    GcSnapshot,
    Item,
    Kind,
    StoreOverview,
    TrashedSession,
    UnsoundSession,
)
from interlock.store.retention import seconds_of

CONTENT_KINDS = {layout.SNAPSHOTS: Kind.SNAPSHOT, layout.PINNED: Kind.WORKFLOW, layout.ARTIFACTS: Kind.ARTIFACT}
"""What each directory of content-addressed files holds."""
_MOVED = {
    layout.SESSIONS: frozenset({Kind.SESSION, Kind.SEGMENT, Kind.LEFTOVER}),
    **{directory: frozenset({kind}) for directory, kind in CONTENT_KINDS.items()},
}
"""What a collection moves from each directory to the trash."""
_TEMP_DIRS = ("", layout.KEYS, layout.CONFIG, layout.WORKFLOWS, layout.DEFINITIONS, *CONTENT_KINDS)
"""The directories outside of sessions that can hold temporary files."""


def mark(files: FileOps, locks: Locks, report: Progress = report_nothing, *, folds_all: bool = False) -> GcSnapshot:
    """See `Collector.mark`."""
    marking = _Marking(files=files, locks=locks, read=_read_folded if folds_all else read_session)
    try:
        marking.run(report)
    except OSError as error:
        raise store_failure(error) from error
    return GcSnapshot(
        sessions=tuple(marking.sessions),
        unsound=tuple(marking.unsound),
        items=tuple(marking.items),
        trashed=tuple(marking.trashed),
        foreign=tuple(marking.foreign),
        apart=frozenset[Kind]().union(*(_MOVED[directory] for directory in marking.apart)),
    )


def overview(files: FileOps, locks: Locks, report: Progress = report_nothing) -> StoreOverview:
    """See `StoreInspector.overview`."""
    marking = _Marking(files=files, locks=locks, read=_read_unless_attested)
    try:
        marking.run(report)
    except OSError as error:
        raise store_failure(error) from error
    return StoreOverview(
        attested=tuple(one.session for one in marking.sessions),
        unsound=tuple(marking.unsound),
        debris=(*(item for item in marking.items if item.kind not in CONTENT), *(one.item for one in marking.trashed)),
        foreign=tuple(marking.foreign),
    )


@frozen
class ReadSession:
    """A session that was read: its verified state, its segments, the content it refers to, its newest recorded time."""

    session: SessionId
    manifest_bytes: int
    segments: frozenset[str]
    content: frozenset[str] = frozenset()
    claims: frozenset[SessionId] = frozenset()
    recorded_s: float = 0.0

    def last_activity_s(self, files: FileOps) -> float:
        """Return when the session was last written to: the later of the log's time and the file's, to be safe."""
        manifest = files.stat(layout.manifest(self.session))
        return max(self.recorded_s, manifest.modified_s if manifest is not None else 0.0)


def read_session(files: FileOps, session: SessionId) -> ReadSession:
    """Read a session from its first group to its last.

    Events that a current summary covers are not folded again: the writer of the summary folded them.

    Raises:
        DamageError: See `reading`.
        OSError: The disk failed.
    """
    folded = folded_bytes(files, session)
    if folded:
        found = _read(files, session, folds=False)
        if found.manifest_bytes <= folded:
            return found
    return _read_folded(files, session)


def _read_folded(files: FileOps, session: SessionId) -> ReadSession:
    """Read a session as `read_session` does, and fold all of its events."""
    return _read(files, session, folds=True)


def _read(files: FileOps, session: SessionId, *, folds: bool) -> ReadSession:
    manifest_bytes, recorded_s = 0, 0.0
    segments, content, claims = set[str](), set[str](), set[SessionId]()
    for verified, segment in whole_groups(files, session, folds=folds):
        path, *refers = content_paths(session, segment)
        segments.add(path)
        content.update(refers)
        claims |= collect_references(segment.events).sessions
        manifest_bytes = verified.manifest_bytes
        recorded_s = max(recorded_s, *map(seconds_of, {event.recorded_at for event in segment.events}))
    return ReadSession(
        session=session,
        manifest_bytes=manifest_bytes,
        segments=frozenset(segments),
        content=frozenset(content),
        claims=frozenset(claims),
        recorded_s=recorded_s,
    )


def _read_unless_attested(files: FileOps, session: SessionId) -> ReadSession:
    """Return what the manifest attests if its segments match; else read the session, which reports the damage."""
    attested = attested_segments(files, session)
    if attested is None:
        return read_session(files, session)
    stat = files.stat(layout.manifest(session))
    return ReadSession(session=session, manifest_bytes=stat.size if stat is not None else 0, segments=attested)


def tree(files: FileOps, path: str) -> Iterator[tuple[str, FileStat]]:
    """Yield a directory and everything below it, each directory before its entries. A link is an entry as a file is.

    What cannot be read is left out: a cache, for example. Whoever needs a file of a session reads it.
    """
    with suppress(UnreadableError):
        stat = files.own_stat(path)
        if stat is None:
            return
        yield path, stat
        if stat.is_dir:
            for name in files.names(path):
                yield from tree(files, f"{path}/{name}")


def apart_from_trash(files: FileOps) -> Iterator[str]:
    """Yield the directories from which no file can be moved to the trash: it is on another file system."""
    for directory in _MOVED:
        here = files.stat(directory)
        there = next(filter(None, map(files.stat, (layout.trashed(directory), layout.TRASH, ""))), None)
        if here is not None and there is not None and here.device != there.device:
            yield directory


def newest_s(below: list[tuple[str, FileStat]]) -> float:
    """Return the latest time at which anything of a tree was written."""
    return max((stat.modified_s for _, stat in below), default=0.0)


def link_to_log(files: FileOps, session: SessionId) -> str | None:
    """Return the first link on the way to a session's log: its directory, its events or its manifest; None without."""
    log = (layout.session_dir(session), layout.events_dir(session), layout.manifest(session))
    return next(filter(files.is_link, log), None)


def is_beginning(files: FileOps, session: SessionId) -> bool:
    """Return whether an interrupted start or import can have left this directory, which has no group.

    A start leaves no later segment than the first. An import leaves a mark of this boot that nothing was recorded.
    Neither leaves a link: the place of a disk that is not mounted is empty, and the session is on that disk.
    """
    if link_to_log(files, session) is not None:
        return False
    mark = read_mark(files, session)
    if mark is not None and mark.has_settled_nothing:
        return True
    firsts = {name.partition("-")[0] for name in files.names(layout.events_dir(session)) if layout.is_segment(name)}
    return all(int(first) == 0 for first in firsts)


def is_start(files: FileOps, session: SessionId) -> bool:
    """Return whether a directory without a group holds only what an interrupted start or import leaves."""
    directory = layout.session_dir(session)
    below = (path.removeprefix(f"{directory}/") for path, _ in tree(files, directory) if path != directory)
    return is_beginning(files, session) and all(map(layout.is_of_start, below))


@mutable
class _Marking:
    """Collects everything that the store holds."""

    files: FileOps
    locks: Locks
    read: Callable[[FileOps, SessionId], ReadSession] = read_session
    sessions: list[GcSession] = field(default_factory=list[GcSession])
    unsound: list[UnsoundSession] = field(default_factory=list[UnsoundSession])
    items: list[Item] = field(default_factory=list[Item])
    trashed: list[TrashedSession] = field(default_factory=list[TrashedSession])
    foreign: list[Foreign] = field(default_factory=list[Foreign])
    apart: list[str] = field(default_factory=list[str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Each content name as one object: sessions share most of their content."""

    def run(self, report: Progress) -> None:
        self.apart += apart_from_trash(self.files)
        # Content outside of sessions is listed first: what is written after that is young, so no sweep removes it.
        self._content()
        self._trash()
        found = sorted(self.files.names(layout.SESSIONS))
        for number, name in enumerate(found):
            report(number, len(found))
            if layout.is_session(name):
                self._session(SessionId(name))
            else:
                self._foreign(f"{layout.SESSIONS}/{name}")
        report(len(found), len(found))

    def _content(self) -> None:
        for directory in _TEMP_DIRS:
            kind = CONTENT_KINDS.get(directory)
            for name in self.files.names(directory):
                path = f"{directory}/{name}" if directory else name
                if layout.is_temp(name):
                    # Interlock makes no directory of such a name here.
                    stat = self.files.own_stat(path)
                    if stat is not None and not stat.is_dir:
                        self._add(Kind.TEMP, path)
                elif kind is not None and layout.is_content(name):
                    self._add(kind, path)

    def _trash(self) -> None:
        for directory in (layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS):
            for name in own_names(self.files, directory):
                session, _, _ = name.partition(".")
                of_session = SessionId(session) if layout.is_session(session) else None
                self._add(Kind.TRASH, f"{directory}/{name}", session=of_session)
                if directory == layout.TRASHED_SESSIONS and of_session is not None and name == of_session:
                    self._trashed(of_session)
        for directory in CONTENT_KINDS:
            for name in filter(layout.is_content, own_names(self.files, layout.trashed(directory))):
                path = f"{directory}/{name}"
                self._add(Kind.TRASH, layout.trashed(path), content=path)

    def _trashed(self, session: SessionId) -> None:
        """Take a session that can be moved back from the items to the sessions in the trash."""
        path = f"{layout.TRASHED_SESSIONS}/{session}"
        if self.files.is_link(path) or self.files.own_stat(layout.session_dir(session)) is not None:
            return
        manifest = self.files.own_stat(f"{path}/manifest.jsonl")
        if manifest is None or not manifest.size:
            return
        log, item = trace_log(self.files, path), self.items.pop()
        found = GcSession(
            session=session,
            last_activity_s=max(manifest.modified_s, log.recorded_s),
            bytes=item.bytes,
            content=log.content,
            claims=log.sessions,
        )
        self.trashed.append(TrashedSession(session=found, item=item))

    def _foreign(self, path: str) -> None:
        self.foreign.append(Foreign(name=path, content=trace_log(self.files, path).content))

    def _session(self, session: SessionId) -> None:
        try:
            found = self._read(session)
            # Asked once: a start that is under way is one now, and may be a whole session a moment later.
            is_begun = not found.segments and is_beginning(self.files, session)
            if not found.segments and not is_begun:
                # It may have begun after it was read.
                found = self._read(session)
            below = list(tree(self.files, layout.session_dir(session)))
            last_s = found.last_activity_s(self.files)
        except DamageError as damage:
            self._refuse(session, damage.health, damage.where, damage.found)
            return
        except UnreadableError as error:
            self._refuse(session, Health.UNREADABLE, error.filename, error_name(error))
            return
        except FileNotFoundError:
            # It was removed while it was read. If it exists again, its references are unknown, so it counts as damaged.
            if self.files.stat(layout.session_dir(session)) is not None:
                self._refuse(session, Health.CORRUPT_HEAD, "manifest", "removed while it was read")
            return
        if found.segments:
            self._sound(found, below, last_s)
        elif is_begun and is_start(self.files, session):
            self._add(Kind.LEFTOVER, layout.session_dir(session), session=session)
        elif is_begun:
            self._foreign(layout.session_dir(session))
        elif (linked := link_to_log(self.files, session)) is not None:
            self._refuse(session, Health.UNREADABLE, linked, "a link to an empty directory")
        else:
            self._refuse(session, Health.CORRUPT_HEAD, "manifest", "missing, though there are segments")

    def _read(self, session: SessionId) -> ReadSession:
        read = partial(self.read, self.files, session)
        try:
            return read_with_recheck(read, partial(hold_if_made, self.files, self.locks, session))
        except SessionBusyError:
            return read()

    def _sound(self, found: ReadSession, below: list[tuple[str, FileStat]], last_s: float) -> None:
        session, is_linked = found.session, link_to_log(self.files, found.session) is not None
        marked = GcSession(
            session=session,
            last_activity_s=last_s,
            bytes=sum(stat.size for _, stat in below if not stat.is_dir),
            content=frozenset(self.names.setdefault(name, name) for name in found.content),
            claims=found.claims,
            is_linked=is_linked,
        )
        self.sessions.append(marked)
        for path, stat in () if is_linked else below:
            is_temp = layout.is_temp(path) and not stat.is_dir
            if is_temp or (_is_segment(path) and path not in found.segments):
                kind = Kind.TEMP if is_temp else Kind.SEGMENT
                item = Item(kind=kind, name=path, bytes=stat.size, modified_s=stat.modified_s, session=session)
                self.items.append(item)

    def _add(self, kind: Kind, path: str, *, session: SessionId | None = None, content: str | None = None) -> None:
        below = list(tree(self.files, path))
        if below:
            size = sum(stat.size for _, stat in below if not stat.is_dir)
            item = Item(kind=kind, name=path, bytes=size, modified_s=newest_s(below), session=session, content=content)
            self.items.append(item)

    def _refuse(self, session: SessionId, health: Health, where: str, found: str) -> None:
        self.unsound.append(UnsoundSession(session=session, health=health, where=where, found=found))


def _is_segment(path: str) -> bool:
    directory, _, name = path.rpartition("/")
    return directory.endswith("/events") and layout.is_segment(name)


def own_names(files: FileOps, directory: str) -> list[str]:
    """Return the names in a directory of the trash; none if a link on the path leads outside the data directory."""
    parts = directory.split("/")
    ways = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return [] if any(files.is_link(way) for way in ways) else files.names(directory)
