"""The evidence on the conformance page is what its commands print for one recorded run of a bundled workflow."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.history import MovingClock, Place

from interlock.config.settings import BUNDLED
from interlock.testing.harness import Harness, filled_in

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"
WORKFLOW = "wr.quick_task"


def bundled(workflow_id: str) -> dict[str, Any]:
    """Return the document of a bundled workflow, as one of the project."""
    for path in sorted(BUNDLED.rglob("*")):
        if path.suffix in {".yaml", ".yml", ".json"} and workflow_id in path.read_text(encoding="utf-8"):
            text = path.read_text(encoding="utf-8")
            found: dict[str, Any] = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
            if found["id"] == workflow_id:
                return {**found, "id": "team.quick_task"}
    raise AssertionError(f"{workflow_id} is not bundled")


def record(place: Place) -> None:
    """Record a run to its end whose first report is refused once."""
    harness: Harness = place.serving(bundled(WORKFLOW))
    answer = harness.start("team.quick_task", goal="Correct the spelling of the README")
    answer = harness.advance(answer, None)
    reports = 0
    while not answer["isComplete"]:
        reports += 1
        notes = f"Report {reports}: read the README, corrected two words, and ran the spelling check again over every line."
        answer = harness.call(answer["nextCall"]["tool"], filled_in(answer, notes))
        assert not answer.is_error, answer.text


def blocks() -> list[tuple[str, str]]:
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```sh run\n(.*?)\n```\n+```text output\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.inv("LIFE-9")
def test_each_command_of_the_evidence_prints_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(root=tmp_path / "data", clock=MovingClock(), capsys=capsys)
    record(place)
    assert blocks()
    for command, shown in blocks():
        assert place.run(*shlex.split(command)[2:]).out == shown, command
