"""A settled mark that cannot be read takes nothing away silently: the last append counts, or everything says so."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.history import Place

from interlock.cli.main import main
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import ToolResult, linear_workflow

pytestmark = pytest.mark.damages

SHIP = linear_workflow("team.ship", "a", "b", "c")


def flip(mark: Path) -> None:
    data = bytearray(mark.read_bytes())
    data[30] ^= 1
    mark.write_bytes(data)


def lengthen(mark: Path) -> None:
    mark.write_bytes(mark.read_bytes() + b"xyz\n")


def loop(mark: Path) -> None:
    mark.unlink()
    mark.symlink_to(mark.name)


def replace_by_dir(mark: Path) -> None:
    mark.unlink()
    mark.mkdir()


def replace_by_pipe(mark: Path) -> None:
    mark.unlink()
    os.mkfifo(mark)


HARMS: dict[str, Callable[[Path], None]] = {
    "a flipped bit": flip,
    "a link to itself": loop,
    "a directory": replace_by_dir,
    "a pipe": replace_by_pipe,
}


@pytest.fixture(params=HARMS)
def harm(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    return HARMS[request.param]


@pytest.fixture
def started(place: Place) -> ToolResult:
    """A run of three steps, all of them reported."""
    harness = place.serving(SHIP)
    first = answer = harness.start("team.ship", goal="Alpha thing")
    for number in range(3):
        answer = harness.advance(answer, f"Built part {number}.")
    return first


def session_dir(place: Place, started: ToolResult) -> Path:
    return place.root / "sessions" / str(started["run"]["sessionId"])


def doctor(place: Place, *options: str) -> tuple[int, str]:
    place.capsys.readouterr()
    code = main(["doctor", *options, "--data-dir", str(place.root)])
    return code, place.capsys.readouterr().out


@pytest.mark.inv("HIS-9", "CRASH-3")
def test_a_mark_that_cannot_be_read_changes_no_view_if_a_summary_was_cached(
    place: Place, started: ToolResult, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    views = [("list",), ("status",), ("show",), ("timeline",), ("verify",)]
    before = [place.run(*view) for view in views]
    assert (session_dir(place, started) / "cache" / "summary").exists()
    harm(session_dir(place, started) / "settled")
    assert [place.run(*view) for view in views] == before
    exported = place.run("export", "--out", str(tmp_path / "x.json"), session_dir(place, started).name)
    assert (exported.code, "14 events" in exported.out or "events" in exported.out) == (0, True)
    code, found = doctor(place)
    assert (code, f"sessions/{session_dir(place, started).name}/settled" in found) == (1, True)


@pytest.mark.inv("CRASH-3", "HIS-9", "DOC-1")
def test_an_undecided_append_is_named_everywhere_and_dropped_nowhere(
    place: Place, started: ToolResult, tmp_path: Path
) -> None:
    directory, name = session_dir(place, started), session_dir(place, started).name
    whole = place.run("timeline", name).out
    flip(directory / "settled")
    (directory / "cache" / "summary").unlink()
    for view in ("show", "timeline", "graph", "report"):
        shown = place.run(view, name)
        assert (shown.code, "the settled mark cannot be read, so the last append is not shown" in shown.out) == (
            1,
            True,
        )
        assert f"`interlock session repair {name}`" in shown.out
    verified = place.run("verify")
    assert "settled mark cannot be read" in verified.out
    assert "No caller got an answer" not in verified.out
    for arguments in (("export", name, "--out", str(tmp_path / "x")), ("redact", name, "--value", "Alpha")):
        refused = place.run(*arguments)
        assert (refused.code, "SESSION_NOT_HEALTHY" in refused.err) == (1, True)
        assert "interlock session repair" in refused.err
    assert not (tmp_path / "x").exists()
    assert len(list((place.root / "sessions").iterdir())) == 1
    for options in ((), ("--deep",)):
        code, found = doctor(place, *options)
        assert (code, f"sessions/{name}/settled" in found) == (1, True)
    repaired = place.run("repair", name)
    assert (repaired.code, "its last append counts" in repaired.out) == (0, True)
    assert place.run("timeline", name).out == whole
    assert doctor(place)[0] == 0
    assert place.run("repair", name).code == 1
    assert place.run("export", name, "--out", str(tmp_path / "x")).code == 0


@pytest.mark.inv("CRASH-3", "HIS-9")
def test_a_session_whose_only_append_is_undecided_is_listed_and_comes_back(place: Place) -> None:
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Alpha thing")
    directory = session_dir(place, first)
    flip(directory / "settled")
    (directory / "cache" / "summary").unlink(missing_ok=True)
    for command in ("list", "status", "open-gaps"):
        printed = place.run(command)
        assert (directory.name in printed.out, "undecided" in printed.out) == (True, True), command
    shown = place.run("show", directory.name)
    assert (shown.code, "settled mark" in shown.err, "There is no session" in shown.err) == (1, True, False)
    assert directory.name in place.serving(SHIP).resume()["reason"]
    assert place.run("repair", directory.name, "--json").json() == {"settledSessionId": directory.name, "events": 5}
    assert place.run("show", directory.name).code == 0


@pytest.mark.inv("CRASH-3", "DOC-1")
def test_the_advice_for_a_mark_that_is_none_works_beside_a_cached_summary(place: Place, started: ToolResult) -> None:
    directory = session_dir(place, started)
    flip(directory / "settled")
    assert (directory / "cache" / "summary").is_file()
    code, found = doctor(place)
    assert (code, f"`interlock session repair {directory.name}`" in found) == (1, True)
    repaired = place.run("repair", directory.name)
    assert (repaired.code, "its mark was written again" in repaired.out) == (0, True)
    assert doctor(place)[0] == 0
    assert place.run("repair", directory.name).code == 1


@pytest.mark.inv("CRASH-3")
def test_bytes_after_a_mark_hide_nothing_and_the_next_append_cuts_them_off(place: Place) -> None:
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Alpha thing")
    mark = session_dir(place, first) / "settled"
    size = mark.stat().st_size
    lengthen(mark)
    for cached in place.root.glob("sessions/*/cache/*"):
        cached.unlink()
    assert place.run("show").code == 0
    assert doctor(place)[0] == 0
    lengthen(mark)
    second = harness.advance(first, "Built it.")
    assert mark.stat().st_size == size
    assert place.serving(SHIP).rehydrate(second)["pending"]["stepId"] == "b"


@pytest.mark.inv("APP-7", "LOCK-4")
def test_a_pipe_in_place_of_a_mark_refuses_a_call_and_holds_no_lock(place: Place) -> None:
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Alpha thing")
    mark = session_dir(place, first) / "settled"
    replace_by_pipe(mark)
    for server in (harness, place.serving(SHIP)):
        assert server.advance(first, "Built it.").code is ErrorCode.STORE_FAILED
    mark.unlink()
    assert harness.advance(first, "Built it.")["pending"]["stepId"] == "b"
