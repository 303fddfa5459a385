"""An event store keeps the order of appends, changes nothing, and accepts no work after the end."""

import threading
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.support.executions import ANN, event, execution_id

from interlock.operations.event_store import EventRefusedError, ExecutionEndedError, InMemoryEventStore
from interlock.views.executions.derive import derive_block_state
from interlock.views.executions.events import TERMINAL, ExecutionEvent, ExecutionEventType, is_later

TYPES: tuple[ExecutionEventType, ...] = get_args(ExecutionEventType)


@pytest.mark.inv("EXE-6")
@pytest.mark.parametrize("end", sorted(TERMINAL))
@pytest.mark.parametrize("kind", TYPES)
def test_after_its_end_an_execution_accepts_only_the_release_of_its_executor(
    end: ExecutionEventType, kind: ExecutionEventType
) -> None:
    store = InMemoryEventStore()
    for one in ("created", "started", end):
        store.append(event(one))
    before = store.get_events(execution_id("e"))
    if kind == "executor_released":
        store.append(event(kind))
        assert len(store.get_events(execution_id("e"))) == 4
    else:
        with pytest.raises(ExecutionEndedError, match=f"ended as {end}"):
            store.append(event(kind))
        assert store.get_events(execution_id("e")) == before
    assert derive_block_state(store.get_events(execution_id("e"))) == end


@pytest.mark.inv("EXE-1", "ADPT-1", "ADPT-2")
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(TYPES), st.integers(0, 3), st.integers(0, 2)),
        max_size=12,
    )
)
def test_a_store_behaves_like_a_list_that_refuses_work_after_the_end(
    appends: list[tuple[str, ExecutionEventType, int, int]],
) -> None:
    store, model = InMemoryEventStore(), dict[str, list[ExecutionEvent]](a=[], b=[])
    for name, kind, second, fraction in appends:
        one = event(kind, name, time=f"2026-01-01T00:00:0{second}.{fraction}Z")
        has_ended = any(earlier.event_type in TERMINAL for earlier in model[name])
        if has_ended and kind != "executor_released":
            with pytest.raises(ExecutionEndedError):
                store.append(one)
        else:
            store.append(one)
            model[name].append(one)
    after = "2026-01-01T00:00:01Z"
    for name, expected in model.items():
        assert store.get_events(execution_id(name)) == expected
        later = [one for one in expected if float(one.timestamp[17:-1]) > 1]
        assert store.get_events(execution_id(name), after) == later
        assert store.get_latest_event(execution_id(name)) == (expected[-1] if expected else None)


@pytest.mark.inv("ADPT-1")
def test_events_with_equal_times_keep_the_order_in_which_they_were_appended() -> None:
    store = InMemoryEventStore()
    first, second = event("created"), event("started")
    store.append(first)
    store.append(second)
    assert store.get_events(execution_id("e")) == [first, second]
    assert store.get_latest_event(execution_id("e")) == second


@pytest.mark.inv("ADPT-1")
def test_an_earlier_time_does_not_change_the_order() -> None:
    store = InMemoryEventStore()
    late = event("created", time="2026-01-02T00:00:00Z")
    early = event("started", time="2026-01-01T00:00:00Z")
    store.append(late)
    store.append(early)
    assert store.get_latest_event(execution_id("e")) == early


@pytest.mark.parametrize(
    ("time", "other", "expected"),
    [
        ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z", True),
        ("2026-01-01T00:00:00.50Z", "2026-01-01T00:00:00.5Z", False),
        ("2026-01-01T00:00:00.0Z", "2026-01-01T00:00:00Z", False),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00.999Z", True),
        ("2026-01-01T00:00:00.09Z", "2026-01-01T00:00:00.1Z", False),
    ],
)
def test_times_are_compared_with_their_fractions(time: str, other: str, expected: bool) -> None:  # noqa: FBT001 — a table
    assert is_later(time, other) is expected


@pytest.mark.inv("EXE-1")
def test_an_event_that_was_appended_is_neither_changed_nor_stored_twice() -> None:
    store, first = InMemoryEventStore(), event("created")
    store.append(first)
    store.append(ExecutionEvent.from_json(first.to_json()))
    assert store.get_events(execution_id("e")) == [first]
    with pytest.raises(EventRefusedError, match="another event"):
        store.append(first.model_copy(update={"payload": "changed"}))
    with pytest.raises(ValidationError):
        first.payload = "changed"
    store.get_events(execution_id("e")).clear()
    assert store.get_events(execution_id("e")) == [first]


@pytest.mark.inv("EXE-2")
def test_an_event_has_exactly_the_fields_of_the_model() -> None:
    one = event("progress", executor=ANN, payload={"any": [1, None]})
    fields = ["id", "timestamp", "execution_id", "event_type", "executor", "payload", "metadata"]
    assert [*one.to_json()] == fields
    assert ExecutionEvent.from_json(one.to_json()) == one
    assert [*ANN.to_json()] == ["type", "identifier", "metadata"]


@pytest.mark.parametrize("time", ["2026-01-01 00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00", ""])
def test_a_time_that_is_not_in_utc_is_refused(time: str) -> None:
    with pytest.raises(ValidationError):
        event("created", time=time)


@pytest.mark.inv("ADPT-5")
def test_threads_that_share_a_store_lose_no_event_and_end_an_execution_once() -> None:
    store, refused = InMemoryEventStore(), list[ExecutionEndedError]()

    def complete() -> None:
        for _ in range(50):
            store.append(event("executor_released"))
        try:
            store.append(event("completed"))
        except ExecutionEndedError as error:
            refused.append(error)

    threads = [threading.Thread(target=complete) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    kinds = [one.event_type for one in store.get_events(execution_id("e"))]
    assert (kinds.count("executor_released"), kinds.count("completed"), len(refused)) == (200, 1, 3)
