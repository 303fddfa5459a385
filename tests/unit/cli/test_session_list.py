"""The list: what was worked on, the newest first, narrowed as people think of it; what cannot be read comes last."""

import json
import shutil
import sys

import pytest
from tests.support.history import HOSTILE, MINUTE, Place, begun_at, checkpointed, damage, label_of, tip_of

from interlock.cli.render.phrases import ago
from interlock.cli.screen import StopError
from interlock.cli.session.chosen import short_of
from interlock.cli.session.list import since
from interlock.kernel.ids import SessionId
from interlock.service.clock import SystemClock
from interlock.store.git import GitAnchors
from interlock.store.local import layout
from interlock.testing.harness import FIXED_UNIX_MS, Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")
MEND = linear_workflow("team.mend", "look", "fix", name="Mend what broke")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP, MEND)


def three(place: Place, harness: Harness) -> list[ToolResult]:
    """Start three runs an hour apart: one at its first step, one refused, one complete."""
    first = harness.start("team.ship", goal="Ship 1.0")
    place.later(60)
    second = harness.start("team.mend", goal="Mend the login")
    harness.advance(second, None)
    place.later(60)
    third = harness.start("team.ship", goal="Ship 2.0")
    harness.advance(harness.advance(third, "Built it."), "Tagged and uploaded.")
    return [first, second, third]


def labels(place: Place, *arguments: str) -> list[str]:
    result = place.run("list", "--json", *arguments)
    assert result.code == 0
    return [run["label"] for run in result.json()["runs"]]


@pytest.mark.inv("HIS-1")
def test_runs_are_listed_by_their_last_activity_the_newest_first(place: Place, harness: Harness) -> None:
    first, second, third = three(place, harness)
    assert labels(place) == [label_of(third), label_of(second), label_of(first)]
    place.later(60)
    harness.advance(first)
    assert labels(place) == [label_of(first), label_of(third), label_of(second)]


def test_a_row_tells_session_run_workflow_goal_status_step_when_and_client(place: Place, harness: Harness) -> None:
    first, second, third = three(place, harness)
    place.later(1)
    checkpointed(harness, first, "Half of it.", client="claude-code")
    result = place.run("list").out.splitlines()
    assert result[0].split() == ["SESSION", "RUN", "WORKFLOW", "GOAL", "STATUS", "STEP", "WHEN", "CLIENT"]
    rows = [tuple(cell.strip() for cell in row.split("  ") if cell.strip()) for row in result[1:]]
    hour = "2025-01-01T0{}:00:00.000Z".format
    now = "2025-01-01T02:01:00.000Z"
    shown = (short(first), label_of(first), "team.ship", "Ship 1.0", "in progress", "1 of 2", now, "claude-code")
    assert rows == [
        shown,
        (short(third), label_of(third), "team.ship", "Ship 2.0", "complete", "-", hour(2), "-"),
        (short(second), label_of(second), "team.mend", "Mend the login", "blocked", "1 of 2", hour(1), "-"),
    ]


def short(answer: ToolResult) -> str:
    return str(answer["run"]["sessionId"])[-6:]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ("--status complete", [2]),
        ("--status blocked --status complete", [2, 1]),
        ("--workflow team.ship", [2, 0]),
        ("--since 2025-01-01T01:00", [2, 1]),
        ("--since 2025-01-02", []),
        ("mend", [1]),
        ("MEND login", [1]),
        ("uploaded", [2]),
        ("Ship uploaded", [2]),
        ("ship login", [2, 1, 0]),
        ("ship uplaoded", [2]),
        ("upl", [2]),
        ("team.ship", [2, 0]),
        ("built", []),
        ("built --deep", [2]),
        ("Step b --deep", [2, 0]),
        ("--limit 2", [2, 1]),
        ("--limit 2 --page 2", [0]),
        ("--limit 2 --page 3", []),
    ],
)
@pytest.mark.inv("HIS-1")
def test_a_list_is_narrowed_by_status_workflow_time_words_and_page(
    place: Place, harness: Harness, options: str, numbers: list[int]
) -> None:
    runs = three(place, harness)
    if options == "Step b --deep":
        harness.advance(runs[0])
        numbers = [0, 2]
    assert labels(place, *options.split()) == [label_of(runs[number]) for number in numbers]


def test_a_word_in_another_script_is_looked_for_as_it_stands(place: Place, harness: Harness) -> None:
    found = harness.start("team.ship", goal="Проверка входа")
    harness.start("team.ship", goal="Something else")
    assert labels(place, "проверка") == [label_of(found)]
    assert labels(place, "погода") == []


def test_a_page_says_how_to_get_the_next_and_json_how_many_there_are(place: Place, harness: Harness) -> None:
    three(place, harness)
    assert place.run("list", "--limit", "2").out.splitlines()[-1].startswith("1 more: --page 2, or narrow")
    assert "more:" not in place.run("list", "--limit", "2", "--page", "2").out
    assert place.run("list", "--limit", "2", "--page", "9").out == "This page is empty: 3 runs match.\n"
    result = place.run("list", "--limit", "2", "--json").json()
    assert (result["fitting"], result["total"], result["page"], result["limit"]) == (3, 3, 1, 2)


def test_a_list_where_nothing_is_says_what_will_be_there(place: Place) -> None:
    result = place.run("list")
    assert result.code == 0
    assert result.out.startswith("There are no sessions here yet.")
    assert place.run("list", "--json").json()["runs"] == []
    assert not place.root.exists()


def test_a_list_that_nothing_fits_says_how_to_see_more(place: Place, harness: Harness) -> None:
    three(place, harness)
    assert place.run("list", "nowhere").out.startswith("None of the 3 runs matches.")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--since", "soon"], "--since: 'soon' is not a date, a time or a period."),
        (["--limit", "0"], "--limit and --page must be at least 1."),
        (["--page", "-1"], "--limit and --page must be at least 1."),
    ],
)
def test_an_option_that_means_nothing_ends_with_2(place: Place, options: list[str], said: str) -> None:
    result = place.run("list", *options, "--json")
    assert result.code == 2
    assert result.json()["error"]["message"] == said
    assert said in result.err


@pytest.mark.damages
def test_deep_search_passes_over_what_it_cannot_read(place: Place, harness: Harness) -> None:
    _, _, third = three(place, harness)
    _, tip = tip_of(harness, third)
    session = harness.store.load(harness.session_of(third))
    assert session is not None
    assert tip.parent is not None
    (place.root / layout.snapshot(session.nodes[tip.parent].snapshot)).unlink()
    assert labels(place, "Ship", "--deep", "--workflow", "team.ship")[0] == label_of(third)


@pytest.mark.inv("HIS-2")
@pytest.mark.damages
def test_a_session_of_a_newer_interlock_says_to_use_that_one(place: Place, harness: Harness) -> None:
    manifest = place.root / "sessions" / harness.start("team.ship")["run"]["sessionId"] / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes().replace(b'"v":1', b'"v":9'))
    result = place.run("list").out
    assert "unknown_version" in result
    assert "Use the Interlock version that wrote it" in result


@pytest.mark.inv("HIS-2")
@pytest.mark.damages
def test_a_session_that_cannot_be_read_is_listed_last_with_what_to_do(place: Place, harness: Harness) -> None:
    first, second, _ = three(place, harness)
    damage(place.root, second["run"]["sessionId"])
    result = place.run("list")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines.index("Cannot be read:") > max(number for number, line in enumerate(lines) if "team." in line)
    assert any(line.startswith(second["run"]["sessionId"]) and "corrupt_tail" in line for line in lines)
    assert f"`interlock session repair {second['run']['sessionId']}`" in lines[-2]
    assert "`interlock doctor --deep`" in lines[-1]
    (one,) = place.run("list", "--json").json()["unreadable"]
    assert (one["session"], one["health"]) == (second["run"]["sessionId"], "corrupt_tail")
    assert label_of(first) in labels(place)


@pytest.mark.damages
def test_a_list_without_any_readable_session_still_names_the_others(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    damage(place.root, first["run"]["sessionId"])
    result = place.run("list").out
    assert "There are no sessions" not in result
    assert first["run"]["sessionId"] in result


def test_the_branch_a_run_began_on_narrows_by_its_beginning(place: Place, harness: Harness) -> None:
    found = begun_at(harness, GitAnchors(branch="feature/login")).start("team.ship")
    harness.start("team.ship")
    assert labels(place, "--branch", "feature") == [label_of(found)]
    assert labels(place, "--branch", "feature/login") == [label_of(found)]
    assert labels(place, "--branch", "login") == []


@pytest.mark.inv("HIS-4")
def test_on_a_terminal_times_are_relative_and_rows_fit_its_width(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.clock.now_ms = SystemClock().unix_ms() - 123 * MINUTE
    three(place, harness)
    harness.start("team.ship", goal=HOSTILE)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    listed = place.run("list")
    assert listed.code == 0
    result = listed.out
    assert "3 min ago" in result
    assert "1 h ago" in result
    # Without colour, headings are still bold.
    plain = result.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(map(len, plain.splitlines())) <= 110
    assert "\x1b" not in plain
    assert "\u202e" not in plain


def test_a_copied_directory_lists_the_same(place: Place, harness: Harness) -> None:
    """The cache beside a session is bound to its log, so it may come along or not."""
    three(place, harness)
    listed = place.run("list").out
    for cached in place.root.glob("sessions/*/cache"):
        shutil.rmtree(cached)
    assert place.run("list").out == listed


def test_each_shown_session_can_be_named_as_it_is_shown(place: Place, harness: Harness) -> None:
    three(place, harness)
    result = place.run("list", "--json").json()["runs"]
    for run in result:
        shown = place.run("show", run["short"], "--json")
        assert shown.json()["session"] == run["session"]


def test_a_short_name_grows_until_it_names_one_session_alone() -> None:
    sessions = [SessionId("sess_aaaa000001"), SessionId("sess_bbbb000001"), SessionId("sess_cccc000002")]
    assert [short_of(sessions)(one) for one in sessions] == ["a000001", "b000001", "c000002"]
    assert short_of(sessions[1:])(sessions[1]) == "000001"


@pytest.mark.parametrize(
    ("past_ms", "words"),
    [
        (-30_000, "just now"),
        (0, "just now"),
        (59_999, "just now"),
        (MINUTE, "1 min ago"),
        (59 * MINUTE, "59 min ago"),
        (60 * MINUTE, "1 h ago"),
        (23 * 60 * MINUTE, "23 h ago"),
        (24 * 60 * MINUTE, "yesterday"),
        (48 * 60 * MINUTE, "2 days ago"),
        (29 * 24 * 60 * MINUTE, "29 days ago"),
        (30 * 24 * 60 * MINUTE, "2025-01-01"),
        (-2 * MINUTE, "2025-01-01"),
    ],
)
def test_a_moment_is_said_as_people_say_it(past_ms: int, words: str) -> None:
    assert ago("2025-01-01T00:00:00.000Z", FIXED_UNIX_MS + past_ms) == words


def test_what_is_no_time_is_unknown() -> None:
    assert [ago(at, FIXED_UNIX_MS) for at in (None, "", "soon", "99999-01-01")] == ["unknown"] * 4


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("90m", FIXED_UNIX_MS - 90 * MINUTE),
        ("12h", FIXED_UNIX_MS - 12 * 60 * MINUTE),
        ("3d", FIXED_UNIX_MS - 3 * 24 * 60 * MINUTE),
        ("2w", FIXED_UNIX_MS - 14 * 24 * 60 * MINUTE),
        ("2025-01-01", FIXED_UNIX_MS),
        ("2025-01-01T00:01", FIXED_UNIX_MS + MINUTE),
        ("2025-01-01T01:00:00+01:00", FIXED_UNIX_MS),
    ],
)
def test_since_takes_a_date_a_time_or_a_span(said: str, moment: int) -> None:
    assert since(said, FIXED_UNIX_MS) == moment


def test_since_refuses_what_is_neither_and_says_what_to_use() -> None:
    with pytest.raises(StopError) as refused:
        since("yesterday", FIXED_UNIX_MS)
    assert "12h" in refused.value.fix
    assert json.dumps(refused.value.to_json())
