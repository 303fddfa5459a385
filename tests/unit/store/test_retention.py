"""The rules of retention that every kind of store shares."""

import pytest
from tests.support.crash import session_id

from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.kernel.ids import SessionId
from interlock.store.ports.errors import TooManyPinsError
from interlock.store.ports.maintenance import GcSession, GcSnapshot, Retention
from interlock.store.retention import add_pins, due, seconds_of


@pytest.mark.inv("GC-1")
@pytest.mark.parametrize(
    ("recorded_at", "expected"),
    [("2026-01-01T00:00:00.000Z", 1_767_225_600.0), (None, 0.0), ("soon", 0.0)],
)
def test_a_recorded_time_counts_from_the_epoch_and_what_is_no_time_is_the_oldest(
    recorded_at: str | None, expected: float
) -> None:
    assert seconds_of(recorded_at) == expected


@pytest.mark.inv("GC-2")
def test_as_many_sessions_are_kept_as_marks_are_for_and_no_more() -> None:
    most = frozenset(session_id(str(number)) for number in range(RETENTION_PINS_MAX))
    assert add_pins(most, list(most)[:2]) == most
    with pytest.raises(TooManyPinsError):
        add_pins(most, [session_id("one more")])


@pytest.mark.inv("GOAL-9")
def test_a_claimed_session_stays_as_long_as_one_that_claims_it_directly_or_through_others() -> None:
    names = [session_id(name) for name in "abcd"]
    young, middle, old, alone = names

    def marked(session: SessionId, last_s: float, *claims: SessionId) -> GcSession:
        return GcSession(
            session=session, last_activity_s=last_s, bytes=1, content=frozenset(), claims=frozenset(claims)
        )

    def gone(last_s: float) -> set[SessionId]:
        sessions = (marked(young, last_s, middle), marked(middle, 0, old), marked(old, 0), marked(alone, 0, alone))
        found = due(GcSnapshot(sessions=sessions), Retention(now_s=100, ttl_s=10))
        return {one.session for one in found.sessions}

    assert gone(95) == {alone}
    assert gone(0) == {*names}
