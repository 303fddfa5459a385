"""One thread computes at a time, and none can hold up the others."""

import threading
from collections.abc import Callable

import pytest

from interlock.kernel.budgets.threads import TURN_S_MAX, TURNS_WAITED_MAX
from interlock.kernel.turns import Turns

pytestmark = pytest.mark.inv("SRV-18")
PATIENCE_S = 10


def in_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def elsewhere(act: Callable[[], bool]) -> bool:
    """Return what another thread finds."""
    found = list[bool]()
    in_thread(lambda: found.append(act())).join(PATIENCE_S)
    return found[0]


def has_turn(turns: Turns) -> bool:
    """Say whether this thread has the turn; it has it afterwards, too."""
    return turns.give() and turns.take()


def try_it(turns: Turns) -> bool:
    """Take the turn, if there is one to take, and give it back."""
    return turns.take() and turns.give()


def test_the_next_thread_computes_when_the_turn_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.kernel.turns.TURN_S_MAX", PATIENCE_S)
    turns, order = Turns(), list[str]()
    assert turns.take()

    def compute() -> None:
        with turns.computing():
            order.append("the other")

    other = in_thread(compute)
    other.join(TURN_S_MAX)
    order.append("this")
    assert turns.give()
    other.join(PATIENCE_S)
    assert order == ["this", "the other"]


def test_a_thread_that_waits_lets_others_compute_and_has_the_turn_afterwards() -> None:
    turns = Turns()
    with turns.computing():
        with turns.waiting():
            assert elsewhere(lambda: try_it(turns))
        assert has_turn(turns)
    assert not turns.give()


def test_a_block_within_a_block_keeps_the_turn_until_the_outer_one_ends() -> None:
    turns = Turns()
    with turns.computing():
        with turns.computing():
            assert has_turn(turns)
        assert has_turn(turns)
    assert elsewhere(lambda: try_it(turns))


def test_a_thread_without_the_turn_gives_nothing_away() -> None:
    turns = Turns()
    with turns.computing():
        assert not elsewhere(turns.give)
        assert has_turn(turns)
    with turns.waiting():
        assert elsewhere(lambda: try_it(turns))
    assert not turns.give(), "who waits without the turn has none afterwards"


def test_an_error_ends_a_turn() -> None:
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.computing():
        raise ZeroDivisionError
    assert elsewhere(lambda: try_it(turns))


def test_a_thread_that_computes_for_long_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    with turns.computing():
        assert not elsewhere(turns.take), "after a while it continues without the turn"
        # Only the first one waits for that long.
        monkeypatch.setattr("interlock.kernel.turns.TURN_S_MAX", 10 * PATIENCE_S)
        assert not elsewhere(turns.take)
        assert has_turn(turns)


def test_after_a_long_turn_threads_compute_by_turns_again() -> None:
    turns = Turns()
    with turns.computing():
        assert not elsewhere(turns.take)
    assert elsewhere(lambda: try_it(turns))
    with turns.computing():
        assert has_turn(turns)


def test_nobody_waits_for_more_than_a_few_turns_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, waits = Turns(), list[float]()

    class Overtaken:
        """A lock that another thread always takes first, each time for a turn of its own."""

        def acquire(self, *, timeout: float) -> bool:
            waits.append(timeout)
            turns._number += 1  # pyright: ignore[reportPrivateUsage]
            return False

    monkeypatch.setattr(turns, "_lock", Overtaken())
    assert not turns.take()
    assert waits == [TURN_S_MAX] * TURNS_WAITED_MAX
    with turns.waiting():
        pass
    assert not turns.give()


def test_of_many_threads_one_computes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.kernel.turns.TURN_S_MAX", PATIENCE_S)
    turns, inside, most = Turns(), list[int](), list[int]()

    def work() -> None:
        for _ in range(50):
            with turns.computing():
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                with turns.waiting():
                    pass
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [in_thread(work) for _ in range(8)]
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert most == [1] * 8 * 50 * 2
