"""Summaries that are cached after the answers: each session once for a batch, and all of them at the end."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.kernel.ids import SessionId
from interlock.service.run.summarize import LateSummaries
from interlock.testing.harness import Harness, linear_workflow

ONE, TWO = SessionId("sess_one"), SessionId("sess_two")
ABC = linear_workflow("test.abc", "a", "b", "c")


@pytest.mark.inv("RES-12")
def test_several_appends_of_a_session_cost_one_summary_and_closing_writes_what_is_due() -> None:
    written: list[SessionId] = []
    late = LateSummaries(write=written.append, delay_s=60)
    for session in (ONE, TWO, ONE, ONE):
        late.offer(session)
    late.close()
    assert sorted(written) == [ONE, TWO]


@pytest.mark.inv("RES-12")
def test_a_summary_comes_without_an_end_and_a_failure_ends_nothing() -> None:
    done = threading.Event()

    def write(session: SessionId) -> None:
        if session == ONE:
            raise OSError(5, "made to fail")
        done.set()

    late = LateSummaries(write=write, delay_s=0)
    late.offer(ONE)
    late.offer(TWO)
    assert done.wait(10)
    late.close()


def test_closing_without_an_offer_waits_for_nothing() -> None:
    LateSummaries(write=lambda _: None, delay_s=60).close()


@pytest.mark.inv("RES-4", "RES-12")
def test_before_a_late_summary_is_written_readers_find_the_current_state(tmp_path: Path) -> None:
    """The cached summary is one of an earlier log: its first line says so, and it is not used."""
    harness = Harness.on_disk(tmp_path, ABC)
    started = harness.start("test.abc")
    session = harness.session_of(started)
    offered: list[SessionId] = []
    late = LateSummaries(write=offered.append, delay_s=60)
    harness = replace(harness, ports=replace(harness.ports, late_summaries=late))
    harness.advance(started)
    assert harness.store.cached_summary(session) is None
    found = {one.session: one for one in harness.ports.read.listing().newest_first()}
    assert found[session].runs[0].number == 2
    late.close()
    assert offered == [session]
    with harness.ports.hold(session) as lock:
        assert lock.session is not None
        harness.ports.cache_summary(lock, lock.session)
    assert harness.store.cached_summary(session) is not None
