"""`interlock agent`: a new profile is valid, and each field of a file is named."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from interlock.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "src" / "interlock" / "cli" / "drive" / "agent.yaml"


def test_a_new_profile_is_valid_and_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "agent.yaml"
    assert main(["agent", "new", str(path)]) == 0
    assert main(["agent", "validate", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "constraints.max_turns" in shown
    assert "unknown" not in shown
    path.write_text("role: mine\n")
    assert main(["agent", "new", str(path)]) == 1
    capsys.readouterr()
    assert main(["agent", "new", str(tmp_path / "none" / "agent.yaml")]) == 1
    assert "Name a file in a directory that exists" in capsys.readouterr().err
    assert path.read_text() == "role: mine\n"


@pytest.mark.inv("HIS-4")
def test_the_name_of_a_new_profile_chooses_its_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "agent.json"
    assert main(["agent", "new", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(path)}
    assert json.loads(path.read_text()) == yaml.safe_load(EXAMPLE.read_text())
    assert main(["agent", "validate", str(path)]) == 0


def test_show_prints_every_value_and_validate_json_the_fate_of_each_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("apiVersion: ossa/v0.2.9\nkind: Agent\nspec:\n  role: x\n  taxonomy: {domain: y}\n  odd: 1\n")
    assert main(["agent", "show", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["turn_chain"]["max_tool_turns"] == 10
    assert main(["agent", "validate", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "isManifest": True,
        "fields": [
            {"path": "apiVersion", "fate": "used"},
            {"path": "kind", "fate": "used"},
            {"path": "spec.role", "fate": "used"},
            {"path": "spec.taxonomy", "fate": "ignored"},
            {"path": "spec.odd", "fate": "unknown"},
        ],
    }


@pytest.mark.parametrize("text", ["role: [", "[]", "roles: x", "role: x\nconstraints: {max_turns: many}"])
def test_a_file_that_is_no_profile_is_refused_with_2(tmp_path: Path, text: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    assert main(["agent", "validate", str(path)]) == 2
    assert main(["agent", "validate", str(tmp_path / "none.yaml")]) == 2


def test_the_schema_accepts_a_new_profile_and_no_misspelt_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "schema"]) == 0
    validator = Draft202012Validator(json.loads(capsys.readouterr().out))
    example = yaml.safe_load(EXAMPLE.read_text())
    assert validator.is_valid(example)
    assert not validator.is_valid({**example, "constraint": {}})
    assert not validator.is_valid({**example, "constraints": {"max_turns": 0}})
