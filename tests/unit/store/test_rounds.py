"""Rounds of syncs: all calls end before the round does, and it raises the first error."""

import os
import threading
from functools import partial
from pathlib import Path

import pytest

from interlock.kernel.turns import TURNS
from interlock.store.local.rounds import BySpeed, at_once
from interlock.testing.harness import Harness, linear_workflow


@pytest.mark.inv("APP-2")
def test_the_calls_of_a_round_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def call() -> None:
        meeting.wait()

    at_once([call] * 3)
    assert not meeting.broken


@pytest.mark.inv("APP-2")
@pytest.mark.parametrize("failing", [{0}, {1}, {2}, {1, 2}, {0, 2}], ids=str)
def test_after_a_failure_no_call_is_left_running_and_the_first_error_counts(failing: set[int]) -> None:
    ended: list[int] = []
    begun = threading.Barrier(3, timeout=10)

    def call(number: int) -> None:
        begun.wait()
        ended.append(number)
        if number in failing:
            raise OSError(number, "made to fail")

    with pytest.raises(OSError, match="made to fail") as caught:
        at_once([lambda number=number: call(number) for number in range(3)])
    assert caught.value.errno == min(failing)
    assert sorted(ended) == [0, 1, 2]


def test_a_round_without_calls_is_nothing() -> None:
    at_once([])


@pytest.mark.inv("APP-2")
def test_only_a_slow_disk_gets_the_calls_of_a_round_at_the_same_time() -> None:
    """One slow call among fast ones has waited for something else than the disk."""
    clock = [0.0]
    apart = BySpeed(lambda: clock[0])
    threads = list[str]()

    def sync(seconds: float) -> None:
        threads.append(threading.current_thread().name)
        clock[0] += seconds

    def round_of(*seconds: float) -> bool:
        """Make a round; say whether another thread took part."""
        threads.clear()
        apart([partial(sync, one) for one in seconds])
        return len(set(threads)) > 1

    assert not round_of(0.005, 0.005)
    assert round_of(0.005, 0.0)
    assert not round_of(0.0, 0.005)
    assert not round_of(0.0, 0.0)
    assert not round_of()


@pytest.mark.inv("APP-2")
def test_the_error_of_a_round_one_after_another_is_that_of_the_call() -> None:
    def fail() -> None:
        raise OSError("made to fail")

    with pytest.raises(OSError, match="made to fail"):
        BySpeed()([fail])


@pytest.mark.inv("SRV-18")
def test_others_compute_while_a_round_waits_for_the_disk() -> None:
    found = list[bool]()

    def compute() -> None:
        found.append(TURNS.take() and TURNS.give())

    def sync() -> None:
        thread = threading.Thread(target=compute, daemon=True)
        thread.start()
        thread.join(10)

    with TURNS.computing():
        BySpeed()([sync])
        assert TURNS.give(), "after the round it continues in its turn"
        TURNS.take()
    assert found == [True]


@pytest.mark.inv("SRV-18")
def test_others_compute_during_each_sync_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, had_turn = os.fsync, list[bool]()

    def watched(handle: int) -> None:
        had_turn.append(TURNS.give() and TURNS.take())
        sync(handle)

    harness = Harness.on_disk(tmp_path, linear_workflow("test.turns", "one", "two"))
    monkeypatch.setattr(os, "fsync", watched)
    with TURNS.computing():
        answer = harness.start("test.turns")
        harness.advance(answer, "The notes of the first step.")
    assert had_turn
    assert not any(had_turn)
