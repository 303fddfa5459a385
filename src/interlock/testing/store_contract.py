"""The contract of every store: one suite, run against each implementation of the ports (HOUSE-2).

Subclass `StoreContract` and `UpkeepContract` (`interlock.testing.upkeep_contract`), return a store from `make_store`,
and let pytest collect the subclass. `reopen` returns a store over the same data without what the first one remembers,
if the data outlives the store.
"""

import threading
import time
from abc import ABC, abstractmethod
from typing import Self

from interlock.kernel.budgets import LOCK_WAIT_MS_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import replace
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash, derived_id
from interlock.kernel.uuids import derived_uuid
from interlock.record.append_plan import AppendPlan, EventDraft, Stamps
from interlock.record.content import Contents
from interlock.record.events import Event, copy_to_session
from interlock.record.payloads import SessionCreated
from interlock.store.ports.errors import (
    ContentDamagedError,
    DefinitionTakenError,
    Health,
    SessionBusyError,
    SessionLockReleasedError,
)
from interlock.store.ports.reader import NOTHING_OMITTED
from interlock.store.ports.store import Store
from interlock.views.session import BrokenHistoryError, Session

_WAIT_S_MAX = 5 * LOCK_WAIT_MS_MAX / 1000
"""The time after which every wait for a lock has ended, also on a busy machine."""


def expects(error: type[InterlockError]) -> "_Expected":
    """Return a context in which an error of this kind must be raised."""
    return _Expected(error)


class _Expected:
    """Checks that a block raises an error."""

    def __init__(self, error: type[InterlockError]) -> None:
        self._error = error
        self.raised: BaseException | None = None

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, _: object) -> bool:
        """Swallow the expected error; fail without one."""
        assert kind is not None, f"{self._error.__name__} was not raised"
        self.raised = raised
        return issubclass(kind, self._error)


class _Forged:
    """A session lock that no store yielded."""

    session = None


class Suite(ABC):
    """What a suite needs from its subclass: a store, and plans, so that no suite needs the engine."""

    @abstractmethod
    def make_store(self) -> Store:
        """Return an empty store."""

    @abstractmethod
    def plans(self) -> tuple[AppendPlan, AppendPlan]:
        """Return a start and an advance of it, with content."""

    @abstractmethod
    def stamps(self) -> Stamps:
        """Return stamps with fresh event ids."""

    def reopen(self, store: Store) -> Store:
        """Return a store over the same data that remembers nothing; only the newest store is reopened."""
        return store


class StoreContract(Suite):
    """The contract of reading, appending, restoring and the key ring."""

    def test_what_was_appended_is_loaded_and_survives_reopening(self) -> None:
        """Append, load, reopen: the same session."""
        store, (start, advance) = self.make_store(), self.plans()
        assert store.load(start.session) is None
        with store.hold(start.session) as lock:
            assert lock.session is None
            started = store.append(lock, start, self.stamps())
            assert lock.session == started
            advanced = store.append(lock, advance, self.stamps())
        assert store.load(start.session) == advanced != started
        assert self.reopen(store).load(start.session) == advanced

    def test_content_is_read_back_as_it_was_given_and_missing_content_is_reported(self) -> None:
        """Snapshots, the pinned workflow and artifacts come back; a foreign digest is damage."""
        store, (start, advance) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
            store.append(lock, advance, self.stamps())
        again = self.reopen(store)
        for ref, data in (*start.snapshots, *advance.snapshots):
            assert again.snapshot(ref).to_bytes() == data
        assert start.workflow is not None
        assert again.workflow_bytes(start.workflow[0]) == start.workflow[1]
        for digest, data in advance.artifacts:
            assert again.artifact(digest) == data
        foreign = digest_of_bytes(b"foreign")
        for read in (
            lambda: again.snapshot(SnapshotRef(foreign)),
            lambda: again.workflow_bytes(WorkflowHash(foreign)),
            lambda: again.artifact(Digest(foreign)),
        ):
            with expects(ContentDamagedError):
                read()

    def test_a_plan_whose_key_event_is_recorded_changes_nothing(self) -> None:
        """A replayed plan yields the session as it is."""
        store, (start, advance) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
            first = store.append(lock, advance, self.stamps())
            assert store.append(lock, advance, self.stamps()) == first
            assert store.append(lock, start, self.stamps()) == first
        assert self.reopen(store).load(start.session) == first

    def test_any_other_duplicate_is_an_invariant_violation_that_writes_nothing(self) -> None:
        """A second `session_created` cannot be history."""
        store, (start, _) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            first = store.append(lock, start, self.stamps())
            again = AppendPlan(session=start.session, drafts=(EventDraft(data=SessionCreated()),))
            with expects(BrokenHistoryError):
                store.append(lock, again, self.stamps())
        assert self.reopen(store).load(start.session) == first

    def test_a_session_lock_is_rejected_after_its_hold_and_for_another_session(self) -> None:
        """A released lock and one of another session are rejected, and write nothing."""
        store, (start, _) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            pass
        with expects(SessionLockReleasedError):
            store.append(lock, start, self.stamps())
        other = SessionId(derived_id("sess", "other"))
        with store.hold(other) as foreign, expects(SessionLockReleasedError):
            store.append(foreign, start, self.stamps())
        with store.hold(start.session), expects(SessionLockReleasedError):
            store.append(lock, start, self.stamps())
        with store.hold(start.session) as genuine:
            forged = _Forged()
            assert genuine.session is forged.session
            with expects(SessionLockReleasedError):
                store.append(forged, start, self.stamps())
            with expects(SessionLockReleasedError):
                store.restore(forged, (), contents_of(start))
        assert self.reopen(store).load(start.session) is None
        assert self.reopen(store).load(other) is None

    def test_a_session_lock_has_no_session_after_its_hold(self) -> None:
        """However a hold ends, its session lock raises when its session is read."""
        store, (start, _) = self.make_store(), self.plans()
        with store.hold(start.session) as unused:
            assert unused.session is None
        with expects(BrokenHistoryError), store.hold(start.session) as failed:
            store.append(failed, start, self.stamps())
            raise BrokenHistoryError("raised by the caller")
        for released in (unused, failed):
            with expects(SessionLockReleasedError):
                _ = released.session

    def test_a_session_has_one_holder_and_another_waits_for_a_limited_time(self) -> None:
        """Through the same store and through another one, a second holder is refused until the first has ended."""
        store, (start, _) = self.make_store(), self.plans()
        stores = (store, self.reopen(store))
        with store.hold(start.session) as lock:
            for second in stores:
                assert _outcome_of_hold(second, start.session) == [start.session]
            started = store.append(lock, start, self.stamps())
        for second in stores:
            assert _outcome_of_hold(second, start.session) == [started]

    def test_two_open_stores_over_the_same_data_follow_each_other(self) -> None:
        """What one appends the other one reads, whatever it has read before."""
        store, (start, advance) = self.make_store(), self.plans()
        other = self.reopen(store)
        assert (other.load(start.session), other.history(start.session), other.sessions()) == (None, (), ())
        for writer, reader, plan in ((store, other, start), (other, store, advance)):
            with writer.hold(start.session) as lock:
                appended = writer.append(lock, plan, self.stamps())
            assert reader.load(start.session) == writer.load(start.session) == appended
            whole = writer.history(start.session)
            assert reader.history(start.session) == whole
            assert [one.events for one in reader.appends(start.session)] == [*whole]
            assert reader.appends(start.session)[-1].after == appended
            ends = [plan[-1].event_index + 1 for plan in whole]
            assert [reader.history(start.session, after=end) for end in ends] == [
                whole[at:] for at in range(1, len(whole) + 1)
            ]
            assert reader.log_versions() == writer.log_versions()
            assert reader.sessions() == (start.session,)

    def test_sessions_are_listed_by_id(self) -> None:
        """The order in which they were created does not matter."""
        store, (start, _) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
        ids = sorted(SessionId(derived_id("sess", name)) for name in ("b", "c", "d", "e"))
        for session in (ids[1], ids[3], ids[0], ids[2]):
            copy_session(store, start.session, session, contents_of(start))
        assert store.sessions() == self.reopen(store).sessions() == tuple(sorted((*ids, start.session)))
        assert all(map(store.is_stored, store.sessions()))
        assert not store.is_stored(SessionId(derived_id("sess", "none")))

    def test_an_unknown_session_has_no_history_and_a_settled_one_nothing_unfinished(self) -> None:
        """A session that is held but has no events is unknown, too. Appended and restored history is settled."""
        store, (start, advance) = self.make_store(), self.plans()
        other = SessionId(derived_id("sess", "other"))
        assert store.history(start.session) == ()
        with store.hold(start.session) as lock:
            assert store.history(start.session) == ()
            for plan in (start, advance):
                store.append(lock, plan, self.stamps())
                assert store.unfinished(start.session) is None
        assert (self.reopen(store).history(other), self.reopen(store).appends(other)) == ((), ())
        copy_session(store, start.session, other, contents_of(start, advance))
        for session in (start.session, other):
            assert store.unfinished(session) is None
            assert self.reopen(store).unfinished(session) is None

    def test_a_session_lock_of_another_store_is_rejected(self) -> None:
        """Two stores of one kind reject each other's session locks, and write nothing for them."""
        one, (start, advance) = self.make_store(), self.plans()
        other = self.make_store()
        with one.hold(start.session) as lock:
            one.append(lock, start, self.stamps())
            with expects(SessionLockReleasedError):
                other.append(lock, advance, self.stamps())
            with expects(SessionLockReleasedError):
                other.cache_summary(lock, b"of another store")
        with one.hold(SessionId(derived_id("sess", "other"))) as lock, expects(SessionLockReleasedError):
            other.restore(lock, (), contents_of(start))
        assert self.reopen(other).sessions() == ()
        assert not self.reopen(other).is_stored(start.session)

    def test_a_log_version_changes_with_every_append_and_with_nothing_else(self) -> None:
        """A reader sees by the log version alone whether a session has new events."""
        store, (start, advance) = self.make_store(), self.plans()
        seen = [store.log_versions().get(start.session)]
        with store.hold(start.session) as lock:
            for plan in (start, advance):
                store.append(lock, plan, self.stamps())
                seen.append(store.log_versions()[start.session])
            store.append(lock, advance, self.stamps())
            store.cache_summary(lock, b"summary")
        assert store.log_versions()[start.session] == seen[-1]
        assert len(set(seen)) == len(seen)
        assert store.log_versions().keys() == {start.session}

    def test_a_cached_summary_is_of_the_current_log_or_is_none(self) -> None:
        """An append invalidates the cached summary; a released session lock caches nothing."""
        store, (start, advance) = self.make_store(), self.plans()
        assert store.cached_summary(start.session) is None
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
            store.cache_summary(lock, b"summary\nof a start")
            begun = store.log_versions()[start.session]
            assert store.cached_summary(start.session) == b"summary\nof a start"
            assert store.cached_summary_of(start.session, begun) == b"summary\nof a start"
            store.append(lock, advance, self.stamps())
            advanced = store.log_versions()[start.session]
            assert store.cached_summary(start.session) is None
            assert store.cached_summary_of(start.session, advanced) is None
            store.cache_summary(lock, b"summary of an advance")
            assert store.cached_summary_of(start.session, advanced) == b"summary of an advance"
            assert store.cached_summary_of(start.session, begun) is None
        with expects(SessionLockReleasedError):
            store.cache_summary(lock, b"too late")
        assert self.reopen(store).cached_summary(start.session) == b"summary of an advance"

    def test_sessions_do_not_know_of_each_other(self) -> None:
        """Reading one session does not show the events of another."""
        store, (start, _) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
        assert store.load(SessionId(derived_id("sess", "other"))) is None

    def test_all_of_a_healthy_session_is_salvaged_and_of_an_unknown_one_nothing(self) -> None:
        """Salvage of a healthy session returns what load and history return."""
        store, (start, advance) = self.make_store(), self.plans()
        assert store.salvage(start.session) is None
        with store.hold(start.session) as lock:
            assert store.salvage(start.session) is None
            store.append(lock, start, self.stamps())
            store.append(lock, advance, self.stamps())
        again = self.reopen(store)
        salvaged = again.salvage(start.session)
        assert salvaged is not None
        assert (salvaged.fold, salvaged.history) == (again.load(start.session), again.history(start.session))
        assert (salvaged.health, salvaged.code, salvaged.omitted) == (Health.HEALTHY, None, NOTHING_OMITTED)

    def test_a_restored_session_equals_the_original_and_can_continue(self) -> None:
        """Its fold, its groups and its content are the same in another store, and it can be appended to."""
        store, (start, advance) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
        started, history, contents = store.load(start.session), store.history(start.session), contents_of(start)
        other = self.make_store()
        with other.hold(start.session) as lock:
            assert other.restore(lock, history, contents) == started == lock.session
            assert other.append(lock, start, self.stamps()) == started
            advanced = other.append(lock, advance, self.stamps())
        again = self.reopen(other)
        assert again.load(start.session) == advanced != started
        assert again.history(start.session)[:1] == history
        for ref, data in contents.snapshots.items():
            assert again.snapshot(ref).to_bytes() == data
        for workflow_hash, data in contents.workflows.items():
            assert again.workflow_bytes(workflow_hash) == data

    def test_all_content_of_a_restored_session_is_read_back(self) -> None:
        """Snapshots, pinned workflows and artifacts are restored with the history."""
        store, plans = self.make_store(), self.plans()
        session, contents = plans[0].session, contents_of(*plans)
        with store.hold(session) as lock:
            for plan in plans:
                store.append(lock, plan, self.stamps())
        whole, history = store.load(session), store.history(session)
        other = self.make_store()
        with other.hold(session) as lock:
            assert other.restore(lock, history, contents) == whole
        again = self.reopen(other)
        assert (again.load(session), again.history(session)) == (whole, history)
        assert contents.artifacts
        for digest, data in contents.artifacts.items():
            assert again.artifact(digest) == data
        for ref, data in contents.snapshots.items():
            assert again.snapshot(ref).to_bytes() == data
        for workflow_hash, data in contents.workflows.items():
            assert again.workflow_bytes(workflow_hash) == data

    def test_nothing_is_restored_over_history_or_from_events_that_cannot_follow_each_other(self) -> None:
        """An existing session is unchanged; broken or foreign events write nothing."""
        store, (start, advance) = self.make_store(), self.plans()
        with store.hold(start.session) as lock:
            store.append(lock, start, self.stamps())
            advanced = store.append(lock, advance, self.stamps())
            history, contents = store.history(start.session), contents_of(start, advance)
            with expects(BrokenHistoryError):
                store.restore(lock, history, contents)
        assert self.reopen(store).load(start.session) == advanced
        other = self.make_store()
        with other.hold(start.session) as lock, expects(BrokenHistoryError):
            other.restore(lock, history[1:], contents)
        foreign = SessionId(derived_id("sess", "other"))
        with other.hold(foreign) as stranger, expects(BrokenHistoryError):
            other.restore(stranger, history, contents)
        with expects(SessionLockReleasedError):
            other.restore(lock, history, contents)
        again = self.reopen(other)
        assert (again.load(start.session), again.load(foreign), again.sessions()) == (None, None, ())

    def test_a_version_of_a_definition_keeps_its_first_content(self) -> None:
        """Publishing the same bytes again changes nothing; other bytes are refused, with everything beside them."""
        store = self.make_store()
        first, second = (derived_uuid("definition", 1), 1), (derived_uuid("definition", 2), 1)
        assert store.published() == {}
        store.publish({first: b"one"})
        store.publish({first: b"one"})
        with expects(DefinitionTakenError):
            store.publish({second: b"two", first: b"changed"})
        assert self.reopen(store).published() == {first: b"one"}
        store.publish({(first[0], 2): b"changed", second: b"two"})
        assert self.reopen(store).published() == {first: b"one", (first[0], 2): b"changed", second: b"two"}

    def test_a_key_ring_is_made_once_and_rotates_by_one(self) -> None:
        """The current key becomes the previous one; the earlier previous key is removed."""
        store = self.make_store()
        assert store.keys() is store.key_ring_status() is None
        other = self.reopen(store)
        first = store.ensure_keys()
        assert store.ensure_keys() == store.keys() == first
        for again in (other, self.reopen(store)):
            assert again.ensure_keys() == again.keys(fresh=True) == first
        second = store.rotate()
        assert second.previous == first.current != second.current
        assert store.rotate() == replace(second, current=store.ensure_keys().current, previous=second.current)
        assert len(store.ensure_keys().keys()) == 2  # noqa: PLR2004 — current and previous
        for again in (other, self.reopen(store)):
            assert again.ensure_keys() == store.keys()

    def test_the_status_of_a_key_ring_is_its_number_of_keys_and_its_permissions(self) -> None:
        """A new ring has one key, a rotated one two; only its user can read it, and no rotation is unfinished."""
        store = self.make_store()
        for keys, change in ((1, store.ensure_keys), (2, store.rotate), (2, store.rotate)):
            ring = change()
            facts = self.reopen(store).key_ring_status()
            assert facts is not None
            assert (facts.keys, len(ring.keys()), facts.has_unfinished_rotation) == (keys, keys, False)
            assert not (facts.mode | facts.directory_mode) & 0o077


def copy_session(
    store: Store, session: SessionId, copy: SessionId, contents: Contents
) -> tuple[tuple[Event, ...], ...]:
    """Restore a session under another id as well, and return the history of the copy."""
    copied = tuple(tuple(copy_to_session(event, copy) for event in events) for events in store.history(session))
    with store.hold(copy) as lock:
        store.restore(lock, copied, contents)
    return copied


def _outcome_of_hold(store: Store, session: SessionId) -> list[Session | SessionId | None]:
    """Hold a session from another thread, and return the session of its lock, or the id of the busy session.

    Raises:
        AssertionError: It still waits although every wait should have ended.
    """
    outcome = list[Session | SessionId | None]()

    def hold() -> None:
        try:
            with store.hold(session, since_s=time.monotonic() - _WAIT_S_MAX) as lock:
                outcome.append(lock.session)
        except SessionBusyError as error:
            outcome.append(error.session)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    thread.join(_WAIT_S_MAX)
    assert not thread.is_alive(), "the wait for a session that is held never ends"
    return outcome


def contents_of(*plans: AppendPlan) -> Contents:
    """Return the content of plans."""
    return Contents(
        snapshots={ref: data for plan in plans for ref, data in plan.snapshots},
        workflows=dict(plan.workflow for plan in plans if plan.workflow is not None),
        artifacts={digest: data for plan in plans for digest, data in plan.artifacts},
    )
