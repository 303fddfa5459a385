"""A server process and its `config.toml`: it starts with what the file says, or not at all."""

import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.support.forkserver import forking_python

from interlock.testing.harness import ToolResult, call_through

COMMAND = ["-m", "interlock", "serve"]


def environment_of(root: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(root), "INTERLOCK_DATA_DIR": str(root / "data"), **more}


def configured(root: Path, text: str) -> None:
    (root / "data").mkdir(exist_ok=True)
    (root / "data" / "config.toml").write_text(text, encoding="utf-8")


def served(root: Path, *, log_level: str = "WARNING") -> subprocess.CompletedProcess[str]:
    """Start a server whose client leaves at once."""
    return subprocess.run(
        [forking_python(), *COMMAND],
        env=environment_of(root, INTERLOCK_LOG_LEVEL=log_level),
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def called(root: Path, tool: str, arguments: dict[str, Any]) -> ToolResult:
    parameters = StdioServerParameters(command=forking_python(), args=COMMAND, env=environment_of(root), cwd=str(root))

    async def call() -> ToolResult:
        async with Client(parameters) as client:
            return await call_through(client, tool, arguments)

    return anyio.run(call)


@pytest.mark.inv("CFG-1")
def test_a_server_with_a_faulty_file_does_not_start_and_says_why(tmp_path: Path) -> None:
    configured(tmp_path, "[gates]\nclaims = 'sometimes'\n")
    ended = served(tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "interlock serve: The configuration file has faults.\n"
        f"{tmp_path}/data/config.toml: gates.claims: Found 'sometimes': input should be 'when_client_cannot_ask',"
        " 'always' or 'never'. Write 'when_client_cannot_ask', 'always' or 'never'.\n"
    )
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["config.toml"]


def test_what_a_faulty_file_holds_cannot_steer_a_terminal(tmp_path: Path) -> None:
    configured(tmp_path, '["\\u001b[2J"]\n')
    ended = served(tmp_path)
    assert ended.returncode == 2
    assert "\x1b" not in ended.stderr


@pytest.mark.inv("CFG-1", "CTX-7")
def test_a_preset_shows_in_the_preferences_of_a_started_run(tmp_path: Path) -> None:
    configured(tmp_path, "[preferences]\npreset = 'full_auto_stop_on_user_deps'\n")
    started = called(tmp_path, "start_workflow", {"workflowId": "wr.quick_task", "goal": "Show it"})
    assert started["preferences"] == {"autonomy": "full_auto_stop_on_user_deps", "riskPolicy": "balanced"}


def test_the_configured_directory_is_the_users_source(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "a.yaml").write_text(
        "id: team.own\nname: Own\nsteps:\n  - {id: a, title: A, prompt: Do a.}\n", encoding="utf-8"
    )
    configured(tmp_path, f"[workflows]\nuser_dir = '{tmp_path}/flows'\n")
    listed = called(tmp_path, "list_workflows", {"query": "team.own"})
    assert [one["workflowId"] for one in listed["workflows"]] == ["team.own"]
    result = subprocess.run(
        [forking_python(), "-m", "interlock", "workflow", "list", "--query", "team.own"],
        env=environment_of(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "team.own" in result.stdout


@pytest.mark.inv("CFG-2")
def test_the_applied_hash_is_logged_only_where_logs_are_wanted_and_is_the_one_that_is_shown(tmp_path: Path) -> None:
    configured(tmp_path, "[gates]\nclaims = 'never'\n")
    quiet, wordy = served(tmp_path), served(tmp_path, log_level="info")
    assert (quiet.returncode, quiet.stderr, wordy.returncode) == (0, "", 0)
    (line,) = [line for line in wordy.stderr.splitlines() if "appliedConfigHash" in line]
    shown = subprocess.run(
        [forking_python(), "-m", "interlock", "config", "show"],
        env=environment_of(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert line.rpartition(" ")[2] in shown.stdout
