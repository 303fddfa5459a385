"""The rules of retention that every kind of store shares."""

import pytest
from tests.support.crash import session_id

from interlock.kernel.budgets import RETENTION_PINS_MAX
from interlock.store.ports.errors import TooManyPinsError
from interlock.store.retention import add_pins, seconds_of


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
