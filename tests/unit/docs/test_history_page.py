"""The history page shows what its commands print for one recorded session."""

import re
import shlex
from pathlib import Path

import pytest
from tests.support.history import READ_ONLY_COMMANDS, MovingClock, Place, checkpointed, redone, shown_commands
from tests.support.modes import NEVER_STOPS

from interlock.testing.harness import linear_workflow

PAGE = Path(__file__).parents[3] / "docs" / "history.md"


def titled(step_id: str, title: str) -> dict[str, object]:
    return {"id": step_id, "title": title, "prompt": f"{title}."}


RELEASE = linear_workflow(
    "team.release",
    titled("collect", "Collect the changes"),
    titled("write", "Write the notes"),
    titled("publish", "Publish"),
    name="Release",
)


def record(place: Place) -> None:
    """Record a run that was refused once and redone from its first step, and one that never stops."""
    harness = place.serving(RELEASE)
    first = harness.start("team.release", goal="Release 2.0")
    place.later(5)
    second = harness.advance(first, "12 changes since 1.9; two of them break callers.")
    place.later(5)
    refused = harness.advance(second, None)
    checkpointed(harness, first, "Half of the notes are written.", client="claude-code")
    place.later(5)
    harness.advance(refused, "Wrote docs/release.md.")
    place.later(5)
    redone(harness, first, "13 changes: one was merged meanwhile.")
    place.later(5)
    other = harness.start("team.release", goal="Release 1.9.1", preferences=NEVER_STOPS)
    harness.advance(other, None)


def as_pattern(shown: str) -> str:
    """Return a pattern for a shown output; an omission is written as `…` at the end of a line."""
    lines = (re.escape(line.removesuffix("…")) + (".*" if line.endswith("…") else "") for line in shown.splitlines())
    return "\n".join(lines)


def test_each_command_of_the_page_prints_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(root=tmp_path / "data", clock=MovingClock(), capsys=capsys)
    record(place)
    printed = {command: place.run(*shlex.split(command)[2:]).out for command, _ in shown_commands(PAGE)}
    assert {shlex.split(command)[2] for command in printed} == READ_ONLY_COMMANDS
    for command, shown in shown_commands(PAGE):
        assert re.fullmatch(as_pattern(shown), printed[command].rstrip("\n")), f"{command}\n{printed[command]}"
