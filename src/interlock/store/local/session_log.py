"""The durable order, written once (D10).

One append is one segment and one manifest group. In this order:

1. content-addressed files and the segment, each under a temporary name: written, synced, renamed;
2. the directories that gained a name, synced (for a new session also the session's own, with its empty manifest);
3. the group, with one write at the end of the manifest, synced;
4. only then anyone is told.

A cut before the group has begun leaves files that nothing names: they never happened. A cut inside the group
leaves a proper prefix of it: it never happened either, readers stop before it and the next append, under the
lock, cuts it off and syncs before it writes. A cut after the group is whole but not synced leaves truth that may
still be lost: whoever reads it syncs it before answering from it or building on it. As every append syncs what
it builds on, only the last group can ever be in that state.

A whole session is restored in the same order: its manifest holds nothing until everything is in place, and gets all
groups at once, by taking the name of the empty one. Until then there is no such session for anybody.
"""

import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from interlock.kernel.budgets import SESSIONS_KEPT_MAX
from interlock.kernel.ids import Digest, SessionId
from interlock.record.append_plan import AppendPlan, Segment, Stamps, stamp
from interlock.record.content import Contents
from interlock.record.events import Event, is_key_event
from interlock.record.manifest import Group, attested, group_of
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles, write_durably
from interlock.store.local.files import FileOps, FileStat, store_failure
from interlock.store.local.held import HeldSession, own_witness, told
from interlock.store.local.locks import Locks, hold_if_made
from interlock.store.local.reading import (
    DamageError,
    StoredSegment,
    Verified,
    follow,
    history_of,
    left_out,
    surely_read,
    taken_in,
    unread,
)
from interlock.store.ports import (
    FailureKind,
    LogMark,
    Salvaged,
    StoreFailureError,
    Witness,
    WitnessReleasedError,
)
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
        self._refused: set[SessionId] = set()
        self._mutexes: dict[SessionId, threading.Lock] = {}
        self._mutex = threading.Lock()

    def load(self, session: SessionId) -> Session | None:
        """See `SessionReader.load`."""
        with told(session):
            facts = self._settled(session).facts
        return facts if facts.next_index else None

    def history(self, session: SessionId) -> tuple[tuple[Event, ...], ...]:
        """See `SessionReader.history`."""
        with told(session):
            return history_of(self._files, self._settled(session))

    def salvage(self, session: SessionId) -> Salvaged | None:
        """See `SessionReader.salvage`."""
        with told(session):
            damage = None
            try:
                verified = self._settled(session)
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

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        return tuple(sorted(self.marks()))

    def marks(self) -> dict[SessionId, LogMark]:
        """See `SessionReader.marks`."""
        try:
            names = (SessionId(name) for name in self._files.names(layout.SESSIONS) if layout.is_session(name))
            stats = ((name, self._files.stat(layout.manifest(name))) for name in names)
            return {name: _mark(stat) for name, stat in stats if stat is not None and stat.size}
        except OSError as error:
            raise store_failure(error) from error

    @contextmanager
    def hold(self, session: SessionId) -> Generator[HeldSession]:
        """See `SessionWriter.hold`. For a session that is not there yet, its directory is made."""
        held: HeldSession | None = None
        try:
            with told(session):
                self._make_dirs(session)
                with self._locks.hold(session):
                    held = HeldSession(self._settled(session, under_lock=True))
                    yield held
        finally:
            if held is not None:
                held.advance(None)

    def append(self, witness: Witness, plan: AppendPlan, stamps: Stamps) -> Session:
        """See `SessionWriter.append`."""
        witness = own_witness(witness)
        known = witness.verified()
        if known.session != plan.session:
            raise WitnessReleasedError("a witness of another session")
        segment = stamp(plan, next_index=known.facts.next_index, stamps=stamps)
        if any(is_key_event(event) and event.dedupe_key in known.facts.dedupe_keys for event in segment.events):
            return known.facts
        group = group_of(
            known.session,
            manifest_index=known.manifest_lines,
            segment=segment.data,
            events=segment.events,
            pinned=known.pins,
        )
        after = taken_in(known, StoredSegment(data=segment.data, events=segment.events, group=group))
        with told(known.session):
            content = self._write(known, plan, segment)
            self._attest(known, group)
        self._finish(witness, after, content)
        return after.facts

    def restore(self, witness: Witness, history: Sequence[Sequence[Event]], contents: Contents) -> Session:
        """See `SessionWriter.restore`.

        The order is that of an append with all of the history as its one group: content and segments, their
        directories, and then the manifest, which gets its name whole.
        """
        witness = own_witness(witness)
        known = witness.verified()
        if known.manifest_lines:
            raise BrokenHistoryError("a session that has history is not restored")
        after, segments, manifest = unread(known.session), list[_Placed](), list[bytes]()
        for events, (data, group) in zip(history, attested(known.session, history), strict=True):
            after = taken_in(after, StoredSegment(data=data, events=tuple(events), group=group))
            segments.append(_placed(known.session, events, data))
            manifest.append(group.data)
        content = [(layout.snapshot(ref), ref, data) for ref, data in contents.snapshots.items()]
        content += [(layout.pinned_workflow(one), one, data) for one, data in contents.workflows.items()]
        content += [(layout.artifact(digest), digest, data) for digest, data in contents.artifacts.items()]
        with told(known.session):
            self._put(known, content, segments)
            with self._cutting_back(known):
                write_durably(self._files, layout.manifest(known.session), b"".join(manifest))
                self._files.sync_dir(layout.session_dir(known.session), full=True)
        self._finish(witness, after, content)
        return after.facts

    def _write(self, known: Verified, plan: AppendPlan, segment: Segment) -> list[_Content]:
        """Put everything in place that the group will attest; return the content files now durable."""
        cut_torn_tail(self._files, known.session, known.manifest_bytes)
        content: list[_Content] = [(layout.snapshot(ref), ref, data) for ref, data in plan.snapshots]
        content += [(layout.artifact(digest), digest, data) for digest, data in plan.artifacts]
        if plan.workflow is not None:
            workflow_hash, data = plan.workflow
            content.append((layout.pinned_workflow(workflow_hash), workflow_hash, data))
        self._put(known, content, [_placed(plan.session, segment.events, segment.data)])
        return content

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

    def _attest(self, known: Verified, group: Group) -> None:
        """Write the group."""
        path = layout.manifest(known.session)
        with self._cutting_back(known):
            self._files.append(path, group.data)
            self._files.sync(path, full=True)

    @contextmanager
    def _cutting_back(self, known: Verified) -> Generator[None]:
        """Cut the manifest back to what it was if a write of it fails at any byte (D10)."""
        path = layout.manifest(known.session)
        try:
            yield
        except OSError:
            try:
                self._files.truncate(path, known.manifest_bytes)
                self._files.sync(path, full=True)
            except OSError:
                # Nobody can say what the disk holds now; only a fresh reading after a restart can.
                self._refused.add(known.session)
            raise

    def _finish(self, witness: HeldSession, after: Verified, content: Sequence[_Content]) -> None:
        """Remember what became true."""
        for path, _, _ in content:
            self._content.mark_synced(path)
        self._remember(after)
        witness.advance(after)

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

    def _settled(self, session: SessionId, *, under_lock: bool = False) -> Verified:
        """Return what is verified now, made durable if another process wrote the last of it.

        Raises:
            DamageError: It is damaged, and stayed so when read again.
            OSError: The disk failed.
        """
        if session in self._refused:
            raise StoreFailureError(FailureKind.FAILED, "an earlier write of this session could not be undone")
        with self._mutex_of(session):
            with self._mutex:
                known = self._known.get(session)
            verified = self._read(known or unread(session), under_lock=under_lock)
            if known is None or verified.last_group != known.last_group:
                self._sync_last(verified)
            self._remember(verified)
            return verified

    def _read(self, known: Verified, *, under_lock: bool) -> Verified:
        """Follow the manifest from what is known; what looks damaged is read again from its start (D11)."""
        session, begin = known.session, iter((known,))
        hold = nullcontext if under_lock else partial(hold_if_made, self._files, self._locks, session)
        return surely_read(lambda: follow(self._files, next(begin, unread(session))), hold)

    def _sync_last(self, verified: Verified) -> None:
        """Sync the last group and what it stands on: its writer may have been killed before it did (D10)."""
        if not verified.manifest_lines:
            return
        dirs = {layout.session_dir(verified.session), layout.SESSIONS, ""}
        for path in verified.last_content:
            # A missing file is found, and named, by whoever reads it.
            if self._files.stat(path) is not None:
                self._files.sync(path)
                dirs.add(layout.parent(path))
        for path in sorted(dirs):
            self._files.sync_dir(path, full=True)
        self._files.sync(layout.manifest(verified.session), full=True)

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


def _mark(stat: FileStat) -> LogMark:
    return LogMark((stat.size, stat.inode, stat.modified_s))


def _placed(session: SessionId, events: Sequence[Event], data: bytes) -> _Placed:
    return layout.segment(session, events[0].event_index, events[-1].event_index), data


def cut_torn_tail(files: FileOps, session: SessionId, manifest_bytes: int) -> None:
    """Remove what an interrupted append left after the verified bytes, or the next group would be glued to it.

    Only under the session's lock.

    Raises:
        OSError: The disk failed.
    """
    path = layout.manifest(session)
    stat = files.stat(path)
    assert stat is not None, "the hold made the manifest"
    if stat.size != manifest_bytes:
        files.truncate(path, manifest_bytes)
        files.sync(path, full=True)
