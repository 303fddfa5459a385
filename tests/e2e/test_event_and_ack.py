"""A process that sends an event and one that acks the waiting step, at the same moment: one advance."""

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from tests.support.outside import WAITING
from tests.support.verify import unsound_below

from interlock.engine.outside import SentEvent
from interlock.kernel.ids import RunId, SessionId
from interlock.record.events import Actor, AdvanceRecordedEvent
from interlock.service.outside.receive import Arrival
from interlock.service.tools.send_event import EventReport, send_event
from interlock.testing.harness import CounterClock, Harness

TIMEOUT_S = 60


def send_each(root: str, runs: list[tuple[str, str]], barrier: Barrier, results: Any) -> None:
    """Send the event of each run when the other process acks its step."""
    harness = Harness.on_disk(Path(root), WAITING, clock=CounterClock(1 << 40))
    found: list[bool] = []
    for session, run in runs:
        event = SentEvent.of_json({"event": "ci.finished", "id": "1", "fields": {"status": "green"}})
        how, actor = Arrival(via="command", assurance="observed"), Actor(type="human", identifier="command line")
        barrier.wait(TIMEOUT_S)
        report = send_event(harness.ports, (SessionId(session), RunId(run)), event, how, actor)
        found.append(isinstance(report, EventReport) and report.is_new)
    results.put(found)


@pytest.fixture
def spawning() -> Any:
    return multiprocessing.get_context("spawn")


@pytest.mark.inv("WORLD-3", "ADV-6")
@pytest.mark.parametrize("count", [40, pytest.param(1_000, marks=pytest.mark.soak)])
def test_an_event_and_an_ack_at_the_same_moment_are_one_advance(tmp_path: Path, spawning: Any, count: int) -> None:
    harness = Harness.on_disk(tmp_path, WAITING)
    starts = [harness.start("test.flow", goal=f"Run {number}") for number in range(count)]
    runs = [(str(one["run"]["sessionId"]), str(one["run"]["runId"])) for one in starts]
    waiting = [harness.advance(one) for one in starts]
    barrier, results = spawning.Barrier(2), spawning.Queue()
    process = spawning.Process(target=send_each, args=(str(tmp_path), runs, barrier, results))
    process.start()
    for one in waiting:
        barrier.wait(TIMEOUT_S)
        harness.advance(one, None)
    assert results.get(timeout=TIMEOUT_S) == [True] * count
    process.join(TIMEOUT_S)
    fresh = Harness.on_disk(tmp_path, WAITING)
    for one, (session, _) in zip(waiting, runs, strict=True):
        assert fresh.advance(one, None)["pending"]["stepId"] == "b"
        events = fresh.events(SessionId(session))
        advances = [event.data for event in events if isinstance(event, AdvanceRecordedEvent)]
        assert [len(one.took or ()) for one in advances] == [0, 1]
    assert unsound_below(tmp_path) == []
