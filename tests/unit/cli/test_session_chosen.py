"""Which session is meant: every name that people have at hand works, and what names more than one is refused."""

import argparse

import pytest
from tests.support.history import Place, begun_at, damage, label_of

from interlock.cli.session.place import Place as PlaceOfCommand
from interlock.store.git import GitAnchors
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def shown(place: Place, *name: str) -> tuple[str, list[str]]:
    """Return the session that is shown, and the labels of the runs that are."""
    result = place.run("show", *name, "--json")
    assert result.code == 0, result.err
    value = result.json()
    return value["session"], [run["label"] for run in value["runs"]]


def session_of(answer: ToolResult) -> str:
    return str(answer["run"]["sessionId"])


@pytest.mark.inv("HIS-3")
def test_every_name_that_people_have_at_hand_names_the_session(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    other = harness.start("team.ship")
    joined = harness.start("team.ship", sessionId=session_of(first))
    session, whole = session_of(first), ([label_of(first), label_of(joined)])
    for name in (session, session.upper(), session[5:], session[-8:], session[5:24] + session[24:], f" `{session}` "):
        assert shown(place, name) == (session, whole)
    for one in (first, joined):
        node = harness.store.load(harness.session_of(first))
        assert node is not None
        tip = next(run.tip for run in node.runs.values() if run.run == one["run"]["runId"])
        for name in (label_of(one), label_of(one).upper(), one["run"]["runId"], one.state, one.ack, str(tip)):
            assert shown(place, name) == (session, [label_of(one)])
    assert shown(place, session_of(other)) == (session_of(other), [label_of(other)])


@pytest.mark.inv("HIS-3")
def test_no_name_means_the_only_session_there_is(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    assert shown(place)[0] == session_of(first)


@pytest.mark.inv("HIS-3")
@pytest.mark.parametrize("command", ["timeline", "graph", "report", "context"])
def test_no_name_among_several_sessions_is_refused_with_the_names_there_are(
    place: Place, harness: Harness, command: str
) -> None:
    first, second = harness.start("team.ship", goal="One"), harness.start("team.ship", goal="Two")
    result = place.run(command)
    assert result.code == 2
    assert result.err.startswith("interlock session: There are 2 sessions. Name one.\n")
    for one in (first, second):
        assert session_of(one) in result.err
        assert f"run {label_of(one)}" in result.err


@pytest.mark.inv("HIS-3")
def test_show_without_a_name_shows_the_latest_run_and_says_which_others_there_are(
    place: Place, harness: Harness
) -> None:
    first = harness.start("team.ship", goal="One")
    place.later(1)
    second = harness.start("team.ship", goal="Two")
    place.later(1)
    harness.advance(first, "Built it.")
    shown_text = place.run("show")
    assert (shown_text.code, shown_text.err) == (0, "")
    assert f"run {label_of(first)}" in shown_text.out.splitlines()[0]
    assert shown_text.out.splitlines()[-1] == (
        f"This is the latest run. Other runs: {label_of(second)} (Two)."
        " Name one of them; `interlock session list` lists all."
    )
    assert [run["label"] for run in place.run("show", "--json").json()["runs"]] == [label_of(first)]


@pytest.mark.inv("HIS-3")
def test_show_without_a_name_prefers_the_runs_of_its_own_repository(place: Place, harness: Harness) -> None:
    root = PlaceOfCommand(argparse.Namespace()).root
    here = begun_at(harness, GitAnchors(repo_root=root, branch="main", head_sha="a" * 40)).start("team.ship")
    place.later(1)
    begun_at(harness, GitAnchors(repo_root="/elsewhere", branch="main", head_sha="a" * 40)).start("team.ship")
    shown = place.run("show", "--json").json()["runs"]
    assert [run["label"] for run in shown] == [label_of(here)]


@pytest.mark.inv("HIS-3")
def test_a_name_that_fits_more_than_one_is_refused_with_each_of_them(place: Place, harness: Harness) -> None:
    runs = [harness.start("team.ship") for _ in range(12)]
    result = place.run("show", session_of(runs[0])[:12])
    assert result.code == 1
    assert "matches 12 runs." in result.err
    assert sum(session_of(run) in result.err for run in runs) == 10
    assert "and 2 more" in result.err


def test_a_label_that_is_also_the_end_of_another_session_is_ambiguous(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    end = session_of(first)[-4:]
    count = int.from_bytes(place.clock.entropy(), "big")
    # The entropy counts, so the next run id can be made to end as that session does.
    place.clock.__init__(count - count % (32**4) + 32**4 + int(end, 32) - 1)
    second = harness.start("team.ship")
    assert label_of(second) == end
    result = place.run("show", end)
    assert result.code == 1
    assert session_of(first) in result.err
    assert session_of(second) in result.err


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("zzzz", 1, "No session or run in this data directory matches 'zzzz'."),
        ("sess_", 1, "No session or run in this data directory matches 'sess_'."),
        ("node_1", 1, "No readable session contains the node 'node_1'."),
        ("st.v1.abc.def", 1, "This is not a token of this data directory"),
        ("a.b", 1, "This is not a token of this data directory"),
        ("", 2, "An argument is empty."),
        ("``", 2, "An argument is empty."),
        ("\x1b[31m", 1, "No session or run in this data directory matches '\\x1b[31m'."),
    ],
)
def test_a_name_of_nothing_is_reported_with_what_to_do(
    place: Place, harness: Harness, name: str, code: int, said: str
) -> None:
    harness.start("team.ship")
    result = place.run("status", name)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert "`interlock session list`" in result.err


def test_a_token_of_a_session_that_is_gone_says_so(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    harness.start("team.ship")
    (place.root / "sessions" / session_of(first)).rename(place.root / "gone")
    result = place.run("show", first.state)
    assert result.code == 1
    assert f"The token belongs to {session_of(first)}, which does not exist any more." in result.err


def test_where_no_session_is_each_command_says_so(place: Place) -> None:
    for command in ("show", "timeline", "graph", "report"):
        result = place.run(command)
        assert result.code == 1
        assert "No session is recorded in this data directory." in result.err


def test_a_session_without_history_says_so(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    directory = place.root / "sessions" / session_of(first)
    (directory / "settled").unlink()
    (directory / "cache" / "summary").unlink()
    (directory / "manifest.jsonl").write_bytes(b"")
    result = place.run("show", session_of(first))
    assert result.code == 1
    assert f"matches '{session_of(first)}'." in result.err


@pytest.mark.inv("HIS-2")
@pytest.mark.damages
def test_a_damaged_session_is_reported_by_every_command_and_named_among_candidates(
    place: Place, harness: Harness
) -> None:
    first = harness.start("team.ship")
    damage(place.root, session_of(first))
    for command in ("show", "timeline", "graph", "status", "open-gaps", "report"):
        for name in (session_of(first), session_of(first)[-8:]):
            result = place.run(command, name)
            assert (result.code, result.out) == (1, "")
            assert "The stored session is damaged" in result.err
    second = harness.start("team.ship")
    assert f"  {session_of(first)}  corrupt_" in place.run("timeline").err
    assert f"1 session cannot be read: {session_of(first)} (corrupt_" in place.run("show").out
    assert "1 session cannot be read" in place.run("show", "zzzz").err
    assert "1 session cannot be read" in place.run("status").out
    gaps = place.run("open-gaps")
    assert (gaps.code, "1 session cannot be read" in gaps.out) == (1, True)
    assert "There are no open gaps in the sessions that can be read." in gaps.out
    assert shown(place, label_of(second))[0] == session_of(second)
