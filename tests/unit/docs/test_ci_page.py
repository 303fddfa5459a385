"""The page "Interlock in CI" is played: its job as far as it can be without the service, and its exit codes."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.chat_model import reporting
from tests.support.forkserver import forking_python

from interlock.drive.run.result import EXIT_CODES
from interlock.testing.chat_server import chat_server

PAGE = (Path(__file__).parents[3] / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="plays a job")


def test_the_page_lists_every_exit_code() -> None:
    rows = {int(code): words for code, words in re.findall(r"^\| (\d) \| ([^|]+) \|", PAGE, re.MULTILINE)}
    assert set(rows) == {*EXIT_CODES.values(), 2}
    assert rows[EXIT_CODES["complete_with_gaps"]].strip() == "complete with gaps"


def test_the_job_of_the_page_drives_a_review_to_its_end_and_keeps_the_log(tmp_path: Path) -> None:
    (step,) = [one for one in WORKFLOW["jobs"]["review"]["steps"] if one.get("name") == "Drive the review"]
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "interlock").write_text(f'#!/bin/sh\nexec {forking_python()} -m interlock "$@"\n')
    (commands / "interlock").chmod(0o755)
    space, log = tmp_path / "space", tmp_path / "log"
    (space / ".interlock").mkdir(parents=True)
    given = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    root = Path(__file__).parents[3]
    given["PYTHONPATH"] = os.pathsep.join(str(root / part) for part in given.get("PYTHONPATH", "src").split(os.pathsep))
    environment = {**given, "PATH": f"{commands}{os.pathsep}{given['PATH']}", "HOME": str(tmp_path)}
    environment |= {"INTERLOCK_DATA_DIR": str(log), "ANTHROPIC_API_KEY": "none"}
    with chat_server(reporting()) as server:
        profile = {"role": "x", "llm": {"model": "openai:tester", "base_url": server.address}}
        (space / ".interlock" / "agent.yaml").write_text(json.dumps(profile))
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=space,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads((space / "result.json").read_text())["status"] == "complete"
    assert list((log / "sessions").iterdir())
    assert step["env"]["INTERLOCK_DATA_DIR"].startswith("${{ runner.temp }}")
