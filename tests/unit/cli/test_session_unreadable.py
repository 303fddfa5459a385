"""A session that the system does not let us read: it is named, and every other session is used as before."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.history import Place

from interlock.cli.main import main
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId
from interlock.record.content import collect_references
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.testing.harness import ToolResult, linear_workflow

pytestmark = pytest.mark.damages

SHIP = linear_workflow("team.ship", "a", "b", "c")
IS_ROOT = not hasattr(os, "geteuid") or os.geteuid() == 0


def loop(path: Path) -> None:
    """Make a path a link to itself: not even root reads through it."""
    path.rename(path.with_name("aside"))
    path.symlink_to(path.name)


def forbid(path: Path) -> None:
    if IS_ROOT:
        pytest.skip("root reads everything; the links to themselves stand for this")
    path.chmod(0)


def replace_by_file(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.write_text("x")


def replace_by_dir(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture
def first(place: Place) -> Iterator[ToolResult]:
    """A session that a test makes unreadable, with another one beside it."""
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Alpha")
    harness.advance(first, "Built it.")
    harness.advance(harness.start("team.ship", goal="Beta"), "Tried it.")
    yield first
    for path in (place.root, *place.root.glob("sessions/*"), *place.root.glob("sessions/*/*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)


UNREADABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "its directory is a loop": (loop, ""),
    "its events are a loop": (loop, "events"),
    "its manifest is a loop": (loop, "manifest.jsonl"),
    "its directory is of another user": (forbid, ""),
    "its events are of another user": (forbid, "events"),
    "its events are a file": (replace_by_file, "events"),
}


def shown(place: Place, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*command, "--data-dir", str(place.root)])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out + printed.err


@pytest.mark.inv("READ-2", "HIS-2", "RES-3", "INBOX-1")
@pytest.mark.parametrize("way", UNREADABLE)
def test_a_session_that_cannot_be_read_is_named_and_hides_no_other(
    place: Place, first: ToolResult, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    harm, name = UNREADABLE[way]
    session = str(first["run"]["sessionId"])
    harm(place.root / "sessions" / session / name)
    found = place.serving(SHIP).resume()
    assert [one["run"]["goal"] for one in found["candidates"]] == ["Beta"]
    assert session in found["reason"]
    for command, code in (("list", 0), ("status", 0), ("open-gaps", 1)):
        printed = place.run(command)
        assert (printed.code, session in printed.out) == (code, True), command
        assert place.run(command, "--json").json()["unreadable"], command
    assert "Beta" in place.run("list").out
    assert "2 sessions, 1 mismatch" in place.run("verify").out
    searched = place.run("search", "Beta")
    assert (searched.code, session in searched.out) == (0, True)
    assert "Alpha" not in searched.out
    assert session in shown(place, capsys, "inbox")[1]
    for command in (("doctor",), ("doctor", "--deep"), ("gc", "--dry-run")):
        code, printed = shown(place, capsys, *command)
        assert (code, session in printed) == (1, True), command
    assert shown(place, capsys, "contract", "list")[0] == 0


@pytest.mark.inv("READ-2", "APP-7")
def test_a_call_on_a_session_that_cannot_be_read_names_the_session_and_the_file(
    place: Place, first: ToolResult
) -> None:
    session = str(first["run"]["sessionId"])
    manifest = place.root / "sessions" / session / "manifest.jsonl"
    loop(manifest)
    harness = place.serving(SHIP)
    refused = harness.rehydrate(first)
    assert refused.code is ErrorCode.STORE_FAILED
    assert refused["details"]["sessionId"] == session
    assert f"`sessions/{session}/manifest.jsonl`" in refused["message"]
    assert str(place.root) not in refused.text
    assert len(harness.resume()["candidates"]) == 1
    manifest.unlink()
    manifest.with_name("aside").rename(manifest)
    assert harness.rehydrate(first)["pending"]["stepId"] == "a"
    assert len(harness.resume()["candidates"]) == 2


CACHES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a loop": (loop, "cache/summary"),
    "in a loop": (loop, "cache"),
    "of another user": (forbid, "cache/summary"),
    "in a directory of another user": (forbid, "cache"),
    "in a file": (replace_by_file, "cache"),
    "a directory": (replace_by_dir, "cache/summary"),
}


@pytest.mark.inv("RES-4", "HIS-9")
@pytest.mark.parametrize("way", CACHES)
def test_a_cached_summary_that_cannot_be_read_is_as_if_it_were_missing(
    place: Place, first: ToolResult, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    harm, name = CACHES[way]
    harness = place.serving(SHIP)
    session = str(first["run"]["sessionId"])
    before = place.run("list").out
    harm(place.root / "sessions" / session / name)
    assert place.run("list").out == before
    assert len(place.serving(SHIP).resume()["candidates"]) == 2
    assert place.run("verify").code == 0
    for command in (("doctor",), ("doctor", "--deep"), ("gc",)):
        assert shown(place, capsys, *command)[0] == 0, command
    assert harness.advance(first, "Built it.")["pending"]["stepId"] == "b"


CONTENT: dict[str, tuple[Callable[[Path], None], str]] = {
    "snapshots on another disk": (loop, "snapshots"),
    "snapshots of another user": (forbid, "snapshots"),
    "workflows on another disk": (loop, "workflows"),
}


@pytest.mark.inv("READ-2", "SAL-3", "HIS-2", "DOC-1")
@pytest.mark.parametrize("way", CONTENT)
def test_content_that_cannot_be_read_is_not_lost_and_nothing_is_copied_without_it(
    place: Place, first: ToolResult, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    harm, name = CONTENT[way]
    session = str(first["run"]["sessionId"])
    before = {one.name for one in (place.root / "sessions").iterdir()}
    harm(place.root / name)
    verified = place.run("verify", session)
    assert verified.code == 1
    assert f"`{name}" in verified.out
    assert "It is not known to be damaged." in verified.out
    assert "repair" not in verified.out
    for command in (("repair",), ("export", "--salvage"), ("redact", "--value", "Built it.")):
        refused = place.run(command[0], session, *command[1:])
        assert (refused.code, f"`{name}" in refused.err) == (1, True), command
    listed = place.run("list")
    assert (session in listed.out, "damaged:" in listed.out) == (True, False)
    code, printed = shown(place, capsys, "doctor", "--deep")
    assert (code, "is damaged (" in printed) == (1, False)
    code, printed = shown(place, capsys, "session", "show", session)
    assert (code, "is damaged" in printed, "cannot be read" in printed) == (1, False, True)
    refused = place.serving(SHIP).rehydrate(first)
    assert (refused.code, f"`{name}" in refused["message"]) == (ErrorCode.STORE_FAILED, True)
    assert {one.name for one in (place.root / "sessions").iterdir()} == before


@pytest.mark.inv("SAL-3", "READ-9")
def test_a_session_of_which_some_content_cannot_be_read_is_shown_and_not_cut(place: Place) -> None:
    harness = place.serving(SHIP)
    first = harness.start("team.ship", goal="Gamma")
    harness.advance(harness.advance(first, "Built it."), "Tried it.")
    session = SessionId(str(first["run"]["sessionId"]))
    (snapshot,) = collect_references(LocalStore(place.root).history(session)[-2]).snapshots
    loop(place.root / layout.snapshot(snapshot))
    refused = place.run("repair", session)
    assert (refused.code, layout.snapshot(snapshot) in refused.err) == (1, True)
    assert [one.name for one in (place.root / "sessions").iterdir()] == [session]
    shown = place.run("show", session)
    assert (shown.code, "Gamma" in shown.out, "cannot be read in full" in shown.out) == (1, True, True)
    assert "It is not known to be damaged." in shown.out
    assert "repair" not in shown.out
    assert f"1 session cannot be read in full: {session}" in place.run("status").out
