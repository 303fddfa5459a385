"""What holds of every command that looks: it writes nothing, answers in JSON, and says what it cannot tell."""

import os
from pathlib import Path

import pytest
from tests.support.history import READ_ONLY_COMMANDS, Place, checkpointed, damage, redone
from tests.support.modes import NEVER_STOPS
from tests.support.server import tree

from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b")
COMMANDS = [
    *(
        "list",
        "list a --deep",
        "show",
        "show --all",
        "context",
        "plan",
        "search ship",
        "timeline",
        "graph",
        "graph --format mermaid",
    ),
    *(
        "graph --format dot",
        "status",
        "open-gaps",
        "lifecycle",
        "state",
        "executions",
        "conformance",
        "report",
        "report --format html",
        "diff sess_01jgfjjz000000000000000001 sess_01jgfjjz000000000000000001",
    ),
]


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def worked(harness: Harness) -> ToolResult:
    """Record one session with a bit of everything."""
    first = harness.start("team.ship", goal="Ship", preferences=NEVER_STOPS)
    harness.advance(first, None, output={"artifacts": [{"kind": "team.verdict"}]})
    checkpointed(harness, first, "Half of it.")
    redone(harness, first, "x" * 5_000)
    return first


def run(place: Place, command: str, *more: str) -> int:
    action, *options = command.split()
    return place.run(action, *options, *more).code


def test_every_command_that_looks_is_looked_at_here() -> None:
    assert {command.split()[0] for command in COMMANDS} == READ_ONLY_COMMANDS


@pytest.mark.inv("HIS-2", "READ-1")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_cached", [True, False], ids=["with its summary", "without"])
def test_looking_changes_nothing_in_the_data_directory(
    place: Place, harness: Harness, command: str, *, is_cached: bool
) -> None:
    worked(harness)
    if not is_cached:
        for cached in place.root.glob("sessions/*/cache/*"):
            cached.unlink()
    before = tree(place.root)
    for form in ((), ("--json",)):
        run(place, command, *form)
    assert tree(place.root) == before


@pytest.mark.inv("HIS-2", "READ-1")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_there", [True, False], ids=["empty", "missing"])
def test_looking_where_nothing_is_makes_nothing_and_says_so(place: Place, command: str, *, is_there: bool) -> None:
    if is_there:
        place.root.mkdir()
    result = place.run(*command.split())
    assert (result.code, "Traceback" in result.err) == (
        int(not command.startswith(("list", "status", "open-gaps"))),
        False,
    )
    assert place.root.exists() == is_there
    assert not is_there or not any(place.root.iterdir())


@pytest.mark.inv("HIS-2")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.damages
def test_looking_at_damage_changes_nothing_and_no_traceback_is_shown(
    place: Place, harness: Harness, command: str
) -> None:
    damage(place.root, worked(harness)["run"]["sessionId"])
    before = tree(place.root)
    result = place.run(*command.split())
    assert "Traceback" not in result.err
    assert "damaged" in result.err + result.out or "cannot be read" in result.out.lower()
    assert tree(place.root) == before


@pytest.mark.inv("HIS-4")
@pytest.mark.parametrize("command", [one for one in COMMANDS if "--format" not in one])
def test_with_json_one_value_is_printed_and_nothing_on_the_error_output(
    place: Place, harness: Harness, command: str
) -> None:
    worked(harness)
    action, *options = command.split()
    result = place.run(action, *options, "--json")
    assert isinstance(result.json(), dict)
    assert result.out.isascii()
    assert result.err == ""


@pytest.mark.parametrize(
    "command", ["list", "status", "open-gaps", "lifecycle", "state", "executions", "conformance", "show"]
)
@pytest.mark.damages
def test_a_session_whose_pinned_workflow_is_gone_is_reported(place: Place, harness: Harness, command: str) -> None:
    harness.advance(harness.start("team.ship", preferences=NEVER_STOPS), None)
    for pinned in place.root.glob("workflows/pinned/*"):
        pinned.unlink()
    for cached in place.root.glob("sessions/*/cache/*"):
        cached.unlink()
    result = place.run(command)
    assert "Traceback" not in result.err
    assert "pinned workflow" in result.err or "annot be read" in result.out


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_directory_that_cannot_be_read_is_reported(place: Place, harness: Harness) -> None:
    worked(harness)
    sessions = place.root / "sessions"
    sessions.chmod(0)
    try:
        assert place.run("list").code == 1
    finally:
        sessions.chmod(0o700)


def test_a_data_directory_that_is_a_file_is_reported(tmp_path: Path, place: Place) -> None:
    place.root.write_text("mine")
    for command in COMMANDS:
        result = place.run(*command.split())
        assert result.code in (0, 1, 2)
        assert "Traceback" not in result.err
    assert (tmp_path / "data").read_text() == "mine"
