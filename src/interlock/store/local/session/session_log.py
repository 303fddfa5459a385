"""Appending and reading sessions; the only module that defines the order of durable writes (APP-2).

One append is one segment and one manifest group. In this order:

1. write the content-addressed files and the segment; a file that exists is replaced, by a synced temporary one;
2. sync the new files and the directories that got a new name, in one round (for a new session also its own directory,
   with its empty manifest);
3. append the group to the manifest with one write, and sync it;
4. write the settled mark of the group's end (`settled`), without a sync;
5. return to the caller.

The first append of a boot marks the existing groups before it writes its own, so that every group of this boot has a
mark before it.

A crash before the group leaves files that no manifest names, or parts of them; they do not count, and whoever needs one
writes it again. A crash inside the group leaves a proper prefix of it, a torn tail: readers stop before it, and the
next append, under the lock, cuts it off and syncs before it writes. A crash after the whole group and before the mark
leaves a group that may or may not be on the disk. Readers ignore it, and they cannot make it durable: after a failed
sync, the next one succeeds without writing anything. The next holder of the lock settles it: it writes the segment, its
content and the group again, syncs each, and marks the group's end. It never cuts off a whole group: if the mark itself
was damaged, that group may have been acknowledged.

A whole session is restored in the same order: its manifest is empty until everything else is durable. Then one rename
replaces it by the manifest with all groups. Until it is marked, no reader sees the session.
"""

import errno
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from interlock.kernel.budgets import SESSIONS_KEPT_BYTES_MAX
from interlock.kernel.frozen import replace
from interlock.kernel.ids import Digest, SessionId
from interlock.record.content import Contents
from interlock.record.events import Event, is_key_event
from interlock.record.manifest import attest_history, build_group
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles, discard, write_durably, write_synced
from interlock.store.local.failures import memory_as_failure, store_failure
from interlock.store.local.files import FileOps
from interlock.store.local.locks import Locks, hold_if_made
from interlock.store.local.rounds import Round, in_order
from interlock.store.local.session.beginning import beginning
from interlock.store.local.session.held import LocalSessionLock, own_lock, port_errors
from interlock.store.local.session.reading import (
    DamageError,
    Followed,
    StoredSegment,
    Verified,
    add_group,
    content_paths,
    find_omitted,
    follow,
    history_after,
    history_of,
    read_with_recheck,
    unread,
)
from interlock.store.local.session.settled import write_mark
from interlock.store.ports.errors import Health, SessionLockReleasedError
from interlock.store.ports.reader import Appended, Salvaged, UnfinishedAppend
from interlock.store.ports.writer import SessionLock
from interlock.views.evolution import evolve
from interlock.views.session import BrokenHistoryError, Session, new_session

if TYPE_CHECKING:
    from interlock.record.append_plan import AppendPlan, Stamps

_Content: TypeAlias = tuple[str, Digest, bytes]
"""A content-addressed file: its path, the digest of its bytes, and the bytes."""
_Placed: TypeAlias = tuple[str, bytes]
"""A segment: its path and its bytes."""
_UNDECIDED = "it cannot be read, so it is not known whether the last append was acknowledged"


class SessionLog:
    """Reads and appends the logs of all sessions below one data directory."""

    def __init__(self, files: FileOps, locks: Locks, content: ContentFiles, sync_round: Round = in_order) -> None:
        self._files = files
        self._round = sync_round
        self._locks = locks
        self._content = content
        self._known: OrderedDict[SessionId, Verified] = OrderedDict()
        self._known_bytes = 0
        self._mutexes: dict[SessionId, threading.Lock] = {}
        self._mutex = threading.Lock()

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> Session | None:
        """See `SessionReader.load`."""
        with port_errors(session):
            followed = self._followed(session, since_s=since_s)
        fold = followed.settled.fold
        if tag is not None and tag not in fold.tags:
            # A token is minted after settling, so this group was settled and its mark was lost.
            fold = next((one.fold for one, _ in followed.unsettled if tag in one.fold.tags), fold)
        return fold if fold.next_index else None

    def history(self, session: SessionId, *, after: int = 0) -> tuple[tuple[Event, ...], ...]:
        """See `SessionReader.history`."""
        with port_errors(session):
            followed = self._followed(session)
            with memory_as_failure():
                if after:
                    return history_after(self._files, followed.settled, after)
                if followed.appends is None:
                    return history_of(self._files, followed.settled)
                return tuple(one.events for one in followed.appends)

    def appends(self, session: SessionId) -> tuple[Appended, ...]:
        """See `SessionReader.appends`."""
        with port_errors(session):
            return self._followed(session, is_afresh=True).appends or ()

    def salvage(self, session: SessionId) -> Salvaged | None:
        """See `SessionReader.salvage`."""
        with port_errors(session):
            damage, followed = None, None
            self._forget(session)
            try:
                followed = self._followed(session)
                verified = followed.settled
                history, fold = history_of(self._files, verified), verified.fold
            except DamageError as error:
                # The part that this process verified earlier may be damaged on the disk by now.
                damage, verified = error, error.verified
                history = history_of(self._files, verified)
                fold = evolve(new_session(session), *chain.from_iterable(history))
            whole = Salvaged(session=session, fold=fold if history else None, history=history)
            if followed is not None and followed.unsettled and followed.is_unmarked:
                health = Health.CORRUPT_TAIL if history else Health.CORRUPT_HEAD
                rest, mark = followed.omitted(), layout.settled(session).rpartition("/")[2]
                return replace(whole, health=health, where=mark, found=_UNDECIDED, omitted=rest, is_undecided=True)
            if damage is None:
                is_unmarked = followed is not None and followed.is_unmarked
                return replace(whole, is_unmarked=is_unmarked) if history else None
            rest = find_omitted(self._files, verified)
        return replace(whole, health=damage.health, where=damage.where, found=damage.found, omitted=rest)

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:
        """See `SessionReader.unfinished`."""
        with port_errors(session):
            followed = self._followed(session)
            if followed.unsettled:
                return UnfinishedAppend.UNDECIDED if followed.is_unmarked else UnfinishedAppend.GROUP
            due = f"{followed.settled.fold.next_index:08d}-"
            names = self._files.names(layout.events_dir(session))
        is_there = any(name.startswith(due) and layout.is_segment(name) for name in names)
        return UnfinishedAppend.SEGMENT if is_there else None

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[LocalSessionLock]:
        """See `SessionWriter.hold`. Creates the directory of a session that does not exist yet."""
        held: LocalSessionLock | None = None
        try:
            with port_errors(session), self._begun(session), self._locks.hold(session, since_s=since_s):
                held = LocalSessionLock(self._settled(self._followed(session, under_lock=True)), self)
                yield held
        finally:
            if held is not None:
                held.advance(None)

    def append(self, lock: SessionLock, plan: "AppendPlan", stamps: "Stamps") -> Session:
        """See `SessionWriter.append`."""
        from interlock.record.append_plan import stamp  # noqa: PLC0415 — only a writer stamps events

        lock = own_lock(lock, self)
        known = lock.verified()
        if known.session != plan.session:
            raise SessionLockReleasedError("a lock of another session")
        segment = stamp(plan, next_index=known.fold.next_index, stamps=stamps)
        if any(is_key_event(event) and known.fold.holds(event) for event in segment.events):
            return known.fold
        group = build_group(
            known.session,
            manifest_index=known.manifest_lines,
            segment=segment.data,
            events=segment.events,
            pinned=known.pins,
        )
        after = add_group(known, StoredSegment(data=segment.data, events=segment.events, group=group))
        with port_errors(known.session):
            written = self._put_new(known, _content_of(plan), [_placed(plan.session, segment.events, segment.data)])
            self._mark_before(known)
        with self._perhaps_recorded(after):
            path = layout.manifest(known.session)
            with closing(self._files.append(path, group.data)) as opened:
                self._files.sync(path, full=True, opened=opened)
            write_mark(self._files, known.session, after.manifest_bytes)
        return self._finish(lock, after, written)

    def restore(self, lock: SessionLock, history: Sequence[Sequence[Event]], contents: Contents) -> Session:
        """See `SessionWriter.restore`.

        The order is that of an append with the whole history as one group: content and segments, their directories,
        and then the manifest, complete, by a rename.
        """
        lock = own_lock(lock, self)
        known = lock.verified()
        if known.manifest_lines:
            raise BrokenHistoryError("a session that has history is not restored")
        after, segments, manifest = unread(known.session), list[_Placed](), list[bytes]()
        for events, (data, group) in zip(history, attest_history(known.session, history), strict=True):
            after = add_group(after, StoredSegment(data=data, events=tuple(events), group=group))
            segments.append(_placed(known.session, events, data))
            manifest.append(group.data)
        content = [(layout.snapshot(ref), ref, data) for ref, data in contents.snapshots.items()]
        content += [(layout.pinned_workflow(one), one, data) for one, data in contents.workflows.items()]
        content += [(layout.artifact(digest), digest, data) for digest, data in contents.artifacts.items()]
        with port_errors(known.session):
            # Until the manifest is there, the mark alone shows that these segments are of no session that lost it.
            self._mark_before(known)
            written = self._put_new(known, content, segments)
        with self._perhaps_recorded(after):
            write_durably(self._files, layout.manifest(known.session), b"".join(manifest))
            self._files.sync_dir(layout.session_dir(known.session), full=True)
            write_mark(self._files, known.session, after.manifest_bytes)
        return self._finish(lock, after, written)

    def _settled(self, followed: Followed) -> Verified:
        """Settle the groups that another writer left unsettled: write, sync and mark them. Only under the lock.

        A mark that is none of this log is written again: all that counts without it is durable.

        Raises:
            ContentDamagedError: Content that a group refers to cannot be written again.
            StoreFailureError: The disk failed. The unsettled groups may count later.
        """
        known, groups = followed.settled, followed.unsettled
        if not groups:
            if followed.is_unmarked:
                write_mark(self._files, known.session, known.manifest_bytes)
            return replace(known, is_marked=known.is_marked or followed.is_unmarked)
        after = groups[-1][0]
        try:
            content, segments = list[_Content](), list[_Placed]()
            for _, segment in groups:
                path, *refers = content_paths(known.session, segment)
                segments.append((path, segment.data))
                content += [(name, layout.digest_in(name), self._read_again(name)) for name in refers]
            written = self._put(known, content, segments)
            self._mark_before(known)
            data = b"".join(segment.group.data for _, segment in groups)
            path = layout.manifest(known.session)
            self._files.write_at(path, known.manifest_bytes, data)
            self._files.sync(path, full=True)
            write_mark(self._files, known.session, after.manifest_bytes)
        except OSError as error:
            raise store_failure(error, may_be_recorded=True) from error
        return self._known_durable(after, written)

    def _read_again(self, path: str) -> bytes:
        return self._content.read(path, layout.digest_in(path), "content")

    def _mark_before(self, known: Verified) -> None:
        """Write a mark of this boot, if there is none, before the first group of this boot."""
        if not known.is_marked:
            write_mark(self._files, known.session, known.manifest_bytes)

    def _put_new(self, known: Verified, content: Sequence[_Content], segments: Sequence[_Placed]) -> list[str]:
        """Cut off a torn tail, and write content and segments that no group names.

        After a failure, the segments that did not exist are removed. Content stays for a sweep: another process may
        have written it, too, and refer to it.
        """
        new = [path for path, _ in segments if self._files.stat(path) is None]
        cut_torn_tail(self._files, known.session, known.manifest_bytes, has_segment=len(new) < len(segments))
        try:
            return self._put(known, content, segments)
        except OSError:
            for path in new:
                discard(self._files, path)
            raise

    def _put(self, known: Verified, content: Sequence[_Content], segments: Sequence[_Placed]) -> list[str]:
        """Write content and segments, and make them and their names durable. Return the content that was written."""
        wanted = [(path, data) for path, digest, data in content if not self._content.is_stored(path, digest, data)]
        dirs = {layout.parent(path) for path, _ in wanted} | {layout.events_dir(known.session)}
        if not known.manifest_lines:
            dirs |= {layout.session_dir(known.session), layout.SESSIONS, layout.WORKFLOWS, ""}
        write_synced(self._files, [*wanted, *segments], dirs, self._round)
        return [path for path, _ in wanted]

    @contextmanager
    def _perhaps_recorded(self, after: Verified) -> Generator[None]:
        """Set on a failure whether the group may count (APP-6): a group that was not written completely never does."""
        try:
            yield
        except OSError as error:
            try:
                stat = self._files.stat(layout.manifest(after.session))
                is_short = stat is not None and stat.size < after.manifest_bytes
            except OSError:
                is_short = False
            raise store_failure(error, may_be_recorded=not is_short) from error

    def _finish(self, lock: LocalSessionLock, after: Verified, written: Sequence[str]) -> Session:
        """Remember the new state after an append."""
        after = self._known_durable(after, written)
        lock.advance(after)
        return after.fold

    def _known_durable(self, after: Verified, written: Sequence[str]) -> Verified:
        for path in written:
            self._content.mark_written(path)
        after = replace(after, is_marked=True)
        self._remember(after)
        return after

    def _begun(self, session: SessionId) -> AbstractContextManager[None]:
        """Return the context of a session's beginning; for a session with history it does nothing, after one check."""
        stat = self._files.stat(layout.manifest(session))
        return nullcontext() if stat is not None and stat.size else beginning(self._files, self._locks, session)

    def _followed(
        self, session: SessionId, *, under_lock: bool = False, since_s: float | None = None, is_afresh: bool = False
    ) -> Followed:
        """Return what the manifest holds now, and remember its settled part.

        Only what was added is read, unless `is_afresh`. If that seems damaged, the manifest is read again from its
        start.

        Raises:
            DamageError: It is damaged, also when it is read again.
            OSError: The disk failed.
        """
        with self._mutex_of(session), memory_as_failure():
            with self._mutex:
                known = self._known.get(session) if not is_afresh else None
            hold = nullcontext if under_lock else partial(hold_if_made, self._files, self._locks, session, since_s)
            first = partial(follow, self._files, known) if known is not None else None
            followed = read_with_recheck(lambda: follow(self._files, unread(session)), hold, first=first)
            # Without a mark of its own, the log is read from its start again, so that the next holder mends the mark.
            if followed.is_unmarked or not followed.settled.manifest_lines:
                self._forget(session)
            else:
                self._remember(followed.settled)
            return followed

    def _forget(self, session: SessionId) -> None:
        with self._mutex:
            self._drop(session)

    def _remember(self, verified: Verified) -> None:
        with self._mutex:
            self._drop(verified.session)
            self._known[verified.session] = verified
            self._known_bytes += verified.log_bytes
            while self._known_bytes > SESSIONS_KEPT_BYTES_MAX and len(self._known) > 1:
                oldest = next(iter(self._known))
                self._drop(oldest)
                self._mutexes.pop(oldest, None)

    def _drop(self, session: SessionId) -> None:
        dropped = self._known.pop(session, None)
        self._known_bytes -= dropped.log_bytes if dropped is not None else 0

    def _mutex_of(self, session: SessionId) -> threading.Lock:
        with self._mutex:
            return self._mutexes.setdefault(session, threading.Lock())


def _content_of(plan: "AppendPlan") -> list[_Content]:
    content: list[_Content] = [(layout.snapshot(ref), ref, data) for ref, data in plan.snapshots]
    content += [(layout.artifact(digest), digest, data) for digest, data in plan.artifacts]
    if plan.workflow is not None:
        workflow_hash, data = plan.workflow
        content.append((layout.pinned_workflow(workflow_hash), workflow_hash, data))
    return content


def _placed(session: SessionId, events: Sequence[Event], data: bytes) -> _Placed:
    return layout.segment(session, events[0].event_index, events[-1].event_index), data


def cut_torn_tail(files: FileOps, session: SessionId, manifest_bytes: int, *, has_segment: bool) -> None:
    """Remove the torn tail after the verified bytes, so that the next group begins on its own line.

    Only under the session's lock. With `has_segment`, a segment that the tail may name is about to be replaced or
    removed. A tail that is cut already may come back with a power loss, so the manifest is synced in any case.

    Raises:
        OSError: The disk failed, or the manifest is missing: another process removed it since the session was locked.
    """
    path = layout.manifest(session)
    stat = files.stat(path)
    if stat is None:
        raise FileNotFoundError(errno.ENOENT, "the manifest is missing")
    has_tail = stat.size != manifest_bytes
    if has_tail:
        files.truncate(path, manifest_bytes)
    if has_tail or has_segment:
        files.sync(path, full=True)
