"""`session show --at`: a run as it was at an earlier event, as the Replay page of the console shows it."""

import re

import pytest
from tests.support.console import entered
from tests.support.history import Place, damage
from tests.support.server import tree

from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", name="Ship it")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def worked(harness: Harness) -> ToolResult:
    first = harness.start("team.ship", goal="Ship the box")
    harness.advance(harness.advance(first, "Built it with care."), "Tried it with care.")
    return first


@pytest.mark.inv("CON-12", "HIS-4", "READ-1")
def test_a_session_at_an_event_equals_what_was_shown_when_the_event_was_the_last(
    place: Place, harness: Harness
) -> None:
    first = harness.start("team.ship", goal="Ship the box")
    then = place.run("show", "--json").json()
    second = harness.advance(first, "Built it with care.")
    between = place.run("show", "--json").json()
    harness.advance(second, "Tried it with care.")
    before = tree(place.root)
    for shown in (then, between):
        found = place.run("show", "--at", str(shown["events"] - 1), "--json").json()
        assert found == shown
    assert tree(place.root) == before


@pytest.mark.inv("CON-12")
def test_an_event_inside_an_append_shows_the_whole_append_under_the_number_of_its_last_event(
    place: Place, harness: Harness
) -> None:
    worked(harness)
    for entry in place.run("timeline", "--json").json()["entries"]:
        # The first append creates the session before the run begins.
        for at in sorted({entry["first"], entry["last"]}):
            assert place.run("show", "--at", str(at), "--json").json()["events"] == entry["last"] + 1


@pytest.mark.inv("CON-12")
def test_the_replay_page_and_the_command_number_events_alike(place: Place, harness: Harness) -> None:
    where = worked(harness)["run"]
    browser = entered(harness)
    run = f"/sessions/{where['sessionId']}/runs/{where['runId']}"
    for entry in place.run("timeline", "--json").json()["entries"]:
        page = browser.get(f"{run}/replay?at={entry['last']}").text
        assert f"as it was after event {entry['last']}<" in page
        lines = place.run("show", "--at", str(entry["last"])).out
        assert f"As of event {entry['last']}." in lines
        for note in ("Built it with care.", "Tried it with care."):
            assert (note in page) == (note in lines)


@pytest.mark.parametrize("at", ["-1", "9999"])
def test_an_event_that_does_not_exist_is_refused_with_the_range(place: Place, harness: Harness, at: str) -> None:
    worked(harness)
    answer = place.run("show", "--at", at)
    assert answer.code == 1
    assert re.search(rf"has no event {at} that can be read\.", answer.err)
    named = re.search(r"Name an event from (\d+) to (\d+) with --at\.", answer.err)
    assert named is not None
    assert named[1] == "0"
    assert [place.run("show", "--at", one).code for one in named.groups()] == [0, 0]


@pytest.mark.damages
def test_a_damaged_session_is_shown_at_an_event_under_its_banner(place: Place, harness: Harness) -> None:
    first = worked(harness)
    last = place.run("show", "--json").json()["events"] - 1
    damage(place.root, first["run"]["sessionId"])
    lost = place.run("show", "--at", str(last))
    assert lost.code == 1
    assert f"has no event {last} that can be read." in lost.err
    sound = place.run("show", "--at", "7")
    assert sound.code == 1
    assert "damaged" in sound.out
    assert "Tried it with care." not in sound.out
    assert "As of event " in sound.out
