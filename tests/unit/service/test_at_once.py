"""Calls at once, in threads: one advance, which every answer reports."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from interlock.testing.harness import CounterClock, Harness, ToolResult, linear_workflow

DOCUMENT = linear_workflow("test.abc", "a", "b", "c")


def at_once(*calls: Callable[[], ToolResult]) -> list[ToolResult]:
    """Make the calls in as many threads, all past a barrier before the first begins."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], ToolResult]) -> ToolResult:
        barrier.wait(10)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def kinds(harness: Harness, answer: ToolResult) -> list[str]:
    return [event.kind for event in harness.events(harness.session_of(answer))]


@pytest.mark.inv("ADV-6", "LOCK-1")
@pytest.mark.parametrize("round_", range(5))
def test_one_ack_from_eight_threads_is_one_advance_and_eight_equal_answers(harness: Harness, round_: int) -> None:
    first = harness.start("test.abc")
    answers = at_once(*[lambda: harness.advance(first, f"Round {round_}.")] * 8)
    assert all(answer == answers[0] for answer in answers)
    assert kinds(harness, first).count("advance_recorded") == 1


@pytest.mark.inv("ADV-6", "ADV-7")
def test_one_ack_with_two_payloads_records_one_and_tells_the_other(harness: Harness) -> None:
    first = harness.start("test.abc")
    one, two = at_once(lambda: harness.advance(first, "One."), lambda: harness.advance(first, "Two."))
    assert one.ack == two.ack
    assert sorted(map(tuple, (one.warnings, two.warnings))) == [(), ("REPLAY_PAYLOAD_IGNORED",)]
    kept = "One." if not one.warnings else "Two."
    assert kept in harness.rehydrate(one)["recap"]


@pytest.mark.inv("ADV-6", "LOCK-1", "TOK-7")
@pytest.mark.parametrize("_round", range(5))
def test_one_ack_in_several_processes_is_one_advance(tmp_path: Path, _round: int) -> None:
    """Harnesses share nothing but the directory, as processes do."""
    harnesses = [Harness.on_disk(tmp_path, DOCUMENT) for _ in range(4)]
    first = harnesses[0].start("test.abc")
    answers = at_once(*((lambda one=harness: one.advance(first)) for harness in harnesses))
    assert all(answer == answers[0] for answer in answers)
    assert kinds(harnesses[0], first).count("advance_recorded") == 1


@pytest.mark.inv("KEY-2")
def test_first_starts_racing_on_an_empty_directory_all_give_tokens_that_verify(tmp_path: Path) -> None:
    harnesses = [Harness.on_disk(tmp_path / "data", DOCUMENT, clock=CounterClock(at * 1_000)) for at in range(6)]
    answers = at_once(*((lambda one=harness: one.start("test.abc")) for harness in harnesses))
    assert not any(answer.is_error for answer in answers)
    fresh = Harness.on_disk(tmp_path / "data", DOCUMENT)
    assert [fresh.rehydrate(answer)["pending"]["stepId"] for answer in answers] == ["a"] * 6
    assert not list((tmp_path / "data" / "keys").glob("*.tmp"))


@pytest.mark.inv("LOCK-1")
def test_starts_and_advances_in_one_session_at_once_make_one_gapless_log(harness: Harness) -> None:
    first = harness.start("test.abc")
    session = harness.session_of(first)
    answers = at_once(
        lambda: harness.advance(first),
        *[lambda: harness.start("test.one", sessionId=session)] * 4,
        lambda: harness.rehydrate(first),
    )
    assert not any(answer.is_error for answer in answers)
    assert len({answer["run"]["runId"] for answer in answers[1:5]}) == 4
    events = harness.events(session)
    assert [event.event_index for event in events] == list(range(len(events)))
    assert len({event.dedupe_key for event in events}) == len(events)


@pytest.mark.inv("ADV-11")
def test_the_same_fork_token_used_twice_at_once_makes_one_branch(harness: Harness) -> None:
    first = harness.start("test.abc")
    harness.advance(first)
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    one, two = at_once(*[lambda: harness.advance(fork, "Otherwise.")] * 2)
    assert one == two
    assert kinds(harness, first).count("edge_created") == 2
