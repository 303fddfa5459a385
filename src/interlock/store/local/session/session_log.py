"""The durable order, written once (APP-2).

One append is one segment and one manifest group. In this order:

1. content-addressed files and the segment, each under a temporary name: written, synced, renamed;
2. the directories that gained a name, synced (for a new session also the session's own, with its empty manifest);
3. the group, with one write at the end of the manifest, synced;
4. the settled mark, at the end of the group (`settled`): not synced;
5. only then does the caller get an answer.

The first append of a boot marks what it builds on before it writes its group, so that no group of this boot is ever
without a mark before it.

A cut before the group has begun leaves files that nothing names: they never happened. A cut inside the group
leaves a proper prefix of it: it never happened either, readers stop before it and the next append, under the
lock, cuts it off and syncs before it writes. A cut after the group is whole and before the mark leaves a group that
may or may not be on the disk. Readers leave it out, and they cannot make it durable: after a sync that failed, the
next one succeeds without having written anything. The next holder of the lock settles it: it writes the segment, its
content and the group again, syncs each, and marks the group's end. It never cuts a whole group off, for if the mark
itself was damaged that group may have been acknowledged.

A whole session is restored in the same order: its manifest holds nothing until everything is in place, and gets all
groups at once, by taking the name of the empty one. Until it is marked there is no such session for anybody.
"""

import errno
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from interlock.kernel.budgets import SESSIONS_KEPT_MAX
from interlock.kernel.ids import Digest, SessionId
from interlock.record.append_plan import AppendPlan, Stamps, stamp
from interlock.record.content import Contents
from interlock.record.events import Event, is_key_event
from interlock.record.manifest import attest_history, build_group
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles, write_durably
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks, hold_if_made
from interlock.store.local.session.held import LocalSessionLock, own_witness, told
from interlock.store.local.session.reading import (
    DamageError,
    Followed,
    StoredSegment,
    Verified,
    content_paths,
    follow,
    history_of,
    is_lost,
    left_out,
    surely_read,
    taken_in,
    unread,
)
from interlock.store.local.session.settled import read_mark, write_mark
from interlock.store.ports.errors import SessionLockReleasedError
from interlock.store.ports.reader import LogVersion, Salvaged, UnfinishedAppend
from interlock.store.ports.writer import SessionLock
from interlock.views.session import BrokenHistoryError, Session

_Content: TypeAlias = tuple[str, Digest, bytes]
"""A content-addressed file: where it stands, the digest of its bytes, and those."""
_Placed: TypeAlias = tuple[str, bytes]
"""A segment: where it stands, and its bytes."""


class SessionLog:
    """Reads and appends the logs of all sessions below one data directory."""

    def __init__(self, files: FileOps, locks: Locks, content: ContentFiles) -> None:
        self._files = files
        self._locks = locks
        self._content = content
        self._known: OrderedDict[SessionId, Verified] = OrderedDict()
        self._mutexes: dict[SessionId, threading.Lock] = {}
        self._mutex = threading.Lock()

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> Session | None:
        """See `SessionReader.load`."""
        with told(session):
            followed = self._followed(session, since_s=since_s)
        facts = followed.settled.facts
        if tag is not None and tag not in facts.tags:
            # Tokens are minted after settling: this group was settled, and its mark is lost.
            facts = next((one.facts for one, _ in followed.unsettled if tag in one.facts.tags), facts)
        return facts if facts.next_index else None

    def history(self, session: SessionId) -> tuple[tuple[Event, ...], ...]:
        """See `SessionReader.history`."""
        with told(session):
            return history_of(self._files, self._followed(session).settled)

    def salvage(self, session: SessionId) -> Salvaged | None:
        """See `SessionReader.salvage`."""
        with told(session):
            damage = None
            try:
                verified = self._followed(session).settled
                history = history_of(self._files, verified)
            except DamageError as error:
                # What this process remembers may be sound although what it stands on is so no longer.
                damage, verified = error, error.verified
                history = history_of(self._files, verified)
            whole = Salvaged(session=session, facts=verified.facts if history else None, history=history)
            if damage is None:
                return whole if history else None
            rest = left_out(self._files, verified)
        return replace(whole, health=damage.health, where=damage.where, found=damage.found, left_out=rest)

    def unfinished(self, session: SessionId) -> UnfinishedAppend | None:
        """See `SessionReader.unfinished`."""
        with told(session):
            followed = self._followed(session)
            if followed.unsettled:
                return UnfinishedAppend.GROUP
            due = f"{followed.settled.facts.next_index:08d}-"
            names = self._files.names(layout.events_dir(session))
        is_there = any(name.startswith(due) and layout.is_segment(name) for name in names)
        return UnfinishedAppend.SEGMENT if is_there else None

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        return tuple(sorted(self.marks()))

    def marks(self) -> dict[SessionId, LogVersion]:
        """See `SessionReader.marks`."""
        try:
            names = (SessionId(name) for name in self._files.names(layout.SESSIONS) if layout.is_session(name))
            marks = ((name, self._log_mark(name)) for name in names)
            return {name: mark for name, mark in marks if mark is not None}
        except OSError as error:
            raise store_failure(error) from error

    @contextmanager
    def hold(self, session: SessionId, *, since_s: float | None = None) -> Generator[LocalSessionLock]:
        """See `SessionWriter.hold`. For a session that is not there yet, its directory is made."""
        held: LocalSessionLock | None = None
        try:
            with told(session):
                self._make_dirs(session)
                with self._locks.hold(session, since_s=since_s):
                    held = LocalSessionLock(self._settled(self._followed(session, under_lock=True)), self)
                    yield held
        finally:
            if held is not None:
                held.advance(None)

    def append(self, witness: SessionLock, plan: AppendPlan, stamps: Stamps) -> Session:
        """See `SessionWriter.append`."""
        witness = own_witness(witness, self)
        known = witness.verified()
        if known.session != plan.session:
            raise SessionLockReleasedError("a witness of another session")
        segment = stamp(plan, next_index=known.facts.next_index, stamps=stamps)
        if any(is_key_event(event) and event.dedupe_key in known.facts.dedupe_keys for event in segment.events):
            return known.facts
        group = build_group(
            known.session,
            manifest_index=known.manifest_lines,
            segment=segment.data,
            events=segment.events,
            pinned=known.pins,
        )
        after = taken_in(known, StoredSegment(data=segment.data, events=segment.events, group=group))
        with told(known.session):
            cut_torn_tail(self._files, known.session, known.manifest_bytes)
            content = _content_of(plan)
            self._put(known, content, [_placed(plan.session, segment.events, segment.data)])
            self._mark_before(known)
        with self._perhaps_recorded(after):
            path = layout.manifest(known.session)
            self._files.append(path, group.data)
            self._files.sync(path, full=True)
            write_mark(self._files, known.session, after.manifest_bytes)
        return self._finish(witness, after, content)

    def restore(self, witness: SessionLock, history: Sequence[Sequence[Event]], contents: Contents) -> Session:
        """See `SessionWriter.restore`.

        The order is that of an append with all of the history as its one group: content and segments, their
        directories, and then the manifest, which gets its name whole.
        """
        witness = own_witness(witness, self)
        known = witness.verified()
        if known.manifest_lines:
            raise BrokenHistoryError("a session that has history is not restored")
        after, segments, manifest = unread(known.session), list[_Placed](), list[bytes]()
        for events, (data, group) in zip(history, attest_history(known.session, history), strict=True):
            after = taken_in(after, StoredSegment(data=data, events=tuple(events), group=group))
            segments.append(_placed(known.session, events, data))
            manifest.append(group.data)
        content = [(layout.snapshot(ref), ref, data) for ref, data in contents.snapshots.items()]
        content += [(layout.pinned_workflow(one), one, data) for one, data in contents.workflows.items()]
        content += [(layout.artifact(digest), digest, data) for digest, data in contents.artifacts.items()]
        with told(known.session):
            self._put(known, content, segments)
            self._mark_before(known)
        with self._perhaps_recorded(after):
            write_durably(self._files, layout.manifest(known.session), b"".join(manifest))
            self._files.sync_dir(layout.session_dir(known.session), full=True)
            write_mark(self._files, known.session, after.manifest_bytes)
        return self._finish(witness, after, content)

    def _settled(self, followed: Followed) -> Verified:
        """Settle what another writer left unsettled: write all of it again, sync it and mark it. Only under the lock.

        Raises:
            ContentDamagedError: Content that it refers to cannot be written again.
            StoreFailureError: The disk failed. What the unsettled groups record may count later.
        """
        known, groups = followed.settled, followed.unsettled
        if not groups:
            return known
        after = groups[-1][0]
        try:
            content, segments = list[_Content](), list[_Placed]()
            for _, segment in groups:
                path, *refers = content_paths(known.session, segment)
                segments.append((path, segment.data))
                content += [(name, layout.digest_in(name), self._read_again(name)) for name in refers]
            self._put(known, content, segments)
            self._mark_before(known)
            data = b"".join(segment.group.data for _, segment in groups)
            path = layout.manifest(known.session)
            self._files.write_at(path, known.manifest_bytes, data)
            self._files.sync(path, full=True)
            write_mark(self._files, known.session, after.manifest_bytes)
        except OSError as error:
            raise store_failure(error, may_be_recorded=True) from error
        return self._known_durable(after, content)

    def _read_again(self, path: str) -> bytes:
        return self._content.read(path, layout.digest_in(path), "content")

    def _mark_before(self, known: Verified) -> None:
        """See that a mark of this boot is there before the first group that this boot adds."""
        if not known.is_marked:
            write_mark(self._files, known.session, known.manifest_bytes)

    def _put(self, known: Verified, content: Sequence[_Content], segments: Sequence[_Placed]) -> None:
        """Write content and segments, then sync every directory that gained a name."""
        dirs: set[str] = set()
        for path, digest, data in content:
            dirs |= self._content.put(path, digest, data)
        for path, data in segments:
            write_durably(self._files, path, data)
        dirs.add(layout.events_dir(known.session))
        if not known.manifest_lines:
            dirs |= {layout.session_dir(known.session), layout.SESSIONS, layout.WORKFLOWS, ""}
        for path in sorted(dirs):
            self._files.sync_dir(path, full=True)

    @contextmanager
    def _perhaps_recorded(self, after: Verified) -> Generator[None]:
        """Say of a failure whether the group may count (APP-6): one that was not written to its end never will."""
        try:
            yield
        except OSError as error:
            try:
                stat = self._files.stat(layout.manifest(after.session))
                is_short = stat is not None and stat.size < after.manifest_bytes
            except OSError:
                is_short = False
            raise store_failure(error, may_be_recorded=not is_short) from error

    def _finish(self, witness: LocalSessionLock, after: Verified, content: Sequence[_Content]) -> Session:
        """Remember what became true."""
        after = self._known_durable(after, content)
        witness.advance(after)
        return after.facts

    def _known_durable(self, after: Verified, content: Sequence[_Content]) -> Verified:
        for path, _, _ in content:
            self._content.mark_synced(path)
        after = replace(after, is_marked=True)
        self._remember(after)
        return after

    def _make_dirs(self, session: SessionId) -> None:
        """Make what a new session needs; the first append syncs it. An existing one costs one look.

        An empty manifest says nothing: it may be what a crash left of all this.
        """
        stat = self._files.stat(layout.manifest(session))
        if stat is not None and stat.size:
            return
        for path in (layout.SESSIONS, layout.session_dir(session), layout.events_dir(session)):
            self._files.make_dir(path)
        for path in (layout.SNAPSHOTS, layout.WORKFLOWS, layout.PINNED, layout.ARTIFACTS):
            self._files.make_dir(path)
        try:
            self._files.write(layout.manifest(session), b"")
        except FileExistsError:
            return

    def _followed(self, session: SessionId, *, under_lock: bool = False, since_s: float | None = None) -> Followed:
        """Return what the manifest holds now, and remember what of it is settled.

        It is followed from what is known. If it looks damaged, it is read again from its start.

        Raises:
            DamageError: It is damaged, and stayed so when read again.
            OSError: The disk failed.
        """
        with self._mutex_of(session):
            with self._mutex:
                known = self._known.get(session)
            hold = nullcontext if under_lock else partial(hold_if_made, self._files, self._locks, session, since_s)
            first = partial(follow, self._files, known or unread(session))
            followed = surely_read(partial(follow, self._files, unread(session)), hold, first=first)
            self._remember(followed.settled)
            return followed

    def _log_mark(self, session: SessionId) -> LogVersion | None:
        """Return what changes with a session's log; None if it has none, not even one that was lost."""
        stat, mark = self._files.stat(layout.manifest(session)), read_mark(self._files, session)
        settled = -1 if mark is None or mark.manifest_bytes is None else mark.manifest_bytes
        if stat is None or not stat.size:
            return LogVersion((0, 0, 0.0, settled)) if is_lost(self._files, session, mark) else None
        if mark is not None and mark.is_of_this_boot and not settled:
            return None
        return LogVersion((stat.size, stat.inode, stat.modified_s, settled))

    def _remember(self, verified: Verified) -> None:
        with self._mutex:
            if not verified.manifest_lines:
                self._known.pop(verified.session, None)
                return
            self._known[verified.session] = verified
            self._known.move_to_end(verified.session)
            while len(self._known) > SESSIONS_KEPT_MAX:
                forgotten, _ = self._known.popitem(last=False)
                self._mutexes.pop(forgotten, None)

    def _mutex_of(self, session: SessionId) -> threading.Lock:
        with self._mutex:
            return self._mutexes.setdefault(session, threading.Lock())


def _content_of(plan: AppendPlan) -> list[_Content]:
    content: list[_Content] = [(layout.snapshot(ref), ref, data) for ref, data in plan.snapshots]
    content += [(layout.artifact(digest), digest, data) for digest, data in plan.artifacts]
    if plan.workflow is not None:
        workflow_hash, data = plan.workflow
        content.append((layout.pinned_workflow(workflow_hash), workflow_hash, data))
    return content


def _placed(session: SessionId, events: Sequence[Event], data: bytes) -> _Placed:
    return layout.segment(session, events[0].event_index, events[-1].event_index), data


def cut_torn_tail(files: FileOps, session: SessionId, manifest_bytes: int) -> None:
    """Remove what an interrupted append left after the verified bytes, or the next group would be glued to it.

    Only under the session's lock.

    Raises:
        OSError: The disk failed, or the manifest is gone, which somebody else has removed since it was locked.
    """
    path = layout.manifest(session)
    stat = files.stat(path)
    if stat is None:
        raise FileNotFoundError(errno.ENOENT, "the manifest is gone")
    if stat.size != manifest_bytes:
        files.truncate(path, manifest_bytes)
        files.sync(path, full=True)
