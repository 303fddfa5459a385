"""The sweep of mark-and-sweep: out of sight first, for good with a later sweep (GC-3).

Others write meanwhile, so nothing rests on the marks alone:

1. Room is made first: what earlier sweeps put into the trash is removed, and old temporary files. Nothing has to be
   created for that, so a full disk gets room.
2. A session goes under its own lock, read once more, by one renaming of its directory into the trash.
3. What is left in a session that stays goes under that session's lock, after its torn tail is cut.
4. Both are durable before any content goes. Content that was in the trash before is removed, or moved back if a
   session refers to it after all: a sweep that was cut short may have left it there.
5. A content file goes to the trash by renaming. If it turns out to have been renewed, a writer is about to refer to it,
   and it is moved back. Between the two, readers find it in the trash.

A cut at any place leaves what the next sweep can go on from.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.collect.mark import is_beginning, newest_s, read_session, tree
from interlock.store.local.content import write_durably
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks
from interlock.store.local.session.reading import DamageError
from interlock.store.local.session.session_log import cut_torn_tail
from interlock.store.local.upkeep import make_trash
from interlock.store.ports.errors import FailureKind, SessionBusyError
from interlock.store.ports.maintenance import CONTENT, Due, GcSession, GcSnapshot, Item, Kind, Retention, Skipped, Swept
from interlock.store.retention import due, roots_of


def make_room(files: FileOps, locks: Locks, marked: GcSnapshot, retention: Retention) -> None:
    """See `Collector.make_room`."""
    _run(_Sweeping(files=files, locks=locks, retention=retention).make_room, marked)


def sweep(files: FileOps, locks: Locks, marked: GcSnapshot, retention: Retention) -> Swept:
    """See `Collector.sweep`."""
    sweeping = _Sweeping(files=files, locks=locks, retention=retention)
    _run(sweeping.run, marked)
    taken = Due(sessions=tuple(sweeping.sessions), items=tuple(sweeping.items))
    return Swept(taken=taken, skipped=tuple(sweeping.skipped))


def _run(work: Callable[[GcSnapshot], None], marked: GcSnapshot) -> None:
    assert not marked.unsound, "nothing goes while any session is unsound (GC-7)"
    try:
        work(marked)
    except OSError as error:
        raise store_failure(error) from error


@dataclass(slots=True, kw_only=True)
class _Sweeping:
    """What was taken so far, and what had to be left."""

    files: FileOps
    locks: Locks
    retention: Retention
    sessions: list[GcSession] = field(default_factory=list[GcSession])
    items: list[Item] = field(default_factory=list[Item])
    skipped: list[Skipped] = field(default_factory=list[Skipped])

    def run(self, marked: GcSnapshot) -> None:
        self.make_room(marked)
        first = due(marked, self.retention)
        if first != Due() or any(item.kind is Kind.TRASH for item in marked.items):
            make_trash(self.files)
            self._sync("", layout.TRASH, layout.trashed(layout.WORKFLOWS))
        for session in first.sessions:
            self._held(session.session, partial(self._session, session))
        for item in first.items:
            if item.kind is Kind.LEFTOVER and item.session is not None:
                self._held(item.session, partial(self._begun, item.session, item))
            elif item.kind is Kind.LEFTOVER:
                self._foreign(item)
        self._debris(first.items)
        # What stands on a session being gone must not outlive a power loss that the going does not.
        self._sync(layout.SESSIONS, layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS)
        spared = {one.session for one in self.skipped}
        rest = due(marked, self.retention, spared).items
        roots = roots_of(marked, {one.session for one in self.sessions})
        self._empty_trash(((item, item.content) for item in marked.items if item.content is not None), roots)
        self._content(item for item in rest if item.kind in CONTENT)

    def make_room(self, marked: GcSnapshot) -> None:
        """Remove what earlier sweeps took out of sight, content aside, and old temporary files of no session."""
        # A sweep that was cut may have left its renaming unsynced, and what is removed must not come back half.
        self._sync(layout.SESSIONS, layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS)
        for item in marked.items:
            if item.kind is Kind.TRASH and item.content is None:
                self._remove(item.name)
                self.items.append(item)
        self._unlink_old(item for item in marked.items if item.kind is Kind.TEMP and item.session is None)
        self._sync(layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS)

    # -- sessions -----------------------------------------------------------------------------------------------

    def _session(self, session: GcSession) -> None:
        found = read_session(self.files, session.session)
        is_same = found.segments and found.last_activity_s(self.files) == session.last_activity_s
        if not is_same:
            self.skipped.append(Skipped(session=session.session, why="changed"))
            return
        self._to_trash(layout.session_dir(session.session))
        self.sessions.append(session)

    def _begun(self, session: SessionId, item: Item) -> None:
        """Take a directory that a start left, unless a session has come to stand in it."""
        if not read_session(self.files, session).segments and is_beginning(self.files, session):
            self._leftover(item)

    def _foreign(self, item: Item) -> None:
        """Take what has a name that is no session's, unless somebody still works in it: it has no lock to go by."""
        below = list(tree(self.files, item.name))
        if below and self.retention.is_old(newest_s(below)):
            self._leftover(item)

    def _leftover(self, item: Item) -> None:
        self._to_trash(item.name)
        self.items.append(item)

    def _debris(self, items: Iterable[Item]) -> None:
        """Take orphan segments and temporary files of the sessions that stay."""
        of_sessions: dict[SessionId, list[Item]] = {}
        for item in items:
            if item.session is not None and item.kind in {Kind.SEGMENT, Kind.TEMP}:
                of_sessions.setdefault(item.session, []).append(item)
        for session, found in of_sessions.items():
            self._held(session, partial(self._debris_of, session, found))

    def _debris_of(self, session: SessionId, items: list[Item]) -> None:
        now = read_session(self.files, session)
        orphans = [item for item in items if item.kind is Kind.SEGMENT and item.name not in now.segments]
        orphans = [item for item in orphans if self._is_old(item.name)]
        if orphans:
            # The tail may be the beginning of an orphan's group, and without the orphan it would be damage.
            cut_torn_tail(self.files, session, now.manifest_bytes)
        for item in orphans:
            name = item.name.rpartition("/")[2]
            self.files.rename(item.name, f"{layout.TRASHED_SEGMENTS}/{session}.{name}")
            self.items.append(item)
        self._unlink_old(item for item in items if item.kind is Kind.TEMP)

    def _held(self, session: SessionId, work: Callable[[], None]) -> None:
        """Work under a session's lock. What another process holds, or is not what it was, is left alone."""
        try:
            with self.locks.hold(session):
                work()
        except SessionBusyError:
            self.skipped.append(Skipped(session=session, why="busy"))
        except (DamageError, FileNotFoundError, NotADirectoryError):
            self.skipped.append(Skipped(session=session, why="changed"))
        except OSError as error:
            # A lock file that is missing, or a larger directory, takes room that only the rest of the sweep makes.
            if store_failure(error).kind is not FailureKind.FULL:
                raise
            self.skipped.append(Skipped(session=session, why="full"))

    # -- the rest -----------------------------------------------------------------------------------------------

    def _content(self, items: Iterable[Item]) -> None:
        for item in items:
            if not self._is_old(item.name):
                continue
            self.files.rename(item.name, layout.trashed(item.name))
            if self._is_old(layout.trashed(item.name)):
                self.items.append(item)
            else:
                self._move_back(item.name)
        self._sync(*layout.CONTENT_DIRS, *map(layout.trashed, layout.CONTENT_DIRS))

    def _empty_trash(self, items: Iterable[tuple[Item, str]], roots: frozenset[str]) -> None:
        """Remove content that was in the trash before, or move it back; each comes with the name readers know."""
        for item, content in items:
            if content in roots or not self._is_old(item.name):
                self._restore(content)
                continue
            self.files.unlink(item.name)
            self.items.append(item)
        self._sync(*layout.CONTENT_DIRS)

    def _restore(self, content: str) -> None:
        """Put content that is referred to back.

        If it is there again, whoever wrote it may not have synced it: it is written anew before the one in the trash
        goes (APP-5).
        """
        try:
            data = self.files.read(content)
        except FileNotFoundError:
            data = b""
        if layout.digest_in(content) != digest_of_bytes(data):
            self._move_back(content)
            return
        write_durably(self.files, content, data)
        self.files.sync_dir(layout.parent(content))
        self.files.unlink(layout.trashed(content))

    def _move_back(self, content: str) -> None:
        self.files.rename(layout.trashed(content), content)
        self.files.sync_dir(layout.parent(content))

    def _unlink_old(self, items: Iterable[Item]) -> None:
        for item in items:
            if self._is_old(item.name):
                self.files.unlink(item.name)
                self.items.append(item)

    def _remove(self, path: str) -> None:
        """Remove a file or a directory with all that it holds; of what a link leads to, nothing."""
        for inner, stat in reversed(list(tree(self.files, path))):
            if stat.is_dir and not self.files.is_link(inner):
                self.files.remove_dir(inner)
            else:
                self.files.unlink(inner)

    def _to_trash(self, path: str) -> None:
        target = f"{layout.TRASHED_SESSIONS}/{path.rpartition('/')[2]}"
        if self.files.stat(target) is not None:
            target = f"{target}.{secrets.token_hex(8)}"
        self.files.rename(path, target)

    def _is_old(self, path: str) -> bool:
        """Say whether a file is there and still old: a writer may have renewed it since it was marked."""
        stat = self.files.stat(path)
        return stat is not None and self.retention.is_old(stat.modified_s)

    def _sync(self, *directories: str) -> None:
        for path in directories:
            if self.files.stat(path) is not None:
                self.files.sync_dir(path, full=True)
