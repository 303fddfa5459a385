"""The latest run, found from the times at which logs were written, is the first run of a list."""

import os
from itertools import permutations
from pathlib import Path

import pytest
from tests.support.history import MovingClock

from interlock.kernel.ids import SessionId
from interlock.service.clock import moment_of
from interlock.service.report.latest_run import read_latest_run
from interlock.service.report.run_list import newest_first, rows_of
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import read_listing
from interlock.store.local.store import LocalStore
from interlock.store.ports.reader import ContentCheck
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")
HOUR_S = 3600
MINUTE_MS = 60_000


class CountingStore(LocalStore):
    """Notes whose summary is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.summaries = list[SessionId]()

    def cached_summary(self, session: SessionId, check: ContentCheck | None = None) -> bytes | None:
        """Return the summary after noting the session."""
        self.summaries.append(session)
        return super().cached_summary(session, check)


def write_time(root: Path, session: SessionId, at_s: float) -> None:
    os.utime(root / "sessions" / session / "manifest.jsonl", (at_s, at_s))


@pytest.mark.inv("HIS-3")
def test_the_latest_run_is_the_first_of_the_list_and_older_logs_are_not_read(tmp_path: Path) -> None:
    clock = MovingClock()
    harness = Harness.on_disk(tmp_path, SHIP, clock=clock)
    starts = list[ToolResult]()
    for number in range(4):
        clock.now_ms += MINUTE_MS
        starts.append(harness.start("team.ship", goal=f"Goal {number}"))
    clock.now_ms += MINUTE_MS
    harness.advance(starts[1], None, output={"notesMarkdown": "Done."})
    store = CountingStore(tmp_path)
    plans = Plans(store)
    listed = read_listing(store, plans).sessions
    first = newest_first(row for one in listed for row in rows_of(one))[0]
    assert first.run.goal == "Goal 1"
    sessions = [one.session for one in listed]
    # In a copy, all logs are written after all activity, in any order.
    for order in permutations(range(len(sessions))):
        for session, place in zip(sessions, order, strict=True):
            write_time(tmp_path, session, 4_000_000_000 + place)
        assert read_latest_run(store, plans) == first
    for one in listed:
        late_s = 0 if one.session == first.session else HOUR_S
        write_time(tmp_path, one.session, (moment_of(one.last_at) or 0) / 1000 - late_s)
    store.summaries.clear()
    assert read_latest_run(store, plans) == first
    assert store.summaries == [first.session]


@pytest.mark.inv("HIS-3")
def test_without_a_session_there_is_no_latest_run(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    assert read_latest_run(store, Plans(store)) is None
