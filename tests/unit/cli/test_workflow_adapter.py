"""`interlock workflow adapter` prints what a workflow declares of its context keys."""

import json
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.testing.harness import linear_workflow

INPUTS = [{"key": "size", "description": "How large.", "type": "string", "choices": ["s", "l"], "required": True}]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(linear_workflow("team.abc", "a", inputs=INPUTS)))
    (tmp_path / "none.json").write_text(json.dumps(linear_workflow("team.none", "a")))
    return tmp_path


@pytest.mark.inv("EFF-10")
def test_the_manifest_and_its_digest_are_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "adapter", str(place / "a.json"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["workflowId"] == "team.abc"
    assert [one["key"] for one in printed["manifest"]["keys"]] == ["size"]
    assert main(["workflow", "adapter", str(place / "a.json")]) == 0
    shown = capsys.readouterr().out
    assert printed["digest"] in shown
    assert '"s", "l"' in shown


@pytest.mark.inv("EFF-10")
def test_a_workflow_without_declared_keys_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "adapter", str(place / "none.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"workflowId": "team.none", "digest": None, "manifest": None}
    assert main(["workflow", "adapter", str(place / "none.json")]) == 0
    assert "declares no context keys" in capsys.readouterr().out
