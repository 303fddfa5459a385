"""Lists for people: sorted by recorded times, filtered by what they show of a run; and the times themselves."""

from dataclasses import replace

import pytest
from tests.support.record import NODE, RUN, SESSION, WORKFLOW_HASH

from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.matching import Closeness
from interlock.service.clock import moment_of
from interlock.service.report.run_list import ListFilter, Row, best_matches, newest_first, texts_of
from interlock.views.resume import short_branch
from interlock.views.summary import RunSummary

TOLD = RunSummary(
    run=RUN,
    label="0001",
    workflow_id="team.ship",
    workflow_name="Ship it",
    goal="Ship 1.0",
    status="in_progress",
    verdict=None,
    end_reason=None,
    tip=NODE,
    step="Step a",
    number=1,
    total=2,
    nodes=1,
    notes="Built it",
    client=None,
    started_at=None,
    last_at="2025-01-01T00:00:00.000Z",
    last_index=3,
    branch="feature/login",
    head_sha=None,
    repo=None,
    repo_root=None,
    workflow_hash=WORKFLOW_HASH,
    source_kind="project",
    source_ref="ship.json",
)


def row(session: str, run: str, last_at: str | None) -> Row:
    return Row(session=SessionId(session), run=replace(TOLD, run=RunId(run), last_at=last_at))


@pytest.mark.inv("HIS-1")
def test_what_has_no_time_comes_last_and_equal_times_come_by_id() -> None:
    rows = [
        row("s1", "r1", None),
        row("s2", "r2", "2025-01-01T00:00:00.000Z"),
        row("s1", "r3", "2025-01-01T01:00:00+01:00"),
        row("s3", "r4", "not a time, and by its letters the newest"),
        row("s0", "r5", "2024-12-31T23:59:59.999Z"),
        row("s9", "r6", "2025-01-01T00:00:00.001Z"),
    ]
    expected = ["r6", "r3", "r2", "r5", "r1", "r4"]
    assert [one.run.run for one in newest_first(rows)] == expected
    assert [one.run.run for one in newest_first(reversed(rows))] == expected


@pytest.mark.inv("OBS-4")
def test_a_list_finds_a_run_by_the_whole_name_of_a_long_branch_and_by_its_beginning() -> None:
    name = "feature/" + "x" * 100
    run = replace(TOLD, branch=short_branch(name))
    for wanted, fits in ((name, True), (name[:60], True), (name + "-2", False)):
        assert ListFilter(branch=wanted).fits(run) == fits


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (ListFilter(), True),
        (ListFilter(statuses=frozenset({"in_progress", "blocked"})), True),
        (ListFilter(statuses=frozenset({"complete"})), False),
        (ListFilter(workflow="team.ship"), True),
        (ListFilter(workflow="team"), False),
        (ListFilter(branch="feature/login"), True),
        (ListFilter(branch="feature"), True),
        (ListFilter(branch="login"), False),
        (ListFilter(since_ms=1_735_689_600_000), True),
        (ListFilter(since_ms=1_735_689_600_001), False),
        (ListFilter(workflow="team.ship", branch="main"), False),
    ],
)
def test_a_run_fits_if_it_is_all_that_was_asked_for(wanted: ListFilter, *, fits: bool) -> None:
    assert wanted.fits(TOLD) is fits


def test_what_is_not_known_of_a_run_fits_no_wish_for_it() -> None:
    unknown = replace(TOLD, branch=None, last_at=None)
    assert not ListFilter(branch="main").fits(unknown)
    assert not ListFilter(since_ms=0).fits(unknown)


@pytest.mark.parametrize(
    ("query", "closeness"),
    [
        ("ship", Closeness.WORDS),
        ("SHIP built", Closeness.WORDS),
        ("team.ship", Closeness.WORDS),
        ("run 0001", Closeness.WORDS),
        ("ｓｈｉｐ", Closeness.WORDS),  # noqa: RUF001 — full width, as NFKC reads it
        (SESSION, Closeness.WORDS),
        ("shi", Closeness.BEGINNINGS),
        ("feat login", Closeness.BEGINNINGS),
        ("biult", Closeness.SLIPS),
        ("ship tomorrow", Closeness.SOME),
        ("…", None),
        ("elephant", None),
    ],
)
def test_a_run_is_found_by_what_is_printed_of_it(query: str, closeness: Closeness | None) -> None:
    result = Row(session=SESSION, run=TOLD)
    rows, found = best_matches([result], [texts_of(result)], query)
    assert (rows, found) == ([] if closeness is None else [result], closeness)


def test_runs_with_the_words_come_before_those_with_their_beginnings() -> None:
    rows = [replace_goal("r1", "shipping"), replace_goal("r2", "ship"), replace_goal("r3", "boat")]
    found, _ = best_matches(rows, [(row.run.goal or "",) for row in rows], "ship")
    assert [row.run.run for row in found] == ["r2", "r1"]


def replace_goal(run: str, goal: str) -> Row:
    return Row(session=SESSION, run=replace(TOLD, run=RunId(run), goal=goal))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T00:00:00.123Z", 123),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000),
        ("0001-01-01", -62_135_596_800_000),
        ("9999-12-31T23:59:59.999-23:59", 253_402_387_139_999),
        ("", None),
        (None, None),
        ("soon", None),
        ("2025-13-01", None),
    ],
)
def test_a_recorded_time_is_read_or_none(text: str | None, moment: int | None) -> None:
    assert moment_of(text) == moment
