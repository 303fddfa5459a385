"""The verifier fails when what is published drifts from the code, and names the file and the place."""

import json
import shutil
from pathlib import Path

import pytest

from interlock.cli.schemas import run_schemas

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("tool-schemas", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.inv("SRV-3")
def test_the_committed_files_are_what_the_code_generates() -> None:
    assert run_schemas("verify") == 0


@pytest.mark.inv("SRV-3")
def test_a_changed_description_is_found_and_its_file_named(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = checkout / "tool-schemas" / "start_workflow.json"
    tool = json.loads(path.read_text(encoding="utf-8"))
    tool["description"] += " More."
    path.write_text(json.dumps(tool, indent=2) + "\n", encoding="utf-8")
    assert run_schemas("verify", checkout) == 1
    said = capsys.readouterr().out
    assert "tool-schemas/start_workflow.json" in said
    assert "More." in said


def test_one_changed_byte_a_missing_and_a_stale_file_are_found(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "tool-schemas" / "records" / "event.json").unlink()
    (checkout / "tool-schemas" / "old_tool.json").write_text("{}", encoding="utf-8")
    limits = checkout / "docs" / "reference" / "limits.md"
    limits.write_text(limits.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert run_schemas("verify", checkout) == 1
    said = capsys.readouterr().out
    assert "records/event.json: is missing" in said
    assert "old_tool.json: is not generated any more" in said
    assert "docs/reference/limits.md" in said


def test_generating_repairs_all_drift(checkout: Path) -> None:
    shutil.rmtree(checkout / "tool-schemas")
    assert run_schemas("generate", checkout) == 0
    assert run_schemas("verify", checkout) == 0
