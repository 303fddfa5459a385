"""The evidence on the conformance page is what its commands print for one recorded run of a bundled workflow."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.support.history import MovingClock, Place, shown_commands

from interlock.config.settings import BUNDLED
from interlock.testing.harness import Harness, filled_in

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"
WORKFLOW = "wr.quick_task"
NOTES = (
    "Read README.md line by line, corrected `recieve` and `seperate`, and ran the spelling check over the file again."
    " It found nothing more. The diff has two lines, both in the section on installing."
)


def bundled(workflow_id: str) -> dict[str, Any]:
    """Return the document of a bundled workflow, as one of the project."""
    (path,) = BUNDLED.glob(f"{workflow_id.partition('.')[2]}.json")
    return {**json.loads(path.read_text(encoding="utf-8")), "id": "team.quick_task"}


def record(place: Place) -> None:
    """Record a run to its end whose first report is refused once."""
    harness: Harness = place.serving(bundled(WORKFLOW))
    answer = harness.start("team.quick_task", goal="Correct the spelling of the README")
    answer = harness.advance(answer, None)
    reports = 0
    while not answer["isComplete"]:
        reports += 1
        notes = f"Report {reports}: {NOTES}"
        answer = harness.call(answer["nextCall"]["tool"], filled_in(answer, notes))
        assert not answer.is_error, answer.text


@pytest.mark.inv("LIFE-9")
def test_each_command_of_the_evidence_prints_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(root=tmp_path / "data", clock=MovingClock(), capsys=capsys)
    record(place)
    assert shown_commands(PAGE)
    for command, shown in shown_commands(PAGE):
        assert place.run(*shlex.split(command)[2:]).out == shown, command
