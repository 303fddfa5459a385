"""The sweep phase of mark-and-sweep: move data to the trash, and delete it with a later sweep (GC-3).

Other processes write meanwhile, so each thing is checked again before it is removed:

1. First, space is freed: the trash of earlier sweeps and old temporary files are deleted. This creates no file, so it
   works on a full disk. A session in the trash that has not expired is moved back: the clock was wrong before, or the
   days of retention are more now. One that is deleted is renamed before, so what is left of it never comes back.
2. A session is read again under its own lock, and moved to the trash by one rename of its directory.
3. Debris in a session that stays is removed under that session's lock, after its torn tail is cut.
4. Both are durable before any content is removed. Content that was in the trash before is deleted, or moved back if a
   session refers to it: an interrupted sweep may have left it there.
5. A content file is moved to the trash by a rename. If it is young, a writer wrote it again and is about to refer to
   it, so it is moved back. Meanwhile, readers find it in the trash.

After an interruption at any point, the next sweep can continue.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.collect.mark import is_start, link_to_log, newest_s, read_session, tree
from interlock.store.local.content import write_durably
from interlock.store.local.failures import store_failure
from interlock.store.local.files import FileOps
from interlock.store.local.locks import Locks
from interlock.store.local.session.reading import DamageError
from interlock.store.local.session.session_log import cut_torn_tail
from interlock.store.local.upkeep import make_trash
from interlock.store.ports.errors import FailureKind, SessionBusyError, StoreFailureError
from interlock.store.ports.maintenance import CONTENT, Due, GcSession, GcSnapshot, Item, Kind, Retention, Skipped, Swept
from interlock.store.regular_file import unused_name
from interlock.store.retention import due, find_returning, roots_of

_ALL_SOUND = "no sweep while any session is unsound (GC-7)"


def free_space(files: FileOps, locks: Locks, marked: GcSnapshot, retention: Retention) -> None:
    """See `Collector.free_space`."""
    assert not marked.unsound, _ALL_SOUND
    try:
        _Sweeping(files=files, locks=locks, retention=retention).free_space(marked)
    except OSError as error:
        raise store_failure(error) from error


def sweep(files: FileOps, locks: Locks, marked: GcSnapshot, retention: Retention) -> Swept:
    """See `Collector.sweep`."""
    assert not marked.unsound, _ALL_SOUND
    sweeping, failure = _Sweeping(files=files, locks=locks, retention=retention), None
    try:
        sweeping.run(marked)
    except OSError as error:
        failure = store_failure(error)
    except StoreFailureError as error:
        failure = error
    taken = Due(sessions=tuple(sweeping.sessions), items=tuple(sweeping.items))
    restored = tuple(sweeping.restored)
    return Swept(taken=taken, restored=restored, skipped=tuple(sweeping.skipped), failure=failure)


@mutable
class _Sweeping:
    """What was taken so far, and what had to be left."""

    files: FileOps
    locks: Locks
    retention: Retention
    sessions: list[GcSession] = field(default_factory=list[GcSession])
    items: list[Item] = field(default_factory=list[Item])
    restored: list[SessionId] = field(default_factory=list[SessionId])
    skipped: list[Skipped] = field(default_factory=list[Skipped])

    def run(self, marked: GcSnapshot) -> None:
        self.free_space(marked)
        first = due(marked, self.retention)
        if first != Due() or any(item.kind is Kind.TRASH for item in marked.items):
            make_trash(self.files)
            self._sync("", layout.TRASH, layout.trashed(layout.WORKFLOWS))
        for session in find_returning(marked, self.retention):
            self._tried(layout.session_dir(session.session), session.session, partial(self._return, session.session))
        for session in first.sessions:
            self._held(session.session, partial(self._session, session))
        for item in first.items:
            if item.kind is Kind.LEFTOVER and item.session is not None:
                self._held(item.session, partial(self._begun, item.session, item))
        self._debris(first.items)
        # Removal of content must not survive a power loss if the removal of its session does not.
        self._sync(layout.SESSIONS, layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS)
        spared = {one.session for one in self.skipped if one.session is not None}
        rest = due(marked, self.retention, spared).items
        roots = roots_of(marked, {one.session for one in self.sessions}, self.retention)
        if not self.retention.chosen:
            self._empty_trash(((item, item.content) for item in marked.items if item.content is not None), roots)
        self._content(item for item in rest if item.kind in CONTENT)

    def free_space(self, marked: GcSnapshot) -> None:
        """Delete what earlier sweeps moved to the trash, except content, and old temporary files outside sessions."""
        # An interrupted sweep may not have synced its renames, and a partly deleted session must not come back.
        self._sync(layout.SESSIONS, layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS)
        items = due(marked, self.retention).items
        trash = [item for item in items if item.kind is Kind.TRASH and item.content is None]
        whole = {one.item.name for one in marked.trashed}
        ending = {item.name: item.name for item in trash if item.name not in whole}
        for item in trash:
            if item.name in whole:
                self._tried(item.name, None, partial(self._end, item.name, ending))
        if whole & ending.keys():
            self._sync(layout.TRASHED_SESSIONS)
        for item in trash:
            if item.name in ending:
                self._tried(ending[item.name], None, partial(self._delete, item, ending[item.name]))
        self._unlink_old(item for item in items if item.kind is Kind.TEMP and item.session is None)
        self._sync(layout.TRASHED_SESSIONS, layout.TRASHED_SEGMENTS)

    # -- sessions -----------------------------------------------------------------------------------------------

    def _return(self, session: SessionId) -> None:
        """Move a session back from the trash, unless there is one of its name again."""
        if self.files.own_stat(layout.session_dir(session)) is None:
            self.files.rename(f"{layout.TRASHED_SESSIONS}/{session}", layout.session_dir(session))
            self.restored.append(session)

    def _end(self, name: str, ending: dict[str, str]) -> None:
        """Rename a session in the trash that is deleted next: nothing moves back what an interruption leaves."""
        target = self._unused(layout.deleted(name))
        self.files.rename(name, target)
        ending[name] = target

    def _session(self, session: GcSession) -> None:
        found = read_session(self.files, session.session)
        is_same = found.segments and link_to_log(self.files, session.session) is None
        is_same = is_same and found.last_activity_s(self.files) == session.last_activity_s
        if not is_same:
            self.skipped.append(Skipped(session=session.session, why="changed"))
            return
        self._to_trash(layout.session_dir(session.session))
        self.sessions.append(session)

    def _begun(self, session: SessionId, item: Item) -> None:
        """Remove a directory that a start left, unless it holds a session by now."""
        if not read_session(self.files, session).segments and is_start(self.files, session):
            self._to_trash(item.name)
            self.items.append(item)

    def _debris(self, items: Iterable[Item]) -> None:
        """Remove orphan segments and temporary files of the sessions that stay."""
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
            # The tail may be a prefix of the orphan's group; without the orphan it would count as damage.
            cut_torn_tail(self.files, session, now.manifest_bytes, has_segment=True)
        for item in orphans:
            name = item.name.rpartition("/")[2]
            self.files.rename(item.name, f"{layout.TRASHED_SEGMENTS}/{session}.{name}")
            self.items.append(item)
        self._unlink_old(item for item in items if item.kind is Kind.TEMP)

    def _held(self, session: SessionId, work: Callable[[], None]) -> None:
        """Work under a session's lock. Skip a session that is held, or that changed since it was marked."""
        self._tried(layout.session_dir(session), session, partial(self._locked, session, work))

    def _locked(self, session: SessionId, work: Callable[[], None]) -> None:
        try:
            with self.locks.hold(session):
                work()
        except SessionBusyError:
            self.skipped.append(Skipped(session=session, why="busy"))
        except (DamageError, FileNotFoundError, NotADirectoryError):
            self.skipped.append(Skipped(session=session, why="changed"))

    def _tried(self, name: str, session: SessionId | None, work: Callable[[], None]) -> None:
        """Work on one thing. If the disk fails at it, leave it, and go on with the others."""
        try:
            work()
        except OSError as error:
            failure = store_failure(error)
            # A new lock file, or a larger directory, needs space that only the rest of the sweep frees.
            is_full = session is not None and failure.kind is FailureKind.FULL
            why = "full" if is_full else "failed"
            self.skipped.append(Skipped(session=session, why=why, name=failure.where or name, found=failure.found))

    # -- the rest -----------------------------------------------------------------------------------------------

    def _content(self, items: Iterable[Item]) -> None:
        for item in items:
            self._tried(item.name, None, partial(self._trash_content, item))
        self._sync(*layout.CONTENT_DIRS, *map(layout.trashed, layout.CONTENT_DIRS))

    def _trash_content(self, item: Item) -> None:
        if not self._is_old(item.name):
            return
        self.files.rename(item.name, layout.trashed(item.name))
        if self._is_old(layout.trashed(item.name)):
            self.items.append(item)
        else:
            self._move_back(item.name)

    def _empty_trash(self, items: Iterable[tuple[Item, str]], roots: frozenset[str]) -> None:
        """Delete content that was in the trash before, or move it back; each item has the name that readers use."""
        for item, content in items:
            is_needed = content in roots or not self._is_old(item.name)
            work = partial(self._restore, content) if is_needed else partial(self._delete, item)
            self._tried(item.name, None, work)
        self._sync(*layout.CONTENT_DIRS)

    def _restore(self, content: str) -> None:
        """Move content that a session refers to back from the trash.

        If the file exists again, its writer may not have synced it: it is written again before the copy in the trash
        is deleted (APP-5).
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
                self._tried(item.name, item.session, partial(self._delete, item))

    def _delete(self, item: Item, name: str | None = None) -> None:
        self._remove(name or item.name)
        self.items.append(item)

    def _remove(self, path: str) -> None:
        """Delete a file, or a directory with everything in it. Links are deleted and not followed."""
        stat = self.files.own_stat(path)
        if stat is None or not stat.is_dir:
            self.files.unlink(path)
            return
        for name in self.files.names(path):
            self._remove(f"{path}/{name}")
        self.files.remove_dir(path)

    def _to_trash(self, path: str) -> None:
        name = path.rpartition("/")[2]
        target = f"{layout.TRASHED_SESSIONS}/{layout.deleted(name) if self.retention.chosen else name}"
        self.files.rename(path, self._unused(target))

    def _unused(self, path: str) -> str:
        """Return a path at which nothing is: this one, or one that begins with it."""
        return path if self.files.own_stat(path) is None else f"{path}.{unused_name()}"

    def _is_old(self, path: str) -> bool:
        """Return whether something exists and all of it is still old: it may have been written since it was marked."""
        below = list(tree(self.files, path))
        return bool(below) and self.retention.is_old(newest_s(below))

    def _sync(self, *directories: str) -> None:
        for path in directories:
            if self.files.stat(path) is not None:
                self.files.sync_dir(path, full=True)
