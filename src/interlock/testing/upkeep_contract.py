"""The contract of every store's maintenance: retention pins, the check of a whole store, mark and sweep.

The suite sets no clock: its sweeps use a time long after the last write.
"""

from collections.abc import Collection

from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.kernel.frozen import replace
from interlock.kernel.ids import SessionId, derived_id
from interlock.record.append_plan import AppendPlan
from interlock.store.ports.errors import ContentDamagedError, SessionsMissingError, TooManyPinsError, UpkeepBusyError
from interlock.store.ports.maintenance import CONTENT, Due, GcSnapshot, Retention, Skipped, Swept
from interlock.store.ports.store import Store
from interlock.store.retention import due
from interlock.testing.store_contract import Suite, contents_of, copy_session, expects
from interlock.views.session import Session

_DAY_S = 24 * 3600.0
_TTL_S = 90 * _DAY_S
_SWEEPS_MAX = 3
"""The first sweep removes an expired session; the second one, at the latest, removes its content."""
_OTHER = SessionId(derived_id("sess", "other"))


class UpkeepContract(Suite):
    """The contract of maintenance. A port cannot cause damage, so each store has its own tests of that."""

    def test_everything_that_is_stored_is_marked_and_nothing_is_due_while_it_is_young(self) -> None:
        """A session refers to all stored content; the snapshot of an empty store is empty."""
        store, (start, advance) = self.make_store(), self.plans()
        assert store.upkeep.mark() == GcSnapshot()
        self._append(store, start, advance)
        seen: list[tuple[int, int]] = []
        upkeep = self.reopen(store).upkeep
        marked = upkeep.mark(lambda done, total: seen.append((done, total)))
        (session,) = marked.sessions
        assert session.session == start.session
        assert session.bytes > 0
        content = {item.name: item.kind for item in marked.items}
        assert set(content) == session.content
        assert set(content.values()) == CONTENT
        assert all(item.bytes > 0 for item in marked.items)
        assert seen[-1] == (1, 1)
        assert due(marked, Retention(now_s=_newest_s(marked), ttl_s=_TTL_S)) == Due()
        overview = upkeep.overview()
        assert (overview.attested, overview.unsound, overview.debris) == ((start.session,), (), ())
        assert upkeep.damaged_content(marked) == upkeep.obstacles() == upkeep.held_sessions() == ()

    def test_a_sweep_takes_what_its_marks_make_due_and_later_ones_leave_nothing(self) -> None:
        """Content that a pinned session shares stays; without the pin everything is removed, and the id is free."""
        store, (start, advance) = self.make_store(), self.plans()
        whole = self._append(store, start, advance)
        kept = copy_session(store, start.session, _OTHER, contents_of(start, advance))
        marked = store.upkeep.mark()
        retention = _later(marked, store.upkeep.retention_pins.keep([_OTHER]))
        expected = due(marked, retention)
        assert [one.session for one in expected.sessions] == [start.session]
        assert _swept(store, marked, retention) == Swept(taken=expected)
        again = self.reopen(store)
        assert (again.sessions(), again.load(start.session)) == ((_OTHER,), None)
        assert again.log_versions().keys() == {_OTHER}
        assert again.history(_OTHER) == kept
        for ref, data in start.snapshots:
            assert again.snapshot(ref).to_bytes() == data
        again.upkeep.retention_pins.unkeep([_OTHER])
        for _ in range(_SWEEPS_MAX):
            marked = again.upkeep.mark()
            _swept(again, marked, _later(marked))
        empty = self.reopen(again)
        assert empty.upkeep.mark() == GcSnapshot()
        assert empty.sessions() == ()
        for digest, _ in advance.artifacts:
            with expects(ContentDamagedError):
                empty.artifact(digest)
        assert self._append(empty, start, advance) == whole

    def test_without_a_lock_no_session_and_no_content_is_removed(self) -> None:
        """Only the trash and temporary files are deleted to free space: sessions and content stay."""
        store, plans = self.make_store(), self.plans()
        whole = self._append(store, *plans)
        marked = store.upkeep.mark()
        store.upkeep.free_space(marked, _later(marked))
        assert self.reopen(store).load(whole.session) == whole
        assert self.reopen(store).upkeep.mark() == marked

    def test_a_session_that_is_held_is_named_and_left_to_the_next_sweep(self) -> None:
        """Writers have priority: a sweep does not wait for a session, and removes it when it is free."""
        store, (start, advance) = self.make_store(), self.plans()
        whole = self._append(store, start, advance)
        marked = store.upkeep.mark()
        with store.hold(start.session):
            assert self.reopen(store).upkeep.held_sessions() == (start.session,)
            swept = _swept(store, marked, _later(marked))
        assert swept == Swept(taken=Due(), skipped=(Skipped(session=start.session, why="busy"),))
        assert self.reopen(store).upkeep.held_sessions() == ()
        assert self.reopen(store).load(start.session) == whole
        assert [one.session for one in _swept(store, marked, _later(marked)).taken.sessions] == [start.session]

    def test_a_session_that_changed_since_it_was_marked_stays_with_all_that_it_refers_to(self) -> None:
        """The snapshot alone is no reason to remove anything."""
        store, (start, advance) = self.make_store(), self.plans()
        self._append(store, start)
        marked = store.upkeep.mark()
        stamps = replace(self.stamps(), recorded_at="2222-01-01T00:00:00.000Z")
        with store.hold(start.session) as lock:
            advanced = store.append(lock, advance, stamps)
        retention = _later(store.upkeep.mark())
        assert _swept(store, marked, retention).skipped == (Skipped(session=start.session, why="changed"),)
        again = self.reopen(store)
        assert again.load(start.session) == advanced
        for ref, data in (*start.snapshots, *advance.snapshots):
            assert again.snapshot(ref).to_bytes() == data
        assert start.workflow is not None
        assert again.workflow_bytes(start.workflow[0]) == start.workflow[1]

    def test_a_session_that_was_created_after_the_snapshot_stays(self) -> None:
        """A sweep removes only what is in the snapshot, even if by its clock everything is old."""
        store, plans = self.make_store(), self.plans()
        marked = store.upkeep.mark()
        whole = self._append(store, *plans)
        assert _swept(store, marked, _later(store.upkeep.mark())) == Swept(taken=Due())
        assert self.reopen(store).load(whole.session) == whole

    def test_only_an_existing_session_is_pinned_and_the_pins_outlive_the_store(self) -> None:
        """A pin of a missing session is refused and changes nothing; removing a missing pin is no error."""
        store, (start, _) = self.make_store(), self.plans()
        pins = store.upkeep.retention_pins
        assert pins.kept() == pins.unkeep([start.session]) == frozenset()
        self._append(store, start)
        assert pins.keep([start.session]) == pins.keep([start.session]) == {start.session}
        with expects(SessionsMissingError):
            pins.keep([start.session, _OTHER])
        again = self.reopen(store).upkeep.retention_pins
        assert again.kept() == again.unkeep([_OTHER]) == {start.session}
        assert again.unkeep([start.session]) == self.reopen(store).upkeep.retention_pins.kept() == frozenset()

    def test_several_missing_sessions_are_refused_and_all_named(self) -> None:
        """One or several missing sessions are refused, alone or together with an existing one."""
        store, (start, _) = self.make_store(), self.plans()
        self._append(store, start)
        missing = _made_up(2)
        for more in ((), (start.session,)):
            with expects(SessionsMissingError) as refused:
                store.upkeep.retention_pins.keep([*more, *missing])
            assert isinstance(refused.raised, SessionsMissingError)
            assert frozenset(refused.raised.sessions) == frozenset(missing)
            assert self.reopen(store).upkeep.retention_pins.kept() == frozenset()

    def test_no_more_sessions_are_kept_than_there_may_be(self) -> None:
        """Existing pins count. The limit itself is permitted: sessions are searched for only within it."""
        store, (start, _) = self.make_store(), self.plans()
        self._append(store, start)
        pins = store.upkeep.retention_pins
        assert pins.keep([start.session]) == {start.session}
        many = _made_up(RETENTION_PINS_MAX)
        for asked, error in ((many, TooManyPinsError), ((start.session, *many[1:]), SessionsMissingError)):
            with expects(error):
                pins.keep(asked)
            assert self.reopen(store).upkeep.retention_pins.kept() == {start.session}

    def test_only_one_process_at_a_time_collects_or_sets_pins(self) -> None:
        """A second one is refused while the first is at work, and not after that."""
        store, (start, _) = self.make_store(), self.plans()
        self._append(store, start)
        other = self.reopen(store).upkeep
        with store.upkeep.upkeep_lock(), expects(UpkeepBusyError):
            other.retention_pins.keep([start.session])
        assert other.retention_pins.keep([start.session]) == {start.session}
        with other.upkeep_lock():
            assert other.retention_pins.kept() == {start.session}

    def _append(self, store: Store, *plans: AppendPlan) -> Session:
        with store.hold(plans[0].session) as lock:
            for plan in plans[:-1]:
                store.append(lock, plan, self.stamps())
            return store.append(lock, plans[-1], self.stamps())


def _made_up(count: int) -> tuple[SessionId, ...]:
    """Return ids of sessions that no store holds."""
    return tuple(SessionId(derived_id("sess", "made up", number)) for number in range(count))


def _newest_s(marked: GcSnapshot) -> float:
    """Return the latest time at which anything of a store was written."""
    sessions = (*marked.sessions, *(one.session for one in marked.trashed))
    return max((*(one.last_activity_s for one in sessions), *(one.modified_s for one in marked.items)), default=0)


def _later(marked: GcSnapshot, kept: Collection[SessionId] = ()) -> Retention:
    """Return the retention at a time when everything in the snapshot is old and every session has expired."""
    return Retention(now_s=_newest_s(marked) + 2 * _TTL_S, ttl_s=_TTL_S, kept=frozenset(kept))


def _swept(store: Store, marked: GcSnapshot, retention: Retention) -> Swept:
    with store.upkeep.upkeep_lock():
        return store.upkeep.sweep(marked, retention)
