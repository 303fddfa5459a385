"""The page about operations: its commands run on the example, its code runs, and the tests use the same example."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.support.q3_launch import all_definitions

from interlock.cli.main import main
from interlock.define.operations.files import to_file_json

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "operations.md").read_text(encoding="utf-8")
EXAMPLE = DOCS / "examples" / "q3-launch"


@pytest.mark.inv("GOAL-8")
def test_every_command_of_the_page_runs_on_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("INTERLOCK_WORKFLOWS_DIR", str(tmp_path / "none"))
    shutil.copytree(EXAMPLE, tmp_path / ".interlock" / "operations")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert len(commands) >= 7
    session = ""
    for command in commands:
        words = shlex.split(command.replace("SESSION", session))[1:]
        assert main(words) == 0, command
        printed = capsys.readouterr().out
        found = re.search(r"sess_[0-9a-z]{26}", printed)
        session = session or (found.group() if found is not None else "")


def test_the_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "operations.md", "exec"), {})  # noqa: S102 — the page's own example


def test_the_example_of_the_page_is_that_of_the_tests() -> None:
    held = [json.loads(path.read_text(encoding="utf-8")) for path in EXAMPLE.glob("*.json")]
    expected = [to_file_json(one) for one in all_definitions()]
    assert sorted(held, key=lambda one: one["id"]) == sorted(expected, key=lambda one: str(one["id"]))
