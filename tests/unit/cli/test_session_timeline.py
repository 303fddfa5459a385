"""The timeline: one entry for each call that recorded anything, in the order of the log, in words."""

import sys

import pytest
from tests.support.flow import step
from tests.support.history import HOSTILE, MINUTE, Place, begun_at, checkpointed, label_of, redone
from tests.support.modes import NEVER_STOPS, with_artifacts

from interlock.service.clock import SystemClock
from interlock.store.git import GitAnchors
from interlock.testing.harness import Harness, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def whats(place: Place, *arguments: str) -> list[str]:
    return [entry["what"] for entry in place.run("timeline", *arguments, "--json").json()["entries"]]


@pytest.mark.inv("HIS-1")
def test_what_happened_is_reported_in_order_when_through_whom_and_with_what(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship", goal="Ship", context={"size": 1})
    place.later(1)
    verdict = {"kind": "team.verdict", "ok": True}
    output = {"notesMarkdown": "Built it.\nTwice.", "artifacts": [verdict]}
    second = harness.advance(first, None, output=output, context={"mode": "fast", "size": None})
    place.later(1)
    refused = harness.advance(second, None)
    checkpointed(harness, first, "Half of b.", client="claude-code")
    place.later(1)
    harness.advance(refused, "Did b.", preferences={"riskPolicy": "balanced"})
    place.later(1)
    redone(harness, first)
    label = label_of(first)
    times = [f"2025-01-01T00:0{minute}:00.000Z" for minute in range(5)]
    result = place.run("timeline").out.splitlines()
    assert [line for line in result if not line.startswith("         ")] == [
        f"{first['run']['sessionId']}: 26 events",
        f"    0  {times[0]} run {label}: started team.ship; next is step 1, Step a",
        f"    5  {times[1]} run {label}: completed step 1, Step a; next is step 2, Step b",
        f"   11  {times[2]} run {label}: was refused in step 2, Step b",
        f'   13  {times[2]} run {label} "claude-code": saved a checkpoint in step 2, Step b',
        f"   16  {times[3]} run {label}: completed step 2, Step b; the run is complete",
        f"   21  {times[4]} run {label}: redid step 1, Step a on a new branch; next is step 2, Step b",
    ]
    more = [line.strip() for line in result if line.startswith("         ")]
    assert "context: goal, size" in more or "context: size, goal" in more
    assert "notes: Built it. Twice." in more
    assert "context: -size, mode" in more or "context: mode, -size" in more
    assert any(line.startswith("artifact: application/json, 33 bytes, sha256:") for line in more)
    assert any(line.startswith("MISSING_REQUIRED_OUTPUT: The step 'Step b' needs notes") for line in more)
    assert "notes: Half of b." in more
    assert "preferences of the call: riskPolicy = balanced" in more


def test_a_decision_that_was_cut_says_where_all_of_it_is(place: Place) -> None:
    ways = [{"var": "mode", "equals": f"the way of number {number}"} for number in range(9)]
    document = linear_workflow(
        "team.long",
        step("a"),
        step("b", when={"or": ways}),
        step("c", when=ways[0]),
        inputs=[{"key": "mode", "type": "string", "description": "The mode."}],
    )
    harness = place.serving(document)
    harness.advance(harness.start("team.long", context={"mode": "the way of number 8"}), "Done.")
    lines = [line.strip() for line in place.run("timeline").out.splitlines() if "because: " in line]
    cut = next(line for line in lines if "(cut;" in line)
    node = cut.partition("explain ")[2].partition("`")[0]
    assert "the way of number 8" not in cut
    explained = place.run("explain", node).out
    assert "the way of number 8" in explained.partition("In short")[0]
    assert sum("(cut" in line for line in lines) == 1


def test_disclosures_observations_and_decisions_are_reported_with_what_they_came_with(place: Place) -> None:
    document = linear_workflow(
        "team.all",
        step("a"),
        step("b", when={"var": "mode", "equals": "fast"}),
        step("c"),
        capabilities={"web_browsing": "required"},
        inputs=[{"key": "mode", "type": "string", "description": "The mode."}],
    )
    harness = place.serving(document)
    first = begun_at(harness, GitAnchors(branch="main")).start(
        "team.all", preferences=NEVER_STOPS, context={"mode": "slow"}
    )
    probe = {"kind": "wr.capability_observation", "capability": "web_browsing", "status": "unavailable"}
    harness.advance(harness.advance(first, None, output=with_artifacts(probe)), None)
    more = [line for entry in place.run("timeline", "--json").json()["entries"] for line in entry["more"]]
    assert any(line.startswith("capability web_browsing: unavailable, by ") for line in more)
    assert any(line.startswith("gap, critical, missing_required_output: ") for line in more)
    assert any(line.startswith("because: ") for line in more)
    left = {"kind": "wr.workflow_divergence", "reason": "efficiency_skip", "summary": "Skipped it."}
    redone(harness, first, "Seen.", output=with_artifacts(probe, left))
    result = [line for entry in place.run("timeline", "--json").json()["entries"] for line in entry["more"]]
    assert "diverged, efficiency_skip: Skipped it." in result
    assert "git_branch: main" in result
    redone(harness, first, "Seen.", output=with_artifacts(probe | {"status": "available"}))
    more = place.run("timeline", "--last", "1", "--json").json()["entries"][0]["more"]
    assert any(line.startswith("resolved the gap gap_") for line in more)


@pytest.mark.inv("HIS-4")
def test_as_json_the_timeline_holds_every_event_as_it_is_stored(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    harness.advance(harness.advance(first), None)
    result = place.run("timeline", "--json").json()
    stored = [event.to_json() for event in harness.events(harness.session_of(first))]
    assert [event for entry in result["entries"] for event in entry["events"]] == stored
    assert result["events"] == len(stored)
    assert [(entry["events"][0]["eventIndex"], entry["events"][-1]["eventIndex"]) for entry in result["entries"]] == [
        (entry["first"], entry["last"]) for entry in result["entries"]
    ]


@pytest.mark.inv("HIS-1")
def test_a_long_timeline_comes_in_pages_that_leave_nothing_out(place: Place) -> None:
    harness = place.serving(linear_workflow("team.long", *(f"s{number}" for number in range(9))))
    answer = harness.start("team.long")
    while not answer["isComplete"]:
        answer = harness.advance(answer)
    whole = whats(place)
    assert len(whole) == 10
    paged, after = list[str](), "-1"
    for earlier in (0, 4, 8):
        result = place.run("timeline", "--limit", "4", "--after", after, "--json").json()
        assert result["earlier"] == earlier
        paged += [entry["what"] for entry in result["entries"]]
        after = str(result["entries"][-1]["last"])
    assert paged == whole
    assert place.run("timeline", "--limit", "4").out.splitlines()[-1] == f"  … 6 later: --after {_last(place, 4)}"
    shown = place.run("timeline", "--last", "3").out.splitlines()
    assert shown[1] == "  … 7 earlier"
    assert whats(place, "--last", "3") == whole[-3:]
    assert whats(place, "--last", "99") == whole
    assert whats(place, "--after", "9999") == []


def _last(place: Place, count: int) -> int:
    return int(place.run("timeline", "--limit", str(count), "--json").json()["entries"][-1]["last"])


@pytest.mark.parametrize("option", ["--limit", "--last"])
def test_a_page_of_nothing_is_refused(place: Place, harness: Harness, option: str) -> None:
    harness.start("team.ship")
    result = place.run("timeline", option, "0")
    assert result.code == 2
    assert "must be at least 1" in result.err


def test_of_one_run_only_its_own_entries_are_reported(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship", goal="One")
    second = harness.start("team.ship", goal="Two", sessionId=first["run"]["sessionId"])
    harness.advance(first)
    assert len(whats(place)) == 3
    assert whats(place, label_of(second)) == ["started team.ship; next is step 1, Step a"]
    assert len(whats(place, label_of(first))) == 2


@pytest.mark.inv("HIS-4")
def test_on_a_terminal_times_are_relative_and_nothing_steers_it(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.clock.now_ms = SystemClock().unix_ms() - 2 * MINUTE
    first = harness.start("team.ship", goal=HOSTILE)
    harness.advance(first, f"{HOSTILE}\nand more", context={"\x1b[31m": 1})
    checkpointed(harness, first, HOSTILE, client=HOSTILE)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = place.run("timeline")
    assert shown.code == 0
    result = shown.out
    assert "2 min ago run " in result
    assert "\x1b" not in result
    assert "\u202e" not in result
