"""Misspelt and partial searches over stored sessions: the meant run comes first, and never silently another."""

import pytest
from tests.support.searches import goals, searches

from interlock.service.report.run_list import Row, best_matches, newest_first, rows_of, texts_of
from interlock.service.run.summaries import read_listing
from interlock.testing.harness import Harness, linear_workflow

SESSIONS, SEARCHES, OFFERED = 500, 200, 40


@pytest.fixture(scope="module")
def harness() -> Harness:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    for goal in goals()[:SESSIONS]:
        harness.start("team.ship", goal=goal)
    return harness


@pytest.mark.inv("RES-11", "RES-5")
def test_of_200_searches_over_500_stored_sessions_95_in_100_list_the_meant_run_first(harness: Harness) -> None:
    listed = read_listing(harness.store, harness.ports.read.plans)
    rows: list[Row] = newest_first(row for session in listed.sessions for row in rows_of(session))
    assert len(rows) == SESSIONS
    texts = [texts_of(row) for row in rows]
    right = silently_wrong = 0
    for meant, asked in searches(goals(), SEARCHES):
        found, closeness = best_matches(rows, texts, asked)
        right += bool(found) and found[0].run.goal == meant
        is_sure = closeness is not None and closeness.name in ("WORDS", "BEGINNINGS")
        silently_wrong += is_sure and meant not in [row.run.goal for row in found]
    assert right >= SEARCHES * 95 // 100
    assert silently_wrong == 0


@pytest.mark.inv("RES-11", "RES-5")
def test_resume_offers_the_meant_run_first_among_500_stored_sessions(harness: Harness) -> None:
    right = 0
    for meant, asked in searches(goals(), OFFERED):
        offered = harness.call("resume_session", {"query": asked})["candidates"]
        right += bool(offered) and offered[0]["run"]["goal"] == meant
    assert right >= OFFERED * 95 // 100
