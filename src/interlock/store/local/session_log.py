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
"""

import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial

from interlock.kernel.budgets import SESSIONS_KEPT_MAX
from interlock.kernel.ids import SessionId
from interlock.record.append_plan import AppendPlan, Segment, Stamps, stamp
from interlock.record.events import Event, is_key_event
from interlock.record.manifest import Group, group_of
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles, write_durably
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks, hold_if_made
from interlock.store.local.reading import (
    DamageError,
    StoredSegment,
    Verified,
    follow,
    history_of,
    surely_read,
    taken_in,
    unread,
)
from interlock.store.ports import (
    FailureKind,
    SessionUnhealthyError,
    StoreFailureError,
    Witness,
    WitnessReleasedError,
)
from interlock.views.session import Session


class HeldSession:
    """The witness of this store: valid inside the `with` block that yielded it, for its session alone."""

    def __init__(self, verified: Verified) -> None:
        self._verified: Verified | None = verified

    @property
    def session(self) -> Session | None:
        """See `Witness.session`."""
        facts = self.verified().facts
        return facts if facts.next_index else None

    def verified(self) -> Verified:
        """Return what was verified under the lock.

        Raises:
            WitnessReleasedError: The hold has ended.
        """
        if self._verified is None:
            raise WitnessReleasedError("the session's hold has ended")
        return self._verified

    def advance(self, verified: Verified | None) -> None:
        """Go on with what an append made true; None ends the hold."""
        self._verified = verified


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
        try:
            facts = self._settled(session).facts
        except OSError as error:
            raise store_failure(error) from error
        return facts if facts.next_index else None

    def history(self, session: SessionId) -> tuple[tuple[Event, ...], ...]:
        """See `SessionReader.history`."""
        try:
            return history_of(self._files, self._settled(session))
        except DamageError as damage:
            raise _unhealthy(session, damage) from damage
        except OSError as error:
            raise store_failure(error) from error

    def sessions(self) -> tuple[SessionId, ...]:
        """See `SessionReader.sessions`."""
        try:
            names = (SessionId(name) for name in sorted(self._files.names(layout.SESSIONS)) if layout.is_session(name))
            return tuple(name for name in names if (stat := self._files.stat(layout.manifest(name))) and stat.size)
        except OSError as error:
            raise store_failure(error) from error

    @contextmanager
    def hold(self, session: SessionId) -> Generator[HeldSession]:
        """See `SessionWriter.hold`. For a session that is not there yet, its directory is made."""
        held: HeldSession | None = None
        try:
            self._make_dirs(session)
            with self._locks.hold(session):
                held = HeldSession(self._settled(session, under_lock=True))
                yield held
        except OSError as error:
            raise store_failure(error) from error
        finally:
            if held is not None:
                held.advance(None)

    def append(self, witness: Witness, plan: AppendPlan, stamps: Stamps) -> Session:
        """See `SessionWriter.append`."""
        if not isinstance(witness, HeldSession):
            raise WitnessReleasedError("not a witness of this store")
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
        try:
            written = self._write(known, plan, segment)
            self._attest(known, group)
        except OSError as error:
            raise store_failure(error) from error
        for path in written:
            self._content.mark_synced(path)
        self._remember(after)
        witness.advance(after)
        return after.facts

    def _write(self, known: Verified, plan: AppendPlan, segment: Segment) -> list[str]:
        """Put everything in place that the group will attest; return the content files now durable."""
        cut_torn_tail(self._files, known.session, known.manifest_bytes)
        content = [(layout.snapshot(ref), ref, data) for ref, data in plan.snapshots]
        content += [(layout.artifact(digest), digest, data) for digest, data in plan.artifacts]
        if plan.workflow is not None:
            workflow_hash, data = plan.workflow
            content.append((layout.pinned_workflow(workflow_hash), workflow_hash, data))
        dirs: set[str] = set()
        for path, digest, data in content:
            dirs |= self._content.put(path, digest, data)
        first, last = segment.events[0].event_index, segment.events[-1].event_index
        write_durably(self._files, layout.segment(plan.session, first, last), segment.data)
        dirs.add(layout.events_dir(plan.session))
        if not known.manifest_lines:
            dirs |= {layout.session_dir(plan.session), layout.SESSIONS, layout.WORKFLOWS, ""}
        for path in sorted(dirs):
            self._files.sync_dir(path, full=True)
        return [path for path, _, _ in content]

    def _attest(self, known: Verified, group: Group) -> None:
        """Write the group. If that fails at any byte, the manifest is cut back to what it was (D10)."""
        path = layout.manifest(known.session)
        try:
            self._files.append(path, group.data)
            self._files.sync(path, full=True)
        except OSError:
            try:
                self._files.truncate(path, known.manifest_bytes)
                self._files.sync(path, full=True)
            except OSError:
                # Nobody can say what the disk holds now; only a fresh reading after a restart can.
                self._refused.add(known.session)
            raise

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
            SessionUnhealthyError: It is damaged, and stayed so when read again.
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
        try:
            return surely_read(lambda: follow(self._files, next(begin, unread(session))), hold)
        except DamageError as damage:
            raise _unhealthy(session, damage) from damage

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


def _unhealthy(session: SessionId, damage: DamageError) -> SessionUnhealthyError:
    return SessionUnhealthyError(session=session, health=damage.health, where=damage.where, found=damage.found)
