"""`session delete`: what should never have been written goes, and nothing else does."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.history import Place, appended, label_of
from tests.support.modes import with_artifacts
from tests.support.server import tree

from interlock.kernel.ids import RunId
from interlock.record import payloads as data
from interlock.record.append_plan import EventDraft
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")
SECRET = "hunter2-hunter2"


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def session_of(answer: ToolResult) -> str:
    return str(answer["run"]["sessionId"])


def holding(root: Path, text: str) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.inv("EVD-10")
def test_a_deleted_session_is_gone_from_the_disk_and_the_others_are_whole(place: Place, harness: Harness) -> None:
    wrong, other = harness.start("team.ship", goal="Wrong"), harness.start("team.ship", goal="Other")
    harness.advance(wrong, f"The password is {SECRET}.")
    printed = place.run("delete", session_of(wrong), "--yes")
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.splitlines()[:2] == [
        f"{session_of(wrong)} has 1 run:",
        f"  run {label_of(wrong)}, team.ship, in progress: Wrong",
    ]
    assert holding(place.root, SECRET) == []
    assert [run["label"] for run in place.run("list", "--json").json()["runs"]] == [label_of(other)]
    assert place.run("verify").code == 0
    assert place.run("delete", session_of(wrong), "--yes").code == 1


@pytest.mark.inv("EVD-10")
def test_the_artifacts_of_a_deleted_session_go_with_a_later_collection(place: Place, harness: Harness) -> None:
    wrong = harness.start("team.ship")
    harness.advance(wrong, None, output=with_artifacts({"kind": "a", "password": SECRET}, notes="Done."))
    assert "`interlock gc`" in place.run("delete", label_of(wrong), "--yes").out
    assert all(path.parent.name == "artifacts" for path in holding(place.root, SECRET))


@pytest.mark.inv("EVD-10")
@pytest.mark.parametrize("linked", ["", "/events"])
def test_a_session_behind_a_link_is_not_deleted(place: Place, harness: Harness, tmp_path: Path, linked: str) -> None:
    session = session_of(harness.start("team.ship"))
    path = place.root / f"sessions/{session}{linked}"
    path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "away")
    printed = place.run("delete", session, "--yes")
    assert printed.code == 1
    assert f"{session} was not deleted: a link leads to its log." in printed.err
    assert "Deleted" not in printed.out
    assert place.run("verify").code == 0


@pytest.mark.inv("EVD-10")
def test_a_kept_session_is_not_deleted(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    place.run("keep", session_of(first))
    printed = place.run("delete", session_of(first), "--yes")
    assert (printed.code, "is kept" in printed.err, "session unkeep" in printed.err) == (1, True, True)
    assert place.run("show", session_of(first)).code == 0


@pytest.mark.inv("EVD-10")
def test_a_session_that_another_one_refers_to_is_not_deleted(place: Place, harness: Harness) -> None:
    first, second = harness.start("team.ship"), harness.start("team.ship")
    ended = data.WorkRecorded(work="cancelled", reason="superseded", refs=(f"see {session_of(first)}",))
    appended(harness, second, EventDraft(data=ended, run=RunId(second["run"]["runId"])))
    printed = place.run("delete", session_of(first), "--yes")
    assert (printed.code, f"is referred to by {session_of(second)}." in printed.err) == (1, True)
    assert place.run("delete", session_of(second), "--yes").code == 0
    assert place.run("delete", session_of(first), "--yes").code == 0


def typing(answer: str) -> Callable[[str], str]:
    """Return a function that answers every question like a person at a terminal."""

    def typed(_: str) -> str:
        return answer

    return typed


def ending(_: str) -> str:
    """End the input, as Ctrl-D does."""
    raise EOFError


@pytest.mark.inv("EVD-10")
def test_nothing_is_deleted_unless_a_person_types_the_end_of_the_id(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = harness.start("team.ship")
    before = tree(place.root)
    printed = place.run("delete", session_of(first))
    assert (printed.code, "Add --yes" in printed.err) == (2, True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for refused in (typing("yes"), ending):
        monkeypatch.setattr("builtins.input", refused)
        printed = place.run("delete", session_of(first))
        assert (printed.code, "Nothing was deleted." in printed.err) == (1, True)
        assert tree(place.root) == before
    monkeypatch.setattr("builtins.input", typing(session_of(first)[-6:]))
    assert place.run("delete", session_of(first)).code == 0
    assert place.run("list", "--json").json()["runs"] == []


@pytest.mark.inv("EVD-10")
@pytest.mark.damages
def test_while_a_session_is_damaged_nothing_is_deleted(place: Place, harness: Harness) -> None:
    first, second = harness.start("team.ship"), harness.start("team.ship")
    next((place.root / "sessions" / session_of(second) / "events").iterdir()).unlink()
    printed = place.run("delete", session_of(first), "--yes")
    assert (printed.code, "Nothing was deleted." in printed.err) == (1, True)
    assert place.run("show", session_of(first)).code == 0


@pytest.mark.inv("HIS-3")
def test_the_latest_run_and_the_latest_that_waits_have_names(place: Place, harness: Harness) -> None:
    assert place.run("show", "@last").code == 1
    blocked = harness.start("team.ship")
    place.later(1)
    harness.advance(blocked, None)
    place.later(1)
    assert place.run("show", "@waiting").out.startswith(f"Workflow team.ship: run {label_of(blocked)}")
    latest = harness.start("team.ship")
    for command in ("show", "context", "report", "timeline", "status", "plan"):
        assert label_of(latest) in place.run(command, "@last").out, command
        assert label_of(blocked) in place.run(command, "@WAITING").out, command
    assert place.run("diff", "@last", "@waiting").code == 1
    printed = place.run("show", "@first")
    assert (printed.code, "Use @last or @waiting." in printed.err) == (2, True)
    assert "`@last` is the latest run" in place.run("timeline").err
