"""Commands in bad surroundings, as processes: closed or full output, a lost directory, settings that mean nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.forkserver import forking_python

from interlock.testing.harness import linear_workflow

OWN = Path(".interlock/workflows")
COMMANDS = [
    "version",
    "--version",
    "--help",
    "help",
    "session show --help",
    "session list",
    "demo",
    "workflow list",
    "workflow list --json",
    "workflow inspect wr.code_review",
    "workflow plan wr.code_review",
    "workflow graph wr.code_review",
    "workflow graph wr.code_review --format dot",
    "workflow schema",
    "workflow validate own.json",
]
Told = subprocess.CompletedProcess[str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "own.json").write_text(json.dumps(linear_workflow("team.abc", "a")))
    return tmp_path


def interlock(root: Path, command: str, **environment: str) -> Told:
    """Run a command as a shell does, redirections included."""
    own = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "INTERLOCK_WORKFLOWS_DIR": str(root / "user")}
    return subprocess.run(
        ["sh", "-c", f'"{forking_python()}" -m interlock {command}'],
        cwd=root,
        env=own | {"PYTHONUTF8": "1"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def in_lost_directory(root: Path, command: str) -> Told:
    """Run a command in a directory that is removed before its interpreter begins."""
    lost = root / "lost"
    lost.mkdir()
    own = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "PYTHONUTF8": "1"}
    return subprocess.run(
        ["sh", "-c", f'rmdir "{lost}" && exec "{sys.executable}" -m interlock {command}'],
        cwd=lost,
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_is_reported_in_one_line(root: Path, command: str) -> None:
    result = interlock(root, f"{command} >&-")
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "interlock: the output cannot be written: standard output is closed. Write it to a file instead."
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_output_is_reported_in_one_line(root: Path, command: str) -> None:
    result = interlock(root, f"{command} >/dev/full")
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "interlock: the output cannot be written: No space left on device. Write it to a file instead."
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_output_without_a_buffer_is_reported_in_the_same_line(root: Path) -> None:
    for command in ("session list", "--help"):
        buffered, unbuffered = (interlock(root, f"{command} >/dev/full", PYTHONUNBUFFERED=value) for value in ("", "1"))
        assert (unbuffered.returncode, unbuffered.stderr) == (1, buffered.stderr)


@pytest.mark.parametrize("command", ["version", "workflow list", "workflow validate ."])
def test_a_closed_error_output_changes_nothing_of_the_result(root: Path, command: str) -> None:
    (root / "other.json").write_text(json.dumps(linear_workflow("team.other", "a")))
    result = interlock(root, f"{command} 2>&-")
    assert result.returncode == 0
    assert result.stdout == interlock(root, command).stdout


def test_a_command_that_has_nowhere_to_print_to_is_not_begun(root: Path) -> None:
    assert interlock(root, "workflow new team.w >&-").returncode == 1
    assert not (root / OWN).exists()


@pytest.mark.parametrize("command", ["workflow list", "workflow validate", "workflow new team.w", "serve"])
def test_a_current_directory_that_is_gone_is_reported(root: Path, command: str) -> None:
    result = in_lost_directory(root, command)
    assert (result.returncode, result.stdout) == (2, "")
    assert "The current directory does not exist any more." in result.stderr
    assert "Traceback" not in result.stderr


def test_who_names_every_directory_needs_no_current_one(root: Path) -> None:
    (root / OWN).mkdir(parents=True)
    (root / "own.json").rename(root / OWN / "own.json")
    result = in_lost_directory(root, f'workflow validate --workspace "{root}"')
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("1 file: 1 fine")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--data-dir own.json", "own.json is not a directory"),
        ("--data-dir own.json/below/it", "own.json is not a directory"),
        ("--workspace none", "--workspace: there is no directory none"),
        ("--core-source none", "--core-source: there is no directory none"),
        ("<&-", "Standard input or output is closed"),
        (">&-", "Standard input or output is closed"),
    ],
)
def test_a_server_that_cannot_begin_as_asked_says_why_and_exits_with_2(root: Path, options: str, said: str) -> None:
    result = interlock(root, f"serve {options}")
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.startswith("interlock serve: ")
    assert "Traceback" not in result.stderr


def test_a_data_directory_that_is_a_dangling_link_is_none(root: Path) -> None:
    (root / "link").symlink_to(root / "nowhere")
    assert interlock(root, "serve --data-dir link").returncode == 2


def test_a_data_directory_and_a_workspace_of_the_environment_may_yet_come(root: Path) -> None:
    result = interlock(root, "serve", INTERLOCK_DATA_DIR=str(root / "a/b"), INTERLOCK_WORKSPACE=str(root / "none"))
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("level", ["bogus", "10", "notset"])
def test_a_log_level_that_is_none_is_reported_with_those_there_are(root: Path, level: str) -> None:
    result = interlock(root, "serve", INTERLOCK_LOG_LEVEL=level)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        f"interlock serve: INTERLOCK_LOG_LEVEL: '{level}' is not a log level.",
        "Set it to one of debug, info, warning, error, critical, or unset it.",
    ]


@pytest.mark.parametrize("level", ["", "debug", "WARNING"])
def test_a_log_level_is_read_in_any_case_and_an_empty_one_is_unset(root: Path, level: str) -> None:
    assert interlock(root, f'serve --data-dir "{root}/data"', INTERLOCK_LOG_LEVEL=level).returncode == 0


@pytest.mark.parametrize(
    ("command", "exit_code", "said"),
    [
        ("plan ''", 2, "An argument is empty."),
        ("plan .", 2, ". is a directory."),
        ("plan none.json", 2, "There is no file none.json."),
        ("plan wr.code_reveiw", 1, "There is no workflow 'wr.code_reveiw'."),
        ("inspect team.none", 1, "There is no workflow 'team.none'."),
        ("validate ''", 2, "An argument is empty."),
        ("validate none", 2, "There is no file or directory none."),
        ("validate", 2, "The project has no directory .interlock/workflows."),
        ("list --workspace none", 2, "--workspace: there is no directory none."),
    ],
)
def test_with_json_a_command_that_cannot_go_on_prints_an_error_object(
    root: Path, command: str, exit_code: int, said: str
) -> None:
    result = interlock(root, f"workflow {command} --json")
    assert result.returncode == exit_code
    error = json.loads(result.stdout)["error"]
    assert {*error} - {"details"} == {"code", "message", "retry", "suggestion"}
    assert error["message"] == said
    assert result.stderr == f"interlock workflow: {said}\n{error['suggestion']}\n"
    plain = interlock(root, f"workflow {command}")
    assert (plain.returncode, plain.stdout, plain.stderr) == (exit_code, "", result.stderr)


def test_with_json_the_faults_of_a_file_are_data(root: Path) -> None:
    (root / "own.json").write_text(json.dumps({"id": "team.x", "name": "X", "steps": [{"id": "a"}]}))
    result = interlock(root, "workflow plan own.json --json")
    assert result.returncode == 1
    error = json.loads(result.stdout)["error"]
    diagnostics = error["details"]["diagnostics"]
    assert error["details"]["file"] == "own.json"
    assert {(one["code"], one["line"]) for one in diagnostics} == {("missing_key", 1), ("prompt_missing", 1)}
    assert result.stderr.count("own.json:1:") == len(diagnostics)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("team.w --dir own.json", "own.json is not a directory, or a part of its path is a file."),
        ("team.w --dir own.json/below", "own.json/below is not a directory, or a part of its path is a file."),
        ("team.w --dir /dev/null", "/dev/null is not a directory, or a part of its path is a file."),
        (f"team.{'a' * 200}", "The id has 205 characters; the limit is 128."),
    ],
)
def test_what_keeps_a_new_file_from_being_written_is_named(root: Path, arguments: str, said: str) -> None:
    result = interlock(root, f"workflow new {arguments}")
    assert result.returncode in {1, 2}
    assert result.stderr.startswith(f"interlock workflow: {said}\n")


def test_a_workrail_file_of_a_project_is_read_as_it_is_unless_its_id_is_reserved(root: Path) -> None:
    step = {"id": "a", "title": "A", "prompt": "Do a."}
    document = {"id": "abc", "name": "A", "description": "D.", "version": "1.0.0", "steps": [step]}
    (root / "own.json").write_text(json.dumps(document))
    assert interlock(root, "workflow validate own.json").returncode == 0
    (root / "own.json").write_text(json.dumps(document | {"id": "wr.abc"}))
    result = interlock(root, "workflow validate own.json")
    assert result.returncode == 1
    assert "reserved_namespace" in result.stdout
    assert "`project.abc`" in result.stdout
