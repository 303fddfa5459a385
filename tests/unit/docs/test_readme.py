"""The README's commands work as they are written, after an agent's first run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.testing.harness import Harness, linear_workflow

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
WORKFLOW = linear_workflow("team.fix", {"id": "find", "title": "Find it", "prompt": "Find it."})


def commands() -> list[str]:
    """Return the commands that the README shows for the time after a run, with their comments."""
    (block,) = re.findall(r"^```sh afterwards\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return block.splitlines()


@pytest.fixture(name="data_dir", scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("recorded") / "data"
    Harness.on_disk(data_dir, WORKFLOW).start("team.fix", goal="The login loop")
    return data_dir


@pytest.mark.parametrize("command", commands())
def test_a_command_for_afterwards_works_word_by_word_after_one_run(
    command: str, data_dir: Path, tmp_path: Path
) -> None:
    """A name in angle brackets was a redirection to the shell, and the command was not on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(tmp_path), "PATH": path, "INTERLOCK_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout != ""


def test_the_readme_puts_the_command_on_the_path_by_the_line_of_the_guide_and_the_install_page() -> None:
    pages = [README, *((Path(__file__).parents[3] / "docs" / name).read_text() for name in ("guide.md", "install.md"))]
    lines = [re.findall(r"^ *(export PATH=.*)$", page, re.MULTILINE) for page in pages]
    assert lines == [['export PATH="$PWD/.venv/bin:$PATH"']] * len(pages)


def test_no_command_of_the_readme_is_spelled_by_the_path_in_the_checkout_except_where_a_client_needs_it() -> None:
    shown = [
        line
        for block in re.findall(r"^```sh[^\n]*\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    by_path = [shlex.split(line)[0] for line in shown if ".venv/bin/interlock" in line]
    assert set(by_path) == {"claude", "codex", "gemini"}


def test_the_picture_is_what_the_command_draws(capsys: pytest.CaptureFixture[str]) -> None:
    picture = "docs/workflows/code_review.svg"
    assert f"({picture})" in README
    assert main(["workflow", "graph", "wr.code_review", "--svg"]) == 0
    assert capsys.readouterr().out == (Path(__file__).parents[3] / picture).read_text(encoding="utf-8")
