"""The table of commands and its modules agree, and a command line imports the commands that it names."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from interlock.cli.commands import COMMANDS, Command, Group
from interlock.cli.main import main

CLI = Path(__file__).parents[3] / "src" / "interlock" / "cli"
ROWS = [
    (row.name if isinstance(row, Group) else "", command)
    for row in COMMANDS
    for command in (row.commands if isinstance(row, Group) else (row,))
]


LISTED = """
import sys
from interlock.cli.commands import command_line
command_line(sys.argv[1:])
modules = {name: vars(module) for name, module in sys.modules.items() if name.startswith("interlock.cli.")}
print(*(name for name, members in modules.items() if {"add_arguments", "run"} <= set(members)))
"""
HEAVY = """
import sys
from interlock.cli.commands import command_line
command_line(["serve"])
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "anyio", "rich", "yaml"}))
"""


def imported_commands(*words: str) -> set[str]:
    """Return the modules of commands that a process imports for a command line."""
    done = subprocess.run([sys.executable, "-c", LISTED, *words], capture_output=True, text=True, check=True)
    return {name.removeprefix("interlock.cli.") for name in done.stdout.split()}


@pytest.mark.parametrize(("group", "command"), ROWS, ids=[f"{group} {command.name}".strip() for group, command in ROWS])
def test_every_row_names_a_module_that_is_a_command(group: str, command: Command) -> None:
    if command.name == "version":
        assert not command.module
        return
    module = import_module(f"interlock.cli.{command.module}")
    assert callable(module.add_arguments)
    assert callable(module.run)
    assert not group or command.module.startswith(f"{group}.")


def test_every_module_that_is_a_command_has_a_row() -> None:
    found = {
        ".".join(path.relative_to(CLI).with_suffix("").parts)
        for path in CLI.rglob("*.py")
        if "\ndef add_arguments(" in path.read_text(encoding="utf-8")
    }
    assert found == {command.module for _, command in ROWS if command.module}


@pytest.mark.parametrize(
    ("words", "modules"),
    [
        ("", ""),
        ("--help", ""),
        ("version", ""),
        ("session --help", ""),
        ("session status --json", "session.status"),
        ("session unkeep x", "session.keep"),
        ("workflow schema", "workflow.schema"),
        ("show", ""),
        ("serve", "serve"),
    ],
)
def test_only_the_commands_that_are_named_are_imported(words: str, modules: str) -> None:
    assert imported_commands(*words.split()) == set(modules.split())


def test_a_server_that_is_chosen_has_not_imported_the_protocol_yet() -> None:
    """Importing it takes half a second, in which Ctrl-C must end the process quietly: `run` sees to that first."""
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    "words",
    [
        *("session list --data-dir d", "session keep x --data-dir d", "gc --data-dir d", "keys status --data-dir d"),
        *("doctor --data-dir d", "doctor --client json", "config show", "config check --data-dir d", "workflow list"),
    ],
)
def test_in_a_directory_that_is_gone_a_command_says_so_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(words.split()) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(
        f"interlock {words.split(maxsplit=1)[0]}: The current directory does not exist any more.\nChange to"
    )
